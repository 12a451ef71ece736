//! The header `Retry-After` in its two forms (RFC 9110, section 10.2.3). Pure: the time is given.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// The longest wait that a server is granted: a mistaken date must not stop a writer for a day.
const MAX_WAIT: Duration = Duration::from_secs(300);

/// How long a server asks to wait: seconds, or until a date. `None` for what is neither.
pub(super) fn wait(header: &str, now: DateTime<Utc>) -> Option<Duration> {
    let header = header.trim();
    if let Ok(seconds) = header.parse::<u64>() {
        return Some(Duration::from_secs(seconds).min(MAX_WAIT));
    }
    let until = DateTime::parse_from_rfc2822(header).ok()?;
    let wait = until.signed_duration_since(now).to_std().unwrap_or_default();
    Some(wait.min(MAX_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_and_bounded() {
        let now = DateTime::parse_from_rfc3339("2026-11-30T22:00:00Z").unwrap().to_utc();
        for (header, seconds) in [
            ("0", Some(0)),
            (" 7 ", Some(7)),
            ("86400", Some(300)),
            ("Mon, 30 Nov 2026 22:00:30 GMT", Some(30)),
            ("Mon, 30 Nov 2026 21:00:00 GMT", Some(0)),
            ("Tue, 01 Dec 2026 22:00:00 GMT", Some(300)),
            ("soon", None),
            ("-1", None),
            ("", None),
        ] {
            assert_eq!(wait(header, now), seconds.map(Duration::from_secs), "{header}");
        }
    }
}
