//! The schema of tables that hold messages as they are.

use std::sync::Arc;

use iceberg::spec::{NestedField, PrimitiveType, Schema, Type};

use super::SchemaError;
use super::ids::fresh;

/// Optional columns `key` and `value` of type `binary`, as messages of the format `raw` fill them.
pub fn raw_schema() -> Result<Schema, SchemaError> {
    let column = |name| Arc::new(NestedField::optional(0, name, Type::Primitive(PrimitiveType::Binary)));
    fresh(vec![column("key"), column("value")])
}
