//! Rewrites of tables with deletes: what another engine does between plan and commit.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use iceberg::TableUpdate;
use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, FormatVersion, Literal, ManifestContentType,
    ManifestStatus, ManifestWriterBuilder, Operation, Snapshot, SnapshotReference, SnapshotRetention, Struct,
    Summary, UNASSIGNED_SEQUENCE_NUMBER,
};

use super::world::{Ids, LOCATION, World, committed, creation, data_file};
use crate::commit::{Replace, ReplaceGroup, ReplaceOutcome, TableHandle};
use crate::layout::{DeleteKey, LiveDelete, LiveFile, deletes_of};
use crate::manifest::{
    Entry, ListTarget, MetadataNames, Output, has_live_files, read_list_at, read_manifest, write_filtered,
    write_list,
};

const ONE: i64 = 1;

/// A table of three appends of a file with ten rows each in partition 1, and a plan that rewrites them all.
struct Case {
    world: World,
    handle: TableHandle,
    ids: Ids,
    files: Vec<LiveFile>,
    replace: Replace,
}

/// A file that another engine adds, with the sequence number that it gives it.
type Added = (DataFile, Option<i64>);

impl Case {
    async fn new(version: FormatVersion) -> Self {
        let world = World::with(iceberg::TableCreation { format_version: version, ..creation() });
        let handle = world.open().await;
        let mut ids = Ids::new();
        for at in 0..3 {
            committed(handle.append(world.flush(ids.next(), 10 * at, 10 * at + 10).await).await.unwrap());
        }
        let mut case = Self {
            replace: Replace {
                commit_id: ids.next(),
                planned_on: world.head(),
                groups: Vec::new(),
                summary: BTreeMap::new(),
            },
            world,
            handle,
            ids,
            files: Vec::new(),
        };
        case.plan().await;
        case
    }

    /// Plans on the head: a group of all live files of partition 1, with all their deletes unapplied.
    async fn plan(&mut self) {
        self.handle.refresh().await.unwrap();
        self.files = self.world.live().await;
        self.files.retain(|file| *file.file.partition() == part(ONE));
        self.files.sort_by_key(|file| file.sequence_number);
        let commit_id = self.ids.next();
        let rows = self.files.iter().map(|file| file.file.record_count()).sum();
        let output = self.world.file(&format!("out-{}", commit_id.counter), rows).await;
        let group = ReplaceGroup {
            id: 0,
            removed: self.files.clone(),
            added: vec![output],
            applied_deletes: Vec::new(),
            deleted_rows: 0,
        };
        self.replace = Replace {
            commit_id,
            planned_on: self.world.head(),
            groups: vec![group],
            summary: BTreeMap::new(),
        };
    }

    /// Says that the rewrite applied these deletes, which took so many rows.
    async fn applied(&mut self, keys: &[DeleteKey], rows: u64) {
        let live = live_deletes(&self.world).await;
        let group = &mut self.replace.groups[0];
        group.applied_deletes = live.into_iter().filter(|delete| keys.contains(&delete.key())).collect();
        assert_eq!(group.applied_deletes.len(), keys.len());
        group.deleted_rows = rows;
        let rows_in: u64 = group.removed.iter().map(|file| file.file.record_count()).sum();
        group.added = vec![self.world.file("less", rows_in - rows).await];
    }

    async fn commit(&mut self) -> ReplaceOutcome {
        let outcome = self.handle.replace(self.replace.clone()).await.unwrap();
        self.world.check().await;
        outcome
    }

    /// The rewrite must land.
    async fn lands(mut self) -> Self {
        let outcome = self.commit().await;
        assert_eq!((outcome.landed, outcome.dropped), (vec![0], vec![]));
        self
    }

    /// The group must be dropped for a reason with this in it, and nothing be left of it.
    async fn drops(mut self, because: &str) {
        let outcome = self.commit().await;
        assert!(outcome.committed.is_none(), "{outcome:?}");
        assert!(outcome.dropped[0].1.contains(because), "{:?}", outcome.dropped);
        let objects = self.world.objects().await;
        let outputs = self.replace.groups[0].added.iter().map(|output| output.file.file_path());
        assert!(outputs.into_iter().all(|output| !objects.contains(output)));
    }

    fn path(&self, at: usize) -> String {
        self.files[at].file.file_path().to_owned()
    }

