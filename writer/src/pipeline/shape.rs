//! What files of one schema and partition spec need. It is made again when the table changes; rows keep the one that
//! they were decoded with, and so files keep the spec that they were written with.

use std::sync::Arc;

use firn_table::files::{FileFormat, PartitionRouter};
use iceberg::spec::PartitionSpecRef;
use iceberg::table::Table;

use crate::decode::{self, DecodeOptions, Decoder};
use crate::{Error, ErrorKind, Result};

/// Schema, spec and file format of a table at one time.
#[derive(Debug)]
pub(crate) struct TableShape {
    /// Counts the shapes of one run.
    pub generation: u64,
    pub table: Table,
    pub format: FileFormat,
    pub spec: PartitionSpecRef,
    pub router: PartitionRouter,
}

impl TableShape {
    pub(crate) fn of(table: Table, generation: u64) -> Result<Self> {
        let format = FileFormat::of_table(&table)?;
        let spec = Arc::clone(table.metadata().default_partition_spec());
        let router = PartitionRouter::new(Arc::clone(&spec), Arc::clone(format.schema()))?;
        Ok(Self { generation, table, format, spec, router })
    }

    /// Whether new files of `table` need another shape.
    pub(crate) fn differs(&self, table: &Table) -> bool {
        let (old, new) = (self.table.metadata(), table.metadata());
        old.current_schema_id() != new.current_schema_id()
            || old.default_partition_spec_id() != new.default_partition_spec_id()
            || old
                .properties()
                .iter()
                .any(|(k, v)| k.starts_with("write.") && new.properties().get(k) != Some(v))
            || new.properties().keys().any(|k| k.starts_with("write.") && !old.properties().contains_key(k))
    }

    pub(crate) fn decoder(&self, options: &DecodeOptions) -> Result<Box<dyn Decoder>> {
        let (schema, arrow_schema) = (self.format.schema(), Arc::clone(self.format.arrow_schema()));
        decode::decoder(schema, arrow_schema, options).map_err(|e| {
            Error::new(ErrorKind::Configuration, format!("messages cannot be decoded into this table: {e}"))
                .with_source(e)
        })
    }
}
