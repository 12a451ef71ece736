use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int32Array, RecordBatch, StringArray};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, Field, Schema as ArrowSchema};
use bytes::Bytes;
use futures::TryStreamExt;
use iceberg::spec::{
    DEFAULT_SCHEMA_NAME_MAPPING, DataFileBuilder, FormatVersion, NestedField, NestedFieldRef, PartitionSpec,
    PrimitiveType, SortOrder, Struct, TableMetadataBuilder, Type, UnboundPartitionSpec,
};
use object_store::PutPayload;
use parquet::arrow::ArrowWriter;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::files::testing::{every_type, group, list, memory, primitive, random_batch, schema, table_with};
use crate::files::{Checksum, FileFormat, FileTarget, encode_file, upload};

const LOCATION: &str = "memory:///t/data/a.parquet";

fn table(schema: &SchemaRef, properties: &[(&str, &str)]) -> Table {
    let properties = properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    table_with(schema, &PartitionSpec::unpartition_spec(), properties, "memory:///t")
}

async fn write(stores: &Stores, schema: &SchemaRef, batches: &[RecordBatch]) -> DataFile {
    let format = FileFormat::new(
        Arc::clone(schema),
        &SortOrder::unsorted_order(),
        &HashMap::from([("write.parquet.row-group-size-bytes".to_owned(), "100000".to_owned())]),
    )
    .unwrap();
    let target = FileTarget {
        spec: Arc::new(PartitionSpec::unpartition_spec()),
        partition: Struct::empty(),
        location: LOCATION.to_owned(),
    };
    let file = encode_file(&format, batches).unwrap().unwrap();
    upload(stores, &target, file).await.unwrap().file
}

/// A file as another writer leaves it, with that writer's Arrow schema in its metadata.
async fn write_foreign(stores: &Stores, batch: &RecordBatch) -> DataFile {
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    store(stores, bytes.into(), batch.num_rows() as u64).await
}

async fn store(stores: &Stores, bytes: Bytes, rows: u64) -> DataFile {
    let (store, path) = stores.resolve(LOCATION).unwrap();
    let file = entry(bytes.len() as u64, rows);
    store.put(&path, PutPayload::from(bytes)).await.unwrap();
    file
}

fn entry(bytes: u64, rows: u64) -> DataFile {
    DataFileBuilder::default()
        .content(DataContentType::Data)
        .file_path(LOCATION.to_owned())
        .file_format(DataFileFormat::Parquet)
        .record_count(rows)
        .file_size_in_bytes(bytes)
        .build()
        .unwrap()
}

async fn read(
    stores: &Stores,
    table: &Table,
    schema: &SchemaRef,
    file: &DataFile,
) -> Result<Vec<RecordBatch>> {
    let reader = DataFileReader::new(stores, table, schema)?;
    reader.read(file, 0, 1_000).await?.try_collect().await
}

fn text(batches: &[RecordBatch], column: usize) -> Vec<String> {
    let options = FormatOptions::default().with_null("null");
    batches
        .iter()
        .flat_map(|batch| {
            let formatter = ArrayFormatter::try_new(batch.column(column), &options).unwrap();
            (0..batch.num_rows()).map(|row| formatter.value(row).to_string()).collect::<Vec<_>>()
        })
        .collect()
}

#[tokio::test]
async fn every_type_comes_back_as_it_was_written() {
    let (stores, schema) = (memory(), every_type());
    let arrow = Arc::new(schema_to_arrow_schema(&schema).unwrap());
    let mut rng = StdRng::seed_from_u64(2);
    let batches: Vec<_> = (0..5).map(|_| random_batch(&mut rng, &arrow, 3_000)).collect();
    let file = write(&stores, &schema, &batches).await;
    assert!(file.split_offsets().unwrap().len() > 1);
    let read = read(&stores, &table(&schema, &[]), &schema, &file).await.unwrap();
    assert!(read.iter().all(|batch| batch.num_rows() <= 1_000 && batch.schema() == arrow));
    let (mut written, mut found) = (Checksum::default(), Checksum::default());
    batches.iter().for_each(|batch| written.update(batch).unwrap());
    read.iter().for_each(|batch| found.update(batch).unwrap());
    assert_eq!(written.difference(&found), None);
    for column in 0..arrow.fields().len() {
        assert_eq!(text(&batches, column), text(&read, column), "{}", arrow.field(column).name());
    }
}

