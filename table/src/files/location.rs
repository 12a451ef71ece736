//! Where data files go: partition paths as Java writes them, and locations below the table's data location.

mod human;

use iceberg::spec::{PartitionSpec, Schema, Struct, Transform, Type};
use iceberg::table::Table;

use self::human::human;
use super::transform::murmur3;
use crate::{Error, ErrorKind, Result};

/// The partition as a path: `day=2026-01-02/id_bucket=3`, names and values form-urlencoded as Java does it;
/// empty where unpartitioned. `schema` may be any schema that knows the spec's source columns; where it does
/// not know one (it was dropped), the value is written by its own kind.
pub fn partition_path(spec: &PartitionSpec, schema: &Schema, partition: &Struct) -> Result<String> {
    if partition.fields().len() != spec.fields().len() {
        return Err(Error::new(
            ErrorKind::Data,
            format!(
                "a partition of {} values for partition spec `{}`, which has {}",
                partition.fields().len(),
                spec.spec_id(),
                spec.fields().len()
            ),
        ));
    }
    let mut path = String::new();
    for (field, value) in spec.fields().iter().zip(partition.iter()) {
        let source =
            schema.field_by_id(field.source_id).and_then(|source| match source.field_type.as_ref() {
                Type::Primitive(primitive) => Some(primitive),
                _ => None,
            });
        let text = match value {
            Some(value) if field.transform != Transform::Void => human(field.transform, source, value),
            _ => "null".to_owned(),
        };
        if !path.is_empty() {
            path.push('/');
        }
        encode(&field.name, &mut path);
        path.push('=');
        encode(&text, &mut path);
    }
    Ok(path)
}

/// The location of a new data file: the table's data location (`write.data.path`), the partition's path, the
/// name. With `write.object-storage.enabled` a hash stands between, as Java's location provider puts it.
pub fn data_file_location(
    table: &Table,
    spec: &PartitionSpec,
    partition: &Struct,
    name: &str,
) -> Result<String> {
    let metadata = table.metadata();
    let properties = metadata.properties();
    let is = |key: &str, default: bool| {
        properties.get(key).map_or(default, |text| text.trim().eq_ignore_ascii_case("true"))
    };
    let property = |key: &str| properties.get(key).map(|path| path.trim_end_matches('/').to_owned());
    let default = || format!("{}/data", metadata.location().trim_end_matches('/'));
    let path = partition_path(spec, metadata.current_schema(), partition)?;
    let below = if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
    if !is("write.object-storage.enabled", false) {
        let data = property("write.data.path").or_else(|| property("write.folder-storage.path"));
        return Ok(format!("{}/{below}", data.unwrap_or_else(default)));
    }
    let data = property("write.data.path")
        .or_else(|| property("write.object-storage.path"))
        .or_else(|| property("write.folder-storage.path"))
        .unwrap_or_else(default);
    if is("write.object-storage.partitioned-paths", true) {
        Ok(format!("{data}/{}/{below}", entropy(&below)))
    } else {
        Ok(format!("{data}/{}-{name}", entropy(name)))
    }
}

/// The lowest 20 bits of a name's hash, as three folders of four digits and one of eight.
fn entropy(name: &str) -> String {
    let bits = format!("{:020b}", murmur3(name.as_bytes()) & 0xf_ffff);
    format!("{}/{}/{}/{}", &bits[..4], &bits[4..8], &bits[8..12], &bits[12..])
}

/// `application/x-www-form-urlencoded`, as `java.net.URLEncoder` does it.
fn encode(text: &str, path: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'*' | b'_' => {
                path.push(char::from(byte))
            }
            b' ' => path.push('+'),
            _ => {
                path.push('%');
                for digit in [byte >> 4, byte & 0xf] {
                    path.extend(
                        char::from_digit(u32::from(digit), 16).map(|digit| digit.to_ascii_uppercase()),
                    );
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
