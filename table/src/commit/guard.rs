//! What firn does not handle yet is refused before anything is written.
//!
//! | table | append | replace |
//! | --- | --- | --- |
//! | format version 2 or 3 | yes | yes |
//! | with delete files | yes: delete manifests are carried on unchanged, and new rows have a higher sequence number than every delete | yes: files to which deletes apply that the rewrite did not apply keep their group out |
//! | format version 1, encrypted | refused | refused |
//! | types that `iceberg` does not know | does not load | does not load |

use iceberg::spec::{FormatVersion, TableMetadata};

use crate::{Error, ErrorKind, Result};

/// Refuses tables to which no snapshot can be added.
pub(super) fn check_table(metadata: &TableMetadata) -> Result<()> {
    if metadata.format_version() == FormatVersion::V1 {
        return Err(unsupported(
            "the table has format version 1: upgrade it to 2 first; nothing was changed",
        ));
    }
    if metadata.properties().contains_key("encryption.key-id") {
        return Err(unsupported("the table is encrypted, which firn does not handle; nothing was changed"));
    }
    Ok(())
}

fn unsupported(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unsupported, message)
}
