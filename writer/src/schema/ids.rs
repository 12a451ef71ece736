//! Field ids for schemas that are yet to be created.

use std::sync::Arc;

use iceberg::spec::{ListType, MapType, NestedField, NestedFieldRef, Schema, StructType, Type};

use super::SchemaError;

/// A schema of these fields with ids from 1 on: those of one level before those of the levels below, as Iceberg assigns them.
pub(super) fn fresh(fields: Vec<NestedFieldRef>) -> Result<Schema, SchemaError> {
    let mut next = 1;
    let fields = renumber(&fields, &mut next);
    Schema::builder().with_fields(fields).build().map_err(|error| SchemaError::Invalid {
        what: "the schema".to_owned(),
        reason: error.message().to_owned(),
    })
}

fn renumber(fields: &[NestedFieldRef], next: &mut i32) -> Vec<NestedFieldRef> {
    let ids: Vec<i32> = fields.iter().map(|_| take(next)).collect();
    fields.iter().zip(ids).map(|(field, id)| renamed(field, id, next)).collect()
}

fn renamed(field: &NestedField, id: i32, next: &mut i32) -> NestedFieldRef {
    let mut field = field.clone();
    field.id = id;
    field.field_type = Box::new(renumber_type(&field.field_type, next));
    Arc::new(field)
}

fn renumber_type(field_type: &Type, next: &mut i32) -> Type {
    match field_type {
        Type::Primitive(_) => field_type.clone(),
        Type::Struct(fields) => Type::Struct(StructType::new(renumber(fields.fields(), next))),
        Type::List(list) => {
            let id = take(next);
            Type::List(ListType::new(renamed(&list.element_field, id, next)))
        }
        Type::Map(map) => {
            let (key, value) = (take(next), take(next));
            Type::Map(MapType::new(
                renamed(&map.key_field, key, next),
                renamed(&map.value_field, value, next),
            ))
        }
    }
}

fn take(next: &mut i32) -> i32 {
    *next += 1;
    *next - 1
}
