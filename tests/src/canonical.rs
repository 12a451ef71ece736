//! Values as text that is equal in every language, and a checksum of it: `tests/readers/read.py` tells the forms.

use anyhow::{Context, Result, bail};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use iceberg::spec::{PrimitiveType, Schema, Type};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What all readers must agree on about a column.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnSummary {
    /// Null values.
    pub nulls: u64,
    /// The sum of the CRC-32 of the other values' texts, in decimal: independent of order.
    pub checksum: String,
}

impl ColumnSummary {
    /// The summary of a column with these texts.
    #[must_use]
    pub fn of(texts: impl IntoIterator<Item = Option<String>>) -> Self {
        let (mut nulls, mut sum) = (0, 0);
        for text in texts {
            match text {
                None => nulls += 1,
                Some(text) => sum += u64::from(crc32(text.as_bytes())),
            }
        }
        Self { nulls, checksum: sum.to_string() }
    }
}

/// Adds up the columns of batches.
#[derive(Debug)]
pub struct Checksums {
    columns: Vec<(String, Type, u64, u64)>,
    rows: u64,
}

impl Checksums {
    /// For batches of a schema.
    #[must_use]
    pub fn of(schema: &Schema) -> Self {
        let fields = schema.as_struct().fields().iter();
        Self {
            columns: fields.map(|f| (f.name.clone(), f.field_type.as_ref().clone(), 0, 0)).collect(),
            rows: 0,
        }
    }

    /// Adds a batch.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows += batch.num_rows() as u64;
        for (name, kind, nulls, sum) in &mut self.columns {
            let array = batch.column_by_name(name).with_context(|| format!("no column `{name}`"))?;
            for row in 0..array.len() {
                match text(kind, array, row)? {
                    None => *nulls += 1,
                    Some(text) => *sum += u64::from(crc32(text.as_bytes())),
                }
            }
        }
        Ok(())
    }

    /// Rows, and the columns by name.
    #[must_use]
    pub fn finish(self) -> (u64, std::collections::BTreeMap<String, ColumnSummary>) {
        let summary = |nulls, sum: u64| ColumnSummary { nulls, checksum: sum.to_string() };
        (
            self.rows,
            self.columns.into_iter().map(|(name, _, nulls, sum)| (name, summary(nulls, sum))).collect(),
        )
    }
}

/// The canonical text of a value; `None` for null.
pub fn text(kind: &Type, array: &ArrayRef, row: usize) -> Result<Option<String>> {
    if array.is_null(row) {
        return Ok(None);
    }
    Ok(Some(match kind {
        Type::Primitive(kind) => primitive_text(kind, array, row)?,
        Type::Struct(kind) => {
            let columns = array.as_struct();
            let mut fields = Vec::new();
            for field in kind.fields() {
                let column = columns.column_by_name(&field.name).with_context(|| field.name.clone())?;
                fields.push(format!("{}:{}", field.name, inner(&field.field_type, column, row)?));
            }
            format!("{{{}}}", fields.join(","))
        }
        Type::List(kind) => {
            let values = array.as_list::<i32>().value(row);
            let texts = (0..values.len()).map(|at| inner(&kind.element_field.field_type, &values, at));
            format!("[{}]", texts.collect::<Result<Vec<_>>>()?.join(","))
        }
        Type::Map(kind) => {
            let entries = array.as_map().value(row);
            let (keys, values) = (entries.column(0), entries.column(1));
            let pair = |at| {
                let key = inner(&kind.key_field.field_type, keys, at)?;
                Ok(format!("{key}={}", inner(&kind.value_field.field_type, values, at)?))
            };
            let mut pairs = (0..entries.len()).map(pair).collect::<Result<Vec<String>>>()?;
            pairs.sort();
            format!("{{{}}}", pairs.join(","))
        }
    }))
}

fn inner(kind: &Type, array: &ArrayRef, row: usize) -> Result<String> {
    Ok(text(kind, array, row)?.unwrap_or_else(|| "null".to_owned()))
}

fn primitive_text(kind: &PrimitiveType, array: &ArrayRef, row: usize) -> Result<String> {
    Ok(match kind {
        PrimitiveType::Boolean => array.as_boolean().value(row).to_string(),
        PrimitiveType::Int => array.as_primitive::<Int32Type>().value(row).to_string(),
        PrimitiveType::Long => array.as_primitive::<Int64Type>().value(row).to_string(),
        PrimitiveType::Float => double_text(f64::from(array.as_primitive::<Float32Type>().value(row))),
        PrimitiveType::Double => double_text(array.as_primitive::<Float64Type>().value(row)),
        PrimitiveType::Decimal { .. } => array.as_primitive::<Decimal128Type>().value_as_string(row),
        PrimitiveType::Date => array.as_primitive::<Date32Type>().value(row).to_string(),
        PrimitiveType::Time => array.as_primitive::<Time64MicrosecondType>().value(row).to_string(),
        PrimitiveType::Timestamp | PrimitiveType::Timestamptz => {
            array.as_primitive::<TimestampMicrosecondType>().value(row).to_string()
        }
        PrimitiveType::TimestampNs | PrimitiveType::TimestamptzNs => {
            array.as_primitive::<TimestampNanosecondType>().value(row).to_string()
        }
        PrimitiveType::String => array.as_string::<i32>().value(row).to_owned(),
        PrimitiveType::Uuid => {
            Uuid::from_slice(array.as_fixed_size_binary().value(row))?.hyphenated().to_string()
        }
        PrimitiveType::Fixed(_) => hex(array.as_fixed_size_binary().value(row)),
        PrimitiveType::Binary => match array.as_binary_opt::<i64>() {
            Some(large) => hex(large.value(row)),
            None => hex(array.as_binary_opt::<i32>().context("a binary column")?.value(row)),
        },
        #[allow(unreachable_patterns, reason = "types that a later version of the crate may add")]
        other => bail!("no canonical text for {other}"),
    })
}

fn double_text(value: f64) -> String {
    let bits = if value.is_nan() { 0x7ff8_0000_0000_0000 } else { value.to_bits() };
    format!("{bits:016x}")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The CRC-32 of zip, Ethernet and everyone's standard library.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let step = |mut crc: u32| {
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
        }
        crc
    };
    !bytes.iter().fold(u32::MAX, |crc, byte| step((crc ^ u32::from(*byte)) & 0xFF) ^ (crc >> 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc_is_the_one_that_everybody_has() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32(b""), 0);
    }

    #[test]
    fn doubles_are_their_bits_and_all_nans_are_one() {
        assert_eq!(double_text(1.0), "3ff0000000000000");
        assert_eq!(double_text(-0.0), "8000000000000000");
        assert_eq!(double_text(-f64::NAN), double_text(f64::NAN));
    }
}
