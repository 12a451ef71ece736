//! Rewrites of tables whose rows another engine deletes: before the plan, and between plan and commit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context, Result};
use firn_compactor::plan::SkippedFile;
use firn_compactor::{CompactOptions, Plan, RunReport, Silent, plan, run_plan};
use firn_table::catalog::{CommitCatalog, NewTable, create_table, parse_table_ident};
use firn_table::commit::{CommitLimits, TableHandle};
use firn_tests::checks::After;
use firn_tests::faults::{CommitFault, FaultyCatalog, Schedule};
use firn_tests::foreign::{
    AddColumn, Append, Clock, Compact, DeletionVectors, Engine, EqualityDelete, Expire, LiveRow,
    PositionDelete, RewritePositionDeletes, RollBack, Scope, SequenceNumber, Victims,
};
use firn_tests::warehouse::Warehouse;
use iceberg::TableUpdate;
use iceberg::spec::{FormatVersion, NestedField, PrimitiveType, Schema, Type};
use iceberg::table::Table;
use tokio_util::sync::CancellationToken;

use super::fixture::{MAX_CONFLICTS, TABLE, options};
use crate::tables;

/// A row as C1 and lineage know it: its values, its id, and when it was last updated.
type Row = (String, Option<i64>, Option<i64>);

/// A table `db.t (id long, text string)` with files of ten rows, another engine, and a compactor.
struct Lake {
    warehouse: Warehouse,
    engine: Engine,
    compactor: TableHandle,
    faults: Schedule<CommitFault>,
}

impl Lake {
    async fn new(test: &str, version: FormatVersion, files: i64) -> Result<Self> {
        let warehouse = Warehouse::new(test)?;
        let opened = warehouse.create().await?;
        let id = NestedField::required(1, "id", Type::Primitive(PrimitiveType::Long)).into();
        let text = NestedField::optional(2, "text", Type::Primitive(PrimitiveType::String)).into();
        let schema = Schema::builder().with_fields([id, text]).build()?;
        let ident = parse_table_ident(TABLE)?;
        let new = NewTable { format_version: version, ..NewTable::new(ident.clone(), schema) };
        create_table(opened.catalog.as_ref(), new).await?;
        let clock: Clock = Arc::new(|| chrono::Utc::now().timestamp_millis());
        let mut engine = Engine::new(opened.catalog.clone(), opened.stores.clone(), ident.clone(), 11, clock);
        for file in 0..files {
            engine.must(&Append { ids: file * 10..file * 10 + 10 }).await?;
        }
        let faults = Schedule::none();
        let catalog: Arc<dyn CommitCatalog> = Arc::new(FaultyCatalog::new(opened.catalog, faults.clone()));
        let compactor = TableHandle::open(catalog, opened.stores, ident, "main").await?;
        let limits = CommitLimits { max_conflicts: MAX_CONFLICTS, ..CommitLimits::default() };
        Ok(Self { warehouse, engine, compactor: compactor.with_limits(limits), faults })
    }

    async fn plan(&self) -> Result<Plan> {
        Ok(plan(&self.compactor.refresh().await?, &options().plan).await?)
    }

    async fn run(&self, plan: &Plan) -> Result<RunReport> {
        self.run_with(plan, &options()).await
    }

    async fn run_with(&self, plan: &Plan, options: &CompactOptions) -> Result<RunReport> {
        Ok(run_plan(&self.compactor, plan, options, Arc::new(Silent), CancellationToken::new()).await?)
    }

    async fn live(&mut self) -> Result<Vec<LiveRow>> {
        let table = self.engine.table().await?;
        let head = table.metadata().current_snapshot_id().context("a snapshot")?;
        self.engine.reader.live(&table, head).await
    }

    /// The rows, each with how often it is there.
    async fn rows(&mut self) -> Result<BTreeMap<Row, u64>> {
        let mut rows = BTreeMap::new();
        for row in self.live().await? {
            *rows.entry((row.text, row.row_id, row.last_updated)).or_default() += 1;
        }
        Ok(rows)
    }

    async fn ids(&mut self) -> Result<BTreeSet<i64>> {
        Ok(self.live().await?.into_iter().filter_map(|row| row.id).collect())
    }

    /// Data files and delete files of the head.
    async fn files(&mut self) -> Result<(usize, usize)> {
        let table = self.engine.table().await?;
        let head = table.metadata().current_snapshot_id().context("a snapshot")?;
        let entries = self.engine.reader.entries(&table, head).await?;
        let data = entries.iter().filter(|entry| entry.is_data()).count();
        Ok((data, entries.len() - data))
    }

    /// Runs a plan that must keep the rows as they are, with their ids, and lands all its groups or none.
    async fn keeps_rows(&mut self, plan: &Plan) -> Result<RunReport> {
        let before = self.rows().await?;
        let report = self.run(plan).await?;
        assert_eq!(self.rows().await?, before, "{report:?}");
        self.warehouse.check(TABLE, After::GracefulStop).await?;
        Ok(report)
    }

