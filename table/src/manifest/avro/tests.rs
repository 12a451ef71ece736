#![allow(clippy::panic, reason = "tests state what cannot be")]

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use apache_avro::types::Value;
use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, Datum, Literal, ManifestContentType,
    ManifestList, ManifestListWriter, ManifestWriterBuilder, NestedField, PartitionSpec, PrimitiveLiteral,
    PrimitiveType, Schema, Struct, Transform, Type,
};
use proptest::prelude::*;

use super::*;
use crate::storage::Stores;

/// Every type that a partition can have and that `iceberg` can write.
fn kinds() -> Vec<PrimitiveType> {
    vec![
        PrimitiveType::Boolean,
        PrimitiveType::Int,
        PrimitiveType::Long,
        PrimitiveType::Float,
        PrimitiveType::Double,
        PrimitiveType::Date,
        PrimitiveType::Time,
        PrimitiveType::Timestamp,
        PrimitiveType::Timestamptz,
        PrimitiveType::String,
        PrimitiveType::Binary,
        PrimitiveType::Fixed(3),
        PrimitiveType::Decimal { precision: 9, scale: 2 },
        PrimitiveType::Decimal { precision: 38, scale: 10 },
    ]
}

/// A value of a type, made of a number.
fn literal(kind: &PrimitiveType, seed: i64) -> Literal {
    let bytes = seed.to_be_bytes();
    match kind {
        PrimitiveType::Boolean => Literal::bool(seed % 2 == 0),
        PrimitiveType::Int | PrimitiveType::Date => {
            Literal::int(i32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]))
        }
        PrimitiveType::Float => {
            Literal::float(f32::from_bits(u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]])))
        }
        PrimitiveType::Double => Literal::double(f64::from_bits(seed.cast_unsigned())),
        PrimitiveType::String => Literal::string(format!("\u{e9}/={seed}%")),
        PrimitiveType::Binary => Literal::binary(bytes[..(seed.unsigned_abs() % 8) as usize].to_vec()),
        PrimitiveType::Fixed(_) => Literal::fixed(bytes[5..].to_vec()),
        PrimitiveType::Decimal { precision: 9, .. } => Literal::decimal(i128::from(seed % 999_999_999)),
        PrimitiveType::Decimal { .. } => {
            Literal::decimal(i128::from(seed) * i128::from(seed.rotate_left(7)) / 2)
        }
        _ => Literal::long(seed),
    }
}

/// The specification's "Binary single-value serialization".
fn single_value(value: &PrimitiveLiteral) -> Vec<u8> {
    match value {
        PrimitiveLiteral::Boolean(value) => vec![u8::from(*value)],
        PrimitiveLiteral::Int(value) => value.to_le_bytes().to_vec(),
        PrimitiveLiteral::Long(value) => value.to_le_bytes().to_vec(),
        PrimitiveLiteral::Float(value) => value.to_le_bytes().to_vec(),
        PrimitiveLiteral::Double(value) => value.to_le_bytes().to_vec(),
        PrimitiveLiteral::String(value) => value.as_bytes().to_vec(),
        PrimitiveLiteral::Binary(value) => value.clone(),
        PrimitiveLiteral::Int128(value) => value.to_be_bytes().to_vec(),
        other => panic!("`{other:?}` is of none of the types"),
    }
}

/// A table schema with a column of each type; column `i + 1` has type `i`.
fn schema() -> Arc<Schema> {
    let fields = kinds()
        .into_iter()
        .zip(1..)
        .map(|(kind, id)| Arc::new(NestedField::optional(id, format!("column {id}"), Type::Primitive(kind))));
    Arc::new(Schema::builder().with_fields(fields).build().unwrap())
}

