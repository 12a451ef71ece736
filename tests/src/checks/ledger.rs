//! Arithmetic of the ledgers in a table's properties.

use anyhow::Result;
use firn_table::ledger::Ledger;
use iceberg::spec::TableMetadata;

/// Cursors for which rows + rejected + holes + gaps differ from the offsets that they cover.
pub fn cursor_problems(metadata: &TableMetadata) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for (branch, writer, ledger) in Ledger::read_all(metadata.properties())? {
        for (partition, cursor) in &ledger.cursors {
            let accounted = cursor.rows + cursor.rejected + cursor.holes + cursor.gaps;
            if i64::try_from(accounted) != Ok(cursor.next - cursor.start) {
                problems.push(format!("{writer} on {branch}, {partition:?}: {cursor:?} does not add up"));
            }
        }
    }
    Ok(problems)
}
