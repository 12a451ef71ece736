//! Addresses and properties that may hold secrets, made fit to be shown.

use url::Url;

const MASK: &str = "***";
/// Parameters of an address that are passwords.
const SECRET_PARAMETERS: [&str; 2] = ["password", "sslpassword"];

/// An address as it may be shown: without a password, before its host or among its parameters.
#[must_use]
pub fn without_password(uri: &str) -> String {
    let Ok(mut url) = Url::parse(uri) else { return without_user(uri) };
    let is_secret = |name: &str| SECRET_PARAMETERS.contains(&name);
    let in_parameters = url.query_pairs().any(|(name, _)| is_secret(&name));
    if url.password().is_none() && !in_parameters {
        return uri.to_owned();
    }
    if url.password().is_some() && url.set_password(Some(MASK)).is_err() {
        return without_user(uri);
    }
    if in_parameters {
        let shown: Vec<(String, String)> = url
            .query_pairs()
            .map(|(name, value)| {
                let value = if is_secret(&name) { MASK.to_owned() } else { value.into_owned() };
                (name.into_owned(), value)
            })
            .collect();
        url.query_pairs_mut().clear().extend_pairs(shown);
    }
    url.to_string()
}

/// What is no URL, but may have been meant as one with a password in it.
fn without_user(text: &str) -> String {
    match (text.find("://"), text.rfind('@')) {
        (Some(scheme), Some(at)) if scheme < at => format!("{}://{MASK}{}", &text[..scheme], &text[at..]),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_masked_and_the_rest_stays() {
        for (uri, shown) in [
            ("sqlite:a b.db", "sqlite:a b.db"),
            ("lake", "lake"),
            ("http://host:8181/api?x=1", "http://host:8181/api?x=1"),
            ("postgres://ann:secret@db:1/x?sslmode=require", "postgres://ann:***@db:1/x?sslmode=require"),
            ("postgres://db/x?user=ann&password=secret&a=b", "postgres://db/x?user=ann&password=***&a=b"),
            ("postgres://ann:se/cret@db/x", "postgres://***@db/x"),
            ("postgres://ann:secret@a,b/x", "postgres://ann:***@a,b/x"),
        ] {
            assert_eq!(without_password(uri), shown);
        }
    }
}
