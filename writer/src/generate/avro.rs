//! Messages in Avro's binary encoding: the values of the JSON message, field by field (Avro 1.11, "Binary Encoding").

use serde_json::{Value, json};

use super::{FieldKind, FieldTemplate};

/// The record schema of a template's messages: fields that may be null or absent are unions with `null` first.
pub(super) fn schema(fields: &[FieldTemplate]) -> Value {
    let fields: Vec<Value> = fields
        .iter()
        .map(|field| {
            let of = field_type(&field.kind);
            if may_be_null(field) {
                json!({ "name": field.name, "type": ["null", of], "default": null })
            } else {
                json!({ "name": field.name, "type": of })
            }
        })
        .collect();
    json!({ "type": "record", "name": "Message", "namespace": "firn.generated", "fields": fields })
}

/// Whether Avro takes the name of a field or record.
pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn may_be_null(field: &FieldTemplate) -> bool {
    field.nulls > 0.0 || field.absent > 0.0
}

fn field_type(kind: &FieldKind) -> Value {
    match kind {
        FieldKind::Int { min, max } if i32::try_from(*min).is_ok() && i32::try_from(*max).is_ok() => {
            json!("int")
        }
        FieldKind::Sequence { .. } | FieldKind::Int { .. } | FieldKind::Zipf { prefix: None, .. } => {
            json!("long")
        }
        FieldKind::Float { .. } => json!("double"),
        FieldKind::Decimal { scale, .. } => {
            json!({ "type": "bytes", "logicalType": "decimal", "precision": 18, "scale": scale })
        }
        FieldKind::Boolean { .. } => json!("boolean"),
        FieldKind::Uuid {} => json!({ "type": "string", "logicalType": "uuid" }),
        FieldKind::Timestamp { .. } => json!({ "type": "long", "logicalType": "timestamp-micros" }),
        FieldKind::Tags { .. } => json!({ "type": "array", "items": "string" }),
        FieldKind::Zipf { prefix: Some(_), .. }
        | FieldKind::String { .. }
        | FieldKind::Unicode { .. }
        | FieldKind::Choice { .. }
        | FieldKind::Url { .. }
        | FieldKind::Text {} => json!("string"),
    }
}

/// Encodes a record from the JSON texts of its values; `None` is null or absent.
pub(super) fn encode(fields: &[FieldTemplate], values: &[Option<&[u8]>]) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    for (field, value) in fields.iter().zip(values) {
        let Some(value) = value else {
            long(0, &mut out);
            continue;
        };
        if may_be_null(field) {
            long(1, &mut out);
        }
        encode_value(&field.kind, value, &mut out);
    }
    out
}

/// The text is what this module's neighbours wrote, so that each parses.
fn encode_value(kind: &FieldKind, json: &[u8], out: &mut Vec<u8>) {
    let value: Value = match kind {
        // Numbers with a point would lose digits as JSON values.
        FieldKind::Decimal { .. } => Value::Null,
        _ => serde_json::from_slice(json).unwrap_or_default(),
    };
    match kind {
        FieldKind::Sequence { .. } | FieldKind::Int { .. } | FieldKind::Zipf { prefix: None, .. } => {
            long(value.as_i64().unwrap_or_default(), out);
        }
        FieldKind::Float { .. } => {
            out.extend_from_slice(&value.as_f64().unwrap_or_default().to_le_bytes());
        }
        FieldKind::Decimal { .. } => bytes(&minimal(unscaled(json)), out),
        FieldKind::Boolean { .. } => out.push(u8::from(value.as_bool().unwrap_or_default())),
        FieldKind::Timestamp { .. } => {
            let time = value.as_str().and_then(|text| chrono::DateTime::parse_from_rfc3339(text).ok());
            long(time.map_or(0, |time| time.timestamp_micros()), out);
        }
        FieldKind::Tags { .. } => {
            let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
            if !items.is_empty() {
                long(items.len() as i64, out);
            }
            items.iter().for_each(|item| bytes(item.as_str().unwrap_or_default().as_bytes(), out));
            long(0, out);
        }
        FieldKind::Zipf { prefix: Some(_), .. }
        | FieldKind::String { .. }
        | FieldKind::Unicode { .. }
        | FieldKind::Choice { .. }
        | FieldKind::Url { .. }
        | FieldKind::Uuid {}
        | FieldKind::Text {} => bytes(value.as_str().unwrap_or_default().as_bytes(), out),
    }
}

/// A number of a fixed count of decimals, without its point.
fn unscaled(json: &[u8]) -> i64 {
    let digits = json.iter().filter(|byte| byte.is_ascii_digit());
    let magnitude = digits.fold(0i64, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    if json.first() == Some(&b'-') { -magnitude } else { magnitude }
}

/// Two's complement, big-endian, in the fewest bytes.
fn minimal(value: i64) -> Vec<u8> {
    let all = value.to_be_bytes();
    let fill = if value < 0 { 0xFF } else { 0 };
    let mut from = 0;
    while from < 7 && all[from] == fill && (all[from + 1] ^ fill) & 0x80 == 0 {
        from += 1;
    }
    all[from..].to_vec()
}

fn bytes(value: &[u8], out: &mut Vec<u8>) {
    long(value.len() as i64, out);
    out.extend_from_slice(value);
}

/// Zigzag, then seven bits a byte, the low ones first.
fn long(value: i64, out: &mut Vec<u8>) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}
