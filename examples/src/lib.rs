//! Small programs over the libraries of firn, and configuration files for the program.
//!
//! | file | what it shows |
//! | --- | --- |
//! | `src/bin/append.rs` | a table is created, and rows are appended exactly once |
//! | `src/bin/plan.rs` | which files of a table a compaction would rewrite, and why |
//! | `write.toml` | `firn write --config write.toml`: a topic into a partitioned table |
//! | `write-fixed.toml`, `write-low-latency.toml` | the same, one file per mode |
//! | `firn-write.service`, `kubernetes.yaml` | `firn write` as a service of systemd, and on Kubernetes |
//! | `compact.toml`, `compact.cron` | `firn compact` every hour |
//! | `template.toml` | messages for `firn generate --template template.toml` |
//! | `schema.json` | a schema for `firn write --create --schema schema.json` |
