//! Avro record schemas as Iceberg schemas, by Iceberg's Avro mapping.
//!
//! | Avro | Iceberg |
//! | --- | --- |
//! | `boolean`, `int`, `long`, `float`, `double`, `string`, `bytes` | `boolean`, `int`, `long`, `float`, `double`, `string`, `binary` |
//! | `enum` | `string` |
//! | `fixed` | `fixed(n)`; with `decimal`, `uuid`: as below |
//! | union of `null` and one type, in any order | an optional field |
//! | `date` on `int` | `date` |
//! | `time-millis` on `int`, `time-micros` on `long` | `time` |
//! | `timestamp-millis`, `timestamp-micros` on `long` | `timestamptz`; `timestamp` with `"adjust-to-utc": false` |
//! | `timestamp-nanos` on `long` | `timestamptz_ns`, `timestamp_ns` |
//! | `local-timestamp-millis`, `-micros`, `-nanos` on `long` | `timestamp`, `timestamp_ns` |
//! | `decimal` on `bytes` or `fixed` | `decimal(p, s)` |
//! | `uuid` on `string` or `fixed` of 16 bytes | `uuid` |
//! | `array` | `list` |
//! | `map` | `map<string, V>` |
//! | `record` | `struct` |
//!
//! Other unions, records that hold themselves, and names that stand for nothing are refused with the field's path.
//! Unknown logical types are passed over, as Avro's specification demands. Ids are assigned anew.

use std::collections::HashMap;
use std::sync::Arc;

use iceberg::spec::{
    ListType, MapType, NestedField, NestedFieldRef, PrimitiveType, Schema, StructType, Type,
};
use serde_json::Value;

use super::SchemaError;
use super::ids::fresh;

/// Nesting beyond this is a mistake, and would exhaust the stack.
const MAX_DEPTH: usize = 64;

/// Converts an Avro record schema.
pub(super) fn convert(avro: &Value) -> Result<Schema, SchemaError> {
    let mut converter = Converter { named: HashMap::new(), path: Vec::new() };
    match converter.named_type(avro, "")? {
        Type::Struct(fields) => fresh(fields.fields().to_vec()),
        other => Err(converter.refuse(format!("is {other} in the Avro schema; a table needs a record"))),
    }
}

struct Converter {
    /// Named types by full name; `None` while one is being read.
    named: HashMap<String, Option<Type>>,
    path: Vec<String>,
}

impl Converter {
    fn refuse(&self, reason: impl Into<String>) -> SchemaError {
        let path = if self.path.is_empty() { "(record)".to_owned() } else { self.path.join(".") };
        SchemaError::Unsupported { path, reason: reason.into() }
    }

    /// A field's type and whether it is required.
    fn field_type(&mut self, avro: &Value, namespace: &str) -> Result<(Type, bool), SchemaError> {
        let Value::Array(branches) = avro else {
            return Ok((self.named_type(avro, namespace)?, true));
        };
        let is_null = |branch: &&Value| branch.as_str() == Some("null");
        let others: Vec<&Value> = branches.iter().filter(|branch| !is_null(branch)).collect();
        match others.as_slice() {
            [] => Err(self.refuse("is always null in the Avro schema, so it has no type")),
            [only] => Ok((self.named_type(only, namespace)?, others.len() == branches.len())),
            _ => Err(self.refuse(format!("is a union of {} types; Iceberg has no unions", others.len()))),
        }
    }

    fn named_type(&mut self, avro: &Value, namespace: &str) -> Result<Type, SchemaError> {
        if self.path.len() > MAX_DEPTH {
            return Err(self.refuse(format!("is nested deeper than {MAX_DEPTH} levels")));
        }
        match avro {
            Value::String(name) => self.by_name(name, namespace),
            Value::Object(_) => self.object_type(avro, namespace),
            Value::Array(_) => Err(self.refuse("is a union where a single type is needed")),
            _ => Err(self.refuse(format!("has the type `{avro}`, which is no Avro type"))),
        }
    }

