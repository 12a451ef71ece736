//! Reads JSON values into columns, each by the rule of its field.

use super::super::bytes::{decode_base64, decode_hex, decode_uuid};
use super::super::column::{Column, Lists, Maps};
use super::super::fault::{Fault, Parsed, Problem};
use super::super::number::Number;
use super::super::plan::{Children, Field, Rule};
use super::super::time::{parse_date, parse_time, parse_timestamp};
use super::super::{BinaryText, NumberText, RejectCode, StringValues, TimestampNumbers, TimestampPrecision};
use super::super::{DecodeOptions, UnknownFields};
use super::cursor::Cursor;
use super::text::Text;

const WRONG_TYPE: Problem = Problem::new(RejectCode::WrongType, "the type is not read from such a value");
const NULL: Problem = Problem::new(RejectCode::NullInRequired, "the value is null and the field is required");
const MISSING: Problem = Problem::new(RejectCode::MissingField, "the field is absent and required");
const DUPLICATE: Problem = Problem::new(RejectCode::DuplicateField, "the name occurs twice in one object");
const NO_NUMBER: Problem = Problem::new(RejectCode::InvalidNumber, "the text is not a number of JSON");
const NO_UUID: Problem = Problem::new(RejectCode::InvalidUuid, "the text is not a UUID");
const NO_ENCODING: Problem =
    Problem::new(RejectCode::UndeclaredEncoding, "the encoding of bytes as text is not declared");
const BAD_ENCODING: Problem =
    Problem::new(RejectCode::InvalidEncoding, "the text is not of the declared encoding of bytes");
const WRONG_LENGTH: Problem =
    Problem::new(RejectCode::WrongLength, "the number of bytes is not that of the type");
const NO_UNIT: Problem =
    Problem::new(RejectCode::UndeclaredUnit, "the unit of numbers in this column is not declared");
const TIME_BEYOND: Problem =
    Problem::new(RejectCode::OutOfRange, "the timestamp is beyond the range of the type");
const TIME_DIGITS: Problem =
    Problem::new(RejectCode::PrecisionLost, "the timestamp has more digits than the type");

/// What the fields of one message share.
#[derive(Debug)]
pub(super) struct Filler<'a> {
    pub(super) cursor: Cursor<'a>,
    pub(super) unknown_fields: UnknownFields,
    /// Values that lists and maps may still stand for.
    values_left: usize,
    /// Fields passed over.
    pub(super) unknown: u64,
}

impl<'a> Filler<'a> {
    pub(super) fn new(text: &'a str, options: &DecodeOptions) -> Self {
        Self {
            cursor: Cursor::new(text, options.max_depth),
            unknown_fields: options.unknown_fields,
            values_left: options.max_values,
            unknown: 0,
        }
    }

    /// Reads an object, whose brace is next, into the next row of a struct's children; `row` is its index.
    pub(super) fn object(&mut self, children: &mut Children, row: usize) -> Parsed<()> {
        self.cursor.enter()?;
        if !self.cursor.is_empty(b'}')? {
            let mut previous = None;
            loop {
                self.member(children, row, &mut previous)?;
                if !self.cursor.another(b'}')? {
                    break;
                }
            }
        }
        for field in &mut children.fields {
            if field.column.len() == row {
                push_missing(field)?;
            }
        }
        Ok(())
    }

    fn member(&mut self, children: &mut Children, row: usize, previous: &mut Option<usize>) -> Parsed<()> {
        self.cursor.peek()?;
        let expected = children.expected_after(*previous).filter(|(_, name)| self.cursor.take_name(name));
        let index = match expected {
            Some((index, _)) => index,
            None => {
                let name = self.cursor.name()?.to_text();
                let Some(index) = children.find(&name) else {
                    return self.unknown_member(&name);
                };
                children.learn(*previous, index);
                index
            }
        };
        *previous = Some(index);
        let field = &mut children.fields[index];
        if field.column.len() != row {
            return Err(fault(DUPLICATE, &field.rule, self.cursor.next_value()).in_field(&field.name));
        }
        self.value(field).map_err(|fault| fault.in_field(&field.name))
    }