/// A spec with the identities of these columns.
fn spec(schema: &Arc<Schema>, columns: &[usize]) -> PartitionSpec {
    let mut builder = PartitionSpec::builder(schema.clone()).with_spec_id(7);
    for column in columns {
        let source = format!("column {}", column + 1);
        builder = builder.add_partition_field(source, format!("part_{column}"), Transform::Identity).unwrap();
    }
    builder.build().unwrap()
}

/// What a random entry is made of.
#[derive(Debug, Clone)]
struct Draft {
    status: u8,
    content: u8,
    numbers: [i64; 3],
    partition: Vec<Option<i64>>,
    metrics: [BTreeMap<i32, u32>; 4],
    bounds: [BTreeMap<usize, i64>; 2],
    optional: [Option<i64>; 4],
    lists: [Option<Vec<i32>>; 2],
    texts: [Option<String>; 2],
}

fn drafts() -> impl Strategy<Value = Vec<Draft>> {
    let metrics = || prop::collection::btree_map(1..40_i32, any::<u32>(), 0..6);
    let bounds = || prop::collection::btree_map(0..kinds().len(), any::<i64>(), 0..8);
    let draft = (
        (0..3_u8, 0..3_u8, prop::array::uniform3(0..1_i64 << 40)),
        prop::collection::vec(any::<Option<i64>>(), kinds().len()),
        [metrics(), metrics(), metrics(), metrics()],
        [bounds(), bounds()],
        prop::array::uniform4(any::<Option<i64>>()),
        prop::array::uniform2(any::<Option<Vec<i32>>>()),
        prop::array::uniform2(any::<Option<String>>()),
    );
    let draft =
        draft.prop_map(|((status, content, numbers), partition, metrics, bounds, optional, lists, texts)| {
            Draft { status, content, numbers, partition, metrics, bounds, optional, lists, texts }
        });
    prop::collection::vec(draft, 0..12)
}

impl Draft {
    fn content(&self, manifest: ManifestContentType) -> DataContentType {
        match (manifest, self.content) {
            (ManifestContentType::Data, _) => DataContentType::Data,
            (ManifestContentType::Deletes, 0) => DataContentType::EqualityDeletes,
            (ManifestContentType::Deletes, _) => DataContentType::PositionDeletes,
        }
    }

    fn file(&self, manifest: ManifestContentType, columns: &[usize]) -> DataFile {
        let value = |column: &usize| self.partition[*column].map(|seed| literal(&kinds()[*column], seed));
        let counts = |at: usize| {
            self.metrics[at].iter().map(|(id, count)| (*id, u64::from(*count))).collect::<HashMap<_, _>>()
        };
        let bounds = |at: usize| {
            let bound = |(&column, &seed): (&usize, &i64)| {
                let kind = kinds()[column].clone();
                let Literal::Primitive(value) = literal(&kind, seed) else { panic!("all are primitive") };
                (
                    i32::try_from(column).unwrap() + 1,
                    Datum::try_from_bytes(&single_value(&value), kind).unwrap(),
                )
            };
            self.bounds[at].iter().map(bound).collect::<HashMap<_, _>>()
        };
        let mut builder = DataFileBuilder::default();
        builder
            .content(self.content(manifest))
            .file_path(format!("memory:///{}", self.texts[0].clone().unwrap_or_default()))
            .file_format(DataFileFormat::Parquet)
            .partition(columns.iter().map(value).collect::<Struct>())
            .record_count(self.numbers[0].unsigned_abs())
            .file_size_in_bytes(self.numbers[1].unsigned_abs())
            .column_sizes(counts(0))
            .value_counts(counts(1))
            .null_value_counts(counts(2))
            .nan_value_counts(counts(3))
            .lower_bounds(bounds(0))
            .upper_bounds(bounds(1))
            .key_metadata(self.texts[1].clone().map(String::into_bytes))
            .split_offsets(self.lists[0].clone().map(|list| list.into_iter().map(i64::from).collect()))
            .equality_ids(self.lists[1].clone())
            .partition_spec_id(7)
            .first_row_id(self.optional[0])
            .referenced_data_file(self.texts[1].clone())
            .content_offset(self.optional[1])
            .content_size_in_bytes(self.optional[2]);
        if let Some(order) = self.optional[3] {
            builder.sort_order_id((order % 1_000) as i32);
        }
        builder.build().unwrap()
    }
}

