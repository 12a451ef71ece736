//! From a table's schema to empty columns with the rules by which each is filled.

use arrow_array::ArrayRef;
use arrow_schema::{ArrowError, DataType, Field as ArrowField, Fields};
use iceberg::spec::{ListType, MapType, NestedField, PrimitiveType, StructType, Type};

use super::column::{Column, FixedBytes, Lists, Maps, Structs, Validity};
use super::fault::Parsed;
use super::push::push_missing;
use super::time::Clock;
use super::{ColumnOptions, DecodeError, DecodeOptions, TimestampPrecision};

/// The metadata key under which an Arrow field holds its Iceberg field id.
const FIELD_ID: &str = "PARQUET:field_id";

/// A field of the schema: its column, and how values become its values.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: Box<str>,
    /// Whether the name may stand in JSON text as it is: no character in it needs an escape.
    pub(crate) plain_name: bool,
    pub(crate) required: bool,
    pub(crate) rule: Rule,
    pub(crate) column: Column,
    /// How many values of leaf columns one value stands for, lists and maps in it counted as one.
    pub(crate) weight: usize,
}

/// What a value must be like.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    /// The Iceberg type, for a person.
    pub(crate) type_name: Box<str>,
    pub(crate) options: ColumnOptions,
    /// Of decimals.
    pub(crate) precision: u32,
    /// Of decimals.
    pub(crate) scale: u32,
    /// Of times and timestamps.
    pub(crate) clock: Clock,
}

/// The fields of a struct, and where to look for the next one.
#[derive(Debug)]
pub(crate) struct Children {
    pub(crate) fields: Vec<Field>,
    /// Indexes into `fields`, ordered by name.
    by_name: Vec<usize>,
    /// For each field the one that followed it in the last message that had it; the last entry: the first field.
    followers: Vec<usize>,
}

impl Children {
    pub(crate) fn new(fields: Vec<Field>) -> Self {
        let mut by_name: Vec<usize> = (0..fields.len()).collect();
        by_name.sort_by(|a, b| fields[*a].name.cmp(&fields[*b].name));
        let last = fields.len();
        let followers = (0..=last).map(|index| if index == last { 0 } else { (index + 1) % last }).collect();
        Self { fields, by_name, followers }
    }

    /// The field of that name.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        let found =
            self.by_name.binary_search_by(|index| self.fields[*index].name.as_ref().cmp(name)).ok()?;
        Some(self.by_name[found])
    }

    /// The field that is likely to follow `previous`, with its name, where that needs no escapes.
    pub(crate) fn expected_after(&self, previous: Option<usize>) -> Option<(usize, &str)> {
        let index = self.followers[previous.unwrap_or(self.fields.len())];
        let field = self.fields.get(index).filter(|field| field.plain_name)?;
        Some((index, field.name.as_ref()))
    }

    /// Remembers what followed `previous`.
    pub(crate) fn learn(&mut self, previous: Option<usize>, index: usize) {
        self.followers[previous.unwrap_or(self.fields.len())] = index;
    }

    /// Fields that the row with index `row` has not filled are absent in its message.
    pub(crate) fn fill_absent(&mut self, row: usize) -> Parsed<()> {
        for field in &mut self.fields {
            if field.column.len() == row {
                push_missing(field)?;
            }
        }
        Ok(())
    }

    pub(crate) fn finish(&mut self, fields: &Fields) -> Result<Vec<ArrayRef>, ArrowError> {
        self.fields
            .iter_mut()
            .zip(fields)
            .map(|(child, field)| child.column.finish(field.data_type()))
            .collect()
    }
}

/// Builds the columns of a schema.
#[derive(Debug)]
pub(crate) struct Planner<'a> {
    options: &'a DecodeOptions,
}

impl<'a> Planner<'a> {
    /// Refuses options for columns that the schema does not have.
    pub(crate) fn new(
        options: &'a DecodeOptions,
        schema: &iceberg::spec::Schema,
    ) -> Result<Self, DecodeError> {
        for path in options.columns.keys() {
            if schema.field_by_name(path).is_none() {
                let reason = "the table has no such column: mend the path or remove the option".to_owned();
                return Err(DecodeError::Option { path: path.clone(), reason });
            }
        }
        Ok(Self { options })
    }

    /// Every field of a struct has its Arrow form.
    pub(crate) fn check_complete(
        &self,
        fields: &StructType,
        arrow: &Fields,
        parent: &str,
    ) -> Result<(), DecodeError> {
        match fields.fields().iter().find(|field| !arrow.iter().any(|other| is_same(field, other))) {
            Some(field) => Err(unsupported(&join(parent, &field.name), "is not in the given Arrow schema")),
            None => Ok(()),
        }
    }

    /// The children of a struct in the order of its Arrow form, matched by field id.
    fn children(&self, fields: &StructType, arrow: &Fields, parent: &str) -> Result<Vec<Field>, DecodeError> {
        self.check_complete(fields, arrow, parent)?;
        arrow.iter().map(|arrow| self.field(counterpart(fields, arrow)?, arrow, parent)).collect()
    }

    /// One field of a struct.
    pub(crate) fn field(
        &self,
        field: &NestedField,
        arrow: &ArrowField,
        parent: &str,
    ) -> Result<Field, DecodeError> {
        let path = join(parent, &field.name);
        if field.write_default.is_some() {
            return Err(unsupported(&path, "has a write default, which is not supported: remove it"));
        }
        let options = *self.options.columns.get(&path).unwrap_or(&self.options.defaults);
        let column = self.column(&field.field_type, arrow.data_type(), &path)?;
        if !column.fits(arrow.data_type()) {
            let reason =
                format!("of type {} is {} in the given Arrow schema", field.field_type, arrow.data_type());
            return Err(unsupported(&path, &reason));
        }
        Ok(Field {
            name: field.name.as_str().into(),
            plain_name: !field.name.contains(|c| matches!(c, '"' | '\\' | '\0'..='\u{1f}')),
            required: field.required,
            weight: weight(&column),
            rule: rule(&field.field_type, options),
            column,
        })
    }

