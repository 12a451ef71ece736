//! The effective settings with their sources, secrets masked.

use firn_table::catalog::without_password;
use serde_json::json;

use crate::config::key::Exposure;
use crate::config::settings::{Effective, Settings};
use crate::config::value::Value;
use crate::render::listing::{Listing, Unit};

const MASK: &str = "***";

/// Parts of a property's name that make its value a secret. `id` alone is none.
const SECRET_PARTS: [&str; 10] = [
    "password",
    "secret",
    "token",
    "credential",
    "passphrase",
    "private",
    "jaas",
    "access-key",
    "sas",
    "header.",
];

/// One row per setting: path, value, source.
pub(crate) fn listing(settings: &Settings) -> Listing {
    let mut listing =
        Listing::of(&[("setting", Unit::Plain), ("value", Unit::Plain), ("source", Unit::Plain)]);
    for effective in settings.iter() {
        let value = masked(effective).to_toml(effective.key.kind);
        listing.push(vec![
            json!(effective.path.join(".")),
            json!(value),
            json!(effective.source.to_string()),
        ]);
    }
    listing
}

fn masked(effective: &Effective) -> Value {
    if effective.key.exposure == Exposure::Plain {
        return effective.value.clone();
    }
    match &effective.value {
        Value::Properties(properties) => Value::Properties(
            properties
                .iter()
                .map(|(name, value)| {
                    (name.clone(), if is_secret(name) { MASK.to_owned() } else { without_password(value) })
                })
                .collect(),
        ),
        Value::Text(text) => Value::Text(without_password(text)),
        other => other.clone(),
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    SECRET_PARTS.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Source, sources};

    #[test]
    fn secrets_are_masked_and_the_rest_is_shown() {
        let text = "[kafka.properties]\n\"sasl.password\" = \"hunter2\"\n\"client.id\" = \"me\"\n\
                    [catalogs.prod]\nuri = \"postgres://firn:hunter2@db/x\"\n\
                    [catalogs.prod.properties]\n\"s3.secret-access-key\" = \"hunter2\"\ntoken = \"hunter2\"\n";
        let given = sources::from_toml(text, &Source::Flag("x".to_owned())).unwrap();
        let shown = listing(&Settings::resolve(given).unwrap()).csv();
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("postgres://firn:***@db/x"), "{shown}");
        assert!(shown.contains("client.id"), "{shown}");
    }
}