    fn by_name(&self, name: &str, namespace: &str) -> Result<Type, SchemaError> {
        if let Some(primitive) = primitive(name) {
            return Ok(Type::Primitive(primitive));
        }
        let qualified = qualify(name, namespace);
        match self.named.get(&qualified).or_else(|| self.named.get(name)) {
            Some(Some(found)) => Ok(found.clone()),
            Some(None) => Err(self.refuse(format!("is of the record `{qualified}` that it is part of"))),
            None if name == "null" => {
                Err(self.refuse("is always null in the Avro schema, so it has no type"))
            }
            None => Err(self.refuse(format!("has the type `{name}`, which the schema does not define"))),
        }
    }

    fn object_type(&mut self, avro: &Value, namespace: &str) -> Result<Type, SchemaError> {
        match avro.get("type") {
            Some(Value::String(kind)) => match kind.as_str() {
                "record" | "error" => self.record(avro, namespace),
                "enum" => {
                    let (name, _) = self.full_name(avro, namespace)?;
                    self.define(name, Type::Primitive(PrimitiveType::String))
                }
                "fixed" => self.fixed(avro, namespace),
                "array" => {
                    let (element, required) = self.inner("items", "element", avro, namespace)?;
                    let element = NestedField::list_element(0, element, required);
                    Ok(Type::List(ListType::new(Arc::new(element))))
                }
                "map" => {
                    let (value, required) = self.inner("values", "value", avro, namespace)?;
                    let key = NestedField::map_key_element(0, Type::Primitive(PrimitiveType::String));
                    let value = NestedField::map_value_element(1, value, required);
                    Ok(Type::Map(MapType::new(Arc::new(key), Arc::new(value))))
                }
                _ => self.logical(kind, avro, namespace),
            },
            Some(inner @ (Value::Object(_) | Value::Array(_))) => self.named_type(inner, namespace),
            _ => Err(self.refuse("has a type without the attribute `type`")),
        }
    }

    fn inner(
        &mut self,
        attribute: &str,
        name: &str,
        avro: &Value,
        namespace: &str,
    ) -> Result<(Type, bool), SchemaError> {
        let inner =
            avro.get(attribute).ok_or_else(|| self.refuse(format!("lacks the attribute `{attribute}`")))?;
        self.path.push(name.to_owned());
        let converted = self.field_type(inner, namespace)?;
        self.path.pop();
        Ok(converted)
    }

    fn record(&mut self, avro: &Value, namespace: &str) -> Result<Type, SchemaError> {
        let (name, namespace) = self.full_name(avro, namespace)?;
        if self.named.insert(name.clone(), None).is_some() {
            return Err(self.refuse(format!("defines the type `{name}` a second time")));
        }
        let Some(Value::Array(avro_fields)) = avro.get("fields") else {
            return Err(self.refuse("is a record without `fields`"));
        };
        let mut fields: Vec<NestedFieldRef> = Vec::with_capacity(avro_fields.len());
        for field in avro_fields {
            let field = self.record_field(field, &namespace)?;
            if fields.iter().any(|other| other.name == field.name) {
                return Err(self.refuse(format!("has two fields named `{}`", field.name)));
            }
            fields.push(Arc::new(field));
        }
        let record = Type::Struct(StructType::new(fields));
        self.named.insert(name, Some(record.clone()));
        Ok(record)
    }