    fn sequence_number(&self) -> i64 {
        self.world.catalog.metadata().last_sequence_number()
    }
}

fn part(value: i64) -> Struct {
    Struct::from_iter([Some(Literal::long(value))])
}

fn delete(name: &str, content: DataContentType, partition: i64) -> DataFileBuilder {
    let mut builder = DataFileBuilder::default();
    builder
        .content(content)
        .file_path(format!("{LOCATION}/data/{name}.parquet"))
        .file_format(DataFileFormat::Parquet)
        .partition(part(partition))
        .record_count(2)
        .file_size_in_bytes(20);
    builder
}

fn position(name: &str, partition: i64) -> DataFile {
    delete(name, DataContentType::PositionDeletes, partition).build().unwrap()
}

fn position_of(name: &str, path: String) -> DataFile {
    delete(name, DataContentType::PositionDeletes, ONE).referenced_data_file(Some(path)).build().unwrap()
}

fn equality(name: &str, partition: i64) -> DataFile {
    delete(name, DataContentType::EqualityDeletes, partition).equality_ids(Some(vec![1])).build().unwrap()
}

fn vector(name: &str, offset: i64, path: String) -> DataFile {
    delete(name, DataContentType::PositionDeletes, ONE)
        .file_format(DataFileFormat::Puffin)
        .referenced_data_file(Some(path))
        .content_offset(Some(offset))
        .content_size_in_bytes(Some(40))
        .file_size_in_bytes(500)
        .build()
        .unwrap()
}

/// The updates by which another engine adds and removes files on top of the head.
async fn theirs(world: &World, added: Vec<Added>, removed: &[DeleteKey]) -> Vec<TableUpdate> {
    let metadata = world.catalog.metadata();
    let (file_io, names) = (world.stores.file_io(), MetadataNames::of_table(&metadata, uuid::Uuid::now_v7()));
    let snapshot_id = i64::try_from(uuid::Uuid::new_v4().as_u128() >> 66).unwrap();
    let version = metadata.format_version();
    let output = Output { file_io: &file_io, names: &names, snapshot_id, version };
    let parent = metadata.current_snapshot().unwrap();
    let mut list = Vec::new();
    for manifest in read_list_at(&file_io, parent.manifest_list(), version).await.unwrap() {
        let contents = read_manifest(&file_io, &manifest).await.unwrap();
        let is_removed = |file: &DataFile| removed.contains(&DeleteKey::of(file));
        let hit = |entry: &Entry| entry.is_live() && is_removed(&entry.file);
        match contents.entries.iter().any(hit) {
            true => list.push(write_filtered(output, &contents, is_removed).await.unwrap()),
            false => list.extend(has_live_files(&manifest).then_some(manifest)),
        }
    }
    let (data, deletes): (Vec<Added>, Vec<Added>) =
        added.into_iter().partition(|(file, _)| file.content_type() == DataContentType::Data);
    for files in [data, deletes] {
        let Some((first, _)) = files.first() else { continue };
        let out = file_io.new_output(names.manifest()).unwrap();
        let (schema, spec) = (metadata.current_schema().clone(), metadata.default_partition_spec());
        let builder = ManifestWriterBuilder::new(out, Some(snapshot_id), schema, spec.as_ref().clone());
        let mut writer = match (version, first.content_type()) {
            (FormatVersion::V3, DataContentType::Data) => builder.build_v3_data(),
            (FormatVersion::V3, _) => builder.build_v3_deletes(),
            (_, DataContentType::Data) => builder.build_v2_data(),
            _ => builder.build_v2_deletes(),
        };
        for (file, number) in files {
            world.stores.write(file.file_path(), bytes::Bytes::from_static(b"theirs")).await.unwrap();
            writer.add_file(file, number.unwrap_or(UNASSIGNED_SEQUENCE_NUMBER)).unwrap();
        }
        list.push(writer.write_manifest_file().await.unwrap());
    }
    let target = ListTarget {
        location: names.list(snapshot_id),
        snapshot_id,
        parent_id: Some(parent.snapshot_id()),
        sequence_number: metadata.next_sequence_number(),
        first_row_id: (version == FormatVersion::V3).then(|| metadata.next_row_id()),
    };
    let written = write_list(&file_io, &target, list).await.unwrap();
    let snapshot = Snapshot::builder()
        .with_snapshot_id(snapshot_id)
        .with_parent_snapshot_id(target.parent_id)
        .with_sequence_number(target.sequence_number)
        .with_timestamp_ms(metadata.last_updated_ms() + 1)
        .with_manifest_list(target.location)
        .with_summary(Summary { operation: Operation::Delete, additional_properties: HashMap::new() })
        .with_schema_id(metadata.current_schema_id());
    let snapshot = match target.first_row_id.zip(written.added_rows) {
        Some((first, rows)) => snapshot.with_row_range(first, rows).build(),
        None => snapshot.build(),
    };
    vec![TableUpdate::AddSnapshot { snapshot }, head(snapshot_id)]
}

