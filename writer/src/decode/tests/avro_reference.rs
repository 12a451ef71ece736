//! A slow and obvious decoder of Avro: it lets `apache-avro` parse a message into a tree of values, by a schema without
//! logical types, then looks up what the table wants. It shares no code with the fast one but options and codes.

use std::collections::HashMap;
use std::io::{self, Read};

use apache_avro::types::Value;
use apache_avro::{Schema, from_avro_datum};
use firn_writer::decode::{DecodeOptions, RejectCode as Code, TimestampPrecision, UnknownFields};
use iceberg::spec::{NestedField, PrimitiveType as P, StructType, Type};
use serde_json::{Value as Json, json};

use super::reference::{self, Cell, Tree, Value as JsonValue};

/// A writer's schema for this decoder.
#[derive(Debug)]
pub(super) struct Writer {
    json: Json,
    plain: Schema,
    named: HashMap<String, Json>,
}

impl Writer {
    /// Names in the schema have no namespaces.
    pub(super) fn new(text: &str) -> Self {
        // A length beyond this is beyond every message of the tests, and is not tried.
        apache_avro::util::max_allocation_bytes(1 << 16);
        let json: Json = serde_json::from_str(text).unwrap();
        let mut named = HashMap::new();
        collect(&json, &mut named);
        let plain = Schema::parse(&plain(&json, &mut 0)).unwrap();
        Self { json, plain, named }
    }

    /// The cells of a row, or the code of the reject. Everything malformed but trailing bytes has one code.
    pub(super) fn decode(
        &self,
        payload: &[u8],
        table: &StructType,
        options: &DecodeOptions,
    ) -> Result<Vec<Cell>, Code> {
        let mut bytes = Bytes { rest: payload, ended: false };
        let value = from_avro_datum(&self.plain, &mut bytes, None).map_err(|_| Code::MalformedAvro)?;
        if bytes.ended {
            return Err(Code::MalformedAvro);
        }
        if !bytes.rest.is_empty() {
            return Err(Code::TrailingData);
        }
        self.record(&value, &self.json, table, options)
    }

    fn record(
        &self,
        value: &Value,
        schema: &Json,
        table: &StructType,
        options: &DecodeOptions,
    ) -> Result<Vec<Cell>, Code> {
        let Value::Record(members) = value else { panic!("{value:?} is a record") };
        let mut cells: Vec<Option<Cell>> = vec![None; table.fields().len()];
        for ((name, value), member) in members.iter().zip(schema["fields"].as_array().unwrap()) {
            match table.fields().iter().position(|field| field.name == *name) {
                None if options.unknown_fields == UnknownFields::Reject => return Err(Code::UnknownField),
                None => {}
                Some(place) => {
                    let field = &table.fields()[place];
                    cells[place] = Some(self.field(value, &member["type"], field, options)?);
                }
            }
        }
        let absent = |(cell, field): (Option<Cell>, &std::sync::Arc<NestedField>)| match cell {
            Some(cell) => Ok(cell),
            None if field.required => Err(Code::MissingField),
            None => Ok(Cell::Null),
        };
        cells.into_iter().zip(table.fields()).map(absent).collect()
    }

    fn field(
        &self,
        value: &Value,
        schema: &Json,
        field: &NestedField,
        options: &DecodeOptions,
    ) -> Result<Cell, Code> {
        let schema = match schema {
            Json::String(name) => self.named.get(name).unwrap_or(schema),
            other => other,
        };
        if let Value::Union(branch, inner) = value {
            return self.field(inner, &schema[*branch as usize], field, options);
        }
        match (value, &*field.field_type) {
            (Value::Null, _) if field.required => Err(Code::NullInRequired),
            (Value::Null, _) => Ok(Cell::Null),
            (Value::Array(entries), _) if schema["type"] == "map" => match &*field.field_type {
                Type::Map(map) => self.map(entries, &schema["values"], &map.value_field, options),
                _ => Err(Code::WrongType),
            },
            (Value::Record(_), Type::Struct(fields)) => {
                self.record(value, schema, fields, options).map(Cell::Struct)
            }
            (Value::Array(elements), Type::List(list)) => {
                let cells = elements
                    .iter()
                    .map(|element| self.field(element, &schema["items"], &list.element_field, options));
                cells.collect::<Result<_, _>>().map(Cell::List)
            }
            (_, Type::Primitive(column)) => primitive(value, schema, column, options),
            _ => Err(Code::WrongType),
        }
    }

