//! Random schemas and messages, broken ones among them: the fast decoder and the reference agree on every one.

use iceberg::spec::{ListType, MapType, NestedFieldRef, PrimitiveType, StructType};

use super::super::{
    BinaryText, ColumnOptions, NumberText, StringValues, TimestampNumbers, TimestampPrecision, UnknownFields,
};
use super::reference::{self, cell};
use super::*;
use crate::generate::random::Random;

const SEEDS: u64 = 1_500;
const MESSAGES: usize = 25;

#[test]
fn the_fast_decoder_and_the_reference_agree() {
    let mut rows = 0;
    let mut rejects = std::collections::BTreeMap::new();
    for seed in 0..SEEDS {
        let mut random = Random::new(seed, 0);
        let mut ids = 0;
        let schema = Schema::builder().with_fields(fields(&mut random, &mut ids, 2)).build().unwrap();
        let options = options(&mut random);
        let payloads: Vec<Vec<u8>> =
            (0..MESSAGES).map(|_| message(&mut random, schema.as_struct())).collect();
        let borrowed: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
        let decoded = decoder(&schema, &options).decode(&messages(&borrowed)).unwrap();
        let mut row = 0;
        for (payload, outcome) in payloads.iter().zip(&decoded.outcomes) {
            let expected = reference::decode(payload, schema.as_struct(), &options);
            let found = match outcome {
                Outcome::Row => {
                    row += 1;
                    let cells = decoded.batch.columns().iter().map(|column| cell(column, row - 1));
                    Ok(cells.collect::<Vec<_>>())
                }
                Outcome::Rejected(reject) => Err(reject.code),
                Outcome::Skipped => panic!("seed {seed}: a message was skipped"),
            };
            let text = String::from_utf8_lossy(payload);
            assert_eq!(found, expected, "seed {seed}, schema {schema}, options {options:?}, message {text}");
            match found {
                Ok(_) => rows += 1,
                Err(code) => *rejects.entry(code).or_insert(0) += 1,
            }
        }
        assert_eq!(row, decoded.batch.num_rows(), "seed {seed}");
    }
    // The test is about something: many rows, and most kinds of rejects.
    assert!(rows > 5_000, "{rows} rows, {rejects:?}");
    assert!(rejects.len() >= 20, "{rows} rows, {rejects:?}");
}

#[test]
fn the_verdict_on_syntax_is_that_of_serde_json() {
    let (mut valid, mut invalid) = (0, 0);
    for seed in 0..20_000 {
        let mut random = Random::new(seed, 1);
        let mut text = String::new();
        any_value(&mut random, &mut text, 3);
        let text = String::from_utf8_lossy(&broken(&mut random, text.into_bytes())).into_owned();
        let found = super::super::json::cursor::check(&text, 100).is_ok();
        // Values keep a number as a double, where it may be too large: that is no question of syntax.
        let expected = match serde_json::from_str::<serde_json::Value>(&text) {
            Ok(_) => true,
            Err(error) if error.to_string().contains("number out of range") => continue,
            Err(_) => false,
        };
        assert_eq!(found, expected, "seed {seed}: {text:?}");
        if found { valid += 1 } else { invalid += 1 }
    }
    assert!(valid > 2_000 && invalid > 2_000, "{valid} valid, {invalid} invalid");
}

fn pick<T: Copy>(random: &mut Random, values: &[T]) -> T {
    values[random.below(values.len() as u64) as usize]
}

pub(super) fn options(random: &mut Random) -> DecodeOptions {
    use TimestampNumbers as N;
    let defaults = ColumnOptions {
        timestamp_numbers: pick(random, &[N::Reject, N::Seconds, N::Millis, N::Micros, N::Nanos]),
        timestamp_precision: pick(random, &[TimestampPrecision::Exact, TimestampPrecision::Truncate]),
        binary: pick(random, &[BinaryText::Reject, BinaryText::Base64, BinaryText::Hex, BinaryText::Utf8]),
        numbers: pick(random, &[NumberText::Reject, NumberText::Parse]),
        strings: pick(random, &[StringValues::Strict, StringValues::JsonText]),
    };
    let unknown_fields = pick(random, &[UnknownFields::Ignore, UnknownFields::Ignore, UnknownFields::Reject]);
    DecodeOptions { unknown_fields, defaults, max_depth: 8, ..DecodeOptions::default() }
}

fn fields(random: &mut Random, ids: &mut i32, depth: usize) -> Vec<NestedFieldRef> {
    let count = 1 + random.below(5) as usize;
    let names =
        ["a", "b", "id", "userId", "userid", "a_longer_name_than_the_others", "é", "q\"uote", "x.y", "z"];
    (0..count)
        .map(|place| {
            *ids += 1;
            let (id, required) = (*ids, random.below(3) == 0);
            let name = names[(place * 2 + random.below(2) as usize) % names.len()];
            Arc::new(NestedField::new(id, name, field_type(random, ids, depth), required))
        })
        .collect()
}

