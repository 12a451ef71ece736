//! Partition field expressions: `day(ts)`, `bucket(16, user.id) as user_bucket`.

use iceberg::spec::{Schema, Transform, UnboundPartitionField, UnboundPartitionSpec};

use super::SchemaError;

/// The widest `bucket` and `truncate`: both are 31 bits in Iceberg.
const MAX_WIDTH: u32 = i32::MAX as u32;

/// Parses partition field expressions against a schema: `ts`, `identity(ts)`, `bucket(16, id)`, `truncate(4, s)`,
/// `year(ts)`, `month(ts)`, `day(ts)`, `hour(ts)`, `void(x)`; nested columns are dotted: `day(event.ts)`.
///
/// Fields are named as other writers name them (`ts_day`, `id_bucket`, `s_trunc`; identity: the column's name) unless
/// `as NAME` follows. Names that Avro forbids are refused, since a manifest that holds one cannot be read again.
pub fn parse_partition_spec<S: AsRef<str>>(
    expressions: &[S],
    schema: &Schema,
) -> Result<UnboundPartitionSpec, SchemaError> {
    let mut fields: Vec<UnboundPartitionField> = Vec::new();
    for expression in expressions {
        let expression = expression.as_ref();
        let field = parse_field(expression, schema).map_err(|reason| SchemaError::Invalid {
            what: format!("partition field `{expression}`"),
            reason,
        })?;
        if let Some(other) = fields.iter().find(|other| is_redundant(other, &field)) {
            let reason = format!("it repeats the field `{}`", other.name);
            return Err(SchemaError::Invalid { what: format!("partition field `{expression}`"), reason });
        }
        fields.push(field);
    }
    bound(fields, schema).map_err(|error| SchemaError::Invalid {
        what: "the partition spec".to_owned(),
        reason: error.message().to_owned(),
    })
}

/// The spec, after Iceberg's own checks.
fn bound(fields: Vec<UnboundPartitionField>, schema: &Schema) -> iceberg::Result<UnboundPartitionSpec> {
    let spec = UnboundPartitionSpec::builder().add_partition_fields(fields)?.build();
    spec.clone().bind(schema.clone())?;
    Ok(spec)
}

/// Two fields of one name, or of one source whose transforms are equal or both of time.
fn is_redundant(a: &UnboundPartitionField, b: &UnboundPartitionField) -> bool {
    a.name == b.name || (a.source_id == b.source_id && a.transform.dedup_name() == b.transform.dedup_name())
}

fn parse_field(expression: &str, schema: &Schema) -> Result<UnboundPartitionField, String> {
    let (body, alias) = split_alias(expression.trim());
    let (transform, column) = parse_transform(body.trim())?;
    let field = schema.field_by_name(column).ok_or_else(|| format!("the schema has no column `{column}`"))?;
    if !field.field_type.is_primitive() {
        return Err(format!("column `{column}` is nested: partition by one of its fields"));
    }
    if schema.accessor_by_field_id(field.id).is_none() {
        return Err(format!("column `{column}` is within a list or map, so a row has no one value of it"));
    }
    transform.result_type(&field.field_type).map_err(|_| {
        format!("the transform {transform} does not apply to column `{column}` of type {}", field.field_type)
    })?;
    let name = alias.map_or_else(|| default_name(transform, column), str::to_owned);
    check_name(&name, alias.is_some())?;
    if transform != Transform::Identity && schema.field_by_name(&name).is_some() {
        return Err(format!("its name `{name}` is that of a column: name it otherwise with `as NAME`"));
    }
    Ok(UnboundPartitionField { source_id: field.id, field_id: None, name, transform })
}

fn split_alias(expression: &str) -> (&str, Option<&str>) {
    let lower = expression.to_ascii_lowercase();
    match lower.rfind(" as ") {
        Some(at) => (&expression[..at], Some(expression[at + 4..].trim())),
        None => (expression, None),
    }
}

fn parse_transform(body: &str) -> Result<(Transform, &str), String> {
    let Some((name, arguments)) = body.split_once('(') else {
        return if body.is_empty() { Err("it is empty".to_owned()) } else { Ok((Transform::Identity, body)) };
    };
    let arguments = arguments.strip_suffix(')').ok_or("the closing parenthesis is missing")?;
    let (first, second) = match arguments.split_once(',') {
        Some((first, second)) => (first.trim(), Some(second.trim())),
        None => (arguments.trim(), None),
    };
    match (name.trim().to_ascii_lowercase().as_str(), second) {
        ("identity", None) => Ok((Transform::Identity, first)),
        ("year" | "years", None) => Ok((Transform::Year, first)),
        ("month" | "months", None) => Ok((Transform::Month, first)),
        ("day" | "days" | "date", None) => Ok((Transform::Day, first)),
        ("hour" | "hours" | "date_hour", None) => Ok((Transform::Hour, first)),
        ("void", None) => Ok((Transform::Void, first)),
        ("bucket", Some(column)) => Ok((Transform::Bucket(width(first)?), column)),
        ("truncate", Some(column)) => Ok((Transform::Truncate(width(first)?), column)),
        ("bucket" | "truncate", None) => Err(format!("{name} takes a width and a column: `{name}(16, id)`")),
        ("identity" | "year" | "month" | "day" | "hour" | "void", Some(_)) => {
            Err(format!("{name} takes a column only: `{name}(ts)`"))
        }
        _ => Err(format!(
            "the transform `{name}` is none of identity, bucket, truncate, year, month, day, hour, void"
        )),
    }
}

fn width(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(width) if (1..=MAX_WIDTH).contains(&width) => Ok(width),
        _ => Err(format!("the width `{text}` is not a number from 1 to {MAX_WIDTH}")),
    }
}

fn default_name(transform: Transform, column: &str) -> String {
    match transform {
        Transform::Bucket(_) => format!("{column}_bucket"),
        Transform::Truncate(_) => format!("{column}_trunc"),
        Transform::Year => format!("{column}_year"),
        Transform::Month => format!("{column}_month"),
        Transform::Day => format!("{column}_day"),
        Transform::Hour => format!("{column}_hour"),
        Transform::Void => format!("{column}_null"),
        Transform::Identity | Transform::Unknown => column.to_owned(),
    }
}

/// The names of Avro: letters of ASCII, digits and `_`, no digit first.
fn check_name(name: &str, given: bool) -> Result<(), String> {
    let mut bytes = name.bytes();
    let first_fits = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    if first_fits && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Ok(());
    }
    let advice = if given { "choose another one" } else { "give one with `as NAME`" };
    Err(format!("its name `{name}` is not letters, digits and `_`, and a manifest cannot hold it: {advice}"))
}
