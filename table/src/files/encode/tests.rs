use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{ArrayRef, Int64Array, StringArray};
use iceberg::spec::{Literal, NestedField, PartitionSpec, PrimitiveType, SchemaRef, SortOrder, Struct, Type};
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::{Encoding, LogicalType};
use parquet::file::metadata::ParquetMetaData;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::files::testing::{every_type, primitive, random_batch, schema};

fn format(schema: &SchemaRef, properties: &[(&str, &str)]) -> FileFormat {
    let properties: HashMap<_, _> =
        properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    FileFormat::new(Arc::clone(schema), &SortOrder::unsorted_order(), &properties).unwrap()
}

fn target() -> FileTarget {
    FileTarget {
        spec: Arc::new(PartitionSpec::unpartition_spec()),
        partition: Struct::empty(),
        location: "memory:///a.parquet".to_owned(),
    }
}

fn decode(bytes: &Bytes) -> (Arc<ParquetMetaData>, Vec<RecordBatch>) {
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(bytes.clone(), options).unwrap();
    let metadata = Arc::clone(builder.metadata());
    (metadata, builder.build().unwrap().map(Result::unwrap).collect())
}

#[test]
fn every_type_has_the_parquet_type_that_java_gives_it() {
    let format = format(&every_type(), &[]);
    let batch = random_batch(&mut StdRng::seed_from_u64(1), format.arrow_schema(), 100);
    let file = encode_file(&format, &[batch]).unwrap().unwrap();
    let (metadata, _) = decode(file.bytes());
    let columns = metadata.file_metadata().schema_descr();
    assert!(metadata.file_metadata().key_value_metadata().is_none(), "no Arrow schema is left behind");
    let column = |name: &str| columns.columns().iter().find(|c| c.path().string() == name).unwrap();
    assert_eq!(column("uuid").logical_type_ref(), Some(&LogicalType::Uuid));
    assert_eq!(column("dec9").physical_type(), parquet::basic::Type::INT32);
    assert_eq!(column("dec18").physical_type(), parquet::basic::Type::INT64);
    assert_eq!(column("dec38").type_length(), 16);
    assert_eq!(column("list.list.element").self_type().get_basic_info().id(), 23);
    assert_eq!(column("map.key_value.key").self_type().get_basic_info().id(), 24);
    assert_eq!(column("nested.list.element.y.list.element").self_type().get_basic_info().id(), 29);
    assert_eq!(column("tstz").logical_type_ref().map(|t| format!("{t:?}").contains("c: true")), Some(true));
}

#[test]
fn a_file_without_rows_is_no_file() {
    let format = format(&every_type(), &[]);
    let empty = RecordBatch::new_empty(Arc::clone(format.arrow_schema()));
    assert!(encode_file(&format, &[empty]).unwrap().is_none());
    assert!(encode_file(&format, &[]).unwrap().is_none());
}

#[test]
fn a_null_in_a_required_column_is_refused() {
    let format = format(&every_type(), &[]);
    let batch = random_batch(&mut StdRng::seed_from_u64(1), format.arrow_schema(), 3);
    let fields: Vec<_> = batch
        .schema()
        .fields()
        .iter()
        .map(|field| Arc::new(field.as_ref().clone().with_nullable(true)))
        .collect();
    let mut columns = batch.columns().to_vec();
    let loose = Arc::new(arrow_schema::Schema::new(fields));
    let fits = RecordBatch::try_new(Arc::clone(&loose), columns.clone()).unwrap();
    assert!(encode_file(&format, &[fits]).unwrap().is_some());
    columns[2] = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
    let unfit = RecordBatch::try_new(loose, columns).unwrap();
    assert_eq!(encode_file(&format, &[unfit]).unwrap_err().kind(), ErrorKind::Data);
}