#[tokio::test]
async fn a_file_that_is_too_large_to_be_fetched_whole_is_read_in_ranges() {
    let (stores, schema) = (memory(), schema(vec![primitive(1, "bytes", PrimitiveType::Long)]));
    let arrow = Arc::new(schema_to_arrow_schema(&schema).unwrap());
    let batches = [random_batch(&mut StdRng::seed_from_u64(2), &arrow, 1_500_000)];
    let file = write(&stores, &schema, &batches).await;
    assert!(file.file_size_in_bytes() > WHOLE_FILE_BYTES);
    let read = read(&stores, &table(&schema, &[]), &schema, &file).await.unwrap();
    let (mut written, mut found) = (Checksum::default(), Checksum::default());
    batches.iter().for_each(|batch| written.update(batch).unwrap());
    read.iter().for_each(|batch| found.update(batch).unwrap());
    assert_eq!(written.difference(&found), None);
}

/// Case R16: renamed, reordered, dropped, added and promoted columns, in nested types too.
#[tokio::test]
async fn columns_are_matched_by_id() {
    let stores = memory();
    let old = schema(vec![
        primitive(1, "a", PrimitiveType::Int),
        primitive(2, "b", PrimitiveType::Float),
        primitive(3, "dropped", PrimitiveType::String),
        group(4, "s", vec![primitive(6, "x", PrimitiveType::Int), primitive(7, "gone", PrimitiveType::Int)]),
        list(
            5,
            "l",
            group(8, "element", vec![primitive(9, "d", PrimitiveType::Decimal { precision: 9, scale: 2 })]),
        ),
    ]);
    let arrow = Arc::new(schema_to_arrow_schema(&old).unwrap());
    let batch = random_batch(&mut StdRng::seed_from_u64(4), &arrow, 200);
    let file = write(&stores, &old, std::slice::from_ref(&batch)).await;
    let new = schema(vec![
        list(
            5,
            "list",
            group(
                8,
                "element",
                vec![
                    primitive(12, "fresh", PrimitiveType::String),
                    primitive(9, "decimal", PrimitiveType::Decimal { precision: 20, scale: 2 }),
                ],
            ),
        ),
        primitive(2, "a", PrimitiveType::Double),
        Arc::new(
            NestedField::required(10, "with_default", Type::Primitive(PrimitiveType::Long))
                .with_initial_default(Literal::long(42)),
        ),
        primitive(1, "b", PrimitiveType::Long),
        group(
            4,
            "s",
            vec![primitive(11, "gone", PrimitiveType::Int), primitive(6, "y", PrimitiveType::Long)],
        ),
    ]);
    let read = read(&stores, &table(&old, &[]), &new, &file).await.unwrap();
    let expected = Arc::new(schema_to_arrow_schema(&new).unwrap());
    assert_eq!(read[0].schema(), expected);
    let given = [batch.clone()];
    assert_eq!(text(&read, 3), text(&given, 0));
    let doubles: Vec<String> = text(&given, 1)
        .iter()
        .map(|value| value.parse::<f32>().map_or_else(|_| value.clone(), |v| format!("{:?}", f64::from(v))))
        .collect();
    assert_eq!(text(&read, 1), doubles);
    assert!(text(&read, 2).iter().all(|value| value == "42"));
    for (found, given) in text(&read, 4).iter().zip(text(&given, 3)) {
        let x = given.strip_prefix("{x: ").and_then(|rest| rest.split(',').next());
        let expected = x.map_or_else(|| given.clone(), |x| format!("{{gone: null, y: {x}}}"));
        assert_eq!(found, &expected);
    }
    for (found, given) in text(&read, 0).iter().zip(text(&given, 4)) {
        assert_eq!(found, &given.replace("{d:", "{fresh: null, decimal:"));
    }
}

