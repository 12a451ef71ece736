//! `firn schema plan`: what becomes of each kind of value in each column, before a message is read.

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use firn_table::ErrorKind;
use firn_writer::decode::fate::{Fate, Wire, fate};
use firn_writer::decode::{ColumnOptions, DecodeOptions, RejectCode};
use iceberg::spec::{NestedField, Type};
use serde_json::json;

use crate::args::TableArgs;
use crate::commands::write::WriteSections;
use crate::config::sources::Given;
use crate::context::Context;
use crate::exit::ExitCode;
use crate::flags::Flags;
use crate::output::Format;
use crate::render::listing::{Listing, Unit};
use crate::{creation, writing};

/// What to do with a schema.
#[derive(Debug, Subcommand)]
pub(crate) enum SchemaCommand {
    /// Tells which values each column takes exactly, with a loss, or not at all
    Plan(PlanArgs),
}

/// For which table and messages.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    flags: Flags<WriteSections>,
}

impl SchemaCommand {
    /// What the flags set.
    pub(crate) fn given(&self) -> Vec<Given> {
        match self {
            Self::Plan(args) => [args.table.given(), args.flags.given()].concat(),
        }
    }
}

/// Looks at the table, or at the schema that it would be created with, and prints.
pub(crate) async fn run(command: &SchemaCommand, context: &Context) -> anyhow::Result<ExitCode> {
    let SchemaCommand::Plan(_) = command;
    let mut options = writing::decode_options(&context.settings)?;
    let schema = match context.open_table().await {
        Ok(handle) => handle.table().metadata().current_schema().as_ref().clone(),
        Err(error) if is_absent(&error) && context.settings.flag("create.enabled") => {
            let config = writing::writer_config(&context.settings)?;
            let design = creation::design(&context.table_ident()?, &config, &context.settings).await?;
            options = writing::with_inferred(options, design.columns);
            design.schema
        }
        Err(error) => return Err(error),
    };
    let mut pairs = Vec::new();
    for field in schema.as_struct().fields() {
        collect(field, "", &options, &mut pairs);
    }
    match context.output.format() {
        Format::Human => context.output.text(&human(&pairs))?,
        Format::Json | Format::Csv => context.output.listing(&listing(&pairs))?,
    }
    Ok(ExitCode::Done)
}

fn is_absent(error: &anyhow::Error) -> bool {
    error.downcast_ref::<firn_table::Error>().is_some_and(|error| error.kind() == ErrorKind::NotFound)
}

/// One kind of value in one column.
#[derive(Debug)]
struct Pair {
    path: String,
    column: String,
    required: bool,
    wire: Wire,
    fate: Fate,
}

/// The pairs of a field and of all below it.
fn collect(field: &NestedField, parent: &str, options: &DecodeOptions, pairs: &mut Vec<Pair>) {
    let path = if parent.is_empty() { field.name.clone() } else { format!("{parent}.{}", field.name) };
    let own: &ColumnOptions = options.columns.get(&path).unwrap_or(&options.defaults);
    for wire in Wire::of(&options.format) {
        pairs.push(Pair {
            path: path.clone(),
            column: type_name(&field.field_type),
            required: field.required,
            wire,
            fate: fate(wire, &field.field_type, own),
        });
    }
    match &*field.field_type {
        Type::Primitive(_) => {}
        Type::Struct(fields) => {
            fields.fields().iter().for_each(|field| collect(field, &path, options, pairs));
        }
        Type::List(list) => collect(&list.element_field, &path, options, pairs),
        Type::Map(map) => collect(&map.value_field, &path, options, pairs),
    }
}

fn type_name(field_type: &Type) -> String {
    match field_type {
        Type::Primitive(primitive) => primitive.to_string(),
        Type::Struct(_) => "struct".to_owned(),
        Type::List(_) => "list".to_owned(),
        Type::Map(_) => "map".to_owned(),
    }
}

fn codes(fate: &Fate) -> String {
    fate.codes().iter().map(|code| code.as_str()).collect::<Vec<_>>().join(", ")
}

/// All pairs.
fn listing(pairs: &[Pair]) -> Listing {
    let columns = ["column", "type", "required", "value", "outcome", "codes"];
    let mut listing = Listing::of(&columns.map(|name| (name, Unit::Plain)));
    for pair in pairs {
        listing.push(vec![
            json!(pair.path),
            json!(pair.column),
            json!(pair.required),
            json!(pair.wire.name()),
            json!(pair.fate.to_string()),
            json!(codes(&pair.fate)),
        ]);
    }
    listing
}

/// Column by column; what is of the wrong type altogether is left out.
fn human(pairs: &[Pair]) -> String {
    let mut out = String::new();
    let mut last = "";
    for pair in pairs {
        if pair.path != last {
            last = &pair.path;
            let (null, absent) = (RejectCode::NullInRequired, RejectCode::MissingField);
            let _ = match pair.required {
                true => writeln!(out, "{} {}, required (else {null}, {absent})", pair.path, pair.column),
                false => writeln!(out, "{} {}, optional", pair.path, pair.column),
            };
        }
        if pair.fate == Fate::Reject(RejectCode::WrongType) {
            continue;
        }
        let codes = codes(&pair.fate);
        let colon = if codes.is_empty() { "" } else { ": " };
        let _ = writeln!(out, "    {:<30} {}{colon}{codes}", pair.wire.name(), pair.fate);
    }
    let _ = writeln!(out, "\nAny other value is rejected: {}.", RejectCode::WrongType);
    out
}

#[cfg(test)]
mod tests {
    use firn_writer::schema::parse_schema;

    use super::*;

    fn pairs(options: &DecodeOptions) -> Vec<Pair> {
        let schema = r#"{"type":"struct","fields":[
            {"id":1,"name":"id","required":true,"type":"long"},
            {"id":2,"name":"o","required":false,"type":{"type":"struct","fields":[
                {"id":3,"name":"at","required":false,"type":"timestamptz"}]}}]}"#;
        let mut pairs = Vec::new();
        for field in parse_schema(schema).unwrap().as_struct().fields() {
            collect(field, "", options, &mut pairs);
        }
        pairs
    }

    #[test]
    fn every_column_is_told_with_what_it_takes() {
        let text = human(&pairs(&DecodeOptions::default()));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "id long, required (else null-in-required, missing-field)");
        assert_eq!(
            lines[1].split_whitespace().collect::<Vec<_>>().join(" "),
            "number, integer exact or rejected: out-of-range"
        );
        assert!(lines.contains(&"o struct, optional"), "{text}");
        assert!(lines.contains(&"o.at timestamptz, optional"), "{text}");
        assert!(text.contains("rejected: undeclared-unit"), "{text}");
    }

    #[test]
    fn what_is_declared_of_a_column_changes_its_outcome() {
        let toml = "[decode.columns.\"o.at\"]\ntimestamp-numbers = \"millis\"\n";
        let given = crate::config::sources::from_toml(toml, &crate::config::Source::Default).unwrap();
        let settings = crate::config::Settings::resolve(given).unwrap();
        let options = writing::decode_options(&settings).unwrap();
        let pair =
            pairs(&options).into_iter().find(|p| p.path == "o.at" && p.wire == Wire::JsonInteger).unwrap();
        assert_eq!(pair.fate, Fate::ExactOr(&[RejectCode::OutOfRange]));
        assert_eq!(listing(&pairs(&options)).json().matches("undeclared-unit").count(), 0);
    }
}
