//! Namespaces and tables: names of all kinds, pages, and refusals as errors.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use iceberg::{Namespace, NamespaceIdent, TableIdent};
use reqwest::Url;
use serde_json::{Value, json};

use super::fake::{metadata, open};
use super::server::{Received, Reply, Server};
use crate::ErrorKind;
use crate::catalog::{NewTable, create_table, default_properties};

const SEPARATOR: &str = "%1F";

/// A server of many names that lists them in pages of two.
#[derive(Debug, Default)]
struct Names {
    namespaces: BTreeMap<Vec<String>, HashMap<String, String>>,
    tables: BTreeSet<(Vec<String>, String)>,
    created: Vec<Value>,
}

fn decode(segment: &str) -> String {
    // A form's decoder reads `+` as a space, as Java's does; a client must not rely on the contrary.
    Url::parse(&format!("http://h/?x={segment}")).unwrap().query_pairs().next().unwrap().1.into_owned()
}

fn levels(segment: &str) -> Vec<String> {
    segment.split(SEPARATOR).map(decode).collect()
}

fn query(request: &Received) -> HashMap<String, String> {
    Url::parse(&format!("http://h/?{}", request.query)).unwrap().query_pairs().into_owned().collect()
}

fn page<T: serde::Serialize>(all: &[T], request: &Received, field: &str) -> Reply {
    let token = query(request).get("pageToken").and_then(|token| token.parse().ok());
    let start: usize = token.unwrap_or(0);
    let end = (start + 2).min(all.len());
    let next = (end < all.len()).then(|| end.to_string());
    Reply::json(200, &json!({field: &all[start..end], "next-page-token": next}))
}

impl Names {
    fn answer(&mut self, request: &Received) -> Reply {
        let path: Vec<&str> = request.path.trim_start_matches('/').split('/').collect();
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        match (request.method.as_str(), path.as_slice()) {
            ("GET", ["v1", "config"]) => Reply::json(
                200,
                &json!({"endpoints": ["HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}"]}),
            ),
            ("GET", ["v1", "namespaces"]) => self.children(request),
            ("POST", ["v1", "namespaces"]) => self.create(&body),
            (method, ["v1", "namespaces", namespace]) => self.namespace(method, levels(namespace)),
            ("POST", ["v1", "namespaces", namespace, "properties"]) => self.change(levels(namespace), &body),
            ("GET", ["v1", "namespaces", namespace, "tables"]) => self.list(levels(namespace), request),
            ("POST", ["v1", "namespaces", namespace, "tables"]) => self.create_table(levels(namespace), body),
            ("POST", ["v1", "namespaces", namespace, "register"]) => {
                self.create_table(levels(namespace), body)
            }
            ("POST", ["v1", "tables", "rename"]) => self.rename(&body),
            (method, ["v1", "namespaces", namespace, "tables", table]) => {
                self.table(method, (levels(namespace), decode(table)))
            }
            _ => Reply::page(404),
        }
    }

    fn children(&self, request: &Received) -> Reply {
        let parent =
            query(request).get("parent").map(|parent| parent.split('\u{1f}').map(str::to_owned).collect());
        let parent: Vec<String> = parent.unwrap_or_default();
        let under = |name: &&Vec<String>| name.len() == parent.len() + 1 && name.starts_with(&parent);
        let all: Vec<&Vec<String>> = self.namespaces.keys().filter(under).collect();
        page(&all, request, "namespaces")
    }

    fn create(&mut self, body: &Value) -> Reply {
        let namespace: Vec<String> = serde_json::from_value(body["namespace"].clone()).unwrap();
        let properties = serde_json::from_value(body["properties"].clone()).unwrap();
        if self.namespaces.insert(namespace, properties).is_some() {
            return Reply::refusal(409, "AlreadyExistsException");
        }
        Reply::json(200, body)
    }

    fn namespace(&mut self, method: &str, namespace: Vec<String>) -> Reply {
        let Some(properties) = self.namespaces.get(&namespace) else {
            return Reply::refusal(404, "NoSuchNamespaceException");
        };
        match method {
            "DELETE" if self.tables.iter().any(|(of, _)| *of == namespace) => {
                Reply::refusal(409, "NamespaceNotEmptyException")
            }
            "DELETE" => {
                self.namespaces.remove(&namespace);
                Reply::Answer { status: 204, headers: Vec::new(), body: bytes::Bytes::new() }
            }
            _ => Reply::json(200, &json!({"namespace": namespace, "properties": properties})),
        }
    }

    fn change(&mut self, namespace: Vec<String>, body: &Value) -> Reply {
        let properties = self.namespaces.get_mut(&namespace).unwrap();
        let removals: Vec<String> = serde_json::from_value(body["removals"].clone()).unwrap();
        properties.retain(|name, _| !removals.contains(name));
        properties
            .extend(serde_json::from_value::<HashMap<String, String>>(body["updates"].clone()).unwrap());
        Reply::json(200, &json!({"updated": [], "removed": removals}))
    }