/// A written file of `iceberg`, with the entry of a list that describes it.
async fn written(
    version: FormatVersion,
    content: ManifestContentType,
    columns: &[usize],
    drafts: &[Draft],
) -> (Vec<u8>, ManifestFile) {
    let file_io = Stores::new(HashMap::new()).file_io();
    let output = file_io.new_output("memory:///m.avro").unwrap();
    let table = schema();
    let builder = ManifestWriterBuilder::new(output, Some(5), table.clone(), spec(&table, columns));
    let mut writer = match (version, content) {
        (FormatVersion::V1, _) => builder.build_v1(),
        (FormatVersion::V2, ManifestContentType::Data) => builder.build_v2_data(),
        (FormatVersion::V2, ManifestContentType::Deletes) => builder.build_v2_deletes(),
        (FormatVersion::V3, ManifestContentType::Data) => builder.build_v3_data(),
        (FormatVersion::V3, ManifestContentType::Deletes) => builder.build_v3_deletes(),
    };
    for draft in drafts {
        let (file, number) = (draft.file(content, columns), draft.numbers[2]);
        match draft.status {
            0 => writer.add_existing_file(file, number, number, Some(number)).unwrap(),
            1 => writer.add_file(file, number).unwrap(),
            _ => writer.add_delete_file(file, number, Some(number)).unwrap(),
        }
    }
    let described = writer.write_manifest_file().await.unwrap();
    (file_io.new_input("memory:///m.avro").unwrap().read().await.unwrap().to_vec(), described)
}

fn blocking<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn versions() -> impl Strategy<Value = (FormatVersion, ManifestContentType)> {
    use {FormatVersion as V, ManifestContentType as C};
    prop::sample::select(vec![
        (V::V1, C::Data),
        (V::V2, C::Data),
        (V::V2, C::Deletes),
        (V::V3, C::Data),
        (V::V3, C::Deletes),
    ])
}

/// The bytes of a manifest with everything in it.
fn sample() -> Vec<u8> {
    let draft = Draft {
        status: 0,
        content: 1,
        numbers: [3, 300, 9],
        partition: (0..14).map(Some).collect(),
        metrics: [1, 2, 3, 4].map(|n| BTreeMap::from([(n, 5)])),
        bounds: [0, 1].map(|n| (0..14).map(|column| (column, n)).collect()),
        optional: [Some(1), Some(2), Some(3), Some(4)],
        lists: [Some(vec![4, 5]), Some(vec![1])],
        texts: [Some("a".to_owned()), Some("b".to_owned())],
    };
    let columns: Vec<usize> = (0..kinds().len()).collect();
    blocking(written(FormatVersion::V3, ManifestContentType::Data, &columns, &[draft.clone(), draft])).0
}

/// A file of the same header and entries with another codec: only the first block is packed again.
fn repacked(bytes: &[u8], codec: &str, pack: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let reader = apache_avro::Reader::new(bytes).unwrap();
    let schema = reader.writer_schema().clone();
    let metadata: Vec<(String, Vec<u8>)> =
        reader.user_metadata().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    let mut body = Vec::new();
    let mut count = 0;
    for value in reader {
        body.extend(apache_avro::to_avro_datum(&schema, value.unwrap()).unwrap());
        count += 1;
    }
    let (header, _) = container::open(bytes).unwrap();
    let mut pairs = metadata;
    pairs.push(("avro.schema".to_owned(), header["avro.schema"].clone()));
    pairs.push(("avro.codec".to_owned(), codec.as_bytes().to_vec()));
    let mut file = b"Obj\x01".to_vec();
    file.extend(long(pairs.len() as i64));
    for (key, value) in pairs {
        file.extend(prefixed(key.as_bytes()));
        file.extend(prefixed(&value));
    }
    file.push(0);
    file.extend([7; 16]);
    file.extend(long(count));
    file.extend(prefixed(&pack(&body)));
    file.extend([7; 16]);
    file
}