fn field_type(random: &mut Random, ids: &mut i32, depth: usize) -> Type {
    use PrimitiveType as P;
    let mut id = || {
        *ids += 1;
        *ids
    };
    match random.below(if depth == 0 { 16 } else { 22 }) {
        16 | 17 => Type::Struct(StructType::new(fields(random, ids, depth - 1))),
        18 | 19 => {
            let (id, required) = (id(), random.below(2) == 0);
            let element = field_type(random, ids, depth - 1);
            Type::List(ListType::new(Arc::new(NestedField::list_element(id, element, required))))
        }
        20 | 21 => {
            let (key, value, required) = (id(), id(), random.below(2) == 0);
            let value_type = field_type(random, ids, depth - 1);
            Type::Map(MapType::new(
                Arc::new(NestedField::map_key_element(key, Type::Primitive(P::String))),
                Arc::new(NestedField::map_value_element(value, value_type, required)),
            ))
        }
        primitive => Type::Primitive(match primitive {
            0 => P::Boolean,
            1 => P::Int,
            2 => P::Long,
            3 => P::Float,
            4 => P::Double,
            5 => P::Decimal { precision: 10, scale: 2 },
            6 => P::Decimal { precision: 38, scale: 19 },
            7 => P::Date,
            8 => P::Time,
            9 => P::Timestamp,
            10 => P::Timestamptz,
            11 => P::Uuid,
            12 => P::Binary,
            13 => P::Fixed(3),
            _ => P::String,
        }),
    }
}

/// A message, valid or nearly so.
fn message(random: &mut Random, schema: &StructType) -> Vec<u8> {
    let mut text = String::new();
    object(random, schema.fields(), &mut text);
    if random.below(5) == 0 { broken(random, text.into_bytes()) } else { text.into_bytes() }
}

fn broken(random: &mut Random, mut text: Vec<u8>) -> Vec<u8> {
    let at = random.below(text.len() as u64 + 1) as usize;
    match random.below(6) {
        0 => text.truncate(at),
        1 => text.insert(at, pick(random, b"{}[]\",:\\ \n0-1e.tnu\x00\x1f\x80\xff")),
        2 if at < text.len() => drop(text.remove(at)),
        3 if at < text.len() => text[at] = pick(random, b"{}[]\",:\\ \n0-1e.tnu\x00\x1f\x80\xff"),
        4 => text.extend_from_slice(pick(random, &[&b" "[..], b"{}", b",", b"\n\n", b"\0", b"null"])),
        _ => {}
    }
    text
}

fn space(random: &mut Random, out: &mut String) {
    if random.below(12) == 0 {
        out.push_str(pick(random, &[" ", "\n", "\t \r"]));
    }
}

fn object(random: &mut Random, fields: &[NestedFieldRef], out: &mut String) {
    let mut members: Vec<String> = Vec::new();
    for field in fields {
        match random.below(40) {
            0 | 1 => continue,
            2 => members.push(member(random, field)),
            3 => {
                let mut unknown = format!("\"{}\":", pick(random, &["zz", "", "A", "\\u0062x"]));
                any_value(random, &mut unknown, 2);
                members.push(unknown);
            }
            _ => {}
        }
        members.push(member(random, field));
    }
    if random.below(4) == 0 {
        members.reverse();
    }
    out.push('{');
    space(random, out);
    out.push_str(&members.join(pick(random, &[",", ",", ", "])));
    out.push('}');
    space(random, out);
}

fn member(random: &mut Random, field: &NestedField) -> String {
    let mut out = match random.below(30) {
        0 => {
            format!("\"{}\"", field.name.chars().map(|c| format!("\\u{:04x}", c as u32)).collect::<String>())
        }
        _ => format!("{}", serde_json::Value::from(field.name.as_str())),
    };
    space(random, &mut out);
    out.push(':');
    space(random, &mut out);
    value(random, field, &mut out);
    space(random, &mut out);
    out
}

fn value(random: &mut Random, field: &NestedField, out: &mut String) {
    match random.below(40) {
        0 => return any_value(random, out, 2),
        1 | 2 => return out.push_str("null"),
        _ => {}
    }
    match &*field.field_type {
        Type::Struct(fields) => object(random, fields.fields(), out),
        Type::List(list) => {
            out.push('[');
            for place in 0..random.below(4) {
                out.push_str(if place > 0 { "," } else { "" });
                value(random, &list.element_field, out);
            }
            out.push(']');
        }
        Type::Map(map) => {
            out.push('{');
            for place in 0..random.below(4) {
                out.push_str(if place > 0 { "," } else { "" });
                // Keys repeat now and then.
                out.push_str(&format!("\"k{}\\n\":", random.below(12)));
                value(random, &map.value_field, out);
            }
            out.push('}');
        }
        Type::Primitive(primitive) => out.push_str(&primitive_text(random, primitive)),
    }
}

