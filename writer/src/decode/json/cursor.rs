//! A strict reader of JSON text (RFC 8259): every construct of the grammar and nothing else.

use super::super::RejectCode;
use super::super::fault::{Fault, Parsed, shorten};
use super::super::number::Number;
use super::scan::find_special;
use super::text::{Text, code_unit};

/// A place in a JSON text, and how much deeper it may nest.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    depth_left: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str, max_depth: usize) -> Self {
        Self { text, at: 0, depth_left: max_depth }
    }

    /// Passes white space and looks at the next byte.
    #[inline]
    pub(crate) fn peek(&mut self) -> Parsed<u8> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                Some(byte) => return Ok(*byte),
                None => return Err(Fault::new(RejectCode::MalformedJson, "the text ends in the middle")),
            }
        }
    }

    /// The place of the next byte.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// The text from `start` to here.
    pub(crate) fn since(&self, start: usize) -> &'a str {
        &self.text[start..self.at]
    }

    /// The text from here on.
    pub(crate) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The value that is next, for a person; whatever is next where that is none.
    #[cold]
    pub(crate) fn next_value(&self) -> &'a str {
        let mut ahead = self.clone();
        match ahead.skip() {
            Ok(()) => ahead.since(self.at),
            Err(_) => self.rest(),
        }
    }

    /// A fault at this place.
    #[cold]
    pub(crate) fn unexpected(&self, wanted: &str) -> Box<Fault> {
        let found = self.rest().chars().next().map_or_else(|| "the end".to_owned(), |c| format!("{c:?}"));
        Fault::new(RejectCode::MalformedJson, format!("{found} at byte {} where {wanted} should be", self.at))
    }

    /// Enters an array or object, whose bracket is next.
    #[inline]
    pub(crate) fn enter(&mut self) -> Parsed<()> {
        if self.depth_left == 0 {
            return Err(Fault::new(
                RejectCode::TooDeep,
                "arrays and objects are nested deeper than the limit",
            ));
        }
        self.depth_left -= 1;
        self.at += 1;
        Ok(())
    }

    /// After a value in a container: passes a comma and returns true, or the closing bracket and returns false.
    #[inline]
    pub(crate) fn another(&mut self, close: u8) -> Parsed<bool> {
        match self.peek()? {
            b',' => {
                self.at += 1;
                Ok(true)
            }
            byte if byte == close => {
                self.leave();
                Ok(false)
            }
            _ => Err(self.unexpected("a comma or the closing bracket")),
        }
    }

    /// After the opening bracket: passes the closing one and returns true where the container is empty.
    #[inline]
    pub(crate) fn is_empty(&mut self, close: u8) -> Parsed<bool> {
        let empty = self.peek()? == close;
        if empty {
            self.leave();
        }
        Ok(empty)
    }

    fn leave(&mut self) {
        self.depth_left += 1;
        self.at += 1;
    }

    /// Passes a field's name and colon where they are exactly `name`, written without escapes and white space.
    #[inline]
    pub(crate) fn take_name(&mut self, name: &str) -> bool {
        let rest = &self.text.as_bytes()[self.at..];
        let end = name.len() + 1;
        let found = rest.len() > end + 1
            && rest[0] == b'"'
            && rest[1..end] == *name.as_bytes()
            && rest[end] == b'"'
            && rest[end + 1] == b':';
        if found {
            self.at += end + 2;
        }
        found
    }

    /// Reads a field's name and colon.
    pub(crate) fn name(&mut self) -> Parsed<Text<'a>> {
        if self.peek()? != b'"' {
            return Err(self.unexpected("a field name in quotes"));
        }
        let name = self.string()?;
        if self.peek()? != b':' {
            return Err(self.unexpected("a colon"));
        }
        self.at += 1;
        Ok(name)
    }

    /// Reads a string, whose opening quote is next.
    #[inline]
    pub(crate) fn string(&mut self) -> Parsed<Text<'a>> {
        let start = self.at + 1;
        let end = find_special(self.text.as_bytes(), start);
        if self.text.as_bytes().get(end) == Some(&b'"') {
            self.at = end + 1;
            return Ok(Text::new(&self.text[start..end], false));
        }
        self.escaped_string(start, end)
    }

    fn escaped_string(&mut self, start: usize, mut end: usize) -> Parsed<Text<'a>> {
        let bytes = self.text.as_bytes();
        loop {
            self.at = end;
            match bytes.get(end) {
                Some(b'"') => {
                    self.at = end + 1;
                    return Ok(Text::new(&self.text[start..end], true));
                }
                Some(b'\\') => end = find_special(bytes, end + self.escape()?),
                Some(_) => return Err(self.unexpected("an escape (control characters must be escaped)")),
                None => return Err(Fault::new(RejectCode::MalformedJson, "the text ends within a string")),
            }
        }
    }

    /// The length of the escape at this place, checked.
    fn escape(&self) -> Parsed<usize> {
        let rest = &self.text.as_bytes()[self.at..];
        match rest.get(1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(2),
            Some(b'u') => match (code_unit(rest), rest.get(6..).and_then(code_unit)) {
                (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => Ok(12),
                (Some(0xD800..=0xDFFF), _) => {
                    let found = shorten(self.rest().get(..6).unwrap_or_default());
                    let reason = format!("the escape {found} at byte {} is half a character", self.at);
                    Err(Fault::new(RejectCode::LoneSurrogate, reason))
                }
                (Some(_), _) => Ok(6),
                (None, _) => Err(self.unexpected("an escape with four hexadecimal digits")),
            },
            _ => Err(self.unexpected("an escape of JSON")),
        }
    }

    /// Reads a number, which `-` or a digit begins.
    #[inline]
    pub(crate) fn number(&mut self) -> Parsed<Number<'a>> {
        let number = Number::prefix(self.rest()).ok_or_else(|| self.unexpected("a number of JSON"))?;
        self.at += number.text.len();
        Ok(number)
    }

    /// Passes `word`: `true`, `false` or `null`.
    #[inline]
    pub(crate) fn word(&mut self, word: &'static str) -> Parsed<()> {
        if !self.rest().as_bytes().starts_with(word.as_bytes()) {
            return Err(self.unexpected("a value"));
        }
        self.at += word.len();
        Ok(())
    }

    /// Passes a whole value, checking it.
    pub(crate) fn skip(&mut self) -> Parsed<()> {
        match self.peek()? {
            b'"' => self.string().map(drop),
            b'-' | b'0'..=b'9' => self.number().map(drop),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            b'{' => self.skip_object(),
            b'[' => self.skip_array(),
            _ => Err(self.unexpected("a value")),
        }
    }

    fn skip_object(&mut self) -> Parsed<()> {
        self.enter()?;
        if self.is_empty(b'}')? {
            return Ok(());
        }
        loop {
            self.name()?;
            self.skip()?;
            if !self.another(b'}')? {
                return Ok(());
            }
        }
    }

    fn skip_array(&mut self) -> Parsed<()> {
        self.enter()?;
        if self.is_empty(b']')? {
            return Ok(());
        }
        loop {
            self.skip()?;
            if !self.another(b']')? {
                return Ok(());
            }
        }
    }

    /// Nothing but white space follows.
    #[inline]
    pub(crate) fn end(&mut self) -> Parsed<()> {
        let rest = self.text.as_bytes()[self.at..].iter();
        match rest.clone().position(|byte| !matches!(byte, b' ' | b'\n' | b'\r' | b'\t')) {
            None => Ok(()),
            Some(_) => {
                let reason = format!("something follows the JSON value that ends at byte {}", self.at);
                Err(Fault::new(RejectCode::TrailingData, reason))
            }
        }
    }
}

/// Checks that a text is one JSON value and nothing else.
pub(crate) fn check(text: &str, max_depth: usize) -> Parsed<()> {
    let mut cursor = Cursor::new(text, max_depth);
    cursor.skip()?;
    cursor.end()
}
