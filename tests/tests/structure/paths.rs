//! A path of one machine in the tree works on no other.

use anyhow::Result;

use super::tree::SourceFile;

/// First folders of absolute paths that differ between machines. Without slashes, so that this file does not break
/// its own rule.
const FOLDERS: [&str; 7] = ["home", "root", "work", "tmp", "Users", "var/tmp", "mnt"];

/// The absolute paths in a line that name a machine's folders: at the beginning of a word, or after `file:`.
fn machine_paths(line: &str) -> Vec<&str> {
    let mut out = Vec::new();
    for folder in FOLDERS {
        let path = format!("/{folder}/");
        for (at, _) in line.match_indices(&path) {
            let before = line[..at].trim_end_matches('/');
            let is_file_url = before.ends_with("file:") || before.ends_with("sqlite:");
            let begins_a_word =
                before.chars().next_back().is_none_or(|c| !c.is_alphanumeric() && !"/._-}$~:*".contains(c));
            if is_file_url || (begins_a_word && before.len() == at) {
                let end =
                    line[at..].find([' ', '"', '\'', '`', ')']).map_or(line.len(), |length| at + length);
                out.push(&line[at..end]);
            }
        }
    }
    out
}

fn found(files: &[SourceFile]) -> Vec<String> {
    let of_file = |file: &SourceFile| {
        let of_line = |(number, line): (usize, &str)| {
            let named =
                machine_paths(line).into_iter().map(|path| format!("{}:{}: {path}", file.path, number + 1));
            named.collect::<Vec<_>>()
        };
        file.text.lines().enumerate().flat_map(of_line).collect::<Vec<_>>()
    };
    files.iter().flat_map(of_file).collect()
}

#[test]
fn a_path_of_a_machine_is_found() {
    let at = |folder: &str| format!("/{folder}/x");
    for folder in FOLDERS {
        for line in [at(folder), format!("open(\"{}\")", at(folder)), format!("file://{}", at(folder))] {
            assert_eq!(found(&[SourceFile::new("a.rs", line.as_str())]).len(), 1, "{line}");
        }
    }
    let second_line = format!("let x;\nlet y = \"sqlite:{}\";", at("home"));
    assert_eq!(found(&[SourceFile::new("a.rs", second_line)]), [format!("a.rs:2: {}", at("home"))]);
    for line in
        ["s3://bucket/tmp/x", "$HOME/mnt/x", "target/tmp/x", "https://host/home/x", "../mnt/x", "a/root/b"]
    {
        assert_eq!(found(&[SourceFile::new("a.rs", line)]), Vec::<String>::new(), "{line}");
    }
}

#[test]
fn no_path_of_a_machine_is_in_the_tree() -> Result<()> {
    let files = super::tree::source_files()?;
    assert!(files.len() > 20);
    assert_eq!(found(&files), Vec::<String>::new());
    Ok(())
}
