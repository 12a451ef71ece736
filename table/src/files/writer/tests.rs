use std::collections::HashMap;

use futures::TryStreamExt;
use iceberg::spec::{PartitionSpec, SortOrder, Struct};
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;
use crate::files::encode_file;
use crate::files::testing::{every_type, memory, random_batch};

fn format(properties: HashMap<String, String>) -> FileFormat {
    FileFormat::new(every_type(), &SortOrder::unsorted_order(), &properties).unwrap()
}

fn target(name: &str) -> FileTarget {
    FileTarget {
        spec: Arc::new(PartitionSpec::unpartition_spec()),
        partition: Struct::empty(),
        location: format!("memory:///data/{name}.parquet"),
    }
}

async fn objects(stores: &Stores) -> Vec<String> {
    let (store, _) = stores.resolve("memory:///data/x").unwrap();
    let listed: Vec<_> =
        store.list(None).map_ok(|object| object.location.to_string()).try_collect().await.unwrap();
    listed
}

#[tokio::test]
async fn a_small_file_is_stored_on_close_and_not_before() {
    let (format, stores) = (format(HashMap::new()), memory());
    let batch = random_batch(&mut StdRng::seed_from_u64(1), format.arrow_schema(), 100);
    let mut writer = DataFileWriter::new(&format, &stores, target("a")).unwrap();
    writer.write(&batch).await.unwrap();
    assert!(objects(&stores).await.is_empty());
    let file = writer.close().await.unwrap().unwrap();
    assert_eq!(file.file.file_path(), "memory:///data/a.parquet");
    let (store, path) = stores.resolve(file.file.file_path()).unwrap();
    let bytes = store.get(&path).await.unwrap().bytes().await.unwrap();
    assert_eq!(bytes.len() as u64, file.file.file_size_in_bytes());
    assert_eq!(&bytes, encode_file(&format, &[batch]).unwrap().unwrap().bytes());
}

#[tokio::test]
async fn nothing_is_stored_without_rows_or_after_an_abort() {
    let (format, stores) = (format(HashMap::new()), memory());
    let writer = DataFileWriter::new(&format, &stores, target("empty")).unwrap();
    assert!(writer.close().await.unwrap().is_none());
    let batch = random_batch(&mut StdRng::seed_from_u64(1), format.arrow_schema(), 100);
    let mut writer = DataFileWriter::new(&format, &stores, target("aborted")).unwrap();
    writer.write(&batch).await.unwrap();
    writer.abort().await;
    assert!(objects(&stores).await.is_empty());
}

#[tokio::test]
async fn a_large_file_is_uploaded_in_parts_and_aborted_without_trace() {
    let properties = HashMap::from([
        ("write.parquet.row-group-size-bytes".to_owned(), "1000000".to_owned()),
        ("write.parquet.compression-codec".to_owned(), "uncompressed".to_owned()),
    ]);
    let (format, directory) = (format(properties), tempfile::tempdir().unwrap());
    let stores = memory();
    let batch = random_batch(&mut StdRng::seed_from_u64(1), format.arrow_schema(), 20_000);
    for end in ["closed", "aborted"] {
        let location = format!("file://{}/{end}.parquet", directory.path().display());
        let target = FileTarget { location: location.clone(), ..target(end) };
        let mut writer = DataFileWriter::new(&format, &stores, target).unwrap();
        for _ in 0..12 {
            writer.write(&batch).await.unwrap();
        }
        assert!(writer.destination.upload.is_some());
        if end == "aborted" {
            writer.abort().await;
            let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
            assert_eq!(left.len(), 1, "only the closed file is there: {left:?}");
        } else {
            let file = writer.close().await.unwrap().unwrap();
            let stored = std::fs::metadata(directory.path().join("closed.parquet")).unwrap();
            assert_eq!(stored.len(), file.file.file_size_in_bytes());
            assert_eq!(file.file.record_count(), 240_000);
        }
    }
}
