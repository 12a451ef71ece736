//! From Kafka to the table.

use crate::config::key::{Key, Kind};

/// Section `[kafka]`.
pub(super) const KAFKA: &[Key] = &[
    Key::new("kafka.brokers", Kind::Text, "Brokers to begin with, as host:port,host:port.")
        .so("no broker can be reached")
        .flag("brokers"),
    Key::new("kafka.topics", Kind::List, "The topics. One that does not exist yet is waited for.")
        .so("there is nothing to read")
        .flag("topic"),
    Key::new(
        "kafka.properties",
        Kind::Properties,
        "Properties for librdkafka under its own names, such as security.protocol.",
    )
    .masked()
    .flag("kafka-property"),
];

/// Section `[write]`.
pub(super) const WRITE: &[Key] = &[
    Key::new("write.writer", Kind::Text, "The name under which the processes of one deployment share cursors.")
        .or("firn")
        .so("the table's cursor could not be found")
        .flag("writer"),
    Key::new(
        "write.format",
        Kind::Choice(&["json", "avro", "raw"]),
        "What the bytes of messages are; `raw` keeps them as they are, in columns `key` and `value`.",
    )
    .or("json")
    .flag("message-format"),
    Key::new(
        "write.avro-schema",
        Kind::Path,
        "The schema that messages in the format `avro` were written with: a file with a record, as JSON.",
    )
    .so("messages could not be decoded")
    .flag("avro-schema"),
    Key::new(
        "write.start",
        Kind::Text,
        "Where to start in partitions of which the table holds nothing: earliest, latest, group, or a time.",
    )
    .or("earliest")
    .flag("start"),
    Key::new("write.guarantee", Kind::Choice(&["exactly-once", "at-least-once"]), "What is promised of each message.")
        .or("exactly-once")
        .flag("guarantee"),
    Key::new(
        "write.mode",
        Kind::Choice(&["fixed", "auto", "grouped", "low-latency"]),
        "How rows become files: `fixed` flushes by age, bytes and rows; `auto` also lets the number of shards follow \
         the load; `grouped` collects for a window and writes in key order; `low-latency` flushes as soon as the last \
         commit is out.",
    )
    .or("fixed")
    .flag("mode"),
    Key::new(
        "write.shards",
        Kind::Count(1, 1_024),
        "Files per table partition and flush; the fewest of them in the mode `auto`.",
    )
    .or("1")
    .flag("shards"),
    Key::new("write.max-shards", Kind::Count(1, 1_024), "The most files per partition and flush in the mode `auto`.")
        .or("16"),
    Key::new("write.window", Kind::Duration, "How long rows are collected per key in the mode `grouped`.")
        .or("10s")
        .flag("window"),
    Key::new(
        "write.freshness",
        Kind::Text,
        "How fresh the table has to be, such as \"p99 2s\": chooses age and size of flushes instead of the keys below.",
    )
    .so("the promise would be another one")
    .flag("freshness"),
    Key::new(
        "write.min-interval",
        Kind::Duration,
        "The shortest time between two flushes in the mode `low-latency`.",
    )
    .or("100ms")
    .flag("min-interval"),
    Key::new("write.flush-age", Kind::Duration, "A flush is committed when its oldest row has waited this long.")
        .or("1s")
        .so("rows would wait for an unknown time")
        .flag("flush-age"),
    Key::new("write.flush-bytes", Kind::Bytes, "A flush is committed when its rows take this much memory.")
        .or("128 MiB")
        .so("the size of files would be unknown")
        .flag("flush-bytes"),
    Key::new("write.flush-rows", Kind::Count(1, u64::MAX), "A flush is committed when it has this many rows.")
        .or("1_000_000")
        .flag("flush-rows"),
    Key::new(
        "write.on-bad-message",
        Kind::Choice(&["stop", "skip", "dead-letter"]),
        "What follows from a message that cannot be decoded: `skip` counts it in the ledger, `dead-letter` keeps it.",
    )
    .or("stop")
    .flag("on-bad-message"),
    Key::new(
        "write.on-gap",
        Kind::Choice(&["stop", "record"]),
        "What follows when the broker no longer has the offsets at the cursor.",
    )
    .or("stop")
    .flag("on-gap"),
    Key::new(
        "write.after-rollback",
        Kind::Choice(&["stop", "replay", "keep"]),
        "What follows when the table was rolled back or replaced behind the writer.",
    )
    .or("stop")
    .flag("after-rollback"),
    Key::new(
        "write.on-new-source",
        Kind::Choice(&["stop", "restart"]),
        "What follows when topic or cluster are not those that the ledger names.",
    )
    .or("stop")
    .flag("on-new-source"),
    Key::new("write.memory", Kind::Bytes, "The budget for messages, rows, open files and uploads together.")
        .or("512 MiB")
        .so("memory would not be bounded")
        .flag("memory"),
    Key::new("write.upload-concurrency", Kind::Count(1, 1_024), "Files encoded and uploaded at the same time.")
        .or("8")
        .flag("upload-concurrency"),
    Key::new("write.expire", Kind::Bool, "Whether the writer expires snapshots between its commits.")
        .or("true")
        .flag("expire"),
    Key::new("write.expire-every", Kind::Duration, "The time between two such runs.").or("30s"),
    Key::new("write.expire-max-snapshots", Kind::Count(1, 100_000), "At most this many snapshots in one run.")
        .or("100"),
    Key::new(
        "write.until-end",
        Kind::Bool,
        "Whether to stop when everything that was in the topics at the start is committed.",
    )
    .or("false")
    .flag("until-end"),
    Key::new(
        "write.revoke-deadline",
        Kind::Duration,
        "How long a revoked partition's rows may take to be committed before they are discarded and read again.",
    )
    .or("10s"),
    Key::new(
        "write.unhealthy-after",
        Kind::Duration,
        "The table is reported unhealthy when the oldest uncommitted row is older than this.",
    )
    .or("60s"),
    Key::new(
        "write.max-overtaken",
        Kind::Count(1, 1_000_000),
        "Overtaken flushes in a row after which the writer stops: two deployments share its name.",
    )
    .or("20"),
    Key::new(
        "write.metrics-address",
        Kind::Text,
        "Where /metrics, /ready and /health are served, as host:port; nowhere by default.",
    )
    .flag("metrics-address"),
    Key::new(
        "write.flight-recorder",
        Kind::Path,
        "A file that gets a line of JSON per commit, for `firn explain-latency`; none by default.",
    )
    .flag("flight-recorder"),
    Key::new(
        "write.flight-recorder-bytes",
        Kind::Bytes,
        "A recording of this size is put aside as FILE.1, in place of the one before.",
    )
    .or("64 MiB")
    .so("the disk could fill up"),
];

