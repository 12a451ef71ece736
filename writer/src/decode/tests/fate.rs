//! The table of outcomes, walked pair by pair and held against what the decoders do.

use std::collections::BTreeSet;

use super::super::fate::{Fate, Wire, fate};
use super::super::{
    AvroDecoder, BinaryText, ColumnOptions, NumberText, RawDecoder, StringValues, TimestampNumbers,
    TimestampPrecision,
};
use super::avro::datum::{bytes, long};
use super::*;

const STRUCT: &str = r#"{"type":"struct","fields":[{"id":10,"name":"a","required":false,"type":"long"}]}"#;
const LIST: &str = r#"{"type":"list","element-id":20,"element-required":false,"element":"long"}"#;
const MAP: &str =
    r#"{"type":"map","key-id":30,"key":"string","value-id":31,"value-required":false,"value":"long"}"#;
const COLUMNS: [&str; 22] = [
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "decimal(10,2)",
    "decimal(38,2)",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "timestamp_ns",
    "timestamptz_ns",
    "string",
    "binary",
    "fixed[2]",
    "fixed[16]",
    "uuid",
    STRUCT,
    LIST,
    MAP,
    "decimal(4,4)",
];

#[test]
fn the_decoders_obey_the_table() {
    let mut pairs = 0;
    for wire in Wire::ALL {
        for column in COLUMNS {
            let schema = schema(&[("value", column)]);
            let column_type = &schema.as_struct().fields()[0].field_type;
            for options in all_options() {
                let expected = fate(wire, column_type, &options);
                let found = found(wire, &schema, &options);
                let context =
                    format!("{wire:?} into {column} with {options:?}: {expected:?}, found {found:?}");
                let codes: BTreeSet<RejectCode> = expected.codes().iter().copied().collect();
                let seen: BTreeSet<RejectCode> = found.iter().filter_map(|each| each.err()).collect();
                // Every code of the table occurs, and no other.
                assert_eq!(seen, codes, "{context}");
                let rows = found.iter().any(Result::is_ok);
                match expected {
                    Fate::Reject(_) | Fate::Refused => assert!(!rows, "{context}"),
                    Fate::Exact | Fate::ExactOr(_) | Fate::Loss(_) => assert!(rows, "{context}"),
                }
                pairs += 1;
            }
        }
    }
    assert!(pairs > 5_000, "{pairs} pairs were looked at");
}

#[test]
fn each_format_has_its_own_kinds() {
    use super::super::Format;
    let count = |format: &Format| Wire::of(format).count();
    let formats = [Format::Json, Format::Avro { schema: String::new() }, Format::Raw];
    assert_eq!(formats.iter().map(count).collect::<Vec<_>>(), [6, 23, 1]);
    let all: BTreeSet<Wire> = formats.iter().flat_map(Wire::of).collect();
    assert_eq!(all, Wire::ALL.into_iter().collect());
}

fn all_options() -> Vec<ColumnOptions> {
    use {BinaryText as B, TimestampNumbers as N};
    let strict = ColumnOptions::default();
    let mut all = vec![strict, ColumnOptions { strings: StringValues::JsonText, ..strict }];
    all.push(ColumnOptions { numbers: NumberText::Parse, ..strict });
    all.extend([B::Base64, B::Hex, B::Utf8].map(|binary| ColumnOptions { binary, ..strict }));
    for timestamp_precision in [TimestampPrecision::Exact, TimestampPrecision::Truncate] {
        all.extend([N::Seconds, N::Millis, N::Micros, N::Nanos].map(|timestamp_numbers| ColumnOptions {
            timestamp_numbers,
            timestamp_precision,
            ..strict
        }));
    }
    all
}

