//! The column that holds where a message came from.

use std::sync::Arc;

use iceberg::spec::{ListType, NestedField, PrimitiveType, Schema, StructType, Type};

use super::SchemaError;
use super::ids::fresh;

/// A schema that is yet to be created, with the struct column `_kafka` (topic, partition, offset, timestamp, key,
/// headers) added as its last one. Ids are assigned anew.
pub fn with_kafka_columns(schema: &Schema) -> Result<Schema, SchemaError> {
    let name = crate::decode::KAFKA_COLUMN;
    if schema.field_by_name(name).is_some() {
        let reason = "is a column of the schema already: rename it or do without the metadata".to_owned();
        return Err(SchemaError::Unsupported { path: name.to_owned(), reason });
    }
    let mut fields = schema.as_struct().fields().to_vec();
    fields.push(Arc::new(NestedField::required(0, name, kafka_struct())));
    fresh(fields)
}

fn kafka_struct() -> Type {
    let primitive = |primitive| Type::Primitive(primitive);
    let header = Type::Struct(StructType::new(vec![
        Arc::new(NestedField::required(0, "key", primitive(PrimitiveType::String))),
        Arc::new(NestedField::optional(1, "value", primitive(PrimitiveType::Binary))),
    ]));
    let headers = Type::List(ListType::new(Arc::new(NestedField::list_element(0, header, true))));
    Type::Struct(StructType::new(vec![
        Arc::new(NestedField::required(0, "topic", primitive(PrimitiveType::String))),
        Arc::new(NestedField::required(1, "partition", primitive(PrimitiveType::Int))),
        Arc::new(NestedField::required(2, "offset", primitive(PrimitiveType::Long))),
        Arc::new(NestedField::optional(3, "timestamp", primitive(PrimitiveType::Timestamptz))),
        Arc::new(NestedField::optional(4, "key", primitive(PrimitiveType::Binary))),
        Arc::new(NestedField::optional(5, "headers", headers)),
    ]))
}
