//! A rule's text as words with their places, so that a problem can be pointed at.

use std::fmt;
use std::ops::Range;

/// A word, its quotes removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    /// Bytes of the rule that it stands at.
    pub(super) span: Range<usize>,
    /// Whether any of it was quoted: then it is no keyword and no separator.
    pub(super) quoted: bool,
}

/// Something that is wrong with a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleProblem {
    /// Where the rule was given: `--rule 2`, or a file and a line.
    pub place: String,
    /// The rule.
    pub rule: String,
    /// The bytes of the rule that are wrong.
    pub span: Range<usize>,
    /// What is wrong with them, and what to write instead.
    pub what: String,
}

/// Splits a rule at spaces. `'…'` and `"…"` keep theirs, and are taken as they stand.
pub(super) fn split(rule: &str) -> Result<Vec<Word>, (Range<usize>, String)> {
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    let mut quote: Option<(char, usize)> = None;
    for (at, c) in rule.char_indices() {
        match quote {
            None if c.is_whitespace() => words.extend(word.take()),
            _ => {
                let end = at + c.len_utf8();
                let word =
                    word.get_or_insert_with(|| Word { text: String::new(), span: at..end, quoted: false });
                word.span.end = end;
                match quote {
                    Some((open, _)) if open == c => quote = None,
                    None if matches!(c, '\'' | '"') => {
                        quote = Some((c, at));
                        word.quoted = true;
                    }
                    _ => word.text.push(c),
                }
            }
        }
    }
    words.extend(word);
    match quote {
        Some((open, at)) => Err((at..rule.len(), format!("`{open}` is opened and not closed"))),
        None => Ok(words),
    }
}

impl fmt::Display for RuleProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chars = |range: Range<usize>| self.rule.get(range).map_or(0, |text| text.chars().count());
        let before = chars(0..self.span.start);
        let marked = chars(self.span.clone()).max(1);
        writeln!(f, "{}: {}", self.place, self.what)?;
        writeln!(f, "    {}", self.rule)?;
        write!(f, "    {}{}", " ".repeat(before), "^".repeat(marked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(rule: &str) -> Vec<String> {
        split(rule).unwrap().into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn quotes_keep_spaces_and_each_other() {
        assert_eq!(texts("a  b\tc"), ["a", "b", "c"]);
        assert_eq!(texts("body 'x y' x-a=\"it's\""), ["body", "x y", "x-a=it's"]);
        assert_eq!(texts("''"), [""]);
        assert_eq!(texts(r#"'it'"'"'s'"#), ["it's"]);
    }

    #[test]
    fn a_quote_that_stays_open_is_pointed_at() {
        assert_eq!(split("a 'b").unwrap_err().0, 2..4);
    }

    #[test]
    fn a_problem_points_at_its_characters_also_behind_wide_ones() {
        let problem = RuleProblem {
            place: "--rule 1".to_owned(),
            rule: "* /ü : foo".to_owned(),
            span: 8..11,
            what: "no".to_owned(),
        };
        assert_eq!(problem.to_string(), "--rule 1: no\n    * /ü : foo\n           ^^^");
    }
}
