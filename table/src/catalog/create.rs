//! New tables: partition and sort fields by column name, and firn's default properties.
//!
//! The catalog may renumber fields: only the ids in the table that [`create_table`] returns count.

use std::collections::{BTreeMap, HashMap};

use iceberg::spec::{
    FormatVersion, NullOrder, PartitionSpec, Schema, SortDirection, SortField, SortOrder, TableProperties,
    Transform, UnboundPartitionSpec,
};
use iceberg::table::Table;
use iceberg::{NamespaceIdent, TableCreation, TableIdent};

use super::CommitCatalog;
use crate::manifest::is_avro_name;
use crate::{Error, ErrorKind, Result};

/// A table to be created.
#[derive(Debug, Clone)]
pub struct NewTable {
    /// Its name. Missing namespaces are created, each level.
    pub ident: TableIdent,
    /// Its columns. Ids only tie the schema together: the catalog assigns its own.
    pub schema: Schema,
    /// Its partition fields, in order; none for an unpartitioned table.
    pub partition: Vec<PartitionColumn>,
    /// Its sort order; none for unsorted.
    pub sort: Vec<SortColumn>,
    /// Properties; they win over [`default_properties`], and `format-version` wins over [`Self::format_version`].
    pub properties: BTreeMap<String, String>,
    /// Its location; `None` lets the catalog choose one in the warehouse.
    pub location: Option<String>,
    /// The format version.
    pub format_version: FormatVersion,
}

impl NewTable {
    /// An unpartitioned, unsorted table of format version 2 in the warehouse.
    #[must_use]
    pub fn new(ident: TableIdent, schema: Schema) -> Self {
        Self {
            ident,
            schema,
            partition: Vec::new(),
            sort: Vec::new(),
            properties: BTreeMap::new(),
            location: None,
            format_version: FormatVersion::V2,
        }
    }
}

/// A partition field of a new table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionColumn {
    /// The source column's full name: `id`, `user.id`.
    pub source: String,
    /// How its value becomes the partition's.
    pub transform: Transform,
    /// The field's name; `None` for Iceberg's usual one (`id`, `id_bucket`, `name_trunc`, `ts_day`), in which
    /// characters that Avro forbids become `_`.
    pub name: Option<String>,
}

/// A sort field of a new table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortColumn {
    /// The source column's full name.
    pub source: String,
    /// What is compared.
    pub transform: Transform,
    /// Ascending or descending.
    pub direction: SortDirection,
    /// Where nulls go.
    pub nulls: NullOrder,
}

