//! Metadata files: their names, their bytes, reading and writing them.
//!
//! A file is named `NNNNN-<uuid>.metadata.json`, or `NNNNN-<uuid>.gz.metadata.json` where
//! `write.metadata.compression-codec` is `gzip`, and lies in `write.metadata.path` or the table's `metadata` folder.
//! What is read may have any name: compression is told by the bytes. The crate's own names are not used, because they
//! refuse what other writers made (`v3.metadata.json`, `.metadata.json.gz`, a metadata path of its own).

use std::collections::HashMap;
use std::io::{Read, Write};
use std::sync::Arc;

use bytes::Bytes;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use iceberg::spec::{TableMetadata, TableMetadataRef, TableProperties};
use serde_json::Value;
use uuid::Uuid;

use super::metadata_json::Texts;
use crate::storage::{Stores, join};
use crate::{Error, ErrorKind, Result, threads};

/// A property that moves metadata out of the table's folder.
const METADATA_PATH: &str = "write.metadata.path";
/// Types of later specifications that `iceberg` 0.10.1 cannot represent.
const UNKNOWN_TYPES: [&str; 4] = ["variant", "unknown", "geometry", "geography"];
/// The largest metadata that is decompressed: a bound against a file that is none.
const MAX_BYTES: u64 = 1 << 30;

/// Compression of a metadata file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Codec {
    None,
    Gzip,
}

impl Codec {
    fn of_table(properties: &HashMap<String, String>) -> Result<Self> {
        let value = properties.get(TableProperties::PROPERTY_METADATA_COMPRESSION_CODEC);
        match value.map(|codec| codec.to_ascii_lowercase()).as_deref() {
            None | Some("" | "none") => Ok(Self::None),
            Some("gzip") => Ok(Self::Gzip),
            Some(other) => {
                let name = TableProperties::PROPERTY_METADATA_COMPRESSION_CODEC;
                let message = format!("`{name}` is `{other}`: the specification knows `none` and `gzip`");
                Err(Error::new(ErrorKind::Configuration, message))
            }
        }
    }
}

/// The location of the next metadata file: its version is one above that of `previous`, 0 where there is none or its
/// name carries no number.
pub(super) fn next_location(metadata: &TableMetadata, previous: Option<&str>) -> Result<String> {
    let folder = match metadata.properties().get(METADATA_PATH) {
        Some(path) => path.clone(),
        None => join(metadata.location(), "metadata"),
    };
    let version = previous.and_then(version_of).map_or(0, |version| version + 1);
    let suffix = match Codec::of_table(metadata.properties())? {
        Codec::None => "",
        Codec::Gzip => ".gz",
    };
    Ok(join(&folder, &format!("{version:05}-{}{suffix}.metadata.json", Uuid::new_v4())))
}

/// The number in `00012-<uuid>.metadata.json` or `v12.metadata.json`.
fn version_of(location: &str) -> Option<u64> {
    let name = location.rsplit('/').next()?;
    let digits = match name.split_once('-') {
        Some((digits, _)) => digits,
        None => name.strip_prefix('v')?.split('.').next()?,
    };
    digits.parse().ok()
}

/// Metadata, and what makes serialising the next metadata of the table cheap.
#[derive(Debug, Clone)]
pub(super) struct Contents {
    pub(super) metadata: TableMetadataRef,
    pub(super) texts: Option<Texts>,
}

/// Serialises metadata, off the runtime's threads, and writes it to `location`.
pub(super) async fn write(
    stores: &Stores,
    location: &str,
    metadata: TableMetadata,
    mut texts: Option<Texts>,
) -> Result<Contents> {
    let (contents, bytes) = off_runtime(move || {
        let bytes = encode(&metadata, &mut texts)?;
        Ok((Contents { metadata: Arc::new(metadata), texts }, bytes))
    })
    .await?;
    stores.write(location, bytes).await?;
    Ok(contents)
}

/// Reads metadata and parses it off the runtime's threads.
///
/// # Errors
/// `NotFound` where the file is gone, `Unsupported` for a version or a type that is not known, `Data` for other bytes
/// that are no metadata.
pub(super) async fn read(stores: &Stores, location: &str) -> Result<Contents> {
    let bytes = stores.read(location).await?;
    off_runtime(move || decode(&bytes)).await.map_err(|error| error.context(format_args!("`{location}`")))
}

async fn off_runtime<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    threads::off_runtime(work).await.map_err(|error| {
        Error::new(ErrorKind::Internal, "handling table metadata failed").with_source(error)
    })?
}

fn encode(metadata: &TableMetadata, texts: &mut Option<Texts>) -> Result<Bytes> {
    let json = match texts {
        Some(texts) => texts.encode(metadata),
        None => serde_json::to_vec(metadata),
    };
    let json = json.map_err(|error| {
        Error::new(ErrorKind::Internal, "the new table metadata cannot be serialised").with_source(error)
    })?;
    if texts.is_none() {
        *texts = Texts::read(&json, metadata);
    }
    match Codec::of_table(metadata.properties())? {
        Codec::None => Ok(json.into()),
        Codec::Gzip => {
            let mut encoder = GzEncoder::new(Vec::with_capacity(json.len() / 8), Compression::default());
            let packed = encoder.write_all(&json).and_then(|()| encoder.finish());
            Ok(packed.map_err(|error| gzip_error(error, ErrorKind::Internal))?.into())
        }
    }
}

