use super::*;

#[test]
fn sizes_of_both_kinds_are_read() {
    let cases = [
        ("0", 0),
        ("1048576", 1 << 20),
        ("128 MiB", 128 << 20),
        ("128mib", 128 << 20),
        ("1.5 GiB", 3 << 29),
        ("64 kB", 64_000),
        ("2 TB", 2_000_000_000_000),
        ("1_024 B", 1_024),
    ];
    for (text, expected) in cases {
        assert_eq!(parse_bytes(text), Ok(expected), "{text}");
    }
}

#[test]
fn sizes_that_are_ambiguous_or_no_sizes_are_refused() {
    assert_eq!(parse_bytes("128M").unwrap_err(), "`M` can mean MiB (1024) or MB (1000); write one of them");
    for text in ["", "MiB", "-1 MiB", "5 apples", "1e400 GiB", "99999999999 TiB"] {
        assert!(parse_bytes(text).is_err(), "{text}");
    }
}

#[test]
fn durations_are_read_in_one_or_several_units() {
    let cases = [
        ("500ms", Duration::from_millis(500)),
        ("5s", Duration::from_secs(5)),
        ("0.5 s", Duration::from_millis(500)),
        ("1h 30m", Duration::from_secs(5_400)),
        ("1h30m", Duration::from_secs(5_400)),
        ("2 d", Duration::from_secs(172_800)),
        ("250us", Duration::from_micros(250)),
    ];
    for (text, expected) in cases {
        assert_eq!(parse_duration(text), Ok(expected), "{text}");
    }
}

#[test]
fn a_duration_without_unit_is_refused_with_an_example() {
    assert_eq!(parse_duration("5").unwrap_err(), "`5` has no unit; write for instance \"5s\" or \"5ms\"");
    for text in ["", "s", "5 parsecs", "-1s", "1s 2"] {
        assert!(parse_duration(text).is_err(), "{text}");
    }
}

#[test]
fn times_are_absolute_or_an_age() {
    let now = DateTime::parse_from_rfc3339("2026-03-10T12:00:00Z").unwrap().with_timezone(&Utc);
    assert_eq!(parse_time("2026-01-02", now).unwrap().to_rfc3339(), "2026-01-02T00:00:00+00:00");
    assert_eq!(
        parse_time("2026-01-02T03:04:05+01:00", now).unwrap().to_rfc3339(),
        "2026-01-02T02:04:05+00:00"
    );
    assert_eq!(parse_time("5d", now).unwrap().to_rfc3339(), "2026-03-05T12:00:00+00:00");
    assert!(parse_time("yesterday", now).is_err());
}

#[test]
fn numbers_are_written_with_three_significant_digits() {
    let sizes = [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "0.98 KiB"),
        (1_024, "1.00 KiB"),
        (130_023_424, "124 MiB"),
        (1_048_064, "1.00 MiB"),
        (u64::MAX, "16777216 TiB"),
    ];
    for (bytes, expected) in sizes {
        assert_eq!(format_bytes(bytes), expected);
    }
    let durations = [
        (250, "250 µs"),
        (1_240, "1.24 ms"),
        (350_000, "350 ms"),
        (1_240_000, "1.24 s"),
        (59_960_000, "1 m 0 s"),
        (200_000_000, "3 m 20 s"),
        (90_000_000_000, "1 d 1 h"),
    ];
    for (micros, expected) in durations {
        assert_eq!(format_duration(Duration::from_micros(micros)), expected);
    }
    assert_eq!(format_count(0), "0");
    assert_eq!(format_count(999), "999");
    assert_eq!(format_count(4_000), "4,000");
    assert_eq!(format_count(1_234_567), "1,234,567");
}

#[test]
fn what_is_written_is_read_back() {
    for bytes in [1_u64 << 10, 5 << 20, 3 << 30] {
        assert_eq!(parse_bytes(&format_bytes(bytes)), Ok(bytes));
    }
}