    fn column(&self, field_type: &Type, arrow: &DataType, path: &str) -> Result<Column, DecodeError> {
        match (field_type, arrow) {
            (Type::Primitive(primitive), _) => primitive_column(primitive, path),
            (Type::Struct(fields), DataType::Struct(arrow)) => {
                let children = Children::new(self.children(fields, arrow, path)?);
                Ok(Column::Struct(Structs { children, validity: Validity::default() }))
            }
            (Type::List(list), DataType::List(arrow)) => self.list(list, arrow, path),
            (Type::Map(map), DataType::Map(arrow, false)) => self.map(map, arrow, path),
            (_, arrow) => {
                Err(unsupported(path, &format!("of type {field_type} is {arrow} in the given Arrow schema")))
            }
        }
    }

    fn list(&self, list: &ListType, arrow: &ArrowField, path: &str) -> Result<Column, DecodeError> {
        Ok(Column::List(Box::new(Lists::new(self.field(&list.element_field, arrow, path)?))))
    }

    fn map(&self, map: &MapType, entries: &ArrowField, path: &str) -> Result<Column, DecodeError> {
        if *map.key_field.field_type != Type::Primitive(PrimitiveType::String) {
            return Err(unsupported(path, "is a map whose keys are not strings, which messages cannot hold"));
        }
        match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 && *fields[0].data_type() == DataType::Utf8 => {
                Ok(Column::Map(Box::new(Maps::new(self.field(&map.value_field, &fields[1], path)?))))
            }
            other => Err(unsupported(path, &format!("has map entries of {other} in the given Arrow schema"))),
        }
    }
}

/// The Iceberg field of an Arrow field.
pub(crate) fn counterpart<'s>(
    fields: &'s StructType,
    arrow: &ArrowField,
) -> Result<&'s NestedField, DecodeError> {
    let found = fields.fields().iter().find(|field| is_same(field, arrow));
    found
        .map(AsRef::as_ref)
        .ok_or_else(|| unsupported(arrow.name(), "is in the given Arrow schema and not in the table's"))
}

/// By field id; by name where the Arrow field has none.
fn is_same(field: &NestedField, arrow: &ArrowField) -> bool {
    match arrow.metadata().get(FIELD_ID) {
        Some(id) => id.parse() == Ok(field.id),
        None => *arrow.name() == field.name,
    }
}

pub(crate) fn unsupported(path: &str, reason: &str) -> DecodeError {
    DecodeError::UnsupportedColumn { path: path.to_owned(), reason: reason.to_owned() }
}

fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") }
}

fn primitive_column(primitive: &PrimitiveType, path: &str) -> Result<Column, DecodeError> {
    Ok(match primitive {
        PrimitiveType::Boolean => Column::Boolean(Default::default()),
        PrimitiveType::Int => Column::Int(Default::default()),
        PrimitiveType::Long => Column::Long(Default::default()),
        PrimitiveType::Float => Column::Float(Default::default()),
        PrimitiveType::Double => Column::Double(Default::default()),
        PrimitiveType::Decimal { .. } => Column::Decimal(Default::default()),
        PrimitiveType::Date => Column::Date(Default::default()),
        PrimitiveType::Time => Column::Time(Default::default()),
        PrimitiveType::Timestamp
        | PrimitiveType::Timestamptz
        | PrimitiveType::TimestampNs
        | PrimitiveType::TimestamptzNs => Column::Timestamp(Default::default()),
        PrimitiveType::String => Column::String(Default::default()),
        PrimitiveType::Binary => Column::Binary(Default::default()),
        PrimitiveType::Uuid => Column::Uuid(FixedBytes::new(16)),
        PrimitiveType::Fixed(width) => match usize::try_from(*width) {
            Ok(width) if (1..=1 << 20).contains(&width) => Column::Fixed(FixedBytes::new(width)),
            _ => return Err(unsupported(path, "is fixed with a length other than 1 to 1,048,576 bytes")),
        },
    })
}

fn weight(column: &Column) -> usize {
    match column {
        Column::Struct(structs) => {
            1 + structs.children.fields.iter().map(|field| field.weight).sum::<usize>()
        }
        // Nulls take as much room as values.
        Column::Fixed(fixed) => fixed.width.div_ceil(16),
        _ => 1,
    }
}

fn rule(field_type: &Type, options: ColumnOptions) -> Rule {
    let (precision, scale) = match field_type {
        Type::Primitive(PrimitiveType::Decimal { precision, scale }) => (*precision, *scale),
        _ => (0, 0),
    };
    let nanos =
        matches!(field_type, Type::Primitive(PrimitiveType::TimestampNs | PrimitiveType::TimestamptzNs));
    let zoned =
        matches!(field_type, Type::Primitive(PrimitiveType::Timestamptz | PrimitiveType::TimestamptzNs));
    let truncate = options.timestamp_precision == TimestampPrecision::Truncate;
    let clock = Clock { places: if nanos { 9 } else { 6 }, zoned, truncate };
    Rule { type_name: type_name(field_type).into(), options, precision, scale, clock }
}

fn type_name(field_type: &Type) -> String {
    match field_type {
        Type::Primitive(primitive) => primitive.to_string(),
        Type::Struct(_) => "struct".to_owned(),
        Type::List(_) => "list".to_owned(),
        Type::Map(_) => "map".to_owned(),
    }
}