    fn map(
        &self,
        entries: &[Value],
        values: &Json,
        field: &NestedField,
        options: &DecodeOptions,
    ) -> Result<Cell, Code> {
        let mut cells: Vec<(String, Cell)> = Vec::new();
        for entry in entries {
            let Value::Record(parts) = entry else { panic!("{entry:?} is an entry") };
            let Value::String(key) = &parts[0].1 else { panic!("{entry:?} has a key") };
            cells.push((key.clone(), self.field(&parts[1].1, values, field, options)?));
        }
        for (place, (key, _)) in cells.iter().enumerate() {
            if cells[..place].iter().any(|(other, _)| other == key) {
                return Err(Code::DuplicateField);
            }
        }
        Ok(Cell::Map(cells))
    }
}

/// The bytes of a message, and whether somebody read beyond them: `apache-avro` makes nulls of what is missing.
struct Bytes<'a> {
    rest: &'a [u8],
    ended: bool,
}

impl Read for Bytes<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.ended |= buffer.len() > self.rest.len();
        self.rest.read(buffer)
    }
}

fn collect(schema: &Json, named: &mut HashMap<String, Json>) {
    match schema {
        Json::Array(branches) => branches.iter().for_each(|branch| collect(branch, named)),
        Json::Object(parts) => {
            if let Some(name) = schema["name"].as_str().filter(|_| schema["type"].is_string()) {
                named.insert(name.to_owned(), schema.clone());
            }
            parts.values().for_each(|part| collect(part, named));
        }
        _ => {}
    }
}

/// Without logical types, and with maps as arrays of entries, whose encoding is the same and which keep their order.
fn plain(schema: &Json, entries: &mut usize) -> Json {
    match schema {
        Json::Array(parts) => parts.iter().map(|part| plain(part, entries)).collect(),
        Json::Object(_) if schema["type"] == "map" => {
            *entries += 1;
            let name = format!("entry{entries}");
            let value = plain(&schema["values"], entries);
            let fields = json!([{"name": "key", "type": "string"}, {"name": "value", "type": value}]);
            json!({"type": "array", "items": {"type": "record", "name": name, "fields": fields}})
        }
        Json::Object(parts) => {
            let kept = parts.iter().filter(|(name, _)| *name != "logicalType");
            kept.map(|(name, part)| (name.clone(), plain(part, entries))).collect()
        }
        other => other.clone(),
    }
}

fn primitive(value: &Value, schema: &Json, column: &P, options: &DecodeOptions) -> Result<Cell, Code> {
    let logical = schema["logicalType"].as_str().unwrap_or_default();
    let as_json = |value: JsonValue, text: String| {
        reference::primitive_value(&Tree { text, value }, column, &options.defaults)
    };
    let number = |number: i128, logical: &str| match (logical, column) {
        ("date", P::Date) => Ok(Cell::Integer(number)),
        ("date", _) => Err(Code::WrongType),
        ("time-millis" | "time-micros", P::Time) => {
            let micros = if logical == "time-millis" { number * 1_000 } else { number };
            if (0..86_400_000_000).contains(&micros) {
                Ok(Cell::Integer(micros))
            } else {
                Err(Code::OutOfRange)
            }
        }
        ("time-millis" | "time-micros", _) => Err(Code::WrongType),
        (name, _) if name.contains("timestamp") => timestamp(number, schema, column, options),
        (_, P::String) => Err(Code::WrongType),
        _ => as_json(JsonValue::Number, number.to_string()),
    };
    match (value, column) {
        (Value::Boolean(value), P::Boolean) => Ok(Cell::Boolean(*value)),
        (Value::Int(value), _) => number((*value).into(), logical),
        (Value::Long(value), _) => number((*value).into(), logical),
        (Value::Float(value), P::Float | P::Double) => Ok(Cell::Bits(f64::from(*value).to_bits())),
        (Value::Double(value), P::Double) => Ok(Cell::Bits(value.to_bits())),
        (Value::Double(value), P::Float) => {
            let float = *value as f32;
            if value.is_nan() || f64::from(float) == *value {
                return Ok(Cell::Bits(f64::from(float).to_bits()));
            }
            Err(if float.is_infinite() || float == 0.0 { Code::OutOfRange } else { Code::PrecisionLost })
        }
        (Value::Float(value), P::Int | P::Long) => integer(f64::from(*value), column),
        (Value::Double(value), P::Int | P::Long) => integer(*value, column),
        (Value::String(text), P::String) => Ok(Cell::Bytes(text.clone().into_bytes())),
        (Value::String(text), P::Uuid) => as_json(JsonValue::Text(text.clone()), text.clone()),
        (Value::String(text), _) if logical != "uuid" => as_json(JsonValue::Text(text.clone()), text.clone()),
        (Value::Enum(_, symbol), P::String) => Ok(Cell::Bytes(symbol.clone().into_bytes())),
        (Value::Bytes(bytes) | Value::Fixed(_, bytes), P::Decimal { precision, scale })
            if logical == "decimal" =>
        {
            decimal(bytes, schema["scale"].as_u64().unwrap_or(0) as u32, *precision, *scale)
        }
        (Value::Bytes(_) | Value::Fixed(..), _) if logical == "decimal" => Err(Code::WrongType),
        (Value::Bytes(bytes) | Value::Fixed(_, bytes), P::Binary) => Ok(Cell::Bytes(bytes.clone())),
        (Value::Bytes(bytes) | Value::Fixed(_, bytes), P::Fixed(width)) => {
            if bytes.len() as u64 == *width {
                Ok(Cell::Bytes(bytes.clone()))
            } else {
                Err(Code::WrongLength)
            }
        }
        (Value::Fixed(16, bytes), P::Uuid) if logical == "uuid" => Ok(Cell::Bytes(bytes.clone())),
        _ => Err(Code::WrongType),
    }
}

