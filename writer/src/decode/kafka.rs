//! Columns that hold where a message came from.

use arrow_schema::{DataType, Field as ArrowField};
use iceberg::spec::{NestedField, PrimitiveType, Type};

use super::column::Column;
use super::fault::{Fault, Parsed, Problem};
use super::plan::{Children, Field, Planner, counterpart, unsupported};
use super::{DecodeError, Message, RejectCode};

/// The struct column, and the prefix of flat ones.
pub(crate) const KAFKA_COLUMN: &str = "_kafka";

const ABSENT: Problem = Problem::new(RejectCode::NullInRequired, "the message has none");
const BEYOND: Problem = Problem::new(RejectCode::OutOfRange, "the timestamp is beyond the range of the type");

/// A column filled from a message's metadata.
#[derive(Debug)]
pub(crate) struct KafkaColumn {
    part: Part,
    pub(crate) field: Field,
}

/// Which part of the metadata.
#[derive(Debug)]
enum Part {
    Topic,
    Partition,
    Offset,
    Timestamp,
    Key,
    Headers,
    /// A struct of parts, in the order of its children.
    Struct(Vec<Part>),
}

/// Whether a top-level column is one of these by its name.
pub(crate) fn is_kafka_column(name: &str) -> bool {
    name == KAFKA_COLUMN || name.strip_prefix("_kafka_").is_some_and(|part| part_named(part).is_some())
}

fn part_named(name: &str) -> Option<Part> {
    Some(match name {
        "topic" => Part::Topic,
        "partition" => Part::Partition,
        "offset" => Part::Offset,
        "timestamp" => Part::Timestamp,
        "key" => Part::Key,
        "headers" => Part::Headers,
        _ => return None,
    })
}

impl KafkaColumn {
    /// The column of a field for which [`is_kafka_column`] holds. Refuses types that metadata do not have.
    pub(crate) fn new(
        planner: &Planner<'_>,
        nested: &NestedField,
        arrow: &ArrowField,
    ) -> Result<Self, DecodeError> {
        let field = planner.field(nested, arrow, "")?;
        let part = match (nested.name.strip_prefix("_kafka_"), &*nested.field_type, arrow.data_type()) {
            (Some(name), _, _) => checked_part(name, nested, &nested.name)?,
            (None, Type::Struct(fields), DataType::Struct(arrow)) => {
                let child = |arrow| {
                    let nested = counterpart(fields, arrow)?;
                    checked_part(&nested.name, nested, &format!("{KAFKA_COLUMN}.{}", nested.name))
                };
                Part::Struct(arrow.iter().map(|arrow| child(arrow)).collect::<Result<_, _>>()?)
            }
            _ => return Err(unsupported(KAFKA_COLUMN, "must be a struct to hold a message's metadata")),
        };
        Ok(Self { part, field })
    }

    /// Appends what `message` has.
    pub(crate) fn push(&mut self, message: &Message<'_>) -> Parsed<()> {
        push(&self.part, &mut self.field, message).map_err(|fault| fault.in_field(&self.field.name))
    }
}

fn checked_part(name: &str, nested: &NestedField, path: &str) -> Result<Part, DecodeError> {
    let Some(part) = part_named(name) else {
        let reason =
            "is no part of a message's metadata: they are topic, partition, offset, timestamp, key, headers";
        return Err(unsupported(path, reason));
    };
    let (fits, wanted) = match (&part, &*nested.field_type) {
        (Part::Topic, Type::Primitive(primitive)) => (*primitive == PrimitiveType::String, "string"),
        (Part::Partition, Type::Primitive(primitive)) => (*primitive == PrimitiveType::Int, "int"),
        (Part::Offset, Type::Primitive(primitive)) => (*primitive == PrimitiveType::Long, "long"),
        (Part::Timestamp, Type::Primitive(primitive)) => {
            (*primitive == PrimitiveType::Timestamptz, "timestamptz")
        }
        (Part::Key, Type::Primitive(primitive)) => (*primitive == PrimitiveType::Binary, "binary"),
        (Part::Headers, field_type) => {
            (are_headers(field_type), "list<struct<key: string, value: optional binary>>")
        }
        _ => (false, "a primitive type"),
    };
    if fits {
        Ok(part)
    } else {
        Err(unsupported(path, &format!("must be of type {wanted} to hold metadata")))
    }
}

fn are_headers(field_type: &Type) -> bool {
    let Type::List(list) = field_type else { return false };
    let Type::Struct(header) = &*list.element_field.field_type else { return false };
    let [key, value] = header.fields() else { return false };
    key.name == "key"
        && *key.field_type == Type::Primitive(PrimitiveType::String)
        && value.name == "value"
        && *value.field_type == Type::Primitive(PrimitiveType::Binary)
        && !value.required
}

fn push(part: &Part, field: &mut Field, message: &Message<'_>) -> Parsed<()> {
    match (part, &mut field.column) {
        (Part::Struct(parts), Column::Struct(structs)) => {
            for (part, child) in parts.iter().zip(&mut structs.children.fields) {
                push(part, child, message).map_err(|fault| fault.in_field(&child.name))?;
            }
            structs.validity.push();
        }
        (Part::Topic, Column::String(topics)) => topics.push(message.topic.as_bytes()),
        (Part::Partition, Column::Int(partitions)) => partitions.push(message.partition),
        (Part::Offset, Column::Long(offsets)) => offsets.push(message.offset),
        (Part::Timestamp, Column::Timestamp(timestamps)) => match message.timestamp_ms {
            Some(ms) => {
                timestamps.push(ms.checked_mul(1_000).ok_or_else(|| fault(BEYOND, &field.rule.type_name))?)
            }
            None => push_absent(field)?,
        },
        (Part::Key, Column::Binary(keys)) => match message.key {
            Some(key) => keys.push(key),
            None => push_absent(field)?,
        },
        (Part::Headers, Column::List(lists)) => {
            if let Column::Struct(headers) = &mut lists.element.column {
                push_headers(&mut headers.children, message);
                message.headers.iter().for_each(|_| headers.validity.push());
            }
            lists.end_list();
        }
        // The types were checked when the column was made.
        _ => field.column.push_null(),
    }
    Ok(())
}

fn push_headers(children: &mut Children, message: &Message<'_>) {
    if let [key, value] = children.fields.as_mut_slice() {
        for header in &message.headers {
            if let Column::String(keys) = &mut key.column {
                keys.push(header.key.as_bytes());
            }
            match (&mut value.column, header.value) {
                (Column::Binary(values), Some(bytes)) => values.push(bytes),
                (values, _) => values.push_null(),
            }
        }
    }
}

fn push_absent(field: &mut Field) -> Parsed<()> {
    if field.required {
        return Err(fault(ABSENT, &field.rule.type_name));
    }
    field.column.push_null();
    Ok(())
}

fn fault(problem: Problem, expected: &str) -> Box<Fault> {
    Fault::value(problem, expected.to_owned(), "")
}
