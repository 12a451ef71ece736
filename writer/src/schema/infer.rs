//! One schema for a sample of JSON messages, the same in whatever order they arrive.
//!
//! | values seen in a field | column |
//! | --- | --- |
//! | booleans | `boolean` |
//! | integers within 64 bits | `long` |
//! | integers of up to 38 digits, some beyond 64 bits | `decimal(38, 0)` |
//! | decimal numbers, also with integers that a double holds exactly | `double` |
//! | text | `string`; timestamps and UUIDs are not guessed |
//! | objects | `struct` of their fields; arrays: `list` of their elements |
//! | only nulls, empty arrays, empty objects | left out and reported |
//! | anything else together | a conflict: refused, or `string` with JSON text ([`OnConflict`]) |
//!
//! Null goes with everything; every column is optional. Columns stand in the order that fields have in the messages
//! on average. Integers of more than 38 digits fit no exact type and are a conflict by themselves.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use iceberg::spec::{ListType, NestedField, NestedFieldRef, PrimitiveType, Schema, StructType, Type};

use super::ids::fresh;
use super::shape::{Kind, Place, Shape, ShapeReader};
use super::{Conflict, SchemaError};
use crate::decode::{ColumnOptions, Message, StringValues};

/// As deep as messages may be nested to shape a schema.
const MAX_DEPTH: usize = 128;

/// More fields than this are names that are data: such objects would be maps.
const MAX_FIELDS: usize = 10_000;

/// What inference does with a field that has values of kinds without a common type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnConflict {
    /// Refuse the sample.
    #[default]
    Fail,
    /// Make it a string column that holds the JSON text ([`StringValues::JsonText`]).
    String,
}

/// Collects the shape of sample messages. The result does not depend on their order. The rules are those of
/// [`schema`](crate::schema).
#[derive(Debug, Default)]
pub struct Inference {
    shape: Shape,
    messages: u64,
    unusable: u64,
    first_unusable: Option<(Place, String)>,
}

/// A schema inferred from a sample.
#[derive(Debug, Clone)]
pub struct Inferred {
    /// The schema, with fresh ids; every column is optional.
    pub schema: Schema,
    /// Options that the decoder needs for it, by column path, for [`DecodeOptions::columns`](crate::decode::DecodeOptions).
    pub columns: BTreeMap<String, ColumnOptions>,
    /// Fields that were left out, with the reason.
    pub omitted: Vec<(String, String)>,
    /// Messages that shaped the schema.
    pub messages: u64,
    /// Messages that could not be used: no JSON object.
    pub unusable: u64,
    /// The first unusable message: `topic/partition@offset: reason`.
    pub first_unusable: Option<String>,
}

impl Inference {
    /// Takes one message into account. Tombstones tell nothing.
    pub fn observe(&mut self, message: &Message<'_>) {
        let Some(payload) = message.payload else { return };
        let (topic, partition, offset) = (Arc::from(message.topic), message.partition, message.offset);
        let place = Place { topic, partition, offset };
        let read = match std::str::from_utf8(payload) {
            Ok(text) => ShapeReader::read_object(text, MAX_DEPTH, place.clone())
                .map_err(|fault| fault.into_reject().to_string()),
            Err(_) => Err("the value is not UTF-8".to_owned()),
        };
        match read {
            Ok(shape) => {
                self.messages += 1;
                self.shape.merge(shape);
            }
            Err(reason) => {
                self.unusable += 1;
                if self.first_unusable.as_ref().is_none_or(|(first, _)| place < *first) {
                    self.first_unusable = Some((place, reason));
                }
            }
        }
    }

    /// The schema of all messages seen.
    pub fn finish(&self, on_conflict: OnConflict) -> Result<Inferred, SchemaError> {
        let first_unusable = self.first_unusable.as_ref().map(|(place, reason)| format!("{place}: {reason}"));
        if self.messages == 0 {
            let reason = match &first_unusable {
                Some(first) => format!("no message is a JSON object, the first one not ({first})"),
                None => "it has no messages".to_owned(),
            };
            return Err(SchemaError::NoColumns { reason });
        }
        let fields = self.shape.count_fields();
        if fields > MAX_FIELDS {
            let reason = format!("it has {fields} fields, more than {MAX_FIELDS}: give a schema with maps");
            return Err(SchemaError::NoColumns { reason });
        }
        let mut resolver = Resolver { on_conflict, ..Resolver::default() };
        let columns = resolver.fields(&self.shape, "");
        if !resolver.conflicts.is_empty() {
            return Err(SchemaError::Conflicts(resolver.conflicts));
        }
        if columns.is_empty() {
            return Err(SchemaError::NoColumns { reason: "no field has a value".to_owned() });
        }
        Ok(Inferred {
            schema: fresh(columns)?,
            columns: resolver.options,
            omitted: resolver.omitted,
            messages: self.messages,
            unusable: self.unusable,
            first_unusable,
        })
    }
}

