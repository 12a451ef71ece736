//! Schema and partition spec change.

use anyhow::Result;
use async_trait::async_trait;
use iceberg::TableUpdate;
use iceberg::spec::{NestedField, PrimitiveType, Schema, Transform, Type, UnboundPartitionSpec};
use iceberg::table::Table;

use super::engine::{Deed, Engine};
use super::snapshot::Change;

/// Adds an optional column at the end of the schema, unless there is one of the name.
#[derive(Debug, Clone)]
pub struct AddColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: PrimitiveType,
}

#[async_trait]
impl Deed for AddColumn {
    async fn decide(&self, _engine: &mut Engine, base: &Table) -> Result<Option<Change>> {
        let metadata = base.metadata();
        let current = metadata.current_schema();
        if current.field_by_name(&self.name).is_some() {
            return Ok(None);
        }
        let id = metadata.last_column_id() + 1;
        let column = NestedField::optional(id, &self.name, Type::Primitive(self.kind.clone()));
        let mut fields = current.as_struct().fields().to_vec();
        fields.push(column.into());
        let schema = Schema::builder()
            .with_schema_id(metadata.schemas_iter().map(|schema| schema.schema_id()).max().unwrap_or(0) + 1)
            .with_fields(fields)
            .with_identifier_field_ids(current.identifier_field_ids())
            .build()?;
        let updates = vec![
            TableUpdate::AddSchema { schema },
            // The last one that was added.
            TableUpdate::SetCurrentSchema { schema_id: -1 },
        ];
        Ok(Some(Change { draft: None, updates }))
    }
}

/// Gives the table another default spec; files keep theirs. Fields that the spec had are kept in it.
#[derive(Debug, Clone)]
pub struct ChangeSpec {
    /// The column by which the table is partitioned from now on.
    pub column: String,
    /// How its value becomes the partition's.
    pub transform: Transform,
}

#[async_trait]
impl Deed for ChangeSpec {
    async fn decide(&self, _engine: &mut Engine, base: &Table) -> Result<Option<Change>> {
        let metadata = base.metadata();
        let current = metadata.default_partition_spec();
        let Some(source) = metadata.current_schema().field_by_name(&self.column) else { return Ok(None) };
        let same =
            |f: &iceberg::spec::PartitionField| f.source_id == source.id && f.transform == self.transform;
        if current.fields().iter().any(same) {
            return Ok(None);
        }
        let mut builder = UnboundPartitionSpec::builder();
        for field in current.fields() {
            builder = builder.add_partition_fields([field.clone().into_unbound()])?;
        }
        let name = format!("{}_{}", self.column, current.fields().len());
        let spec = builder.add_partition_field(source.id, name, self.transform)?.build();
        let updates = vec![TableUpdate::AddSpec { spec }, TableUpdate::SetDefaultSpec { spec_id: -1 }];
        Ok(Some(Change { draft: None, updates }))
    }
}
