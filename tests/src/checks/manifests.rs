//! Rules of manifests and their entries: specification "Manifests", "Manifest lists", "Sequence number inheritance",
//! and what firn promises on top (tombstones dropped when a manifest is written anew, no manifest without live files
//! carried on).

use std::collections::{HashMap, HashSet};

use iceberg::spec::{
    DataContentType, Datum, FieldSummary, Literal, ManifestContentType, ManifestEntry, ManifestStatus,
    PrimitiveLiteral, PrimitiveType, SnapshotRef, TableMetadata, Type,
};

use super::{Contents, LoadedManifest, SnapshotContents};

/// What breaks the rules within one snapshot.
#[must_use]
pub fn manifest_problems(contents: &SnapshotContents) -> Vec<String> {
    let mut problems = live_twice(contents);
    for manifest in &contents.manifests {
        let of_manifest = problems_of_manifest(manifest, contents.snapshot.snapshot_id());
        let place =
            format!("snapshot {}: {}", contents.snapshot.snapshot_id(), manifest.listed.manifest_path);
        problems.extend(of_manifest.into_iter().map(|problem| format!("{place}: {problem}")));
    }
    problems
}

/// What breaks the rules within one manifest of a snapshot.
#[must_use]
pub fn problems_of_manifest(manifest: &LoadedManifest, snapshot_id: i64) -> Vec<String> {
    let mut problems = listing_problems(manifest, snapshot_id);
    problems.extend(manifest.manifest.entries().iter().flat_map(|entry| entry_problems(manifest, entry)));
    problems.extend(partition_problems(manifest));
    problems
}

/// Paths that are live in a snapshot although an ancestor of it had removed them.
#[must_use]
pub fn revived(metadata: &TableMetadata, contents: &Contents) -> Vec<String> {
    let by_id: HashMap<i64, &SnapshotContents> =
        contents.snapshots.iter().map(|snapshot| (snapshot.snapshot.snapshot_id(), snapshot)).collect();
    let mut line: Vec<&SnapshotContents> = Vec::new();
    let mut next = metadata.current_snapshot().map(SnapshotRef::as_ref);
    while let Some(snapshot) = next {
        line.extend(by_id.get(&snapshot.snapshot_id()));
        next =
            snapshot.parent_snapshot_id().and_then(|id| metadata.snapshot_by_id(id)).map(SnapshotRef::as_ref);
    }
    let (mut removed, mut problems) = (HashSet::new(), Vec::new());
    let mut before: HashSet<&str> = HashSet::new();
    for snapshot in line.into_iter().rev() {
        let live: HashSet<&str> = snapshot.live().map(ManifestEntry::file_path).collect();
        removed.extend(before.difference(&live).copied());
        let again = live.iter().filter(|path| removed.contains(*path));
        problems.extend(
            again.map(|path| {
                format!("snapshot {}: {path} was removed before", snapshot.snapshot.snapshot_id())
            }),
        );
        before = live;
    }
    problems
}

/// Paths that are live more than once in a snapshot.
#[must_use]
pub fn live_twice(contents: &SnapshotContents) -> Vec<String> {
    let mut seen = HashSet::new();
    // Deletion vectors share a file.
    let twice =
        contents.live().filter(|entry| !seen.insert((entry.file_path(), entry.data_file().content_offset())));
    twice
        .map(|entry| {
            format!("snapshot {}: {} is live twice", contents.snapshot.snapshot_id(), entry.file_path())
        })
        .collect()
}

/// The manifest list's entry against the manifest.
fn listing_problems(manifest: &LoadedManifest, snapshot_id: i64) -> Vec<String> {
    let (listed, entries) = (&manifest.listed, manifest.manifest.entries());
    let mut problems = Vec::new();
    let counts = [
        (ManifestStatus::Added, listed.added_files_count, listed.added_rows_count),
        (ManifestStatus::Existing, listed.existing_files_count, listed.existing_rows_count),
        (ManifestStatus::Deleted, listed.deleted_files_count, listed.deleted_rows_count),
    ];
    for (status, files, rows) in counts {
        let of_status = entries.iter().filter(|entry| entry.status == status);
        let (counted_files, counted_rows) =
            of_status.fold((0, 0), |(files, rows), entry| (files + 1, rows + entry.record_count()));
        if (files, rows) != (Some(counted_files), Some(counted_rows)) {
            problems.push(format!(
                "{status:?}: listed {files:?}/{rows:?}, counted {counted_files}/{counted_rows}"
            ));
        }
    }
    if manifest.live().next().is_none() && listed.added_snapshot_id != snapshot_id {
        problems.push("is carried on without a live file".to_owned());
    }
    let lowest = manifest.live().map(|entry| entry.sequence_number.unwrap_or(listed.sequence_number)).min();
    if lowest.is_some_and(|lowest| lowest != listed.min_sequence_number) {
        problems.push(format!("min_sequence_number is {}, counted {lowest:?}", listed.min_sequence_number));
    }
    let header = manifest.manifest.metadata();
    if header.partition_spec().spec_id() != listed.partition_spec_id || *header.content() != listed.content {
        problems.push("spec or content of the list and of the header differ".to_owned());
    }
    problems
}

