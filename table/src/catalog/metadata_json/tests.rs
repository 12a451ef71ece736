use iceberg::spec::{
    NestedField, NullOrder, Operation, PrimitiveType, SnapshotRetention, SortDirection, SortField,
    TableMetadataBuilder, Transform, Type, UnboundPartitionSpec,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;

/// A table and the texts that were kept along its history.
struct History {
    metadata: TableMetadata,
    texts: Option<Texts>,
    next_id: i64,
    random: StdRng,
}

impl History {
    fn new(version: FormatVersion, seed: u64) -> Self {
        let column = |id, name| NestedField::optional(id, name, Type::Primitive(PrimitiveType::Long)).into();
        let schema =
            Schema::builder().with_fields([column(1, "id"), column(2, "été \"q\"")]).build().unwrap();
        let metadata = TableMetadataBuilder::new(
            schema,
            UnboundPartitionSpec::builder().build(),
            SortOrder::unsorted_order(),
            "memory://a/t".to_owned(),
            version,
            HashMap::from([("owner".to_owned(), "ä \\ \n".to_owned())]),
        )
        .unwrap()
        .build()
        .unwrap()
        .metadata;
        let texts = Texts::of_new_table(&metadata);
        Self { metadata, texts, next_id: 1, random: StdRng::seed_from_u64(seed) }
    }

    fn apply(&mut self, updates: Vec<TableUpdate>) {
        let mut builder =
            self.metadata.clone().into_builder(Some(format!("memory://a/t/{}.json", self.next_id)));
        for update in updates.iter().cloned() {
            builder = update.apply(builder).unwrap();
        }
        self.metadata = builder.build().unwrap().metadata;
        self.texts = self.texts.take().and_then(|texts| texts.after(&updates, &self.metadata));
    }

    fn commit(&mut self, branch: &str) {
        let (id, v3) = (self.next_id, self.metadata.format_version() == FormatVersion::V3);
        self.next_id += 1;
        let snapshot = Snapshot::builder()
            .with_snapshot_id(id)
            .with_parent_snapshot_id(self.metadata.snapshot_for_ref(branch).map(|head| head.snapshot_id()))
            .with_sequence_number(self.metadata.next_sequence_number())
            .with_timestamp_ms(self.metadata.last_updated_ms() + 1)
            .with_manifest_list(format!("memory://a/t/list {id} \"x\".avro"))
            .with_summary(Summary {
                operation: Operation::Append,
                additional_properties: HashMap::from([("rows".to_owned(), id.to_string())]),
            })
            .with_schema_id(self.metadata.current_schema_id());
        let snapshot = match v3 {
            true => snapshot.with_row_range(self.metadata.next_row_id(), 10).build(),
            false => snapshot.build(),
        };
        let built = self.metadata.clone().into_builder(None).set_branch_snapshot(snapshot, branch).unwrap();
        let updates = built.build().unwrap().changes;
        self.apply(updates);
    }

    fn step(&mut self) {
        let ids: Vec<i64> = self.metadata.snapshots().map(|snapshot| snapshot.snapshot_id()).collect();
        let any = |random: &mut StdRng| ids[random.random_range(0..ids.len())];
        match self.random.random_range(0..10) {
            _ if ids.is_empty() => self.commit("main"),
            0..5 => self.commit("main"),
            5 => {
                let retention = SnapshotRetention::Tag { max_ref_age_ms: Some(5) };
                let reference = SnapshotReference::new(any(&mut self.random), retention);
                let name = format!("tag{}", self.random.random_range(0..3));
                self.apply(vec![TableUpdate::SetSnapshotRef { ref_name: name, reference }]);
            }
            6 => {
                let retention = SnapshotRetention::branch(Some(2), Some(7), None);
                let reference = SnapshotReference::new(any(&mut self.random), retention);
                self.apply(vec![TableUpdate::SetSnapshotRef { ref_name: "side".to_owned(), reference }]);
            }
            7 => self.apply(vec![TableUpdate::RemoveSnapshotRef { ref_name: "tag1".to_owned() }]),
            8 => {
                let head = self.metadata.current_snapshot_id();
                let removed = any(&mut self.random);
                if Some(removed) != head {
                    self.apply(vec![TableUpdate::RemoveSnapshots { snapshot_ids: vec![removed] }]);
                }
            }
            _ => {
                let updates = HashMap::from([("at".to_owned(), self.next_id.to_string())]);
                self.apply(vec![TableUpdate::SetProperties { updates }]);
            }
        }
    }

    /// What is written by kept texts is read as the same table as what `iceberg` writes.
    fn check(&mut self, seed: u64) {
        let texts = self.texts.as_mut().unwrap_or_else(|| panic!("seed {seed}: the refs were lost"));
        let json = texts.encode(&self.metadata).unwrap();
        let read: TableMetadata = serde_json::from_slice(&json).unwrap();
        assert_eq!(read, self.metadata, "seed {seed}");
        let ours: serde_json::Value = serde_json::from_slice(&json).unwrap();
        let theirs = serde_json::to_value(&self.metadata).unwrap();
        assert_eq!(ours["refs"], theirs["refs"], "seed {seed}");
        assert_eq!(texts.snapshots.len(), self.metadata.snapshots().len(), "seed {seed}");
    }
}

#[test]
fn kept_texts_give_the_same_metadata_along_any_history() {
    for seed in 0..40 {
        for version in [FormatVersion::V2, FormatVersion::V3] {
            let mut history = History::new(version, seed);
            for _ in 0..40 {
                history.step();
                history.check(seed);
            }
        }
    }
}

#[test]
fn specs_orders_schemas_and_statistics_are_written() {
    let mut history = History::new(FormatVersion::V2, 0);
    history.commit("main");
    let metadata = history.metadata.clone();
    let spec =
        UnboundPartitionSpec::builder().add_partition_field(1, "bucket", Transform::Bucket(4)).unwrap();
    let order = SortOrder::builder()
        .with_order_id(1)
        .with_sort_field(
            SortField::builder()
                .source_id(1)
                .transform(Transform::Identity)
                .direction(SortDirection::Descending)
                .null_order(NullOrder::Last)
                .build(),
        )
        .build_unbound()
        .unwrap();
    let wider = Schema::builder()
        .with_schema_id(1)
        .with_fields(metadata.current_schema().as_struct().fields().iter().cloned())
        .with_fields([NestedField::optional(3, "n", Type::Primitive(PrimitiveType::String)).into()])
        .build()
        .unwrap();
    let statistics = StatisticsFile {
        snapshot_id: 1,
        statistics_path: "memory://a/t/s.puffin".to_owned(),
        file_size_in_bytes: 10,
        file_footer_size_in_bytes: 5,
        key_metadata: None,
        blob_metadata: Vec::new(),
    };
    let built = metadata
        .into_builder(None)
        .add_partition_spec(spec.build())
        .and_then(|builder| builder.set_default_partition_spec(-1))
        .and_then(|builder| builder.add_sort_order(order))
        .and_then(|builder| builder.set_default_sort_order(-1))
        .and_then(|builder| builder.add_schema(wider))
        .and_then(|builder| builder.set_current_schema(-1))
        .unwrap()
        .set_statistics(statistics);
    history.metadata = built.build().unwrap().metadata;
    history.check(0);
}

#[test]
fn refs_that_are_not_all_known_are_left_to_the_crate() {
    let mut history = History::new(FormatVersion::V2, 0);
    history.commit("main");
    assert!(Texts::of_new_table(&history.metadata).is_none());
    let json = serde_json::to_vec(&history.metadata).unwrap();
    assert!(Texts::read(&json, &history.metadata).is_some());
    let mut value: serde_json::Value = serde_json::from_slice(&json).unwrap();
    value.as_object_mut().unwrap().remove("refs");
    let json = serde_json::to_vec(&value).unwrap();
    let read: TableMetadata = serde_json::from_slice(&json).unwrap();
    assert!(read.snapshot_for_ref("main").is_some());
    assert!(Texts::read(&json, &read).is_none());
}