/// Makes a snapshot the head.
fn head(snapshot_id: i64) -> TableUpdate {
    let reference = SnapshotReference::new(snapshot_id, SnapshotRetention::branch(None, None, None));
    TableUpdate::SetSnapshotRef { ref_name: "main".to_owned(), reference }
}

/// Another engine commits now.
async fn add(world: &World, added: Vec<Added>) {
    world.catalog.update(theirs(world, added, &[]).await);
}

async fn live_deletes(world: &World) -> Vec<LiveDelete> {
    let mut live = Vec::new();
    for manifest in world.list_of(world.head()).await {
        if manifest.content == ManifestContentType::Deletes {
            let contents = read_manifest(&world.stores.file_io(), &manifest).await.unwrap();
            live.extend(deletes_of(&manifest, contents));
        }
    }
    live
}

async fn names_of_deletes(world: &World) -> BTreeSet<String> {
    let name = |delete: LiveDelete| {
        let path = delete.file.file_path().trim_end_matches(".parquet");
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        delete.file.content_offset().map_or(name.clone(), |offset| format!("{name}@{offset}"))
    };
    live_deletes(world).await.into_iter().map(name).collect()
}

fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

/// What this process knows may be behind: what it finds there about a group is not the last word.
#[tokio::test]
async fn a_verdict_on_a_table_that_is_behind_drops_no_group() {
    let mut case = Case::new(FormatVersion::V2).await;
    let other = case.world.open().await;
    add(&case.world, vec![(position_of("d", case.path(0)), None)]).await;
    case.replace.planned_on = case.world.head();
    case.applied(&[DeleteKey::of(&position_of("d", case.path(0)))], 2).await;
    let outcome = other.replace(case.replace.clone()).await.unwrap();
    assert_eq!((outcome.landed, outcome.dropped), (vec![0], vec![]));
    assert_eq!((names_of_deletes(&case.world).await, case.world.rows().await), (set([]), 28));
}

const NOT_APPLIED: &str = "deletes that were not applied";

/// R3.
#[tokio::test]
async fn a_position_delete_that_came_in_between_keeps_its_group_out() {
    let case = Case::new(FormatVersion::V2).await;
    add(&case.world, vec![(position("d", ONE), None)]).await;
    case.drops(NOT_APPLIED).await;
    let case = Case::new(FormatVersion::V2).await;
    add(&case.world, vec![(position_of("d", case.path(1)), None)]).await;
    case.drops(NOT_APPLIED).await;
    let case = Case::new(FormatVersion::V3).await;
    add(&case.world, vec![(vector("d", 4, case.path(2)), None)]).await;
    case.drops(NOT_APPLIED).await;
}

/// R3 on a later attempt: the delete comes between the validation and the compare of the first one.
#[tokio::test]
async fn a_delete_that_wins_the_race_of_an_attempt_is_seen_by_the_next() {
    let case = Case::new(FormatVersion::V2).await;
    let updates = theirs(&case.world, vec![(position_of("d", case.path(0)), None)], &[]).await;
    case.world.catalog.before_next(updates);
    case.drops(NOT_APPLIED).await;
}

#[tokio::test]
async fn deletes_of_other_files_and_partitions_do_not_matter() {
    let case = Case::new(FormatVersion::V2).await;
    let foreign = format!("{LOCATION}/data/another.parquet");
    let added = vec![position_of("other-file", foreign), position("other-partition", 2), equality("e", 2)];
    add(&case.world, added.into_iter().map(|file| (file, None)).collect()).await;
    let case = case.lands().await;
    assert_eq!(names_of_deletes(&case.world).await, set(["other-file", "other-partition", "e"]));
}

