//! The JSON schema of the configuration file, for editors and checks.

use serde_json::{Map, Value, json};

use crate::config::key::{Key, Kind};
use crate::config::keys;

/// A JSON schema (draft 2020-12).
pub(crate) fn schema() -> Value {
    let mut root = Node::default();
    for (section, about, keys) in keys::SECTIONS {
        let node = root.descend(section);
        node.about = Some(about);
        for key in *keys {
            if let Some((_, name)) = key.path.rsplit_once('.') {
                node.leaves.push((name, key));
            }
        }
    }
    let mut schema = root.schema();
    if let Value::Object(object) = &mut schema {
        object.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
        object.insert("title".to_owned(), json!("firn"));
    }
    schema
}

/// A table of the file.
#[derive(Default)]
struct Node {
    about: Option<&'static str>,
    leaves: Vec<(&'static str, &'static Key)>,
    children: Vec<(String, Node)>,
}

impl Node {
    fn descend(&mut self, path: &str) -> &mut Self {
        let (first, rest) = path.split_once('.').unwrap_or((path, ""));
        let at = self.children.iter().position(|(name, _)| name == first).unwrap_or_else(|| {
            self.children.push((first.to_owned(), Self::default()));
            self.children.len() - 1
        });
        let child = &mut self.children[at].1;
        if rest.is_empty() { child } else { child.descend(rest) }
    }

    fn schema(&self) -> Value {
        let mut properties = Map::new();
        let mut additional = json!(false);
        for (name, key) in &self.leaves {
            properties.insert((*name).to_owned(), leaf(key));
        }
        for (name, child) in &self.children {
            if name == "*" {
                additional = child.schema();
            } else {
                properties.insert(name.clone(), child.schema());
            }
        }
        let mut out = json!({
            "type": "object", "properties": properties, "additionalProperties": additional,
        });
        if let (Some(about), Value::Object(object)) = (self.about, &mut out) {
            object.insert("description".to_owned(), json!(about));
        }
        out
    }
}

fn leaf(key: &Key) -> Value {
    let mut out = match key.kind {
        Kind::Text | Kind::Path => json!({ "type": "string", "minLength": 1 }),
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Count(low, u64::MAX) => json!({ "type": "integer", "minimum": low }),
        Kind::Count(low, high) => json!({ "type": "integer", "minimum": low, "maximum": high }),
        Kind::Bytes => json!({ "oneOf": [
            { "type": "string", "pattern": r"^[0-9][0-9_.]* *([KkMmGgTt]?[Ii]?[Bb])?$" },
            { "type": "integer", "minimum": 0 },
        ] }),
        Kind::Duration => {
            json!({ "type": "string", "pattern": r"^([0-9][0-9_.]* *(ns|us|µs|ms|s|m|h|d) *)+$" })
        }
        Kind::Choice(words) => json!({ "enum": words }),
        Kind::List => json!({ "oneOf": [
            { "type": "array", "items": { "type": "string" } },
            { "type": "string" },
        ] }),
        Kind::Properties => json!({ "type": "object" }),
    };
    if let Value::Object(object) = &mut out {
        object.insert("description".to_owned(), json!(key.doc));
        if let Some(default) = key.default {
            object.insert("default".to_owned(), json!(default));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_stands_in_the_schema() {
        let schema = schema();
        for key in keys::all() {
            let pointer: String = key
                .path
                .split('.')
                .map(|segment| match segment {
                    "*" => "/additionalProperties".to_owned(),
                    name => format!("/properties/{name}"),
                })
                .collect();
            let found = schema.pointer(&pointer).unwrap_or(&Value::Null);
            assert_eq!(found["description"], key.doc, "{pointer}");
        }
    }

    #[test]
    fn unknown_settings_are_refused_by_the_schema() {
        assert_eq!(schema()["additionalProperties"], false);
        assert_eq!(schema()["properties"]["write"]["additionalProperties"], false);
    }
}