    /// Runs a plan that must be dropped, and keep the rows as they are.
    async fn drops(&mut self, plan: &Plan) -> Result<String> {
        let report = self.keeps_rows(plan).await?;
        assert_eq!((report.groups_landed, report.dropped.len()), (0, 1), "{report:?}");
        Ok(report.dropped[0].reason.clone())
    }
}

const VERSIONS: [FormatVersion; 2] = [FormatVersion::V2, FormatVersion::V3];

fn without(all: std::ops::Range<i64>, gone: &[i64]) -> BTreeSet<i64> {
    all.filter(|id| !gone.contains(id)).collect()
}

/// R1: an equality delete between plan and commit deletes from the outputs too, and not from what came later.
#[tokio::test]
async fn an_equality_delete_that_came_in_between_still_deletes() -> Result<()> {
    for version in VERSIONS {
        let mut lake = Lake::new("equality-in-between", version, 3).await?;
        let plan = lake.plan().await?;
        lake.engine.must(&EqualityDelete { victims: Victims::ids([2, 15]) }).await?;
        lake.engine.must(&Append { ids: 15..17 }).await?;
        let report = lake.keeps_rows(&plan).await?;
        assert_eq!((report.groups_landed, report.files_in), (1, 3), "{report:?}");
        assert_eq!(lake.ids().await?, without(0..30, &[2]));
        assert_eq!(lake.files().await?, (2, 1));
    }
    Ok(())
}

/// R3.
#[tokio::test]
async fn a_group_whose_rows_are_deleted_meanwhile_is_dropped_and_nothing_comes_back() -> Result<()> {
    for scope in [Scope::FileByBounds, Scope::FileByReference, Scope::Partition] {
        let mut lake = Lake::new("position-in-between", FormatVersion::V2, 3).await?;
        let plan = lake.plan().await?;
        lake.engine.must(&PositionDelete { victims: Victims::ids([2, 15]), scope }).await?;
        lake.drops(&plan).await?;
        assert_eq!(lake.ids().await?, without(0..30, &[2, 15]), "{scope:?}");
        let next = lake.plan().await?;
        let report = lake.keeps_rows(&next).await?;
        assert_eq!((report.deleted_rows, report.files_out), (2, 1), "{scope:?}: {report:?}");
        assert!(lake.plan().await?.is_empty());
    }
    let mut lake = Lake::new("vector-in-between", FormatVersion::V3, 3).await?;
    let plan = lake.plan().await?;
    lake.engine.must(&DeletionVectors { victims: Victims::ids([2, 15]) }).await?;
    lake.drops(&plan).await?;
    assert_eq!(lake.ids().await?, without(0..30, &[2, 15]));
    Ok(())
}

/// R4.
#[tokio::test]
async fn a_vector_stays_when_only_the_other_file_of_its_puffin_is_compacted() -> Result<()> {
    let mut lake = Lake::new("sibling-vectors", FormatVersion::V3, 4).await?;
    lake.engine.must(&DeletionVectors { victims: Victims::ids([2, 15]) }).await?;
    let mut plan = lake.plan().await?;
    assert_eq!(plan.groups[0].files.len(), 4);
    // All but the file of row 15.
    let row = lake.live().await?.into_iter().find(|row| row.id == Some(14)).context("row 14")?;
    plan.groups[0].files.retain(|file| file.path != row.path.as_ref());
    let report = lake.keeps_rows(&plan).await?;
    assert_eq!((report.groups_landed, report.files_in, report.deleted_rows), (1, 3, 1));
    assert_eq!(lake.ids().await?, without(0..40, &[2, 15]));
    assert_eq!(lake.files().await?, (2, 1));
    Ok(())
}

/// R5: tombstones of data and delete manifests stay dead over many rewrites.
#[tokio::test]
async fn what_was_deleted_stays_deleted_over_many_rewrites() -> Result<()> {
    let mut lake = Lake::new("deleted-stays", FormatVersion::V3, 3).await?;
    let mut left = without(0..30, &[]);
    for round in 3..9 {
        lake.engine.must(&DeletionVectors { victims: Victims::ids([round, round * 3]) }).await?;
        left.retain(|id| ![round, round * 3].contains(id));
        let plan = lake.plan().await?;
        lake.keeps_rows(&plan).await?;
        lake.engine.must(&Append { ids: round * 10..round * 10 + 10 }).await?;
        left.extend(round * 10..round * 10 + 10);
        assert_eq!(lake.ids().await?, left);
    }
    Ok(())
}