    fn record_field(&mut self, avro: &Value, namespace: &str) -> Result<NestedField, SchemaError> {
        let Some(name) = avro.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()) else {
            return Err(self.refuse("has a field without a name"));
        };
        self.path.push(name.to_owned());
        let avro_type = avro.get("type").ok_or_else(|| self.refuse("lacks the attribute `type`"))?;
        let (field_type, required) = self.field_type(avro_type, namespace)?;
        self.path.pop();
        let field = NestedField::new(0, name, field_type, required);
        Ok(match avro.get("doc").and_then(Value::as_str) {
            Some(doc) => field.with_doc(doc),
            None => field,
        })
    }

    fn fixed(&mut self, avro: &Value, namespace: &str) -> Result<Type, SchemaError> {
        let size = avro.get("size").and_then(Value::as_u64).filter(|size| *size > 0);
        let size = size.ok_or_else(|| self.refuse("is fixed without a positive `size`"))?;
        let converted = match logical_type(avro) {
            Some("decimal") => self.decimal(avro)?,
            Some("uuid") if size == 16 => PrimitiveType::Uuid,
            _ => PrimitiveType::Fixed(size),
        };
        let (name, _) = self.full_name(avro, namespace)?;
        self.define(name, Type::Primitive(converted))
    }

    fn logical(&mut self, kind: &str, avro: &Value, namespace: &str) -> Result<Type, SchemaError> {
        let zoned = avro.get("adjust-to-utc").and_then(Value::as_bool) != Some(false);
        Ok(Type::Primitive(match (kind, logical_type(avro)) {
            ("int", Some("date")) => PrimitiveType::Date,
            ("int", Some("time-millis")) | ("long", Some("time-micros")) => PrimitiveType::Time,
            ("long", Some("timestamp-millis" | "timestamp-micros")) if zoned => PrimitiveType::Timestamptz,
            ("long", Some("timestamp-millis" | "timestamp-micros")) => PrimitiveType::Timestamp,
            ("long", Some("timestamp-nanos")) if zoned => PrimitiveType::TimestamptzNs,
            ("long", Some("timestamp-nanos" | "local-timestamp-nanos")) => PrimitiveType::TimestampNs,
            ("long", Some("local-timestamp-millis" | "local-timestamp-micros")) => PrimitiveType::Timestamp,
            ("string", Some("uuid")) => PrimitiveType::Uuid,
            ("bytes", Some("decimal")) => self.decimal(avro)?,
            _ => return self.by_name(kind, namespace),
        }))
    }

    fn decimal(&self, avro: &Value) -> Result<PrimitiveType, SchemaError> {
        let number = |name: &str| avro.get(name).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
        let scale = if avro.get("scale").is_some() { number("scale") } else { Some(0) };
        match (number("precision"), scale) {
            (Some(precision @ 1..=38), Some(scale)) if scale <= precision => {
                Ok(PrimitiveType::Decimal { precision, scale })
            }
            _ => {
                Err(self
                    .refuse("is a decimal that Iceberg cannot hold: precision 1 to 38, scale 0 to precision"))
            }
        }
    }

    fn define(&mut self, name: String, converted: Type) -> Result<Type, SchemaError> {
        if self.named.insert(name.clone(), Some(converted.clone())).is_some() {
            return Err(self.refuse(format!("defines the type `{name}` a second time")));
        }
        Ok(converted)
    }

    /// The full name of a named type, and the namespace within it.
    fn full_name(&self, avro: &Value, namespace: &str) -> Result<(String, String), SchemaError> {
        let name = avro.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| self.refuse("has a named type without a name"))?;
        let namespace = avro.get("namespace").and_then(Value::as_str).unwrap_or(namespace);
        let full = qualify(name, namespace);
        let inner = full.rsplit_once('.').map_or("", |(namespace, _)| namespace).to_owned();
        Ok((full, inner))
    }
}

fn qualify(name: &str, namespace: &str) -> String {
    if name.contains('.') || namespace.is_empty() { name.to_owned() } else { format!("{namespace}.{name}") }
}

fn logical_type(avro: &Value) -> Option<&str> {
    avro.get("logicalType").and_then(Value::as_str)
}

fn primitive(name: &str) -> Option<PrimitiveType> {
    Some(match name {
        "boolean" => PrimitiveType::Boolean,
        "int" => PrimitiveType::Int,
        "long" => PrimitiveType::Long,
        "float" => PrimitiveType::Float,
        "double" => PrimitiveType::Double,
        "string" => PrimitiveType::String,
        "bytes" => PrimitiveType::Binary,
        _ => return None,
    })
}