/// A random evolution of a random schema, compared by a rendering that knows nothing of plans.
#[tokio::test]
async fn random_evolutions_keep_the_values_of_each_id() {
    for seed in 0..60 {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut next_id = 0;
        let old =
            schema((0..rng.random_range(1..6)).map(|_| random_field(&mut rng, &mut next_id, 2)).collect());
        let fields = evolved(&mut rng, old.as_struct().fields(), &mut next_id);
        let new = schema(fields);
        let stores = memory();
        let arrow = Arc::new(schema_to_arrow_schema(&old).unwrap());
        let batch = random_batch(&mut rng, &arrow, 50);
        let file = write(&stores, &old, std::slice::from_ref(&batch)).await;
        let read = read(&stores, &table(&old, &[]), &new, &file).await.unwrap();
        let target = schema_to_arrow_schema(&new).unwrap();
        for row in 0..50 {
            for (index, field) in target.fields().iter().enumerate() {
                let given = find(batch.schema().fields(), batch.columns(), field);
                let expected = given.map_or_else(|| "null".to_owned(), |given| render(field, &given, row));
                let found = render(
                    field,
                    &(Arc::clone(&target.fields()[index]), Arc::clone(read[0].column(index))),
                    row,
                );
                assert_eq!(found, expected, "seed {seed}, row {row}, column {}", field.name());
            }
        }
    }
}

fn random_field(rng: &mut StdRng, next_id: &mut i32, depth: usize) -> NestedFieldRef {
    *next_id += 1;
    let (id, name) = (*next_id, format!("f{next_id}"));
    match rng.random_range(0..if depth > 0 { 9 } else { 6 }) {
        0 => primitive(id, &name, PrimitiveType::Int),
        1 => primitive(id, &name, PrimitiveType::Float),
        2 => primitive(id, &name, PrimitiveType::Decimal { precision: 7, scale: 3 }),
        3 => primitive(id, &name, PrimitiveType::String),
        4 => primitive(id, &name, PrimitiveType::Binary),
        5 => primitive(id, &name, PrimitiveType::Timestamptz),
        6 | 7 => {
            let fields = (0..rng.random_range(1..4)).map(|_| random_field(rng, next_id, depth - 1)).collect();
            group(id, &name, fields)
        }
        _ => list(id, &name, random_field(rng, next_id, depth - 1)),
    }
}

fn evolved(rng: &mut StdRng, fields: &[NestedFieldRef], next_id: &mut i32) -> Vec<NestedFieldRef> {
    let mut kept: Vec<NestedFieldRef> = Vec::new();
    for field in fields {
        if rng.random_bool(0.2) {
            continue;
        }
        let renamed = if rng.random_bool(0.3) { format!("renamed{}", field.id) } else { field.name.clone() };
        kept.push(evolved_field(rng, field, &renamed, next_id));
    }
    for _ in 0..rng.random_range(0..3) {
        kept.push(random_field(rng, next_id, 1));
    }
    if kept.is_empty() {
        kept.push(random_field(rng, next_id, 0));
    }
    let turn = rng.random_range(0..kept.len());
    kept.rotate_left(turn);
    kept
}

