//! The text of JSON strings, and its escapes.

use std::borrow::Cow;

/// The inside of a JSON string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Text<'a> {
    raw: &'a str,
    escaped: bool,
}

impl<'a> Text<'a> {
    /// The inside of a string as it stands in a message; escapes were checked.
    pub(super) fn new(raw: &'a str, escaped: bool) -> Self {
        Self { raw, escaped }
    }

    /// Appends the text to `out`. The escapes were checked when it was read.
    pub(crate) fn append_to(self, out: &mut Vec<u8>) {
        if self.escaped {
            unescape(self.raw, out);
        } else {
            out.extend_from_slice(self.raw.as_bytes());
        }
    }

    /// The text, copied where it has escapes.
    pub(crate) fn to_text(self) -> Cow<'a, str> {
        if !self.escaped {
            return self.raw.into();
        }
        let mut out = Vec::with_capacity(self.raw.len());
        unescape(self.raw, &mut out);
        String::from_utf8_lossy(&out).into_owned().into()
    }
}

/// The code unit of an escape `\uHHHH` at the beginning of `bytes`.
pub(super) fn code_unit(bytes: &[u8]) -> Option<u32> {
    let [b'\\', b'u', digits @ ..] = bytes.first_chunk::<6>()? else { return None };
    digits.iter().try_fold(0, |value, digit| Some(value << 4 | char::from(*digit).to_digit(16)?))
}

/// Appends checked text without its escapes.
fn unescape(raw: &str, out: &mut Vec<u8>) {
    let mut rest = raw.as_bytes();
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let (character, length) = match rest.get(1) {
            Some(b'b') => ('\u{8}', 2),
            Some(b'f') => ('\u{c}', 2),
            Some(b'n') => ('\n', 2),
            Some(b'r') => ('\r', 2),
            Some(b't') => ('\t', 2),
            Some(b'u') => escaped_character(rest),
            Some(other) => (char::from(*other), 2),
            None => ('\\', 1),
        };
        let mut buffer = [0; 4];
        out.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
        rest = &rest[length..];
    }
    out.extend_from_slice(rest);
}

/// The character of a checked escape, and the escape's length.
fn escaped_character(bytes: &[u8]) -> (char, usize) {
    let first = code_unit(bytes).unwrap_or_default();
    if let Some(character) = char::from_u32(first) {
        return (character, 6);
    }
    let second = bytes.get(6..).and_then(code_unit).unwrap_or_default();
    let code = 0x1_0000 + ((first & 0x3FF) << 10) + (second & 0x3FF);
    (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
}
