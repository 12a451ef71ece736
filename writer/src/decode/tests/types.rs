//! What a JSON value becomes in a column of a type, exactly.

use super::super::{
    BinaryText, ColumnOptions, DecodeOptions, NumberText, RejectCode, StringValues, TimestampNumbers,
    TimestampPrecision,
};
use super::*;
use RejectCode as C;

fn check(column_type: &str, options: ColumnOptions, cases: &[(&str, Result<&str, RejectCode>)]) {
    let options = DecodeOptions { defaults: options, ..DecodeOptions::default() };
    for (value, expected) in cases {
        let found = decode_value(column_type, &options, value);
        assert_eq!(found.as_deref(), expected.as_ref().map(|text| *text), "{value} into {column_type}");
    }
}

fn plain() -> ColumnOptions {
    ColumnOptions::default()
}

#[test]
fn booleans_are_true_and_false_alone() {
    check(
        "boolean",
        plain(),
        &[
            ("true", Ok("true")),
            ("false", Ok("false")),
            ("null", Ok("null")),
            ("\"yes\"", Err(C::WrongType)),
            ("\"1\"", Err(C::WrongType)),
            ("\"true\"", Err(C::WrongType)),
            ("1", Err(C::WrongType)),
            ("0", Err(C::WrongType)),
            ("[true]", Err(C::WrongType)),
            ("{}", Err(C::WrongType)),
            ("True", Err(C::MalformedJson)),
            ("tru", Err(C::MalformedJson)),
        ],
    );
}

#[test]
fn ints_hold_integers_of_32_bits() {
    check(
        "int",
        plain(),
        &[
            ("0", Ok("0")),
            ("-0", Ok("0")),
            ("2147483647", Ok("2147483647")),
            ("-2147483648", Ok("-2147483648")),
            ("2147483648", Err(C::OutOfRange)),
            ("-2147483649", Err(C::OutOfRange)),
            ("4294967297", Err(C::OutOfRange)),
            ("1e3", Ok("1000")),
            ("1.5e1", Ok("15")),
            ("2.0", Ok("2")),
            ("2.9", Err(C::NotAnInteger)),
            ("0.1", Err(C::NotAnInteger)),
            ("1e-1", Err(C::NotAnInteger)),
            ("1e99999999999999999999", Err(C::OutOfRange)),
            ("1e-99999999999999999999", Err(C::NotAnInteger)),
            ("0e99999999999999999999", Ok("0")),
            ("true", Err(C::WrongType)),
            ("\"7\"", Err(C::WrongType)),
        ],
    );
}

#[test]
fn longs_hold_integers_of_64_bits() {
    check(
        "long",
        plain(),
        &[
            ("9007199254740993", Ok("9007199254740993")),
            ("9223372036854775807", Ok("9223372036854775807")),
            ("-9223372036854775808", Ok("-9223372036854775808")),
            ("9223372036854775808", Err(C::OutOfRange)),
            ("-9223372036854775809", Err(C::OutOfRange)),
            ("18446744073709551616", Err(C::OutOfRange)),
            ("18446744073709551617", Err(C::OutOfRange)),
            ("100000000000000000000000000000000000000000000", Err(C::OutOfRange)),
            ("9.223372036854775807e18", Ok("9223372036854775807")),
            ("9223372036854775807.0", Ok("9223372036854775807")),
            ("9223372036854775807.5", Err(C::NotAnInteger)),
            ("2.9", Err(C::NotAnInteger)),
            ("-2.9", Err(C::NotAnInteger)),
            ("1e300", Err(C::OutOfRange)),
            ("NaN", Err(C::MalformedJson)),
            ("Infinity", Err(C::MalformedJson)),
        ],
    );
}

