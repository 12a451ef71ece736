//! Avro messages: what becomes of values, what is malformed, and what the reference says of random ones.

use super::super::{
    AvroDecoder, ColumnOptions, DecodeError, NumberText, TimestampNumbers, Tombstones, UnknownFields,
};
use super::*;
use datum::{bytes, long};

pub(super) mod datum;
mod differential;

fn avro(schema: &Schema, options: &DecodeOptions, writer: &str) -> Result<AvroDecoder, DecodeError> {
    let arrow = Arc::new(schema_to_arrow_schema(schema).unwrap());
    AvroDecoder::new(schema, arrow, options, writer)
}

fn record(fields: &str) -> String {
    format!(r#"{{"type":"record","name":"r","fields":[{fields}]}}"#)
}

type Found = Vec<Result<String, (RejectCode, String)>>;

fn run(schema: &Schema, options: &DecodeOptions, writer: &str, payloads: &[Vec<u8>]) -> Found {
    let payloads: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
    outcomes(&avro(schema, options, writer).unwrap().decode(&messages(&payloads)).unwrap())
}

fn row(text: &str) -> Result<String, (RejectCode, String)> {
    Ok(text.to_owned())
}

fn rejected(code: RejectCode, path: &str) -> Result<String, (RejectCode, String)> {
    Err((code, path.to_owned()))
}

#[test]
fn fields_go_to_the_columns_of_their_names() {
    let writer = record(
        r#"{"name":"a","type":["null","string"]},{"name":"x","type":{"type":"array","items":"r"}},
           {"name":"b","type":"int"}"#,
    );
    let schema = schema(&[("b", "long"), ("n", "string"), ("a", "string")]);
    let nested = [vec![2], long(0), vec![0], long(7), vec![0]].concat();
    let payloads =
        [[vec![2], bytes(b"A"), vec![0], long(-5)].concat(), [vec![0], nested, long(1 << 20)].concat()];
    let found = run(&schema, &DecodeOptions::default(), &writer, &payloads);
    assert_eq!(found, [row("-5 | null | A"), row("1048576 | null | null")]);
    let options = DecodeOptions { unknown_fields: UnknownFields::Reject, ..DecodeOptions::default() };
    let found = run(&schema, &options, &writer, &payloads[..1]);
    assert_eq!(found, [rejected(RejectCode::UnknownField, "x")]);
}

#[test]
fn nested_values_and_logical_types_are_read() {
    let writer = record(
        r#"{"name":"o","type":{"type":"record","name":"o","fields":[{"name":"a","type":"long"}]}},
           {"name":"l","type":{"type":"array","items":["null","long"]}},
           {"name":"m","type":{"type":"map","values":"string"}},
           {"name":"d","type":{"type":"int","logicalType":"date"}},
           {"name":"t","type":{"type":"long","logicalType":"timestamp-millis"}},
           {"name":"p","type":{"type":"bytes","logicalType":"decimal","precision":6,"scale":3}},
           {"name":"e","type":{"type":"enum","name":"e","symbols":["X","Y"]}}"#,
    );
    let schema = schema(&[
        ("o", r#"{"type":"struct","fields":[{"id":10,"name":"a","required":true,"type":"int"}]}"#),
        ("l", r#"{"type":"list","element-id":20,"element-required":false,"element":"long"}"#),
        (
            "m",
            r#"{"type":"map","key-id":30,"key":"string","value-id":31,"value-required":false,"value":"string"}"#,
        ),
        ("d", "date"),
        ("t", "timestamptz"),
        ("p", "decimal(10,2)"),
        ("e", "string"),
    ]);
    // A block of two with its size in bytes, then one of one.
    let list = [long(-2), long(3), vec![0], vec![2], long(1), long(1), vec![2], long(2), vec![0]].concat();
    let map = [long(1), bytes(b"k"), bytes(b"v"), vec![0]].concat();
    let payload = |price: i64, list: &[u8]| {
        let decimal = bytes(&price.to_be_bytes());
        [long(9), list.to_vec(), map.clone(), long(-1), long(-1), decimal, long(1)].concat()
    };
    let payloads = [payload(-12_340, &list), payload(1, &list), payload(0, &[0])];
    let found = run(&schema, &DecodeOptions::default(), &writer, &payloads);
    let whole = "{a: 9} | [null, 1, 2] | {k: v} | 1969-12-31 | 1969-12-31T23:59:59.999Z | -12.34 | Y";
    let empty = "{a: 9} | [] | {k: v} | 1969-12-31 | 1969-12-31T23:59:59.999Z | 0.00 | Y";
    assert_eq!(found, [row(whole), rejected(RejectCode::PrecisionLost, "p"), row(empty)]);
}

#[test]
fn what_is_malformed_counts_as_that_and_leaves_no_trace() {
    let writer = record(
        r#"{"name":"s","type":"string"},{"name":"n","type":"long"},{"name":"b","type":"boolean"},
           {"name":"u","type":["null","int"]}"#,
    );
    let schema = schema(&[("s", "string"), ("n", "int"), ("b", "boolean"), ("u", "int")]);
    let good = [bytes(b"text"), long(1), vec![1], vec![2], long(2)].concat();
    let too_large = [bytes(b"text"), long(1 << 40), vec![1], vec![2], long(2)].concat();
    let malformed = [
        (Vec::new(), RejectCode::EmptyValue),
        (good[..good.len() - 1].to_vec(), RejectCode::MalformedAvro),
        ([good.clone(), vec![0]].concat(), RejectCode::TrailingData),
        ([too_large.clone(), vec![0]].concat(), RejectCode::TrailingData),
        (too_large[..too_large.len() - 2].to_vec(), RejectCode::MalformedAvro),
        ([bytes(b"\xff"), long(1), vec![1], vec![0]].concat(), RejectCode::InvalidUtf8),
        ([bytes(b""), long(1), vec![2], vec![0]].concat(), RejectCode::MalformedAvro),
        ([bytes(b""), long(1), vec![1], vec![4]].concat(), RejectCode::MalformedAvro),
        ([bytes(b""), long(1), vec![1], vec![2], long(1 << 40)].concat(), RejectCode::MalformedAvro),
        ([long(-1), vec![0; 8]].concat(), RejectCode::MalformedAvro),
        ([long(i64::MAX), vec![0; 8]].concat(), RejectCode::MalformedAvro),
        ([bytes(b""), vec![0xff; 10], vec![1, 0]].concat(), RejectCode::MalformedAvro),
        ([bytes(b""), vec![0xff; 9], vec![2, 1, 0]].concat(), RejectCode::MalformedAvro),
    ];
    let mut payloads = vec![good.clone(), too_large];
    payloads.extend(malformed.iter().map(|(payload, _)| payload.clone()));
    payloads.push(good);
    let found = run(&schema, &DecodeOptions::default(), &writer, &payloads);
    assert_eq!(found[..2], [row("text | 1 | true | 2"), rejected(RejectCode::OutOfRange, "n")]);
    for ((payload, code), found) in malformed.iter().zip(&found[2..]) {
        assert_eq!(found.as_ref().map_err(|(code, _)| *code), Err(*code), "{payload:02x?}");
    }
    assert_eq!(found.last(), Some(&row("text | 1 | true | 2")));
}

#[test]
fn elements_without_bytes_are_bounded_by_the_size_of_the_message() {
    let writer = record(r#"{"name":"l","type":{"type":"array","items":"null"}}"#);
    let list = r#"{"type":"list","element-id":20,"element-required":false,"element":"long"}"#;
    let payload = |count| [long(count), vec![0]].concat();
    for schema in [schema(&[("l", list)]), schema(&[("other", "long")])] {
        let payloads = [payload(64), payload(200), payload(i64::MAX)];
        let found = run(&schema, &DecodeOptions::default(), &writer, &payloads);
        assert!(found[0].is_ok(), "{found:?}");
        let codes: Vec<_> = found[1..].iter().map(|each| each.as_ref().unwrap_err().0).collect();
        assert_eq!(codes, [RejectCode::TooManyValues; 2]);
    }
}

#[test]
fn a_schema_that_holds_itself_is_read_to_the_depth_that_is_allowed() {
    let writer = record(r#"{"name":"n","type":"long"},{"name":"next","type":["null","r"]}"#);
    let schema = schema(&[("n", "long")]);
    let payload = |depth: usize| {
        let mut payload = [long(1), vec![2]].concat().repeat(depth - 1);
        payload.extend([long(1), vec![0]].concat());
        payload
    };
    let options = DecodeOptions { max_depth: 8, ..DecodeOptions::default() };
    let found = run(&schema, &options, &writer, &[payload(8), payload(9), payload(100_000)]);
    let codes: Vec<_> = found.iter().map(|each| each.as_ref().map_err(|(code, _)| *code)).collect();
    assert_eq!(codes[0], Ok(&"1".to_owned()));
    assert_eq!(codes[1..], [Err(RejectCode::TooDeep), Err(RejectCode::TooDeep)]);
}

#[test]
fn text_and_numbers_follow_what_is_declared_of_their_column() {
    let writer = record(r#"{"name":"t","type":"long"},{"name":"n","type":"string"}"#);
    let schema = schema(&[("t", "timestamptz"), ("n", "decimal(6,2)")]);
    let payloads = [[long(1_500), bytes(b"12.50")].concat()];
    let strict = run(&schema, &DecodeOptions::default(), &writer, &payloads);
    assert_eq!(strict, [rejected(RejectCode::UndeclaredUnit, "t")]);
    let defaults = ColumnOptions {
        timestamp_numbers: TimestampNumbers::Millis,
        numbers: NumberText::Parse,
        ..ColumnOptions::default()
    };
    let options = DecodeOptions { defaults, ..DecodeOptions::default() };
    let found = run(&schema, &options, &writer, &payloads);
    assert_eq!(found, [row("1970-01-01T00:00:01.500Z | 12.50")]);
}

#[test]
fn tombstones_and_absent_fields_follow_the_table() {
    let writer = record(r#"{"name":"a","type":"long"}"#);
    let tombstone = |fields: &[(&str, &str)], tombstones| {
        let options = DecodeOptions { tombstones, ..DecodeOptions::default() };
        let mut decoder = avro(&schema(fields), &options, &writer).unwrap();
        outcomes(&decoder.decode(&[Message::default()]).unwrap()).remove(0)
    };
    assert_eq!(tombstone(&[("a", "long")], Tombstones::Reject), rejected(RejectCode::Tombstone, ""));
    assert_eq!(tombstone(&[("a", "long")], Tombstones::Row), row("null"));
    assert_eq!(tombstone(&[("a!", "long")], Tombstones::Row), rejected(RejectCode::MissingField, "a"));
    let found =
        run(&schema(&[("a", "long"), ("z!", "long")]), &DecodeOptions::default(), &writer, &[long(1)]);
    assert_eq!(found, [rejected(RejectCode::MissingField, "z")]);
}

#[test]
fn a_writer_schema_that_is_none_is_refused() {
    let schema = schema(&[("a", "long")]);
    for writer in [
        "",
        "\"long\"",
        r#"{"type":"array","items":"long"}"#,
        &record(r#"{"name":"a","type":"unheard-of"}"#),
        &record(r#"{"name":"a","type":[]}"#),
        &record(r#"{"name":"a","type":["null",["long"]]}"#),
        &record(r#"{"name":"a","type":"long"},{"name":"a","type":"long"}"#),
        &record(&format!(
            r#"{{"name":"a","type":{}"long"{}}}"#,
            r#"{"type":"array","items":"#.repeat(80),
            "}".repeat(80)
        )),
    ] {
        let found = avro(&schema, &DecodeOptions::default(), writer);
        assert!(matches!(found, Err(DecodeError::WriterSchema { .. })), "{writer}: {found:?}");
    }
}