/// R1.
#[tokio::test]
async fn an_equality_delete_that_came_in_between_is_harmless_and_stays() {
    let case = Case::new(FormatVersion::V2).await;
    let planned = case.sequence_number();
    add(&case.world, vec![(equality("e", ONE), None)]).await;
    let case = case.lands().await;
    let (live, deletes) = (case.world.live().await, live_deletes(&case.world).await);
    assert_eq!(live.iter().map(|file| file.sequence_number).collect::<Vec<_>>(), [planned]);
    assert_eq!(deletes[0].sequence_number, planned + 1, "it applies to the output");
}

/// An engine that rewrites delete files gives the new ones the old number, explicitly. If it adds deletes of other
/// rows with it, no number tells that they are new.
#[tokio::test]
async fn a_new_delete_with_an_old_sequence_number_is_seen() {
    for file in [position("d", ONE), equality("e", ONE)] {
        let case = Case::new(FormatVersion::V2).await;
        add(&case.world, vec![(file, Some(case.sequence_number()))]).await;
        case.drops(NOT_APPLIED).await;
    }
}

/// The plan is made on a line of history with numbers above those of a delete on another line, to which the branch is
/// set before the commit.
#[tokio::test]
async fn a_delete_on_a_line_of_history_that_was_not_planned_on_is_seen() {
    for file in [position("d", ONE), equality("e", ONE)] {
        let mut case = Case::new(FormatVersion::V2).await;
        let fork = case.world.head();
        add(&case.world, vec![(file, None)]).await;
        let with_delete = case.world.head();
        case.world.catalog.update(vec![head(fork)]);
        let more = data_file(&format!("{LOCATION}/data/more.parquet"), 5, part(ONE));
        add(&case.world, vec![(more, None)]).await;
        case.plan().await;
        // The plan's other inputs are on both lines; the last one is not.
        let more = case.replace.groups[0].removed.pop().unwrap();
        assert_eq!(more.file.record_count(), 5);
        case.replace.groups[0].added = vec![case.world.file("out", 30).await];
        case.world.catalog.update(vec![head(with_delete)]);
        case.drops(NOT_APPLIED).await;
    }
}

#[tokio::test]
async fn a_delete_that_came_and_was_rolled_back_does_not_matter() {
    let case = Case::new(FormatVersion::V2).await;
    let before = case.world.head();
    add(&case.world, vec![(position("d", ONE), None), (equality("e", ONE), None)]).await;
    case.world.catalog.update(vec![head(before)]);
    let case = case.lands().await;
    assert_eq!(case.world.rows().await, 30);
}

/// R13 with deletes: neither the snapshot that was planned on nor history is needed.
#[tokio::test]
async fn expiry_of_the_planning_snapshot_hides_no_delete() {
    let expire = async |case: &Case| {
        let planned = case.replace.planned_on;
        let more = data_file(&format!("{LOCATION}/data/more.parquet"), 5, part(ONE));
        add(&case.world, vec![(more, None)]).await;
        case.world.catalog.update(vec![TableUpdate::RemoveSnapshots { snapshot_ids: vec![planned] }]);
        case.handle.refresh().await.unwrap();
    };
    let case = Case::new(FormatVersion::V2).await;
    add(&case.world, vec![(position("d", ONE), None)]).await;
    expire(&case).await;
    case.drops(NOT_APPLIED).await;
    // An equality delete is harmless: the outputs get the highest number of the inputs.
    let case = Case::new(FormatVersion::V2).await;
    let highest = case.sequence_number();
    add(&case.world, vec![(equality("e", ONE), None)]).await;
    expire(&case).await;
    let case = case.lands().await;
    let output = case.replace.groups[0].added[0].file.file_path();
    let live = case.world.live().await;
    let output = live.iter().find(|file| file.file.file_path() == output).unwrap();
    assert_eq!(output.sequence_number, highest);
}

#[tokio::test]
async fn a_file_that_was_removed_and_added_again_is_not_the_one_that_was_planned() {
    let case = Case::new(FormatVersion::V2).await;
    let (path, file) = (DeleteKey::of(&case.files[0].file), case.files[0].file.as_ref().clone());
    case.world.catalog.update(theirs(&case.world, vec![], &[path]).await);
    // With its old data sequence number: the file sequence number cannot be chosen.
    add(&case.world, vec![(file, Some(case.files[0].sequence_number))]).await;
    case.drops("other numbers than planned").await;
}

