//! Partition tuples.

use iceberg::spec::{Literal, PrimitiveLiteral, PrimitiveType, Struct};

use super::cursor::Cursor;
use super::invalid;
use super::plan::ManifestPlan;
use super::schema::Kind;
use super::values::mismatch;
use crate::Result;

/// A tuple in the order of the manifest's spec. A field that was not written is null.
pub(super) fn decode(cursor: &mut Cursor<'_>, kind: &Kind, plan: &ManifestPlan) -> Result<Struct> {
    let fields = match kind.actual(cursor)? {
        Kind::Record(fields) => fields,
        Kind::Null => return Ok(Struct::empty()),
        other => return Err(mismatch("a partition tuple", other)),
    };
    let mut values: Vec<Option<Literal>> = vec![None; plan.partition.len()];
    for (field, place) in fields.iter().zip(&plan.places) {
        match place {
            Some(place) => values[*place] = value(cursor, &field.kind, &plan.partition[*place])?,
            None => field.kind.skip(cursor)?,
        }
    }
    Ok(Struct::from_iter(values))
}

/// A value as one of `wanted`, which the written type may have been promoted to since.
fn value(cursor: &mut Cursor<'_>, kind: &Kind, wanted: &PrimitiveType) -> Result<Option<Literal>> {
    let kind = kind.actual(cursor)?;
    let literal = match (kind, wanted) {
        (Kind::Null, _) => return Ok(None),
        (Kind::Boolean, PrimitiveType::Boolean) => Literal::bool(cursor.boolean()?),
        (Kind::Int | Kind::Long, PrimitiveType::Int | PrimitiveType::Date) => Literal::int(cursor.int()?),
        (
            Kind::Int | Kind::Long,
            PrimitiveType::Long
            | PrimitiveType::Time
            | PrimitiveType::Timestamp
            | PrimitiveType::Timestamptz
            | PrimitiveType::TimestampNs
            | PrimitiveType::TimestamptzNs,
        ) => Literal::long(cursor.long()?),
        (Kind::Float, PrimitiveType::Float) => Literal::float(f32::from_le_bytes(cursor.array()?)),
        (Kind::Float, PrimitiveType::Double) => {
            Literal::double(f64::from(f32::from_le_bytes(cursor.array()?)))
        }
        (Kind::Double, PrimitiveType::Double) => Literal::double(f64::from_le_bytes(cursor.array()?)),
        (Kind::Text | Kind::Bytes, PrimitiveType::String) => {
            let text = std::str::from_utf8(cursor.bytes()?)
                .map_err(|e| invalid("a partition value is not UTF-8").with_source(e))?;
            Literal::string(text)
        }
        (Kind::Text | Kind::Bytes, _) => of_bytes(cursor.bytes()?, wanted)?,
        (Kind::Fixed(size), _) => of_bytes(cursor.take(*size)?, wanted)?,
        (other, wanted) => return Err(mismatch(&format!("a partition value of type `{wanted}`"), other)),
    };
    Ok(Some(literal))
}

fn of_bytes(bytes: &[u8], wanted: &PrimitiveType) -> Result<Literal> {
    let length = || {
        invalid(format!(
            "a partition value of type `{wanted}` has `{}` bytes: the file is damaged",
            bytes.len()
        ))
    };
    match wanted {
        PrimitiveType::Binary => Ok(Literal::binary(bytes.to_vec())),
        PrimitiveType::Fixed(size) if usize::try_from(*size) == Ok(bytes.len()) => {
            Ok(Literal::fixed(bytes.to_vec()))
        }
        PrimitiveType::Uuid => {
            let bytes: [u8; 16] = bytes.try_into().map_err(|_| length())?;
            Ok(Literal::Primitive(PrimitiveLiteral::UInt128(u128::from_be_bytes(bytes))))
        }
        PrimitiveType::Decimal { .. } if (1..=16).contains(&bytes.len()) => {
            let sign = if bytes[0] & 0x80 == 0 { 0 } else { 0xff };
            let mut wide = [sign; 16];
            wide[16 - bytes.len()..].copy_from_slice(bytes);
            Ok(Literal::Primitive(PrimitiveLiteral::Int128(i128::from_be_bytes(wide))))
        }
        _ => Err(length()),
    }
}
