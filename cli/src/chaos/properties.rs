//! Takes table properties out of a catalog's requests, as catalogs do that keep only those they know.

use serde_json::Value;

/// The JSON without the properties that begin with `prefix`, and how many there were; nothing where it is no JSON.
///
/// Looked at are Iceberg's `set-properties` updates, wherever they stand (commits of one table and of several), and
/// the `properties` of a table that is created.
pub(super) fn without(json: &[u8], prefix: &str) -> Option<(Vec<u8>, usize)> {
    let mut value: Value = serde_json::from_slice(json).ok()?;
    let mut removed = 0;
    if let Some(properties) = value.get_mut("properties") {
        removed += remove(properties, prefix);
    }
    removed += walk(&mut value, prefix);
    if removed == 0 {
        return Some((json.to_owned(), 0));
    }
    Some((serde_json::to_vec(&value).ok()?, removed))
}

fn walk(value: &mut Value, prefix: &str) -> usize {
    match value {
        Value::Array(items) => items.iter_mut().map(|item| walk(item, prefix)).sum(),
        Value::Object(fields) => {
            if fields.get("action").is_some_and(|action| action == "set-properties") {
                return fields.get_mut("updates").map_or(0, |updates| remove(updates, prefix));
            }
            fields.values_mut().map(|field| walk(field, prefix)).sum()
        }
        _ => 0,
    }
}

fn remove(properties: &mut Value, prefix: &str) -> usize {
    let Value::Object(properties) = properties else { return 0 };
    let before = properties.len();
    properties.retain(|name, _| !name.starts_with(prefix));
    before - properties.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn removed(json: &Value, prefix: &str) -> (Value, usize) {
        let (bytes, removed) = without(&serde_json::to_vec(json).unwrap(), prefix).unwrap();
        (serde_json::from_slice(&bytes).unwrap(), removed)
    }

    #[test]
    fn updates_of_one_table_of_several_and_of_a_new_one_lose_them() {
        let update = json!({"action": "set-properties", "updates": {"firn.cursor.a": "x", "owner": "y"}});
        let left = json!({"action": "set-properties", "updates": {"owner": "y"}});
        let snapshot =
            json!({"action": "add-snapshot", "snapshot": {"snapshot-id": 9_007_199_254_740_993_i64}});
        let commit = |update: &Value| json!({"updates": [snapshot, update]});
        assert_eq!(removed(&commit(&update), "firn."), (commit(&left), 1));
        let several = |update: &Value| json!({"table-changes": [commit(update), commit(update)]});
        assert_eq!(removed(&several(&update), "firn."), (several(&left), 2));
        let create = json!({"name": "t", "properties": {"firn.a": "x", "b": "y"}});
        assert_eq!(removed(&create, "firn."), (json!({"name": "t", "properties": {"b": "y"}}), 1));
    }

    #[test]
    fn what_holds_none_stays_byte_for_byte_as_it_was() {
        let json = b"{ \"updates\" : [ ] }";
        assert_eq!(without(json, "firn."), Some((json.to_vec(), 0)));
        assert_eq!(without(b"\x1f\x8b", "firn."), None);
    }
}
