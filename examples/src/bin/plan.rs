//! Prints which files of a table a compaction would rewrite, and why it leaves the others alone.
//!
//! ```text
//! plan CATALOG-URI NAMESPACE.TABLE
//! ```

use std::io::Write;
use std::sync::Arc;

use anyhow::Context;
use firn_compactor::{PlanOptions, plan};
use firn_table::catalog::{CatalogOptions, open_catalog, parse_table_ident};
use firn_table::commit::TableHandle;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: plan CATALOG-URI NAMESPACE.TABLE";
    let uri = arguments.next().context(usage)?;
    let ident = parse_table_ident(&arguments.next().context(usage)?)?;
    let opened = open_catalog(&CatalogOptions { uri, ..CatalogOptions::default() }, None).await?;
    let handle = TableHandle::open(Arc::clone(&opened.catalog), opened.stores, ident, "main").await?;
    let plan = plan(&handle.table(), &PlanOptions::default()).await?;
    let mut out = std::io::stdout().lock();
    for group in &plan.groups {
        let (files, outputs) = (group.files.len(), group.expected_outputs);
        writeln!(out, "group {} ({}): {files} files become {outputs}", group.id, group.partition)?;
    }
    for file in &plan.skipped {
        writeln!(out, "{}: {}", file.path, file.reason)?;
    }
    Ok(())
}
