//! Reads rules. Everything that is wrong with all of them is told at once, each with its place.
//!
//! ```text
//! METHOD[|METHOD…] PATH [query NAME[=GLOB]]… [header NAME=GLOB]… : FAULT [WHEN]…
//! ```

use std::ops::Range;
use std::path::Path;

use hyper::Method;
use hyper::header::HeaderName;

use super::glob::Glob;
use super::rule::{Pattern, Rule};
use super::words::{RuleProblem, Word, split};

mod fault;
mod when;

/// A rule's text, and where it was given.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    /// `--rule 2`, or a file and a line.
    pub place: String,
    /// The text.
    pub text: String,
}

/// The rules of `--rule` options.
pub(crate) fn of_options(rules: &[String]) -> Vec<Given> {
    let given =
        |(at, text): (usize, &String)| Given { place: format!("--rule {}", at + 1), text: text.clone() };
    rules.iter().enumerate().map(given).collect()
}

/// The rules of a file: one a line; empty lines, and those that begin with `#`, are none.
pub(crate) fn of_file(path: &Path, text: &str) -> Vec<Given> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    let rules = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    rules
        .map(|(number, line)| Given { place: format!("{}:{number}", path.display()), text: line.to_owned() })
        .collect()
}

/// Reads all rules, or tells all problems.
pub(crate) fn parse(given: &[Given]) -> Result<Vec<Rule>, Vec<RuleProblem>> {
    let mut rules = Vec::new();
    let mut problems = Vec::new();
    for one in given {
        match parse_one(&one.text) {
            Ok(rule) => rules.push(rule),
            Err(found) => problems.extend(found.into_iter().map(|(span, what)| RuleProblem {
                place: one.place.clone(),
                rule: one.text.clone(),
                span,
                what,
            })),
        }
    }
    if problems.is_empty() { Ok(rules) } else { Err(problems) }
}

type Problem = (Range<usize>, String);

fn parse_one(text: &str) -> Result<Rule, Vec<Problem>> {
    let words = split(text).map_err(|problem| vec![problem])?;
    let Some(separator) = words.iter().position(|word| !word.quoted && word.text == ":") else {
        let what = "a colon with a space on either side stands between what is matched and what happens, as in \
                    `POST /v1/** : status 503`";
        return Err(vec![(0..text.len(), what.to_owned())]);
    };
    let mut before = Reader::new(&words[..separator], words[separator].span.start);
    let mut after = Reader::new(&words[separator + 1..], text.len());
    let pattern = pattern(&mut before);
    let fault = fault::read(&mut after);
    let when = when::read(&mut after);
    let mut problems = before.problems;
    problems.extend(after.problems);
    match (pattern, fault) {
        (Some(pattern), Some(fault)) if problems.is_empty() => Ok(Rule { pattern, fault, when }),
        _ => Err(problems),
    }
}

/// Words that are taken one by one, and what was wrong with them.
#[derive(Debug)]
struct Reader<'a> {
    words: std::slice::Iter<'a, Word>,
    /// Where a missing word would stand.
    end: usize,
    problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    fn new(words: &'a [Word], end: usize) -> Self {
        let end = words.last().map_or(end, |word| word.span.end);
        Self { words: words.iter(), end, problems: Vec::new() }
    }

    fn next(&mut self) -> Option<&'a Word> {
        self.words.next()
    }

    /// The next word where it is this keyword.
    fn keyword(&mut self, keyword: &str) -> bool {
        let found = self.peek().is_some_and(|word| !word.quoted && word.text == keyword);
        if found {
            self.words.next();
        }
        found
    }

    fn peek(&self) -> Option<&'a Word> {
        self.words.as_slice().first()
    }

    /// The next word as what `read` makes of it; `what` names it where it is missing.
    fn value<T>(&mut self, what: &str, read: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let Some(word) = self.next() else {
            self.problems.push((self.end..self.end, format!("{what} is missing here")));
            return None;
        };
        match read(&word.text) {
            Ok(value) => Some(value),
            Err(problem) => {
                self.problem(word, format!("`{}` is not {what}: {problem}", word.text));
                None
            }
        }
    }

    fn problem(&mut self, word: &Word, what: impl Into<String>) {
        self.problems.push((word.span.clone(), what.into()));
    }
}

fn pattern(reader: &mut Reader<'_>) -> Option<Pattern> {
    let methods = reader.value("a method (`GET`, `PUT|POST`, or `*` for all)", methods);
    let path = reader.value("a path", path);
    let mut pattern =
        Pattern { methods: methods.unwrap_or_default(), path: path?, query: Vec::new(), headers: Vec::new() };
    while let Some(word) = reader.next() {
        match word.text.as_str() {
            "query" if !word.quoted => pattern.query.extend(reader.value("a part of the query", query)),
            "header" if !word.quoted => pattern.headers.extend(reader.value("a header", header)),
            other => {
                let what =
                    format!("`{other}` is neither `query NAME=VALUE` nor `header NAME=VALUE` nor the colon");
                reader.problem(word, what);
            }
        }
    }
    Some(pattern)
}

fn methods(text: &str) -> Result<Vec<Method>, String> {
    if text == "*" {
        return Ok(Vec::new());
    }
    let method = |name: &str| {
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '-');
        let method = is_name.then(|| Method::from_bytes(name.as_bytes()).ok()).flatten();
        method.ok_or_else(|| {
            format!("methods are written in capitals, several with `|` between them (`{name}`)")
        })
    };
    text.split('|').map(method).collect()
}

fn path(text: &str) -> Result<Glob, String> {
    if !text.starts_with('/') && !text.starts_with("**") {
        return Err("a path begins with `/`, or with `**` for any".to_owned());
    }
    if let Some((_, query)) = text.split_once('?') {
        return Err(format!("paths have no query; write `query {query}` behind the path"));
    }
    Ok(Glob::path(text))
}

fn query(text: &str) -> Result<(String, Option<Glob>), String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(Glob::value(value))),
        None => (text, None),
    };
    if name.is_empty() { Err("its name is missing".to_owned()) } else { Ok((name.to_owned(), value)) }
}

fn header(text: &str) -> Result<(HeaderName, Glob), String> {
    let (name, value) =
        text.split_once('=').ok_or("write its name, `=`, and a pattern over its value (`*` for any)")?;
    let name =
        HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("`{name}` cannot be a header's name"))?;
    Ok((name, Glob::value(value)))
}