fn entry_problems(manifest: &LoadedManifest, entry: &ManifestEntry) -> Vec<String> {
    let listed = &manifest.listed;
    let mut problems = Vec::new();
    let holds_data = entry.content_type() == DataContentType::Data;
    if holds_data != (listed.content == ManifestContentType::Data) {
        problems.push("data and delete files share a manifest");
    }
    let by_this_commit = entry.snapshot_id.is_none_or(|id| id == listed.added_snapshot_id);
    let explicit = entry.sequence_number.is_some() && entry.file_sequence_number.is_some();
    match entry.status {
        ManifestStatus::Added => {
            if !by_this_commit {
                problems.push("an added entry names another snapshot than the manifest's");
            }
            if entry.file_sequence_number.is_some_and(|number| number != listed.sequence_number) {
                problems.push("an added entry's file sequence number is not its commit's");
            }
            if entry.sequence_number.is_some_and(|number| number > listed.sequence_number) {
                problems.push("an added entry's data sequence number is above its commit's");
            }
        }
        ManifestStatus::Existing => {
            if !explicit || entry.snapshot_id.is_none() {
                problems.push("an existing entry lacks its snapshot or a sequence number");
            }
        }
        ManifestStatus::Deleted => {
            if !explicit {
                problems.push("a deleted entry lacks a sequence number");
            }
            if !by_this_commit {
                problems.push("a tombstone of an earlier commit was kept");
            }
        }
    }
    problems.into_iter().map(|problem| format!("{}: {problem}", entry.file_path())).collect()
}

/// Partition summaries against the partitions of all entries.
fn partition_problems(manifest: &LoadedManifest) -> Vec<String> {
    let header = manifest.manifest.metadata();
    let Ok(partition_type) = header.partition_spec().partition_type(header.schema()) else {
        return vec!["the partition type cannot be told from the header".to_owned()];
    };
    let summaries = manifest.listed.partitions.as_deref().unwrap_or_default();
    if summaries.len() != partition_type.fields().len() {
        return vec![format!(
            "{} partition summaries for {} fields",
            summaries.len(),
            partition_type.fields().len()
        )];
    }
    let mut problems = Vec::new();
    for (at, (field, summary)) in partition_type.fields().iter().zip(summaries).enumerate() {
        let Type::Primitive(kind) = field.field_type.as_ref() else { continue };
        let values: Vec<Option<&Literal>> = manifest
            .live()
            .map(|entry| entry.data_file().partition().fields().get(at).and_then(Option::as_ref))
            .collect();
        if let Some(problem) = summary_problem(summary, kind, &values) {
            problems.push(format!("summary of partition field {}: {problem}", field.name));
        }
    }
    problems
}

/// Readers prune by the summary, so it must hold every live value; it may be wider.
fn summary_problem(
    summary: &FieldSummary,
    kind: &PrimitiveType,
    values: &[Option<&Literal>],
) -> Option<String> {
    if values.iter().any(Option::is_none) && !summary.contains_null {
        return Some("a null is not said".to_owned());
    }
    let literals: Vec<PrimitiveLiteral> =
        values.iter().flatten().filter_map(|v| v.as_primitive_literal()).collect();
    if literals.iter().any(PrimitiveLiteral::is_nan) && summary.contains_nan == Some(false) {
        return Some("a NaN is not said".to_owned());
    }
    let read = |bytes: &Vec<u8>| Datum::try_from_bytes(bytes, kind.clone());
    let (lower, upper) = (summary.lower_bound.as_deref().map(read), summary.upper_bound.as_deref().map(read));
    let (lower, upper) = match (lower, upper) {
        (Some(Ok(lower)), Some(Ok(upper))) => (lower, upper),
        (Some(Err(_)), _) | (_, Some(Err(_))) => return Some("a bound cannot be read".to_owned()),
        _ if literals.iter().all(PrimitiveLiteral::is_nan) => return None,
        _ => return Some("bounds are absent though there are values".to_owned()),
    };
    let outside =
        literals.iter().filter(|literal| !literal.is_nan()).filter_map(|literal| datum(kind, literal));
    let outside = outside.filter(|value| *value < lower || *value > upper).collect::<Vec<_>>();
    (!outside.is_empty()).then(|| format!("{outside:?} lie outside {lower} to {upper}"))
}

/// A partition value with its type; none for types whose order is not checked.
fn datum(kind: &PrimitiveType, literal: &PrimitiveLiteral) -> Option<Datum> {
    match (kind, literal) {
        (PrimitiveType::Int, PrimitiveLiteral::Int(value)) => Some(Datum::int(*value)),
        (PrimitiveType::Date, PrimitiveLiteral::Int(value)) => Some(Datum::date(*value)),
        (PrimitiveType::Long, PrimitiveLiteral::Long(value)) => Some(Datum::long(*value)),
        (PrimitiveType::Timestamp, PrimitiveLiteral::Long(value)) => Some(Datum::timestamp_micros(*value)),
        (PrimitiveType::Timestamptz, PrimitiveLiteral::Long(value)) => {
            Some(Datum::timestamptz_micros(*value))
        }
        (PrimitiveType::String, PrimitiveLiteral::String(value)) => Some(Datum::string(value)),
        (PrimitiveType::Boolean, PrimitiveLiteral::Boolean(value)) => Some(Datum::bool(*value)),
        _ => None,
    }
}