#[test]
fn doubles_are_nearest_to_decimals_and_equal_to_integers() {
    check(
        "double",
        plain(),
        &[
            ("0.1", Ok("0.1")),
            ("-0", Ok("-0.0")),
            ("0", Ok("0.0")),
            ("1e300", Ok("1e300")),
            ("1.7976931348623157e308", Ok("1.7976931348623157e308")),
            ("1e309", Err(C::OutOfRange)),
            ("-1e309", Err(C::OutOfRange)),
            ("5e-324", Ok("5e-324")),
            ("1e-400", Err(C::OutOfRange)),
            ("0e-400", Ok("0.0")),
            ("9007199254740992", Ok("9007199254740992.0")),
            ("9007199254740993", Err(C::PrecisionLost)),
            ("-9007199254740993", Err(C::PrecisionLost)),
            ("100000000000000000000", Ok("1e20")),
            ("100000000000000000001", Err(C::PrecisionLost)),
            ("9007199254740993.0", Ok("9007199254740992.0")),
            ("\"NaN\"", Err(C::WrongType)),
        ],
    );
}

#[test]
fn floats_are_nearest_to_decimals_and_equal_to_integers() {
    check(
        "float",
        plain(),
        &[
            ("0.1", Ok("0.1")),
            ("3.4028235e38", Ok("3.4028235e38")),
            ("1e300", Err(C::OutOfRange)),
            ("1e39", Err(C::OutOfRange)),
            ("1e-60", Err(C::OutOfRange)),
            ("16777216", Ok("16777216.0")),
            ("16777217", Err(C::PrecisionLost)),
            // The nearest float by way of the nearest double would be 1.0000001.
            ("1.00000005960464480", Ok("1.0000001")),
            ("1.00000005960464477", Ok("1.0")),
        ],
    );
}

#[test]
fn decimals_are_read_from_their_text() {
    check(
        "decimal(10,2)",
        plain(),
        &[
            ("12.34", Ok("12.34")),
            ("-12.34", Ok("-12.34")),
            ("12", Ok("12.00")),
            ("12.3", Ok("12.30")),
            ("12.340000", Ok("12.34")),
            ("1.234e1", Ok("12.34")),
            ("1234e-2", Ok("12.34")),
            ("99999999.99", Ok("99999999.99")),
            ("-99999999.99", Ok("-99999999.99")),
            ("100000000", Err(C::OutOfRange)),
            ("-100000000", Err(C::OutOfRange)),
            ("99999999.991", Err(C::PrecisionLost)),
            ("-99999999.999", Err(C::PrecisionLost)),
            ("123456789012345.675", Err(C::OutOfRange)),
            ("\"99999999999.999\"", Err(C::WrongType)),
            ("0.005", Err(C::PrecisionLost)),
            ("-0.005", Err(C::PrecisionLost)),
            ("0.00", Ok("0.00")),
            ("-0", Ok("0.00")),
            ("1e50", Err(C::OutOfRange)),
            ("1e-50", Err(C::PrecisionLost)),
            ("0.1", Ok("0.10")),
        ],
    );
    check(
        "decimal(38,0)",
        plain(),
        &[
            ("99999999999999999999999999999999999999", Ok("99999999999999999999999999999999999999")),
            ("-99999999999999999999999999999999999999", Ok("-99999999999999999999999999999999999999")),
            ("100000000000000000000000000000000000000", Err(C::OutOfRange)),
            ("18446744073709551615", Ok("18446744073709551615")),
        ],
    );
    check(
        "decimal(38,38)",
        plain(),
        &[
            ("0.99999999999999999999999999999999999999", Ok("0.99999999999999999999999999999999999999")),
            ("1", Err(C::OutOfRange)),
            ("1e-38", Ok("0.00000000000000000000000000000000000001")),
            ("1e-39", Err(C::PrecisionLost)),
        ],
    );
}

