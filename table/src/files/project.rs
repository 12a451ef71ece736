//! Arrays of one schema made into arrays of another: fields chosen by id, types promoted, what is absent
//! filled in.
//!
//! A [`Plan`] is made once for a file and applied to each of its batches. Structs, lists and maps are put
//! together anew from the same buffers; values are copied only where their type changes.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, ListArray, MapArray, RecordBatch, RecordBatchOptions, StructArray, UInt32Array,
    new_null_array,
};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, SchemaRef, TimeUnit};
use arrow_select::take::take;
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use crate::{Error, ErrorKind, Result};

/// How an array becomes one of another type.
#[derive(Debug)]
pub(super) enum Plan {
    /// It is one already.
    Keep,
    /// Its values are promoted.
    Cast(DataType),
    /// Its fields are chosen.
    Struct(Fields, Vec<Child>),
    /// Its elements change.
    List(FieldRef, Box<Plan>),
    /// Its entries, which are a struct of key and value, change.
    Map(FieldRef, Box<Plan>),
}

/// Where a field of the result comes from.
#[derive(Debug)]
pub(super) enum Child {
    /// The source's field of this index.
    From(usize, Plan),
    /// The same value everywhere: an array of length 1.
    Constant(ArrayRef),
}

/// Gives the value of a field that the source does not have, as an array of length 1.
pub(super) type Missing<'a> = dyn Fn(&Field) -> Result<ArrayRef> + 'a;

/// Plans the fields of a struct or schema, matching by field id. What has no id in the source is not seen.
pub(super) fn plan_fields(source: &Fields, target: &Fields, missing: &Missing<'_>) -> Result<Vec<Child>> {
    target
        .iter()
        .map(|wanted| {
            let id = field_id(wanted);
            match source.iter().position(|field| id.is_some() && field_id(field) == id) {
                Some(index) => Ok(Child::From(index, plan_type(source[index].data_type(), wanted, missing)?)),
                None => missing(wanted).map(Child::Constant),
            }
        })
        .collect()
}

/// The field id that a field's metadata carries.
pub(super) fn field_id(field: &Field) -> Option<i32> {
    field.metadata().get(PARQUET_FIELD_ID_META_KEY)?.parse().ok()
}

fn plan_type(source: &DataType, wanted: &Field, missing: &Missing<'_>) -> Result<Plan> {
    match (source, wanted.data_type()) {
        (DataType::Struct(from), DataType::Struct(to)) => {
            Ok(Plan::Struct(to.clone(), plan_fields(from, to, missing)?))
        }
        (DataType::List(from), DataType::List(to)) => {
            Ok(Plan::List(Arc::clone(to), Box::new(plan_type(from.data_type(), to, missing)?)))
        }
        (DataType::Map(from, _), DataType::Map(to, _)) => {
            Ok(Plan::Map(Arc::clone(to), Box::new(plan_entries(from, to, missing)?)))
        }
        (from, to) if from == to => Ok(Plan::Keep),
        (from, to) if promotes(from, to) => Ok(Plan::Cast(to.clone())),
        (from, to) => Err(Error::new(
            ErrorKind::Unsupported,
            format!("column `{}` is stored as `{from}`, which cannot be read as `{to}`", wanted.name()),
        )),
    }
}

/// Key and value are told by their place, whatever their names and ids.
fn plan_entries(source: &Field, target: &Field, missing: &Missing<'_>) -> Result<Plan> {
    let (DataType::Struct(from), DataType::Struct(to)) = (source.data_type(), target.data_type()) else {
        return Err(Error::new(
            ErrorKind::Data,
            format!("column `{}` is a map without entries", target.name()),
        ));
    };
    if from.len() != 2 || to.len() != 2 {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("column `{}` is stored as a map without keys or without values", target.name()),
        ));
    }
    let children = from
        .iter()
        .zip(to)
        .enumerate()
        .map(|(index, (from, to))| Ok(Child::From(index, plan_type(from.data_type(), to, missing)?)))
        .collect::<Result<Vec<_>>>()?;
    Ok(Plan::Struct(to.clone(), children))
}

/// Whether each value of one type has exactly one of the other: Iceberg's promotions, and the forms in which
/// other writers store a type.
fn promotes(from: &DataType, to: &DataType) -> bool {
    use DataType::{
        Binary, BinaryView, Date32, Decimal128, FixedSizeBinary, Float32, Float64, Int8, Int16, Int32, Int64,
        LargeBinary, LargeUtf8, Null, Time32, Time64, Timestamp, UInt8, UInt16, UInt32, Utf8, Utf8View,
    };
    match (from, to) {
        (Null, _) => true,
        (Int8 | Int16 | UInt8 | UInt16, Int32) => true,
        (Int8 | Int16 | UInt8 | UInt16 | UInt32 | Int32, Int64) => true,
        (Float32, Float64) => true,
        (Decimal128(precision, scale), Decimal128(wider, same)) => scale == same && precision <= wider,
        (Timestamp(TimeUnit::Millisecond, _), Timestamp(TimeUnit::Microsecond, _)) => true,
        (Timestamp(from, _), Timestamp(to, _)) => from == to,
        (Date32, Timestamp(_, None)) => true,
        (Time32(_), Time64(TimeUnit::Microsecond)) => true,
        (Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView, Utf8 | LargeBinary) => true,
        (FixedSizeBinary(_), LargeBinary) => true,
        (DataType::Dictionary(_, value), to) => value.as_ref() == to || promotes(value, to),
        _ => false,
    }
}

