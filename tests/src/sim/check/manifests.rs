//! Manifests: those that we write obey the rules of sequence numbers and of manifests, those that we do not write are
//! carried on unchanged, and a path that was removed is never live again.

use std::collections::HashMap;

use async_trait::async_trait;
use iceberg::spec::ManifestFile;

use super::super::records::Role;
use super::super::view::{Checker, Step, View, Violation};
use super::lake::{Added, Changes, Lake};
use crate::checks::{live_twice, problems_of_manifest};

const NAME: &str = "manifests";

/// The checker.
#[derive(Debug)]
pub struct Manifests {
    lake: Lake,
    /// The list's entry of each manifest, as it first stood in a list.
    listed: HashMap<String, ManifestFile>,
    /// The snapshots that took a data file out.
    removed: HashMap<String, Vec<i64>>,
}

impl Manifests {
    /// A new one.
    #[must_use]
    pub fn new(lake: &Lake) -> Self {
        Self { lake: lake.clone(), listed: HashMap::new(), removed: HashMap::new() }
    }

    /// Problems of the manifests that are new in a list, and of those that changed their entry.
    fn listing(&mut self, added: &Added, ours: bool) -> Option<String> {
        for manifest in &added.contents.manifests {
            let path = &manifest.listed.manifest_path;
            match self.listed.get(path) {
                Some(known) if ours && known != &manifest.listed => {
                    return Some(format!("{path} was carried on as {:?}, it was {known:?}", manifest.listed));
                }
                Some(_) if manifest.live().next().is_some() => {}
                _ => {
                    let problems = problems_of_manifest(manifest, added.id());
                    if let Some(problem) = problems.into_iter().next().filter(|_| ours) {
                        return Some(format!("snapshot {}: {path}: {problem}", added.id()));
                    }
                    self.listed.entry(path.clone()).or_insert_with(|| manifest.listed.clone());
                }
            }
        }
        live_twice(&added.contents).into_iter().next()
    }

    /// A data file that comes and that an ancestor took out.
    async fn revived(&mut self, added: &Added, changes: &Changes) -> Option<String> {
        for entry in &changes.added {
            let path = entry.file.file_path();
            for by in self.removed.get(path).into_iter().flatten() {
                if self.lake.is_in_line(*by, added.id()).await {
                    return Some(format!("{path} is live again in {}; {by} had taken it out", added.id()));
                }
            }
        }
        for entry in &changes.removed {
            self.removed.entry(entry.file.file_path().to_owned()).or_default().push(added.id());
        }
        None
    }
}

#[async_trait]
impl Checker for Manifests {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn after_step(&mut self, view: View<'_>, step: Step) -> Result<(), Violation> {
        let Some(commit) = view.records.commits.last().filter(|_| step == Step::Commit) else {
            return Ok(());
        };
        let ours = !matches!(commit.by.role, Role::Foreign | Role::World);
        for added in self.lake.added(view).await? {
            let changes = self.lake.changes(&added).await?;
            let problem = match self.listing(&added, ours) {
                Some(problem) => Some(problem),
                None => self.revived(&added, &changes).await.filter(|_| ours),
            };
            if let Some(problem) = problem {
                return Err(Violation::new(NAME, problem));
            }
        }
        Ok(())
    }

    async fn at_end(&mut self, _view: View<'_>) -> Result<(), Violation> {
        Ok(())
    }
}