fn long(value: i64) -> Vec<u8> {
    apache_avro::to_avro_datum(&apache_avro::Schema::Long, Value::Long(value)).unwrap()
}

fn prefixed(bytes: &[u8]) -> Vec<u8> {
    [long(bytes.len() as i64), bytes.to_vec()].concat()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Random manifests of every version and content, partitioned by random columns of all types.
    #[test]
    fn manifests_read_as_iceberg_reads_them(
        (version, content) in versions(),
        columns in prop::sample::subsequence((0..kinds().len()).collect::<Vec<_>>(), 0..=kinds().len()),
        drafts in drafts(),
    ) {
        let (bytes, _) = blocking(written(version, content, &columns, &drafts));
        let theirs = Manifest::parse_avro(&bytes).unwrap();
        let ours = read_manifest(&bytes).unwrap();
        prop_assert_eq!(ours.metadata(), theirs.metadata());
        prop_assert_eq!(ours.entries().len(), drafts.len());
        // NaN, which has many forms, equals none of them but itself.
        prop_assert_eq!(format!("{:?}", sorted(&ours)), format!("{:?}", sorted(&theirs)));
    }

    /// Damage is found or changes values; it never panics, and never makes more of a file than is there.
    #[test]
    fn a_damaged_manifest_is_an_error_or_other_values(
        at in any::<prop::sample::Index>(),
        value in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = sample();
        let cut_off = &bytes[..cut.index(bytes.len())];
        // A file that ends after its header has no entries and is whole.
        prop_assert!(read_manifest(cut_off).map_or(true, |manifest| manifest.entries().is_empty()));
        let _ = read_list(cut_off, FormatVersion::V3);
        let index = at.index(bytes.len());
        bytes[index] = value;
        let most = bytes.len();
        prop_assert!(read_manifest(&bytes).map_or(true, |manifest| manifest.entries().len() <= most));
        let _ = read_list(&bytes, FormatVersion::V3);
    }

    #[test]
    fn any_bytes_are_an_error_or_entries(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let framed = [b"Obj\x01".to_vec(), bytes].concat();
        prop_assert!(read_manifest(&framed).is_err());
    }
}

/// Entries with their maps in order.
fn sorted(manifest: &Manifest) -> Vec<String> {
    fn map<T: Clone>(map: &HashMap<i32, T>) -> BTreeMap<i32, T> {
        map.iter().map(|(key, value)| (*key, value.clone())).collect()
    }
    let text = |entry: &Arc<iceberg::spec::ManifestEntry>| {
        let file = entry.data_file();
        format!(
            "{:?} {:?} {:?} {:?} {:?} {} {:?} {:?} {} {} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
            entry.status,
            entry.snapshot_id,
            entry.sequence_number,
            entry.file_sequence_number,
            file.content_type(),
            file.file_path(),
            file.file_format(),
            file.partition(),
            file.record_count(),
            file.file_size_in_bytes(),
            map(file.column_sizes()),
            map(file.value_counts()),
            map(file.null_value_counts()),
            map(file.nan_value_counts()),
            map(file.lower_bounds()),
            map(file.upper_bounds()),
            file.key_metadata(),
            file.split_offsets(),
            file.equality_ids(),
            file.sort_order_id(),
            file.first_row_id(),
            file.referenced_data_file(),
            file.content_offset(),
            file.content_size_in_bytes(),
        )
    };
    manifest.entries().iter().map(text).collect()
}

