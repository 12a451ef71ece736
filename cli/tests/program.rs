//! The program from outside: exit codes, streams, and the configuration files of the examples.

#![allow(clippy::panic, reason = "tests state what cannot be")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn firn(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_firn"));
    command.args(arguments).env_remove("FIRN_CONFIG").env_remove("FIRN_LOG");
    command
}

fn run(arguments: &[&str]) -> Output {
    firn(arguments).output().expect("firn starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
}

#[test]
fn help_names_every_verb_and_every_exit_code() {
    let output = run(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    let help = text(&output.stdout);
    let verbs = [
        "demo",
        "generate",
        "write",
        "plan",
        "compact",
        "expire",
        "inspect",
        "offsets",
        "verify",
        "explain-latency",
        "check",
        "chaos",
        "config",
        "completions",
    ];
    for verb in verbs {
        assert!(help.lines().any(|line| line.trim_start().starts_with(verb)), "`{verb}` is missing:\n{help}");
    }
    for code in ["0", "1", "2", "3", "4", "5", "6", "7", "8", "130"] {
        assert!(
            help.lines().any(|line| line.split_whitespace().next() == Some(code)),
            "{code} is missing:\n{help}"
        );
    }
}

#[test]
fn a_command_line_that_cannot_be_understood_is_a_usage_error() {
    for arguments in
        [&["frobnicate"][..], &["plan", "--no-such-flag"], &["write", "--flush-age", "5 parsecs"]]
    {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn all_problems_of_a_file_are_told_on_standard_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bad.toml");
    std::fs::write(&path, "[write]\nflush-age = \"soon\"\nshard = 2\n").expect("a file");
    let path = path.to_str().expect("a path that is text");
    let output = run(&["--config", path, "config", "show"]);
    assert_eq!(output.status.code(), Some(3));
    let errors = text(&output.stderr);
    assert!(errors.contains("2 problems") && errors.contains("write.flush-age"), "{errors}");
    assert!(errors.contains("did you mean `write.shards`?"), "{errors}");
    assert!(output.stdout.is_empty());
}

#[test]
fn configuration_files_of_the_examples_are_right() {
    for file in [
        "write.toml",
        "write-fixed.toml",
        "write-auto.toml",
        "write-grouped.toml",
        "write-low-latency.toml",
        "compact.toml",
    ] {
        let path = examples().join(file);
        let path = path.to_str().expect("a path that is text");
        let output = run(&["--config", path, "check"]);
        assert_eq!(output.status.code(), Some(0), "{file}: {}{}", text(&output.stdout), text(&output.stderr));
    }
}

#[test]
fn the_cron_lines_of_the_examples_can_be_parsed() {
    let lines = std::fs::read_to_string(examples().join("compact.cron")).expect("the file");
    let commands: Vec<&str> =
        lines.lines().filter_map(|line| line.split_once("&& firn ")).map(|(_, c)| c).collect();
    assert_eq!(commands.len(), 2, "{lines}");
    for command in commands {
        let arguments = command.split_once(" >>").map_or(command, |(arguments, _)| arguments);
        let mut arguments: Vec<&str> = arguments.split_whitespace().collect();
        arguments.push("--help");
        assert_eq!(run(&arguments).status.code(), Some(0), "{command}");
    }
}

/// The program takes these arguments.
fn are_understood(arguments: &[String]) {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).chain(["--help"]).collect();
    assert_eq!(run(&arguments).status.code(), Some(0), "{arguments:?}");
}

#[test]
fn the_unit_of_the_examples_starts_a_writer_and_restarts_it_only_where_that_helps() {
    let unit = std::fs::read_to_string(examples().join("firn-write.service")).expect("the file");
    let lines = unit.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut values = std::collections::BTreeMap::new();
    let mut section = "";
    for line in lines {
        match line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(name) => section = name,
            None => {
                let (key, value) = line.split_once('=').expect("a line of a unit is KEY=VALUE");
                assert!(values.insert((section, key), value).is_none(), "{section}.{key} stands there twice");
            }
        }
    }
    let command: Vec<String> = values[&("Service", "ExecStart")].split(' ').map(str::to_owned).collect();
    assert!(command[0].ends_with("/firn") && command[1] == "write", "{command:?}");
    are_understood(&command[1..]);
    assert_eq!(values[&("Service", "RestartPreventExitStatus")], "2 3 7");
    assert_eq!(values[&("Service", "KillSignal")], "SIGTERM");
}

#[test]
fn the_manifest_of_the_examples_holds_settings_arguments_and_probes_that_fit() {
    let manifest = std::fs::read_to_string(examples().join("kubernetes.yaml")).expect("the file");
    let (_, rest) = manifest.split_once("  firn.toml: |\n").expect("the settings");
    let settings: Vec<&str> = rest.lines().take_while(|line| *line != "---").collect();
    let settings: String = settings.iter().map(|line| format!("{}\n", line.trim_start())).collect();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("firn.toml");
    std::fs::write(&path, &settings).expect("a file");
    let path = path.to_str().expect("a path that is text");
    let output = run(&["--config", path, "check"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));

    let value = |key: &str| {
        let mut found = manifest.lines().filter_map(|line| line.trim_start().strip_prefix(key));
        found.next().unwrap_or_else(|| panic!("{key} is missing")).trim().to_owned()
    };
    let arguments = value("args: [");
    let arguments = arguments.trim_end_matches(']').split(", ").map(|word| word.trim_matches('"').to_owned());
    are_understood(&arguments.collect::<Vec<_>>());
    assert!(settings.contains("metrics-address = \"0.0.0.0:9464\""), "{settings}");
    assert_eq!(value("- { name: metrics, containerPort:"), "9464 }");
    assert_eq!(value("httpGet:"), "{ path: /ready, port: metrics }");
    assert!(!manifest.contains('\t'), "YAML is indented with spaces");
}

#[test]
fn a_catalog_that_is_not_there_is_not_made_by_looking() {
    let folder = tempfile::tempdir().expect("a folder");
    let catalog = format!("sqlite:{}/none.db", folder.path().display());
    let output = run(&["inspect", "files", "a.b", "--catalog", &catalog]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(!folder.path().join("none.db").exists());
}

#[test]
fn the_environment_overrides_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("firn.toml");
    std::fs::write(&path, "[write]\nflush-age = \"2s\"\nshards = 3\n").expect("a file");
    let output = firn(&["config", "show", "--format", "csv"])
        .current_dir(folder.path())
        .env("FIRN__WRITE__FLUSH_AGE", "7s")
        .output()
        .expect("firn starts");
    let shown = text(&output.stdout);
    assert!(shown.contains("write.flush-age,\"\"\"7s\"\"\",FIRN__WRITE__FLUSH_AGE"), "{shown}");
    assert!(shown.contains("write.shards,3,firn.toml"), "{shown}");
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let mut child =
        firn(&["config", "schema"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn completions_are_made_for_common_shells() {
    for shell in ["bash", "zsh", "fish"] {
        let output = run(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0));
        assert!(text(&output.stdout).contains("firn"), "{shell}");
    }
}
/// Rows of `firn check --connect --create` on a SQLite catalog: check, result, detail, advice.
fn checked(folder: &Path, more: &[&str]) -> (Option<i32>, Vec<Vec<String>>) {
    let catalog = format!("sqlite:{}/catalog.db", folder.display());
    let arguments =
        [&["check", "a.b", "--connect", "--create", "--format", "json", "--catalog", &catalog], more];
    let output = run(&arguments.concat());
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).expect("rows");
    let cell = |row: &serde_json::Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let columns = ["check", "result", "detail", "advice"];
    let rows = rows.iter().map(|row| columns.map(|name| cell(row, name)).to_vec()).collect();
    (output.status.code(), rows)
}

fn row<'a>(rows: &'a [Vec<String>], check: &str) -> &'a [String] {
    rows.iter().find(|row| row[0] == check).unwrap_or_else(|| panic!("no `{check}` in {rows:?}"))
}

