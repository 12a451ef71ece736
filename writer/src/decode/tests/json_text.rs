//! JSON as RFC 8259 has it, by kind of construct: what a parser must accept is accepted, what it must refuse is rejected,
//! in fields that the table knows and in those that it passes over.

use super::super::json::cursor::check;
use super::super::{ColumnOptions, StringValues};
use super::*;

const VALUES: &[&str] = &[
    "0",
    "-0",
    "7",
    "-7",
    "10",
    "1.5",
    "-1.5",
    "0.0",
    "1e1",
    "1E1",
    "1e+1",
    "1e-1",
    "1.25E-10",
    "0e0",
    "0E+1",
    "123456789012345678901234567890",
    "1e999",
    "0.00000000000000000000000000000000000000000000000001",
    "true",
    "false",
    "null",
    "\"\"",
    "\"a\"",
    "\" \"",
    "\"\u{7f}\"",
    "\"\u{80}\"",
    "\"\u{feff}\"",
    "\"\u{10ffff}\"",
    r#""\"""#,
    r#""\\""#,
    r#""\/""#,
    r#""\b\f\n\r\t""#,
    r#""\u0000""#,
    r#""\u001f""#,
    r#""\u00E9""#,
    r#""\ud834\uDD1E""#,
    r#""\uDBFF\uDFFF""#,
    r#""\uFFFF""#,
    r#""\\u0041""#,
    r#""\\n""#,
    "\"'\"",
    "\"//\"",
    "\"/* */\"",
    "\"{}[],:\"",
    "[]",
    "[ ]",
    "[\t\n\r ]",
    "[1]",
    "[1,2]",
    "[ 1 , 2 ]",
    "[[]]",
    "[[],[]]",
    "[null,true,\"a\",1,{},[]]",
    "{}",
    "{ }",
    "{\"a\":1}",
    "{ \"a\" : 1 }",
    "{\"a\":1,\"b\":2}",
    "{\"\":0}",
    "{\"a\":{\"a\":{}}}",
    "{\"a\":[{}]}",
    "{\"\\u0061\":1}",
    "{\"a\":1,\"a\":1}",
];

const NO_VALUES: &[&str] = &[
    "",
    " ",
    "01",
    "-01",
    "00",
    "-",
    "+1",
    "1.",
    ".5",
    "-.5",
    "1.e1",
    "1e",
    "1e+",
    "1e1.5",
    "1e1e1",
    "0x10",
    "1_000",
    "1,5",
    "--1",
    "- 1",
    "1 2",
    "Infinity",
    "-Infinity",
    "NaN",
    "nan",
    "1f",
    "1L",
    "\u{ff11}",
    "0b1",
    "1.5.5",
    "1eE2",
    "True",
    "TRUE",
    "tru",
    "truee",
    "nul",
    "nulll",
    "fals",
    "undefined",
    "nil",
    "None",
    "a",
    "'a'",
    "\"a",
    "a\"",
    "\"\\\"",
    "\"\n\"",
    "\"\t\"",
    "\"\u{0}\"",
    "\"\u{1f}\"",
    r#""\x41""#,
    r#""\'""#,
    r#""\0""#,
    r#""\a""#,
    r#""\u""#,
    r#""\u12""#,
    r#""\u12G4""#,
    r#""\U0041""#,
    r#""\u{41}""#,
    r#""\ ""#,
    "\"\\\u{e9}\"",
    r#""\uD800""#,
    r#""\uDFFF""#,
    r#""\uD800\n""#,
    r#""\uD800\uD800""#,
    r#""\uD83D\u""#,
    "[",
    "]",
    "[1",
    "[1,",
    "[1,]",
    "[,1]",
    "[,]",
    "[1,,2]",
    "[1 2]",
    "[1:2]",
    "[1}",
    "[1]]",
    "[]]",
    "[\"a\"",
    "[a]",
    "{",
    "}",
    "{\"a\"",
    "{\"a\":",
    "{\"a\":1",
    "{\"a\":1,",
    "{\"a\":1,}",
    "{,\"a\":1}",
    "{\"a\" 1}",
    "{\"a\"::1}",
    "{\"a\":1 \"b\":2}",
    "{\"a\":1,,\"b\":2}",
    "{a:1}",
    "{'a':1}",
    "{1:1}",
    "{null:1}",
    "{\"a\"}",
    "{\"a\",1}",
    "{:1}",
    "{\"a\":}",
    "{\"a\":1]",
    "{[]:1}",
    "{\"a\"=1}",
    "// a\n1",
    "/**/1",
    "1 // a",
    "#1",
    "\u{a0}1",
    "\u{c}1",
    "\u{b}1",
    "\u{2028}1",
    "\u{feff}1",
    "\u{0}",
    "1\u{0}",
    "(1)",
    "<1>",
    "&",
    "\\n",
    "1;",
    "@",
];