#[test]
fn manifest_lists_read_as_iceberg_reads_them() {
    for version in [FormatVersion::V1, FormatVersion::V2, FormatVersion::V3] {
        let columns: Vec<usize> = (0..kinds().len()).collect();
        let (_, described) = blocking(written(version, ManifestContentType::Data, &columns, &[]));
        let mut manifests = vec![described.clone(), described];
        manifests[0].added_rows_count = Some(77);
        manifests[0].key_metadata = Some(vec![1, 2]);
        manifests[1].deleted_files_count = Some(3);
        for summary in manifests[0].partitions.iter_mut().flatten() {
            (summary.contains_null, summary.contains_nan) = (true, Some(false));
            (summary.lower_bound, summary.upper_bound) = (Some(vec![1].into()), Some(vec![].into()));
        }
        let file_io = Stores::new(HashMap::new()).file_io();
        let output = file_io.new_output("memory:///l.avro").unwrap();
        let bytes = blocking(async {
            let output = output.writer().await.unwrap();
            let mut writer = match version {
                FormatVersion::V1 => ManifestListWriter::v1(output, 5, None),
                FormatVersion::V2 => ManifestListWriter::v2(output, 5, Some(4), 9),
                FormatVersion::V3 => ManifestListWriter::v3(output, 5, Some(4), 9, Some(1_000)),
            };
            writer.add_manifests(manifests.into_iter()).unwrap();
            writer.close().await.unwrap();
            file_io.new_input("memory:///l.avro").unwrap().read().await.unwrap()
        });
        let theirs = ManifestList::parse_with_version(&bytes, version).unwrap();
        assert_eq!(read_list(&bytes, version).unwrap(), theirs.entries(), "{version:?}");
        assert_eq!(theirs.entries().len(), 2);
    }
}

#[test]
fn every_codec_is_read() {
    let bytes = sample();
    let expected = sorted(&Manifest::parse_avro(&bytes).unwrap());
    assert_eq!(expected.len(), 2);
    let deflated = |body: &[u8]| {
        let mut packed = Vec::new();
        std::io::copy(&mut flate2::read::DeflateEncoder::new(body, flate2::Compression::fast()), &mut packed)
            .unwrap();
        packed
    };
    let snapped = |body: &[u8]| {
        let packed = snap::raw::Encoder::new().compress_vec(body).unwrap();
        [packed, crc32fast::hash(body).to_be_bytes().to_vec()].concat()
    };
    let files = [
        ("null", repacked(&bytes, "null", <[u8]>::to_vec)),
        ("deflate", repacked(&bytes, "deflate", deflated)),
        ("snappy", repacked(&bytes, "snappy", snapped)),
        ("zstandard", repacked(&bytes, "zstandard", |body| zstd::encode_all(body, 3).unwrap())),
    ];
    for (codec, file) in files {
        assert_eq!(sorted(&read_manifest(&file).unwrap()), expected, "{codec}");
    }
    let wrong = repacked(&bytes, "snappy", |body| {
        [snap::raw::Encoder::new().compress_vec(body).unwrap(), vec![0; 4]].concat()
    });
    assert!(read_manifest(&wrong).unwrap_err().to_string().contains("checksum"));
    let unknown = read_manifest(&repacked(&bytes, "bzip2", <[u8]>::to_vec)).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Unsupported);
}

/// A small block that is large when it is unpacked is refused before it takes the memory.
#[test]
fn a_block_that_unpacks_beyond_the_limit_is_refused() {
    let bomb = |_: &[u8]| {
        let mut packed = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        for _ in 0..300 {
            std::io::Write::write_all(&mut packed, &vec![0; 1 << 20]).unwrap();
        }
        packed.finish().unwrap()
    };
    let error = read_manifest(&repacked(&sample(), "zstandard", bomb)).unwrap_err();
    assert!(error.to_string().contains("bytes when it is uncompressed"), "{error}");
    let claim = |_: &[u8]| vec![0xff, 0xff, 0xff, 0x0f, 0, 0, 0, 0, 0];
    assert_eq!(read_manifest(&repacked(&sample(), "snappy", claim)).unwrap_err().kind(), ErrorKind::Data);
}

