//! What a rule does, in words: `firn chaos --explain` prints it below the rule.

use std::time::Duration;

use hyper::Method;

use super::rule::{Answer, Fault, Instead, Pattern, Rule, Text, When};
use crate::units;

impl Rule {
    /// What the rule does, as a sentence.
    pub(crate) fn meaning(&self) -> String {
        format!("{}: {}; {}", self.pattern.meaning(), self.fault.meaning(), self.when.meaning())
    }
}

impl Pattern {
    fn meaning(&self) -> String {
        let methods: Vec<&str> = self.methods.iter().map(Method::as_str).collect();
        let mut text = match methods.as_slice() {
            [] => "requests".to_owned(),
            some => format!("{} requests", some.join(" and ")),
        };
        text.push_str(&format!(" whose path fits `{}`", self.path));
        for (name, value) in &self.query {
            match value {
                Some(value) => text.push_str(&format!(", whose query has `{name}` as `{value}`")),
                None => text.push_str(&format!(", whose query has `{name}`")),
            }
        }
        for (name, value) in &self.headers {
            text.push_str(&format!(", whose header `{name}` fits `{value}`"));
        }
        text
    }
}

impl Fault {
    fn meaning(&self) -> String {
        let time = |time: &Duration| units::format_duration(*time);
        match self {
            Self::Status(answer) => format!("not forwarded, and answered {}", answer.meaning()),
            Self::SlowDown => "not forwarded, and answered with S3's 503 SlowDown".to_owned(),
            Self::ApplyThen(Instead::Answer(answer)) => {
                format!("forwarded, the reply dropped, and answered {}", answer.meaning())
            }
            Self::ApplyThen(Instead::Reset) => {
                "forwarded, the reply dropped, and the client's connection reset".to_owned()
            }
            Self::Delay(after) => format!(
                "held for {} and forwarded then, also when the client has gone away meanwhile",
                time(after)
            ),
            Self::Late(after) => format!("answered with 504 at once, and forwarded {} later", time(after)),
            Self::Hang => "neither forwarded nor ever answered".to_owned(),
            Self::Reset => "not forwarded, the client's connection reset".to_owned(),
            Self::Truncate(bytes) => {
                format!("forwarded, and the reply's body cut after {} bytes", units::format_count(*bytes))
            }
            Self::TruncateRequest(bytes) => {
                format!("forwarded with its body cut after {} bytes", units::format_count(*bytes))
            }
            Self::Slow(rate) => format!("forwarded, both bodies at {} a second", units::format_bytes(*rate)),
            Self::DropProperties(prefix) => {
                format!("forwarded without the table properties that begin with `{prefix}`")
            }
            Self::Duplicate => "forwarded twice, and answered with the second reply".to_owned(),
        }
    }
}

impl Answer {
    fn meaning(&self) -> String {
        let body = match &self.body {
            Text::Default => String::new(),
            Text::Given(body) => format!(" and the body `{body}`"),
            Text::Iceberg(kind) => format!(" and Iceberg's error `{kind}`"),
        };
        let retry = self
            .retry_after
            .map(|time| format!(", to be tried again after {}", units::format_duration(time)));
        format!("with {}{body}{}", self.status.as_u16(), retry.unwrap_or_default())
    }
}

impl When {
    fn meaning(&self) -> String {
        let mut parts = Vec::new();
        match (self.every, self.after) {
            (Some(every), 0) => parts.push(format!("one in {every} of them")),
            (Some(every), after) => parts.push(format!("one in {every} of those after the first {after}")),
            (None, 0) => {}
            (None, after) => parts.push(format!("those after the first {after}")),
        }
        if let Some(share) = self.share {
            parts.push(format!("a share of {share}, drawn under the seed"));
        }
        match self.first {
            Some(1) => parts.push("once".to_owned()),
            Some(first) => parts.push(format!("at most {first} times")),
            None => {}
        }
        if let Some((from, to)) = self.between {
            let (from, to) = (units::format_duration(from), units::format_duration(to));
            parts.push(format!("from {from} to {to} after the start"));
        }
        if parts.is_empty() { "each time".to_owned() } else { parts.join(", ") }
    }
}
