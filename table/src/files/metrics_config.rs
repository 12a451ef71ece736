//! Which metrics a table wants of each column: `write.metadata.metrics.*`, read as Java's `MetricsConfig`
//! reads it.

use std::collections::HashMap;

use iceberg::spec::{NestedFieldRef, Schema, SortOrder, Transform, Type};

use crate::{Error, ErrorKind, Result};

const DEFAULT_MODE: &str = "write.metadata.metrics.default";
const COLUMN_MODE_PREFIX: &str = "write.metadata.metrics.column.";
const MAX_INFERRED: &str = "write.metadata.metrics.max-inferred-column-defaults";
const MAX_INFERRED_DEFAULT: usize = 100;
const TRUNCATE_DEFAULT: MetricsMode = MetricsMode::Truncate(16);

/// What is recorded of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MetricsMode {
    /// Its size alone.
    None,
    /// Counts of values, nulls and NaNs too.
    Counts,
    /// Bounds too, cut to so many code points or bytes.
    Truncate(usize),
    /// Whole bounds.
    Full,
}

impl MetricsMode {
    fn parse(key: &str, text: &str) -> Result<Self> {
        let lower = text.trim().to_ascii_lowercase();
        let length = || lower.strip_prefix("truncate(")?.strip_suffix(')')?.trim().parse::<usize>().ok();
        match lower.as_str() {
            "none" => Ok(Self::None),
            "counts" => Ok(Self::Counts),
            "full" => Ok(Self::Full),
            _ => match length() {
                Some(length) if length > 0 => Ok(Self::Truncate(length)),
                _ => Err(Error::new(
                    ErrorKind::Configuration,
                    format!(
                        "table property `{key}`: `{text}` is no metrics mode, so no file can be written: \
                         set it to none, counts, truncate(length) or full"
                    ),
                )),
            },
        }
    }
}

/// The modes of a schema's columns, by field id.
#[derive(Debug, Clone)]
pub(super) struct MetricsConfig {
    modes: HashMap<i32, MetricsMode>,
    default: MetricsMode,
}

impl MetricsConfig {
    /// Reads the table's properties. Columns that the table's sort order begins with keep bounds by default.
    pub(super) fn new(
        schema: &Schema,
        sort_order: &SortOrder,
        properties: &HashMap<String, String>,
    ) -> Result<Self> {
        let mut config = Self { modes: HashMap::new(), default: TRUNCATE_DEFAULT };
        if let Some(text) = properties.get(DEFAULT_MODE) {
            config.default = MetricsMode::parse(DEFAULT_MODE, text)?;
        } else {
            config.limit_inferred(schema, properties)?;
        }
        let sorted = match config.default {
            MetricsMode::None | MetricsMode::Counts => TRUNCATE_DEFAULT,
            wanted => wanted,
        };
        for field in &sort_order.fields {
            if !matches!(field.transform, Transform::Bucket(_) | Transform::Void | Transform::Unknown) {
                config.modes.insert(field.source_id, sorted);
            }
        }
        for (key, text) in properties {
            let Some(column) = key.strip_prefix(COLUMN_MODE_PREFIX) else { continue };
            let mode = MetricsMode::parse(key, text)?;
            if let Some(field) = schema.field_by_name(column) {
                config.modes.insert(field.id, mode);
            }
        }
        Ok(config)
    }

    /// In a wide schema only the first columns have metrics unless the table says so, the outer ones before
    /// the inner.
    fn limit_inferred(&mut self, schema: &Schema, properties: &HashMap<String, String>) -> Result<()> {
        let limit = match properties.get(MAX_INFERRED) {
            None => MAX_INFERRED_DEFAULT,
            Some(text) => text.trim().parse().map_err(|cause: std::num::ParseIntError| {
                Error::new(
                    ErrorKind::Configuration,
                    format!("table property `{MAX_INFERRED}`: `{text}` is no number of columns"),
                )
                .with_source(cause)
            })?,
        };
        let ids = breadth_first(schema.as_struct().fields());
        if ids.len() > limit {
            self.modes.extend(ids[..limit].iter().map(|id| (*id, TRUNCATE_DEFAULT)));
            self.default = MetricsMode::None;
        }
        Ok(())
    }

    /// The mode of a leaf column.
    pub(super) fn mode(&self, field_id: i32) -> MetricsMode {
        self.modes.get(&field_id).copied().unwrap_or(self.default)
    }
}

/// The ids of all leaf columns, level by level.
fn breadth_first(fields: &[NestedFieldRef]) -> Vec<i32> {
    let mut ids = Vec::new();
    let mut level: Vec<&NestedFieldRef> = fields.iter().collect();
    while !level.is_empty() {
        let mut next = Vec::new();
        for field in level {
            match field.field_type.as_ref() {
                Type::Primitive(_) => ids.push(field.id),
                Type::Struct(inner) => next.extend(inner.fields()),
                Type::List(list) => next.push(&list.element_field),
                Type::Map(map) => next.extend([&map.key_field, &map.value_field]),
            }
        }
        level = next;
    }
    ids
}

#[cfg(test)]
mod tests;