#[test]
fn the_store_of_a_table_that_is_not_there_yet_is_tried_and_left_empty() {
    let folder = tempfile::tempdir().expect("a folder");
    let warehouse = folder.path().join("warehouse");
    let (code, rows) = checked(folder.path(), &["--warehouse", warehouse.to_str().expect("text")]);
    assert_eq!(code, Some(0), "{rows:?}");
    assert!(row(&rows, "store")[2].contains("was written, read and deleted"), "{rows:?}");
    assert_eq!(std::fs::read_dir(&warehouse).map_or(0, Iterator::count), 0);
    assert!(!folder.path().join("catalog.db").exists(), "a check makes no catalog");
}

#[test]
fn a_store_that_cannot_be_written_is_named_with_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "in the way").expect("a file");
    let warehouse = file.join("warehouse");
    let (code, rows) = checked(folder.path(), &["--warehouse", warehouse.to_str().expect("text")]);
    assert_ne!(code, Some(0), "{rows:?}");
    let store = row(&rows, "store");
    assert!(store[1] == "FAILED" && store[2].contains("warehouse") && !store[3].is_empty(), "{rows:?}");
}

#[test]
fn a_broker_that_does_not_answer_is_named_with_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    // A port that was free a moment ago.
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
    let broker = format!("127.0.0.1:{port}");
    let (code, rows) = checked(folder.path(), &["--brokers", &broker, "--topic", "events"]);
    assert_eq!(code, Some(6), "{rows:?}");
    let broker = row(&rows, "broker");
    assert!(broker[1] == "FAILED" && broker[3].contains("kafka.brokers"), "{rows:?}");
}

#[test]
fn a_catalog_that_does_not_answer_is_named_with_what_to_do() {
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
    let catalog = format!("http://127.0.0.1:{port}");
    let output = run(&["check", "a.b", "--connect", "--format", "json", "--catalog", &catalog]);
    assert_eq!(output.status.code(), Some(6), "{}", text(&output.stdout));
    let told = text(&output.stdout);
    assert!(told.contains("FAILED") && told.contains("see that the catalog's server runs"), "{told}");
}
