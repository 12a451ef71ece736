//! `GET /v1/config`: what the server wants of its clients.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use serde::Deserialize;

use crate::{Error, ErrorKind, Result};

/// The answer.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ServerConfig {
    /// Below the client's properties.
    #[serde(default)]
    defaults: HashMap<String, Option<String>>,
    /// Above them.
    #[serde(default)]
    overrides: HashMap<String, Option<String>>,
    /// What the server answers to, as `METHOD path`; nothing where it does not say.
    #[serde(default)]
    endpoints: Option<HashSet<String>>,
    /// How long a key of a request may be used again (an ISO 8601 duration); nothing where keys are not known.
    #[serde(default, rename = "idempotency-key-lifetime")]
    idempotency_key_lifetime: Option<String>,
}

impl ServerConfig {
    /// Reads an answer.
    pub(super) fn parse(body: &[u8]) -> Result<Self> {
        serde_json::from_slice(body).map_err(|error| {
            let message = "the answer to `/v1/config` is not that of an Iceberg REST catalog: check `uri`";
            Error::new(ErrorKind::Configuration, message).with_source(error)
        })
    }

    /// The client's properties between the server's defaults and overrides.
    pub(super) fn merge(&self, client: &HashMap<String, String>) -> HashMap<String, String> {
        let set = |(name, value): (&String, &Option<String>)| Some((name.clone(), value.clone()?));
        let mut merged: HashMap<String, String> = self.defaults.iter().filter_map(set).collect();
        merged.extend(client.iter().map(|(name, value)| (name.clone(), value.clone())));
        merged.extend(self.overrides.iter().filter_map(set));
        merged
    }

    /// Whether the server says that it answers to this.
    pub(super) fn advertises(&self, endpoint: &str) -> bool {
        self.endpoints.as_ref().is_some_and(|endpoints| endpoints.contains(endpoint))
    }

    /// How long the key of a request may be used again; `None` where the server knows no keys.
    pub(super) fn idempotency_key_lifetime(&self) -> Option<Duration> {
        iso_duration(self.idempotency_key_lifetime.as_deref()?)
    }
}

/// `PT30M`, `P1DT12H`, `PT0.5S`: days to seconds. Pure.
fn iso_duration(text: &str) -> Option<Duration> {
    let (date, time) = match text.strip_prefix('P')?.split_once('T') {
        Some((date, time)) => (date, time),
        None => (text.strip_prefix('P')?, ""),
    };
    let days = parts(date, &[('W', 604_800.0), ('D', 86_400.0)])?;
    let rest = parts(time, &[('H', 3600.0), ('M', 60.0), ('S', 1.0)])?;
    Duration::try_from_secs_f64(days + rest).ok()
}

fn parts(mut text: &str, units: &[(char, f64)]) -> Option<f64> {
    let mut seconds = 0.0;
    for (unit, factor) in units {
        if let Some((number, rest)) = text.split_once(*unit) {
            seconds += number.parse::<f64>().ok()? * factor;
            text = rest;
        }
    }
    text.is_empty().then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        for (text, seconds) in [
            ("PT30M", Some(1800.0)),
            ("PT24H", Some(86_400.0)),
            ("P1DT1H1M1.5S", Some(90_061.5)),
            ("P2W", Some(1_209_600.0)),
            ("PT-1S", None),
            ("30M", None),
            ("PT5", None),
            ("PT5MX", None),
        ] {
            assert_eq!(iso_duration(text), seconds.map(Duration::from_secs_f64), "{text}");
        }
    }

    #[test]
    fn the_clients_properties_lie_between_defaults_and_overrides() {
        let config = ServerConfig::parse(
            br#"{"defaults":{"a":"d","b":"d","n":null},"overrides":{"b":"o","c":"o"},"extra":1}"#,
        )
        .unwrap();
        let client = [("a", "c"), ("b", "c"), ("x", "c")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        let merged = config.merge(&HashMap::from(client));
        let expected =
            [("a", "c"), ("b", "o"), ("c", "o"), ("x", "c")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(merged, HashMap::from(expected));
        assert!(!config.advertises("GET /v1/x"));
        assert_eq!(ServerConfig::parse(b"<html>").unwrap_err().kind(), ErrorKind::Configuration);
    }
}