/// The properties that firn gives to tables it creates: a retention that suits a commit a second, and a log of
/// metadata files that does not pile up.
#[must_use]
pub fn default_properties() -> BTreeMap<String, String> {
    [
        (TableProperties::PROPERTY_MAX_SNAPSHOT_AGE_MS, "3600000"),
        (TableProperties::PROPERTY_MIN_SNAPSHOTS_TO_KEEP, "10"),
        ("write.metadata.delete-after-commit.enabled", "true"),
        (TableProperties::PROPERTY_METADATA_PREVIOUS_VERSIONS_MAX, "20"),
        ("write.parquet.compression-codec", "zstd"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect()
}

/// Creates a table, and its namespace where that is missing.
///
/// # Errors
/// `Configuration` where a partition or sort field does not fit the schema, its name is one that Avro forbids, or the
/// format version is neither 2 nor 3: nothing was written then. `AlreadyExists` where the name is taken.
pub async fn create_table(catalog: &dyn CommitCatalog, new: NewTable) -> Result<Table> {
    let partition = partition_spec(&new.schema, &new.partition)?;
    let sort_order = sort_order(&new.schema, &new.sort)?;
    let mut properties: HashMap<String, String> = default_properties().into_iter().collect();
    properties.extend(new.properties);
    let format_version = requested_format_version(&mut properties)?.unwrap_or(new.format_version);

    create_namespaces(catalog, new.ident.namespace()).await?;
    let creation = TableCreation {
        name: new.ident.name().to_owned(),
        location: new.location,
        schema: new.schema,
        partition_spec: Some(partition),
        sort_order: Some(sort_order),
        properties,
        format_version,
    };
    Ok(catalog.create_table(new.ident.namespace(), creation).await?)
}

/// The format version that the properties of a new table ask for, under Iceberg's name `format-version`. It is taken
/// out of them: it is no property of the table that is made. `Configuration` where it is neither 2 nor 3.
pub fn requested_format_version(properties: &mut HashMap<String, String>) -> Result<Option<FormatVersion>> {
    let Some(version) = properties.remove(TableProperties::PROPERTY_FORMAT_VERSION) else { return Ok(None) };
    match version.as_str() {
        "2" => Ok(Some(FormatVersion::V2)),
        "3" => Ok(Some(FormatVersion::V3)),
        _ => Err(Error::new(
            ErrorKind::Configuration,
            format!("`format-version` = `{version}`: tables are created in format version 2 or 3"),
        )),
    }
}

/// Creates a namespace and those above it, each where it is missing. Losing a race for one is no error.
async fn create_namespaces(catalog: &dyn CommitCatalog, namespace: &NamespaceIdent) -> Result<()> {
    for depth in 1..=namespace.len() {
        let level = NamespaceIdent::from_strs(&namespace[..depth])?;
        if catalog.namespace_exists(&level).await? {
            continue;
        }
        match catalog.create_namespace(&level, HashMap::new()).await {
            Ok(_) => {}
            Err(error) if error.kind() == iceberg::ErrorKind::NamespaceAlreadyExists => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn partition_spec(schema: &Schema, columns: &[PartitionColumn]) -> Result<UnboundPartitionSpec> {
    let mut builder = PartitionSpec::builder(schema.clone());
    for column in columns {
        let name = column.name.clone().unwrap_or_else(|| usual_name(&column.source, column.transform));
        check_name(&name)?;
        builder = builder.add_partition_field(&column.source, &name, column.transform).map_err(|error| {
            let message = format!(
                "partition field `{name}` = {}({}) does not fit the schema",
                column.transform, column.source
            );
            Error::new(ErrorKind::Configuration, message).with_source(error)
        })?;
    }
    let spec = builder.build().map_err(|error| {
        Error::new(ErrorKind::Configuration, "the partition fields do not fit the schema").with_source(error)
    })?;
    Ok(spec.into_unbound())
}

fn sort_order(schema: &Schema, columns: &[SortColumn]) -> Result<SortOrder> {
    if columns.is_empty() {
        return Ok(SortOrder::unsorted_order());
    }
    let mut builder = SortOrder::builder();
    for column in columns {
        let Some(source) = schema.field_by_name(&column.source) else {
            let message = format!("sort column `{}` is not in the schema", column.source);
            return Err(Error::new(ErrorKind::Configuration, message));
        };
        builder.with_sort_field(
            SortField::builder()
                .source_id(source.id)
                .transform(column.transform)
                .direction(column.direction)
                .null_order(column.nulls)
                .build(),
        );
    }
    builder.build(schema).map_err(|error| {
        Error::new(ErrorKind::Configuration, "the sort columns do not fit the schema").with_source(error)
    })
}

/// The name that Iceberg's writers give a partition field, with `_` for what Avro forbids.
fn usual_name(source: &str, transform: Transform) -> String {
    let suffix = match transform {
        Transform::Bucket(_) => "_bucket",
        Transform::Truncate(_) => "_trunc",
        Transform::Year => "_year",
        Transform::Month => "_month",
        Transform::Day => "_day",
        Transform::Hour => "_hour",
        Transform::Void => "_null",
        Transform::Identity | Transform::Unknown => "",
    };
    let allowed = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = source.chars().map(allowed).chain(suffix.chars()).collect();
    if name.starts_with(|first: char| first.is_ascii_digit()) { format!("_{name}") } else { name }
}

/// Manifests hold partition fields as Avro fields of the same name.
fn check_name(name: &str) -> Result<()> {
    if is_avro_name(name) {
        return Ok(());
    }
    let message = format!(
        "partition field `{name}` has a name that manifests cannot hold: use letters, digits and `_`, no digit first"
    );
    Err(Error::new(ErrorKind::Configuration, message))
}

#[cfg(test)]
mod tests {
    use iceberg::spec::{NestedField, PrimitiveType, StructType, Type};

    use super::*;

    fn schema() -> Schema {
        let primitive = |kind| Type::Primitive(kind);
        let user =
            StructType::new(vec![NestedField::required(4, "id", primitive(PrimitiveType::Long)).into()]);
        Schema::builder()
            .with_fields([
                NestedField::required(1, "a-b", primitive(PrimitiveType::String)).into(),
                NestedField::optional(2, "ts", primitive(PrimitiveType::Timestamptz)).into(),
                NestedField::required(3, "user", Type::Struct(user)).into(),
            ])
            .build()
            .unwrap()
    }

    fn column(source: &str, transform: Transform, name: Option<&str>) -> PartitionColumn {
        PartitionColumn { source: source.to_owned(), transform, name: name.map(str::to_owned) }
    }

    #[test]
    fn usual_names_are_ones_that_avro_allows() {
        let columns = [
            column("user.id", Transform::Bucket(16), None),
            column("a-b", Transform::Identity, None),
            column("ts", Transform::Day, None),
            column("a-b", Transform::Truncate(4), None),
        ];
        let spec = partition_spec(&schema(), &columns).unwrap();
        let names: Vec<&str> = spec.fields().iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["user_id_bucket", "a_b", "ts_day", "a_b_trunc"]);
        assert_eq!(usual_name("1st", Transform::Identity), "_1st");
    }

    #[test]
    fn a_format_version_is_asked_for_by_its_property() {
        let asked = |version: &str| {
            let mut properties = HashMap::from([("format-version".to_owned(), version.to_owned())]);
            let found = requested_format_version(&mut properties).map_err(|error| error.kind());
            assert!(properties.is_empty());
            found
        };
        assert_eq!([asked("2"), asked("3")], [Ok(Some(FormatVersion::V2)), Ok(Some(FormatVersion::V3))]);
        for wrong in ["1", "4", "v3", ""] {
            assert_eq!(asked(wrong), Err(ErrorKind::Configuration), "{wrong}");
        }
        assert_eq!(requested_format_version(&mut HashMap::new()).unwrap(), None);
    }

    #[test]
    fn names_that_avro_forbids_are_refused() {
        for name in ["user.id_bucket", "a-b", "1st", "", "größe"] {
            let refused = partition_spec(&schema(), &[column("user.id", Transform::Bucket(4), Some(name))]);
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Configuration, "{name}");
            assert!(error.to_string().contains(&format!("`{name}`")), "{error}");
        }
    }

    #[test]
    fn fields_that_do_not_fit_are_refused() {
        for wrong in [column("missing", Transform::Identity, None), column("a-b", Transform::Hour, None)] {
            let error = partition_spec(&schema(), std::slice::from_ref(&wrong)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Configuration, "{wrong:?}");
        }
        let sort = SortColumn {
            source: "missing".to_owned(),
            transform: Transform::Identity,
            direction: SortDirection::Ascending,
            nulls: NullOrder::First,
        };
        assert_eq!(sort_order(&schema(), &[sort]).unwrap_err().kind(), ErrorKind::Configuration);
    }
}
