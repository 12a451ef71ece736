//! What the tests of files and layout share: tables, schemas and random batches.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Float32Array, Float64Array,
    Int32Array, Int64Array, LargeBinaryArray, ListArray, MapArray, RecordBatch, StringArray, StructArray,
    Time64MicrosecondArray, TimestampMicrosecondArray, TimestampNanosecondArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, SchemaRef as ArrowSchemaRef, TimeUnit};
use iceberg::spec::{
    FormatVersion, ListType, MapType, NestedField, NestedFieldRef, PartitionSpec, PrimitiveType, Schema,
    SchemaRef, SortOrder, StructType, TableMetadata, TableMetadataBuilder, Type,
};
use iceberg::table::Table;
use iceberg::{Runtime, TableIdent};
use rand::Rng;
use rand::rngs::StdRng;

use crate::storage::Stores;

/// Stores with nothing but memory.
pub(crate) fn memory() -> Stores {
    Stores::new(HashMap::new())
}

/// A table of that metadata.
pub(crate) fn table_of(metadata: TableMetadata, stores: &Stores) -> Table {
    let runtime = Runtime::try_current()
        .unwrap_or_else(|_| Runtime::new(&tokio::runtime::Builder::new_current_thread().build().unwrap()));
    Table::builder()
        .identifier(TableIdent::from_strs(["db", "t"]).unwrap())
        .file_io(stores.file_io())
        .metadata(metadata)
        .runtime(runtime)
        .build()
        .unwrap()
}

/// A new table; the ids of its schema are given anew.
pub(crate) fn table_with(
    schema: &Schema,
    spec: &PartitionSpec,
    properties: HashMap<String, String>,
    location: &str,
) -> Table {
    let order = SortOrder::unsorted_order();
    let metadata = TableMetadataBuilder::new(
        schema.clone(),
        spec.clone(),
        order,
        location.to_owned(),
        FormatVersion::V2,
        properties,
    )
    .unwrap()
    .build()
    .unwrap()
    .metadata;
    table_of(metadata, &memory())
}

pub(crate) fn schema(fields: Vec<NestedFieldRef>) -> SchemaRef {
    Arc::new(Schema::builder().with_fields(fields).build().unwrap())
}

pub(crate) fn optional(id: i32, name: &str, field_type: Type) -> NestedFieldRef {
    Arc::new(NestedField::optional(id, name, field_type))
}

pub(crate) fn primitive(id: i32, name: &str, primitive: PrimitiveType) -> NestedFieldRef {
    optional(id, name, Type::Primitive(primitive))
}

pub(crate) fn list(id: i32, name: &str, element: NestedFieldRef) -> NestedFieldRef {
    optional(id, name, Type::List(ListType { element_field: element }))
}

pub(crate) fn map(id: i32, name: &str, key: (i32, PrimitiveType), value: NestedFieldRef) -> NestedFieldRef {
    let key_field = Arc::new(NestedField::map_key_element(key.0, Type::Primitive(key.1)));
    optional(id, name, Type::Map(MapType { key_field, value_field: value }))
}

pub(crate) fn group(id: i32, name: &str, fields: Vec<NestedFieldRef>) -> NestedFieldRef {
    optional(id, name, Type::Struct(StructType::new(fields)))
}

/// Every type, with nesting.
pub(crate) fn every_type() -> SchemaRef {
    let decimal = |precision, scale| PrimitiveType::Decimal { precision, scale };
    schema(vec![
        primitive(1, "bool", PrimitiveType::Boolean),
        primitive(2, "int", PrimitiveType::Int),
        Arc::new(NestedField::required(3, "long", Type::Primitive(PrimitiveType::Long))),
        primitive(4, "float", PrimitiveType::Float),
        primitive(5, "double", PrimitiveType::Double),
        primitive(6, "date", PrimitiveType::Date),
        primitive(7, "time", PrimitiveType::Time),
        primitive(8, "ts", PrimitiveType::Timestamp),
        primitive(9, "tstz", PrimitiveType::Timestamptz),
        primitive(10, "string", PrimitiveType::String),
        primitive(11, "uuid", PrimitiveType::Uuid),
        primitive(12, "fixed", PrimitiveType::Fixed(3)),
        primitive(13, "binary", PrimitiveType::Binary),
        primitive(14, "dec9", decimal(9, 2)),
        primitive(15, "dec18", decimal(18, 4)),
        primitive(16, "dec38", decimal(38, 10)),
        group(
            17,
            "struct",
            vec![primitive(21, "a", PrimitiveType::Int), primitive(22, "b", PrimitiveType::Float)],
        ),
        list(18, "list", primitive(23, "element", PrimitiveType::String)),
        map(19, "map", (24, PrimitiveType::String), primitive(25, "value", PrimitiveType::Long)),
        list(
            20,
            "nested",
            group(
                26,
                "element",
                vec![
                    primitive(27, "x", PrimitiveType::Double),
                    list(28, "y", primitive(29, "element", PrimitiveType::Int)),
                ],
            ),
        ),
    ])
}

