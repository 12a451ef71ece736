//! A slow and obvious decoder: it parses a message into a tree of values, then looks up what the schema wants.
//! It shares no code with the fast one but options and codes.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use chrono::{NaiveDate, NaiveTime, Timelike};
use iceberg::spec::{NestedFieldRef, PrimitiveType, StructType, Type};

use firn_writer::decode::{
    BinaryText, ColumnOptions, DecodeOptions, NumberText, RejectCode, StringValues, TimestampNumbers,
    TimestampPrecision, UnknownFields,
};

/// A JSON value; numbers as they are written, with the text of every value beside it.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    pub(super) text: String,
    pub(super) value: Value,
}

#[derive(Debug, Clone)]
pub(super) enum Value {
    Null,
    Boolean(bool),
    Number,
    Text(String),
    List(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

/// A value of a column. Integers stand for all types that are stored as such; doubles as their bits.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Null,
    Boolean(bool),
    Integer(i128),
    Bits(u64),
    Bytes(Vec<u8>),
    List(Vec<Cell>),
    Map(Vec<(String, Cell)>),
    Struct(Vec<Cell>),
}

type Code = RejectCode;

/// Decodes one message.
pub(super) fn decode(
    payload: &[u8],
    schema: &StructType,
    options: &DecodeOptions,
) -> Result<Vec<Cell>, Code> {
    if payload.is_empty() {
        return Err(Code::EmptyValue);
    }
    let text = String::from_utf8(payload.to_vec()).map_err(|_| Code::InvalidUtf8)?;
    if text.starts_with('\u{feff}') {
        return Err(Code::ByteOrderMark);
    }
    let tree = parse(&text, options.max_depth)?;
    match &tree.value {
        Value::Object(members) => structure(members, schema.fields(), options),
        _ => Err(Code::NotAnObject),
    }
}

/// Parses a whole text.
pub(super) fn parse(text: &str, max_depth: usize) -> Result<Tree, Code> {
    let mut parser = Parser { chars: text.chars().collect(), at: 0 };
    let tree = parser.value(max_depth)?;
    parser.space();
    if parser.at == parser.chars.len() { Ok(tree) } else { Err(Code::TrailingData) }
}

struct Parser {
    chars: Vec<char>,
    at: usize,
}

impl Parser {
    fn next(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn take(&mut self, wanted: char) -> Result<(), Code> {
        if self.next() == Some(wanted) {
            self.at += 1;
            return Ok(());
        }
        Err(Code::MalformedJson)
    }

    fn space(&mut self) {
        while matches!(self.next(), Some(' ' | '\t' | '\n' | '\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Tree, Code> {
        self.space();
        let start = self.at;
        let value = match self.next() {
            Some('{') => self.object(depth)?,
            Some('[') => self.list(depth)?,
            Some('"') => Value::Text(self.string()?),
            Some('-' | '0'..='9') => self.number()?,
            Some('t') => self.word("true", Value::Boolean(true))?,
            Some('f') => self.word("false", Value::Boolean(false))?,
            Some('n') => self.word("null", Value::Null)?,
            _ => return Err(Code::MalformedJson),
        };
        Ok(Tree { text: self.chars[start..self.at].iter().collect(), value })
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, Code> {
        for character in word.chars() {
            self.take(character)?;
        }
        Ok(value)
    }

    fn object(&mut self, depth: usize) -> Result<Value, Code> {
        if depth == 0 {
            return Err(Code::TooDeep);
        }
        self.take('{')?;
        self.space();
        let mut members = Vec::new();
        if self.next() == Some('}') {
            self.at += 1;
            return Ok(Value::Object(members));
        }
        loop {
            self.space();
            let name = self.string()?;
            self.space();
            self.take(':')?;
            members.push((name, self.value(depth - 1)?));
            self.space();
            if self.next() == Some('}') {
                self.at += 1;
                return Ok(Value::Object(members));
            }
            self.take(',')?;
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value, Code> {
        if depth == 0 {
            return Err(Code::TooDeep);
        }
        self.take('[')?;
        self.space();
        let mut elements = Vec::new();
        if self.next() == Some(']') {
            self.at += 1;
            return Ok(Value::List(elements));
        }
        loop {
            elements.push(self.value(depth - 1)?);
            self.space();
            if self.next() == Some(']') {
                self.at += 1;
                return Ok(Value::List(elements));
            }
            self.take(',')?;
        }
    }

    fn string(&mut self) -> Result<String, Code> {
        self.take('"')?;
        let mut text = String::new();
        loop {
            let character = self.next().ok_or(Code::MalformedJson)?;
            self.at += 1;
            match character {
                '"' => return Ok(text),
                '\\' => text.push(self.escape()?),
                '\0'..='\u{1f}' => return Err(Code::MalformedJson),
                other => text.push(other),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Code> {
        let character = self.next().ok_or(Code::MalformedJson)?;
        self.at += 1;
        Ok(match character {
            '"' | '\\' | '/' => character,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let first = self.four_digits().ok_or(Code::MalformedJson)?;
                if !(0xD800..=0xDFFF).contains(&first) {
                    return char::from_u32(first).ok_or(Code::MalformedJson);
                }
                let second = (self.take('\\').is_ok() && self.take('u').is_ok()).then(|| self.four_digits());
                match second.flatten() {
                    Some(second) if first < 0xDC00 && (0xDC00..=0xDFFF).contains(&second) => {
                        char::from_u32(0x10000 + (first - 0xD800) * 0x400 + second - 0xDC00).unwrap()
                    }
                    _ => return Err(Code::LoneSurrogate),
                }
            }
            _ => return Err(Code::MalformedJson),
        })
    }

    fn four_digits(&mut self) -> Option<u32> {
        let mut value = 0;
        for _ in 0..4 {
            value = value * 16 + self.next()?.to_digit(16)?;
            self.at += 1;
        }
        Some(value)
    }

    fn number(&mut self) -> Result<Value, Code> {
        let _ = self.take('-');
        if self.next() == Some('0') {
            self.at += 1;
            if matches!(self.next(), Some('0'..='9')) {
                return Err(Code::MalformedJson);
            }
        } else {
            self.digits()?;
        }
        if self.take('.').is_ok() {
            self.digits()?;
        }
        if matches!(self.next(), Some('e' | 'E')) {
            self.at += 1;
            if matches!(self.next(), Some('+' | '-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(Value::Number)
    }

    fn digits(&mut self) -> Result<(), Code> {
        let start = self.at;
        while matches!(self.next(), Some('0'..='9')) {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(Code::MalformedJson) }
    }
}

fn structure(
    members: &[(String, Tree)],
    fields: &[NestedFieldRef],
    options: &DecodeOptions,
) -> Result<Vec<Cell>, Code> {
    let mut cells: Vec<Option<Cell>> = vec![None; fields.len()];
    for (name, tree) in members {
        match fields.iter().position(|field| field.name == *name) {
            None if options.unknown_fields == UnknownFields::Reject => return Err(Code::UnknownField),
            None => {}
            Some(place) if cells[place].is_some() => return Err(Code::DuplicateField),
            Some(place) => cells[place] = Some(field_value(tree, &fields[place], options)?),
        }
    }
    cells
        .into_iter()
        .zip(fields)
        .map(|(cell, field)| match cell {
            Some(cell) => Ok(cell),
            None if field.required => Err(Code::MissingField),
            None => Ok(Cell::Null),
        })
        .collect()
}

fn field_value(tree: &Tree, field: &NestedFieldRef, options: &DecodeOptions) -> Result<Cell, Code> {
    match (&tree.value, &*field.field_type) {
        (Value::Null, _) if field.required => Err(Code::NullInRequired),
        (Value::Null, _) => Ok(Cell::Null),
        (Value::Object(members), Type::Struct(fields)) => {
            structure(members, fields.fields(), options).map(Cell::Struct)
        }
        (Value::List(elements), Type::List(list)) => {
            let cells = elements.iter().map(|element| field_value(element, &list.element_field, options));
            cells.collect::<Result<_, _>>().map(Cell::List)
        }
        (Value::Object(members), Type::Map(map)) => {
            let mut entries: Vec<(String, Cell)> = Vec::new();
            for (key, tree) in members {
                entries.push((key.clone(), field_value(tree, &map.value_field, options)?));
            }
            for (place, (key, _)) in entries.iter().enumerate() {
                if entries[..place].iter().any(|(other, _)| other == key) {
                    return Err(Code::DuplicateField);
                }
            }
            Ok(Cell::Map(entries))
        }
        (_, Type::Primitive(primitive)) => primitive_value(tree, primitive, &options.defaults),
        _ => Err(Code::WrongType),
    }
}

pub(super) fn primitive_value(
    tree: &Tree,
    primitive: &PrimitiveType,
    options: &ColumnOptions,
) -> Result<Cell, Code> {
    use PrimitiveType as P;
    match (&tree.value, primitive) {
        (Value::Boolean(value), P::Boolean) => Ok(Cell::Boolean(*value)),
        (Value::Number, P::Int | P::Long | P::Float | P::Double | P::Decimal { .. }) => {
            number(&tree.text, primitive)
        }
        (Value::Number, P::Timestamp | P::Timestamptz) => number_of_time(&tree.text, options),
        (Value::Text(text), P::Int | P::Long | P::Float | P::Double | P::Decimal { .. }) => {
            if options.numbers == NumberText::Reject {
                return Err(Code::WrongType);
            }
            match parse(text, 1) {
                Ok(Tree { value: Value::Number, text: inner }) if inner == *text => number(text, primitive),
                _ => Err(Code::InvalidNumber),
            }
        }
        (Value::Text(text), P::String) => Ok(Cell::Bytes(text.clone().into_bytes())),
        (_, P::String) if options.strings == StringValues::JsonText => {
            Ok(Cell::Bytes(tree.text.clone().into_bytes()))
        }
        (Value::Text(text), P::Date) => {
            let date = date(text).ok_or(Code::InvalidDate)?;
            Ok(Cell::Integer(days(date)))
        }
        (Value::Text(text), P::Time) => {
            let (micros, leap) = time(text, options).ok_or(Code::InvalidTime)?;
            if leap { Err(Code::InvalidTime) } else { micros.map(Cell::Integer) }
        }
        (Value::Text(text), P::Timestamp) => timestamp(text, false, options),
        (Value::Text(text), P::Timestamptz) => timestamp(text, true, options),
        (Value::Text(text), P::Uuid) => {
            let shape: Vec<usize> = text.split('-').map(str::len).collect();
            if shape != [8, 4, 4, 4, 12] || !text.is_ascii() {
                return Err(Code::InvalidUuid);
            }
            from_hex(&text.replace('-', "")).map(Cell::Bytes).ok_or(Code::InvalidUuid)
        }
        (Value::Text(text), P::Binary) => bytes(text, options).map(Cell::Bytes),
        (Value::Text(text), P::Fixed(width)) => {
            let bytes = bytes(text, options)?;
            if bytes.len() as u64 == *width { Ok(Cell::Bytes(bytes)) } else { Err(Code::WrongLength) }
        }
        _ => Err(Code::WrongType),
    }
}

/// The digits before and after the point, with the exponent gone, and the sign.
fn expand(text: &str) -> (bool, String, String) {
    let negative = text.starts_with('-');
    let lower = text.trim_start_matches('-').to_lowercase();
    let (mantissa, exponent) = lower.split_once('e').unwrap_or((&lower, "0"));
    let exponent: i64 = exponent.trim_start_matches('+').parse().unwrap_or(if exponent.starts_with('-') {
        -500
    } else {
        500
    });
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let (mut whole, mut fraction) = (whole.to_owned(), fraction.to_owned());
    for _ in 0..exponent.clamp(-500, 500).abs() {
        if exponent > 0 {
            whole.push(if fraction.is_empty() { '0' } else { fraction.remove(0) });
        } else {
            fraction.insert(0, whole.pop().unwrap_or('0'));
        }
    }
    (negative, whole.trim_start_matches('0').to_owned(), fraction.trim_end_matches('0').to_owned())
}

fn number(text: &str, primitive: &PrimitiveType) -> Result<Cell, Code> {
    let (negative, whole, fraction) = expand(text);
    let sign = if negative { -1 } else { 1 };
    let is_integer = !text.contains(['.', 'e', 'E']);
    match primitive {
        PrimitiveType::Int | PrimitiveType::Long => {
            let (least, most) = match primitive {
                PrimitiveType::Int => (i128::from(i32::MIN), i128::from(i32::MAX)),
                _ => (i128::from(i64::MIN), i128::from(i64::MAX)),
            };
            if whole.len() > 38 {
                return Err(Code::OutOfRange);
            }
            if !fraction.is_empty() {
                return Err(Code::NotAnInteger);
            }
            let value = sign * format!("0{whole}").parse::<i128>().unwrap();
            if (least..=most).contains(&value) { Ok(Cell::Integer(value)) } else { Err(Code::OutOfRange) }
        }
        PrimitiveType::Decimal { precision, scale } => {
            if whole.len() > (precision - scale) as usize {
                return Err(Code::OutOfRange);
            }
            if fraction.len() > *scale as usize {
                return Err(Code::PrecisionLost);
            }
            let digits = format!("0{whole}{fraction:0<width$}", width = *scale as usize);
            Ok(Cell::Integer(sign * digits.parse::<i128>().unwrap()))
        }
        PrimitiveType::Double => {
            let value: f64 = text.parse().unwrap();
            let vanished = value == 0.0 && !(whole.is_empty() && fraction.is_empty());
            float(value.is_infinite() || vanished, is_integer && is_rounded(&format!("{value:.0}"), text))?;
            Ok(Cell::Bits(value.to_bits()))
        }
        _ => {
            let value: f32 = text.parse().unwrap();
            let vanished = value == 0.0 && !(whole.is_empty() && fraction.is_empty());
            float(value.is_infinite() || vanished, is_integer && is_rounded(&format!("{value:.0}"), text))?;
            Ok(Cell::Bits(f64::from(value).to_bits()))
        }
    }
}

fn is_rounded(held: &str, text: &str) -> bool {
    held != text
}

fn float(beyond: bool, rounded: bool) -> Result<(), Code> {
    match (beyond, rounded) {
        (true, _) => Err(Code::OutOfRange),
        (_, true) => Err(Code::PrecisionLost),
        _ => Ok(()),
    }
}

fn number_of_time(text: &str, options: &ColumnOptions) -> Result<Cell, Code> {
    let places: i32 = match options.timestamp_numbers {
        TimestampNumbers::Reject => return Err(Code::UndeclaredUnit),
        TimestampNumbers::Seconds => 6,
        TimestampNumbers::Millis => 3,
        TimestampNumbers::Micros => 0,
        TimestampNumbers::Nanos => -3,
    };
    let (negative, whole, fraction) = expand(text);
    let sign = if negative { "-" } else { "" };
    let scaled = format!("{sign}0{whole}.{fraction}0e{places}");
    let (_, whole, fraction) = expand(&scaled);
    if whole.len() > 38 {
        return Err(Code::OutOfRange);
    }
    let mut value = format!("0{whole}").parse::<i128>().unwrap() * if negative { -1 } else { 1 };
    if !fraction.is_empty() {
        if options.timestamp_precision == TimestampPrecision::Exact {
            return Err(Code::PrecisionLost);
        }
        value -= i128::from(negative);
    }
    if i64::try_from(value).is_ok() { Ok(Cell::Integer(value)) } else { Err(Code::OutOfRange) }
}

fn all_digits(text: &str) -> Option<u32> {
    if text.is_empty() || !text.chars().all(|c| c.is_ascii_digit()) { None } else { text.parse().ok() }
}

fn date(text: &str) -> Option<NaiveDate> {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return None };
    if (year.len(), month.len(), day.len()) != (4, 2, 2) {
        return None;
    }
    NaiveDate::from_ymd_opt(all_digits(year)? as i32, all_digits(month)?, all_digits(day)?)
}

fn days(date: NaiveDate) -> i128 {
    i128::from(date.signed_duration_since(NaiveDate::from_ymd_opt(1970, 1, 1).unwrap()).num_days())
}

/// Microseconds of the day (or why not), and whether it is a leap second. `None` where the form is wrong.
fn time(text: &str, options: &ColumnOptions) -> Option<(Result<i128, Code>, bool)> {
    let (clock, fraction) =
        text.split_once('.').map_or((text, None), |(clock, fraction)| (clock, Some(fraction)));
    let parts: Vec<&str> = clock.split(':').collect();
    if parts.iter().map(|part| part.len()).collect::<Vec<_>>() != [2, 2, 2] {
        return None;
    }
    let second = all_digits(parts[2])?;
    let leap = second == 60;
    let time = NaiveTime::from_hms_opt(
        all_digits(parts[0])?,
        all_digits(parts[1])?,
        if leap { 59 } else { second },
    )?;
    let seconds = i128::from(time.num_seconds_from_midnight());
    let Some(fraction) = fraction else { return Some((Ok(seconds * 1_000_000), leap)) };
    if fraction.is_empty() || !fraction.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    let digits: String = format!("{fraction:0<6}").chars().take(6).collect();
    let rest_is_zero = fraction.chars().skip(6).all(|c| c == '0');
    if !rest_is_zero && options.timestamp_precision == TimestampPrecision::Exact {
        return Some((Err(Code::PrecisionLost), leap));
    }
    Some((Ok(seconds * 1_000_000 + digits.parse::<i128>().unwrap()), leap))
}

fn timestamp(text: &str, zoned: bool, options: &ColumnOptions) -> Result<Cell, Code> {
    let invalid = Code::InvalidTimestamp;
    let at = text.find(['T', 't', ' ']).ok_or(invalid)?;
    let date = date(&text[..at]).ok_or(invalid)?;
    let rest = &text[at + 1..];
    let zone_at = rest.find(['Z', 'z', '+', '-']);
    let (clock, zone) = rest.split_at(zone_at.unwrap_or(rest.len()));
    let (micros, leap) = time(clock, options).ok_or(invalid)?;
    let offset_minutes = match zone {
        "" => None,
        "Z" | "z" => Some(0),
        _ => {
            let (hours, minutes) = zone[1..].split_once(':').ok_or(invalid)?;
            if hours.len() != 2 || minutes.len() != 2 {
                return Err(invalid);
            }
            let (hours, minutes) = (all_digits(hours).ok_or(invalid)?, all_digits(minutes).ok_or(invalid)?);
            if hours > 23 || minutes > 59 {
                return Err(invalid);
            }
            let total = i128::from(hours * 60 + minutes);
            Some(if zone.starts_with('-') { -total } else { total })
        }
    };
    if leap {
        return Err(invalid);
    }
    match (zoned, offset_minutes) {
        (true, None) => Err(Code::ZoneMissing),
        (false, Some(_)) => Err(Code::ZoneForbidden),
        (_, offset) => {
            Ok(Cell::Integer(days(date) * 86_400_000_000 + micros? - offset.unwrap_or(0) * 60_000_000))
        }
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = text.chars().map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    if digits.len() % 2 == 1 {
        return None;
    }
    Some(digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect())
}

/// Bit by bit.
fn from_base64(text: &str) -> Option<Vec<u8>> {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = text.trim_end_matches('=');
    if !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 {
        return None;
    }
    let mut bits = String::new();
    for digit in digits.chars() {
        bits.push_str(&format!("{:06b}", DIGITS.find(digit)?));
    }
    let whole = bits.len() / 8 * 8;
    if bits[whole..].contains('1') {
        return None;
    }
    let byte = |start: usize| u8::from_str_radix(&bits[start..start + 8], 2).unwrap();
    Some((0..whole).step_by(8).map(byte).collect())
}

fn bytes(text: &str, options: &ColumnOptions) -> Result<Vec<u8>, Code> {
    match options.binary {
        BinaryText::Reject => Err(Code::UndeclaredEncoding),
        BinaryText::Utf8 => Ok(text.as_bytes().to_vec()),
        BinaryText::Hex => from_hex(text).ok_or(Code::InvalidEncoding),
        BinaryText::Base64 => from_base64(text).ok_or(Code::InvalidEncoding),
    }
}

/// The value of a column in a row.
pub(super) fn cell(column: &ArrayRef, row: usize) -> Cell {
    if column.is_null(row) {
        return Cell::Null;
    }
    match column.data_type() {
        DataType::Boolean => Cell::Boolean(column.as_boolean().value(row)),
        DataType::Int32 => Cell::Integer(column.as_primitive::<Int32Type>().value(row).into()),
        DataType::Int64 => Cell::Integer(column.as_primitive::<Int64Type>().value(row).into()),
        DataType::Date32 => Cell::Integer(column.as_primitive::<Date32Type>().value(row).into()),
        DataType::Time64(_) => {
            Cell::Integer(column.as_primitive::<Time64MicrosecondType>().value(row).into())
        }
        DataType::Timestamp(_, _) => {
            Cell::Integer(column.as_primitive::<TimestampMicrosecondType>().value(row).into())
        }
        DataType::Decimal128(_, _) => Cell::Integer(column.as_primitive::<Decimal128Type>().value(row)),
        DataType::Float32 => Cell::Bits(f64::from(column.as_primitive::<Float32Type>().value(row)).to_bits()),
        DataType::Float64 => Cell::Bits(column.as_primitive::<Float64Type>().value(row).to_bits()),
        DataType::Utf8 => Cell::Bytes(column.as_string::<i32>().value(row).as_bytes().to_vec()),
        DataType::LargeBinary => Cell::Bytes(column.as_binary::<i64>().value(row).to_vec()),
        DataType::FixedSizeBinary(_) => Cell::Bytes(column.as_fixed_size_binary().value(row).to_vec()),
        DataType::Struct(_) => {
            Cell::Struct(column.as_struct().columns().iter().map(|child| cell(child, row)).collect())
        }
        DataType::List(_) => {
            let values = column.as_list::<i32>().value(row);
            Cell::List((0..values.len()).map(|element| cell(&values, element)).collect())
        }
        DataType::Map(_, _) => {
            let entries = column.as_map().value(row);
            let (keys, values) = (entries.column(0).as_string::<i32>(), entries.column(1));
            Cell::Map(
                (0..entries.len()).map(|entry| (keys.value(entry).to_owned(), cell(values, entry))).collect(),
            )
        }
        other => panic!("no cell of {other}"),
    }
}