/// R4, and the arithmetic of a deletion vector that was applied.
#[tokio::test]
async fn an_applied_vector_goes_with_its_file_and_its_sibling_stays() {
    let mut case = Case::new(FormatVersion::V3).await;
    let vectors = vec![(vector("v", 4, case.path(0)), None), (vector("v", 44, case.path(1)), None)];
    add(&case.world, vectors.clone()).await;
    case.plan().await;
    case.replace.groups[0].removed.remove(1);
    case.applied(&[DeleteKey::of(&vectors[0].0)], 2).await;
    let case = case.lands().await;
    assert_eq!(names_of_deletes(&case.world).await, set(["v@44"]));
    let metadata = case.world.catalog.metadata();
    let summary = &metadata.current_snapshot().unwrap().summary().additional_properties;
    for (name, value) in [
        ("removed-dvs", Some("1")),
        ("removed-delete-files", Some("1")),
        ("removed-position-deletes", Some("2")),
        ("removed-position-delete-files", None),
        ("removed-files-size", Some("2040")),
        ("deleted-records", Some("20")),
        ("added-records", Some("18")),
    ] {
        assert_eq!(summary.get(name).map(String::as_str), value, "{name}");
    }
    for (manifest, entry) in case.world.entries_of(case.world.head()).await {
        if manifest.content == ManifestContentType::Deletes {
            let status = match entry.file.content_offset() {
                Some(4) => ManifestStatus::Deleted,
                _ => ManifestStatus::Existing,
            };
            assert_eq!((entry.status, entry.sequence_number), (status, 4));
        }
    }
}

#[tokio::test]
async fn an_applied_delete_that_was_removed_or_replaced_keeps_its_group_out() {
    let with_delete = async || {
        let mut case = Case::new(FormatVersion::V2).await;
        add(&case.world, vec![(position_of("d", case.path(0)), None)]).await;
        case.plan().await;
        let key = DeleteKey::of(&position_of("d", case.path(0)));
        case.applied(std::slice::from_ref(&key), 2).await;
        (case, key)
    };
    let (case, key) = with_delete().await;
    case.world.catalog.update(theirs(&case.world, vec![], &[key]).await);
    case.drops("was applied and is not in the table any more").await;
    // By one with more rows in it, under the old number.
    let (case, key) = with_delete().await;
    let number = case.sequence_number();
    let other = (position_of("more", case.path(0)), Some(number));
    case.world.catalog.update(theirs(&case.world, vec![other], &[key]).await);
    case.drops("was applied and is not in the table any more").await;
    // A second one beside it.
    let (case, _) = with_delete().await;
    add(&case.world, vec![(position_of("more", case.path(0)), Some(case.sequence_number()))]).await;
    case.drops(NOT_APPLIED).await;
    // Unchanged, it goes with its file.
    let (case, _) = with_delete().await;
    let case = case.lands().await;
    assert_eq!((names_of_deletes(&case.world).await, case.world.rows().await), (set([]), 28));
}

/// The lowest number of the partition counts the outputs with their old number: without them both would go.
#[tokio::test]
async fn deletes_that_outputs_still_need_stay_and_older_ones_go() {
    let mut case = Case::new(FormatVersion::V2).await;
    let number = case.sequence_number();
    // No file is as old as these. `old-position` has the number below the lowest, `old-equality` the lowest itself.
    add(
        &case.world,
        vec![(position("old-position", ONE), Some(0)), (equality("old-equality", ONE), Some(1))],
    )
    .await;
    case.plan().await;
    assert_eq!(case.files[0].sequence_number, 1);
    add(&case.world, vec![(equality("needed", ONE), None)]).await;
    let case = case.lands().await;
    assert_eq!(names_of_deletes(&case.world).await, set(["needed"]));
    assert_eq!(case.world.live().await[0].sequence_number, number + 1);
}

/// Only when the last file that is old enough has gone.
#[tokio::test]
async fn a_delete_stays_as_long_as_another_file_is_old_enough_for_it() {
    let mut case = Case::new(FormatVersion::V2).await;
    add(&case.world, vec![(equality("e", ONE), Some(2))]).await;
    case.plan().await;
    // The oldest file is left alone; it is the only one that the delete applies to.
    let oldest = case.replace.groups[0].removed.remove(0);
    assert_eq!(oldest.sequence_number, 1);
    case.replace.groups[0].added = vec![case.world.file("out", 20).await];
    let mut case = case.lands().await;
    assert_eq!(names_of_deletes(&case.world).await, set(["e"]));
    case.plan().await;
    let key = DeleteKey::of(&equality("e", ONE));
    case.applied(&[key], 2).await;
    let case = case.lands().await;
    assert_eq!(names_of_deletes(&case.world).await, set([]));
}

