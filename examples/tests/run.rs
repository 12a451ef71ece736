//! The examples do what they say.

use std::process::Command;

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().expect("the example starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("examples print text")
}

#[test]
fn rows_are_appended_once_and_the_plan_names_their_file() {
    let directory = tempfile::tempdir().expect("a folder");
    let directory = directory.path().to_str().expect("a path that is text");
    let first = run(env!("CARGO_BIN_EXE_append"), &[directory]);
    assert!(first.starts_with("1000 rows are in snapshot "), "{first}");
    let second = run(env!("CARGO_BIN_EXE_append"), &[directory]);
    assert!(second.starts_with("overtaken: ") && second.ends_with(" up to 1000\n"), "{second}");
    let catalog = format!("sqlite:{directory}/catalog.db");
    let plan = run(env!("CARGO_BIN_EXE_plan"), &[&catalog, "example.numbers"]);
    assert_eq!(plan.lines().count(), 1, "one live file: {plan}");
    assert!(plan.contains("too few to rewrite"), "{plan}");
}
