//! Entries of manifest lists. The numbers are the field ids of the specification's section "Manifest lists".

use iceberg::spec::{FieldSummary, FormatVersion, ManifestContentType, ManifestFile};

use super::cursor::Cursor;
use super::schema::{Field, Kind};
use super::values::{boolean, bytes, count, int, list, long, mismatch, required, text};
use crate::Result;

/// The next entry. What format version 1 does not know is data of the sequence number zero.
pub(super) fn decode(cursor: &mut Cursor<'_>, schema: &Kind, version: FormatVersion) -> Result<ManifestFile> {
    let (mut path, mut length, mut spec_id, mut snapshot_id) = (None, None, None, None);
    let mut file = ManifestFile {
        manifest_path: String::new(),
        manifest_length: 0,
        partition_spec_id: 0,
        content: ManifestContentType::Data,
        sequence_number: 0,
        min_sequence_number: 0,
        added_snapshot_id: 0,
        added_files_count: None,
        existing_files_count: None,
        deleted_files_count: None,
        added_rows_count: None,
        existing_rows_count: None,
        deleted_rows_count: None,
        partitions: None,
        key_metadata: None,
        first_row_id: None,
    };
    for field in schema.fields().unwrap_or_default() {
        let kind = &field.kind;
        match field.id {
            Some(500) => path = text(cursor, kind)?,
            Some(501) => length = long(cursor, kind)?,
            Some(502) => spec_id = int(cursor, kind)?,
            Some(503) => snapshot_id = long(cursor, kind)?,
            Some(507) => file.partitions = list(cursor, kind, summary)?,
            Some(519) => file.key_metadata = bytes(cursor, kind)?.map(<[u8]>::to_vec),
            Some(520) => file.first_row_id = count(cursor, kind)?,
            _ => later(&mut file, cursor, field)?,
        }
    }
    file.manifest_path = required(path, "manifest_path")?;
    file.manifest_length = required(length, "manifest_length")?;
    file.partition_spec_id = required(spec_id, "partition_spec_id")?;
    file.added_snapshot_id = required(snapshot_id, "added_snapshot_id")?;
    if version != FormatVersion::V3 {
        file.first_row_id = None;
    }
    Ok(file)
}

/// What format version 2 added, or demands where version 1 did not.
fn later(file: &mut ManifestFile, cursor: &mut Cursor<'_>, field: &Field) -> Result<()> {
    let kind = &field.kind;
    match field.id {
        Some(504) => file.added_files_count = count(cursor, kind)?,
        Some(505) => file.existing_files_count = count(cursor, kind)?,
        Some(506) => file.deleted_files_count = count(cursor, kind)?,
        Some(512) => file.added_rows_count = count(cursor, kind)?,
        Some(513) => file.existing_rows_count = count(cursor, kind)?,
        Some(514) => file.deleted_rows_count = count(cursor, kind)?,
        Some(515) => file.sequence_number = long(cursor, kind)?.unwrap_or(0),
        Some(516) => file.min_sequence_number = long(cursor, kind)?.unwrap_or(0),
        Some(517) => file.content = int(cursor, kind)?.unwrap_or(0).try_into()?,
        _ => kind.skip(cursor)?,
    }
    Ok(())
}

fn summary(cursor: &mut Cursor<'_>, kind: &Kind) -> Result<Option<FieldSummary>> {
    let fields = match kind.actual(cursor)? {
        Kind::Null => return Ok(None),
        Kind::Record(fields) => fields,
        other => return Err(mismatch("a summary of partition values", other)),
    };
    let (mut contains_null, mut summary) = (None, FieldSummary::default());
    for field in fields.iter() {
        let kind = &field.kind;
        match field.id {
            Some(509) => contains_null = boolean(cursor, kind)?,
            Some(518) => summary.contains_nan = boolean(cursor, kind)?,
            Some(510) => summary.lower_bound = bytes(cursor, kind)?.map(|bytes| bytes.to_vec().into()),
            Some(511) => summary.upper_bound = bytes(cursor, kind)?.map(|bytes| bytes.to_vec().into()),
            _ => kind.skip(cursor)?,
        }
    }
    summary.contains_null = required(contains_null, "contains_null")?;
    Ok(Some(summary))
}
