//! Columns of a schema by their place: leaves in Parquet's order, and arrays inside structs.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, make_array};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType};
use iceberg::spec::{NestedFieldRef, PrimitiveType, Schema, Type};

/// A leaf column of a schema.
#[derive(Debug, Clone)]
pub(super) struct Leaf {
    /// Its field id.
    pub(super) id: i32,
    /// Its type.
    pub(super) primitive: PrimitiveType,
    /// The indices that lead to it through structs; `None` inside a list or map.
    pub(super) path: Option<Vec<usize>>,
}

/// The leaves of a schema in the order in which Parquet numbers them.
pub(super) fn leaves(schema: &Schema) -> Vec<Leaf> {
    let mut found = Vec::new();
    add_fields(schema.as_struct().fields(), Some(&[]), &mut found);
    found
}

fn add_fields(fields: &[NestedFieldRef], parent: Option<&[usize]>, found: &mut Vec<Leaf>) {
    for (index, field) in fields.iter().enumerate() {
        let path = parent.map(|parent| [parent, &[index]].concat());
        add_type(field, path, found);
    }
}

fn add_type(field: &NestedFieldRef, path: Option<Vec<usize>>, found: &mut Vec<Leaf>) {
    match field.field_type.as_ref() {
        Type::Primitive(primitive) => {
            found.push(Leaf { id: field.id, primitive: primitive.clone(), path });
        }
        Type::Struct(inner) => add_fields(inner.fields(), path.as_deref(), found),
        Type::List(list) => add_type(&list.element_field, None, found),
        Type::Map(map) => {
            add_type(&map.key_field, None, found);
            add_type(&map.value_field, None, found);
        }
    }
}

/// The array that a path through structs leads to. A value in a null struct is null.
pub(super) fn column_at(batch: &RecordBatch, path: &[usize]) -> Result<ArrayRef, ArrowError> {
    let missing = || ArrowError::SchemaError(format!("no column at the path {path:?}"));
    let (first, rest) = path.split_first().ok_or_else(missing)?;
    let mut array = Arc::clone(batch.columns().get(*first).ok_or_else(missing)?);
    for index in rest {
        let parent = array.as_struct_opt().ok_or_else(missing)?;
        let child = parent.columns().get(*index).ok_or_else(missing)?;
        array = hide(child, parent.nulls())?;
    }
    Ok(array)
}

/// The array with further nulls.
pub(super) fn hide(array: &ArrayRef, nulls: Option<&NullBuffer>) -> Result<ArrayRef, ArrowError> {
    let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else { return Ok(Arc::clone(array)) };
    let united = NullBuffer::union(Some(nulls), array.nulls());
    Ok(make_array(array.to_data().into_builder().nulls(united).build()?))
}

/// The arrays of all leaves in Parquet's order, without regard to which of their values are visible.
pub(super) fn leaf_arrays(batch: &RecordBatch) -> Vec<ArrayRef> {
    let mut found = Vec::new();
    for column in batch.columns() {
        add_leaf_arrays(column, &mut found);
    }
    found
}

fn add_leaf_arrays(array: &ArrayRef, found: &mut Vec<ArrayRef>) {
    match array.data_type() {
        DataType::Struct(_) => {
            for child in array.as_struct().columns() {
                add_leaf_arrays(child, found);
            }
        }
        DataType::List(_) => add_leaf_arrays(array.as_list::<i32>().values(), found),
        DataType::Map(_, _) => {
            add_leaf_arrays(array.as_map().keys(), found);
            add_leaf_arrays(array.as_map().values(), found);
        }
        _ => found.push(Arc::clone(array)),
    }
}
