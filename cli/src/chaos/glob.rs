//! Patterns over paths and values, compared byte by byte with what is on the wire: nothing is decoded first.

use std::fmt;

/// A pattern: `*` stands for any bytes within a segment, `**` for any bytes at all.
///
/// `**` as a whole segment also stands for no segment: `/v1/**/tables/*` fits `/v1/tables/t`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Glob {
    text: String,
    tokens: Vec<Token>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Byte(u8),
    /// Any bytes but `/`.
    Within,
    /// Any bytes.
    Across,
    /// Nothing, or anything that ends with `/`.
    Segments,
}

impl Glob {
    /// A pattern over paths.
    pub(crate) fn path(text: &str) -> Self {
        let mut tokens = Vec::new();
        let mut rest = text.as_bytes();
        while let Some((first, after)) = rest.split_first() {
            let at_segment = tokens.last() == Some(&Token::Byte(b'/'));
            let (token, length) = match rest {
                [b'*', b'*', b'/', ..] if at_segment => (Token::Segments, 3),
                [b'*', b'*', ..] => (Token::Across, 2),
                [b'*', ..] => (Token::Within, 1),
                _ => (Token::Byte(*first), 1),
            };
            tokens.push(token);
            rest = if length == 1 { after } else { &rest[length..] };
        }
        Self { text: text.to_owned(), tokens }
    }

    /// A pattern over values, in which `/` is nothing special.
    pub(crate) fn value(text: &str) -> Self {
        let token = |byte| if byte == b'*' { Token::Across } else { Token::Byte(byte) };
        Self { text: text.to_owned(), tokens: text.bytes().map(token).collect() }
    }

    /// Whether the whole of `bytes` fits.
    pub(crate) fn fits(&self, bytes: &[u8]) -> bool {
        // `reached[i]`: the tokens so far can stand for exactly the first `i` bytes.
        let mut reached = vec![false; bytes.len() + 1];
        reached[0] = true;
        for token in &self.tokens {
            reached = token.step(&reached, bytes);
        }
        reached[bytes.len()]
    }
}

impl Token {
    fn step(self, reached: &[bool], bytes: &[u8]) -> Vec<bool> {
        let mut next = vec![false; reached.len()];
        let mut begun = false;
        for (i, here) in reached.iter().copied().enumerate() {
            let before = i.checked_sub(1);
            let last = before.map(|j| bytes[j]);
            next[i] = match self {
                Self::Byte(byte) => before.is_some_and(|j| reached[j]) && last == Some(byte),
                Self::Within => here || (before.is_some_and(|j| next[j]) && last != Some(b'/')),
                Self::Across => here || before.is_some_and(|j| next[j]),
                Self::Segments => here || (begun && last == Some(b'/')),
            };
            begun |= here;
        }
        next
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stay_within_a_segment_and_double_stars_do_not() {
        let cases = [
            ("/v1/*/tables/*", "/v1/a/tables/t", true),
            ("/v1/*/tables/*", "/v1/a/b/tables/t", false),
            ("/v1/*/tables/*", "/v1//tables/", true),
            ("/v1/**/tables/*", "/v1/a/b/tables/t", true),
            ("/v1/**/tables/*", "/v1/tables/t", true),
            ("/v1/**/tables/*", "/v1/xtables/t", false),
            ("/bucket/**", "/bucket/a/b", true),
            ("/bucket/**", "/bucket/", true),
            ("/bucket/**", "/bucket", false),
            ("/**.parquet", "/bucket/a/b.parquet", true),
            ("/**.parquet", "/bucket/a/b.avro", false),
            ("/**", "/", true),
            ("/a*b*c", "/abbbc", true),
            ("/a*b*c", "/abbbcd", false),
            ("", "", true),
        ];
        for (pattern, path, fits) in cases {
            assert_eq!(Glob::path(pattern).fits(path.as_bytes()), fits, "{pattern} {path}");
        }
    }

    #[test]
    fn escapes_are_compared_as_they_are_sent() {
        assert!(Glob::path("/a%2Fb/*").fits(b"/a%2Fb/c%20d"));
        assert!(!Glob::path("/a%2Fb").fits(b"/a/b"));
    }

    #[test]
    fn in_values_a_star_stands_for_slashes_too() {
        assert!(Glob::value("AWS4*/us-east-1/*").fits(b"AWS4-HMAC Credential=x/y/us-east-1/s3"));
        assert!(!Glob::value("a").fits(b"ab"));
    }

    #[test]
    fn a_pattern_of_many_stars_is_decided_at_once() {
        let pattern = Glob::path(&"/**a".repeat(20));
        assert!(!pattern.fits("/a".repeat(2_000).replace("a", "b").as_bytes()));
    }
}