impl Plan {
    /// Applies the plan to an array of the source type.
    pub(super) fn apply(&self, array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Keep => Arc::clone(array),
            Self::Cast(to) => {
                cast_with_options(array, to, &CastOptions { safe: false, ..Default::default() })?
            }
            Self::Struct(fields, children) => {
                let source = array.as_struct();
                let columns = apply_all(children, source.columns(), source.len())?;
                Arc::new(StructArray::try_new_with_length(
                    fields.clone(),
                    columns,
                    source.nulls().cloned(),
                    source.len(),
                )?)
            }
            Self::List(field, plan) => {
                let (_, offsets, values, nulls) = array.as_list::<i32>().clone().into_parts();
                Arc::new(ListArray::try_new(Arc::clone(field), offsets, plan.apply(&values)?, nulls)?)
            }
            Self::Map(field, plan) => {
                let (_, offsets, entries, nulls, sorted) = array.as_map().clone().into_parts();
                let entries = plan.apply(&(Arc::new(entries) as ArrayRef))?.as_struct().clone();
                Arc::new(MapArray::try_new(Arc::clone(field), offsets, entries, nulls, sorted)?)
            }
        })
    }
}

/// Makes the columns of a struct or batch of `rows`.
pub(super) fn apply_all(
    children: &[Child],
    columns: &[ArrayRef],
    rows: usize,
) -> Result<Vec<ArrayRef>, ArrowError> {
    children
        .iter()
        .map(|child| match child {
            Child::From(index, plan) => plan.apply(&columns[*index]),
            Child::Constant(value) if value.is_null(0) => Ok(new_null_array(value.data_type(), rows)),
            Child::Constant(value) => take(value, &UInt32Array::from(vec![0; rows]), None),
        })
        .collect()
}

/// A batch with exactly the given schema. Its columns must be those of the schema, in order and by type;
/// names, metadata and nullability may differ, and where a column is required there may be no null.
pub(super) fn conform(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if Arc::ptr_eq(batch.schema_ref(), schema) || batch.schema_ref() == schema {
        return Ok(batch.clone());
    }
    let fields = batch.schema_ref().fields();
    if fields.len() != schema.fields().len() {
        return Err(Error::new(
            ErrorKind::Internal,
            format!("a batch of {} columns for a schema of {}", fields.len(), schema.fields().len()),
        ));
    }
    let columns = batch
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(column, field)| retype(column, field.data_type()))
        .collect::<Result<Vec<_>, ArrowError>>();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    columns
        .and_then(|columns| RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options))
        .map_err(|cause| {
            let unfit = "a batch does not fit the table's schema: a column has another type, \
                         or a null where it is required";
            Error::new(ErrorKind::Data, unfit).with_source(cause)
        })
}

/// The same values under other names, metadata and nullability.
fn retype(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    match (array.data_type(), to) {
        (from, to) if from == to => Ok(Arc::clone(array)),
        (DataType::Struct(from), DataType::Struct(fields)) if from.len() == fields.len() => {
            let (_, columns, nulls) = array.as_struct().clone().into_parts();
            let columns = columns
                .iter()
                .zip(fields)
                .map(|(column, field)| retype(column, field.data_type()))
                .collect::<Result<Vec<_>, _>>()?;
            Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, array.len())?))
        }
        (DataType::List(_), DataType::List(field)) => {
            let (_, offsets, values, nulls) = array.as_list::<i32>().clone().into_parts();
            let values = retype(&values, field.data_type())?;
            Ok(Arc::new(ListArray::try_new(Arc::clone(field), offsets, values, nulls)?))
        }
        (DataType::Map(_, _), DataType::Map(field, sorted)) => {
            let (_, offsets, entries, nulls, _) = array.as_map().clone().into_parts();
            let entries = retype(&(Arc::new(entries) as ArrayRef), field.data_type())?.as_struct().clone();
            Ok(Arc::new(MapArray::try_new(Arc::clone(field), offsets, entries, nulls, *sorted)?))
        }
        (DataType::Timestamp(from, Some(_)), DataType::Timestamp(unit, Some(_))) if from == unit => {
            cast_with_options(array, to, &CastOptions { safe: false, ..Default::default() })
        }
        // Engines hand out views and other offset widths for the same text and bytes.
        (
            DataType::Utf8View | DataType::LargeUtf8 | DataType::BinaryView | DataType::Binary,
            DataType::Utf8 | DataType::LargeBinary,
        ) => cast_with_options(array, to, &CastOptions { safe: false, ..Default::default() }),
        (from, to) => Err(ArrowError::SchemaError(format!("`{from}` where `{to}` is expected"))),
    }
}
