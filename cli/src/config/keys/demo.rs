//! Generated messages, the demo, and logs.

use crate::config::key::{Key, Kind};

/// Section `[generate]`.
pub(super) const GENERATE: &[Key] = &[
    Key::new(
        "generate.template",
        Kind::Path,
        "What messages look like, as TOML; events of about 1 KiB by default.",
    )
    .so("no message can be made")
    .flag("template"),
    Key::new(
        "generate.rate",
        Kind::Text,
        "Messages per second over all partitions, `max`, or a ramp: 100..5000/60s.",
    )
    .or("max")
    .so("the load would not be the one that was meant")
    .flag("rate"),
    Key::new(
        "generate.message-format",
        Kind::Choice(&["template", "json", "avro"]),
        "How messages are encoded: as the template says, or otherwise.",
    )
    .or("template")
    .flag("message-format"),
    Key::new(
        "generate.schema-file",
        Kind::Path,
        "Where to write the schema of the messages, for `firn write --create --schema`; nowhere by default.",
    )
    .flag("schema-file"),
    Key::new("generate.partitions", Kind::Count(1, 10_000), "Partitions of a topic that is created.")
        .or("8")
        .flag("partitions"),
    Key::new(
        "generate.message-size",
        Kind::Bytes,
        "The size of a message, where the template has a text that fills it.",
    )
    .flag("message-size"),
    Key::new("generate.seed", Kind::Count(0, u64::MAX), "The same seed makes the same messages.")
        .or("1")
        .flag("seed"),
    Key::new("generate.count", Kind::Count(1, u64::MAX), "Stop after this many messages.").flag("count"),
    Key::new("generate.seconds", Kind::Count(1, u64::MAX), "Stop after this many seconds.").flag("seconds"),
];

/// Section `[demo]`.
pub(super) const DEMO: &[Key] = &[
    Key::new("demo.seconds", Kind::Count(5, 86_400), "How long messages are produced.").or("60").flag("seconds"),
    Key::new(
        "demo.directory",
        Kind::Path,
        "Where the warehouse and catalog.db go: a new or empty folder; `firn-demo-…` in the working directory by default.",
    )
    .flag("directory"),
    Key::new("demo.rate", Kind::Count(1, 10_000_000), "Messages per second.").or("4_000").flag("rate"),
    Key::new("demo.partitions", Kind::Count(1, 1_000), "Partitions of the topic.").or("4").flag("partitions"),
];

/// Section `[log]`.
pub(super) const LOG: &[Key] =
    &[Key::new("log.format", Kind::Choice(&["text", "json"]), "The shape of log lines.")
        .or("text")
        .flag("log-format")];
