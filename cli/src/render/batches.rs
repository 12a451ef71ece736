//! Arrow batches as rows.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, SchemaRef};
use serde_json::{Value, json};

use crate::render::listing::{Column, Listing, Unit};

/// All rows of batches of one schema. Numbers stay numbers, everything else becomes text.
pub(crate) fn listing(schema: &SchemaRef, batches: &[RecordBatch]) -> anyhow::Result<Listing> {
    let columns = schema
        .fields()
        .iter()
        .map(|field| Column::new(field.name().clone(), unit(field.name(), field.data_type())))
        .collect();
    let mut listing = Listing::new(columns);
    for batch in batches {
        let columns: Vec<Vec<Value>> = batch.columns().iter().map(values).collect::<anyhow::Result<_>>()?;
        for row in 0..batch.num_rows() {
            listing.push(columns.iter().map(|column| column[row].clone()).collect());
        }
    }
    Ok(listing)
}

/// What a column's numbers are, by the endings that all tables of firn use.
fn unit(name: &str, data_type: &DataType) -> Unit {
    if !data_type.is_numeric() {
        return Unit::Plain;
    }
    match name {
        _ if name.ends_with("bytes") => Unit::Bytes,
        _ if name.ends_with("_at_ms") => Unit::Time,
        _ if name.ends_with("_ms") => Unit::Millis,
        "partition" | "start" | "next" => Unit::Id,
        _ if name.ends_with("_id") || name.ends_with("number") || name.ends_with("offset") => Unit::Id,
        _ => Unit::Count,
    }
}

fn values(array: &ArrayRef) -> anyhow::Result<Vec<Value>> {
    match array.data_type() {
        DataType::Boolean => {
            let array = array.as_boolean();
            Ok(array.iter().map(|value| json!(value)).collect())
        }
        DataType::UInt64 => Ok(array.as_primitive::<UInt64Type>().iter().map(|value| json!(value)).collect()),
        data_type if data_type.is_integer() => {
            let array = arrow_cast::cast(array, &DataType::Int64)?;
            Ok(array.as_primitive::<Int64Type>().iter().map(|value| json!(value)).collect())
        }
        data_type if data_type.is_floating() => {
            let array = arrow_cast::cast(array, &DataType::Float64)?;
            Ok(array.as_primitive::<Float64Type>().iter().map(|value| json!(value)).collect())
        }
        _ => texts(array),
    }
}

fn texts(array: &ArrayRef) -> anyhow::Result<Vec<Value>> {
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(array.as_ref(), &options)?;
    (0..array.len())
        .map(|row| {
            if array.is_null(row) {
                return Ok(Value::Null);
            }
            Ok(Value::String(formatter.value(row).try_to_string()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Float64Array, Int32Array, StringArray, UInt64Array};
    use arrow_schema::{Field, Schema};

    use super::*;

    #[test]
    fn numbers_stay_numbers_and_nulls_stay_nulls() {
        let schema = Arc::new(Schema::new(vec![
            Field::new("size_bytes", DataType::UInt64, true),
            Field::new("spec_id", DataType::Int32, true),
            Field::new("share", DataType::Float64, true),
            Field::new("path", DataType::Utf8, true),
        ]));
        let batch = RecordBatch::try_new(
            schema.clone(),
            vec![
                Arc::new(UInt64Array::from(vec![Some(u64::MAX), None])),
                Arc::new(Int32Array::from(vec![Some(-1), None])),
                Arc::new(Float64Array::from(vec![Some(0.5), None])),
                Arc::new(StringArray::from(vec![Some("a/b"), None])),
            ],
        )
        .unwrap();
        let rows: Value = serde_json::from_str(&listing(&schema, &[batch]).unwrap().json()).unwrap();
        assert_eq!(rows[0], json!({"size_bytes": u64::MAX, "spec_id": -1, "share": 0.5, "path": "a/b"}));
        assert_eq!(rows[1], json!({"size_bytes": null, "spec_id": null, "share": null, "path": null}));
    }
}
