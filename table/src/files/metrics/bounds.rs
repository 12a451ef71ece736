//! Bounds of columns: from the Parquet footer, combined over row groups, cut, and in Iceberg's form.

use iceberg::spec::{Datum, PrimitiveType};
use parquet::basic::LogicalType;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;

use crate::files::columns::Leaf;
use crate::files::truncate::{bytes_lower, bytes_upper, string_lower, string_upper};
use crate::{Error, ErrorKind, Result};

/// A bound in the order of its type.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub(super) enum Bound {
    Bool(bool),
    Int(i32),
    Long(i64),
    Unscaled(i128),
    Float(f32),
    Double(f64),
    Bytes(Vec<u8>),
}

impl Bound {
    /// Iceberg's single-value form (specification, appendix D).
    pub(super) fn datum(&self, leaf: &Leaf) -> Result<Datum> {
        let bytes = match self {
            Self::Bool(value) => vec![u8::from(*value)],
            Self::Int(value) => value.to_le_bytes().to_vec(),
            Self::Long(value) => value.to_le_bytes().to_vec(),
            Self::Unscaled(value) => value.to_be_bytes().to_vec(),
            Self::Float(value) => value.to_le_bytes().to_vec(),
            Self::Double(value) => value.to_le_bytes().to_vec(),
            Self::Bytes(value) => value.clone(),
        };
        Datum::try_from_bytes(&bytes, leaf.primitive.clone()).map_err(|cause| {
            Error::new(ErrorKind::Internal, format!("field {}: a bound that its type cannot hold", leaf.id))
                .with_source(cause)
        })
    }
}

/// The bounds of a column of floats.
pub(super) fn float_bounds(leaf: &Leaf, low: f64, high: f64) -> (Bound, Bound) {
    if leaf.primitive == PrimitiveType::Float {
        (Bound::Float(low as f32), Bound::Float(high as f32))
    } else {
        (Bound::Double(low), Bound::Double(high))
    }
}

/// The bounds over all row groups; `None` where there is no value, or a row group does not tell.
pub(super) fn footer_bounds(chunks: &[&ColumnChunkMetaData]) -> Option<(Bound, Bound)> {
    let mut bounds: Option<(Bound, Bound)> = None;
    for chunk in chunks {
        let statistics = chunk.statistics()?;
        let Some((low, high)) = chunk_bounds(chunk, statistics) else {
            let only_nulls = statistics.null_count_opt() == Some(chunk.num_values().cast_unsigned());
            if only_nulls {
                continue;
            }
            return None;
        };
        bounds = Some(match bounds {
            None => (low, high),
            Some((lowest, highest)) => {
                (if low < lowest { low } else { lowest }, if high > highest { high } else { highest })
            }
        });
    }
    bounds
}

fn chunk_bounds(chunk: &ColumnChunkMetaData, statistics: &Statistics) -> Option<(Bound, Bound)> {
    let decimal = matches!(chunk.column_descr().logical_type_ref(), Some(LogicalType::Decimal { .. }));
    match statistics {
        Statistics::Boolean(typed) => Some((Bound::Bool(*typed.min_opt()?), Bound::Bool(*typed.max_opt()?))),
        Statistics::Int32(typed) => {
            let (low, high) = (*typed.min_opt()?, *typed.max_opt()?);
            Some(if decimal {
                (Bound::Unscaled(low.into()), Bound::Unscaled(high.into()))
            } else {
                (Bound::Int(low), Bound::Int(high))
            })
        }
        Statistics::Int64(typed) => {
            let (low, high) = (*typed.min_opt()?, *typed.max_opt()?);
            Some(if decimal {
                (Bound::Unscaled(low.into()), Bound::Unscaled(high.into()))
            } else {
                (Bound::Long(low), Bound::Long(high))
            })
        }
        Statistics::ByteArray(_) | Statistics::FixedLenByteArray(_) => {
            let (low, high) = (statistics.min_bytes_opt()?, statistics.max_bytes_opt()?);
            Some(if decimal {
                (Bound::Unscaled(unscaled(low)?), Bound::Unscaled(unscaled(high)?))
            } else {
                (Bound::Bytes(low.to_vec()), Bound::Bytes(high.to_vec()))
            })
        }
        Statistics::Int96(_) | Statistics::Float(_) | Statistics::Double(_) => None,
    }
}

/// A big-endian two's-complement number of at most 16 bytes.
fn unscaled(bytes: &[u8]) -> Option<i128> {
    let negative = bytes.first()? & 0x80 != 0;
    let mut whole = if negative { [0xff; 16] } else { [0; 16] };
    let start = 16usize.checked_sub(bytes.len())?;
    whole[start..].copy_from_slice(bytes);
    Some(i128::from_be_bytes(whole))
}

/// Cuts the bounds of strings and bytes; there may be no upper bound of that length.
pub(super) fn cut(leaf: &Leaf, low: Bound, high: Bound, length: usize) -> Result<(Bound, Option<Bound>)> {
    let text = |bytes: Vec<u8>| {
        String::from_utf8(bytes).map_err(|cause| {
            Error::new(ErrorKind::Data, format!("field {}: a string that is not UTF-8", leaf.id))
                .with_source(cause)
        })
    };
    Ok(match (&leaf.primitive, low, high) {
        (PrimitiveType::String, Bound::Bytes(low), Bound::Bytes(high)) => (
            Bound::Bytes(string_lower(&text(low)?, length).into_bytes()),
            string_upper(&text(high)?, length).map(|high| Bound::Bytes(high.into_bytes())),
        ),
        (PrimitiveType::Binary | PrimitiveType::Fixed(_), Bound::Bytes(low), Bound::Bytes(high)) => {
            (Bound::Bytes(bytes_lower(&low, length)), bytes_upper(&high, length).map(Bound::Bytes))
        }
        (_, low, high) => (low, Some(high)),
    })
}