    #[cold]
    fn unknown_member(&mut self, name: &str) -> Parsed<()> {
        if self.unknown_fields == UnknownFields::Reject {
            let reason = "the table has no such column";
            return Err(Fault::new(RejectCode::UnknownField, reason).in_field(name));
        }
        self.unknown += 1;
        self.cursor.skip().map_err(|fault| fault.in_field(name))
    }

    /// Reads a value into the next place of a field's column.
    fn value(&mut self, field: &mut Field) -> Parsed<()> {
        let first = self.cursor.peek()?;
        if first == b'n' {
            self.cursor.word("null")?;
            if field.required {
                return Err(fault(NULL, &field.rule, "null"));
            }
            field.column.push_null();
            return Ok(());
        }
        match (&mut field.column, first) {
            (Column::Struct(structs), b'{') => {
                let row = structs.validity.len();
                self.object(&mut structs.children, row)?;
                structs.validity.push();
                Ok(())
            }
            (Column::List(lists), b'[') => self.list(lists),
            (Column::Map(maps), b'{') => self.map(maps),
            (_, b'"') => self.text(field),
            (_, b'-' | b'0'..=b'9') => self.number(field),
            (Column::Boolean(values), b't') => self.cursor.word("true").map(|()| values.push(true)),
            (Column::Boolean(values), b'f') => self.cursor.word("false").map(|()| values.push(false)),
            (Column::String(_), _) => self.json_text(field),
            _ => Err(fault(WRONG_TYPE, &field.rule, self.cursor.next_value())),
        }
    }

    fn list(&mut self, lists: &mut Lists) -> Parsed<()> {
        self.cursor.enter()?;
        if !self.cursor.is_empty(b']')? {
            let mut index = 0;
            loop {
                self.count(lists.element.weight)?;
                self.value(&mut lists.element).map_err(|fault| fault.in_element(index))?;
                index += 1;
                if !self.cursor.another(b']')? {
                    break;
                }
            }
        }
        lists.end_list();
        Ok(())
    }

    fn map(&mut self, maps: &mut Maps) -> Parsed<()> {
        self.cursor.enter()?;
        if !self.cursor.is_empty(b'}')? {
            loop {
                self.count(1 + maps.value.weight)?;
                let key = self.cursor.name()?;
                key.append_to(&mut maps.keys.values);
                maps.keys.end_value();
                self.value(&mut maps.value).map_err(|fault| fault.under_key(&key.to_text()))?;
                if !self.cursor.another(b'}')? {
                    break;
                }
            }
        }
        refuse_duplicate_keys(maps)?;
        maps.end_map();
        Ok(())
    }

    fn count(&mut self, values: usize) -> Parsed<()> {
        match self.values_left.checked_sub(values) {
            Some(left) => {
                self.values_left = left;
                Ok(())
            }
            None => Err(Fault::new(
                RejectCode::TooManyValues,
                "lists and maps of the message stand for more values than the limit",
            )),
        }
    }

    fn text(&mut self, field: &mut Field) -> Parsed<()> {
        let start = self.cursor.position();
        let text = self.cursor.string()?;
        if let Column::String(values) = &mut field.column {
            text.append_to(&mut values.values);
            values.end_value();
            return Ok(());
        }
        push_text(field, text).map_err(|problem| fault(problem, &field.rule, self.cursor.since(start)))
    }

    fn number(&mut self, field: &mut Field) -> Parsed<()> {
        let number = self.cursor.number()?;
        push_number(field, number).map_err(|problem| fault(problem, &field.rule, number.text))
    }

    fn json_text(&mut self, field: &mut Field) -> Parsed<()> {
        let start = self.cursor.position();
        match &mut field.column {
            Column::String(values) if field.rule.options.strings == StringValues::JsonText => {
                self.cursor.skip()?;
                values.push(self.cursor.since(start).as_bytes());
                Ok(())
            }
            _ => Err(fault(WRONG_TYPE, &field.rule, self.cursor.next_value())),
        }
    }
}

fn fault(problem: Problem, rule: &Rule, found: &str) -> Box<Fault> {
    Fault::value(problem, rule.type_name.to_string(), found)
}

