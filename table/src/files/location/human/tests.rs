use super::*;

fn long(source: PrimitiveType, value: i64) -> String {
    human(Transform::Identity, Some(&source), &Literal::long(value))
}

#[test]
fn times_are_written_as_java_writes_them() {
    let int = |transform, value| human(transform, Some(&PrimitiveType::Timestamp), &Literal::int(value));
    assert_eq!(int(Transform::Year, 56), "2026");
    assert_eq!(int(Transform::Year, -1), "1969");
    assert_eq!(int(Transform::Month, 672), "2026-01");
    assert_eq!(int(Transform::Month, -1), "1969-12");
    assert_eq!(int(Transform::Day, 20_455), "2026-01-02");
    assert_eq!(int(Transform::Day, -1), "1969-12-31");
    assert_eq!(int(Transform::Hour, 20_455 * 24 + 3), "2026-01-02-03");
    assert_eq!(int(Transform::Hour, -1), "1969-12-31-23");
}

#[test]
fn identity_times_leave_out_what_is_zero() {
    assert_eq!(long(PrimitiveType::Timestamp, 1_767_323_040_000_000), "2026-01-02T03:04");
    assert_eq!(long(PrimitiveType::Timestamptz, 1_767_323_045_000_000), "2026-01-02T03:04:05Z");
    assert_eq!(long(PrimitiveType::Timestamp, 1_767_323_040_120_000), "2026-01-02T03:04:00.120");
    assert_eq!(long(PrimitiveType::Timestamp, -1), "1969-12-31T23:59:59.999999");
    assert_eq!(long(PrimitiveType::TimestampNs, -1), "1969-12-31T23:59:59.999999999");
    assert_eq!(long(PrimitiveType::Time, 81_068_000_000), "22:31:08");
    let date = human(Transform::Identity, Some(&PrimitiveType::Date), &Literal::date(-1));
    assert_eq!(date, "1969-12-31");
}

#[test]
fn decimals_are_written_as_big_decimal_writes_them() {
    assert_eq!(decimal(1_420, 2), "14.20");
    assert_eq!(decimal(-5, 2), "-0.05");
    assert_eq!(decimal(0, 2), "0.00");
    assert_eq!(decimal(7, 0), "7");
    assert_eq!(decimal(123, 9), "1.23E-7");
    assert_eq!(decimal(1, 7), "1E-7");
    assert_eq!(decimal(1, 6), "0.000001");
}

#[test]
fn floats_are_written_as_java_writes_them() {
    let double = |value: f64| human(Transform::Identity, None, &Literal::double(value));
    assert_eq!(double(1.0), "1.0");
    assert_eq!(double(-0.0), "-0.0");
    assert_eq!(double(0.1), "0.1");
    assert_eq!(double(1e7), "1.0E7");
    assert_eq!(double(1.25e-5), "1.25E-5");
    assert_eq!(double(-123_456_789.5), "-1.234567895E8");
    assert_eq!(double(f64::NAN), "NaN");
    assert_eq!(double(f64::NEG_INFINITY), "-Infinity");
    assert_eq!(human(Transform::Identity, None, &Literal::float(1.5f32)), "1.5");
}

#[test]
fn bytes_are_base64_and_uuids_have_dashes() {
    let bytes = |value: &[u8]| {
        human(Transform::Identity, None, &Literal::Primitive(PrimitiveLiteral::Binary(value.to_vec())))
    };
    assert_eq!(bytes(b""), "");
    assert_eq!(bytes(b"f"), "Zg==");
    assert_eq!(bytes(b"fo"), "Zm8=");
    assert_eq!(bytes(b"foo"), "Zm9v");
    assert_eq!(bytes(&[0xfb, 0xff]), "+/8=");
    let id = Uuid::parse_str("f79c3e09-677c-4bbd-a479-3f349cb785e7").unwrap();
    assert_eq!(human(Transform::Identity, None, &Literal::uuid(id)), id.to_string());
}
