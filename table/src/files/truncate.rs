//! Bounds cut to a length, as Java's `UnicodeUtil` and `BinaryUtil` cut them: a lower bound is a prefix, an
//! upper bound is a prefix whose last element is increased, so that it stays at or above every value.

use super::transform::first_chars;

/// The first `count` code points.
pub(super) fn string_lower(value: &str, count: usize) -> String {
    first_chars(value, count).to_owned()
}

/// A string of at most `count` code points that is not below `value`; `None` where there is none.
pub(super) fn string_upper(value: &str, count: usize) -> Option<String> {
    let prefix = first_chars(value, count);
    if prefix.len() == value.len() {
        return Some(value.to_owned());
    }
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        if let Some(next) = next_char(last) {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

/// The next code point that may stand in a string: surrogates are skipped.
fn next_char(c: char) -> Option<char> {
    match c {
        '\u{d7ff}' => Some('\u{e000}'),
        _ => char::from_u32(u32::from(c) + 1),
    }
}

/// The first `count` bytes.
pub(super) fn bytes_lower(value: &[u8], count: usize) -> Vec<u8> {
    value[..value.len().min(count)].to_vec()
}

/// At most `count` bytes that are not below `value` in unsigned order; `None` where there are none.
pub(super) fn bytes_upper(value: &[u8], count: usize) -> Option<Vec<u8>> {
    if value.len() <= count {
        return Some(value.to_vec());
    }
    let mut bytes = value[..count].to_vec();
    while let Some(last) = bytes.pop() {
        if last < u8::MAX {
            bytes.push(last + 1);
            return Some(bytes);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_values_are_their_own_bounds() {
        assert_eq!(string_lower("abc", 3), "abc");
        assert_eq!(string_upper("abc", 3).as_deref(), Some("abc"));
        assert_eq!(bytes_upper(&[1, 255], 2), Some(vec![1, 255]));
    }

    #[test]
    fn the_last_code_point_of_an_upper_bound_is_increased() {
        assert_eq!(string_upper("abcd", 3).as_deref(), Some("abd"));
        assert_eq!(string_upper("a\u{10ffff}\u{10ffff}x", 3).as_deref(), Some("b"));
        assert_eq!(string_upper("\u{d7ff}x", 1).as_deref(), Some("\u{e000}"));
        assert_eq!(string_upper("\u{10ffff}x", 1), None);
    }

    #[test]
    fn lengths_count_code_points_and_not_bytes() {
        assert_eq!(string_lower("äöü€𝄞x", 5), "äöü€𝄞");
        assert_eq!(string_upper("äöü€𝄞x", 5).as_deref(), Some("äöü€𝄟"));
    }

    #[test]
    fn bytes_carry_over_to_the_one_before() {
        assert_eq!(bytes_lower(&[1, 2, 3], 2), vec![1, 2]);
        assert_eq!(bytes_upper(&[1, 255, 255, 7], 3), Some(vec![2]));
        assert_eq!(bytes_upper(&[255, 255], 1), None);
    }
}
