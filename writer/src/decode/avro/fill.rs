//! Reads a datum into columns, in the order of the writer's schema.

use super::super::column::{Column, Lists, Maps};
use super::super::fault::{Fault, Parsed};
use super::super::plan::{Children, Field};
use super::super::push::{NULL, WRONG_TYPE, fault, refuse_duplicate_keys};
use super::super::{RejectCode, UnknownFields};
use super::cursor::Cursor;
use super::program::{Member, Members, Node, Program};
use super::types::TypeId;
use super::value::{Value, push};

/// What the fields of one message share.
#[derive(Debug)]
pub(super) struct Filler<'p, 'a> {
    pub(super) cursor: Cursor<'a>,
    program: &'p Program,
    /// Values that lists and maps may still stand for.
    values_left: usize,
    unknown_fields: UnknownFields,
    /// Fields passed over.
    pub(super) unknown: u64,
}

impl<'p: 'a, 'a> Filler<'p, 'a> {
    pub(super) fn new(
        cursor: Cursor<'a>,
        program: &'p Program,
        max_values: usize,
        unknown_fields: UnknownFields,
    ) -> Self {
        Self { cursor, program, values_left: max_values, unknown_fields, unknown: 0 }
    }

    /// Reads a record into the next row of a struct's children; `row` is its index.
    pub(super) fn record(&mut self, record: &Members, columns: &mut Children, row: usize) -> Parsed<()> {
        self.cursor.enter()?;
        for member in &record.members {
            match member {
                Member::Known(index, node) => {
                    let field = &mut columns.fields[*index];
                    self.value(node, field).map_err(|fault| fault.in_field(&field.name))?;
                }
                Member::Unknown(name, id) => self.unknown_member(name, *id)?,
            }
        }
        if record.incomplete {
            columns.fill_absent(row)?;
        }
        self.cursor.leave();
        Ok(())
    }

    fn unknown_member(&mut self, name: &str, id: TypeId) -> Parsed<()> {
        if self.unknown_fields == UnknownFields::Reject {
            let reason = "the table has no such column";
            return Err(Fault::new(RejectCode::UnknownField, reason).in_field(name));
        }
        self.unknown += 1;
        self.program.writer.skip(id, &mut self.cursor).map_err(|fault| fault.in_field(name))
    }

    /// Reads a value into the next place of a field's column.
    fn value(&mut self, node: &Node, field: &mut Field) -> Parsed<()> {
        match (node, &mut field.column) {
            (Node::Leaf(id), _) => self.leaf(*id, field),
            (Node::Union(branches), _) => {
                let branch = self.cursor.index(branches.len())?;
                self.value(&branches[branch], field)
            }
            (Node::Struct(record), Column::Struct(structs)) => {
                let row = structs.validity.len();
                self.record(record, &mut structs.children, row)?;
                structs.validity.push();
                Ok(())
            }
            (Node::List(items, node), Column::List(lists)) => self.list(*items, node, lists),
            (Node::Map(node), Column::Map(maps)) => self.map(node, maps),
            // A node is made for its column.
            (Node::Struct(_) | Node::List(..) | Node::Map(_), _) => {
                Err(fault(WRONG_TYPE, &field.rule, "a nested value"))
            }
        }
    }

    fn leaf(&mut self, id: TypeId, field: &mut Field) -> Parsed<()> {
        match Value::read(self.program.writer.of(id), &mut self.cursor)? {
            Value::Null if field.required => Err(fault(NULL, &field.rule, "null")),
            Value::Null => {
                field.column.push_null();
                Ok(())
            }
            value => push(field, value).map_err(|problem| fault(problem, &field.rule, &value.to_string())),
        }
    }

    fn list(&mut self, items: TypeId, node: &Node, lists: &mut Lists) -> Parsed<()> {
        self.cursor.enter()?;
        let may_be_empty = self.program.writer.may_be_empty(items);
        let mut index = 0;
        loop {
            let count = self.cursor.block(may_be_empty)?;
            if count == 0 {
                break;
            }
            for _ in 0..count {
                self.count(lists.element.weight)?;
                self.value(node, &mut lists.element).map_err(|fault| fault.in_element(index))?;
                index += 1;
            }
        }
        self.cursor.leave();
        lists.end_list();
        Ok(())
    }

    fn map(&mut self, node: &Node, maps: &mut Maps) -> Parsed<()> {
        self.cursor.enter()?;
        loop {
            // A key has its length, so no entry is without bytes.
            let count = self.cursor.block(false)?;
            if count == 0 {
                break;
            }
            for _ in 0..count {
                self.count(1 + maps.value.weight)?;
                let key = self.cursor.text()?;
                maps.keys.push(key.as_bytes());
                self.value(node, &mut maps.value).map_err(|fault| fault.under_key(key))?;
            }
        }
        self.cursor.leave();
        refuse_duplicate_keys(maps)?;
        maps.end_map();
        Ok(())
    }

    fn count(&mut self, values: usize) -> Parsed<()> {
        self.values_left = self.values_left.checked_sub(values).ok_or_else(|| {
            let reason = "lists and maps of the message stand for more values than the limit";
            Fault::new(RejectCode::TooManyValues, reason)
        })?;
        Ok(())
    }
}
