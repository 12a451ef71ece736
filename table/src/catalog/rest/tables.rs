//! Tables: looking them up, making, registering, renaming and dropping them.

use std::sync::Arc;

use iceberg::spec::{FormatVersion, SortOrder};
use iceberg::table::Table;
use iceberg::{NamespaceIdent, Runtime, TableCreation, TableIdent};
use reqwest::{Method, Url};

use super::RestCatalog;
use super::answer::{Answer, Refusal};
use super::delegation::grant;
use super::failure::{of_change, of_namespace, of_table};
use super::http::{Call, Failure};
use super::messages::{
    CreateTable, LoadedTable, RegisterTable, RenameTable, TablePage, body, read, read_table,
};
use super::namespaces::Pages;
use crate::Result;

const EXISTS: &str = "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}";

impl RestCatalog {
    /// A table of an answer, and its credentials handed to the stores.
    pub(super) fn table(&self, ident: &TableIdent, loaded: LoadedTable) -> Result<Table> {
        self.stores.grant(grant(&self.session, ident, &loaded));
        self.table_of(ident, loaded)
    }

    /// A table of an answer that brings no credentials.
    pub(super) fn table_of(&self, ident: &TableIdent, loaded: LoadedTable) -> Result<Table> {
        let mut builder = Table::builder()
            .file_io(self.file_io.clone())
            .identifier(ident.clone())
            .metadata(Arc::new(loaded.metadata))
            .runtime(Runtime::try_current()?)
            .disable_cache();
        if let Some(location) = loaded.metadata_location {
            builder = builder.metadata_location(location);
        }
        Ok(builder.build()?)
    }

    pub(super) async fn load(&self, ident: &TableIdent) -> iceberg::Result<Table> {
        let answer = self.session.get(self.session.paths().table(ident)?).await?;
        let answer = answer.map_err(|refusal| of_table(&refusal, ident, "loading table"))?;
        Ok(self.table(ident, read_table(answer.body).await?)?)
    }

    pub(super) async fn has_table(&self, ident: &TableIdent) -> iceberg::Result<bool> {
        match self.exists(self.session.paths().table(ident)?, EXISTS).await? {
            Ok(exists) => Ok(exists),
            Err(refusal) => Err(of_table(&refusal, ident, "looking for table")),
        }
    }

    /// Whether there is something at `url`: asked by HEAD where the server has that, which sends no body.
    pub(super) async fn exists(&self, url: Url, by_head: &str) -> Result<Result<bool, Refusal>> {
        let head = self.session.config().advertises(by_head);
        let call = Call::new(if head { Method::HEAD } else { Method::GET }, url);
        let answer = self.session.read(&call).await.map_err(Failure::into_error)?;
        if answer.is_success() {
            return Ok(Ok(true));
        }
        let refusal = self.session.refusal(&answer);
        let absent = refusal.status == 404 && (head || refusal.model.is_some());
        Ok(if absent { Ok(false) } else { Err(refusal) })
    }

    pub(super) async fn tables_in(&self, namespace: &NamespaceIdent) -> iceberg::Result<Vec<TableIdent>> {
        let mut all = Vec::new();
        let first = self.session.paths().under(namespace, "tables")?;
        let mut pages = Pages::new(first, self.session.page_size());
        while let Some(url) = pages.next()? {
            let answer = self.session.get(url).await?;
            let answer =
                answer.map_err(|refusal| of_namespace(&refusal, namespace, "listing the tables of"))?;
            let page: TablePage = read(&answer.body)?;
            all.extend(page.identifiers);
            pages.turn(page.next_page_token);
        }
        Ok(all)
    }

    pub(super) async fn add_table(
        &self,
        namespace: &NamespaceIdent,
        creation: TableCreation,
    ) -> iceberg::Result<Table> {
        let ident = TableIdent::new(namespace.clone(), creation.name.clone());
        let mut properties = creation.properties;
        // The open API has no field of its own for it.
        let version = match creation.format_version {
            FormatVersion::V1 => "1",
            FormatVersion::V2 => "2",
            FormatVersion::V3 => "3",
        };
        properties.insert("format-version".to_owned(), version.to_owned());
        let message = CreateTable {
            name: &creation.name,
            location: creation.location.as_deref(),
            schema: &creation.schema,
            partition_spec: creation.partition_spec.as_ref(),
            write_order: creation.sort_order.as_ref().filter(|order| is_sorted(order)),
            stage_create: false,
            properties,
        };
        let url = self.session.paths().under(namespace, "tables")?;
        let call = Call::new(Method::POST, url).json(body(&message)?);
        let answer = self.change_table(&call, &ident, "creating table").await?;
        Ok(self.table(&ident, read_table(answer.body).await?)?)
    }

    /// Takes a table whose metadata file is there already into the catalog.
    pub(super) async fn adopt(&self, ident: &TableIdent, location: &str) -> iceberg::Result<Table> {
        let message = RegisterTable { name: ident.name(), metadata_location: location };
        let url = self.session.paths().under(ident.namespace(), "register")?;
        let call = Call::new(Method::POST, url).json(body(&message)?);
        let answer = self.change_table(&call, ident, "registering table").await?;
        Ok(self.table(ident, read_table(answer.body).await?)?)
    }

    /// Drops a table; where the server is to purge it, it deletes the files as well.
    pub(super) async fn remove(&self, ident: &TableIdent, purge: Purge) -> iceberg::Result<()> {
        let mut url = self.session.paths().table(ident)?;
        let requested = match purge {
            Purge::Keep => "false",
            Purge::Delete => "true",
        };
        url.query_pairs_mut().append_pair("purgeRequested", requested);
        self.change_table(&Call::new(Method::DELETE, url), ident, "dropping table").await?;
        Ok(())
    }

    pub(super) async fn rename(&self, from: &TableIdent, to: &TableIdent) -> iceberg::Result<()> {
        let message = RenameTable { source: from, destination: to };
        let call = Call::new(Method::POST, self.session.paths().rename()?).json(body(&message)?);
        let answer = self.session.send(&call).await;
        let answer = answer.map_err(|failure| of_change(failure, format_args!("renaming table `{from}`")))?;
        if answer.is_success() {
            return Ok(());
        }
        let refusal = self.session.refusal(&answer);
        Err(of_table(&refusal, if refusal.status == 404 { from } else { to }, "renaming table to"))
    }

    async fn change_table(&self, call: &Call, ident: &TableIdent, what: &str) -> iceberg::Result<Answer> {
        let answer = self.session.send(call).await;
        let answer = answer.map_err(|failure| of_change(failure, format_args!("{what} `{ident}`")))?;
        if answer.is_success() {
            Ok(answer)
        } else {
            Err(of_table(&self.session.refusal(&answer), ident, what))
        }
    }
}

/// What becomes of the files of a table that is dropped.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purge {
    /// They stay.
    Keep,
    /// The server deletes them.
    Delete,
}

fn is_sorted(order: &SortOrder) -> bool {
    !order.is_unsorted()
}
