use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringArray};
use arrow_schema::{Field, Schema as ArrowSchema};
use iceberg::spec::{
    DataFileBuilder, FormatVersion, NestedField, PartitionSpec, PrimitiveType, Schema, SortOrder, Struct,
    TableMetadata, TableMetadataBuilder, Type,
};
use parquet::arrow::ArrowWriter;

use super::*;

fn memory() -> Stores {
    Stores::new(HashMap::new())
}

fn metadata() -> TableMetadata {
    let id = NestedField::required(1, "id", Type::Primitive(PrimitiveType::Long)).into();
    let schema = Schema::builder().with_fields([id]).build().unwrap();
    let spec = PartitionSpec::unpartition_spec().into_unbound();
    let location = "memory:///t".to_owned();
    let unsorted = SortOrder::unsorted_order();
    let builder =
        TableMetadataBuilder::new(schema, spec, unsorted, location, FormatVersion::V3, HashMap::new());
    builder.unwrap().build().unwrap().metadata
}

fn builder(path: &str, content: DataContentType, records: u64) -> DataFileBuilder {
    let mut builder = DataFileBuilder::default();
    builder
        .content(content)
        .file_path(path.to_owned())
        .file_format(DataFileFormat::Parquet)
        .partition(Struct::empty())
        .record_count(records)
        .file_size_in_bytes(100);
    builder
}

fn data(path: &str, records: u64) -> LiveFile {
    LiveFile {
        file: Arc::new(builder(path, DataContentType::Data, records).build().unwrap()),
        spec_id: 0,
        partition_path: String::new(),
        sequence_number: 1,
        file_sequence_number: 1,
        snapshot_id: 1,
        added_at_ms: None,
        manifest_path: "m".into(),
    }
}

fn live(builder: &DataFileBuilder) -> LiveDelete {
    let file = Arc::new(builder.build().unwrap());
    LiveDelete { file, spec_id: 0, sequence_number: 2, manifest_path: "d".into() }
}

/// A position delete file in the store, with a column that nobody asked for before those that count.
async fn position_delete(stores: &Stores, path: &str, rows: &[(&str, i64)]) -> LiveDelete {
    let field = |name: &str, kind, id: i32| {
        let metadata = HashMap::from([(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string())]);
        Field::new(name, kind, false).with_metadata(metadata)
    };
    let fields = vec![
        field("other", DataType::Int64, 77),
        field("pos", DataType::Int64, POSITION),
        field("file_path", DataType::Utf8, FILE_PATH),
    ];
    let positions: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|(_, at)| *at)));
    let paths: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|(path, _)| *path)));
    let batch =
        RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), vec![positions.clone(), positions, paths]);
    let batch = batch.unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    stores.write(path, writer.into_inner().unwrap().into()).await.unwrap();
    live(&builder(path, DataContentType::PositionDeletes, rows.len() as u64))
}

/// A vector behind other bytes of a file in the store.
async fn vector_delete(stores: &Stores, path: &str, of: &str, positions: &[u64]) -> LiveDelete {
    let blob = vector::blob(positions.iter().copied());
    let size = i64::try_from(blob.len()).unwrap();
    stores.write(path, [vec![1; 9], blob, vec![1; 5]].concat().into()).await.unwrap();
    live(
        builder(path, DataContentType::PositionDeletes, positions.len() as u64)
            .file_format(DataFileFormat::Puffin)
            .referenced_data_file(Some(of.to_owned()))
            .content_offset(Some(9))
            .content_size_in_bytes(Some(size)),
    )
}

fn ids(rows: std::ops::Range<i64>) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(rows));
    RecordBatch::try_from_iter([("id", ids)]).unwrap()
}

fn kept(rows: &DeletedRows, path: &str, batch: std::ops::Range<i64>) -> Vec<i64> {
    let position = u64::try_from(batch.start).unwrap();
    let batch = rows.filter(path, position, ids(batch)).unwrap();
    batch.column(0).as_primitive::<Int64Type>().values().to_vec()
}

#[tokio::test]
async fn each_file_loses_its_own_rows() {
    let stores = memory();
    let deletes = vec![
        position_delete(&stores, "memory:///t/d1", &[("a", 0), ("a", 5), ("b", 1), ("z", 3)]).await,
        position_delete(&stores, "memory:///t/d2", &[("a", 5), ("a", 6), ("a", 99)]).await,
        vector_delete(&stores, "memory:///t/v", "b", &[2, 3]).await,
    ];
    let index = DeleteIndex::new(&metadata(), deletes);
    let files = [data("a", 10), data("b", 10), data("c", 10)];
    let rows = DeletedRows::read(&stores, &files, &index).await.unwrap();
    assert_eq!(rows.count(), 5, "row 99 of `a` is none, and the vector of `b` counts alone");
    assert_eq!(kept(&rows, "a", 0..10), [1, 2, 3, 4, 7, 8, 9]);
    assert_eq!(kept(&rows, "a", 4..7), [4]);
    assert_eq!(kept(&rows, "a", 5..6), [] as [i64; 0]);
    assert_eq!(kept(&rows, "b", 0..4), [0, 1]);
    assert_eq!(kept(&rows, "c", 0..3), [0, 1, 2]);
}

#[tokio::test]
async fn what_cannot_be_applied_is_an_error() {
    let stores = memory();
    let read = async |delete: LiveDelete| {
        let index = DeleteIndex::new(&metadata(), vec![delete]);
        DeletedRows::read(&stores, &[data("a", 10)], &index).await.unwrap_err()
    };
    let equality =
        live(builder("memory:///t/e", DataContentType::EqualityDeletes, 1).equality_ids(Some(vec![1])));
    assert_eq!(read(equality).await.kind(), ErrorKind::Unsupported);
    let avro =
        live(builder("memory:///t/d", DataContentType::PositionDeletes, 1).file_format(DataFileFormat::Avro));
    assert_eq!(read(avro).await.kind(), ErrorKind::Unsupported);
    let missing = live(&builder("memory:///t/gone", DataContentType::PositionDeletes, 1));
    assert_eq!(read(missing).await.kind(), ErrorKind::NotFound);
    stores.write("memory:///t/no", Bytes::from_static(b"no parquet")).await.unwrap();
    let damaged = live(&builder("memory:///t/no", DataContentType::PositionDeletes, 1));
    assert_eq!(read(damaged).await.kind(), ErrorKind::Data);
    let older = LiveDelete { sequence_number: 0, ..vector_delete(&stores, "memory:///t/v", "a", &[1]).await };
    assert_eq!(read(older).await.kind(), ErrorKind::Data);
    let mut miscounted = vector_delete(&stores, "memory:///t/v", "a", &[1]).await;
    let more = builder("memory:///t/v", DataContentType::PositionDeletes, 2)
        .file_format(DataFileFormat::Puffin)
        .referenced_data_file(Some("a".to_owned()))
        .content_offset(miscounted.file.content_offset())
        .content_size_in_bytes(miscounted.file.content_size_in_bytes())
        .build();
    miscounted.file = Arc::new(more.unwrap());
    assert_eq!(read(miscounted).await.kind(), ErrorKind::Data);
}