fn evolved_field(rng: &mut StdRng, field: &NestedField, name: &str, next_id: &mut i32) -> NestedFieldRef {
    let field_type = match field.field_type.as_ref() {
        Type::Primitive(PrimitiveType::Int) => Type::Primitive(PrimitiveType::Long),
        Type::Primitive(PrimitiveType::Float) if rng.random_bool(0.5) => {
            Type::Primitive(PrimitiveType::Double)
        }
        Type::Primitive(PrimitiveType::Decimal { scale, .. }) => {
            Type::Primitive(PrimitiveType::Decimal { precision: rng.random_range(7..30), scale: *scale })
        }
        Type::Struct(inner) => return group(field.id, name, evolved(rng, inner.fields(), next_id)),
        Type::List(inner) => {
            let element = evolved_field(rng, &inner.element_field, "element", next_id);
            return list(field.id, name, element);
        }
        other => other.clone(),
    };
    primitive_or(field.id, name, field_type)
}

fn primitive_or(id: i32, name: &str, field_type: Type) -> NestedFieldRef {
    Arc::new(NestedField::optional(id, name, field_type))
}

type Column = (Arc<Field>, ArrayRef);

fn find(fields: &arrow_schema::Fields, columns: &[ArrayRef], wanted: &Field) -> Option<Column> {
    let id = |field: &Field| field.metadata()["PARQUET:field_id"].clone();
    let index = fields.iter().position(|field| id(field) == id(wanted))?;
    Some((Arc::clone(&fields[index]), Arc::clone(&columns[index])))
}

/// A value as text, by the ids of the wanted field; numbers without regard to their width.
fn render(wanted: &Field, (_, array): &Column, row: usize) -> String {
    use arrow_array::cast::AsArray;
    if array.is_null(row) {
        return "null".to_owned();
    }
    match wanted.data_type() {
        DataType::Struct(fields) => {
            let inner = array.as_struct();
            let parts = fields.iter().map(|field| {
                find(inner.fields(), inner.columns(), field)
                    .map_or_else(|| "null".to_owned(), |child| render(field, &child, row))
            });
            format!("{{{}}}", parts.collect::<Vec<_>>().join(","))
        }
        DataType::List(element) => {
            let values = array.as_list::<i32>().value(row);
            let DataType::List(field) = array.data_type() else { unreachable!("a list") };
            let column = (Arc::clone(field), values);
            let parts = (0..column.1.len()).map(|at| render(element, &column, at));
            format!("[{}]", parts.collect::<Vec<_>>().join(","))
        }
        _ => {
            let wide = match array.data_type() {
                DataType::Float32 => arrow_cast::cast(array, &DataType::Float64).unwrap(),
                _ => Arc::clone(array),
            };
            let options = FormatOptions::default();
            ArrayFormatter::try_new(&wide, &options).unwrap().value(row).to_string()
        }
    }
}

#[tokio::test]
async fn a_file_without_ids_is_read_by_the_name_mapping_or_refused() {
    let stores = memory();
    let wanted = schema(vec![
        primitive(1, "id", PrimitiveType::Long),
        group(2, "s", vec![primitive(4, "name", PrimitiveType::String)]),
        primitive(3, "absent", PrimitiveType::Int),
    ]);
    let inner: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let inner =
        arrow_array::StructArray::from(vec![(Arc::new(Field::new("n", DataType::Utf8, true)), inner)]);
    let fields =
        vec![Field::new("ID", DataType::Int32, true), Field::new("s", inner.data_type().clone(), true)];
    let columns: Vec<ArrayRef> = vec![Arc::new(Int32Array::from(vec![1, 2])), Arc::new(inner)];
    let batch = RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), columns).unwrap();
    let file = write_foreign(&stores, &batch).await;
    let error = read(&stores, &table(&wanted, &[]), &wanted, &file).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let mapping = r#"[{"field-id":1,"names":["id","ID"]},
        {"field-id":2,"names":["s"],"fields":[{"field-id":4,"names":["name","n"]}]}]"#;
    let mapped = table(&wanted, &[(DEFAULT_SCHEMA_NAME_MAPPING, mapping)]);
    let read = read(&stores, &mapped, &wanted, &file).await.unwrap();
    assert_eq!(text(&read, 0), ["1", "2"]);
    assert_eq!(text(&read, 1), ["{name: a}", "{name: b}"]);
    assert_eq!(text(&read, 2), ["null", "null"]);
    let broken = table(&wanted, &[(DEFAULT_SCHEMA_NAME_MAPPING, "{")]);
    assert_eq!(DataFileReader::new(&stores, &broken, &wanted).unwrap_err().kind(), ErrorKind::Configuration);
}