#[test]
fn metrics_are_those_of_the_values() {
    let seed = 7;
    let mut rng = StdRng::seed_from_u64(seed);
    // Small row groups, so that bounds are combined.
    let format = format(&every_type(), &[("write.parquet.row-group-size-bytes", "50000")]);
    let batches: Vec<_> =
        (0..4).map(|_| random_batch(&mut rng, format.arrow_schema(), STEP_ROWS / 4)).collect();
    let file = encode_file(&format, &batches).unwrap().unwrap();
    let (footer, _) = decode(file.bytes());
    assert!(footer.num_row_groups() > 1);
    let length = file.bytes().len() as u64;
    let entry = file.new_file(&target()).unwrap().file;
    let rows = STEP_ROWS as u64;
    assert_eq!((entry.record_count(), entry.file_size_in_bytes()), (rows, length));
    let offsets = entry.split_offsets().unwrap();
    assert_eq!(offsets.len(), footer.num_row_groups());
    assert_eq!(offsets[0], 4);
    assert!(offsets.is_sorted());
    assert_eq!(entry.value_counts()[&3], rows);

    let longs: Vec<i64> =
        batches.iter().flat_map(|b| b.column(2).as_primitive::<Int64Type>().values().to_vec()).collect();
    assert_eq!(entry.lower_bounds()[&3].to_string(), longs.iter().min().unwrap().to_string());
    assert_eq!(entry.upper_bounds()[&3].to_string(), longs.iter().max().unwrap().to_string());
    assert_eq!(entry.null_value_counts()[&3], 0);

    let doubles: Vec<Option<f64>> = batches
        .iter()
        .flat_map(|b| b.column(4).as_primitive::<Float64Type>().iter().collect::<Vec<_>>())
        .collect();
    let present: Vec<f64> = doubles.iter().copied().flatten().collect();
    let nans = present.iter().filter(|v| v.is_nan()).count() as u64;
    let least = present.iter().copied().filter(|v| !v.is_nan()).min_by(f64::total_cmp).unwrap();
    assert_eq!(entry.nan_value_counts()[&5], nans, "seed {seed}");
    assert_eq!(entry.null_value_counts()[&5], rows - present.len() as u64);
    assert_eq!(Literal::from(entry.lower_bounds()[&5].clone()), Literal::double(least));
    assert_eq!(Literal::from(entry.upper_bounds()[&5].clone()), Literal::double(f64::INFINITY));

    let texts: Vec<String> = batches
        .iter()
        .flat_map(|b| b.column(9).as_string::<i32>().iter().flatten().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let (least, greatest) = (texts.iter().min().unwrap(), texts.iter().max().unwrap());
    let upper = "𝄞".repeat(15) + "𝄟";
    assert_eq!(entry.lower_bounds()[&10].to_human_string(), *least);
    assert!(greatest.starts_with(&"𝄞".repeat(16)));
    assert_eq!(entry.upper_bounds()[&10].to_human_string(), upper);

    // Inside lists and maps there are counts alone, in structs everything.
    for id in [23, 24, 25, 27, 29] {
        assert!(entry.value_counts().contains_key(&id), "{id}");
        assert!(!entry.lower_bounds().contains_key(&id), "{id}");
        assert!(!entry.nan_value_counts().contains_key(&id), "{id}");
    }
    assert!(entry.lower_bounds().contains_key(&21));
    assert!(entry.nan_value_counts()[&22] > 0);
    for id in [11, 12, 14, 15, 16] {
        assert!(entry.lower_bounds()[&id] <= entry.upper_bounds()[&id], "{id}");
    }
    assert_eq!(entry.sort_order_id(), None);
}

#[test]
fn metrics_follow_their_configuration() {
    let format = format(
        &every_type(),
        &[
            ("write.metadata.metrics.default", "counts"),
            ("write.metadata.metrics.column.string", "full"),
            ("write.metadata.metrics.column.int", "none"),
            ("write.metadata.metrics.column.struct.a", "truncate(4)"),
        ],
    );
    let batch = random_batch(&mut StdRng::seed_from_u64(3), format.arrow_schema(), 1_000);
    let file = encode_file(&format, std::slice::from_ref(&batch)).unwrap().unwrap();
    let entry = file.new_file(&target()).unwrap().file;
    let greatest = batch.column(9).as_string::<i32>().iter().flatten().max().unwrap();
    assert_eq!(entry.upper_bounds()[&10].to_human_string(), greatest);
    assert!(greatest.len() > 64);
    assert!(entry.column_sizes().contains_key(&2) && !entry.value_counts().contains_key(&2));
    assert!(entry.value_counts().contains_key(&3) && !entry.lower_bounds().contains_key(&3));
    assert!(entry.lower_bounds().contains_key(&21));
}

#[test]
fn columns_of_nothing_but_nan_or_null_have_no_bounds() {
    let schema =
        schema(vec![primitive(1, "d", PrimitiveType::Double), primitive(2, "s", PrimitiveType::String)]);
    let format = format(&schema, &[]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(arrow_array::Float64Array::from(vec![f64::NAN, f64::NAN])),
        Arc::new(StringArray::from(vec![None::<&str>, None])),
    ];
    let batch = RecordBatch::try_new(Arc::clone(format.arrow_schema()), columns).unwrap();
    let entry = encode_file(&format, &[batch]).unwrap().unwrap().new_file(&target()).unwrap().file;
    assert!(entry.lower_bounds().is_empty() && entry.upper_bounds().is_empty());
    assert_eq!((entry.nan_value_counts()[&1], entry.null_value_counts()[&2]), (2, 2));
}

#[test]
fn pages_are_plain_indexed_and_have_a_dictionary_only_where_it_pays() {
    let schema = schema(vec![
        primitive(1, "state", PrimitiveType::String),
        primitive(2, "name", PrimitiveType::String),
    ]);
    let format = format(&schema, &[]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new((0..5_000).map(|i| Some(format!("state-{}", i % 5))).collect::<StringArray>()),
        Arc::new((0..5_000).map(|i| Some(format!("name-{i}"))).collect::<StringArray>()),
    ];
    let batch = RecordBatch::try_new(Arc::clone(format.arrow_schema()), columns).unwrap();
    let file = encode_file(&format, &[batch]).unwrap().unwrap();
    let (footer, _) = decode(file.bytes());
    let group = footer.row_group(0);
    assert!(group.column(0).dictionary_page_offset().is_some());
    assert!(group.column(1).dictionary_page_offset().is_none());
    for column in group.columns() {
        let delta =
            [Encoding::DELTA_BYTE_ARRAY, Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BINARY_PACKED];
        assert!(column.encodings().all(|encoding| !delta.contains(&encoding)));
        assert!(column.offset_index_offset().is_some() && column.column_index_offset().is_some());
        assert!(column.bloom_filter_offset().is_none());
    }
}

/// Case R8: 100 string columns under zstd, where the Parquet writer's own count is far too high.
#[test]
fn the_estimate_is_within_15_percent_of_the_bytes_on_storage() {
    let fields = (1..=100)
        .map(|id| {
            Arc::new(NestedField::optional(id, format!("c{id}"), Type::Primitive(PrimitiveType::String)))
        })
        .collect();
    let schema = schema(fields);
    let format = format(&schema, &[("write.parquet.row-group-size-bytes", "8000000")]);
    let seed = 11;
    let mut rng = StdRng::seed_from_u64(seed);
    let mut encoder = FileEncoder::new(&format);
    for batches in 1..=12 {
        let columns = (0..100)
            .map(|_| {
                let words = (0..2_000).map(|_| {
                    Some(format!(
                        "user-{:06}/session-{:03}",
                        rng.random_range(0..500_000),
                        rng.random_range(0..500)
                    ))
                });
                Arc::new(words.collect::<StringArray>()) as ArrayRef
            })
            .collect();
        encoder.write(&RecordBatch::try_new(Arc::clone(format.arrow_schema()), columns).unwrap()).unwrap();
        if batches == 4 {
            assert!(encoder.rows() == 8_000 && encoder.memory_bytes() > 1 << 20);
        }
    }
    let estimated = encoder.estimated_bytes() as f64;
    let actual = encoder.finish().unwrap().unwrap().bytes().len() as f64;
    assert!((estimated / actual - 1.0).abs() < 0.15, "estimated {estimated}, actual {actual}, seed {seed}");
}

#[test]
fn taken_bytes_and_the_rest_are_the_whole_file() {
    let format = format(&every_type(), &[("write.parquet.row-group-size-bytes", "100000")]);
    let mut rng = StdRng::seed_from_u64(5);
    let batches: Vec<_> = (0..3).map(|_| random_batch(&mut rng, format.arrow_schema(), 5_000)).collect();
    let whole = encode_file(&format, &batches).unwrap().unwrap();
    let mut encoder = FileEncoder::new(&format);
    let mut bytes = Vec::new();
    for batch in &batches {
        encoder.write(batch).unwrap();
        bytes.extend_from_slice(&encoder.take_bytes().unwrap());
    }
    assert!(!bytes.is_empty());
    let rest = encoder.finish().unwrap().unwrap();
    bytes.extend_from_slice(rest.bytes());
    assert_eq!(&bytes, whole.bytes());
    let entry = rest.new_file(&target()).unwrap().file;
    assert_eq!(entry.file_size_in_bytes(), bytes.len() as u64);
}
