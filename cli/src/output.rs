//! Standard output: results, and nothing but results, in the format that was asked for.
//!
//! Logs and progress go to standard error, so that `firn … --format json | jq` always works. A reader that
//! closes the pipe early (`| head`) ends the output, not the program with a panic.

use std::io::{self, Write};

use clap::ValueEnum;
use serde::Serialize;

use crate::render::listing::Listing;

/// The shape of the results on standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people: aligned columns, human units.
    #[default]
    Human,
    /// For programs: JSON with plain numbers (bytes, milliseconds).
    Json,
    /// For spreadsheets: a header and one line per row, plain numbers.
    Csv,
}

/// Where results go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    format: Format,
}

impl Output {
    /// Results in this format on standard output.
    pub(crate) fn new(format: Format) -> Self {
        Self { format }
    }

    /// The format that was asked for.
    pub(crate) fn format(self) -> Format {
        self.format
    }

    /// Writes text as it is.
    pub(crate) fn text(self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            out.write_all(b"\n")?;
        }
        out.flush()
    }

    /// Writes rows.
    pub(crate) fn listing(self, listing: &Listing) -> io::Result<()> {
        match self.format {
            Format::Human => self.text(&listing.human()),
            Format::Json => self.text(&listing.json()),
            Format::Csv => self.text(&listing.csv()),
        }
    }

    /// Writes one value: as JSON, or as the text that `human` makes of it.
    ///
    /// CSV has no shape for a nested value, so it gets the human text too.
    pub(crate) fn value<T: Serialize>(
        self,
        value: &T,
        human: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<()> {
        match self.format {
            Format::Json => self.text(&serde_json::to_string_pretty(value)?)?,
            Format::Human | Format::Csv => self.text(&human(value))?,
        }
        Ok(())
    }

    /// Writes one event of a running command: one line of JSON, or the line that `human` makes of it.
    pub(crate) fn event<T: Serialize>(
        self,
        event: &T,
        human: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<()> {
        match self.format {
            Format::Json => self.text(&serde_json::to_string(event)?)?,
            Format::Human | Format::Csv => self.text(&human(event))?,
        }
        Ok(())
    }
}