    fn list(&self, namespace: Vec<String>, request: &Received) -> Reply {
        if !self.namespaces.contains_key(&namespace) {
            return Reply::refusal(404, "NoSuchNamespaceException");
        }
        let own = self.tables.iter().filter(|(of, _)| *of == namespace);
        let all: Vec<Value> = own.map(|(of, name)| json!({"namespace": of, "name": name})).collect();
        page(&all, request, "identifiers")
    }

    fn create_table(&mut self, namespace: Vec<String>, body: Value) -> Reply {
        if !self.namespaces.contains_key(&namespace) {
            return Reply::refusal(404, "NoSuchNamespaceException");
        }
        let name = body["name"].as_str().unwrap().to_owned();
        self.created.push(body);
        if !self.tables.insert((namespace, name)) {
            return Reply::refusal(409, "AlreadyExistsException");
        }
        Reply::json(
            200,
            &json!({"metadata-location": "file:/t/v3.metadata.json", "metadata": metadata("file:/t")}),
        )
    }

    fn rename(&mut self, body: &Value) -> Reply {
        let name = |field: &str| -> (Vec<String>, String) {
            let ident: TableIdent = serde_json::from_value(body[field].clone()).unwrap();
            (ident.namespace.inner(), ident.name)
        };
        let (from, to) = (name("source"), name("destination"));
        if self.tables.contains(&to) {
            return Reply::refusal(409, "AlreadyExistsException");
        }
        if !self.tables.remove(&from) {
            return Reply::refusal(404, "NoSuchTableException");
        }
        self.tables.insert(to);
        Reply::Answer { status: 204, headers: Vec::new(), body: bytes::Bytes::new() }
    }

    fn table(&mut self, method: &str, table: (Vec<String>, String)) -> Reply {
        let found =
            if method == "DELETE" { self.tables.remove(&table) } else { self.tables.contains(&table) };
        match (found, method) {
            (false, "HEAD") => Reply::Answer { status: 404, headers: Vec::new(), body: bytes::Bytes::new() },
            (false, _) => Reply::refusal(404, "NoSuchTableException"),
            (true, "GET") => Reply::json(
                200,
                &json!({"metadata-location": "s3://b/t/metadata/00001-x.gz.metadata.json", "metadata": metadata("s3://b/t")}),
            ),
            (true, _) => Reply::Answer { status: 204, headers: Vec::new(), body: bytes::Bytes::new() },
        }
    }
}

async fn serve() -> (Arc<Mutex<Names>>, Server) {
    let names = Arc::new(Mutex::new(Names::default()));
    let answers = names.clone();
    let server = Server::start(move |request| answers.lock().unwrap().answer(request)).await;
    (names, server)
}

const ODD: [&str; 9] = ["a=1", "50%", "%41", "a b", "a+b", "größe", "冰/雪", "v1.2", "q?&#\"\\"];

#[tokio::test]
async fn odd_names_are_created_listed_found_renamed_and_dropped() {
    let (_, server) = serve().await;
    let catalog = open(&server, &[]).await.unwrap().catalog;
    let top = NamespaceIdent::new("top".to_owned());
    catalog.create_namespace(&top, HashMap::new()).await.unwrap();
    let mut namespaces = Vec::new();
    for odd in ODD {
        let namespace = NamespaceIdent::from_strs(["top", odd]).unwrap();
        let properties = HashMap::from([("p".to_owned(), odd.to_owned())]);
        catalog.create_namespace(&namespace, properties.clone()).await.unwrap();
        assert!(catalog.namespace_exists(&namespace).await.unwrap());
        let found = catalog.get_namespace(&namespace).await.unwrap();
        assert_eq!(found, Namespace::with_properties(namespace.clone(), properties));
        namespaces.push(namespace.clone());

        let table = TableIdent::new(namespace.clone(), odd.to_owned());
        assert!(!catalog.table_exists(&table).await.unwrap());
        let location = "file:/t/v3.metadata.json".to_owned();
        let registered = catalog.register_table(&table, location.clone()).await.unwrap();
        assert_eq!(registered.metadata_location(), Some(location.as_str()));
        assert!(catalog.table_exists(&table).await.unwrap());
        let loaded = catalog.load_table(&table).await.unwrap();
        assert_eq!(loaded.metadata_location(), Some("s3://b/t/metadata/00001-x.gz.metadata.json"));
        let moved = TableIdent::new(top.clone(), odd.to_owned());
        catalog.rename_table(&table, &moved).await.unwrap();
        assert!(catalog.list_tables(&namespace).await.unwrap().is_empty());
        assert!(catalog.list_tables(&top).await.unwrap().contains(&moved));
    }
    namespaces.sort();
    assert_eq!(catalog.list_namespaces(Some(&top)).await.unwrap(), namespaces, "five pages");
    assert_eq!(catalog.list_tables(&top).await.unwrap().len(), ODD.len());
    let table = TableIdent::new(top.clone(), ODD[0].to_owned());
    catalog.drop_table(&table).await.unwrap();
    assert_eq!(server.received().pop().unwrap().query, "purgeRequested=false");
    catalog.purge_table(&TableIdent::new(top.clone(), ODD[1].to_owned())).await.unwrap();
    assert_eq!(server.received().pop().unwrap().query, "purgeRequested=true");
    assert!(!catalog.table_exists(&table).await.unwrap());
    catalog.drop_namespace(&namespaces[0]).await.unwrap();
    assert!(!catalog.namespace_exists(&namespaces[0]).await.unwrap());
}