/// Messages with the value in a field that the table does not know, and in one that keeps any value as text.
fn codes(value: &str) -> [Option<RejectCode>; 2] {
    let strings = StringValues::JsonText;
    let options = DecodeOptions {
        defaults: ColumnOptions { strings, ..ColumnOptions::default() },
        ..DecodeOptions::default()
    };
    let mut decoder = decoder(&schema(&[("known", "string"), ("after", "long")]), &options);
    ["unknown", "known"].map(|name| {
        let payload = format!("{{\"{name}\":{value},\"after\":1}}");
        let decoded = decoder.decode(&messages(&[payload.as_bytes()])).unwrap();
        decoded.rejects().next().map(|(_, reject)| reject.code)
    })
}

#[test]
fn every_construct_of_json_is_accepted() {
    for value in VALUES {
        assert_eq!(codes(value), [None, None], "{value:?}");
        assert_eq!(check(value, 128).err(), None, "{value:?}");
        assert_eq!(check(&format!(" \t\r\n{value}\n "), 128).err(), None, "{value:?}");
    }
}

#[test]
fn whatever_is_not_json_is_rejected() {
    let expected = [RejectCode::MalformedJson, RejectCode::LoneSurrogate, RejectCode::TrailingData];
    for value in NO_VALUES {
        let codes = codes(value);
        assert!(
            codes.iter().all(|code| code.is_some_and(|code| expected.contains(&code))),
            "{value:?}: {codes:?}"
        );
        assert!(check(value, 128).is_err(), "{value:?}");
    }
}

#[test]
fn every_cut_of_a_message_is_rejected() {
    let whole = r#"{"a":[1,-2.5e3,"x\u00e9\n"],"o":{"b":null,"c":true},"s":"text"} "#;
    let mut decoder = decoder(&schema(&[("s", "string")]), &DecodeOptions::default());
    for end in 1..whole.len() - 1 {
        let decoded = decoder.decode(&messages(&[&whole.as_bytes()[..end]])).unwrap();
        let code = decoded.rejects().next().map(|(_, reject)| reject.code);
        assert_eq!(code, Some(RejectCode::MalformedJson), "cut at {end}");
    }
    assert_eq!(decoder.decode(&messages(&[whole.as_bytes()])).unwrap().batch.num_rows(), 1);
}

#[test]
fn what_follows_an_object_is_rejected() {
    let mut decoder = decoder(&schema(&[("s", "string")]), &DecodeOptions::default());
    for trailing in ["{}", " {}", ",", "]", "}", "1", "\"a\"", "\0", "#", "null", "\u{feff}"] {
        let payload = format!("{{\"s\":\"a\"}}{trailing}");
        let decoded = decoder.decode(&messages(&[payload.as_bytes()])).unwrap();
        let code = decoded.rejects().next().map(|(_, reject)| reject.code);
        assert_eq!(code, Some(RejectCode::TrailingData), "{trailing:?}");
    }
}

#[test]
fn every_way_of_not_being_utf8_is_rejected() {
    let mut decoder = decoder(&schema(&[("s", "string")]), &DecodeOptions::default());
    // A lone continuation, an overlong slash, a surrogate, beyond the last character, a cut sequence, UTF-16.
    let broken: [&[u8]; 7] = [
        b"\x80",
        b"\xc0\xaf",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xe2\x82",
        b"\xff\xfe",
        b"\xf8\x88\x80\x80\x80",
    ];
    for bytes in broken {
        for (before, after) in
            [(&b"{\"s\":\""[..], &b"\"}"[..]), (b"{\"", b"\":1}"), (b"{}", b""), (b"", b"{}")]
        {
            let payload = [before, bytes, after].concat();
            let decoded = decoder.decode(&messages(&[&payload])).unwrap();
            let code = decoded.rejects().next().map(|(_, reject)| reject.code);
            assert_eq!(code, Some(RejectCode::InvalidUtf8), "{payload:?}");
        }
    }
}
