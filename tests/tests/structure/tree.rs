//! The files of the source tree.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A file of the tree: its path from the root, with `/`, and its text.
#[derive(Debug, Clone)]
pub(crate) struct SourceFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl SourceFile {
    pub(crate) fn new(path: &str, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), text: text.into() }
    }
}

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All text files of the tree, without build output and version control.
pub(crate) fn source_files() -> Result<Vec<SourceFile>> {
    let root = root();
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if matches!(name, "target" | ".git" | "__pycache__") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if let (Ok(text), Ok(relative)) = (fs::read_to_string(&path), path.strip_prefix(&root)) {
                files.push(SourceFile::new(&relative.to_string_lossy().replace('\\', "/"), text));
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}
