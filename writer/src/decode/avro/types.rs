//! A writer's schema, as a table of types that refer to each other by index.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::super::DecodeError;

/// The index of a type.
pub(super) type TypeId = usize;

/// Nesting of the schema's text beyond this is a mistake, and would exhaust the stack.
const MAX_DEPTH: usize = 64;

/// A type of the writer's schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AvroType {
    pub(super) physical: Physical,
    pub(super) logical: Option<Logical>,
}

/// How a value is encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Physical {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
    Fixed(usize),
    Enum(Vec<String>),
    Array(TypeId),
    Map(TypeId),
    Record(Vec<(String, TypeId)>),
    Union(Vec<TypeId>),
}

/// What a value means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Logical {
    Date,
    /// Units of ten to the minus `places` seconds.
    Time {
        places: u32,
    },
    Timestamp {
        places: u32,
        zoned: bool,
    },
    Decimal {
        scale: u32,
    },
    Uuid,
}

/// All types of a schema.
#[derive(Debug)]
pub(super) struct WriterSchema {
    types: Vec<AvroType>,
    /// For each type whether a value may have no bytes.
    empty: Vec<bool>,
    pub(super) root: TypeId,
}

impl WriterSchema {
    /// Reads a record's schema.
    pub(super) fn parse(text: &str) -> Result<Self, DecodeError> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| refuse(format!("is not JSON: {error}")))?;
        let mut parser = Parser { types: Vec::new(), named: HashMap::new(), depth: 0 };
        let root = parser.any(&value, "")?;
        let types = parser.types;
        if !matches!(types[root].physical, Physical::Record(_)) {
            return Err(refuse("is no record, so its values have no fields"));
        }
        let empty = empty(&types);
        Ok(Self { types, empty, root })
    }

    pub(super) fn of(&self, id: TypeId) -> &AvroType {
        &self.types[id]
    }

    /// Whether a value of the type may have no bytes.
    pub(super) fn may_be_empty(&self, id: TypeId) -> bool {
        self.empty[id]
    }

    /// The length of the longest enum symbol.
    pub(super) fn longest_symbol(&self) -> usize {
        let symbols = self.types.iter().filter_map(|each| match &each.physical {
            Physical::Enum(symbols) => Some(symbols),
            _ => None,
        });
        symbols.flatten().map(String::len).max().unwrap_or(0)
    }
}

/// Records are not empty until all their fields are known to be: so a record that holds itself without end, of which
/// there is no value, is none.
fn empty(types: &[AvroType]) -> Vec<bool> {
    let mut empty = vec![false; types.len()];
    loop {
        let before = empty.clone();
        for (id, each) in types.iter().enumerate() {
            empty[id] = match &each.physical {
                Physical::Null | Physical::Fixed(0) => true,
                Physical::Record(fields) => fields.iter().all(|(_, field)| before[*field]),
                _ => false,
            };
        }
        if empty == before {
            return empty;
        }
    }
}

fn refuse(reason: impl Into<String>) -> DecodeError {
    DecodeError::WriterSchema { reason: reason.into() }
}

struct Parser {
    types: Vec<AvroType>,
    /// Named types by full name.
    named: HashMap<String, TypeId>,
    depth: usize,
}