/// Section `[dead-letters]`.
pub(super) const DEAD_LETTERS: &[Key] = &[
    Key::new(
        "dead-letters.table",
        Kind::Text,
        "The table that keeps them, as namespace.name; without it, `<table>_dlq` beside the table.",
    )
    .flag("dead-letters-table"),
    Key::new("dead-letters.create", Kind::Bool, "Whether that table is created where it does not exist.")
        .or("true"),
    Key::new(
        "dead-letters.max-share",
        Kind::Text,
        "The share of bad messages in a window beyond which the writer stops, from \"0\" to \"1\", which is never.",
    )
    .or("0.01")
    .so("a producer that sends nothing but bad messages would not be noticed"),
    Key::new("dead-letters.window", Kind::Count(1, 1_000_000_000), "The window, in messages.").or("100_000"),
];

/// Section `[create]`.
pub(super) const CREATE: &[Key] = &[
    Key::new("create.enabled", Kind::Bool, "Whether a table that does not exist is created.")
        .or("false")
        .flag("create"),
    Key::new(
        "create.schema",
        Kind::Path,
        "The schema: a file with an Iceberg schema or an Avro record, as JSON.",
    )
    .so("the table cannot be created")
    .flag("schema"),
    Key::new(
        "create.infer",
        Kind::Count(1, 1_000_000),
        "Infer the schema from this many messages, where no schema is given.",
    )
    .flag("infer"),
    Key::new(
        "create.on-conflict",
        Kind::Choice(&["fail", "string"]),
        "What inference does with a field without one type: `string` keeps its JSON text.",
    )
    .or("fail"),
    Key::new(
        "create.partition-by",
        Kind::List,
        "Partition fields: ts, bucket(16, id), truncate(4, s), year(ts), month(ts), day(ts), hour(ts).",
    )
    .so("the table would be laid out otherwise than meant")
    .flag("partition-by"),
    Key::new("create.properties", Kind::Properties, "Table properties under Iceberg's names.")
        .flag("table-property"),
    Key::new("create.kafka-columns", Kind::Bool, "Whether to add the column `_kafka` to the schema.")
        .or("false")
        .flag("kafka-columns"),
];

