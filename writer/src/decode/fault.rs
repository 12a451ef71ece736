//! A reject while it travels outwards: each level of the message adds its part of the path.

use std::borrow::Cow;
use std::fmt::Write;

use super::{Reject, RejectCode};

/// The result of reading a part of a message. Boxed: what is passed along for every value stays small.
pub(crate) type Parsed<T> = Result<T, Box<Fault>>;

/// The longest text of a value that a reject repeats, in bytes.
const MAX_FOUND_BYTES: usize = 80;

/// What is wrong with one value, before it is known where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) code: RejectCode,
    pub(crate) reason: &'static str,
}

impl Problem {
    pub(crate) const fn new(code: RejectCode, reason: &'static str) -> Self {
        Self { code, reason }
    }
}

/// A reject under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    code: RejectCode,
    reason: Cow<'static, str>,
    expected: Cow<'static, str>,
    found: String,
    /// From the innermost to the outermost.
    path: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Field(String),
    Index(usize),
    Key(String),
}

impl Fault {
    pub(crate) fn new(code: RejectCode, reason: impl Into<Cow<'static, str>>) -> Box<Self> {
        let (expected, found) = (Cow::Borrowed(""), String::new());
        Box::new(Self { code, reason: reason.into(), expected, found, path: Vec::new() })
    }

    /// `found` is the text of the value or of more: it is shortened.
    pub(crate) fn value(problem: Problem, expected: impl Into<Cow<'static, str>>, found: &str) -> Box<Self> {
        let mut fault = Self::new(problem.code, problem.reason);
        fault.expected = expected.into();
        fault.found = shorten(found);
        fault
    }

    /// Whether the value is nothing that its decoder reads, whatever the table.
    pub(crate) fn concerns_syntax(&self) -> bool {
        use RejectCode::{LoneSurrogate, MalformedAvro, MalformedJson, TooDeep, TrailingData};
        matches!(self.code, MalformedJson | MalformedAvro | TrailingData | TooDeep | LoneSurrogate)
    }

    pub(crate) fn in_field(mut self: Box<Self>, name: &str) -> Box<Self> {
        self.path.push(Segment::Field(shorten(name)));
        self
    }

    pub(crate) fn in_element(mut self: Box<Self>, index: usize) -> Box<Self> {
        self.path.push(Segment::Index(index));
        self
    }

    pub(crate) fn under_key(mut self: Box<Self>, key: &str) -> Box<Self> {
        self.path.push(Segment::Key(shorten(key)));
        self
    }

    pub(crate) fn into_reject(self) -> Reject {
        let path = render(&self.path);
        Reject { code: self.code, path, expected: self.expected, found: self.found, reason: self.reason }
    }
}

/// `o.a`, `tags[3]`, `m["k"]`; a field whose name is not plain is quoted like a key.
fn render(innermost_first: &[Segment]) -> String {
    let mut path = String::new();
    for segment in innermost_first.iter().rev() {
        // Writing to a `String` cannot fail.
        let _ = match segment {
            Segment::Field(name) if is_plain(name) && path.is_empty() => write!(path, "{name}"),
            Segment::Field(name) if is_plain(name) => write!(path, ".{name}"),
            Segment::Index(index) => write!(path, "[{index}]"),
            Segment::Field(name) | Segment::Key(name) => write!(path, "[{name:?}]"),
        };
    }
    path
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-' || c == '…')
}

/// At most [`MAX_FOUND_BYTES`] bytes, with an ellipsis where something was left out.
pub(crate) fn shorten(text: &str) -> String {
    if text.len() <= MAX_FOUND_BYTES {
        return text.to_owned();
    }
    let mut end = MAX_FOUND_BYTES;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}
