//! Addresses of namespaces and tables. Pure.
//!
//! Every byte of a name that is not unreserved in a URL is escaped, so that `=`, `%`, spaces, slashes and any other
//! script reach the server as they are. The levels of a namespace are joined by the server's separator.

use iceberg::{NamespaceIdent, TableIdent};
use reqwest::Url;

use super::settings::RestSettings;
use crate::{Error, ErrorKind, Result};

/// Addresses under one catalog and prefix.
#[derive(Debug, Clone)]
pub(super) struct Paths {
    base: String,
    /// Escaped, between levels.
    separator: String,
}

impl Paths {
    pub(super) fn new(settings: &RestSettings) -> Self {
        let base = match &settings.prefix {
            Some(prefix) if !prefix.is_empty() => format!("{}/v1/{prefix}", settings.uri),
            _ => format!("{}/v1", settings.uri),
        };
        Self { base, separator: settings.separator.clone() }
    }

    /// `/v1/config`, which has no prefix.
    pub(super) fn config(settings: &RestSettings) -> Result<Url> {
        let mut url = parse(&format!("{}/v1/config", settings.uri))?;
        if let Some(warehouse) = &settings.warehouse {
            url.query_pairs_mut().append_pair("warehouse", warehouse);
        }
        Ok(url)
    }

    pub(super) fn namespaces(&self) -> Result<Url> {
        parse(&format!("{}/namespaces", self.base))
    }

    /// The namespaces under a parent.
    pub(super) fn children(&self, parent: &NamespaceIdent) -> Result<Url> {
        let separator = unescape(&self.separator);
        if parent.iter().any(|level| level.contains(&separator)) {
            let message = format!(
                "namespace `{parent}` has a level that holds the catalog's separator `{separator}`: what is under it \
                 cannot be listed"
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let mut url = self.namespaces()?;
        url.query_pairs_mut().append_pair("parent", &parent.join(&separator));
        Ok(url)
    }

    pub(super) fn namespace(&self, namespace: &NamespaceIdent) -> Result<Url> {
        parse(&format!("{}/namespaces/{}", self.base, self.levels(namespace)?))
    }

    /// `…/namespaces/NAMESPACE/LAST`, where `last` is one of the API's own words.
    pub(super) fn under(&self, namespace: &NamespaceIdent, last: &str) -> Result<Url> {
        parse(&format!("{}/namespaces/{}/{last}", self.base, self.levels(namespace)?))
    }

    pub(super) fn table(&self, table: &TableIdent) -> Result<Url> {
        let levels = self.levels(table.namespace())?;
        parse(&format!("{}/namespaces/{levels}/tables/{}", self.base, segment(table.name())?))
    }

    pub(super) fn credentials(&self, table: &TableIdent) -> Result<Url> {
        let levels = self.levels(table.namespace())?;
        parse(&format!("{}/namespaces/{levels}/tables/{}/credentials", self.base, segment(table.name())?))
    }

    pub(super) fn rename(&self) -> Result<Url> {
        parse(&format!("{}/tables/rename", self.base))
    }

    fn levels(&self, namespace: &NamespaceIdent) -> Result<String> {
        let levels: Vec<String> = namespace.iter().map(|level| segment(level)).collect::<Result<_>>()?;
        let joined = levels.join(&self.separator);
        // `%2E` is a dot to those who clean up paths.
        let dots = unescape(&joined);
        if matches!(dots.as_str(), "." | "..") { Err(unaddressable(&dots)) } else { Ok(joined) }
    }
}

/// A name as one segment of a path.
fn segment(name: &str) -> Result<String> {
    if name.is_empty() || matches!(name, "." | "..") {
        return Err(unaddressable(name));
    }
    Ok(escape(name))
}

fn unaddressable(name: &str) -> Error {
    let message = format!("`{name}` is a name that no address can hold: use another");
    Error::new(ErrorKind::Configuration, message)
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

fn unescape(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let digits =
            after.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn parse(text: &str) -> Result<Url> {
    Url::parse(text).map_err(|error| {
        Error::new(ErrorKind::Configuration, "the catalog's `uri` and `prefix` make no address: check them")
            .with_source(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(separator: &str) -> Paths {
        Paths { base: "http://h/api/v1/p".to_owned(), separator: separator.to_owned() }
    }

    fn ident(parts: &[&str]) -> TableIdent {
        TableIdent::from_strs(parts).unwrap()
    }

    #[test]
    fn names_reach_the_server_as_they_are() {
        for (parts, path) in [
            (vec!["db", "t"], "db/tables/t"),
            (vec!["a", "b", "t"], "a%1Fb/tables/t"),
            (vec!["a=1", "t%20"], "a%3D1/tables/t%2520"),
            (vec!["a b", "c+d"], "a%20b/tables/c%2Bd"),
            (vec!["a/b", "x/y?z#"], "a%2Fb/tables/x%2Fy%3Fz%23"),
            (vec!["größe", "冰"], "gr%C3%B6%C3%9Fe/tables/%E5%86%B0"),
            (vec!["a.b", "..."], "a.b/tables/..."),
        ] {
            let url = paths("%1F").table(&ident(&parts)).unwrap();
            assert_eq!(url.as_str(), format!("http://h/api/v1/p/namespaces/{path}"), "{parts:?}");
        }
    }

    #[test]
    fn the_servers_separator_is_used() {
        let table = ident(&["a", "b.c", "t"]);
        let url = paths("%2E").table(&table).unwrap();
        assert_eq!(url.path(), "/api/v1/p/namespaces/a%2Eb.c/tables/t");
        let children = |levels: &[&str]| paths("%2E").children(&NamespaceIdent::from_strs(levels).unwrap());
        assert_eq!(children(&["a", "b"]).unwrap().query(), Some("parent=a.b"));
        assert_eq!(children(&["a", "b.c"]).unwrap_err().kind(), ErrorKind::Unsupported);
        let unit = paths("%1F").children(&NamespaceIdent::from_strs(["a", "b.c"]).unwrap()).unwrap();
        assert_eq!(unit.query(), Some("parent=a%1Fb.c"));
    }

    #[test]
    fn names_that_would_vanish_from_the_path_are_refused() {
        for parts in [["..", "t"], ["a", "."], ["a", ".."], ["a", ""]] {
            assert_eq!(
                paths("%1F").table(&ident(&parts)).unwrap_err().kind(),
                ErrorKind::Configuration,
                "{parts:?}"
            );
        }
        let dots = TableIdent::new(NamespaceIdent::from_strs(["", ""]).unwrap(), "t".to_owned());
        assert!(paths("%2E").table(&dots).is_err());
    }
}
