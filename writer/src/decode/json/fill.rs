//! Reads JSON values into columns, each by the rule of its field.

use super::super::column::{Column, Lists, Maps};
use super::super::fault::{Fault, Parsed};
use super::super::plan::{Children, Field};
use super::super::push::{DUPLICATE, NULL, WRONG_TYPE, fault, push_number, push_text, refuse_duplicate_keys};
use super::super::{DecodeOptions, RejectCode, StringValues, UnknownFields};
use super::cursor::Cursor;

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
        children.fill_absent(row)
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
        push_text(field, &text.to_text())
            .map_err(|problem| fault(problem, &field.rule, self.cursor.since(start)))
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