/// Turns shapes into types.
#[derive(Debug, Default)]
struct Resolver {
    on_conflict: OnConflict,
    conflicts: Vec<Conflict>,
    options: BTreeMap<String, ColumnOptions>,
    omitted: Vec<(String, String)>,
}

impl Resolver {
    fn fields(&mut self, shape: &Shape, parent: &str) -> Vec<NestedFieldRef> {
        let mut fields: Vec<NestedFieldRef> = Vec::new();
        let mut taken: HashMap<String, &str> = HashMap::new();
        for (name, shape) in shape.ordered_fields() {
            let path = if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") };
            if name.is_empty() || name.contains('.') {
                self.omit(&path, "its name is empty or has a dot, which table columns cannot have");
                continue;
            }
            if let Some(twin) = taken.get(&name.to_lowercase()) {
                self.omit(&path, &format!("its name differs from `{twin}` in case alone"));
                continue;
            }
            if let Some(field_type) = self.field_type(shape, &path) {
                taken.insert(name.to_lowercase(), name);
                fields.push(Arc::new(NestedField::optional(0, name, field_type)));
            }
        }
        fields
    }

    /// The type; `None` where there is none, which is then reported.
    fn field_type(&mut self, shape: &Shape, path: &str) -> Option<Type> {
        let kinds: Vec<Kind> = shape.kinds.keys().copied().collect();
        let primitive = match kinds.as_slice() {
            [] => return self.omit(path, "it is null in all messages"),
            [Kind::Boolean] => PrimitiveType::Boolean,
            [Kind::Long] | [Kind::Long, Kind::LongBeyondDouble] => PrimitiveType::Long,
            [Kind::WideInteger]
            | [Kind::Long, Kind::WideInteger]
            | [Kind::Long, Kind::LongBeyondDouble, Kind::WideInteger] => {
                PrimitiveType::Decimal { precision: 38, scale: 0 }
            }
            [Kind::Double] | [Kind::Long, Kind::Double] => PrimitiveType::Double,
            [Kind::String] => PrimitiveType::String,
            [Kind::List] => return self.list(shape, path),
            [Kind::Object] => return self.object(shape, path),
            _ => return self.conflict(shape, path),
        };
        Some(Type::Primitive(primitive))
    }

    fn list(&mut self, shape: &Shape, path: &str) -> Option<Type> {
        let element = shape.element.as_deref().filter(|element| !element.kinds.is_empty());
        let Some(element) = element else {
            return self.omit(path, "it is an empty list, or one of nulls, in all messages");
        };
        let element = self.field_type(element, &format!("{path}.element"))?;
        Some(Type::List(ListType::new(Arc::new(NestedField::list_element(0, element, false)))))
    }

    fn object(&mut self, shape: &Shape, path: &str) -> Option<Type> {
        if shape.fields.is_empty() {
            return self.omit(path, "it is an empty object in all messages");
        }
        let fields = self.fields(shape, path);
        if fields.is_empty() {
            return self.omit(path, "none of its fields has a type");
        }
        Some(Type::Struct(StructType::new(fields)))
    }

    /// Reports a field that is left out; it has no type.
    fn omit(&mut self, path: &str, reason: &str) -> Option<Type> {
        self.omitted.push((path.to_owned(), reason.to_owned()));
        None
    }

    fn conflict(&mut self, shape: &Shape, path: &str) -> Option<Type> {
        if self.on_conflict == OnConflict::String {
            let options = ColumnOptions { strings: StringValues::JsonText, ..ColumnOptions::default() };
            self.options.insert(path.to_owned(), options);
            return Some(Type::Primitive(PrimitiveType::String));
        }
        let kinds = shape.kinds.iter().map(|(kind, place)| (kind.name(), place.to_string())).collect();
        self.conflicts.push(Conflict { path: path.to_owned(), kinds });
        None
    }
}