/// A random batch of a schema's Arrow form; a quarter of what may be null is.
pub(crate) fn random_batch(rng: &mut StdRng, schema: &ArrowSchemaRef, rows: usize) -> RecordBatch {
    let columns = schema.fields().iter().map(|field| random_array(rng, field, rows)).collect();
    RecordBatch::try_new(Arc::clone(schema), columns).unwrap()
}

fn random_array(rng: &mut StdRng, field: &Field, rows: usize) -> ArrayRef {
    let nulls: Option<NullBuffer> =
        field.is_nullable().then(|| (0..rows).map(|_| rng.random_bool(0.75)).collect::<Vec<_>>().into());
    let valid = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
    let mut optional = |row: usize| valid(row).then(|| rng.random::<u64>());
    match field.data_type() {
        DataType::Struct(fields) => {
            let columns = fields.iter().map(|field| random_array(rng, field, rows)).collect();
            Arc::new(StructArray::new(fields.clone(), columns, nulls))
        }
        DataType::List(element) => {
            let lengths: Vec<usize> = (0..rows).map(|_| rng.random_range(0..4)).collect();
            let values = random_array(rng, element, lengths.iter().sum());
            Arc::new(ListArray::new(Arc::clone(element), OffsetBuffer::from_lengths(lengths), values, nulls))
        }
        DataType::Map(entries, sorted) => {
            let DataType::Struct(fields) = entries.data_type() else { unreachable!("entries are structs") };
            let lengths: Vec<usize> = (0..rows).map(|_| rng.random_range(0..3)).collect();
            let total = lengths.iter().sum();
            let columns = fields.iter().map(|field| random_array(rng, field, total)).collect();
            let values = StructArray::new(fields.clone(), columns, None);
            let offsets = OffsetBuffer::from_lengths(lengths);
            Arc::new(MapArray::new(Arc::clone(entries), offsets, values, nulls, *sorted))
        }
        DataType::Boolean => {
            Arc::new((0..rows).map(|row| optional(row).map(|v| v % 2 == 0)).collect::<BooleanArray>())
        }
        DataType::Utf8 => {
            let words = ["", "a", "naïve", "𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞𝄞", "more than sixteen characters", "z"];
            let text = |v: u64| words[(v % 6) as usize].to_owned() + &(v % 97).to_string();
            Arc::new((0..rows).map(|row| optional(row).map(text)).collect::<StringArray>())
        }
        DataType::LargeBinary => Arc::new(
            (0..rows)
                .map(|row| optional(row).map(|v| v.to_be_bytes()[..(v % 9) as usize].to_vec()))
                .collect::<LargeBinaryArray>(),
        ),
        DataType::FixedSizeBinary(size) => {
            let bytes = |v: u64| [v.to_be_bytes(), v.to_le_bytes()].concat()[..*size as usize].to_vec();
            let values = (0..rows).map(|row| optional(row).map(bytes));
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, *size).unwrap())
        }
        DataType::Float32 => {
            Arc::new((0..rows).map(|row| optional(row).map(|v| float(v) as f32)).collect::<Float32Array>())
        }
        DataType::Float64 => {
            Arc::new((0..rows).map(|row| optional(row).map(float)).collect::<Float64Array>())
        }
        DataType::Decimal128(precision, scale) => {
            let limit = 10i128.pow(u32::from(*precision));
            let values = (0..rows)
                .map(|row| optional(row).map(|v| (i128::from(v as i64) * i128::from(v >> 2)) % limit));
            let array = values.collect::<Decimal128Array>();
            Arc::new(array.with_precision_and_scale(*precision, *scale).unwrap())
        }
        DataType::Int32 => {
            Arc::new((0..rows).map(|row| optional(row).map(|v| v as i32)).collect::<Int32Array>())
        }
        DataType::Date32 => {
            Arc::new((0..rows).map(|row| optional(row).map(|v| v as i32 % 100_000)).collect::<Date32Array>())
        }
        DataType::Int64 => {
            Arc::new((0..rows).map(|row| optional(row).map(|v| v as i64)).collect::<Int64Array>())
        }
        DataType::Time64(_) => Arc::new(
            (0..rows)
                .map(|row| optional(row).map(|v| (v % 86_400_000_000) as i64))
                .collect::<Time64MicrosecondArray>(),
        ),
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => Arc::new(
            (0..rows)
                .map(|row| optional(row).map(|v| v as i64))
                .collect::<TimestampNanosecondArray>()
                .with_timezone_opt(zone.clone()),
        ),
        DataType::Timestamp(_, zone) => Arc::new(
            (0..rows)
                .map(|row| optional(row).map(|v| v as i64 / 1_000))
                .collect::<TimestampMicrosecondArray>()
                .with_timezone_opt(zone.clone()),
        ),
        other => unreachable!("no schema has {other}"),
    }
}

fn float(v: u64) -> f64 {
    match v % 16 {
        0 => f64::NAN,
        1 => -0.0,
        2 => 0.0,
        3 => f64::INFINITY,
        _ => (v as i32 as f32).into(),
    }
}
