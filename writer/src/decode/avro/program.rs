//! Which value of a writer's schema goes to which column: worked out once for each schema.

use super::super::DecodeError;
use super::super::column::Column;
use super::super::plan::{Children, Field};
use super::types::{Physical, TypeId, WriterSchema};

/// A writer's schema beside the columns of a table.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) writer: WriterSchema,
    pub(super) root: Members,
}

/// The fields of a record beside the children of a struct.
#[derive(Debug)]
pub(super) struct Members {
    /// The record's fields, in its order.
    pub(super) members: Vec<Member>,
    /// Whether a child has no field.
    pub(super) incomplete: bool,
}

#[derive(Debug)]
pub(super) enum Member {
    /// A field for the child with this index.
    Known(usize, Node),
    /// A field that the table does not have.
    Unknown(Box<str>, TypeId),
}

/// How a value is read into a column.
#[derive(Debug)]
pub(super) enum Node {
    /// A value without parts, or one whose type the column does not take.
    Leaf(TypeId),
    Struct(Members),
    List(TypeId, Box<Node>),
    Map(Box<Node>),
    /// One of these; the index comes first.
    Union(Vec<Node>),
}

impl Program {
    pub(super) fn new(writer: WriterSchema, columns: &Children) -> Result<Self, DecodeError> {
        let root = match &writer.of(writer.root).physical {
            Physical::Record(fields) => members(&writer, fields, columns),
            _ => return Err(DecodeError::WriterSchema { reason: "is no record".to_owned() }),
        };
        Ok(Self { writer, root })
    }
}

fn members(writer: &WriterSchema, fields: &[(String, TypeId)], columns: &Children) -> Members {
    let member = |(name, id): &(String, TypeId)| match columns.find(name) {
        Some(index) => Member::Known(index, node(writer, *id, &columns.fields[index])),
        None => Member::Unknown(name.as_str().into(), *id),
    };
    let members: Vec<Member> = fields.iter().map(member).collect();
    let known = members.iter().filter(|member| matches!(member, Member::Known(..))).count();
    Members { members, incomplete: known < columns.fields.len() }
}

/// The depth of the table's schema bounds the recursion, also where the writer's schema holds itself.
fn node(writer: &WriterSchema, id: TypeId, field: &Field) -> Node {
    match (&writer.of(id).physical, &field.column) {
        (Physical::Union(branches), _) => {
            Node::Union(branches.iter().map(|branch| node(writer, *branch, field)).collect())
        }
        (Physical::Record(fields), Column::Struct(structs)) => {
            Node::Struct(members(writer, fields, &structs.children))
        }
        (Physical::Array(items), Column::List(lists)) => {
            Node::List(*items, Box::new(node(writer, *items, &lists.element)))
        }
        (Physical::Map(values), Column::Map(maps)) => Node::Map(Box::new(node(writer, *values, &maps.value))),
        _ => Node::Leaf(id),
    }
}
