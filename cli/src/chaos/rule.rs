//! A rule: which requests, what happens to them, and how often.

use std::fmt;
use std::time::Duration;

use hyper::header::{HeaderMap, HeaderName};
use hyper::{Method, StatusCode, Uri};

use super::glob::Glob;
/// One line of the rule language. Its `Display` is a text that reads back as the same rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    /// Which requests.
    pub pattern: Pattern,
    /// What happens.
    pub fault: Fault,
    /// How often.
    pub when: When,
}

/// Which requests a rule is about. All parts must fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// The methods; empty for all.
    pub methods: Vec<Method>,
    /// The path, without the query.
    pub path: Glob,
    /// Parts of the query: a name, and a pattern over its value where one was given.
    pub query: Vec<(String, Option<Glob>)>,
    /// Headers with patterns over their values.
    pub headers: Vec<(HeaderName, Glob)>,
}

/// What happens to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is answered here and not forwarded.
    Status(Answer),
    /// It is answered here as S3 answers where it is asked too often.
    SlowDown,
    /// It is forwarded, the reply is dropped, and this is said instead.
    ApplyThen(Instead),
    /// It waits, and is forwarded then, whether or not the client still waits.
    Delay(Duration),
    /// It is answered with 504 at once, and forwarded after a time.
    Late(Duration),
    /// It is never answered.
    Hang,
    /// The client's connection is reset; nothing is forwarded.
    Reset,
    /// After so many bytes of the reply's body the connection ends.
    Truncate(u64),
    /// After so many bytes of the request's body both connections end.
    TruncateRequest(u64),
    /// Both bodies pass with so many bytes a second.
    Slow(u64),
    /// Table properties with this start are taken out of the request's JSON.
    DropProperties(String),
    /// It is sent twice, one after the other, and the second reply is passed on.
    Duplicate,
}

/// What the client hears after its request was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Instead {
    /// An answer made here.
    Answer(Answer),
    /// The end of its connection.
    Reset,
}

/// An answer that is made here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The status.
    pub status: StatusCode,
    /// Its body.
    pub body: Text,
    /// A header `Retry-After`, in seconds.
    pub retry_after: Option<Duration>,
}

/// The body of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Text {
    /// A sentence that names the program.
    Default,
    /// As given.
    Given(String),
    /// Iceberg's error model with this type.
    Iceberg(String),
}

/// How often a rule acts. The conditions hold together; those that are absent always hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct When {
    /// Not for the first so many requests that fit.
    pub after: u64,
    /// For each so-manieth request after those.
    pub every: Option<u64>,
    /// With this chance, drawn under the seed.
    pub share: Option<f64>,
    /// At most so many times in all.
    pub first: Option<u64>,
    /// Only at this time after the start.
    pub between: Option<(Duration, Duration)>,
}

impl Eq for When {}

/// What of a request rules look at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head<'a> {
    /// The method.
    pub method: &'a Method,
    /// The target, as it was sent.
    pub uri: &'a Uri,
    /// The headers.
    pub headers: &'a HeaderMap,
}

impl Pattern {
    /// Whether a request fits.
    pub(crate) fn fits(&self, head: Head<'_>) -> bool {
        let query = head.uri.query().unwrap_or_default();
        (self.methods.is_empty() || self.methods.contains(head.method))
            && self.path.fits(head.uri.path().as_bytes())
            && self.query.iter().all(|(name, value)| query_fits(query, name, value.as_ref()))
            && self.headers.iter().all(|(name, value)| {
                head.headers.get_all(name).iter().any(|found| value.fits(found.as_bytes()))
            })
    }
}

fn query_fits(query: &str, wanted: &str, pattern: Option<&Glob>) -> bool {
    query.split('&').any(|part| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        name == wanted && pattern.is_none_or(|pattern| pattern.fits(value.as_bytes()))
    })
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} : {}{}", self.pattern, self.fault, self.when)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.methods.as_slice() {
            [] => f.write_str("*")?,
            [first, others @ ..] => {
                write!(f, "{first}")?;
                for method in others {
                    write!(f, "|{method}")?;
                }
            }
        }
        write!(f, " {}", quoted(&self.path.to_string()))?;
        for (name, value) in &self.query {
            let value = value.as_ref().map(|value| format!("={value}")).unwrap_or_default();
            write!(f, " query {}", quoted(&format!("{name}{value}")))?;
        }
        for (name, value) in &self.headers {
            write!(f, " header {}", quoted(&format!("{name}={value}")))?;
        }
        Ok(())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(answer) => write!(f, "status {answer}"),
            Self::SlowDown => f.write_str("slowdown"),
            Self::ApplyThen(Instead::Answer(answer)) => write!(f, "apply-then {answer}"),
            Self::ApplyThen(Instead::Reset) => f.write_str("apply-then reset"),
            Self::Delay(time) => write!(f, "delay {}", exact(*time)),
            Self::Late(time) => write!(f, "late {}", exact(*time)),
            Self::Hang => f.write_str("hang"),
            Self::Reset => f.write_str("reset"),
            Self::Truncate(bytes) => write!(f, "truncate {bytes}"),
            Self::TruncateRequest(bytes) => write!(f, "truncate-request {bytes}"),
            Self::Slow(bytes) => write!(f, "slow {bytes}B/s"),
            Self::DropProperties(prefix) => write!(f, "drop-properties {}", quoted(prefix)),
            Self::Duplicate => f.write_str("duplicate"),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.status.as_u16())?;
        match &self.body {
            Text::Default => {}
            Text::Given(body) => write!(f, " body {}", quoted(body))?,
            Text::Iceberg(kind) => write!(f, " iceberg {}", quoted(kind))?,
        }
        match self.retry_after {
            Some(time) => write!(f, " retry-after {}", exact(time)),
            None => Ok(()),
        }
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.after > 0 {
            write!(f, " after {}", self.after)?;
        }
        if let Some(every) = self.every {
            write!(f, " every {every}")?;
        }
        if let Some(share) = self.share {
            write!(f, " share {share}")?;
        }
        match self.first {
            Some(1) => f.write_str(" once")?,
            Some(first) => write!(f, " first {first}")?,
            None => {}
        }
        if let Some((from, to)) = self.between {
            write!(f, " between {} {}", exact(from), exact(to))?;
        }
        Ok(())
    }
}

/// A word as the parser reads it back.
fn quoted(text: &str) -> String {
    let plain = |c: char| !c.is_whitespace() && !matches!(c, '\'' | '"');
    if !text.is_empty() && text != ":" && text.chars().all(plain) {
        return text.to_owned();
    }
    // As shells do: the quote ends, a quoted quote follows, and it begins again.
    format!("'{}'", text.replace('\'', "'\"'\"'"))
}

/// A duration without rounding, in the largest unit that divides it.
fn exact(time: Duration) -> String {
    let nanos = time.as_nanos();
    let units = [("m", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
    let fits = |unit: &(&str, u128)| nanos >= unit.1 && nanos.is_multiple_of(unit.1);
    units
        .iter()
        .find(|unit| fits(unit))
        .map_or_else(|| "0s".to_owned(), |(name, size)| format!("{}{name}", nanos / size))
}