/// What becomes of values that go to the limits of their kind.
fn found(wire: Wire, schema: &Schema, options: &ColumnOptions) -> Vec<Result<(), RejectCode>> {
    let options = DecodeOptions { defaults: *options, ..DecodeOptions::default() };
    let arrow = Arc::new(schema_to_arrow_schema(schema).unwrap());
    let judge = |decoder: &mut dyn Decoder, payloads: &[Vec<u8>]| -> Vec<Result<(), RejectCode>> {
        let payloads: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
        let decoded = decoder.decode(&messages(&payloads)).unwrap();
        outcomes(&decoded).into_iter().map(|each| each.map(drop).map_err(|(code, _)| code)).collect()
    };
    if let Some(values) = json_values(wire) {
        let text = |value: &&str| format!("{{\"value\":{value}}}").into_bytes();
        let mut payloads: Vec<Vec<u8>> = values.iter().map(text).collect();
        if wire == Wire::JsonInteger {
            payloads.push(format!("{{\"value\":1{}}}", "0".repeat(400)).into_bytes());
        }
        return judge(&mut JsonDecoder::new(schema, arrow, &options).unwrap(), &payloads);
    }
    if wire == Wire::RawBytes {
        return match RawDecoder::new(schema, arrow, &options) {
            Ok(mut decoder) => judge(&mut decoder, &[b"text".to_vec(), b"\xff".to_vec()]),
            Err(_) => Vec::new(),
        };
    }
    let mut all = Vec::new();
    for (avro, values) in avro_values(wire) {
        let writer = format!(r#"{{"type":"record","name":"r","fields":[{{"name":"value","type":{avro}}}]}}"#);
        let mut decoder = AvroDecoder::new(schema, Arc::clone(&arrow), &options, &writer).unwrap();
        all.extend(judge(&mut decoder, &values));
    }
    all
}

/// Text that is right or nearly so for every type of column.
const TEXTS: [&str; 22] = [
    "",
    "x",
    "1",
    "2.5",
    "1e300",
    "1e999",
    "16777217",
    "9007199254740993",
    "12345678901234567890123456789012345678901",
    "0.123456789",
    "2026-01-02",
    "03:04:05",
    "03:04:05.1234567",
    "2026-01-02T03:04:05",
    "2026-01-02T03:04:05Z",
    "2026-01-02T03:04:05.1234567891",
    "2026-01-02T03:04:05.1234567891Z",
    "0001-01-01T00:00:00",
    "0001-01-01T00:00:00Z",
    "f79c3e09-677c-4bbd-a479-3f349cb785e7",
    "ABCDEFGHIJKLMNOPQRSTUA==",
    "0g",
];
const MORE_TEXTS: [&str; 6] =
    ["0.25", "00ff", "aGU=", "ab", "00112233445566778899aabbccddeeff", "sixteen bytes ok"];

fn json_values(wire: Wire) -> Option<Vec<&'static str>> {
    Some(match wire {
        Wire::JsonBoolean => vec!["true", "false"],
        Wire::JsonInteger => vec![
            "0",
            "-1",
            "4294967297",
            "16777217",
            "9007199254740993",
            "9223372036854775807",
            "123456789012345678901234567890123456789",
            "1999",
        ],
        Wire::JsonFraction => {
            vec!["2.0", "2.9", "1e3", "1e300", "1e999", "1e-999", "0.0000000001", "0.001", "1e10", "0.0"]
        }
        Wire::JsonText => TEXTS.iter().chain(&MORE_TEXTS).map(|text| quoted(text)).collect(),
        Wire::JsonArray => vec!["[]", "[1,null]"],
        Wire::JsonObject => vec!["{}", r#"{"a":1}"#, r#"{"a":1,"a":2}"#],
        _ => return None,
    })
}

fn quoted(text: &str) -> &'static str {
    format!("\"{text}\"").leak()
}

