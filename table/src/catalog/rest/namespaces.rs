//! Namespaces.

use std::collections::HashMap;

use iceberg::{Namespace, NamespaceIdent};
use reqwest::{Method, Url};

use super::RestCatalog;
use super::answer::Answer;
use super::failure::{general, of_change, of_namespace};
use super::http::Call;
use super::messages::{NamespaceBody, NamespacePage, PropertiesChange, body, read};
use crate::{Error, ErrorKind, Result};

const EXISTS: &str = "HEAD /v1/{prefix}/namespaces/{namespace}";
/// Pages after which a listing is taken for one without an end.
const MAX_PAGES: usize = 100_000;

impl RestCatalog {
    pub(super) async fn children(
        &self,
        parent: Option<&NamespaceIdent>,
    ) -> iceberg::Result<Vec<NamespaceIdent>> {
        let paths = self.session.paths();
        let first = match parent {
            Some(parent) => paths.children(parent)?,
            None => paths.namespaces()?,
        };
        let mut all = Vec::new();
        let mut pages = Pages::new(first, self.session.page_size());
        while let Some(url) = pages.next()? {
            let answer = self.session.get(url).await?.map_err(|refusal| match parent {
                Some(parent) => of_namespace(&refusal, parent, "listing what is in"),
                None => general(&refusal, "listing namespaces").into(),
            })?;
            let page: NamespacePage = read(&answer.body)?;
            all.extend(page.namespaces);
            pages.turn(page.next_page_token);
        }
        Ok(all)
    }

    pub(super) async fn add_namespace(
        &self,
        namespace: &NamespaceIdent,
        properties: HashMap<String, String>,
    ) -> iceberg::Result<Namespace> {
        let message = NamespaceBody { namespace: namespace.clone(), properties: Some(properties.clone()) };
        let call = Call::new(Method::POST, self.session.paths().namespaces()?).json(body(&message)?);
        let answer = self.change_namespace(&call, namespace, "creating namespace").await?;
        let created: Option<NamespaceBody> = read(&answer.body).ok();
        let properties = created.and_then(|created| created.properties).unwrap_or(properties);
        Ok(Namespace::with_properties(namespace.clone(), properties))
    }

    pub(super) async fn namespace_properties(
        &self,
        namespace: &NamespaceIdent,
    ) -> iceberg::Result<HashMap<String, String>> {
        let answer = self.session.get(self.session.paths().namespace(namespace)?).await?;
        let answer = answer.map_err(|refusal| of_namespace(&refusal, namespace, "loading namespace"))?;
        Ok(read::<NamespaceBody>(&answer.body)?.properties.unwrap_or_default())
    }

    pub(super) async fn has_namespace(&self, namespace: &NamespaceIdent) -> iceberg::Result<bool> {
        let url = self.session.paths().namespace(namespace)?;
        match self.exists(url, EXISTS).await? {
            Ok(exists) => Ok(exists),
            Err(refusal) => Err(of_namespace(&refusal, namespace, "looking for namespace")),
        }
    }

    /// Makes `properties` the full set of the namespace's.
    pub(super) async fn replace_properties(
        &self,
        namespace: &NamespaceIdent,
        properties: HashMap<String, String>,
    ) -> iceberg::Result<()> {
        let now = self.namespace_properties(namespace).await?;
        let change = PropertiesChange {
            removals: now.keys().filter(|name| !properties.contains_key(*name)).collect(),
            updates: properties.iter().filter(|(name, value)| now.get(*name) != Some(value)).collect(),
        };
        if change.removals.is_empty() && change.updates.is_empty() {
            return Ok(());
        }
        let url = self.session.paths().under(namespace, "properties")?;
        let call = Call::new(Method::POST, url).json(body(&change)?);
        self.change_namespace(&call, namespace, "changing the properties of namespace").await?;
        Ok(())
    }

    pub(super) async fn remove_namespace(&self, namespace: &NamespaceIdent) -> iceberg::Result<()> {
        let call = Call::new(Method::DELETE, self.session.paths().namespace(namespace)?);
        self.change_namespace(&call, namespace, "dropping namespace").await?;
        Ok(())
    }

    async fn change_namespace(
        &self,
        call: &Call,
        namespace: &NamespaceIdent,
        what: &str,
    ) -> iceberg::Result<Answer> {
        let answer = self.session.send(call).await;
        let answer = answer.map_err(|failure| of_change(failure, format_args!("{what} `{namespace}`")))?;
        if answer.is_success() {
            return Ok(answer);
        }
        Err(of_namespace(&self.session.refusal(&answer), namespace, what))
    }
}

/// The pages of a listing.
#[derive(Debug)]
pub(super) struct Pages {
    first: Url,
    size: Option<u32>,
    turned: usize,
    next: Next,
}

#[derive(Debug)]
enum Next {
    First,
    After(String),
    None,
}

impl Pages {
    pub(super) fn new(first: Url, size: Option<u32>) -> Self {
        Self { first, size, turned: 0, next: Next::First }
    }

    /// The address of the next page.
    pub(super) fn next(&mut self) -> Result<Option<Url>> {
        let mut url = self.first.clone();
        let token = match &self.next {
            Next::None => return Ok(None),
            // An empty token asks for pages; without one a server sends everything at once.
            Next::First => self.size.map(|_| ""),
            Next::After(token) => Some(token.as_str()),
        };
        if let Some(token) = token {
            url.query_pairs_mut().append_pair("pageToken", token);
        }
        if let Some(size) = self.size {
            url.query_pairs_mut().append_pair("pageSize", &size.to_string());
        }
        self.turned += 1;
        if self.turned > MAX_PAGES {
            let message =
                format!("the catalog's listing has more than {MAX_PAGES} pages: it seems to have no end");
            return Err(Error::new(ErrorKind::Data, message));
        }
        Ok(Some(url))
    }

    /// Goes on with what the page says; the same token again would list the same page for ever.
    pub(super) fn turn(&mut self, token: Option<String>) {
        let again = matches!((&self.next, &token), (Next::After(last), Some(token)) if last == token);
        self.next = match token.filter(|token| !token.is_empty() && !again) {
            Some(token) => Next::After(token),
            None => Next::None,
        };
    }
}
