//! Maintenance of a table.

use crate::config::key::{Key, Kind};

/// Section `[compact]`.
pub(super) const COMPACT: &[Key] = &[
    Key::new(
        "compact.target-file-size",
        Kind::Bytes,
        "The size of the files to make; without it, the table's write.target-file-size-bytes.",
    )
    .so("the size of files would be unknown")
    .flag("target-file-size"),
    Key::new(
        "compact.options",
        Kind::Properties,
        "Options of rewrite_data_files under Iceberg's names, such as min-input-files.",
    )
    .flag("option"),
    Key::new("compact.where", Kind::Text, "Only files for which this SQL condition over `files` holds.")
        .so("other files than meant could be rewritten")
        .flag("where"),
    Key::new(
        "compact.partition",
        Kind::Text,
        "Only partitions with all these segments: day=2026-01-02/region=eu.",
    )
    .so("other files than meant could be rewritten")
    .flag("partition"),
    Key::new(
        "compact.policy",
        Kind::Text,
        "What to rewrite, how much at a time and when: streaming, hourly, archive, or a policy's file.",
    )
    .flag("policy"),
    Key::new("compact.max-bytes", Kind::Bytes, "The most bytes that one run reads.")
        .so("a run could read the whole table")
        .flag("max-bytes"),
    Key::new("compact.max-files", Kind::Count(1, 1_000_000_000), "The most files that one run reads.")
        .so("a run could read the whole table")
        .flag("max-files"),
    Key::new(
        "compact.max-time",
        Kind::Duration,
        "How long a run may take: it commits what is finished then and ends.",
    )
    .so("a run could take any time")
    .flag("max-time"),
    Key::new("compact.memory", Kind::Bytes, "The memory limit for reading and writing.")
        .or("1 GiB")
        .so("memory would not be bounded")
        .flag("memory"),
];

/// Section `[expire]`.
pub(super) const EXPIRE: &[Key] = &[
    Key::new(
        "expire.older-than",
        Kind::Text,
        "Snapshots before this time or age may go; without it, the table's history.expire.max-snapshot-age-ms.",
    )
    .so("other snapshots than meant could be removed")
    .flag("older-than"),
    Key::new(
        "expire.retain-last",
        Kind::Count(1, 1_000_000),
        "Snapshots to keep on each branch; without it, the table's history.expire.min-snapshots-to-keep.",
    )
    .so("other snapshots than meant could be removed")
    .flag("retain-last"),
];