fn decode(bytes: &[u8]) -> Result<Contents> {
    let plain: Vec<u8>;
    let json = if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut unpacked = Vec::new();
        let read = MultiGzDecoder::new(bytes).take(MAX_BYTES).read_to_end(&mut unpacked);
        read.map_err(|error| gzip_error(error, ErrorKind::Data))?;
        plain = unpacked;
        plain.as_slice()
    } else {
        bytes
    };
    let metadata: TableMetadata = serde_json::from_slice(json).map_err(|error| explain(json, error))?;
    let texts = Texts::read(json, &metadata);
    Ok(Contents { metadata: Arc::new(metadata), texts })
}

fn gzip_error(error: std::io::Error, kind: ErrorKind) -> Error {
    Error::new(kind, "table metadata does not pass through gzip").with_source(error)
}

/// Why metadata was refused: something that this build does not know, or bytes that are no metadata.
pub(super) fn explain(json: &[u8], error: serde_json::Error) -> Error {
    let value: Value = serde_json::from_slice(json).unwrap_or_default();
    let version = value.get("format-version").and_then(Value::as_u64);
    let message = match (version, value.get("schemas").and_then(unknown_type)) {
        (Some(version), _) if version > 3 => {
            format!("table metadata has format version {version}: this build knows 1 to 3")
        }
        (_, Some(unknown)) => format!("a column has the type `{unknown}`, which this build does not know"),
        _ => return Error::new(ErrorKind::Data, "these bytes are no table metadata").with_source(error),
    };
    Error::new(ErrorKind::Unsupported, message).with_source(error)
}

/// The first type in a schema's JSON that this build does not know.
fn unknown_type(value: &Value) -> Option<&str> {
    match value {
        Value::Array(items) => items.iter().find_map(unknown_type),
        Value::Object(fields) => fields.iter().find_map(|(key, value)| match value {
            Value::String(name) if matches!(key.as_str(), "type" | "element" | "key" | "value") => {
                UNKNOWN_TYPES.iter().any(|unknown| name.starts_with(unknown)).then_some(name.as_str())
            }
            _ => unknown_type(value),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use iceberg::spec::{
        FormatVersion, NestedField, PrimitiveType, Schema, SortOrder, TableMetadataBuilder, Type,
        UnboundPartitionSpec,
    };

    use super::*;

    fn metadata(properties: &[(&str, &str)]) -> TableMetadata {
        let column = NestedField::required(1, "id", Type::Primitive(PrimitiveType::Long)).into();
        let schema = Schema::builder().with_fields([column]).build().unwrap();
        let properties =
            properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        TableMetadataBuilder::new(
            schema,
            UnboundPartitionSpec::builder().build(),
            SortOrder::unsorted_order(),
            "memory://a/t".to_owned(),
            FormatVersion::V2,
            properties,
        )
        .unwrap()
        .build()
        .unwrap()
        .metadata
    }

    #[test]
    fn names_count_up_from_whatever_the_head_is_called() {
        let table = metadata(&[]);
        for (previous, start) in [
            (None, "memory://a/t/metadata/00000-"),
            (Some("memory://a/t/metadata/00041-x.metadata.json"), "memory://a/t/metadata/00042-"),
            (Some("/t/metadata/v7.metadata.json"), "memory://a/t/metadata/00008-"),
            (Some("/t/metadata/v7.gz.metadata.json"), "memory://a/t/metadata/00008-"),
            (Some("/t/metadata/123456-x.metadata.json.gz"), "memory://a/t/metadata/123457-"),
            (Some("/t/metadata/odd.metadata.json"), "memory://a/t/metadata/00000-"),
        ] {
            let location = next_location(&table, previous).unwrap();
            assert!(location.starts_with(start), "{previous:?}: {location}");
            assert!(location.ends_with(".metadata.json"), "{location}");
        }
        let moved = metadata(&[(METADATA_PATH, "memory://b/m/")]);
        assert!(next_location(&moved, None).unwrap().starts_with("memory://b/m/00000-"));
    }

    #[tokio::test]
    async fn both_codecs_are_written_and_read() {
        let stores = Stores::new(HashMap::new());
        for (codec, magic) in [("none", b"{\"".as_slice()), ("gzip", &[0x1f, 0x8b]), ("GZIP", &[0x1f, 0x8b])]
        {
            let table = metadata(&[(TableProperties::PROPERTY_METADATA_COMPRESSION_CODEC, codec)]);
            let location = next_location(&table, None).unwrap();
            assert_eq!(location.ends_with(".gz.metadata.json"), magic[0] == 0x1f, "{location}");
            for texts in [None, Texts::of_new_table(&table)] {
                write(&stores, &location, table.clone(), texts).await.unwrap();
                assert!(stores.read(&location).await.unwrap().starts_with(magic), "{codec}");
                assert_eq!(*read(&stores, &location).await.unwrap().metadata, table, "{codec}");
            }
        }
        let wrong = metadata(&[(TableProperties::PROPERTY_METADATA_COMPRESSION_CODEC, "zstd")]);
        assert_eq!(next_location(&wrong, None).unwrap_err().kind(), ErrorKind::Configuration);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let json = serde_json::to_string(&metadata(&[])).unwrap();
        let variant = json.replace("\"long\"", "\"variant\"");
        let error = decode(variant.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("`variant`"), "{error}");

        let future = json.replace("\"format-version\":2", "\"format-version\":9");
        assert_eq!(decode(future.as_bytes()).unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(decode(b"PAR1").unwrap_err().kind(), ErrorKind::Data);
        assert_eq!(decode(&json.as_bytes()[..40]).unwrap_err().kind(), ErrorKind::Data);
        assert_eq!(decode(&[0x1f, 0x8b, 1, 2]).unwrap_err().kind(), ErrorKind::Data);
    }
}
