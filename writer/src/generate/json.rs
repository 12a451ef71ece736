//! Writes JSON text.

use std::io::Write;

/// Appends text in quotes, escaped.
pub(super) fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            // Writing to a vector cannot fail.
            0..0x20 => drop(write!(out, "\\u{byte:04x}")),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

/// Appends an integer.
pub(super) fn write_int(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends an unscaled value with its decimals.
pub(super) fn write_decimal(unscaled: i64, scale: u32, out: &mut Vec<u8>) {
    if unscaled < 0 {
        out.push(b'-');
    }
    let unit = 10u64.pow(scale);
    let magnitude = unscaled.unsigned_abs();
    out.extend_from_slice(itoa::Buffer::new().format(magnitude / unit).as_bytes());
    if scale > 0 {
        out.push(b'.');
        write_padded(magnitude % unit, scale as usize, out);
    }
}

/// Appends a number with leading zeros up to `width` digits.
pub(super) fn write_padded(value: u64, width: usize, out: &mut Vec<u8>) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(value);
    out.extend(std::iter::repeat_n(b'0', width.saturating_sub(digits.len())));
    out.extend_from_slice(digits.as_bytes());
}

/// Appends a timestamp of RFC 3339 with microseconds, in quotes.
pub(super) fn write_timestamp(micros: i64, out: &mut Vec<u8>) {
    let days = micros.div_euclid(86_400_000_000);
    let of_day = micros.rem_euclid(86_400_000_000).unsigned_abs();
    let (year, month, day) = civil(days);
    out.push(b'"');
    for (value, width, after) in [
        (year, 4, b'-'),
        (month, 2, b'-'),
        (day, 2, b'T'),
        (of_day / 3_600_000_000, 2, b':'),
        (of_day / 60_000_000 % 60, 2, b':'),
        (of_day / 1_000_000 % 60, 2, b'.'),
        (of_day % 1_000_000, 6, b'Z'),
    ] {
        write_padded(value, width, out);
        out.push(after);
    }
    out.push(b'"');
}

/// Year, month and day of days since the epoch, for years from 0 on.
fn civil(days: i64) -> (u64, u64, u64) {
    let days = (days + 719_468).max(0).unsigned_abs();
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// Appends a UUID of version 4 in quotes.
pub(super) fn write_uuid(high: u64, low: u64, out: &mut Vec<u8>) {
    let bits = u128::from(high) << 64 | u128::from(low);
    let bits = bits & !(0xF << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    out.push(b'"');
    for digit in 0..32u32 {
        if matches!(digit, 8 | 12 | 16 | 20) {
            out.push(b'-');
        }
        out.push(b"0123456789abcdef"[(bits >> (124 - 4 * digit) & 0xF) as usize]);
    }
    out.push(b'"');
}
