//! The Parquet schema of an Iceberg schema, as Java's `TypeToMessageType` makes it (specification, appendix
//! A).

use std::sync::Arc;

use iceberg::spec::{NestedField, NestedFieldRef, PrimitiveType, Schema, Type};
use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::{SchemaDescriptor, Type as ParquetType, TypePtr};

/// The largest precision of a decimal that fits 32 bits.
const INT32_PRECISION: u32 = 9;
/// The largest precision of a decimal that fits 64 bits.
const INT64_PRECISION: u32 = 18;

/// Builds the schema; field ids stand on every field.
pub(super) fn parquet_schema(schema: &Schema) -> Result<SchemaDescriptor> {
    let fields = group_fields(schema.as_struct().fields())?;
    let root = ParquetType::group_type_builder("table").with_fields(fields).build()?;
    Ok(SchemaDescriptor::new(Arc::new(root)))
}

fn group_fields(fields: &[NestedFieldRef]) -> Result<Vec<TypePtr>> {
    fields.iter().map(|field| field_type(field, &field.name)).collect()
}

fn field_type(field: &NestedField, name: &str) -> Result<TypePtr> {
    let repetition = if field.required { Repetition::REQUIRED } else { Repetition::OPTIONAL };
    let group = |logical: Option<LogicalType>, fields: Vec<TypePtr>| {
        ParquetType::group_type_builder(name)
            .with_repetition(repetition)
            .with_id(Some(field.id))
            .with_logical_type(logical)
            .with_fields(fields)
            .build()
            .map(Arc::new)
    };
    match field.field_type.as_ref() {
        Type::Primitive(primitive) => primitive_type(primitive, name, field.id, repetition),
        Type::Struct(inner) => group(None, group_fields(inner.fields())?),
        Type::List(list) => {
            let element = field_type(&list.element_field, "element")?;
            group(Some(LogicalType::List), vec![repeated("list", vec![element])?])
        }
        Type::Map(map) => {
            let key = field_type(&map.key_field, "key")?;
            let value = field_type(&map.value_field, "value")?;
            group(Some(LogicalType::Map), vec![repeated("key_value", vec![key, value])?])
        }
    }
}

fn repeated(name: &str, fields: Vec<TypePtr>) -> Result<TypePtr> {
    ParquetType::group_type_builder(name)
        .with_repetition(Repetition::REPEATED)
        .with_fields(fields)
        .build()
        .map(Arc::new)
}

fn primitive_type(primitive: &PrimitiveType, name: &str, id: i32, repetition: Repetition) -> Result<TypePtr> {
    let timestamp = |is_adjusted_to_u_t_c, unit| {
        (Physical::INT64, Some(LogicalType::Timestamp { is_adjusted_to_u_t_c, unit }))
    };
    let (physical, logical) = match primitive {
        PrimitiveType::Boolean => (Physical::BOOLEAN, None),
        PrimitiveType::Int => (Physical::INT32, None),
        PrimitiveType::Long => (Physical::INT64, None),
        PrimitiveType::Float => (Physical::FLOAT, None),
        PrimitiveType::Double => (Physical::DOUBLE, None),
        PrimitiveType::Date => (Physical::INT32, Some(LogicalType::Date)),
        PrimitiveType::Time => {
            (Physical::INT64, Some(LogicalType::Time { is_adjusted_to_u_t_c: false, unit: TimeUnit::MICROS }))
        }
        PrimitiveType::Timestamp => timestamp(false, TimeUnit::MICROS),
        PrimitiveType::Timestamptz => timestamp(true, TimeUnit::MICROS),
        PrimitiveType::TimestampNs => timestamp(false, TimeUnit::NANOS),
        PrimitiveType::TimestamptzNs => timestamp(true, TimeUnit::NANOS),
        PrimitiveType::String => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        PrimitiveType::Binary => (Physical::BYTE_ARRAY, None),
        PrimitiveType::Uuid => (Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Uuid)),
        PrimitiveType::Fixed(_) => (Physical::FIXED_LEN_BYTE_ARRAY, None),
        PrimitiveType::Decimal { precision, scale } => {
            let physical = if *precision <= INT32_PRECISION {
                Physical::INT32
            } else if *precision <= INT64_PRECISION {
                Physical::INT64
            } else {
                Physical::FIXED_LEN_BYTE_ARRAY
            };
            (physical, Some(LogicalType::Decimal { scale: *scale as i32, precision: *precision as i32 }))
        }
    };
    let mut builder = ParquetType::primitive_type_builder(name, physical)
        .with_repetition(repetition)
        .with_id(Some(id))
        .with_logical_type(logical);
    if physical == Physical::FIXED_LEN_BYTE_ARRAY {
        builder = builder.with_length(fixed_length(primitive)?);
    }
    if let PrimitiveType::Decimal { precision, scale } = primitive {
        builder = builder.with_precision(*precision as i32).with_scale(*scale as i32);
    }
    builder.build().map(Arc::new)
}

fn fixed_length(primitive: &PrimitiveType) -> Result<i32> {
    let bytes = match primitive {
        PrimitiveType::Uuid => 16,
        PrimitiveType::Fixed(bytes) => *bytes,
        PrimitiveType::Decimal { precision, .. } => u64::from(
            Type::decimal_required_bytes(*precision)
                .map_err(|cause| ParquetError::External(Box::new(cause)))?,
        ),
        other => return Err(ParquetError::General(format!("type `{other}` has no fixed length"))),
    };
    i32::try_from(bytes).map_err(|cause| ParquetError::External(Box::new(cause)))
}
