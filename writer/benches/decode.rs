//! Decode rate of the JSON decoder next to `arrow-json` on the same messages in the same run, on one thread.
//!
//! `cargo bench -p firn-writer --bench decode`. Prints one line for each kind of message; nothing is asserted.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_json::ReaderBuilder;
use arrow_schema::SchemaRef;
use firn_writer::decode::{DecodeOptions, Decoder, JsonDecoder, Message, Outcome};
use firn_writer::generate::Template;
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::spec::Schema;

/// Messages in one batch, as a flush has them.
const BATCH: usize = 4_096;

/// Each decoder's turn, and how many turns each has.
const TURN: Duration = Duration::from_millis(400);
const TURNS: usize = 7;

const SMALL: &str = r#"
    fields = [
        { name = "id", kind = "sequence" },
        { name = "ts", kind = "timestamp" },
        { name = "user", kind = "zipf", keys = 10000, exponent = 1.1 },
        { name = "kind", kind = "choice", values = ["view", "click", "purchase"] },
        { name = "price", kind = "float", min = 0.0, max = 100.0 },
        { name = "ok", kind = "boolean", share = 0.9 },
    ]"#;

/// Text of several scripts, two to four bytes a character.
const UNICODE: &str = r#"
    fields = [
        { name = "id", kind = "sequence" },
        { name = "kind", kind = "choice", values = ["view", "click", "purchase"] },
        { name = "text", kind = "choice", values = [
            "Фирн — многолетний, уплотнённый, зернистый снег, переходная стадия между снегом и льдом",
            "粒雪是经过一个夏季以上而未融化的积雪，是雪向冰川冰转变的中间阶段，密度介于两者之间",
            "Le névé est un amas de neige durcie à l’origine d’un glacier ❄️🏔️ où elle fond l’été",
        ] },
    ]"#;

fn main() {
    let mut small = Template::from_toml(SMALL).unwrap();
    small.key = None;
    let mut flat = Template::default_events();
    // `arrow-json` reads no UUIDs.
    flat.fields.retain(|field| field.name != "session");
    println!("{BATCH} messages a batch, one thread, median of {TURNS} turns");
    compare("1 KiB, 11 fields", &flat);
    compare("small, 6 fields", &small);
    compare("unicode, 3 fields", &Template::from_toml(UNICODE).unwrap());
    let full = Template::default_events();
    let sample = Sample::new(&full);
    let rate = sample.median(|| sample.ours(&mut sample.decoder()));
    println!("{:<18} firn {rate:7.1} MB/s (the demo's events, with a UUID)", "1 KiB, 12 fields");
}

fn compare(name: &str, template: &Template) {
    let sample = Sample::new(template);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut decoder = sample.decoder();
    // Turn by turn, so that a busy machine slows both alike.
    for _ in 0..TURNS {
        ours.push(sample.rate(|| sample.ours(&mut decoder)));
        theirs.push(sample.rate(|| sample.theirs()));
    }
    let (ours, theirs) = (median(ours), median(theirs));
    println!(
        "{name:<18} {:5.0} B/message  firn {ours:7.1} MB/s {:9.0} messages/s  arrow-json {theirs:7.1} MB/s  ratio {:.2}",
        sample.bytes as f64 / BATCH as f64,
        ours * 1e6 / (sample.bytes as f64 / BATCH as f64),
        ours / theirs,
    );
}

struct Sample {
    schema: Schema,
    arrow: SchemaRef,
    payloads: Vec<Vec<u8>>,
    bytes: usize,
}

impl Sample {
    fn new(template: &Template) -> Self {
        let schema = template.schema().unwrap();
        let arrow = Arc::new(schema_to_arrow_schema(&schema).unwrap());
        let generator = template.generator(1, 1).unwrap();
        let message = |index| generator.message(index, 1_800_000_000_000 + index as i64).payload;
        let payloads: Vec<Vec<u8>> = (0..BATCH as u64).map(message).collect();
        let bytes = payloads.iter().map(Vec::len).sum();
        Self { schema, arrow, payloads, bytes }
    }

    fn decoder(&self) -> JsonDecoder {
        JsonDecoder::new(&self.schema, Arc::clone(&self.arrow), &DecodeOptions::default()).unwrap()
    }

    fn ours(&self, decoder: &mut JsonDecoder) {
        let message = |payload| Message { topic: "events", payload: Some(payload), ..Message::default() };
        let messages: Vec<Message<'_>> =
            self.payloads.iter().map(|payload| message(payload.as_slice())).collect();
        let decoded = black_box(decoder.decode(&messages).unwrap());
        assert!(decoded.outcomes.iter().all(|outcome| *outcome == Outcome::Row));
    }

    fn theirs(&self) {
        let builder = ReaderBuilder::new(Arc::clone(&self.arrow)).with_batch_size(BATCH);
        let mut decoder = builder.build_decoder().unwrap();
        for payload in &self.payloads {
            decoder.decode(payload).unwrap();
        }
        let batch = black_box(decoder.flush().unwrap().unwrap());
        assert_eq!(batch.num_rows(), BATCH);
    }

    /// Megabytes a second.
    fn rate(&self, mut decode: impl FnMut()) -> f64 {
        let (start, mut batches) = (Instant::now(), 0);
        while start.elapsed() < TURN {
            decode();
            batches += 1;
        }
        (batches * self.bytes) as f64 / start.elapsed().as_secs_f64() / 1e6
    }

    fn median(&self, mut decode: impl FnMut()) -> f64 {
        median((0..TURNS).map(|_| self.rate(&mut decode)).collect())
    }
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}