#[tokio::test]
async fn another_writers_arrow_schema_does_not_leak_into_the_types() {
    let stores = memory();
    let wanted = schema(vec![
        primitive(1, "dictionary", PrimitiveType::String),
        primitive(2, "milliseconds", PrimitiveType::Timestamptz),
        primitive(3, "large", PrimitiveType::Binary),
    ]);
    let with_id = |field: Field, id: &str| {
        field.with_metadata(HashMap::from([("PARQUET:field_id".to_owned(), id.to_owned())]))
    };
    let words: arrow_array::DictionaryArray<arrow_array::types::Int8Type> =
        vec!["x", "y", "x"].into_iter().collect();
    let times = arrow_array::TimestampMillisecondArray::from(vec![1, -1, 0]).with_timezone("Europe/Berlin");
    let columns: Vec<ArrayRef> = vec![
        Arc::new(arrow_array::BinaryViewArray::from(vec![&b"1"[..], b"2", b"3"])),
        Arc::new(times),
        Arc::new(words),
    ];
    let fields: Vec<Field> = columns
        .iter()
        .zip(["3", "2", "1"])
        .map(|(column, id)| with_id(Field::new(format!("c{id}"), column.data_type().clone(), true), id))
        .collect();
    let batch = RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), columns).unwrap();
    let file = write_foreign(&stores, &batch).await;
    let read = read(&stores, &table(&wanted, &[]), &wanted, &file).await.unwrap();
    assert_eq!(text(&read, 0), ["x", "y", "x"]);
    assert_eq!(
        text(&read, 1),
        ["1970-01-01T00:00:00.001Z", "1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00Z"]
    );
    assert_eq!(text(&read, 2), ["31", "32", "33"]);
}