/// R9: a file of the right size is rewritten when enough of its rows are deleted.
#[tokio::test]
async fn a_file_of_the_right_size_with_many_deleted_rows_is_rewritten() -> Result<()> {
    let mut lake = Lake::new("right-size-deleted", FormatVersion::V2, 1).await?;
    let table = lake.engine.table().await?;
    let entries = lake.engine.reader.entries(&table, head(&table)?).await?;
    let bytes = entries[0].file.file_size_in_bytes();
    let mut options = options();
    options.plan.overrides.insert("target-file-size-bytes".to_owned(), bytes.to_string());
    assert!(plan(&lake.compactor.refresh().await?, &options.plan).await?.is_empty());
    let victims = Victims::ids([1, 2, 3, 4]);
    lake.engine.must(&PositionDelete { victims, scope: Scope::FileByReference }).await?;
    let rewrite = plan(&lake.compactor.refresh().await?, &options.plan).await?;
    assert_eq!(rewrite.groups.len(), 1);
    let report = lake.run_with(&rewrite, &options).await?;
    assert_eq!((report.groups_landed, report.deleted_rows), (1, 4), "{report:?}");
    assert_eq!((lake.ids().await?, lake.files().await?), (without(0..10, &[1, 2, 3, 4]), (1, 0)));
    Ok(())
}

fn head(table: &Table) -> Result<i64> {
    table.metadata().current_snapshot_id().context("a snapshot")
}

/// Files with equality deletes are named and left alone; all others are rewritten.
#[tokio::test]
async fn files_with_equality_deletes_are_skipped_and_the_others_rewritten() -> Result<()> {
    let mut lake = Lake::new("equality-skipped", FormatVersion::V2, 3).await?;
    lake.engine.must(&EqualityDelete { victims: Victims::ids([2]) }).await?;
    for file in 3..6 {
        lake.engine.must(&Append { ids: file * 10..file * 10 + 10 }).await?;
    }
    let plan = lake.plan().await?;
    let has_deletes = |file: &&SkippedFile| file.reason.to_string().contains("deletes");
    assert_eq!(plan.skipped.iter().filter(has_deletes).count(), 3, "{:?}", plan.skipped);
    let report = lake.keeps_rows(&plan).await?;
    assert_eq!((report.groups_landed, report.files_in), (1, 3));
    assert_eq!(lake.files().await?, (4, 1), "the delete is still needed");
    Ok(())
}

/// R13: the planning snapshot expires, with and without a delete in between.
#[tokio::test]
async fn a_delete_is_seen_though_the_planning_snapshot_expired() -> Result<()> {
    let mut lake = Lake::new("expired-plan", FormatVersion::V2, 3).await?;
    let plan = lake.plan().await?;
    lake.engine.must(&PositionDelete { victims: Victims::ids([2]), scope: Scope::Partition }).await?;
    lake.engine.must(&Append { ids: 30..40 }).await?;
    lake.engine.expire(&Expire { keep: 1 }).await?;
    // What the plan's files and their deletes are is then found in the head.
    let report = lake.keeps_rows(&plan).await?;
    assert_eq!((report.groups_landed, report.deleted_rows), (1, 1), "{report:?}");
    assert_eq!(lake.ids().await?, without(0..40, &[2]));
    Ok(())
}

/// R13: the table is rolled back below the plan.
#[tokio::test]
async fn after_a_rollback_a_rewrite_lands_if_its_inputs_and_their_deletes_are_as_they_were() -> Result<()> {
    let mut lake = Lake::new("rolled-back-delete", FormatVersion::V3, 3).await?;
    let plain = lake.plan().await?;
    lake.engine.must(&DeletionVectors { victims: Victims::ids([2]) }).await?;
    let with_vector = lake.plan().await?;
    lake.engine.must(&RollBack::Steps(1)).await?;
    // Row 2 is back, and is no longer among the rows that this plan reads.
    lake.drops(&with_vector).await?;
    assert_eq!(lake.ids().await?, without(0..30, &[]));
    assert_eq!(lake.keeps_rows(&plain).await?.groups_landed, 1);
    Ok(())
}

/// The plan is made on one line of history, the branch is set to another, whose delete has a lower sequence number
/// than the plan: sequence numbers do not tell that it is new.
#[tokio::test]
async fn a_delete_on_another_line_of_history_is_seen() -> Result<()> {
    for equality in [false, true] {
        let mut lake = Lake::new("other-line", FormatVersion::V2, 3).await?;
        let fork = head(&lake.engine.table().await?)?;
        let victims = Victims::ids([2]);
        let deleted = match equality {
            true => lake.engine.must(&EqualityDelete { victims }).await?,
            false => lake.engine.must(&PositionDelete { victims, scope: Scope::FileByBounds }).await?,
        };
        tables::roll_back(&lake.warehouse, TABLE, fork).await?;
        lake.engine.must(&AddColumn { name: "more".to_owned(), kind: PrimitiveType::Long }).await?;
        // Something that moves the sequence number and goes away again: the plan's files are on both lines.
        lake.engine.must(&Append { ids: 30..40 }).await?;
        let mut plan = lake.plan().await?;
        let row = lake.live().await?.into_iter().find(|row| row.id == Some(30)).context("row 30")?;
        plan.groups[0].files.retain(|file| file.path != row.path.as_ref());
        tables::roll_back(&lake.warehouse, TABLE, head(&deleted)?).await?;
        lake.drops(&plan).await?;
        assert_eq!(lake.ids().await?, without(0..30, &[2]), "equality: {equality}");
    }
    Ok(())
}