fn integer(value: f64, column: &P) -> Result<Cell, Code> {
    let (least, most) = match column {
        P::Int => (i128::from(i32::MIN), i128::from(i32::MAX)),
        _ => (i128::from(i64::MIN), i128::from(i64::MAX)),
    };
    let wide = (i128::from(i64::MIN)..=i128::from(i64::MAX)).contains(&(value.trunc() as i128));
    if value.is_nan() || !wide {
        return Err(Code::OutOfRange);
    }
    if value.trunc() != value {
        return Err(Code::NotAnInteger);
    }
    let value = value as i128;
    if (least..=most).contains(&value) { Ok(Cell::Integer(value)) } else { Err(Code::OutOfRange) }
}

fn timestamp(number: i128, schema: &Json, column: &P, options: &DecodeOptions) -> Result<Cell, Code> {
    let name = schema["logicalType"].as_str().unwrap_or_default();
    let zoned = !name.starts_with("local") && schema["adjust-to-utc"] != false;
    let nanos_each = match name.rsplit('-').next() {
        Some("millis") => 1_000_000,
        Some("micros") => 1_000,
        _ => 1,
    };
    match (column, zoned) {
        (P::Timestamp, true) => return Err(Code::ZoneForbidden),
        (P::Timestamptz, false) => return Err(Code::ZoneMissing),
        (P::Timestamp | P::Timestamptz, _) => {}
        _ => return Err(Code::WrongType),
    }
    let nanos = number * nanos_each;
    let exact = options.defaults.timestamp_precision == TimestampPrecision::Exact;
    if nanos.rem_euclid(1_000) != 0 && exact {
        return Err(Code::PrecisionLost);
    }
    let micros = nanos.div_euclid(1_000);
    if i64::try_from(micros).is_ok() { Ok(Cell::Integer(micros)) } else { Err(Code::OutOfRange) }
}

/// Digit by digit, from the bytes.
fn decimal(bytes: &[u8], from: u32, precision: u32, to: u32) -> Result<Cell, Code> {
    let Some(first) = bytes.first() else { return Err(Code::InvalidNumber) };
    let negative = *first >= 0x80;
    // The magnitude in base 256: two's complement is undone by inverting and adding one.
    let mut magnitude: Vec<u8> = bytes.iter().map(|byte| if negative { !byte } else { *byte }).collect();
    if negative {
        for byte in magnitude.iter_mut().rev() {
            let (sum, carry) = byte.overflowing_add(1);
            *byte = sum;
            if !carry {
                break;
            }
        }
        if magnitude.iter().all(|byte| *byte == 0) {
            magnitude.insert(0, 1);
        }
    }
    let mut digits: Vec<u8> = vec![0];
    for byte in magnitude {
        let mut carry = u32::from(byte);
        for digit in &mut digits {
            let value = u32::from(*digit) * 256 + carry;
            *digit = (value % 10) as u8;
            carry = value / 10;
        }
        while carry > 0 {
            digits.push((carry % 10) as u8);
            carry /= 10;
        }
    }
    // Least digit first, from here on in the column's scale.
    let mut cut = Vec::new();
    for _ in to..from {
        cut.push(if digits.is_empty() { 0 } else { digits.remove(0) });
    }
    for _ in from..to {
        digits.insert(0, 0);
    }
    while digits.last() == Some(&0) {
        digits.pop();
    }
    if digits.len() > precision as usize {
        return Err(Code::OutOfRange);
    }
    if cut.iter().any(|digit| *digit != 0) {
        return Err(Code::PrecisionLost);
    }
    let value = digits.iter().rev().fold(0i128, |value, digit| value * 10 + i128::from(*digit));
    Ok(Cell::Integer(if negative { -value } else { value }))
}
