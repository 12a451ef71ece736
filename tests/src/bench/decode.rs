//! JSON to Parquet on one core, without a broker: the writer's decoder and encoder beside `arrow-json` and
//! `ArrowWriter`.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use firn_table::files::{FileEncoder, FileFormat};
use firn_writer::decode::{DecodeOptions, Decoder as _, JsonDecoder, Message};
use firn_writer::generate::{FieldKind, Generated, Template};
use iceberg::spec::SortOrder;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use crate::cpu::Cost;
use crate::{Length, print};

/// Messages decoded into one batch.
pub(crate) const BATCH: usize = 8_192;

/// The demo's messages, without their UUID: `arrow-json` reads no UUIDs.
fn template() -> Template {
    let mut template = Template::default_events();
    template.fields.retain(|field| !matches!(field.kind, FieldKind::Uuid {}));
    template
}

/// Messages of about 1 KiB, as the demo generates them but for the UUID.
pub(crate) fn messages(count: u64, partitions: i32) -> Result<Vec<Generated>> {
    let generator = template().generator(1, partitions)?;
    Ok((0..count).map(|index| generator.message(index, 1_767_225_600_000)).collect())
}

pub(crate) fn bytes(messages: &[Generated]) -> u64 {
    messages.iter().map(|message| message.payload.len() as u64).sum()
}

/// What the table of these messages is written with.
pub(crate) fn format() -> Result<FileFormat> {
    let schema = Arc::new(template().schema()?);
    let codec = [("write.parquet.compression-codec".to_owned(), "zstd".to_owned())];
    Ok(FileFormat::new(schema, &SortOrder::unsorted_order(), &HashMap::from(codec))?)
}

pub(crate) fn run(length: Length) -> Result<()> {
    let count = if length == Length::Short { 100_000 } else { 1_000_000 };
    let messages = messages(count, 1)?;
    let size = bytes(&messages);
    print(format_args!("decode and encode: {count} messages of {} bytes on one core", size / count))?;
    let (bare, decoded) = Cost::of(|| bare_decode(&messages))?;
    print(format_args!("  bare   decode (arrow-json)     {}", decoded.rate(size)))?;
    let (_, encoded) = Cost::of(|| bare_encode(&bare))?;
    print(format_args!("  bare   encode (ArrowWriter)    {}", encoded.rate(size)))?;
    drop(bare);
    let (ours, our_decoded) = Cost::of(|| decode(&messages))?;
    print(format_args!("  firn   decode                  {}", our_decoded.rate(size)))?;
    let (_, our_encoded) = Cost::of(|| encode(&ours))?;
    print(format_args!("  firn   encode                  {}", our_encoded.rate(size)))?;
    let both = |decoded: Cost, encoded: Cost| size as f64 / 1e6 / (decoded.cpu + encoded.cpu).as_secs_f64();
    let (bare, firn) = (both(decoded, encoded), both(our_decoded, our_encoded));
    print(format_args!("  both: bare {bare:.0}, firn {firn:.0} MB per CPU-second ({:.2})", firn / bare))
}

fn bare_decode(messages: &[Generated]) -> Result<Vec<RecordBatch>> {
    let mut decoder = bare_decoder(format()?.arrow_schema())?;
    let mut batch = |chunk: &[Generated]| {
        for message in chunk {
            decoder.decode(&message.payload)?;
        }
        decoder.flush()?.context("a batch with rows")
    };
    messages.chunks(BATCH).map(&mut batch).collect()
}

/// `arrow-json`, which takes one message after the other.
pub(crate) fn bare_decoder(schema: &SchemaRef) -> Result<arrow_json::reader::Decoder> {
    Ok(arrow_json::ReaderBuilder::new(schema.clone()).with_batch_size(BATCH).build_decoder()?)
}

fn bare_encode(batches: &[RecordBatch]) -> Result<usize> {
    let mut writer = bare_writer(batches.first().context("a batch")?.schema())?;
    for batch in batches {
        writer.write(batch)?;
    }
    Ok(writer.into_inner()?.len())
}

/// `ArrowWriter` as its makers set it, with zstd at level 1.
pub(crate) fn bare_writer(schema: SchemaRef) -> Result<ArrowWriter<Vec<u8>>> {
    let properties =
        WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?)).build();
    Ok(ArrowWriter::try_new(Vec::new(), schema, Some(properties))?)
}

fn decode(messages: &[Generated]) -> Result<Vec<RecordBatch>> {
    let format = format()?;
    let options = DecodeOptions::default();
    let mut decoder = JsonDecoder::new(format.schema(), format.arrow_schema().clone(), &options)?;
    let batch = |chunk: &[Generated]| {
        let message = |m| Message { topic: "bench", payload: Some(m), ..Message::default() };
        let messages: Vec<Message<'_>> = chunk.iter().map(|m| message(&m.payload[..])).collect();
        Ok(decoder.decode(&messages)?.batch)
    };
    messages.chunks(BATCH).map(batch).collect()
}

fn encode(batches: &[RecordBatch]) -> Result<usize> {
    let mut encoder = FileEncoder::new(&format()?);
    for batch in batches {
        encoder.write(batch)?;
    }
    Ok(encoder.finish()?.context("a file with rows")?.bytes().len())
}