fn push_missing(field: &mut Field) -> Parsed<()> {
    if field.required {
        return Err(fault(MISSING, &field.rule, "").in_field(&field.name));
    }
    field.column.push_null();
    Ok(())
}

fn refuse_duplicate_keys(maps: &Maps) -> Parsed<()> {
    let entries = maps.open_entries();
    let mut keys: Vec<&[u8]> = entries.map(|entry| maps.keys.value(entry)).collect();
    keys.sort_unstable();
    match keys.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Fault::value(DUPLICATE, "map", "").under_key(&String::from_utf8_lossy(pair[0]))),
        None => Ok(()),
    }
}

/// Text in a column that is not of strings.
fn push_text(field: &mut Field, text: Text<'_>) -> Result<(), Problem> {
    let text = text.to_text();
    match &mut field.column {
        Column::Timestamp(values) => values.push(parse_timestamp(&text, field.rule.clock)?),
        Column::Date(values) => values.push(parse_date(&text)?),
        Column::Time(values) => values.push(parse_time(&text, field.rule.clock)?),
        Column::Uuid(values) => values.push(&decode_uuid(text.as_bytes()).ok_or(NO_UUID)?),
        Column::Binary(values) => {
            decode_bytes(&text, field.rule.options.binary, &mut values.values)?;
            values.end_value();
        }
        Column::Fixed(values) => {
            let mut bytes = Vec::with_capacity(values.width);
            decode_bytes(&text, field.rule.options.binary, &mut bytes)?;
            if bytes.len() != values.width {
                return Err(WRONG_LENGTH);
            }
            values.push(&bytes);
        }
        Column::Int(_) | Column::Long(_) | Column::Float(_) | Column::Double(_) | Column::Decimal(_) => {
            return push_number_text(field, &text);
        }
        _ => return Err(WRONG_TYPE),
    }
    Ok(())
}

fn push_number_text(field: &mut Field, text: &str) -> Result<(), Problem> {
    if field.rule.options.numbers == NumberText::Reject {
        return Err(WRONG_TYPE);
    }
    match Number::prefix(text) {
        Some(number) if number.text.len() == text.len() => push_number(field, number),
        _ => Err(NO_NUMBER),
    }
}

fn decode_bytes(text: &str, encoding: BinaryText, out: &mut Vec<u8>) -> Result<(), Problem> {
    match encoding {
        BinaryText::Reject => Err(NO_ENCODING),
        BinaryText::Base64 => decode_base64(text.as_bytes(), out).ok_or(BAD_ENCODING),
        BinaryText::Hex => decode_hex(text.as_bytes(), out).ok_or(BAD_ENCODING),
        BinaryText::Utf8 => {
            out.extend_from_slice(text.as_bytes());
            Ok(())
        }
    }
}

fn push_number(field: &mut Field, number: Number<'_>) -> Result<(), Problem> {
    let rule = &field.rule;
    match &mut field.column {
        Column::Long(values) => values.push(number.to_i64()?),
        Column::Int(values) => values.push(number.to_i32()?),
        Column::Double(values) => values.push(number.to_f64()?),
        Column::Float(values) => values.push(number.to_f32()?),
        Column::Decimal(values) => values.push(number.to_decimal(rule.precision, rule.scale)?),
        Column::Timestamp(values) => values.push(timestamp(number, rule)?),
        Column::String(values) if rule.options.strings == StringValues::JsonText => {
            values.push(number.text.as_bytes());
        }
        _ => return Err(WRONG_TYPE),
    }
    Ok(())
}

fn timestamp(number: Number<'_>, rule: &Rule) -> Result<i64, Problem> {
    let places = match rule.options.timestamp_numbers {
        TimestampNumbers::Reject => return Err(NO_UNIT),
        TimestampNumbers::Seconds => 0,
        TimestampNumbers::Millis => 3,
        TimestampNumbers::Micros => 6,
        TimestampNumbers::Nanos => 9,
    };
    let scaled = number.to_scaled(i64::from(rule.clock.places) - places).map_err(|_| TIME_BEYOND)?;
    if !scaled.exact && rule.options.timestamp_precision == TimestampPrecision::Exact {
        return Err(TIME_DIGITS);
    }
    i64::try_from(scaled.value).map_err(|_| TIME_BEYOND)
}
