//! Numbers as text, exactly: never through a double on the way to anything but a double.

use super::RejectCode;
use super::fault::Problem;

const BEYOND: Problem = Problem::new(RejectCode::OutOfRange, "the number is beyond the range of the type");
const VANISHES: Problem =
    Problem::new(RejectCode::OutOfRange, "the number is not zero and too small for the type");
const FRACTION: Problem = Problem::new(RejectCode::NotAnInteger, "the number has a fraction");
const ROUNDED: Problem = Problem::new(RejectCode::PrecisionLost, "the type cannot hold the integer exactly");
const DIGITS: Problem =
    Problem::new(RejectCode::PrecisionLost, "the number has more fractional digits than the type");

/// A number of JSON's grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Number<'a> {
    /// The text, as it stands in the message.
    pub(crate) text: &'a str,
    /// The value, where it is written without fraction and exponent and fits.
    pub(crate) small: Option<i64>,
    /// Whether it is written without fraction and exponent.
    pub(crate) integer: bool,
}

impl<'a> Number<'a> {
    /// Reads the number that `text` begins with; `None` where it begins with none.
    /// The number ends where its text ends: what follows is for the caller to judge.
    pub(crate) fn prefix(text: &'a str) -> Option<Self> {
        let bytes = text.as_bytes();
        let negative = bytes.first() == Some(&b'-');
        let start = usize::from(negative);
        let (mut at, magnitude) = leading_digits(bytes, start);
        if at == start || (bytes[start] == b'0' && at > start + 1) {
            return None;
        }
        let mut integer = true;
        if bytes.get(at) == Some(&b'.') {
            integer = false;
            at = digits(bytes, at + 1)?;
        }
        if matches!(bytes.get(at), Some(b'e' | b'E')) {
            integer = false;
            at += 1;
            at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
            at = digits(bytes, at)?;
        }
        let small = if integer { signed(negative, magnitude) } else { None };
        Some(Self { text: &text[..at], small, integer })
    }

    /// The value as a signed integer of 64 bits. `1e3` and `2.0` are integers, `2.9` is not.
    pub(crate) fn to_i64(self) -> Result<i64, Problem> {
        if let Some(small) = self.small {
            return Ok(small);
        }
        let scaled = scale(self.text, 0).ok_or(BEYOND)?;
        if !scaled.exact {
            return Err(FRACTION);
        }
        i64::try_from(scaled.value).map_err(|_| BEYOND)
    }

    /// The value as a signed integer of 32 bits.
    pub(crate) fn to_i32(self) -> Result<i32, Problem> {
        i32::try_from(self.to_i64()?).map_err(|_| BEYOND)
    }

    /// The unscaled value of a decimal. `1.50` fits a scale of 1, since its value does.
    pub(crate) fn to_decimal(self, precision: u32, decimal_scale: u32) -> Result<i128, Problem> {
        let places = i64::from(decimal_scale);
        let scaled = scale(self.text, places).ok_or(BEYOND)?;
        let towards_zero = scaled.value + i128::from(!scaled.exact && scaled.value < 0);
        if towards_zero.unsigned_abs() >= 10u128.pow(precision.min(38)) {
            return Err(BEYOND);
        }
        if scaled.exact { Ok(scaled.value) } else { Err(DIGITS) }
    }

    /// The value times ten to the power of `places`, cut off towards minus infinity, and whether that was exact.
    pub(crate) fn to_scaled(self, places: i64) -> Result<Scaled, Problem> {
        scale(self.text, places).ok_or(BEYOND)
    }

    /// The nearest double. A number written as an integer must be held exactly.
    pub(crate) fn to_f64(self) -> Result<f64, Problem> {
        const EXACT: i64 = 1 << 53;
        match self.small {
            Some(small) if small != 0 && (-EXACT..=EXACT).contains(&small) => return Ok(small as f64),
            _ => {}
        }
        let value: f64 = self.text.parse().map_err(|_| BEYOND)?;
        self.check_float(value.is_infinite(), value == 0.0)?;
        if self.integer && format!("{value:.0}") != self.text {
            return Err(ROUNDED);
        }
        Ok(value)
    }

    /// The nearest float. A number written as an integer must be held exactly.
    pub(crate) fn to_f32(self) -> Result<f32, Problem> {
        let value: f32 = self.text.parse().map_err(|_| BEYOND)?;
        self.check_float(value.is_infinite(), value == 0.0)?;
        if self.integer && format!("{value:.0}") != self.text {
            return Err(ROUNDED);
        }
        Ok(value)
    }

    fn check_float(self, infinite: bool, zero: bool) -> Result<(), Problem> {
        if infinite {
            return Err(BEYOND);
        }
        if zero && has_significant_digit(self.text) { Err(VANISHES) } else { Ok(()) }
    }
}

/// The digits from `at` on: where they end, and their value where it has at most 19 digits.
fn leading_digits(bytes: &[u8], start: usize) -> (usize, Option<u64>) {
    let mut at = start;
    let mut value = 0u64;
    while let Some(digit) = bytes.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    // Nineteen digits are below 2^64.
    (at, (at - start <= 19).then_some(value))
}

/// The end of the digits from `at` on; `None` where there is none.
fn digits(bytes: &[u8], at: usize) -> Option<usize> {
    let count = bytes.get(at..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (count > 0).then_some(at + count)
}

fn signed(negative: bool, magnitude: Option<u64>) -> Option<i64> {
    let magnitude = magnitude?;
    if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

fn has_significant_digit(text: &str) -> bool {
    text.bytes().take_while(|byte| !matches!(byte, b'e' | b'E')).any(|byte| matches!(byte, b'1'..=b'9'))
}

/// A number times a power of ten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scaled {
    /// Cut off towards minus infinity.
    pub(crate) value: i128,
    /// Whether nothing was cut off.
    pub(crate) exact: bool,
}

/// `text` (of JSON's grammar) times ten to the power of `places`. `None` beyond 38 digits.
fn scale(text: &str, places: i64) -> Option<Scaled> {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], parse_exponent(&text[at + 1..])),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let significant = || whole.bytes().chain(fraction.bytes()).skip_while(|digit| *digit == b'0');
    let count = i64::try_from(significant().count()).ok()?;
    if count == 0 {
        return Some(Scaled { value: 0, exact: true });
    }
    // How many of the significant digits stand before the point, after scaling.
    let before_point = count
        .saturating_sub(i64::try_from(fraction.len()).ok()?)
        .saturating_add(exponent)
        .saturating_add(places);
    if before_point > 38 {
        return None;
    }
    let kept = usize::try_from(before_point.clamp(0, count)).ok()?;
    let mut value =
        significant().take(kept).fold(0i128, |value, digit| value * 10 + i128::from(digit - b'0'));
    if let Ok(zeros) = u32::try_from(before_point - count) {
        value *= 10i128.pow(zeros);
    }
    let exact = significant().skip(kept).all(|digit| digit == b'0');
    if negative {
        value = -value - i128::from(!exact);
    }
    Some(Scaled { value, exact })
}

/// An exponent, held within a range in which no sum overflows.
fn parse_exponent(text: &str) -> i64 {
    const LIMIT: i64 = 1_000_000_000_000;
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let magnitude =
        digits.bytes().fold(0i64, |value, digit| (value * 10 + i64::from(digit - b'0')).min(LIMIT));
    if negative { -magnitude } else { magnitude }
}
