//! What the decoders of all formats share: the columns of a table, those of metadata, and the way back from a reject.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use iceberg::spec::Schema;

use super::column::Structs;
use super::fault::{Fault, Parsed};
use super::kafka::{KafkaColumn, is_kafka_column};
use super::plan::{Children, Planner, counterpart};
use super::{DecodeError, DecodeOptions, Decoded, KafkaColumns, Message, Outcome, RejectCode, Tombstones};

/// Bytes of messages in one batch. Arrow counts the bytes of a string column in 31 bits.
const MAX_BATCH_BYTES: usize = i32::MAX as usize;

/// How the messages of one format become rows.
pub(super) trait RowReader {
    /// Appends the row with index `row` to the columns, or part of it and a fault. `payload` is absent in a tombstone
    /// that is to become a row. Returns the number of unknown fields.
    fn read(
        &mut self,
        message: &Message<'_>,
        payload: Option<&[u8]>,
        columns: &mut Children,
        row: usize,
    ) -> Parsed<u64>;

    /// The fault that a message counts by: what is malformed counts as that, whatever was found before.
    fn weightiest(&self, fault: Box<Fault>, payload: &[u8]) -> Box<Fault>;
}

/// Columns under construction.
#[derive(Debug)]
pub(super) struct Frame {
    arrow_schema: SchemaRef,
    tombstones: Tombstones,
    columns: Structs,
    kafka: Vec<KafkaColumn>,
    /// Where each column of the Arrow schema is.
    places: Vec<Place>,
    rows: usize,
    /// The bytes of a batch that one byte of a message may become.
    expansion: usize,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Message(usize),
    Kafka(usize),
}

impl Frame {
    /// The columns of a table. `arrow_schema` is the Arrow form of `schema` with field ids, as data files are written.
    pub(super) fn new(
        schema: &Schema,
        arrow_schema: SchemaRef,
        options: &DecodeOptions,
    ) -> Result<Self, DecodeError> {
        let planner = Planner::new(options, schema)?;
        planner.check_complete(schema.as_struct(), arrow_schema.fields(), "")?;
        let (mut fields, mut kafka, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for arrow in arrow_schema.fields() {
            let field = counterpart(schema.as_struct(), arrow)?;
            if options.kafka_columns == KafkaColumns::On && is_kafka_column(&field.name) {
                places.push(Place::Kafka(kafka.len()));
                kafka.push(KafkaColumn::new(&planner, field, arrow)?);
            } else {
                places.push(Place::Message(fields.len()));
                fields.push(planner.field(field, arrow, "")?);
            }
        }
        let columns = Structs { children: Children::new(fields), validity: Default::default() };
        let tombstones = options.tombstones;
        Ok(Self { arrow_schema, tombstones, columns, kafka, places, rows: 0, expansion: 1 })
    }

    /// With messages of a format whose bytes may become up to `expansion` bytes of a column each.
    pub(super) fn expanding(mut self, expansion: usize) -> Self {
        self.expansion = expansion.max(1);
        self
    }

    pub(super) fn arrow_schema(&self) -> &SchemaRef {
        &self.arrow_schema
    }

    /// The columns that are filled from messages.
    pub(super) fn children(&self) -> &Children {
        &self.columns.children
    }

    /// Decodes messages into one batch.
    pub(super) fn decode(
        &mut self,
        reader: &mut impl RowReader,
        messages: &[Message<'_>],
    ) -> Result<Decoded, DecodeError> {
        let (bytes, limit) = (messages.iter().map(size).sum(), MAX_BATCH_BYTES / self.expansion);
        if bytes > limit {
            return Err(DecodeError::BatchTooLarge { bytes, limit });
        }
        let mut unknown_fields = 0;
        let outcomes =
            messages.iter().map(|message| self.message(reader, message, &mut unknown_fields)).collect();
        let finished = self.finish();
        if finished.is_err() {
            self.cut_off();
        }
        Ok(Decoded { batch: finished?, outcomes, unknown_fields })
    }

    fn message(
        &mut self,
        reader: &mut impl RowReader,
        message: &Message<'_>,
        unknown_fields: &mut u64,
    ) -> Outcome {
        match (message.payload, self.tombstones) {
            (None, Tombstones::Skip) => return Outcome::Skipped,
            (None, Tombstones::Reject) => {
                return reject(*Fault::new(RejectCode::Tombstone, "the message has no value"));
            }
            (None, Tombstones::Row) | (Some(_), _) => {}
        }
        match self.row(reader, message) {
            Ok(unknown) => {
                self.rows += 1;
                *unknown_fields += unknown;
                Outcome::Row
            }
            Err(fault) => {
                self.cut_off();
                match message.payload {
                    Some(payload) if !fault.concerns_syntax() => reject(*reader.weightiest(fault, payload)),
                    _ => reject(*fault),
                }
            }
        }
    }

    /// Appends a row, or part of one and a fault.
    fn row(&mut self, reader: &mut impl RowReader, message: &Message<'_>) -> Parsed<u64> {
        let unknown = reader.read(message, message.payload, &mut self.columns.children, self.rows)?;
        for column in &mut self.kafka {
            column.push(message)?;
        }
        Ok(unknown)
    }

    /// Takes all columns back to the last complete row.
    fn cut_off(&mut self) {
        self.columns.truncate(self.rows);
        for column in &mut self.kafka {
            column.field.column.truncate(self.rows);
        }
    }

    fn finish(&mut self) -> Result<RecordBatch, DecodeError> {
        let rows = std::mem::take(&mut self.rows);
        let mut arrays = Vec::with_capacity(self.places.len());
        for (place, field) in self.places.iter().zip(self.arrow_schema.fields()) {
            let column = match *place {
                Place::Message(index) => &mut self.columns.children.fields[index].column,
                Place::Kafka(index) => &mut self.kafka[index].field.column,
            };
            let array: ArrayRef = column.finish(field.data_type())?;
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.arrow_schema), arrays, &options)?)
    }
}

/// An upper bound of what a message adds to any one column.
fn size(message: &Message<'_>) -> usize {
    let headers =
        message.headers.iter().map(|header| header.key.len() + header.value.map_or(0, <[u8]>::len) + 1);
    message.payload.map_or(0, <[u8]>::len)
        + message.key.map_or(0, <[u8]>::len)
        + message.topic.len()
        + headers.sum::<usize>()
}

fn reject(fault: Fault) -> Outcome {
    Outcome::Rejected(Box::new(fault.into_reject()))
}
