//! Entries of manifests. The numbers are the field ids of the specification's section "Manifests".

use iceberg::spec::{DataFile, DataFileBuilder, FormatVersion, ManifestEntry, ManifestStatus};

use super::cursor::Cursor;
use super::plan::ManifestPlan;
use super::schema::{Field, Kind};
use super::values::{bounds, bytes, count, counts, int, list, long, mismatch, required, text};
use super::{invalid, partition};
use crate::{Error, Result};

/// The next entry, as it is written.
pub(super) fn decode(cursor: &mut Cursor<'_>, schema: &Kind, plan: &ManifestPlan) -> Result<ManifestEntry> {
    let (mut status, mut snapshot_id, mut file) = (None, None, None);
    let (mut sequence_number, mut file_sequence_number) = (None, None);
    for field in schema.fields().unwrap_or_default() {
        match field.id {
            Some(0) => status = int(cursor, &field.kind)?,
            Some(1) => snapshot_id = long(cursor, &field.kind)?,
            Some(2) => file = Some(data_file(cursor, &field.kind, plan)?),
            Some(3) => sequence_number = long(cursor, &field.kind)?,
            Some(4) => file_sequence_number = long(cursor, &field.kind)?,
            _ => field.kind.skip(cursor)?,
        }
    }
    if plan.header.format_version == FormatVersion::V1 {
        // Format version 1 knows none; its files have the first one for every later version.
        (sequence_number, file_sequence_number) = (Some(0), Some(0));
    }
    Ok(ManifestEntry {
        status: ManifestStatus::try_from(required(status, "status")?)?,
        snapshot_id,
        sequence_number,
        file_sequence_number,
        data_file: required(file, "data_file")?,
    })
}

fn data_file(cursor: &mut Cursor<'_>, kind: &Kind, plan: &ManifestPlan) -> Result<DataFile> {
    let fields = match kind.actual(cursor)? {
        Kind::Record(fields) => fields,
        other => return Err(mismatch("a data file", other)),
    };
    let mut builder = DataFileBuilder::default();
    // A file of format version 1 has no content: it holds data.
    builder.content(0.try_into()?).partition_spec_id(plan.header.partition_spec.spec_id());
    for field in fields.iter() {
        let known = identity(&mut builder, cursor, field, plan)?
            || metrics(&mut builder, cursor, field, plan)?
            || details(&mut builder, cursor, field)?;
        if !known {
            field.kind.skip(cursor)?;
        }
    }
    builder.build().map_err(|e| invalid(format!("a data file is not complete: {e}")))
}

/// What every file has. Whether the field was one of these.
fn identity(
    builder: &mut DataFileBuilder,
    cursor: &mut Cursor<'_>,
    field: &Field,
    plan: &ManifestPlan,
) -> Result<bool> {
    let kind = &field.kind;
    match field.id {
        Some(134) => {
            if let Some(content) = int(cursor, kind)? {
                builder.content(content.try_into()?);
            }
        }
        Some(100) => _ = builder.file_path(required(text(cursor, kind)?, "file_path")?),
        Some(101) => {
            let format = required(text(cursor, kind)?, "file_format")?;
            builder.file_format(format.parse().map_err(|e| Error::from(e).context("file_format"))?);
        }
        Some(102) => _ = builder.partition(partition::decode(cursor, kind, plan)?),
        Some(103) => _ = builder.record_count(required(count(cursor, kind)?, "record_count")?),
        Some(104) => _ = builder.file_size_in_bytes(required(count(cursor, kind)?, "file_size_in_bytes")?),
        _ => return Ok(false),
    }
    Ok(true)
}

/// What is known of each column. Whether the field was one of these.
fn metrics(
    builder: &mut DataFileBuilder,
    cursor: &mut Cursor<'_>,
    field: &Field,
    plan: &ManifestPlan,
) -> Result<bool> {
    let (kind, schema) = (&field.kind, &plan.header.schema);
    match field.id {
        Some(108) => _ = builder.column_sizes(counts(cursor, kind)?),
        Some(109) => _ = builder.value_counts(counts(cursor, kind)?),
        Some(110) => _ = builder.null_value_counts(counts(cursor, kind)?),
        Some(137) => _ = builder.nan_value_counts(counts(cursor, kind)?),
        Some(125) => _ = builder.lower_bounds(bounds(cursor, kind, schema)?),
        Some(128) => _ = builder.upper_bounds(bounds(cursor, kind, schema)?),
        _ => return Ok(false),
    }
    Ok(true)
}

/// What only some files have. Whether the field was one of these.
fn details(builder: &mut DataFileBuilder, cursor: &mut Cursor<'_>, field: &Field) -> Result<bool> {
    let kind = &field.kind;
    match field.id {
        Some(131) => _ = builder.key_metadata(bytes(cursor, kind)?.map(<[u8]>::to_vec)),
        Some(132) => _ = builder.split_offsets(list(cursor, kind, long)?),
        Some(135) => _ = builder.equality_ids(list(cursor, kind, int)?),
        Some(140) => {
            if let Some(order) = int(cursor, kind)? {
                builder.sort_order_id(order);
            }
        }
        Some(142) => _ = builder.first_row_id(long(cursor, kind)?),
        Some(143) => _ = builder.referenced_data_file(text(cursor, kind)?),
        Some(144) => _ = builder.content_offset(long(cursor, kind)?),
        Some(145) => _ = builder.content_size_in_bytes(long(cursor, kind)?),
        _ => return Ok(false),
    }
    Ok(true)
}