#[tokio::test]
async fn int96_holds_dates_that_nanoseconds_do_not() {
    use parquet::basic::Type as Physical;
    use parquet::data_type::{Int96, Int96Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::types::Type as ParquetType;
    let field = ParquetType::primitive_type_builder("ts", Physical::INT96).with_id(Some(1)).build().unwrap();
    let root = ParquetType::group_type_builder("table").with_fields(vec![Arc::new(field)]).build().unwrap();
    let mut writer =
        SerializedFileWriter::new(Vec::new(), Arc::new(root), Arc::new(WriterProperties::default())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    // Nanoseconds of the day in two words, and the Julian day: 1970-01-01 is 2440588.
    let value = |nanos: u64, day: u32| {
        let mut value = Int96::new();
        value.set_data(nanos as u32, (nanos >> 32) as u32, day);
        value
    };
    let values = [value(1_000, 2_440_588), value(0, 2_440_588 - 719_162), value(0, 2_440_588 + 2_932_896)];
    column.typed::<Int96Type>().write_batch(&values, Some(&[1, 1, 1]), None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    let bytes = writer.into_inner().unwrap();
    let stores = memory();
    let file = store(&stores, bytes.into(), 3).await;
    let wanted = schema(vec![primitive(1, "ts", PrimitiveType::Timestamptz)]);
    let read = read(&stores, &table(&wanted, &[]), &wanted, &file).await.unwrap();
    assert_eq!(
        text(&read, 0),
        ["1970-01-01T00:00:00.000001Z", "0001-01-01T00:00:00Z", "9999-12-31T00:00:00Z"]
    );
}

#[tokio::test]
async fn a_partition_column_that_the_file_lacks_is_the_partitions_value() {
    let stores = memory();
    let wanted =
        schema(vec![primitive(1, "id", PrimitiveType::Long), primitive(2, "day", PrimitiveType::String)]);
    let spec =
        UnboundPartitionSpec::builder().add_partition_field(2, "day", Transform::Identity).unwrap().build();
    let metadata = TableMetadataBuilder::new(
        wanted.as_ref().clone(),
        spec,
        SortOrder::unsorted_order(),
        "memory:///t".to_owned(),
        FormatVersion::V2,
        HashMap::new(),
    )
    .unwrap()
    .build()
    .unwrap()
    .metadata;
    let table = crate::files::testing::table_of(metadata, &stores);
    let stored = schema(vec![primitive(1, "id", PrimitiveType::Int)]);
    let arrow = Arc::new(schema_to_arrow_schema(&stored).unwrap());
    let batch =
        RecordBatch::try_new(arrow, vec![Arc::new(Int32Array::from(vec![1, 2])) as ArrayRef]).unwrap();
    let written = write(&stores, &stored, &[batch]).await;
    for (value, expected) in [(Some(Literal::string("2026")), "2026"), (None, "null")] {
        let file = DataFileBuilder::default()
            .content(DataContentType::Data)
            .file_path(LOCATION.to_owned())
            .file_format(DataFileFormat::Parquet)
            .record_count(2)
            .file_size_in_bytes(written.file_size_in_bytes())
            .partition(Struct::from_iter([value]))
            .build()
            .unwrap();
        let found = read(&stores, &table, &wanted, &file).await.unwrap();
        assert_eq!(text(&found, 0), ["1", "2"]);
        assert_eq!(text(&found, 1), [expected, expected]);
        let again: Vec<_> =
            read_data_file(&stores, &table, &wanted, &file, 10).await.unwrap().try_collect().await.unwrap();
        assert_eq!(text(&again, 1), [expected, expected]);
    }
}

/// Case R17.
#[tokio::test]
async fn entries_without_rows_are_not_opened_and_wrong_ones_are_named() {
    let (stores, schema) = (memory(), every_type());
    let table = table(&schema, &[]);
    assert!(read(&stores, &table, &schema, &entry(0, 0)).await.unwrap().is_empty());
    assert_eq!(read(&stores, &table, &schema, &entry(0, 5)).await.unwrap_err().kind(), ErrorKind::Data);
    let missing = read(&stores, &table, &schema, &entry(100, 5)).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(missing.to_string().contains(LOCATION), "{missing}");
    let garbage = store(&stores, Bytes::from_static(b"this is no parquet file"), 5).await;
    assert_eq!(read(&stores, &table, &schema, &garbage).await.unwrap_err().kind(), ErrorKind::Data);
    let arrow = Arc::new(schema_to_arrow_schema(&schema).unwrap());
    let batch = random_batch(&mut StdRng::seed_from_u64(1), &arrow, 10);
    let file = write(&stores, &schema, &[batch]).await;
    let short = read(&stores, &table, &schema, &entry(file.file_size_in_bytes(), 11)).await.unwrap_err();
    assert!(short.to_string().contains("10 rows where its entry says 11"), "{short}");
}

#[tokio::test]
async fn a_type_that_cannot_be_promoted_is_refused() {
    let (stores, stored) = (memory(), schema(vec![primitive(1, "a", PrimitiveType::Long)]));
    let arrow = Arc::new(schema_to_arrow_schema(&stored).unwrap());
    let batch = random_batch(&mut StdRng::seed_from_u64(1), &arrow, 10);
    let file = write(&stores, &stored, &[batch]).await;
    for to in [PrimitiveType::Int, PrimitiveType::Double, PrimitiveType::String] {
        let wanted = schema(vec![primitive(1, "a", to)]);
        let error = read(&stores, &table(&stored, &[]), &wanted, &file).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}