#[test]
fn numbers_in_text_are_read_where_that_is_declared() {
    let options = ColumnOptions { numbers: NumberText::Parse, ..plain() };
    check(
        "decimal(10,2)",
        options,
        &[
            ("\"12.34\"", Ok("12.34")),
            ("\"99999999999.999\"", Err(C::OutOfRange)),
            ("\" 1\"", Err(C::InvalidNumber)),
            ("\"1 \"", Err(C::InvalidNumber)),
            ("\"01\"", Err(C::InvalidNumber)),
            ("\"+1\"", Err(C::InvalidNumber)),
            ("\"1,5\"", Err(C::InvalidNumber)),
            ("\"\"", Err(C::InvalidNumber)),
            ("\"0x10\"", Err(C::InvalidNumber)),
            ("\"\\u0031\"", Ok("1.00")),
            ("7", Ok("7.00")),
        ],
    );
    check(
        "long",
        options,
        &[
            ("\"9007199254740993\"", Ok("9007199254740993")),
            ("\"2.9\"", Err(C::NotAnInteger)),
            ("\"NaN\"", Err(C::InvalidNumber)),
        ],
    );
    check("double", options, &[("\"1e3\"", Ok("1000.0")), ("\"inf\"", Err(C::InvalidNumber))]);
    check("boolean", options, &[("\"1\"", Err(C::WrongType))]);
    check("timestamptz", options, &[("\"1767312245\"", Err(C::InvalidTimestamp))]);
}

