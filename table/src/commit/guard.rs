//! What firn does not handle yet is refused before anything is written.
//!
//! | table | append | replace |
//! | --- | --- | --- |
//! | format version 2 | yes | yes |
//! | with delete files | yes: delete manifests are carried on unchanged, and new rows have a higher sequence number than every delete | refused |
//! | format version 1 or 3, encrypted | refused | refused |
//! | types that `iceberg` does not know | does not load | does not load |

use iceberg::spec::{FormatVersion, ManifestContentType, ManifestFile, TableMetadata};

use crate::manifest::has_live_files;
use crate::{Error, ErrorKind, Result};

/// Refuses tables to which no snapshot can be added.
pub(super) fn check_table(metadata: &TableMetadata) -> Result<()> {
    let advice = match metadata.format_version() {
        FormatVersion::V2 => None,
        FormatVersion::V1 => Some("format version 1: upgrade it to 2 first"),
        FormatVersion::V3 => Some("format version 3, whose row lineage firn does not write yet"),
    };
    if let Some(advice) = advice {
        return Err(unsupported(format!("the table has {advice}; nothing was changed")));
    }
    if metadata.properties().contains_key("encryption.key-id") {
        return Err(unsupported("the table is encrypted, which firn does not handle; nothing was changed"));
    }
    Ok(())
}

/// Refuses to replace files of a table whose head has delete files: which of them still apply is not computed yet.
pub(super) fn check_no_deletes(manifests: &[ManifestFile]) -> Result<()> {
    let deletes = |manifest: &&ManifestFile| {
        manifest.content == ManifestContentType::Deletes && has_live_files(manifest)
    };
    match manifests.iter().filter(deletes).count() {
        0 => Ok(()),
        count => Err(unsupported(format!(
            "the table has {count} manifests of delete files, and firn does not rewrite data files of such tables \
             yet; nothing was changed"
        ))),
    }
}

fn unsupported(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unsupported, message)
}
