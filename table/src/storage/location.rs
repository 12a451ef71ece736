//! Locations as Iceberg's metadata holds them, taken apart without decoding.

use std::fmt;

use object_store::path::Path;

use crate::{Error, ErrorKind, Result};

/// The kinds of store that a location can name. Spellings of one store (`s3`, `s3a`, `s3n`) are one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `file:` or a bare absolute path.
    File,
    /// `memory:`, one store per process and authority.
    Memory,
    /// `s3:`, `s3a:` or `s3n:`; the authority is the bucket.
    S3,
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "file",
            Self::Memory => "memory",
            Self::S3 => "s3",
        })
    }
}

/// A location in its parts. Nothing is decoded: Iceberg's locations are not URL-encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location<'a> {
    whole: &'a str,
    scheme: Scheme,
    /// Hadoop's `s3a` reads `a//b` as `a/b`; with `s3` these are two keys.
    collapses: bool,
    authority: &'a str,
    key: &'a str,
}

impl<'a> Location<'a> {
    /// Takes a location apart.
    ///
    /// # Errors
    /// `Configuration` where it is relative or has no bucket, `Unsupported` where its scheme has no store.
    pub fn parse(whole: &'a str) -> Result<Self> {
        let (scheme, rest) = split_scheme(whole);
        let (scheme, collapses) = match scheme.to_ascii_lowercase().as_str() {
            "" | "file" => (Scheme::File, true),
            "memory" => (Scheme::Memory, true),
            "s3" => (Scheme::S3, false),
            "s3a" | "s3n" => (Scheme::S3, true),
            other => {
                let message = format!(
                    "location `{whole}` has the scheme `{other}`, for which this build has no store: use file, s3 or memory"
                );
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
        };
        let (authority, key) = split_authority(rest);
        let location = Self { whole, scheme, collapses, authority, key };
        location.check()
    }

    fn check(mut self) -> Result<Self> {
        let refuse = |what: &str| {
            Err(Error::new(ErrorKind::Configuration, format!("location `{}` {what}", self.whole)))
        };
        if self.scheme == Scheme::File && self.authority.eq_ignore_ascii_case("localhost") {
            self.authority = "";
        }
        match self.scheme {
            Scheme::File if !self.authority.is_empty() => {
                refuse("names a host: files are on this machine, write `file:///path`")
            }
            Scheme::S3 if self.authority.is_empty() => refuse("has no bucket: write `s3://bucket/key`"),
            _ if !self.key.starts_with('/') && (self.authority.is_empty() || !self.key.is_empty()) => {
                refuse("is relative: write an absolute path or a URI")
            }
            _ => Ok(self),
        }
    }

    /// The location as it was given.
    #[must_use]
    pub fn whole(&self) -> &'a str {
        self.whole
    }

    /// The kind of store.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The bucket of an S3 location, empty for files.
    #[must_use]
    pub fn authority(&self) -> &'a str {
        self.authority
    }

    /// The object's path in its store, each character as it stands in the location.
    ///
    /// # Errors
    /// `Unsupported` where the store cannot name the key: an empty segment in an `s3` key, `.` or `..`, control
    /// characters.
    pub fn path(&self) -> Result<Path> {
        let key = self.key.strip_suffix('/').unwrap_or(self.key);
        let parsed = if self.collapses { Path::parse(collapse(key)) } else { Path::parse(key) };
        parsed.map_err(|error| {
            let message = format!("the store cannot name the key of location `{}`", self.whole);
            Error::new(ErrorKind::Unsupported, message).with_source(error)
        })
    }
}

/// The scheme (empty for a bare path) and what follows its colon.
fn split_scheme(location: &str) -> (&str, &str) {
    match location.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (scheme, rest),
        _ => ("", location),
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// The authority (empty where there is none) and the key with its leading slash.
fn split_authority(rest: &str) -> (&str, &str) {
    let Some(after) = rest.strip_prefix("//") else { return ("", rest) };
    match after.find('/') {
        Some(slash) => after.split_at(slash),
        None => (after, ""),
    }
}

fn collapse(key: &str) -> String {
    let mut path = String::with_capacity(key.len());
    for segment in key.split('/').filter(|segment| !segment.is_empty()) {
        path.push('/');
        path.push_str(segment);
    }
    path
}

/// One spelling for all locations of one object, to compare and to look up by: `s3a` and `s3n` become `s3`, `file:/x`
/// and `/x` become `file:///x`, double and trailing slashes vanish. Percent escapes are part of a name and stay.
/// A location that no store of this build holds is returned with its slashes collapsed, otherwise as it is.
#[must_use]
pub fn normalize(location: &str) -> String {
    if let Ok(parsed) = Location::parse(location) {
        return format!("{}://{}{}", parsed.scheme, parsed.authority, collapse(parsed.key));
    }
    let (scheme, rest) = split_scheme(location);
    let (authority, key) = split_authority(rest);
    match scheme {
        "" => location.to_owned(),
        _ => format!("{}://{authority}{}", scheme.to_ascii_lowercase(), collapse(key)),
    }
}

/// `child` under `base`, with one slash between them whatever their ends are.
#[must_use]
pub fn join(base: &str, child: &str) -> String {
    format!("{}/{}", base.trim_end_matches('/'), child.trim_start_matches('/'))
}
