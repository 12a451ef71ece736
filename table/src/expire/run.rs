//! Deciding, committing and deleting, in this order.

use iceberg::spec::TableMetadata;

use super::reach::{Removal, Unreachable, unreachable};
use super::{ExpireOptions, ExpireReport, Expiry, decide_expiry};
use crate::commit::{MetadataChange, Submitted, TableHandle};
use crate::{Error, ErrorKind, Result};

impl TableHandle {
    /// Expires snapshots, then deletes the files that only they reached.
    ///
    /// # Errors
    /// As [`decide_expiry`]'s, and those of a commit; `NotFound` where a snapshot that was named is not in the table.
    /// Trouble after the commit landed is no error: what could not be deleted stands in [`ExpireReport::failed`].
    pub async fn expire(&self, options: &ExpireOptions) -> Result<ExpireReport> {
        let now_ms = self.surroundings().now_ms();
        if options.dry_run || !options.snapshot_ids.is_empty() {
            let table = self.refresh().await?;
            check_named(table.metadata(), options)?;
            if options.dry_run {
                return self.preview(table.metadata(), options, now_ms).await;
            }
        }
        let mut decided = None;
        let submitted = self
            .submit(|base| {
                let Some(expiry) = decide_expiry(base.metadata(), options, now_ms)? else { return Ok(None) };
                let change =
                    MetadataChange { requirements: expiry.requirements(), updates: expiry.updates() };
                decided = Some(expiry);
                Ok(Some(change))
            })
            .await?;
        // What was decided last was decided on the base of the last request.
        let (Submitted::Committed { base, table }, Some(mut expiry)) = (submitted, decided) else {
            return Ok(ExpireReport::default());
        };
        // A head that came in between may have made the change unneeded: what it still has was not expired.
        expiry.retain_gone(table.metadata())?;
        let removal = Removal { before: base.metadata(), after: table.metadata(), heads: &expiry.heads };
        Ok(match unreachable(table.file_io(), removal).await {
            Ok(unreachable) => self.delete(expiry, unreachable).await,
            Err(error) => {
                tracing::warn!(table = %self.table().identifier(), %error, "expired, but what became unreachable cannot be found");
                let lists = expiry.snapshot_ids.iter().filter_map(|id| base.metadata().snapshot_by_id(*id));
                let failed = lists.map(|snapshot| snapshot.manifest_list().to_owned()).collect();
                ExpireReport {
                    snapshot_ids: expiry.snapshot_ids,
                    refs: expiry.refs,
                    failed,
                    ..Default::default()
                }
            }
        })
    }

    async fn preview(
        &self,
        metadata: &TableMetadata,
        options: &ExpireOptions,
        now_ms: i64,
    ) -> Result<ExpireReport> {
        let Some(expiry) = decide_expiry(metadata, options, now_ms)? else {
            return Ok(ExpireReport::default());
        };
        let mut builder = metadata.clone().into_builder(None);
        for update in expiry.updates() {
            builder = update.apply(builder)?;
        }
        let after = builder.build()?.metadata;
        let removal = Removal { before: metadata, after: &after, heads: &expiry.heads };
        let found = unreachable(self.table().file_io(), removal).await?;
        Ok(report(expiry, found))
    }

    /// Deletes what is unreachable, files before what names them.
    async fn delete(&self, expiry: Expiry, unreachable: Unreachable) -> ExpireReport {
        let mut report = report(expiry, unreachable);
        let mut failed = Vec::new();
        for files in [
            &mut report.data_files,
            &mut report.statistics_files,
            &mut report.manifests,
            &mut report.manifest_lists,
        ] {
            for (location, error) in self.stores().delete_all(files.clone()).await {
                tracing::warn!(table = %self.table().identifier(), location, %error, "expired file stays behind");
                files.retain(|file| *file != location);
                failed.push(location);
            }
        }
        report.failed = failed;
        report
    }
}

fn report(expiry: Expiry, unreachable: Unreachable) -> ExpireReport {
    ExpireReport {
        snapshot_ids: expiry.snapshot_ids,
        refs: expiry.refs,
        data_files: unreachable.data_files,
        manifests: unreachable.manifests,
        manifest_lists: unreachable.manifest_lists,
        statistics_files: unreachable.statistics_files,
        failed: Vec::new(),
    }
}

fn check_named(metadata: &TableMetadata, options: &ExpireOptions) -> Result<()> {
    match options.snapshot_ids.iter().find(|id| metadata.snapshot_by_id(**id).is_none()) {
        None => Ok(()),
        Some(id) => {
            let message = format!("snapshot `{id}` is not in the table: nothing was expired; check its id");
            Err(Error::new(ErrorKind::NotFound, message))
        }
    }
}
