//! Rows and columns in three formats: aligned with human units, JSON and CSV with plain numbers.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::units;

/// What the numbers of a column are, and so how people read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Text or anything that speaks for itself, to the left.
    Plain,
    /// A number, to the right, thousands apart.
    Count,
    /// A number that names something (an id, an offset), to the right, as it is.
    Id,
    /// Bytes.
    Bytes,
    /// Milliseconds.
    Millis,
    /// Milliseconds since 1970, in UTC.
    Time,
}

/// One column: its name in JSON and CSV (with the unit last), its title for people, and its unit.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    name: String,
    title: String,
    unit: Unit,
}

impl Column {
    /// A column whose title is its name with spaces for underscores, without the unit.
    pub(crate) fn new(name: impl Into<String>, unit: Unit) -> Self {
        let name = name.into();
        let bare = match unit {
            Unit::Bytes => name.strip_suffix("_bytes").unwrap_or(&name),
            Unit::Millis | Unit::Time => name.strip_suffix("_ms").unwrap_or(&name),
            Unit::Plain | Unit::Count | Unit::Id => &name,
        };
        let title = bare.replace('_', " ");
        Self { name, title, unit }
    }
}

/// Rows of equal shape.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    columns: Vec<Column>,
    rows: Vec<Vec<Value>>,
}

impl Listing {
    /// No rows yet.
    pub(crate) fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Columns given as names and units.
    pub(crate) fn of(columns: &[(&str, Unit)]) -> Self {
        Self::new(columns.iter().map(|(name, unit)| Column::new(*name, *unit)).collect())
    }

    /// Adds a row, which has as many values as there are columns.
    pub(crate) fn push(&mut self, row: Vec<Value>) {
        debug_assert_eq!(row.len(), self.columns.len(), "a row has one value per column");
        self.rows.push(row);
    }

    /// Aligned columns, the header first; `no rows` where there are none.
    pub(crate) fn human(&self) -> String {
        if self.rows.is_empty() {
            return "no rows\n".to_owned();
        }
        let cells: Vec<Vec<String>> =
            self.rows.iter().map(|row| row.iter().zip(&self.columns).map(human_cell).collect()).collect();
        let widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(i, column)| {
                cells.iter().map(|row| width(&row[i])).chain([width(&column.title)]).max().unwrap_or(0)
            })
            .collect();
        let titles: Vec<String> = self.columns.iter().map(|column| column.title.clone()).collect();
        let mut out = String::new();
        for row in std::iter::once(&titles).chain(&cells) {
            self.human_row(&mut out, row, &widths);
        }
        out
    }

    fn human_row(&self, out: &mut String, row: &[String], widths: &[usize]) {
        let mut line = String::new();
        for ((cell, column), full) in row.iter().zip(&self.columns).zip(widths) {
            let padding = " ".repeat(full.saturating_sub(width(cell)));
            let (left, right) =
                if column.unit == Unit::Plain { ("", padding.as_str()) } else { (padding.as_str(), "") };
            if !line.is_empty() {
                line.push_str("  ");
            }
            line.push_str(left);
            line.push_str(cell);
            line.push_str(right);
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }

    /// One array with one object per row.
    pub(crate) fn json(&self) -> String {
        let mut out = String::from("[");
        for (i, row) in self.rows.iter().enumerate() {
            out.push_str(if i == 0 { "\n" } else { ",\n" });
            let object: Map<String, Value> =
                self.columns.iter().map(|column| column.name.clone()).zip(row.iter().cloned()).collect();
            let _ = write!(out, "{}", Value::Object(object));
        }
        out.push_str(if self.rows.is_empty() { "]\n" } else { "\n]\n" });
        out
    }

    /// A header and one line per row, quoted by RFC 4180.
    pub(crate) fn csv(&self) -> String {
        let mut out = String::new();
        let names = self.columns.iter().map(|column| csv_cell(&column.name));
        push_csv_line(&mut out, names);
        for row in &self.rows {
            push_csv_line(&mut out, row.iter().map(|value| csv_cell(&plain(value))));
        }
        out
    }
}

fn push_csv_line(out: &mut String, cells: impl Iterator<Item = String>) {
    for (i, cell) in cells.enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(&cell);
    }
    out.push_str("\r\n");
}

fn csv_cell(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// A value without quotes; nothing for null.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn human_cell((value, column): (&Value, &Column)) -> String {
    let number = value.as_u64();
    match (column.unit, number) {
        (_, _) if value.is_null() => "-".to_owned(),
        (Unit::Count, Some(count)) => units::format_count(count),
        (Unit::Bytes, Some(bytes)) => units::format_bytes(bytes),
        (Unit::Bytes, None) => {
            value.as_f64().map_or_else(|| plain(value), |bytes| units::format_bytes(bytes as u64))
        }
        (Unit::Millis, _) => value.as_f64().map_or_else(|| plain(value), units::format_millis),
        (Unit::Time, _) => value.as_i64().map_or_else(|| plain(value), units::format_time),
        _ => plain(value).replace(['\n', '\r', '\t'], " "),
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample() -> Listing {
        let mut listing = Listing::of(&[
            ("path", Unit::Plain),
            ("size_bytes", Unit::Bytes),
            ("rows", Unit::Count),
            ("snapshot_id", Unit::Id),
        ]);
        listing.push(vec![json!("a,\"b\".parquet"), json!(800 * 1024), json!(4_000), json!(12_345)]);
        listing.push(vec![json!("long/name.parquet"), json!(0), json!(7), Value::Null]);
        listing
    }

    #[test]
    fn people_get_aligned_columns_in_human_units() {
        let expected = "path                  size   rows  snapshot id\n\
                        a,\"b\".parquet      800 KiB  4,000        12345\n\
                        long/name.parquet      0 B      7            -\n";
        assert_eq!(sample().human(), expected);
    }

    #[test]
    fn programs_get_plain_numbers_as_json() {
        let rows: Value = serde_json::from_str(&sample().json()).unwrap();
        assert_eq!(rows[0]["size_bytes"], 819_200);
        assert_eq!(rows[1]["snapshot_id"], Value::Null);
        assert_eq!(Listing::of(&[("a", Unit::Plain)]).json(), "[]\n");
    }

    #[test]
    fn csv_quotes_what_needs_quotes() {
        let expected = "path,size_bytes,rows,snapshot_id\r\n\
                        \"a,\"\"b\"\".parquet\",819200,4000,12345\r\n\
                        long/name.parquet,0,7,\r\n";
        assert_eq!(sample().csv(), expected);
    }
}
