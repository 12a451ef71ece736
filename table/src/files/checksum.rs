//! An order-independent summary of rows, to compare what a rewrite read with what it wrote.

mod hash;

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

pub(super) use self::hash::leaf_hashes;
use self::hash::{NULL, fold};
use crate::{Error, ErrorKind, Result};

/// An order-independent summary of rows, to compare what a rewrite read with what it wrote. Adding is
/// commutative: batches may come in any order and any size. A value counts by its canonical form, so that a
/// column promoted from int to long or from float to double has the same sum once both sides are read by one
/// schema.
///
/// It finds accidents and is no protection against someone who constructs equal sums.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checksum {
    /// Rows.
    pub rows: u64,
    /// The sum of a hash of each whole row: rows whose values were exchanged among each other differ here
    /// alone. It depends on the order of columns.
    pub row_sum: u64,
    /// By field id, for each column, the inner ones too. The value of a list, map or struct is all that is in
    /// it.
    pub columns: BTreeMap<i32, ColumnChecksum>,
}

/// The part of a [`Checksum`] that belongs to one column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ColumnChecksum {
    /// Values that are not null.
    pub values: u64,
    /// Nulls, where the enclosing struct, list or map is not itself null.
    pub nulls: u64,
    /// The wrapping sum of a hash of each value.
    pub sum: u64,
}

impl ColumnChecksum {
    fn add(&mut self, other: Self) {
        self.values += other.values;
        self.nulls += other.nulls;
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

impl Checksum {
    /// Adds a batch whose fields carry field ids (`PARQUET:field_id`).
    pub fn update(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut rows = vec![0u64; batch.num_rows()];
        for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
            let slots = self.column(field, column, None)?;
            for (row, slot) in rows.iter_mut().zip(slots) {
                *row = fold(*row, slot);
            }
        }
        self.rows += batch.num_rows() as u64;
        self.row_sum = rows.into_iter().fold(self.row_sum, u64::wrapping_add);
        Ok(())
    }

    /// Adds the rows of another summary.
    pub fn merge(&mut self, other: &Self) {
        self.rows += other.rows;
        self.row_sum = self.row_sum.wrapping_add(other.row_sum);
        for (id, column) in &other.columns {
            self.columns.entry(*id).or_default().add(*column);
        }
    }

    /// The first difference, in words, for an error message; `None` where both summaries agree.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<String> {
        if self.rows != other.rows {
            return Some(format!("{} rows against {}", self.rows, other.rows));
        }
        let ids = self.columns.keys().chain(other.columns.keys());
        for id in ids {
            let mine = self.columns.get(id).copied().unwrap_or_default();
            let theirs = other.columns.get(id).copied().unwrap_or_default();
            if mine.nulls != theirs.nulls || mine.values != theirs.values {
                return Some(format!(
                    "field {id}: {} values and {} nulls against {} and {}",
                    mine.values, mine.nulls, theirs.values, theirs.nulls
                ));
            }
            if mine.sum != theirs.sum {
                return Some(format!("field {id}: equal counts and different values"));
            }
        }
        (self.row_sum != other.row_sum)
            .then(|| "equal columns whose values are combined into different rows".to_owned())
    }

    /// Adds a column and returns a hash for each of its slots. `visible` is false where an enclosing value is
    /// null.
    fn column(&mut self, field: &Field, array: &ArrayRef, visible: Option<&NullBuffer>) -> Result<Vec<u64>> {
        let valid = NullBuffer::union(visible, array.logical_nulls().as_ref());
        let hidden = visible.map_or(0, NullBuffer::null_count);
        let empty = valid.as_ref().map_or(0, NullBuffer::null_count);
        let mut added =
            ColumnChecksum { values: (array.len() - empty) as u64, nulls: (empty - hidden) as u64, sum: 0 };
        let mut slots = match array.data_type() {
            DataType::Struct(_) => self.struct_slots(array, valid.as_ref())?,
            DataType::List(element) => {
                let list = array.as_list::<i32>();
                let lists = Lists { offsets: list.offsets(), valid: valid.as_ref() };
                self.list_slots(element, list.values(), &lists)?
            }
            DataType::Map(entries, _) => {
                let map = array.as_map();
                let values: ArrayRef = Arc::new(map.entries().clone());
                self.list_slots(entries, &values, &Lists { offsets: map.offsets(), valid: valid.as_ref() })?
            }
            _ => leaf_hashes(array)?,
        };
        if let Some(valid) = &valid {
            for (index, slot) in slots.iter_mut().enumerate() {
                if valid.is_null(index) {
                    *slot = NULL;
                } else {
                    added.sum = added.sum.wrapping_add(*slot);
                }
            }
        } else {
            added.sum = slots.iter().copied().fold(0, u64::wrapping_add);
        }
        match field_id(field)? {
            Some(id) => self.columns.entry(id).or_default().add(added),
            None if is_leaf(array.data_type()) => return Err(without_id(field)),
            None => {}
        }
        Ok(slots)
    }

    fn struct_slots(&mut self, array: &ArrayRef, valid: Option<&NullBuffer>) -> Result<Vec<u64>> {
        let inner = array.as_struct();
        let mut slots = vec![0u64; array.len()];
        for (field, child) in inner.fields().iter().zip(inner.columns()) {
            for (slot, part) in slots.iter_mut().zip(self.column(field, child, valid)?) {
                *slot = fold(*slot, part);
            }
        }
        Ok(slots)
    }

    fn list_slots(&mut self, element: &Field, values: &ArrayRef, lists: &Lists<'_>) -> Result<Vec<u64>> {
        let (start, end) = lists.range();
        let values = values.slice(start, end - start);
        let hashes = self.column(element, &values, lists.visible_elements().as_ref())?;
        Ok(lists
            .offsets
            .windows(2)
            .map(|bounds| {
                let elements = &hashes[bounds[0] as usize - start..bounds[1] as usize - start];
                elements.iter().fold(fold(0, elements.len() as u64), |hash, element| fold(hash, *element))
            })
            .collect())
    }
}

/// The extents of lists in their array of elements, and which of them are valid.
struct Lists<'a> {
    offsets: &'a OffsetBuffer<i32>,
    valid: Option<&'a NullBuffer>,
}

impl Lists<'_> {
    fn range(&self) -> (usize, usize) {
        let ends = (self.offsets.first(), self.offsets.last());
        (ends.0.map_or(0, |at| *at as usize), ends.1.map_or(0, |at| *at as usize))
    }

    /// False for the elements that null lists leave behind; `None` where there are none.
    fn visible_elements(&self) -> Option<NullBuffer> {
        let valid = self.valid.filter(|valid| valid.null_count() > 0)?;
        let (start, end) = self.range();
        let mut visible = BooleanBufferBuilder::new(end - start);
        for (index, bounds) in self.offsets.windows(2).enumerate() {
            visible.append_n((bounds[1] - bounds[0]) as usize, valid.is_valid(index));
        }
        let nulls = NullBuffer::new(visible.finish());
        (nulls.null_count() > 0).then_some(nulls)
    }
}

fn is_leaf(data_type: &DataType) -> bool {
    !matches!(data_type, DataType::Struct(_) | DataType::List(_) | DataType::Map(_, _))
}

fn field_id(field: &Field) -> Result<Option<i32>> {
    let Some(text) = field.metadata().get(PARQUET_FIELD_ID_META_KEY) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| without_id(field))
}

fn without_id(field: &Field) -> Error {
    Error::new(ErrorKind::Internal, format!("column `{}` has no field id to be summed under", field.name()))
}

#[cfg(test)]
mod tests;
