//! The decoders of one format beside their references, on a table with a column of every type.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use firn_writer::decode::{
    BinaryText, ColumnOptions, DecodeOptions, Decoded, Decoder, Format, Message, NumberText, Outcome,
    RejectCode, TimestampNumbers, decoder,
};
use firn_writer::schema::parse_schema;
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::spec::Schema;

use crate::avro_reference::Writer;
use crate::reference::{self, Cell, cell};

const TABLE: &str = include_str!("corpus/table.json");
const RAW_TABLE: &str =
    r#"{"type":"struct","fields":[{"id":1,"name":"value","required":true,"type":"string"}]}"#;
const WRITER: &str = include_str!("corpus/writer.avsc");

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Json,
    Avro,
    Raw,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Json, Self::Avro, Self::Raw];

    pub(crate) fn named(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.to_string() == name);
        found.ok_or_else(|| format!("`{name}` is no format: json, avro and raw are"))
    }

    /// Messages to begin with.
    pub(crate) fn corpus(self) -> Vec<Vec<u8>> {
        let json = include_str!("corpus/json.txt").lines().map(|line| line.as_bytes().to_vec());
        match self {
            Self::Json | Self::Raw => json.collect(),
            Self::Avro => include_str!("corpus/avro.hex").lines().map(from_hex).collect(),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Json => "json",
            Self::Avro => "avro",
            Self::Raw => "raw",
        })
    }
}

fn from_hex(line: &str) -> Vec<u8> {
    let digit = |at: usize| line.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
    (0..line.len()).step_by(2).filter_map(digit).collect()
}

/// A message about which two decoders differ, or one panics.
#[derive(Debug)]
pub(crate) struct Finding {
    message: Vec<u8>,
    what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\nmessage ", self.what)?;
        self.message.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

type Verdict = Result<Vec<Cell>, RejectCode>;

/// A decoder and its reference.
#[derive(Debug)]
pub(crate) struct Target {
    kind: Kind,
    decoder: Box<dyn Decoder>,
    schema: Schema,
    options: DecodeOptions,
    writer: Writer,
}

impl Target {
    pub(crate) fn new(kind: Kind) -> Self {
        let format = match kind {
            Kind::Json => Format::Json,
            Kind::Avro => Format::Avro { schema: WRITER.to_owned() },
            Kind::Raw => Format::Raw,
        };
        let defaults = ColumnOptions {
            binary: BinaryText::Hex,
            numbers: NumberText::Parse,
            timestamp_numbers: TimestampNumbers::Millis,
            ..ColumnOptions::default()
        };
        let options = DecodeOptions { format, defaults, max_depth: 8, ..DecodeOptions::default() };
        let table = if kind == Kind::Raw { RAW_TABLE } else { TABLE };
        let schema = parse_schema(table).expect("the table's schema is one");
        let arrow = Arc::new(schema_to_arrow_schema(&schema).expect("the schema has an Arrow form"));
        let decoder = decoder(&schema, arrow, &options).expect("the table takes the format");
        Self { kind, decoder, schema, options, writer: Writer::new(WRITER) }
    }

    /// Decodes a batch and each of its messages by the reference. Returns the number of rows.
    pub(crate) fn compare(&mut self, payloads: &[Vec<u8>]) -> Result<u64, Box<Finding>> {
        let Some(decoded) = self.decode(payloads) else {
            return Err(self.blame(payloads));
        };
        let mut rows = 0;
        for (payload, outcome) in payloads.iter().zip(&decoded.outcomes) {
            let found: Verdict = match outcome {
                Outcome::Row => {
                    rows += 1;
                    let columns = decoded.batch.columns().iter();
                    Ok(columns.map(|column| cell(column, rows - 1)).collect())
                }
                Outcome::Rejected(reject) => Err(reject.code),
                Outcome::Skipped => continue,
            };
            let expected = self.expected(payload);
            if !self.alike(&found, &expected, payload) {
                let what = format!("the decoder says {found:?}\nthe reference says {expected:?}");
                return Err(Box::new(Finding { message: payload.clone(), what }));
            }
        }
        Ok(rows as u64)
    }

    /// Nothing where it panicked or failed as a whole.
    fn decode(&mut self, payloads: &[Vec<u8>]) -> Option<Decoded> {
        let message = |payload| Message { topic: "fuzz", payload: Some(payload), ..Message::default() };
        let messages: Vec<Message<'_>> = payloads.iter().map(|payload| message(payload.as_slice())).collect();
        catch_unwind(AssertUnwindSafe(|| self.decoder.decode(&messages).ok())).ok().flatten()
    }

    /// Which message it is that a fresh decoder cannot bear.
    fn blame(&self, payloads: &[Vec<u8>]) -> Box<Finding> {
        for payload in payloads {
            if Self::new(self.kind).decode(std::slice::from_ref(payload)).is_none() {
                return Box::new(Finding { message: payload.clone(), what: "the decoder panics".to_owned() });
            }
        }
        let what = format!("the decoder panics on {} messages together", payloads.len());
        Box::new(Finding { message: payloads.concat(), what })
    }

    fn expected(&self, payload: &[u8]) -> Verdict {
        let fields = self.schema.as_struct();
        match self.kind {
            Kind::Json => reference::decode(payload, fields, &self.options),
            Kind::Avro => self.writer.decode(payload, fields, &self.options),
            Kind::Raw => match std::str::from_utf8(payload) {
                Ok(_) => Ok(vec![Cell::Bytes(payload.to_vec())]),
                Err(_) => Err(RejectCode::InvalidUtf8),
            },
        }
    }

    /// The Avro reference has one code for what is malformed, and drops the bits of an integer beyond the 64th.
    fn alike(&self, found: &Verdict, expected: &Verdict, payload: &[u8]) -> bool {
        use RejectCode::{EmptyValue, InvalidUtf8, MalformedAvro, TooDeep, TooManyValues};
        if self.kind != Kind::Avro {
            return found == expected;
        }
        match found {
            Err(EmptyValue | InvalidUtf8 | MalformedAvro) => {
                *expected == Err(MalformedAvro) || has_wide_integer(payload)
            }
            // The reference has no such limits.
            Err(TooDeep | TooManyValues) => true,
            _ => found == expected,
        }
    }
}

fn has_wide_integer(payload: &[u8]) -> bool {
    payload.windows(9).any(|bytes| bytes.iter().all(|byte| *byte >= 0x80))
}
