//! Horizontal bars out of eighth blocks.

const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// A bar whose length is `share` (0 to 1) of `width` characters, to an eighth of a character.
///
/// Anything above zero shows at least the thinnest block: a lone file must not vanish beside a thousand.
pub(crate) fn bar(share: f64, width: usize) -> String {
    let share = share.clamp(0.0, 1.0);
    if share == 0.0 {
        return String::new();
    }
    let eighths = ((share * width as f64 * 8.0).round() as usize).max(1);
    let mut out = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        out.push(EIGHTHS[eighths % 8 - 1]);
    }
    out
}

/// Two parts of one whole as one bar of constant width: `██████░░░░`.
pub(crate) fn split_bar(first: u64, second: u64, width: usize) -> String {
    let whole = first + second;
    if whole == 0 {
        return "·".repeat(width);
    }
    let rounded = (first as f64 / whole as f64 * width as f64).round() as usize;
    // A part that is not empty gets one character at least.
    let low = usize::from(first > 0);
    let high = width.saturating_sub(usize::from(second > 0));
    let filled = rounded.clamp(low.min(high), high);
    format!("{}{}", "█".repeat(filled), "░".repeat(width - filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        assert_eq!(bar(0.0, 10), "");
        assert_eq!(bar(1.0, 4), "████");
        assert_eq!(bar(0.5, 4), "██");
        assert_eq!(bar(0.125, 1), "▏");
        assert_eq!(bar(7.0, 2), "██");
    }

    #[test]
    fn what_is_not_zero_is_visible() {
        assert_eq!(bar(0.000_001, 10), "▏");
        assert_eq!(split_bar(1, 1_000, 10), "█░░░░░░░░░");
        assert_eq!(split_bar(1_000, 1, 10), "█████████░");
    }

    #[test]
    fn a_split_bar_keeps_its_width() {
        for (first, second) in [(0, 0), (0, 5), (5, 0), (3, 7), (50, 50)] {
            assert_eq!(split_bar(first, second, 10).chars().count(), 10, "{first} and {second}");
        }
    }
}
