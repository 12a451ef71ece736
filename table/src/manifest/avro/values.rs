//! Values of a field, whichever of the types that fit it was written with. `None` is null.

use std::collections::HashMap;

use iceberg::metadata_columns::get_metadata_field;
use iceberg::spec::{Datum, Schema};

use super::cursor::Cursor;
use super::invalid;
use super::schema::{Field, Kind, each};
use crate::{Error, Result};

/// An integer of at most 64 bits.
pub(super) fn long(cursor: &mut Cursor<'_>, kind: &Kind) -> Result<Option<i64>> {
    match kind.actual(cursor)? {
        Kind::Null => Ok(None),
        Kind::Int | Kind::Long => Ok(Some(cursor.long()?)),
        other => Err(mismatch("an integer", other)),
    }
}

/// An integer of at most 32 bits.
pub(super) fn int(cursor: &mut Cursor<'_>, kind: &Kind) -> Result<Option<i32>> {
    match kind.actual(cursor)? {
        Kind::Null => Ok(None),
        Kind::Int | Kind::Long => Ok(Some(cursor.int()?)),
        other => Err(mismatch("an integer", other)),
    }
}

/// An integer that counts something.
pub(super) fn count<T: TryFrom<i64>>(cursor: &mut Cursor<'_>, kind: &Kind) -> Result<Option<T>> {
    let Some(value) = long(cursor, kind)? else {
        return Ok(None);
    };
    let count = T::try_from(value).map_err(|_| invalid(format!("`{value}` stands where a count must")))?;
    Ok(Some(count))
}

pub(super) fn boolean(cursor: &mut Cursor<'_>, kind: &Kind) -> Result<Option<bool>> {
    match kind.actual(cursor)? {
        Kind::Null => Ok(None),
        Kind::Boolean => Ok(Some(cursor.boolean()?)),
        other => Err(mismatch("a boolean", other)),
    }
}

/// Bytes of any length, a string's too.
pub(super) fn bytes<'a>(cursor: &mut Cursor<'a>, kind: &Kind) -> Result<Option<&'a [u8]>> {
    match kind.actual(cursor)? {
        Kind::Null => Ok(None),
        Kind::Bytes | Kind::Text => Ok(Some(cursor.bytes()?)),
        Kind::Fixed(size) => Ok(Some(cursor.take(*size)?)),
        other => Err(mismatch("bytes", other)),
    }
}

pub(super) fn text(cursor: &mut Cursor<'_>, kind: &Kind) -> Result<Option<String>> {
    let Some(bytes) = bytes(cursor, kind)? else {
        return Ok(None);
    };
    let text = std::str::from_utf8(bytes).map_err(|e| invalid("a string is not UTF-8").with_source(e))?;
    Ok(Some(text.to_owned()))
}

/// A list of values, none of which is null.
pub(super) fn list<'a, T>(
    cursor: &mut Cursor<'a>,
    kind: &Kind,
    read: impl Fn(&mut Cursor<'a>, &Kind) -> Result<Option<T>>,
) -> Result<Option<Vec<T>>> {
    let item = match kind.actual(cursor)? {
        Kind::Null => return Ok(None),
        Kind::Array(item) => item,
        other => return Err(mismatch("a list", other)),
    };
    let mut values = Vec::new();
    each(cursor, |cursor| {
        values.push(read(cursor, item)?.ok_or_else(|| invalid("an item of a list is null"))?);
        Ok(())
    })?;
    Ok(Some(values))
}

/// Counts by column. Negative ones, which some writers have put for unknown, are left out.
pub(super) fn counts(cursor: &mut Cursor<'_>, kind: &Kind) -> Result<HashMap<i32, u64>> {
    let mut counts = HashMap::new();
    pairs(cursor, kind, |column, cursor, kind| {
        let value = long(cursor, kind)?.ok_or_else(|| invalid("a count of a column is null"))?;
        if let Ok(value) = u64::try_from(value) {
            counts.insert(column, value);
        }
        Ok(())
    })?;
    Ok(counts)
}

/// Bounds by column, as values of the types that the columns have in `schema`. Those of other columns are left out.
pub(super) fn bounds(cursor: &mut Cursor<'_>, kind: &Kind, schema: &Schema) -> Result<HashMap<i32, Datum>> {
    let mut bounds = HashMap::new();
    pairs(cursor, kind, |column, cursor, kind| {
        let value = bytes(cursor, kind)?.ok_or_else(|| invalid("a bound of a column is null"))?;
        let Some(field) = schema.field_by_id(column).or_else(|| get_metadata_field(column).ok()) else {
            return Ok(());
        };
        let Some(primitive) = field.field_type.as_primitive_type() else {
            return Err(invalid(format!("column `{}` is nested and has a bound", field.name)));
        };
        let datum = Datum::try_from_bytes(value, primitive.clone())
            .map_err(|e| Error::from(e).context(format_args!("a bound of column `{}`", field.name)))?;
        bounds.insert(column, datum);
        Ok(())
    })?;
    Ok(bounds)
}

/// A map with integers for keys: an array of records of a key and a value.
fn pairs<'a>(
    cursor: &mut Cursor<'a>,
    kind: &Kind,
    mut value: impl FnMut(i32, &mut Cursor<'a>, &Kind) -> Result<()>,
) -> Result<()> {
    let item = match kind.actual(cursor)? {
        Kind::Null => return Ok(()),
        Kind::Array(item) => item,
        other => return Err(mismatch("a map by column", other)),
    };
    let fields = match item.as_ref() {
        Kind::Record(fields) => fields,
        other => return Err(mismatch("a pair of column and value", other)),
    };
    let [Field { name: first, kind: keys, .. }, Field { name: second, kind: values, .. }] = fields.as_ref()
    else {
        return Err(invalid(format!("a pair of column and value has {} fields", fields.len())));
    };
    if (first.as_str(), second.as_str()) != ("key", "value") {
        return Err(invalid(format!("`{first}` and `{second}` stand where `key` and `value` must")));
    }
    each(cursor, |cursor| {
        let column = int(cursor, keys)?.ok_or_else(|| invalid("the key of a pair is null"))?;
        value(column, cursor, values)
    })
}

/// A field that must be there and must not be null.
pub(super) fn required<T>(value: Option<T>, name: &str) -> Result<T> {
    value.ok_or_else(|| invalid(format!("`{name}` is missing in an entry")))
}

pub(super) fn mismatch(expected: &str, found: &Kind) -> Error {
    let found = match found {
        Kind::Null => "null",
        Kind::Boolean => "a boolean",
        Kind::Int | Kind::Long => "an integer",
        Kind::Float | Kind::Double => "a floating-point number",
        Kind::Bytes | Kind::Text | Kind::Fixed(_) => "bytes",
        Kind::Array(_) => "a list",
        Kind::Map(_) => "a map",
        Kind::Union(_) => "a union",
        Kind::Record(_) => "a record",
    };
    invalid(format!("the file's schema has {found} where {expected} must be"))
}
