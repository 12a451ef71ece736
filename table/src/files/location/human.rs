//! Partition values as Java's `Transform.toHumanString` writes them.

use iceberg::spec::{Literal, PrimitiveLiteral, PrimitiveType, Transform};
use uuid::Uuid;

use crate::files::transform::civil_from_days;

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// The value in words. `source` is the type of the transform's source column, where it is known.
pub(super) fn human(transform: Transform, source: Option<&PrimitiveType>, value: &Literal) -> String {
    let Literal::Primitive(value) = value else { return format!("{value:?}") };
    match (transform, value) {
        (Transform::Year, PrimitiveLiteral::Int(years)) => format!("{:04}", 1970 + years),
        (Transform::Month, PrimitiveLiteral::Int(months)) => {
            format!("{:04}-{:02}", 1970 + months.div_euclid(12), 1 + months.rem_euclid(12))
        }
        (Transform::Day, PrimitiveLiteral::Int(days)) => date(*days),
        (Transform::Hour, PrimitiveLiteral::Int(hours)) => {
            format!("{}-{:02}", date(hours.div_euclid(24)), hours.rem_euclid(24))
        }
        _ => plain(source, value),
    }
}

fn plain(source: Option<&PrimitiveType>, value: &PrimitiveLiteral) -> String {
    match (value, source) {
        (PrimitiveLiteral::Boolean(value), _) => value.to_string(),
        (PrimitiveLiteral::Int(days), Some(PrimitiveType::Date)) => date(*days),
        (PrimitiveLiteral::Int(value), _) => value.to_string(),
        (PrimitiveLiteral::Long(micros), Some(PrimitiveType::Time)) => time(*micros * 1_000),
        (PrimitiveLiteral::Long(micros), Some(PrimitiveType::Timestamp)) => timestamp(*micros, 1_000),
        (PrimitiveLiteral::Long(micros), Some(PrimitiveType::Timestamptz)) => timestamp(*micros, 1_000) + "Z",
        (PrimitiveLiteral::Long(nanos), Some(PrimitiveType::TimestampNs)) => timestamp(*nanos, 1),
        (PrimitiveLiteral::Long(nanos), Some(PrimitiveType::TimestamptzNs)) => timestamp(*nanos, 1) + "Z",
        (PrimitiveLiteral::Long(value), _) => value.to_string(),
        (PrimitiveLiteral::Float(value), _) => java_float(value.0.to_string(), f64::from(value.0)),
        (PrimitiveLiteral::Double(value), _) => java_float(value.0.to_string(), value.0),
        (PrimitiveLiteral::String(value), _) => value.clone(),
        (PrimitiveLiteral::UInt128(value), _) => Uuid::from_u128(*value).to_string(),
        (PrimitiveLiteral::Binary(value), _) => base64(value),
        (PrimitiveLiteral::Int128(value), Some(PrimitiveType::Decimal { scale, .. })) => {
            decimal(*value, *scale)
        }
        (PrimitiveLiteral::Int128(value), _) => value.to_string(),
        (PrimitiveLiteral::AboveMax | PrimitiveLiteral::BelowMin, _) => format!("{value:?}"),
    }
}

fn date(days: i32) -> String {
    let (year, month, day) = civil_from_days(days);
    format!("{year:04}-{month:02}-{day:02}")
}

/// `LocalTime.toString`: seconds only where there are any, and fractions in groups of three digits.
fn time(nanos: i64) -> String {
    let (seconds, fraction) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    let mut text = format!("{:02}:{:02}", seconds / 3_600, seconds / 60 % 60);
    if seconds % 60 > 0 || fraction > 0 {
        text += &format!(":{:02}", seconds % 60);
    }
    if fraction > 0 {
        text += &match (fraction % 1_000_000, fraction % 1_000) {
            (0, _) => format!(".{:03}", fraction / 1_000_000),
            (_, 0) => format!(".{:06}", fraction / 1_000),
            _ => format!(".{fraction:09}"),
        };
    }
    text
}

/// `LocalDateTime.toString` of a number of units of `unit_nanos` since 1970.
fn timestamp(value: i64, unit_nanos: i64) -> String {
    let units_per_day = SECONDS_PER_DAY * MICROS_PER_SECOND * 1_000 / unit_nanos;
    // A day of 64-bit microseconds fits 32 bits.
    let days = value.div_euclid(units_per_day) as i32;
    format!("{}T{}", date(days), time(value.rem_euclid(units_per_day) * unit_nanos))
}

/// `BigDecimal.toString`: plain, or scientific where the exponent is below -6.
fn decimal(unscaled: i128, scale: u32) -> String {
    if scale == 0 {
        return unscaled.to_string();
    }
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = unscaled.unsigned_abs().to_string();
    let scale = scale as usize;
    let exponent = digits.len() as i64 - 1 - scale as i64;
    if exponent < -6 {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        return format!("{sign}{first}{point}{rest}E{exponent}");
    }
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

/// `Double.toString` from the shortest digits: a point always, an exponent outside of 10^-3 to 10^7.
fn java_float(shortest: String, value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity".to_owned() } else { "-Infinity".to_owned() };
    }
    let size = value.abs();
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        return if shortest.contains('.') { shortest } else { shortest + ".0" };
    }
    let (sign, digits) = shortest.strip_prefix('-').map_or(("", shortest.as_str()), |rest| ("-", rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    let significant = all.trim_start_matches('0');
    let exponent = whole.len() as i64 - 1 - (all.len() - significant.len()) as i64;
    let significant = significant.trim_end_matches('0');
    let (first, rest) = significant.split_at(1);
    format!("{sign}{first}.{}E{exponent}", if rest.is_empty() { "0" } else { rest })
}

/// The alphabet of RFC 4648 with padding.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut group = [0u8; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        for place in 0..4 {
            if place > chunk.len() {
                text.push('=');
            } else {
                let index = (bits >> (18 - 6 * place)) & 0x3f;
                text.push(char::from(ALPHABET[index as usize]));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests;