/// An engine rewrites delete files under their old sequence number and adds deletes with it.
#[tokio::test]
async fn deletes_that_are_added_to_rewritten_ones_under_an_old_number_are_seen() -> Result<()> {
    for sequence_number in [SequenceNumber::Kept, SequenceNumber::New] {
        let mut lake = Lake::new("old-number", FormatVersion::V2, 3).await?;
        let victims = Victims::ids([2]);
        lake.engine.must(&PositionDelete { victims, scope: Scope::FileByBounds }).await?;
        let plan = lake.plan().await?;
        assert_eq!(plan.groups[0].files.len(), 3);
        let victims = Victims::ids([3]);
        lake.engine.must(&RewritePositionDeletes { sequence_number, victims }).await?;
        lake.drops(&plan).await?;
        assert_eq!(lake.ids().await?, without(0..30, &[2, 3]), "{sequence_number:?}");
    }
    Ok(())
}

/// R15, with deletes: nothing is left behind after definite conflicts.
#[tokio::test]
async fn a_rewrite_with_deletes_that_gives_up_leaves_no_file() -> Result<()> {
    let mut lake = Lake::new("conflicts-deletes", FormatVersion::V3, 3).await?;
    lake.engine.must(&DeletionVectors { victims: Victims::ids([2]) }).await?;
    let plan = lake.plan().await?;
    lake.faults.storm(&CommitFault::Conflicts, 100);
    let report = lake.run(&plan).await?;
    lake.faults.quiet();
    assert_eq!(report.groups_landed, 0, "{report:?}");
    lake.warehouse.check(TABLE, After::GracefulStop).await?;
    assert_eq!(lake.ids().await?, without(0..30, &[2]));
    Ok(())
}

/// R18: pairs of row id and row stay, also of files from before the upgrade to format version 3.
#[tokio::test]
async fn row_ids_survive_compaction_also_across_an_upgrade() -> Result<()> {
    let mut lake = Lake::new("upgrade", FormatVersion::V2, 2).await?;
    lake.engine.must(&PositionDelete { victims: Victims::ids([2]), scope: Scope::FileByBounds }).await?;
    let before_upgrade = lake.plan().await?;
    let upgrade = TableUpdate::UpgradeFormatVersion { format_version: FormatVersion::V3 };
    tables::update(&lake.warehouse, TABLE, vec![upgrade]).await?;
    lake.engine.must(&Append { ids: 20..30 }).await?;
    // The first commit of the new format gave ids to all rows, which the outputs of the old plan do not have.
    assert!(lake.live().await?.iter().all(|row| row.row_id.is_some()));
    let reason = lake.drops(&before_upgrade).await?;
    assert!(reason.contains("other numbers than planned"), "{reason}");
    lake.engine.must(&DeletionVectors { victims: Victims::ids([15]) }).await?;
    lake.engine.must(&Append { ids: 30..40 }).await?;
    let plan = lake.plan().await?;
    let report = lake.keeps_rows(&plan).await?;
    assert_eq!((report.groups_landed, report.deleted_rows), (1, 2), "{report:?}");
    // And once more, from files that have stored ids.
    lake.engine.must(&Compact { min_files: 1 }).await?;
    lake.engine.must(&Append { ids: 40..50 }).await?;
    let plan = lake.plan().await?;
    assert_eq!(lake.keeps_rows(&plan).await?.groups_landed, 1);
    assert_eq!(lake.ids().await?, without(0..50, &[2, 15]));
    Ok(())
}

/// R17: a group whose deletes remove every row has no outputs.
#[tokio::test]
async fn a_group_whose_rows_are_all_deleted_leaves_no_file() -> Result<()> {
    let mut lake = Lake::new("all-deleted", FormatVersion::V2, 2).await?;
    lake.engine.must(&PositionDelete { victims: Victims::ids(0..20), scope: Scope::Partition }).await?;
    let plan = lake.plan().await?;
    let report = lake.keeps_rows(&plan).await?;
    assert_eq!((report.groups_landed, report.files_out, report.deleted_rows), (1, 0, 20), "{report:?}");
    assert_eq!(lake.files().await?, (0, 0), "the deletes went with the files");
    Ok(())
}
