//! Namespaces. One exists where it has a property, a table, a view, or another namespace under it.

use std::collections::{BTreeSet, HashMap};

use iceberg::{Namespace, NamespaceIdent};

use super::SqlCatalog;
use super::failure::Failure;
use super::rows::namespace_ident;
use crate::{Error, ErrorKind};

impl SqlCatalog {
    pub(super) async fn children(
        &self,
        parent: Option<&NamespaceIdent>,
    ) -> iceberg::Result<Vec<NamespaceIdent>> {
        if let Some(parent) = parent {
            self.require_namespace(parent).await?;
        }
        let above: &[String] = parent.map_or(&[], |parent| parent);
        let mut children = BTreeSet::new();
        for namespace in self.all_namespaces().await? {
            if namespace.len() > above.len() && namespace.starts_with(above) {
                children.insert(NamespaceIdent::from_strs(&namespace[..=above.len()])?);
            }
        }
        Ok(children.into_iter().collect())
    }

    pub(super) async fn has_namespace(&self, namespace: &NamespaceIdent) -> iceberg::Result<bool> {
        Ok(self.all_namespaces().await?.iter().any(|found| found.starts_with(namespace)))
    }

    pub(super) async fn require_namespace(&self, namespace: &NamespaceIdent) -> iceberg::Result<()> {
        if self.has_namespace(namespace).await? {
            return Ok(());
        }
        let message = format!("namespace `{namespace}` is not in the catalog: create it, or check its name");
        Err(iceberg::Error::new(iceberg::ErrorKind::NamespaceNotFound, message))
    }

    pub(super) async fn add_namespace(
        &self,
        namespace: &NamespaceIdent,
        properties: HashMap<String, String>,
    ) -> iceberg::Result<Namespace> {
        check_levels(namespace)?;
        if self.has_namespace(namespace).await? {
            return Err(exists(namespace));
        }
        match self.rows.set_properties(&namespace.to_string(), &properties).await {
            Ok(()) => {}
            Err(Failure::Exists) => return Err(exists(namespace)),
            Err(failure) => return Err(failure.into_error("creating a namespace").into()),
        }
        Ok(Namespace::with_properties(namespace.clone(), properties))
    }

    pub(super) async fn namespace_properties(
        &self,
        namespace: &NamespaceIdent,
    ) -> iceberg::Result<HashMap<String, String>> {
        self.require_namespace(namespace).await?;
        let properties = self.rows.properties(&namespace.to_string()).await;
        Ok(properties.map_err(|failure| failure.into_error("reading a namespace's properties"))?)
    }

    pub(super) async fn replace_properties(
        &self,
        namespace: &NamespaceIdent,
        properties: HashMap<String, String>,
    ) -> iceberg::Result<()> {
        self.require_namespace(namespace).await?;
        let written = self.rows.set_properties(&namespace.to_string(), &properties).await;
        Ok(written.map_err(|failure| failure.into_error("writing a namespace's properties"))?)
    }

    pub(super) async fn remove_namespace(&self, namespace: &NamespaceIdent) -> iceberg::Result<()> {
        if !self.tables_in(namespace).await?.is_empty() || !self.children(Some(namespace)).await?.is_empty() {
            let message = format!("namespace `{namespace}` is not empty: drop what is in it first");
            return Err(Error::new(ErrorKind::Configuration, message).into());
        }
        let deleted = self.rows.delete_namespace(&namespace.to_string()).await;
        Ok(deleted.map_err(|failure| failure.into_error("dropping a namespace"))?)
    }

    async fn all_namespaces(&self) -> iceberg::Result<Vec<NamespaceIdent>> {
        let names = self.rows.namespaces().await;
        let names = names.map_err(|failure| failure.into_error("listing namespaces"))?;
        names.iter().map(|name| namespace_ident(name)).collect()
    }
}

fn exists(namespace: &NamespaceIdent) -> iceberg::Error {
    let message = format!("namespace `{namespace}` exists already: nothing was created");
    iceberg::Error::new(iceberg::ErrorKind::NamespaceAlreadyExists, message)
}

/// A level that holds a `.` would come back as two.
fn check_levels(namespace: &NamespaceIdent) -> iceberg::Result<()> {
    if namespace.iter().all(|level| !level.is_empty() && !level.contains('.')) {
        return Ok(());
    }
    let message = format!(
        "namespace `{namespace}` has an empty level or one with a dot: this catalog joins levels by dots"
    );
    Err(Error::new(ErrorKind::Configuration, message).into())
}
