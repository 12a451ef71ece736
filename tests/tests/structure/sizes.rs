//! A file that cannot be read in one sitting is split.

use anyhow::Result;

use super::tree::SourceFile;

const MAX_LINES: usize = 500;

/// Whether a file holds only tests.
pub(crate) fn is_test(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    path.split('/').rev().skip(1).any(|folder| folder == "tests")
        || name == "tests.rs"
        || name.ends_with("_tests.rs")
}

/// The lines of a file before its unit tests.
pub(crate) fn lines_outside_tests(text: &str) -> usize {
    let is_test_module =
        |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{');
    let lines: Vec<&str> = text.lines().collect();
    lines.windows(2).position(is_test_module).unwrap_or(lines.len())
}

/// The files that are too long.
fn too_long(files: &[SourceFile]) -> Vec<String> {
    let is_source = |path: &str| [".rs", ".py", ".java", ".sh"].iter().any(|end| path.ends_with(end));
    let sources = files.iter().filter(|file| is_source(&file.path) && !is_test(&file.path));
    let counted = sources.map(|file| (&file.path, lines_outside_tests(&file.text)));
    counted
        .filter(|(_, lines)| *lines > MAX_LINES)
        .map(|(path, lines)| format!("{path}: {lines} lines"))
        .collect()
}

#[test]
fn a_long_file_is_found_and_tests_are_not_counted() {
    let long = |lines: usize| "// a line\n".repeat(lines);
    let with_tests = format!("{}#[cfg(test)]\nmod tests {{\n{}}}\n", long(500), long(300));
    let files = [
        SourceFile::new("table/src/fits.rs", long(500)),
        SourceFile::new("table/src/long.rs", long(501)),
        SourceFile::new("table/src/with_tests.rs", with_tests),
        SourceFile::new("table/src/ledger/tests.rs", long(900)),
        SourceFile::new("table/tests/all.rs", long(900)),
        SourceFile::new("README.md", long(900)),
    ];
    assert_eq!(too_long(&files), ["table/src/long.rs: 501 lines"]);
}

#[test]
fn no_file_is_too_long() -> Result<()> {
    let files = super::tree::source_files()?;
    assert!(files.iter().any(|file| file.path == "table/src/lib.rs"));
    assert_eq!(too_long(&files), Vec::<String>::new());
    Ok(())
}
