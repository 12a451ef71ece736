//! Postgres's SQLSTATEs.
//!
//! An ERROR in reply to a statement means that its transaction was rolled back. A FATAL that ends the session is
//! another matter: it may stem from a pooler between us and the server, whose server had committed already. Such codes
//! say nothing about the statement.

use super::Verdict;

/// What a SQLSTATE in reply to a statement, or to a connection, says.
pub(super) fn verdict(code: &str) -> Verdict {
    match code {
        "40001" | "40P01" => {
            Verdict::NotApplied("the catalog database gave another transaction the right of way")
        }
        "55P03" => Verdict::NotApplied("another session holds the table's row in the catalog database"),
        "57014" => Verdict::NotApplied("the catalog database cancelled the statement: it took too long"),
        "57P03" | "53300" => Verdict::NotApplied("the catalog database takes no connection now"),
        "25006" => Verdict::Rejected(
            "the catalog database is read-only (a standby?): name the one that takes writes",
        ),
        "28P01" | "28000" => Verdict::Rejected("the catalog database refused the user or the password"),
        "3D000" => Verdict::Rejected("the server has no such database: create it, or name another"),
        "42501" => Verdict::Rejected(
            "the user may not do this in the catalog database: grant SELECT, INSERT, UPDATE and DELETE on its tables",
        ),
        _ => by_class(code),
    }
}

fn by_class(code: &str) -> Verdict {
    match code.get(..2).unwrap_or_default() {
        // Out of disk, memory or slots.
        "53" => Verdict::NotApplied("the catalog database is short of resources"),
        // Values that do not fit, constraints, statements that do not fit the tables.
        "22" | "23" | "42" => Verdict::Rejected(
            "the catalog database refused the statement: its tables are not those of a catalog",
        ),
        _ => Verdict::Unknown("the catalog database failed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_codes_of_a_rolled_back_statement_are_definite() {
        for code in ["40001", "40P01", "55P03", "57014", "53100", "53200", "57P03"] {
            assert!(matches!(verdict(code), Verdict::NotApplied(_)), "{code}");
        }
        for code in ["42501", "42P01", "42703", "22001", "23502", "25006", "28P01", "3D000"] {
            assert!(matches!(verdict(code), Verdict::Rejected(_)), "{code}");
        }
        for code in ["57P01", "57P02", "57P05", "08006", "08P01", "58030", "XX000", "40003", "", "4"] {
            assert!(matches!(verdict(code), Verdict::Unknown(_)), "{code}");
        }
    }
}