fn avro_values(wire: Wire) -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let logical = |base: &str, name: &str| -> &'static str {
        format!(r#"{{"type":"{base}","logicalType":"{name}"}}"#).leak()
    };
    let longs =
        || [0, 1, -1, 1_999, 16_777_217, 9_007_199_254_740_993, i64::MAX, i64::MIN].map(long).to_vec();
    let ints = || [0, 1, -1, 999, 16_777_217, i64::from(i32::MAX), i64::from(i32::MIN)].map(long).to_vec();
    let doubles = [0.0, -2.0, 2.5, 0.1, 1e300, 1e-300, f64::NAN, f64::INFINITY];
    match wire {
        Wire::AvroBoolean => vec![("\"boolean\"", vec![vec![0], vec![1]])],
        Wire::AvroInt => vec![("\"int\"", ints())],
        Wire::AvroLong => vec![("\"long\"", longs())],
        Wire::AvroFloat => {
            let floats = [0.0f32, -2.0, 2.5, 0.1, 1e30, f32::NAN, f32::INFINITY];
            vec![("\"float\"", floats.map(|value| value.to_le_bytes().to_vec()).to_vec())]
        }
        Wire::AvroDouble => vec![("\"double\"", doubles.map(|value| value.to_le_bytes().to_vec()).to_vec())],
        Wire::AvroString => {
            vec![("\"string\"", TEXTS.iter().chain(&MORE_TEXTS).map(|text| bytes(text.as_bytes())).collect())]
        }
        Wire::AvroEnum => {
            vec![(r#"{"type":"enum","name":"e","symbols":["A","B"]}"#, vec![long(0), long(1)])]
        }
        Wire::AvroBytes => vec![("\"bytes\"", vec![bytes(b""), bytes(b"ab"), bytes(&[7; 16])])],
        Wire::AvroFixed => vec![
            (r#"{"type":"fixed","name":"f","size":2}"#, vec![vec![1, 2]]),
            (r#"{"type":"fixed","name":"f","size":16}"#, vec![vec![1; 16]]),
        ],
        Wire::AvroDecimal => vec![
            (
                r#"{"type":"bytes","logicalType":"decimal","precision":38,"scale":5}"#,
                vec![
                    bytes(&[]),
                    bytes(&[0]),
                    bytes(&[1]),
                    bytes(&[0x7f; 16]),
                    bytes(&[0x7f; 17]),
                    bytes(&[0xff; 20]),
                ],
            ),
            (
                r#"{"type":"fixed","name":"d","size":2,"logicalType":"decimal","precision":4,"scale":0}"#,
                vec![vec![0, 0], vec![0x7f, 0xff]],
            ),
        ],
        Wire::AvroDate => vec![(logical("int", "date"), ints())],
        Wire::AvroTime => {
            vec![(logical("int", "time-millis"), ints()), (logical("long", "time-micros"), longs())]
        }
        Wire::AvroTimestampMillis => vec![(logical("long", "timestamp-millis"), longs())],
        Wire::AvroTimestampMicros => vec![(logical("long", "timestamp-micros"), longs())],
        Wire::AvroTimestampNanos => vec![(logical("long", "timestamp-nanos"), longs())],
        Wire::AvroLocalTimestampMillis => vec![(logical("long", "local-timestamp-millis"), longs())],
        Wire::AvroLocalTimestampMicros => vec![(logical("long", "local-timestamp-micros"), longs())],
        Wire::AvroLocalTimestampNanos => vec![(logical("long", "local-timestamp-nanos"), longs())],
        Wire::AvroUuidText => vec![(
            logical("string", "uuid"),
            vec![bytes(b"f79c3e09-677c-4bbd-a479-3f349cb785e7"), bytes(b"f79c3e09")],
        )],
        Wire::AvroUuid => {
            vec![(r#"{"type":"fixed","name":"u","size":16,"logicalType":"uuid"}"#, vec![vec![3; 16]])]
        }
        Wire::AvroArray => vec![(r#"{"type":"array","items":"long"}"#, vec![vec![0], vec![2, 8, 0]])],
        Wire::AvroMap => vec![(
            r#"{"type":"map","values":"long"}"#,
            vec![vec![0], vec![2, 2, b'k', 8, 0], vec![4, 2, b'k', 8, 2, b'k', 8, 0]],
        )],
        Wire::AvroRecord => {
            vec![(r#"{"type":"record","name":"s","fields":[{"name":"a","type":"long"}]}"#, vec![long(5)])]
        }
        _ => Vec::new(),
    }
}