/// Section `[decode]`.
pub(super) const DECODE: &[Key] = &[
    Key::new(
        "decode.unknown-fields",
        Kind::Choice(&["ignore", "reject"]),
        "Fields that the schema does not know.",
    )
    .or("ignore"),
    Key::new(
        "decode.tombstones",
        Kind::Choice(&["reject", "skip", "row"]),
        "Messages without a value; `row` makes a row without values.",
    )
    .or("reject"),
    Key::new(
        "decode.kafka-columns",
        Kind::Choice(&["off", "on"]),
        "Whether the columns _kafka and _kafka_* are filled with where a message came from.",
    )
    .or("off"),
    Key::new("decode.max-depth", Kind::Count(1, 1_024), "How deep arrays and objects may be nested.")
        .or("128"),
    Key::new(
        "decode.max-values",
        Kind::Count(1, 1 << 32),
        "How many values the lists and maps of one message may stand for.",
    )
    .or("1_048_576"),
];

const TIMESTAMP_NUMBERS: Kind = Kind::Choice(&["reject", "seconds", "millis", "micros", "nanos"]);
const TIMESTAMP_PRECISION: Kind = Kind::Choice(&["exact", "truncate"]);
const BINARY: Kind = Kind::Choice(&["reject", "base64", "hex", "utf8"]);
const NUMBERS: Kind = Kind::Choice(&["reject", "parse"]);
const STRINGS: Kind = Kind::Choice(&["strict", "json-text"]);

const ABOUT_TIMESTAMP_NUMBERS: &str = "Numbers in timestamp columns: their unit since 1970.";
const ABOUT_TIMESTAMP_PRECISION: &str = "Digits of a time beyond the column's unit.";
const ABOUT_BINARY: &str = "Text in binary columns.";
const ABOUT_NUMBERS: &str = "Text in number columns.";
const ABOUT_STRINGS: &str = "Values other than text in string columns.";

/// Section `[decode.defaults]`.
pub(super) const DECODE_DEFAULTS: &[Key] = &[
    Key::new("decode.defaults.timestamp-numbers", TIMESTAMP_NUMBERS, ABOUT_TIMESTAMP_NUMBERS).or("reject"),
    Key::new("decode.defaults.timestamp-precision", TIMESTAMP_PRECISION, ABOUT_TIMESTAMP_PRECISION)
        .or("exact"),
    Key::new("decode.defaults.binary", BINARY, ABOUT_BINARY).or("reject"),
    Key::new("decode.defaults.numbers", NUMBERS, ABOUT_NUMBERS).or("reject"),
    Key::new("decode.defaults.strings", STRINGS, ABOUT_STRINGS).or("strict"),
];

/// Sections `[decode.columns."PATH"]`.
pub(super) const DECODE_COLUMN: &[Key] = &[
    Key::new("decode.columns.*.timestamp-numbers", TIMESTAMP_NUMBERS, ABOUT_TIMESTAMP_NUMBERS),
    Key::new("decode.columns.*.timestamp-precision", TIMESTAMP_PRECISION, ABOUT_TIMESTAMP_PRECISION),
    Key::new("decode.columns.*.binary", BINARY, ABOUT_BINARY),
    Key::new("decode.columns.*.numbers", NUMBERS, ABOUT_NUMBERS),
    Key::new("decode.columns.*.strings", STRINGS, ABOUT_STRINGS),
];
