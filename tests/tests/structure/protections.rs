//! Protections are switched off by tests alone: in a program nothing may even try.

use anyhow::Result;

use super::sizes::{is_test, lines_outside_tests};
use super::tree::SourceFile;

/// The lines outside tests that switch a protection off.
fn switches(files: &[SourceFile]) -> Vec<String> {
    let of_programs = files.iter().filter(|file| {
        file.path.ends_with(".rs") && !file.path.starts_with("tests/") && !is_test(&file.path)
    });
    let of_file = |file: &SourceFile| {
        let lines = file.text.lines().take(lines_outside_tests(&file.text)).enumerate();
        let calls = lines.filter(|(_, line)| {
            line.contains("switch_off(") && !line.contains("pub fn switch_off(")
                || line.contains("use ") && line.contains("switch_off")
        });
        calls.map(|(at, line)| format!("{}:{}: {}", file.path, at + 1, line.trim())).collect::<Vec<_>>()
    };
    of_programs.flat_map(of_file).collect()
}

#[test]
fn a_protection_that_is_switched_off_outside_tests_is_found() {
    let call = "    let _off = protections::switch_off(Protection::LedgerCheck);\n";
    let in_tests = format!("#[cfg(test)]\nmod tests {{\n{call}}}\n");
    let files = [
        SourceFile::new("table/src/commit/append.rs", call),
        SourceFile::new("cli/src/main.rs", "use firn_table::protections::{stands, switch_off as off};\n"),
        SourceFile::new("table/src/commit/tests/model.rs", call),
        SourceFile::new("table/src/commit/written.rs", in_tests),
        SourceFile::new("tests/src/sim/world.rs", call),
        SourceFile::new("table/src/protections.rs", "pub fn switch_off(protection: Protection) -> Guard {\n"),
    ];
    let found = switches(&files);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("table/src/commit/append.rs:1:"), "{found:?}");
    assert!(found[1].starts_with("cli/src/main.rs:1:"), "{found:?}");
}

#[test]
fn no_program_switches_a_protection_off() -> Result<()> {
    let files = super::tree::source_files()?;
    assert!(files.iter().any(|file| file.path == "table/src/protections.rs"));
    assert_eq!(switches(&files), Vec::<String>::new());
    Ok(())
}
