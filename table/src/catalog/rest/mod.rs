//! The REST catalog of Iceberg's open API.
//!
//! ```text
//! properties ─▶ settings ─▶ GET /v1/config ─▶ settings, merged ─▶ RestSession ─▶ RestCatalog
//!                                                                 │  paths, headers, tokens, limits
//! ```
//!
//! A [`RestSession`] sends requests: under the server's prefix, with the custom headers and a token that is renewed in
//! time (and once when the server refuses it), with a deadline on everything and a bound on what is read. It says of a
//! request that failed whether it was sent at all. A [`RestCatalog`] makes the methods of `iceberg::Catalog` of such
//! requests, and of a commit's answer one of five outcomes.
//!
//! Property names are those of Iceberg's own clients: `uri`, `warehouse`, `prefix`, `token`, `credential`, `scope`,
//! `oauth2-server-uri`, `audience`, `resource`, `token-expires-in-ms`, `token-refresh-enabled`,
//! `token-exchange-enabled`, `header.*` (among them `header.X-Iceberg-Access-Delegation`), `rest-page-size`,
//! `namespace-separator`, `rest.client.connection-timeout-ms`, `rest.client.socket-timeout-ms`.
//!
//! | file | subject |
//! | --- | --- |
//! | `settings`, `secret` | properties taken apart; values that are never shown |
//! | `http`, `answer`, `retry_after` | one request and its answer: sent or not, refused how, asked to wait how long |
//! | `oauth`, `token` | tokens: getting, exchanging and renewing them |
//! | `server_config`, `session` | what the server wants of its clients; requests with all of it applied |
//! | `paths`, `messages` | addresses of namespaces and tables; bodies |
//! | `rest_catalog`, `namespaces`, `tables`, `failure` | the catalog's methods and their errors |
//! | `commit`, `verdict` | a commit, and what its answer means |
//! | `sent_requests`, `looked` | what is known of requests sent before, and of the table looked at for an answer |
//! | `delegation` | storage credentials that come with a table |

mod answer;
mod commit;
mod delegation;
mod failure;
mod http;
mod looked;
mod messages;
mod namespaces;
mod oauth;
mod paths;
mod rest_catalog;
mod retry_after;
mod secret;
mod sent_requests;
mod server_config;
mod session;
mod settings;
mod tables;
#[cfg(test)]
mod tests;
mod token;
mod verdict;

pub(super) use self::rest_catalog::RestCatalog;
pub(super) use self::session::RestSession;