#[tokio::test]
async fn properties_of_a_namespace_become_the_full_set() {
    let (_, server) = serve().await;
    let catalog = open(&server, &[]).await.unwrap().catalog;
    let namespace = NamespaceIdent::new("n".to_owned());
    let set = |pairs: &[(&str, &str)]| super::fake::owned(pairs);
    catalog.create_namespace(&namespace, set(&[("a", "1"), ("b", "2")])).await.unwrap();
    let now = set(&[("b", "3"), ("c", "4")]);
    catalog.update_namespace(&namespace, now.clone()).await.unwrap();
    assert_eq!(catalog.get_namespace(&namespace).await.unwrap().properties(), &now);
    let asked = server.received().len();
    catalog.update_namespace(&namespace, now).await.unwrap();
    assert_eq!(server.received().len(), asked + 1, "nothing to change is not sent");
}

#[tokio::test]
async fn a_created_table_is_asked_for_with_firns_defaults() {
    let (names, server) = serve().await;
    let catalog = open(&server, &[]).await.unwrap().catalog;
    let ident = TableIdent::from_strs(["a", "b", "t"]).unwrap();
    let schema = metadata("file:/t").current_schema().as_ref().clone();
    let mut new = NewTable::new(ident.clone(), schema);
    new.format_version = iceberg::spec::FormatVersion::V3;
    let table = create_table(catalog.as_ref(), new.clone()).await.unwrap();
    assert_eq!(table.metadata_location(), Some("file:/t/v3.metadata.json"));
    {
        let names = names.lock().unwrap();
        let asked = &names.created[0];
        for (name, value) in default_properties() {
            assert_eq!(asked["properties"][name], json!(value));
        }
        assert_eq!(asked["properties"]["format-version"], "3");
        assert_eq!(asked["stage-create"], false);
        assert!(asked.get("write-order").is_none() && asked.get("location").is_none(), "{asked}");
        assert_eq!(names.namespaces.len(), 2, "each level");
    }
    assert_eq!(create_table(catalog.as_ref(), new).await.unwrap_err().kind(), ErrorKind::AlreadyExists);
}

#[tokio::test]
async fn refusals_are_errors_by_what_they_mean() {
    let (_, server) = serve().await;
    let catalog = open(&server, &[]).await.unwrap().catalog;
    let (namespace, ident) =
        (NamespaceIdent::new("n".to_owned()), TableIdent::from_strs(["n", "t"]).unwrap());
    let kind = |error: iceberg::Error| error.kind();
    assert_eq!(kind(catalog.load_table(&ident).await.unwrap_err()), iceberg::ErrorKind::TableNotFound);
    assert_eq!(kind(catalog.drop_table(&ident).await.unwrap_err()), iceberg::ErrorKind::TableNotFound);
    assert_eq!(
        kind(catalog.list_tables(&namespace).await.unwrap_err()),
        iceberg::ErrorKind::NamespaceNotFound
    );
    assert_eq!(
        kind(catalog.get_namespace(&namespace).await.unwrap_err()),
        iceberg::ErrorKind::NamespaceNotFound
    );
    catalog.create_namespace(&namespace, HashMap::new()).await.unwrap();
    let again = catalog.create_namespace(&namespace, HashMap::new()).await.unwrap_err();
    assert_eq!(kind(again), iceberg::ErrorKind::NamespaceAlreadyExists);
    catalog.register_table(&ident, "file:/t/v1.metadata.json".to_owned()).await.unwrap();
    let again = catalog.register_table(&ident, "file:/t/v1.metadata.json".to_owned()).await.unwrap_err();
    assert_eq!(kind(again), iceberg::ErrorKind::TableAlreadyExists);
    let full = crate::Error::from(catalog.drop_namespace(&namespace).await.unwrap_err());
    assert_eq!(full.kind(), ErrorKind::Configuration, "{full}");
    let other = TableIdent::from_strs(["n", "u"]).unwrap();
    assert_eq!(
        kind(catalog.rename_table(&other, &ident).await.unwrap_err()),
        iceberg::ErrorKind::TableAlreadyExists
    );
}

#[tokio::test]
async fn a_proxys_404_does_not_drop_a_table() {
    let server = Server::start(|request| match request.path.as_str() {
        "/v1/config" => Reply::json(200, &json!({})),
        _ => Reply::page(404),
    })
    .await;
    let catalog = open(&server, &[]).await.unwrap().catalog;
    let ident = TableIdent::from_strs(["n", "t"]).unwrap();
    assert_eq!(
        crate::Error::from(catalog.load_table(&ident).await.unwrap_err()).kind(),
        ErrorKind::Unavailable
    );
    assert_eq!(
        crate::Error::from(catalog.table_exists(&ident).await.unwrap_err()).kind(),
        ErrorKind::Unavailable
    );
}
