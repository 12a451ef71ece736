//! Structs, lists and maps under construction.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, ListArray, MapArray, StringArray, StructArray};
use arrow_schema::{ArrowError, DataType, FieldRef, Fields};

use super::super::plan::{Children, Field};
use super::values::{Bytes, Validity, take_offsets};

#[derive(Debug)]
pub(crate) struct Structs {
    pub(crate) children: Children,
    pub(crate) validity: Validity,
}

impl Structs {
    pub(super) fn push_null(&mut self) {
        for child in &mut self.children.fields {
            child.column.push_null();
        }
        self.validity.push_null();
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        for child in &mut self.children.fields {
            child.column.truncate(len);
        }
        self.validity.truncate(len);
    }

    pub(super) fn finish(&mut self, fields: &Fields) -> Result<StructArray, ArrowError> {
        let len = self.validity.len();
        let arrays = self.children.finish(fields)?;
        StructArray::try_new_with_length(fields.clone(), arrays, self.validity.finish(), len)
    }
}

#[derive(Debug)]
pub(crate) struct Lists {
    ends: Vec<i32>,
    pub(crate) element: Field,
    pub(super) validity: Validity,
}

impl Lists {
    pub(crate) fn new(element: Field) -> Self {
        Self { ends: vec![0], element, validity: Validity::default() }
    }

    /// The elements added since the last list are one. A batch holds fewer elements than an offset can count.
    pub(crate) fn end_list(&mut self) {
        self.ends.push(self.element.column.len() as i32);
        self.validity.push();
    }

    pub(super) fn push_null(&mut self) {
        self.ends.push(self.element.column.len() as i32);
        self.validity.push_null();
    }

    pub(super) fn truncate(&mut self, len: usize) {
        if len < self.ends.len() {
            self.ends.truncate(len + 1);
            self.element.column.truncate(self.ends[len] as usize);
            self.validity.truncate(len);
        }
    }

    pub(super) fn finish(&mut self, element: &FieldRef) -> Result<ListArray, ArrowError> {
        let values = self.element.column.finish(element.data_type())?;
        ListArray::try_new(Arc::clone(element), take_offsets(&mut self.ends), values, self.validity.finish())
    }
}

#[derive(Debug)]
pub(crate) struct Maps {
    ends: Vec<i32>,
    pub(crate) keys: Bytes<i32>,
    pub(crate) value: Field,
    pub(super) validity: Validity,
}

impl Maps {
    pub(crate) fn new(value: Field) -> Self {
        Self { ends: vec![0], keys: Bytes::default(), value, validity: Validity::default() }
    }

    /// How many entries the map under construction has.
    pub(crate) fn open_entries(&self) -> Range<usize> {
        let start = self.ends.last().map_or(0, |end| *end as usize);
        start..self.keys.validity.len()
    }

    /// The entries added since the last map are one.
    pub(crate) fn end_map(&mut self) {
        self.ends.push(self.value.column.len() as i32);
        self.validity.push();
    }

    pub(super) fn push_null(&mut self) {
        self.ends.push(self.value.column.len() as i32);
        self.validity.push_null();
    }

    pub(super) fn truncate(&mut self, len: usize) {
        if len < self.ends.len() {
            self.ends.truncate(len + 1);
            let entries = self.ends[len] as usize;
            self.keys.truncate(entries);
            self.value.column.truncate(entries);
            self.validity.truncate(len);
        }
    }

    pub(super) fn finish(&mut self, entries: &FieldRef) -> Result<MapArray, ArrowError> {
        let DataType::Struct(fields) = entries.data_type() else {
            return Err(ArrowError::SchemaError(format!(
                "map entries are written as {}",
                entries.data_type()
            )));
        };
        let (offsets, values, nulls) = self.keys.finish();
        let keys: ArrayRef = Arc::new(StringArray::try_new(offsets, values, nulls)?);
        let values = self.value.column.finish(fields[1].data_type())?;
        let structs = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
        let ends = take_offsets(&mut self.ends);
        MapArray::try_new(Arc::clone(entries), ends, structs, self.validity.finish(), false)
    }
}
