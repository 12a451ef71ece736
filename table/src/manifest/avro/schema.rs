//! The schema that a file was written with, as far as decoding needs it.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::cursor::Cursor;
use super::invalid;
use crate::Result;

/// Types may contain each other this deep; Iceberg's manifests need eight.
const DEEPEST: usize = 32;

/// A schema may come to this many types when its named types are written out.
const MOST_TYPES: usize = 100_000;

/// A type. Logical types are left to whoever knows what a field means.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    Text,
    Fixed(usize),
    Array(Arc<Kind>),
    Map(Arc<Kind>),
    Union(Arc<[Kind]>),
    Record(Arc<[Field]>),
}

/// A field of a record.
#[derive(Debug, Clone)]
pub(super) struct Field {
    /// The field id of Iceberg; items of maps that are arrays are found by name alone.
    pub(super) id: Option<i32>,
    pub(super) name: String,
    pub(super) kind: Kind,
}

impl Kind {
    /// The fields, also of a record that may be null; `None` where it is no record.
    pub(super) fn fields(&self) -> Option<&[Field]> {
        match self {
            Self::Record(fields) => Some(fields),
            Self::Union(kinds) => kinds.iter().find_map(Self::fields),
            _ => None,
        }
    }

    /// The field with this id of a record.
    pub(super) fn field(&self, id: i32) -> Option<&Field> {
        self.fields()?.iter().find(|field| field.id == Some(id))
    }

    /// The type of the value that comes next: a union says which of its types it is.
    pub(super) fn actual(&self, cursor: &mut Cursor<'_>) -> Result<&Self> {
        let Self::Union(kinds) = self else {
            return Ok(self);
        };
        let index = cursor.long()?;
        let kind = usize::try_from(index).ok().and_then(|index| kinds.get(index));
        kind.ok_or_else(|| invalid(format!("`{index}` names none of the {} types of a union", kinds.len())))
    }

    /// Passes over a value.
    pub(super) fn skip(&self, cursor: &mut Cursor<'_>) -> Result<()> {
        match self.actual(cursor)? {
            Self::Null => {}
            Self::Boolean => _ = cursor.take(1)?,
            Self::Int | Self::Long => _ = cursor.long()?,
            Self::Float => _ = cursor.take(4)?,
            Self::Double => _ = cursor.take(8)?,
            Self::Bytes | Self::Text => _ = cursor.bytes()?,
            Self::Fixed(size) => _ = cursor.take(*size)?,
            Self::Array(item) => each(cursor, |cursor| item.skip(cursor))?,
            Self::Map(value) => each(cursor, |cursor| {
                cursor.bytes()?;
                value.skip(cursor)
            })?,
            Self::Record(fields) => fields.iter().try_for_each(|field| field.kind.skip(cursor))?,
            // A union stands in no union.
            Self::Union(_) => return Err(invalid("a union stands in a union")),
        }
        Ok(())
    }
}

/// Runs a reader for each item of an array or a map.
pub(super) fn each<'a>(
    cursor: &mut Cursor<'a>,
    mut item: impl FnMut(&mut Cursor<'a>) -> Result<()>,
) -> Result<()> {
    loop {
        let items = cursor.items()?;
        if items == 0 {
            return Ok(());
        }
        for _ in 0..items {
            item(cursor)?;
        }
    }
}

/// Parses the text of a schema.
pub(super) fn parse(text: &[u8]) -> Result<Kind> {
    let json: Value = serde_json::from_slice(text)
        .map_err(|e| invalid("the schema of the file is not JSON").with_source(e))?;
    Ok(Parser::default().kind(&json, 0)?.0)
}

/// A type with the number of types that it consists of.
type Weighed = (Kind, usize);

#[derive(Default)]
struct Parser {
    /// The named types that are complete, by full and by short name.
    named: HashMap<String, Weighed>,
}

