//! What values a field had in a sample, in a form whose sum does not depend on the order of its parts.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::decode::RejectCode;
use crate::decode::fault::{Fault, Parsed};
use crate::decode::json::cursor::Cursor;

/// Where a message stood; the earliest is the example.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) topic: Arc<str>,
    pub(super) partition: i32,
    pub(super) offset: i64,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}@{}", self.topic, self.partition, self.offset)
    }
}

/// The kinds of JSON values, numbers told apart by what holds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Boolean,
    /// An integer within 64 bits.
    Long,
    /// Of these, one that a double cannot hold.
    LongBeyondDouble,
    /// An integer beyond 64 bits of at most 38 digits.
    WideInteger,
    /// An integer of more than 38 digits.
    HugeInteger,
    /// A number with a fraction or exponent.
    Double,
    String,
    List,
    Object,
}

impl Kind {
    /// For a person.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::Long => "integer",
            Self::LongBeyondDouble => "integer beyond 2^53",
            Self::WideInteger => "integer beyond 64 bits",
            Self::HugeInteger => "integer of more than 38 digits",
            Self::Double => "decimal number",
            Self::String => "text",
            Self::List => "list",
            Self::Object => "object",
        }
    }
}

/// What is known of the values of one field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Shape {
    /// The kinds seen, each with the earliest message that shows it.
    pub(super) kinds: BTreeMap<Kind, Place>,
    /// The shape of list elements, all together.
    pub(super) element: Option<Box<Shape>>,
    /// The shapes of an object's fields.
    pub(super) fields: BTreeMap<String, Member>,
}

/// A field of objects, and where it stood in them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) shape: Shape,
    /// How often the field was there.
    pub(super) count: u64,
    /// The sum of its places in its objects.
    pub(super) places: u64,
}

impl Shape {
    /// Adds what another part of the sample shows.
    pub(super) fn merge(&mut self, other: Self) {
        for (kind, place) in other.kinds {
            match self.kinds.get_mut(&kind) {
                Some(known) if *known <= place => {}
                Some(known) => *known = place,
                None => drop(self.kinds.insert(kind, place)),
            }
        }
        if let Some(element) = other.element {
            self.element.get_or_insert_default().merge(*element);
        }
        for (name, member) in other.fields {
            let known = self.fields.entry(name).or_default();
            known.shape.merge(member.shape);
            known.count += member.count;
            known.places += member.places;
        }
    }

    /// Fields of this shape and of all below, list elements included.
    pub(super) fn count_fields(&self) -> usize {
        let below = self.fields.values().map(|member| 1 + member.shape.count_fields()).sum::<usize>();
        below + self.element.as_ref().map_or(0, |element| element.count_fields())
    }

    /// The fields in the order in which they stand in objects on average, then by name.
    pub(super) fn ordered_fields(&self) -> Vec<(&str, &Shape)> {
        let mut members: Vec<(&String, &Member)> = self.fields.iter().collect();
        members.sort_by(|(name_a, a), (name_b, b)| {
            let (left, right) = (a.mean_cross(b), b.mean_cross(a));
            left.cmp(&right).then_with(|| name_a.cmp(name_b))
        });
        members.into_iter().map(|(name, member)| (name.as_str(), &member.shape)).collect()
    }
}

impl Member {
    /// Compares means without dividing: `a.places / a.count` against `b.places / b.count`.
    fn mean_cross(&self, other: &Self) -> u128 {
        u128::from(self.places) * u128::from(other.count)
    }
}

/// Reads one message's value.
#[derive(Debug)]
pub(super) struct ShapeReader<'a> {
    cursor: Cursor<'a>,
    place: Place,
}

impl<'a> ShapeReader<'a> {
    /// The shape of a message's object.
    pub(super) fn read_object(text: &'a str, max_depth: usize, place: Place) -> Parsed<Shape> {
        let mut reader = Self { cursor: Cursor::new(text, max_depth), place };
        if reader.cursor.peek()? != b'{' {
            return Err(Fault::new(RejectCode::NotAnObject, "the JSON value is not an object"));
        }
        let shape = reader.value()?;
        reader.cursor.end()?;
        Ok(shape)
    }

    fn value(&mut self) -> Parsed<Shape> {
        match self.cursor.peek()? {
            b'{' => self.object(),
            b'[' => self.list(),
            b'n' => self.cursor.word("null").map(|()| Shape::default()),
            b't' => self.cursor.word("true").map(|()| self.of(Kind::Boolean)),
            b'f' => self.cursor.word("false").map(|()| self.of(Kind::Boolean)),
            b'"' => self.cursor.string().map(|_| self.of(Kind::String)),
            b'-' | b'0'..=b'9' => self.number(),
            _ => Err(self.cursor.unexpected("a value")),
        }
    }

    fn of(&self, kind: Kind) -> Shape {
        Shape { kinds: [(kind, self.place.clone())].into(), ..Shape::default() }
    }

    fn number(&mut self) -> Parsed<Shape> {
        const EXACT: i64 = 1 << 53;
        let number = self.cursor.number()?;
        Ok(match number.small {
            Some(small) if (-EXACT..=EXACT).contains(&small) => self.of(Kind::Long),
            Some(_) => {
                let mut shape = self.of(Kind::Long);
                shape.merge(self.of(Kind::LongBeyondDouble));
                shape
            }
            None if !number.integer => self.of(Kind::Double),
            None if number.text.trim_start_matches('-').len() <= 38 => self.of(Kind::WideInteger),
            None => self.of(Kind::HugeInteger),
        })
    }

    fn list(&mut self) -> Parsed<Shape> {
        let mut shape = self.of(Kind::List);
        self.cursor.enter()?;
        let element = shape.element.get_or_insert_default();
        if !self.cursor.is_empty(b']')? {
            loop {
                element.merge(self.value()?);
                if !self.cursor.another(b']')? {
                    break;
                }
            }
        }
        Ok(shape)
    }

    fn object(&mut self) -> Parsed<Shape> {
        let mut shape = self.of(Kind::Object);
        self.cursor.enter()?;
        if !self.cursor.is_empty(b'}')? {
            loop {
                let name = self.cursor.name()?.to_text().into_owned();
                let places = shape.fields.len() as u64;
                let member = Member { shape: self.value()?, count: 1, places };
                if shape.fields.insert(name, member).is_some() {
                    return Err(Fault::new(RejectCode::DuplicateField, "a name occurs twice in one object"));
                }
                if !self.cursor.another(b'}')? {
                    break;
                }
            }
        }
        Ok(shape)
    }
}
