//! Turns values into text: tables, histograms, bars.

pub(crate) mod bars;
pub(crate) mod batches;
pub(crate) mod histogram;
pub(crate) mod listing;

/// Whether the user asked for no colours (<https://no-color.org>).
pub(crate) fn no_colour() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}