fn primitive_text(random: &mut Random, primitive: &PrimitiveType) -> String {
    use PrimitiveType as P;
    match primitive {
        P::Boolean => pick(random, &["true", "false"]).to_string(),
        P::Int | P::Long | P::Float | P::Double | P::Decimal { .. } => match random.below(8) {
            0 => format!("\"{}\"", number(random)),
            _ => number(random),
        },
        P::Timestamp | P::Timestamptz if random.below(4) == 0 => number(random),
        P::Date => format!("\"{}\"", date(random)),
        P::Time => format!("\"{}\"", time(random)),
        P::Timestamp | P::Timestamptz => {
            let separator = pick(random, &["T", "T", "T", "t", " ", "_"]).to_string();
            let zone = match primitive {
                P::Timestamp => pick(random, &["", "", "", "", "Z", "+01:00"]).to_string(),
                _ => pick(random, &["Z", "Z", "+00:00", "-05:30", "z", "", "+0000", "+05", "+24:00"])
                    .to_string(),
            };
            format!("\"{}{separator}{}{zone}\"", date(random), time(random))
        }
        P::Uuid => {
            let digits = format!("{:016x}{:016x}", random.next(), random.next());
            let uuid = format!(
                "{}-{}-{}-{}-{}",
                &digits[..8],
                &digits[8..12],
                &digits[12..16],
                &digits[16..20],
                &digits[20..]
            );
            match random.below(6) {
                0 => format!("\"{digits}\""),
                1 => format!("\"{}\"", uuid.to_uppercase()),
                _ => format!("\"{uuid}\""),
            }
        }
        P::Binary | P::Fixed(_) => format!(
            "\"{}\"",
            pick(
                random,
                &["", "00ff10", "0g", "abc", "aGVs", "aGVsbG8=", "aA==", "aB==", "a=b=", "+/+/", "AAAA", "é"]
            )
        ),
        _ => text(random),
    }
}

fn number(random: &mut Random) -> String {
    let special = [
        "0",
        "-0",
        "2147483647",
        "2147483648",
        "-2147483649",
        "9007199254740993",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "1e3",
        "2.0",
        "2.9",
        "1e300",
        "1e-400",
        "99999999.99",
        "16777217",
        "0.005",
        "-0.005",
        "123456789012345.675",
        "1e38",
        "170141183460469231731687303715884105728",
        "1E+2",
        "0e9",
        "1e-7",
    ];
    match random.below(3) {
        0 => pick(random, &special).to_string(),
        1 => random.between(-100_000, 100_000).to_string(),
        _ => {
            let exponent =
                if random.below(3) == 0 { format!("e{}", random.between(-20, 20)) } else { String::new() };
            format!("{}.{}{exponent}", random.between(-99_999, 99_999), random.below(100_000))
        }
    }
}

fn date(random: &mut Random) -> String {
    let year = pick(random, &[1, 1582, 1899, 1900, 1969, 1970, 2000, 2024, 2026, 9999]);
    format!("{year:04}-{:02}-{:02}", random.below(13), random.below(32))
}

fn time(random: &mut Random) -> String {
    let fraction = pick(random, &["", "", ".1", ".123456", ".123456000", ".1234567", ".", ".999999999"]);
    format!("{:02}:{:02}:{:02}{fraction}", random.below(25), random.below(60), random.below(61))
}

fn text(random: &mut Random) -> String {
    let parts = [
        "x",
        "word ",
        "é",
        "😀",
        "\\n",
        "\\u0041",
        "\\uD83D\\uDE00",
        "\\\"",
        "a rather long run of plain text that fills a chunk",
    ];
    let mut out = String::from("\"");
    for _ in 0..random.below(6) {
        out.push_str(pick(random, &parts));
    }
    if random.below(40) == 0 {
        out.push_str(pick(random, &["\\uD800", "\\q", "\u{1}", "\\uD800\\uD800"]));
    }
    out.push('"');
    out
}

/// Any JSON value.
fn any_value(random: &mut Random, out: &mut String, depth: u64) {
    match random.below(if depth == 0 { 5 } else { 8 }) {
        0 => out.push_str(&number(random)),
        1 => out.push_str(&text(random)),
        2 => out.push_str("true"),
        3 => out.push_str("null"),
        4 => out.push_str(&format!("\"{}\"", date(random))),
        5 | 6 => {
            out.push('[');
            for place in 0..random.below(4) {
                out.push_str(if place > 0 { "," } else { "" });
                any_value(random, out, depth - 1);
            }
            out.push(']');
        }
        _ => {
            out.push('{');
            for place in 0..random.below(4) {
                out.push_str(if place > 0 { "," } else { "" });
                out.push_str(&text(random));
                out.push(':');
                any_value(random, out, depth - 1);
            }
            out.push('}');
        }
    }
    // Deeper than is allowed, now and then.
    if random.below(200) == 0 {
        *out = format!("{}{out}{}", "[".repeat(9), "]".repeat(9));
    }
}