impl Parser {
    fn kind(&mut self, json: &Value, depth: usize) -> Result<Weighed> {
        if depth > DEEPEST {
            return Err(invalid(format!("the schema of the file nests deeper than {DEEPEST} types")));
        }
        let weighed = match json {
            Value::String(name) => self.by_name(name)?,
            Value::Array(kinds) => {
                let (kinds, weight) = self.all(kinds, depth)?;
                (Kind::Union(kinds.into()), weight)
            }
            Value::Object(object) => self.object(object, depth)?,
            other => return Err(invalid(format!("`{other}` is no type of Avro"))),
        };
        if weighed.1 > MOST_TYPES {
            return Err(invalid(format!("the schema of the file has more than {MOST_TYPES} types")));
        }
        Ok(weighed)
    }

    fn by_name(&self, name: &str) -> Result<Weighed> {
        let kind = match name {
            "null" => Kind::Null,
            "boolean" => Kind::Boolean,
            "int" => Kind::Int,
            "long" => Kind::Long,
            "float" => Kind::Float,
            "double" => Kind::Double,
            "bytes" => Kind::Bytes,
            "string" => Kind::Text,
            _ => {
                let known = self.named.get(name).cloned();
                return known.ok_or_else(|| {
                    invalid(format!("type `{name}` is not defined before it is used, or contains itself"))
                });
            }
        };
        Ok((kind, 1))
    }

    fn all(&mut self, kinds: &[Value], depth: usize) -> Result<(Vec<Kind>, usize)> {
        let mut total = 1;
        let mut parsed = Vec::with_capacity(kinds.len());
        for json in kinds {
            let (kind, weight) = self.kind(json, depth + 1)?;
            total += weight;
            parsed.push(kind);
        }
        Ok((parsed, total))
    }

    fn object(&mut self, object: &Map<String, Value>, depth: usize) -> Result<Weighed> {
        let inner = |key: &str| {
            object.get(key).ok_or_else(|| invalid(format!("a type of the file's schema lacks `{key}`")))
        };
        let weighed = match inner("type")? {
            Value::String(name) => match name.as_str() {
                "record" | "error" => self.record(inner("fields")?, depth)?,
                "enum" => (Kind::Int, 1),
                "fixed" => {
                    let size = inner("size")?;
                    let bytes = size.as_u64().and_then(|size| usize::try_from(size).ok());
                    (Kind::Fixed(bytes.ok_or_else(|| invalid(format!("`{size}` is no size")))?), 1)
                }
                "array" => {
                    let (item, weight) = self.kind(inner("items")?, depth + 1)?;
                    return Ok((Kind::Array(Arc::new(item)), weight + 1));
                }
                "map" => {
                    let (value, weight) = self.kind(inner("values")?, depth + 1)?;
                    return Ok((Kind::Map(Arc::new(value)), weight + 1));
                }
                simple => return self.by_name(simple),
            },
            nested => return self.kind(nested, depth + 1),
        };
        self.name(object, &weighed);
        Ok(weighed)
    }

    fn name(&mut self, object: &Map<String, Value>, weighed: &Weighed) {
        let Some(name) = object.get("name").and_then(Value::as_str) else {
            return;
        };
        if let Some(namespace) = object.get("namespace").and_then(Value::as_str) {
            self.named.insert(format!("{namespace}.{name}"), weighed.clone());
        }
        let short = name.rsplit('.').next().unwrap_or(name);
        self.named.insert(short.to_owned(), weighed.clone());
        self.named.insert(name.to_owned(), weighed.clone());
    }

    fn record(&mut self, fields: &Value, depth: usize) -> Result<Weighed> {
        let fields = fields.as_array().ok_or_else(|| invalid("the fields of a record are no list"))?;
        let mut total = 1;
        let mut parsed = Vec::with_capacity(fields.len());
        for field in fields {
            let lacks = |key: &str| invalid(format!("a field of the file's schema lacks `{key}`"));
            let name = field.get("name").and_then(Value::as_str).ok_or_else(|| lacks("name"))?;
            let (kind, weight) = self.kind(field.get("type").ok_or_else(|| lacks("type"))?, depth + 1)?;
            let id = field.get("field-id").and_then(Value::as_i64).and_then(|id| i32::try_from(id).ok());
            total += weight;
            parsed.push(Field { id, name: name.to_owned(), kind });
        }
        Ok((Kind::Record(parsed.into()), total))
    }
}