#[test]
fn text_is_kept_to_the_byte() {
    check(
        "string",
        plain(),
        &[
            ("\"\"", Ok("")),
            ("\"plain\"", Ok("plain")),
            (r#""\"\\\/\b\f\n\r\t""#, Ok("\"\\/\u{8}\u{c}\n\r\t")),
            (r#""a\u0000b""#, Ok("a\0b")),
            (r#""\u00e9\uD83D\uDE00z""#, Ok("é😀z")),
            ("\"é😀\u{2028}\u{7f}\"", Ok("é😀\u{2028}\u{7f}")),
            (r#""\uD800""#, Err(C::LoneSurrogate)),
            (r#""\uDC00\uD800""#, Err(C::LoneSurrogate)),
            (r#""\uD800\u0041""#, Err(C::LoneSurrogate)),
            (r#""\uD800A""#, Err(C::LoneSurrogate)),
            ("1", Err(C::WrongType)),
            ("true", Err(C::WrongType)),
            ("[]", Err(C::WrongType)),
            ("{\"a\":1}", Err(C::WrongType)),
        ],
    );
}

#[test]
fn text_of_every_length_around_the_scanners_steps_is_whole() {
    for length in 0..200 {
        for special in ["", "\\n", "é"] {
            let text = format!("{}{special}{}", "x".repeat(length), "y".repeat(length / 3));
            let expected = text.replace("\\n", "\n");
            let found = decode_value("string", &DecodeOptions::default(), &format!("\"{text}\""));
            assert_eq!(found.as_deref(), Ok(expected.as_str()));
        }
        let broken = format!("\"{}\u{1}\"", "x".repeat(length));
        let found = decode_value("string", &DecodeOptions::default(), &broken);
        assert_eq!(found, Err(C::MalformedJson), "control character after {length}");
    }
}

#[test]
fn other_values_are_json_text_where_that_is_declared() {
    let options = ColumnOptions { strings: StringValues::JsonText, ..plain() };
    check(
        "string",
        options,
        &[
            ("\"text\"", Ok("text")),
            ("1.50", Ok("1.50")),
            ("true", Ok("true")),
            ("[1, {\"a\" : null}]", Ok("[1, {\"a\" : null}]")),
            ("{\"a\":\"b\"}", Ok("{\"a\":\"b\"}")),
            ("null", Ok("null")),
            ("[1,]", Err(C::MalformedJson)),
        ],
    );
}

#[test]
fn timestamps_with_zone_are_points_in_time() {
    check(
        "timestamptz",
        plain(),
        &[
            ("\"2026-01-02T03:04:05.123456+00:00\"", Ok("2026-01-02T03:04:05.123456Z")),
            ("\"2026-01-02T03:04:05Z\"", Ok("2026-01-02T03:04:05Z")),
            ("\"2026-01-02t03:04:05z\"", Ok("2026-01-02T03:04:05Z")),
            ("\"2026-01-02 03:04:05Z\"", Ok("2026-01-02T03:04:05Z")),
            ("\"2026-01-02T03:04:05+05:30\"", Ok("2026-01-01T21:34:05Z")),
            ("\"2026-01-02T03:04:05-00:00\"", Ok("2026-01-02T03:04:05Z")),
            ("\"1969-12-31T23:59:59.999999Z\"", Ok("1969-12-31T23:59:59.999999Z")),
            ("\"0001-01-01T00:00:00Z\"", Ok("0001-01-01T00:00:00Z")),
            ("\"9999-12-31T23:59:59.999999Z\"", Ok("9999-12-31T23:59:59.999999Z")),
            ("\"2026-01-02T03:04:05.1Z\"", Ok("2026-01-02T03:04:05.100Z")),
            ("\"2026-01-02T03:04:05.123456000Z\"", Ok("2026-01-02T03:04:05.123456Z")),
            ("\"2026-01-02T03:04:05.1234567Z\"", Err(C::PrecisionLost)),
            ("\"2026-01-02 03:04:05\"", Err(C::ZoneMissing)),
            ("\"2026-01-02T03:04:05\"", Err(C::ZoneMissing)),
            ("\"2026-01-02T03:04:05+0000\"", Err(C::InvalidTimestamp)),
            ("\"2026-01-02T03:04:05+05\"", Err(C::InvalidTimestamp)),
            ("\"2026-01-02T03:04:05+24:00\"", Err(C::InvalidTimestamp)),
            ("\"2026-01-02T03:04:05 UTC\"", Err(C::InvalidTimestamp)),
            ("\"2026-01-02T03:04Z\"", Err(C::InvalidTimestamp)),
            ("\"2026-01-02T24:00:00Z\"", Err(C::InvalidTimestamp)),
            ("\"2016-12-31T23:59:60Z\"", Err(C::InvalidTimestamp)),
            ("\"2026-02-29T00:00:00Z\"", Err(C::InvalidTimestamp)),
            ("\"2026-13-01T00:00:00Z\"", Err(C::InvalidTimestamp)),
            ("\"2026-00-01T00:00:00Z\"", Err(C::InvalidTimestamp)),
            ("\"2026-04-31T00:00:00Z\"", Err(C::InvalidTimestamp)),
            ("\"2026-01-02T03:04:05.Z\"", Err(C::InvalidTimestamp)),
            ("\"+12026-01-02T03:04:05Z\"", Err(C::InvalidTimestamp)),
            ("\"2026-01-02\"", Err(C::InvalidTimestamp)),
            ("\"\"", Err(C::InvalidTimestamp)),
            ("\"2026-01-02T03:04:05Zé\"", Err(C::InvalidTimestamp)),
            ("1767312245", Err(C::UndeclaredUnit)),
            ("true", Err(C::WrongType)),
        ],
    );
    check("timestamptz", plain(), &[("\"2024-02-29T00:00:00Z\"", Ok("2024-02-29T00:00:00Z"))]);
}

#[test]
fn timestamps_without_zone_have_none() {
    check(
        "timestamp",
        plain(),
        &[
            ("\"2026-01-02T03:04:05.123456\"", Ok("2026-01-02T03:04:05.123456")),
            ("\"2026-01-02 03:04:05\"", Ok("2026-01-02T03:04:05")),
            ("\"2026-01-02T03:04:05Z\"", Err(C::ZoneForbidden)),
            ("\"2026-01-02T03:04:05+01:00\"", Err(C::ZoneForbidden)),
            ("\"2026-01-02T23:59:60\"", Err(C::InvalidTimestamp)),
            ("5", Err(C::UndeclaredUnit)),
        ],
    );
}

#[test]
fn numbers_are_timestamps_of_the_declared_unit() {
    let unit = |timestamp_numbers| ColumnOptions { timestamp_numbers, ..plain() };
    check(
        "timestamptz",
        unit(TimestampNumbers::Seconds),
        &[
            ("1767312245", Ok("2026-01-02T00:04:05Z")),
            ("1767312245.123456", Ok("2026-01-02T00:04:05.123456Z")),
            ("1767312245.1234567", Err(C::PrecisionLost)),
            ("1.767312245e9", Ok("2026-01-02T00:04:05Z")),
            ("-1", Ok("1969-12-31T23:59:59Z")),
            ("1e15", Err(C::OutOfRange)),
        ],
    );
    check(
        "timestamptz",
        unit(TimestampNumbers::Millis),
        &[
            ("1767312245123", Ok("2026-01-02T00:04:05.123Z")),
            ("1767312245123.4", Ok("2026-01-02T00:04:05.123400Z")),
        ],
    );
    check(
        "timestamp",
        unit(TimestampNumbers::Micros),
        &[
            ("1767312245123456", Ok("2026-01-02T00:04:05.123456")),
            ("0.5", Err(C::PrecisionLost)),
            ("9223372036854775808", Err(C::OutOfRange)),
        ],
    );
    check(
        "timestamptz",
        unit(TimestampNumbers::Nanos),
        &[
            ("1767312245123456000", Ok("2026-01-02T00:04:05.123456Z")),
            ("1767312245123456789", Err(C::PrecisionLost)),
        ],
    );
    check(
        "timestamptz_ns",
        unit(TimestampNumbers::Nanos),
        &[
            ("1767312245123456789", Ok("2026-01-02T00:04:05.123456789Z")),
            ("\"2026-01-02T00:04:05.123456789Z\"", Ok("2026-01-02T00:04:05.123456789Z")),
            ("\"2262-04-11T23:47:16.854775807Z\"", Ok("2262-04-11T23:47:16.854775807Z")),
            ("\"2262-04-11T23:47:16.854775808Z\"", Err(C::OutOfRange)),
            ("\"9999-01-01T00:00:00Z\"", Err(C::OutOfRange)),
        ],
    );
}

#[test]
fn digits_beyond_the_unit_are_cut_off_towards_the_past_where_that_is_declared() {
    let options = ColumnOptions {
        timestamp_precision: TimestampPrecision::Truncate,
        timestamp_numbers: TimestampNumbers::Nanos,
        ..plain()
    };
    check(
        "timestamptz",
        options,
        &[
            ("\"2026-01-02T03:04:05.1234569Z\"", Ok("2026-01-02T03:04:05.123456Z")),
            ("\"1969-12-31T23:59:59.9999999Z\"", Ok("1969-12-31T23:59:59.999999Z")),
            ("1999", Ok("1970-01-01T00:00:00.000001Z")),
            ("-1", Ok("1969-12-31T23:59:59.999999Z")),
        ],
    );
    check("time", options, &[("\"03:04:05.1234569\"", Ok("03:04:05.123456"))]);
}

#[test]
fn dates_times_and_uuids_have_one_form() {
    check(
        "date",
        plain(),
        &[
            ("\"2026-01-02\"", Ok("2026-01-02")),
            ("\"1969-12-31\"", Ok("1969-12-31")),
            ("\"0001-01-01\"", Ok("0001-01-01")),
            ("\"2000-02-29\"", Ok("2000-02-29")),
            ("\"1900-02-29\"", Err(C::InvalidDate)),
            ("\"2026-1-2\"", Err(C::InvalidDate)),
            ("\"20260102\"", Err(C::InvalidDate)),
            ("\"2026-01-02T00:00:00Z\"", Err(C::InvalidDate)),
            ("20455", Err(C::WrongType)),
        ],
    );
    check(
        "time",
        plain(),
        &[
            ("\"03:04:05\"", Ok("03:04:05")),
            ("\"23:59:59.999999\"", Ok("23:59:59.999999")),
            ("\"00:00:00.000001\"", Ok("00:00:00.000001")),
            ("\"23:59:60\"", Err(C::InvalidTime)),
            ("\"24:00:00\"", Err(C::InvalidTime)),
            ("\"03:04\"", Err(C::InvalidTime)),
            ("\"03:04:05Z\"", Err(C::InvalidTime)),
            ("\"03:04:05.1234567\"", Err(C::PrecisionLost)),
            ("3", Err(C::WrongType)),
        ],
    );
    check(
        "uuid",
        plain(),
        &[
            ("\"f79c3e09-677c-4bbd-a479-3f349cb785e7\"", Ok("f79c3e09677c4bbda4793f349cb785e7")),
            ("\"F79C3E09-677C-4BBD-A479-3F349CB785E7\"", Ok("f79c3e09677c4bbda4793f349cb785e7")),
            ("\"f79c3e09677c4bbda4793f349cb785e7\"", Err(C::InvalidUuid)),
            ("\"{f79c3e09-677c-4bbd-a479-3f349cb785e7}\"", Err(C::InvalidUuid)),
            ("\"f79c3e09-677c-4bbd-a479-3f349cb785eg\"", Err(C::InvalidUuid)),
            ("\"f79c3e0-9677c-4bbd-a479-3f349cb785e7\"", Err(C::InvalidUuid)),
            ("\"éééééééééééééééééé\"", Err(C::InvalidUuid)),
            ("1", Err(C::WrongType)),
        ],
    );
}

#[test]
fn bytes_are_read_from_text_of_a_declared_encoding() {
    let encoded = |binary| ColumnOptions { binary, ..plain() };
    check(
        "binary",
        plain(),
        &[
            ("\"hello\"", Err(C::UndeclaredEncoding)),
            ("\"\"", Err(C::UndeclaredEncoding)),
            ("[104]", Err(C::WrongType)),
            ("1", Err(C::WrongType)),
        ],
    );
    check(
        "binary",
        encoded(BinaryText::Base64),
        &[
            ("\"\"", Ok("")),
            ("\"aGVsbG8=\"", Ok("68656c6c6f")),
            ("\"aGVsbA==\"", Ok("68656c6c")),
            ("\"aGVs\"", Ok("68656c")),
            ("\"+/+/\"", Ok("fbffbf")),
            ("\"-_-_\"", Err(C::InvalidEncoding)),
            ("\"aGVsbG8\"", Err(C::InvalidEncoding)),
            ("\"aGVsbG9=\"", Err(C::InvalidEncoding)),
            ("\"aGVsbB==\"", Err(C::InvalidEncoding)),
            ("\"a===\"", Err(C::InvalidEncoding)),
            ("\"aGVs\\n\"", Err(C::InvalidEncoding)),
            ("\"aG=sbG8=\"", Err(C::InvalidEncoding)),
        ],
    );
    check(
        "binary",
        encoded(BinaryText::Hex),
        &[("\"00fF\"", Ok("00ff")), ("\"0\"", Err(C::InvalidEncoding)), ("\"0x\"", Err(C::InvalidEncoding))],
    );
    check("binary", encoded(BinaryText::Utf8), &[("\"h\\u00e9\"", Ok("68c3a9"))]);
    check(
        "fixed[2]",
        encoded(BinaryText::Hex),
        &[
            ("\"0102\"", Ok("0102")),
            ("\"01\"", Err(C::WrongLength)),
            ("\"010203\"", Err(C::WrongLength)),
            ("\"zz\"", Err(C::InvalidEncoding)),
            ("null", Ok("null")),
        ],
    );
}