#[test]
fn schemas_that_are_recursive_or_huge_are_refused() {
    let recursive = br#"{"type":"record","name":"a","fields":[{"name":"b","type":["null","a"]}]}"#;
    assert!(schema::parse(recursive).unwrap_err().to_string().contains("contains itself"));
    let deep = format!("{}\"int\"{}", "[".repeat(60), "]".repeat(60));
    assert!(schema::parse(deep.as_bytes()).unwrap_err().to_string().contains("deeper"));
    let mut fields = vec![r#"{"name":"f0","type":{"type":"record","name":"r0","fields":[]}}"#.to_owned()];
    for n in 1..30 {
        let inner = format!(r#"{{"name":"x","type":"r{0}"}},{{"name":"y","type":"r{0}"}}"#, n - 1);
        let kind = format!(r#"{{"type":"record","name":"r{n}","fields":[{inner}]}}"#);
        fields.push(format!(r#"{{"name":"f{n}","type":{kind}}}"#));
    }
    let doubling = format!(r#"{{"type":"record","name":"all","fields":[{}]}}"#, fields.join(","));
    assert!(schema::parse(doubling.as_bytes()).unwrap_err().to_string().contains("more than"));
}

/// Fields are found by id: other names, another order, unknown fields in between, and promoted partition values.
#[test]
fn fields_are_found_by_id_and_unknown_ones_are_skipped() {
    let table =
        r#"{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"v","required":false,"type":"long"}]}"#;
    let text = r#"{"type":"record","name":"e","fields":[
        {"name":"extra","type":{"type":"map","values":"string"}},
        {"name":"file","field-id":2,"type":{"type":"record","name":"f","fields":[
            {"name":"size","field-id":104,"type":"long"},
            {"name":"more","type":["null",{"type":"array","items":"double"}]},
            {"name":"tuple","field-id":102,"type":{"type":"record","name":"p","fields":[
                {"name":"gone","field-id":1007,"type":["null","string"]},
                {"name":"_x25","field-id":1000,"type":["null","int"]}]}},
            {"name":"rows","field-id":103,"type":"int"},
            {"name":"format","field-id":101,"type":"string"},
            {"name":"path","field-id":100,"type":"string"}]}},
        {"name":"s","field-id":0,"type":"int"}]}"#;
    let mut file = b"Obj\x01".to_vec();
    let spec = r#"[{"source-id":1,"field-id":1000,"name":"%","transform":"identity"}]"#;
    let pairs = [("avro.schema", text), ("schema", table), ("partition-spec", spec), ("format-version", "2")];
    file.extend(long(pairs.len() as i64));
    for (key, value) in pairs {
        file.extend([prefixed(key.as_bytes()), prefixed(value.as_bytes())].concat());
    }
    file.extend([&[0][..], &[9; 16]].concat());
    let mut body = [long(1), prefixed(b"k"), prefixed(b"v"), long(0)].concat();
    body.extend([long(300), long(1), long(1), 1.5_f64.to_le_bytes().to_vec(), long(0)].concat());
    body.extend([long(1), prefixed(b"old"), long(1), long(-4)].concat());
    body.extend([long(3), prefixed(b"PARQUET"), prefixed(b"a.parquet"), long(1)].concat());
    file.extend([long(1), prefixed(&body), vec![9; 16]].concat());
    let manifest = read_manifest(&file).unwrap();
    let [entry] = manifest.entries() else { panic!("there is one entry") };
    let data = entry.data_file();
    assert_eq!((data.file_path(), data.record_count(), data.file_size_in_bytes()), ("a.parquet", 3, 300));
    assert_eq!(data.partition(), &Struct::from_iter([Some(Literal::long(-4))]));
    assert_eq!((entry.sequence_number, entry.snapshot_id), (None, None));
}
