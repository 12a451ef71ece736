//! The table that holds dead letters, and letters as its rows.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, LargeBinaryBuilder, StringBuilder};
use arrow_array::{
    Array, ArrayRef, Int32Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
    TimestampMicrosecondArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use iceberg::spec::{ListType, NestedField, NestedFieldRef, PrimitiveType, Schema, StructType, Type};

use super::{DeadLetter, Origin};
use crate::{Error, ErrorKind, Result};

/// The schema of a table of dead letters. It is not partitioned: letters are few, and files are found by the bounds
/// of topic, partition and offset.
pub fn dead_letter_schema() -> Result<Schema> {
    use PrimitiveType::{Binary, Int, Long, String, Timestamptz};
    let required = |id, name: &str, kind| Arc::new(NestedField::required(id, name, Type::Primitive(kind)));
    let optional = |id, name: &str, kind| Arc::new(NestedField::optional(id, name, Type::Primitive(kind)));
    let header = StructType::new(vec![required(19, "key", String), optional(20, "value", Binary)]);
    let element: NestedFieldRef = Arc::new(NestedField::list_element(18, Type::Struct(header), true));
    Schema::builder()
        .with_fields([
            required(1, "topic", String),
            required(2, "partition", Int),
            required(3, "offset", Long),
            optional(4, "timestamp", Timestamptz),
            optional(5, "key", Binary),
            optional(6, "value", Binary),
            Arc::new(NestedField::optional(7, "headers", Type::List(ListType::new(element)))),
            optional(8, "schema_id", Int),
            required(9, "code", String),
            optional(10, "path", String),
            optional(11, "expected", String),
            optional(12, "found", String),
            optional(13, "reason", String),
            required(14, "writer", String),
            required(15, "table", String),
            optional(16, "topic_id", String),
            required(17, "dead_at", Timestamptz),
        ])
        .build()
        .map_err(Error::from)
}

/// Letters as a batch of the table's Arrow schema.
pub(crate) fn to_batch(schema: &SchemaRef, letters: &[DeadLetter], origin: &Origin) -> Result<RecordBatch> {
    let columns: Result<Vec<ArrayRef>> = schema
        .fields()
        .iter()
        .map(|field| column(field.name(), field.data_type(), letters, origin))
        .collect();
    RecordBatch::try_new(Arc::clone(schema), columns?).map_err(unfit)
}

fn column(name: &str, kind: &DataType, letters: &[DeadLetter], origin: &Origin) -> Result<ArrayRef> {
    let texts = |of: &dyn Fn(&DeadLetter) -> &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(letters.iter().map(of)))
    };
    let some_texts = |of: &dyn Fn(&DeadLetter) -> &str| -> ArrayRef {
        Arc::new(letters.iter().map(|l| Some(of(l)).filter(|text| !text.is_empty())).collect::<StringArray>())
    };
    let same = |text: Option<&str>| -> ArrayRef { Arc::new(StringArray::from(vec![text; letters.len()])) };
    Ok(match name {
        "topic" => texts(&|l| &l.partition.topic),
        "partition" => Arc::new(Int32Array::from_iter_values(letters.iter().map(|l| l.partition.partition))),
        "offset" => Arc::new(Int64Array::from_iter_values(letters.iter().map(|l| l.offset))),
        "timestamp" => times(letters.iter().map(|l| l.timestamp_ms)),
        "key" => bytes(letters.iter().map(|l| l.key.as_deref())),
        "value" => bytes(letters.iter().map(|l| l.value.as_deref())),
        "headers" => headers(kind, letters)?,
        "schema_id" => {
            let mut ids = Int32Builder::new();
            letters.iter().for_each(|l| ids.append_option(l.schema_id));
            Arc::new(ids.finish())
        }
        "code" => texts(&|l| &l.code),
        "path" => some_texts(&|l| &l.path),
        "expected" => some_texts(&|l| &l.expected),
        "found" => some_texts(&|l| &l.found),
        "reason" => some_texts(&|l| &l.reason),
        "writer" => same(Some(&origin.writer)),
        "table" => same(Some(&origin.table)),
        "topic_id" => {
            let id = |l: &DeadLetter| origin.topic_ids.get(&l.partition.topic).map(String::as_str);
            Arc::new(letters.iter().map(id).collect::<StringArray>())
        }
        "dead_at" => times(letters.iter().map(|_| Some(origin.now_ms))),
        // A column that somebody added: optional, or the batch is refused.
        _ => arrow_array::new_null_array(kind, letters.len()),
    })
}

fn times(ms: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    let micros = ms.map(|at| at.and_then(|at| at.checked_mul(1_000)));
    Arc::new(micros.collect::<TimestampMicrosecondArray>().with_timezone("+00:00"))
}

fn bytes<'a>(values: impl Iterator<Item = Option<&'a [u8]>>) -> ArrayRef {
    let mut builder = LargeBinaryBuilder::new();
    values.for_each(|value| builder.append_option(value));
    Arc::new(builder.finish())
}

fn headers(kind: &DataType, letters: &[DeadLetter]) -> Result<ArrayRef> {
    let DataType::List(element) = kind else { return Err(other_table("headers")) };
    let DataType::Struct(fields) = element.data_type() else { return Err(other_table("headers")) };
    let (mut keys, mut values) = (StringBuilder::new(), LargeBinaryBuilder::new());
    for (key, value) in letters.iter().flat_map(|l| &l.headers) {
        keys.append_value(key);
        values.append_option(value.as_deref());
    }
    let columns: Vec<ArrayRef> = vec![Arc::new(keys.finish()), Arc::new(values.finish())];
    let entries = StructArray::try_new(fields.clone(), columns, None).map_err(unfit)?;
    let offsets = OffsetBuffer::from_lengths(letters.iter().map(|l| l.headers.len()));
    let present = NullBuffer::from_iter(letters.iter().map(|l| !l.headers.is_empty()));
    let list = ListArray::try_new(Arc::clone(element), offsets, Arc::new(entries), Some(present));
    Ok(Arc::new(list.map_err(unfit)?) as Arc<dyn Array>)
}

fn unfit(error: ArrowError) -> Error {
    other_table("its columns").with_source(error)
}

pub(super) fn other_table(column: &str) -> Error {
    let message = format!(
        "`{column}` of the table of dead letters is not as firn makes it: letters cannot be kept or read there. Name \
         another table with `dead-letters.table`, which is then made"
    );
    Error::new(ErrorKind::Configuration, message)
}