impl Parser {
    fn any(&mut self, schema: &Value, namespace: &str) -> Result<TypeId, DecodeError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(refuse(format!("is nested more than {MAX_DEPTH} levels deep")));
        }
        let id = match schema {
            Value::String(name) => self.by_name(name, namespace)?,
            Value::Array(branches) => self.union(branches, namespace)?,
            Value::Object(_) => self.object(schema, namespace)?,
            other => return Err(refuse(format!("has `{other}` where a type should be"))),
        };
        self.depth -= 1;
        Ok(id)
    }

    fn add(&mut self, physical: Physical, logical: Option<Logical>) -> TypeId {
        self.types.push(AvroType { physical, logical });
        self.types.len() - 1
    }

    fn by_name(&mut self, name: &str, namespace: &str) -> Result<TypeId, DecodeError> {
        if let Some(physical) = primitive(name) {
            return Ok(self.add(physical, None));
        }
        let known = self.named.get(&qualify(name, namespace)).or_else(|| self.named.get(name));
        known.copied().ok_or_else(|| refuse(format!("names the type `{name}` before it defines it")))
    }

    fn union(&mut self, branches: &[Value], namespace: &str) -> Result<TypeId, DecodeError> {
        if branches.is_empty() {
            return Err(refuse("has a union without branches"));
        }
        let ids: Vec<TypeId> =
            branches.iter().map(|branch| self.any(branch, namespace)).collect::<Result<_, _>>()?;
        if ids.iter().any(|id| matches!(self.types[*id].physical, Physical::Union(_))) {
            return Err(refuse("has a union directly in a union"));
        }
        Ok(self.add(Physical::Union(ids), None))
    }

    fn object(&mut self, schema: &Value, namespace: &str) -> Result<TypeId, DecodeError> {
        let kind = match schema.get("type") {
            Some(Value::String(kind)) => kind.as_str(),
            Some(nested) => return self.any(nested, namespace),
            None => return Err(refuse("has a type without `type`")),
        };
        match kind {
            "record" | "error" => self.record(schema, namespace),
            "enum" => {
                let symbols = symbols(schema)?;
                let id = self.add(Physical::Enum(symbols), None);
                self.define(schema, namespace, id).map(|_| id)
            }
            "fixed" => {
                let size = schema.get("size").and_then(Value::as_u64).filter(|size| *size <= 1 << 20);
                let size =
                    size.ok_or_else(|| refuse("has a fixed type whose `size` is not 0 to 1,048,576"))?;
                let physical = Physical::Fixed(size as usize);
                let logical = logical(schema, &physical);
                let id = self.add(physical, logical);
                self.define(schema, namespace, id).map(|_| id)
            }
            "array" => {
                let items = self.part(schema, "items", namespace)?;
                Ok(self.add(Physical::Array(items), None))
            }
            "map" => {
                let values = self.part(schema, "values", namespace)?;
                Ok(self.add(Physical::Map(values), None))
            }
            name => match primitive(name) {
                Some(physical) => {
                    let logical = logical(schema, &physical);
                    Ok(self.add(physical, logical))
                }
                None => self.by_name(name, namespace),
            },
        }
    }

    fn part(&mut self, schema: &Value, name: &str, namespace: &str) -> Result<TypeId, DecodeError> {
        let part = schema.get(name).ok_or_else(|| refuse(format!("has a type without `{name}`")))?;
        self.any(part, namespace)
    }

    fn record(&mut self, schema: &Value, namespace: &str) -> Result<TypeId, DecodeError> {
        let id = self.add(Physical::Record(Vec::new()), None);
        let inner = self.define(schema, namespace, id)?;
        let fields = schema.get("fields").and_then(Value::as_array);
        let fields = fields.ok_or_else(|| refuse("has a record without `fields`"))?;
        let (mut members, mut names) = (Vec::with_capacity(fields.len()), HashSet::new());
        for field in fields {
            let name = field.get("name").and_then(Value::as_str);
            let name = name.ok_or_else(|| refuse("has a field without a name"))?;
            if !names.insert(name) {
                return Err(refuse(format!("has two fields `{name}` in one record")));
            }
            members.push((name.to_owned(), self.part(field, "type", &inner)?));
        }
        self.types[id].physical = Physical::Record(members);
        Ok(id)
    }

    /// Makes a named type known; returns the namespace within it.
    fn define(&mut self, schema: &Value, namespace: &str, id: TypeId) -> Result<String, DecodeError> {
        let name = schema.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| refuse("has a named type without a name"))?;
        let full = qualify(name, schema.get("namespace").and_then(Value::as_str).unwrap_or(namespace));
        let inner = full.rsplit_once('.').map_or("", |(namespace, _)| namespace).to_owned();
        match self.named.insert(full, id) {
            None => Ok(inner),
            Some(_) => Err(refuse(format!("defines the type `{name}` a second time"))),
        }
    }
}

fn symbols(schema: &Value) -> Result<Vec<String>, DecodeError> {
    let symbols = schema.get("symbols").and_then(Value::as_array);
    let texts = symbols.map(|list| list.iter().map(|symbol| symbol.as_str().map(str::to_owned)).collect());
    match texts.flatten() {
        Some(symbols) => Ok(symbols),
        None => Err(refuse("has an enum without a list of symbols")),
    }
}

fn qualify(name: &str, namespace: &str) -> String {
    if name.contains('.') || namespace.is_empty() { name.to_owned() } else { format!("{namespace}.{name}") }
}

fn primitive(name: &str) -> Option<Physical> {
    Some(match name {
        "null" => Physical::Null,
        "boolean" => Physical::Boolean,
        "int" => Physical::Int,
        "long" => Physical::Long,
        "float" => Physical::Float,
        "double" => Physical::Double,
        "bytes" => Physical::Bytes,
        "string" => Physical::String,
        _ => return None,
    })
}

/// The logical type, where it is known and stands on its own type.
fn logical(schema: &Value, physical: &Physical) -> Option<Logical> {
    let name = schema.get("logicalType").and_then(Value::as_str)?;
    let adjusted = schema.get("adjust-to-utc").and_then(Value::as_bool) != Some(false);
    Some(match (name, physical) {
        ("date", Physical::Int) => Logical::Date,
        ("time-millis", Physical::Int) => Logical::Time { places: 3 },
        ("time-micros", Physical::Long) => Logical::Time { places: 6 },
        ("timestamp-millis", Physical::Long) => Logical::Timestamp { places: 3, zoned: adjusted },
        ("timestamp-micros", Physical::Long) => Logical::Timestamp { places: 6, zoned: adjusted },
        ("timestamp-nanos", Physical::Long) => Logical::Timestamp { places: 9, zoned: adjusted },
        ("local-timestamp-millis", Physical::Long) => Logical::Timestamp { places: 3, zoned: false },
        ("local-timestamp-micros", Physical::Long) => Logical::Timestamp { places: 6, zoned: false },
        ("local-timestamp-nanos", Physical::Long) => Logical::Timestamp { places: 9, zoned: false },
        ("uuid", Physical::String | Physical::Fixed(16)) => Logical::Uuid,
        ("decimal", Physical::Bytes | Physical::Fixed(_)) => {
            let number = |name: &str| schema.get(name).and_then(Value::as_u64);
            let scale = if schema.get("scale").is_some() { number("scale")? } else { 0 };
            if number("precision")? < scale.max(1) {
                return None;
            }
            Logical::Decimal { scale: u32::try_from(scale).ok()? }
        }
        _ => return None,
    })
}
