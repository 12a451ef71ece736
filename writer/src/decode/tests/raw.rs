//! Messages as they are: which columns they fill, and what is refused.

use super::super::{DecodeError, Format, RawDecoder, Tombstones};
use super::*;

fn raw(fields: &[(&str, &str)], options: &DecodeOptions) -> Result<RawDecoder, DecodeError> {
    let schema = schema(fields);
    let arrow = Arc::new(schema_to_arrow_schema(&schema).unwrap());
    RawDecoder::new(&schema, arrow, options)
}

fn message<'a>(key: Option<&'a [u8]>, payload: Option<&'a [u8]>) -> Message<'a> {
    Message { topic: "events", key, payload, ..Message::default() }
}

#[test]
fn keys_and_values_are_kept_as_they_are() {
    let mut decoder =
        raw(&[("value", "binary"), ("note", "long"), ("key", "string")], &DecodeOptions::default()).unwrap();
    let decoded = decoder
        .decode(&[
            message(Some(b"k"), Some(b"\x00\xff")),
            message(None, Some(b"")),
            message(Some(b"\xff"), Some(b"v")),
            message(Some(b"k"), None),
            message(Some("é".as_bytes()), Some(b"\xef\xbb\xbf{")),
        ])
        .unwrap();
    let found = outcomes(&decoded);
    let rejected = |code, path: &str| Err((code, path.to_owned()));
    let row = |text: &str| Ok(text.to_owned());
    assert_eq!(
        found,
        [
            row("00ff | null | k"),
            row(" | null | null"),
            rejected(RejectCode::InvalidUtf8, "key"),
            rejected(RejectCode::Tombstone, ""),
            row("efbbbf7b | null | é"),
        ]
    );
}

#[test]
fn a_tombstone_is_rejected_skipped_or_a_row_as_declared() {
    let outcome = |tombstones, fields: &[(&str, &str)]| {
        let options = DecodeOptions { tombstones, ..DecodeOptions::default() };
        let decoded = raw(fields, &options).unwrap().decode(&[message(Some(b"k"), None)]).unwrap();
        outcomes(&decoded).remove(0).map_err(|(code, path)| format!("{code} {path}"))
    };
    let columns = [("key", "string"), ("value", "binary")];
    assert_eq!(outcome(Tombstones::Reject, &columns), Err("tombstone ".to_owned()));
    assert_eq!(outcome(Tombstones::Skip, &columns), Ok("skipped".to_owned()));
    assert_eq!(outcome(Tombstones::Row, &columns), Ok("k | null".to_owned()));
    let required = [("key", "string"), ("value!", "binary")];
    assert_eq!(outcome(Tombstones::Row, &required), Err("null-in-required value".to_owned()));
}

#[test]
fn a_table_that_cannot_hold_raw_messages_is_refused() {
    let path = |fields: &[(&str, &str)]| match raw(fields, &DecodeOptions::default()) {
        Err(DecodeError::UnsupportedColumn { path, .. }) => path,
        other => panic!("{fields:?}: {other:?}"),
    };
    assert_eq!(path(&[("a", "string")]), "value");
    assert_eq!(path(&[("value", "long")]), "value");
    assert_eq!(path(&[("value", "binary"), ("n!", "long")]), "n");
}

#[test]
fn the_format_decides_which_decoder_is_made() {
    let schema = schema(&[("value", "binary")]);
    let payload = br#"{"value":null}"#;
    let values = |format: Format| {
        let arrow = Arc::new(schema_to_arrow_schema(&schema).unwrap());
        let options = DecodeOptions { format, ..DecodeOptions::default() };
        let decoded =
            super::super::decoder(&schema, arrow, &options).unwrap().decode(&messages(&[payload])).unwrap();
        outcomes(&decoded).remove(0).unwrap()
    };
    assert_eq!(values(Format::Json), "null");
    assert_eq!(values(Format::Raw), "7b2276616c7565223a6e756c6c7d");
}
