//! What a snapshot's summary counts, against a recount of its manifests.

use iceberg::spec::{DataContentType, DataFileFormat, ManifestEntry, ManifestStatus};

use super::SnapshotContents;

/// Files, rows and bytes of some entries. A deletion vector is a delete file of its own, with the bytes of its content.
#[derive(Debug, Default, Clone, Copy)]
struct Counted {
    files: u64,
    rows: u64,
    bytes: u64,
    delete_files: u64,
    vectors: u64,
    positions: u64,
    equality_rows: u64,
}

impl Counted {
    fn of<'a>(entries: impl Iterator<Item = &'a ManifestEntry>) -> Self {
        entries.fold(Self::default(), |mut sum, entry| {
            let (file, rows) = (entry.data_file(), entry.record_count());
            let is_vector = file.file_format() == DataFileFormat::Puffin;
            let own = file.content_size_in_bytes().filter(|_| is_vector);
            sum.bytes += own.and_then(|b| u64::try_from(b).ok()).unwrap_or(entry.file_size_in_bytes());
            match entry.content_type() {
                DataContentType::Data => {
                    sum.files += 1;
                    sum.rows += rows;
                }
                DataContentType::PositionDeletes => {
                    sum.delete_files += 1;
                    sum.vectors += u64::from(is_vector);
                    sum.positions += rows;
                }
                DataContentType::EqualityDeletes => {
                    sum.delete_files += 1;
                    sum.equality_rows += rows;
                }
            }
            sum
        })
    }
}

/// Entries of the summary that differ from the recount. An absent total is allowed, an absent count means none.
#[must_use]
pub fn total_problems(contents: &SnapshotContents) -> Vec<String> {
    let id = contents.snapshot.snapshot_id();
    let own = contents.manifests.iter().filter(|manifest| manifest.listed.added_snapshot_id == id);
    let entries = own.flat_map(|manifest| manifest.manifest.entries().iter().map(AsRef::as_ref));
    let (added, deleted): (Vec<&ManifestEntry>, Vec<&ManifestEntry>) = entries
        .filter(|entry: &&ManifestEntry| entry.status != ManifestStatus::Existing)
        .partition(|entry| entry.status == ManifestStatus::Added);
    let (live, added, deleted) =
        (Counted::of(contents.live()), Counted::of(added.into_iter()), Counted::of(deleted.into_iter()));
    let expected = [
        ("total-data-files", live.files),
        ("total-records", live.rows),
        ("total-files-size", live.bytes),
        ("total-delete-files", live.delete_files),
        ("total-position-deletes", live.positions),
        ("total-equality-deletes", live.equality_rows),
        ("added-data-files", added.files),
        ("added-records", added.rows),
        ("added-files-size", added.bytes),
        ("deleted-data-files", deleted.files),
        ("deleted-records", deleted.rows),
        ("removed-files-size", deleted.bytes),
        ("added-delete-files", added.delete_files),
        ("removed-delete-files", deleted.delete_files),
        ("removed-dvs", deleted.vectors),
        ("removed-position-deletes", deleted.positions),
        ("removed-equality-deletes", deleted.equality_rows),
    ];
    let summary = &contents.snapshot.summary().additional_properties;
    let differs = |(name, counted): (&str, u64)| {
        let said = summary.get(name).map(String::as_str);
        let absent_means = if name.starts_with("total-") { counted } else { 0 };
        let said_number = said.map_or(Ok(absent_means), str::parse::<u64>);
        (said_number != Ok(counted))
            .then(|| format!("snapshot {id}: {name} is {}, counted {counted}", said.unwrap_or("absent")))
    };
    expected.into_iter().filter_map(differs).collect()
}