/// What is dangling is found again on each attempt: an old file that came meanwhile still needs the delete.
#[tokio::test]
async fn a_file_with_an_old_number_that_wins_the_race_keeps_its_delete() {
    let mut case = Case::new(FormatVersion::V2).await;
    add(&case.world, vec![(equality("e", ONE), Some(2))]).await;
    case.plan().await;
    case.applied(&[DeleteKey::of(&equality("e", ONE))], 2).await;
    let old = data_file(&format!("{LOCATION}/data/old.parquet"), 5, part(ONE));
    let updates = theirs(&case.world, vec![(old, Some(1))], &[]).await;
    case.world.catalog.before_next(updates);
    let case = case.lands().await;
    assert_eq!(names_of_deletes(&case.world).await, set(["e"]));
}

/// R5 for delete manifests.
#[tokio::test]
async fn deletes_that_went_stay_away() {
    let mut case = Case::new(FormatVersion::V3).await;
    let vectors: Vec<Added> =
        [0, 1, 2].map(|at| (vector("v", 4 + 40 * i64::try_from(at).unwrap(), case.path(at)), None)).to_vec();
    add(&case.world, vectors.clone()).await;
    for left in [set(["v@44", "v@84"]), set(["v@84"]), set([])] {
        case.plan().await;
        case.replace.groups[0].removed.retain(|file| {
            let of = vectors
                .iter()
                .position(|(v, _)| v.referenced_data_file().as_deref() == Some(file.file.file_path()));
            of == Some(2 - left.len())
        });
        let at = 2 - left.len();
        case.applied(&[DeleteKey::of(&vectors[at].0)], 2).await;
        case.replace.groups[0].added = vec![case.world.file(&format!("less-{at}"), 8).await];
        case = case.lands().await;
        assert_eq!(names_of_deletes(&case.world).await, left);
    }
    // An append drops the manifest that only holds tombstones.
    let before = case.world.list_of(case.world.head()).await.len();
    let flush = case.world.flush(case.ids.next(), 30, 31).await;
    committed(case.handle.append(flush).await.unwrap());
    let list = case.world.list_of(case.world.head()).await;
    assert!(list.iter().all(|manifest| manifest.content == ManifestContentType::Data));
    assert_eq!((before, list.len()), (5, 4), "one more of data, and both without live files gone");
}

/// First row ids: given out once, in order, and kept by whatever is carried on.
#[tokio::test]
async fn row_ids_are_given_once_and_kept() {
    let case = Case::new(FormatVersion::V3).await;
    let first: HashMap<String, Option<i64>> = ids_of(&case.world).await;
    let expected: BTreeSet<Option<i64>> = [0, 10, 20].map(Some).into();
    assert_eq!(first.values().copied().collect::<BTreeSet<_>>(), expected);
    let mut case = case;
    case.replace.groups[0].removed.remove(1);
    case.replace.groups[0].added = vec![case.world.file("out", 20).await];
    let kept = case.path(1);
    let mut case = case.lands().await;
    let metadata = case.world.catalog.metadata();
    let snapshot = metadata.current_snapshot().unwrap();
    assert_eq!(snapshot.row_range(), Some((30, metadata.next_row_id() - 30)));
    let after = ids_of(&case.world).await;
    assert_eq!(after[&kept], first[&kept]);
    let next = i64::try_from(metadata.next_row_id()).unwrap();
    let flush = case.world.flush(case.ids.next(), 30, 33).await;
    let path = flush.files[0].file.file_path().to_owned();
    committed(case.handle.append(flush).await.unwrap());
    assert_eq!(ids_of(&case.world).await[&path], Some(next));
    assert_eq!(ids_of(&case.world).await[&kept], first[&kept]);
}

async fn ids_of(world: &World) -> HashMap<String, Option<i64>> {
    let live = world.live().await;
    live.into_iter().map(|file| (file.file.file_path().to_owned(), file.file.first_row_id())).collect()
}
