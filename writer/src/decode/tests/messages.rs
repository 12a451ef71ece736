//! Whole messages and batches: outcomes, paths, what a reject leaves behind, and columns of metadata.

use std::collections::BTreeMap;

use arrow_array::Array;
use arrow_schema::{Field as ArrowField, Schema as ArrowSchema};

use super::super::{
    ColumnOptions, DecodeError, Header, KafkaColumns, StringValues, Tombstones, UnknownFields,
};
use super::*;
use crate::schema::with_kafka_columns;

const NESTED: &str = r#"{"type":"struct","fields":[
    {"id":10,"name":"a","required":true,"type":"long"},
    {"id":11,"name":"b","required":false,"type":"string"}]}"#;
const LIST: &str = r#"{"type":"list","element-id":20,"element-required":true,"element":"long"}"#;
const MAP: &str =
    r#"{"type":"map","key-id":30,"key":"string","value-id":31,"value-required":false,"value":"int"}"#;

fn run(
    fields: &[(&str, &str)],
    options: &DecodeOptions,
    payloads: &[&str],
) -> Vec<Result<String, (RejectCode, String)>> {
    let mut decoder = decoder(&schema(fields), options);
    let bytes: Vec<&[u8]> = payloads.iter().map(|payload| payload.as_bytes()).collect();
    outcomes(&decoder.decode(&messages(&bytes)).unwrap())
}

fn row(text: &str) -> Result<String, (RejectCode, String)> {
    Ok(text.to_owned())
}

fn rejected(code: RejectCode, path: &str) -> Result<String, (RejectCode, String)> {
    Err((code, path.to_owned()))
}

#[test]
fn values_go_to_the_columns_of_their_names() {
    let found = run(
        &[("b", "string"), ("a", "string")],
        &DecodeOptions::default(),
        &[r#"{"a":"A","b":"B"}"#, r#"{"b":"B","a":"A"}"#, r#" { "a" : "A" } "#, r#"{"\u0061":"A"}"#, "{}"],
    );
    assert_eq!(found, [row("B | A"), row("B | A"), row("null | A"), row("null | A"), row("null | null")]);
}

#[test]
fn columns_are_matched_by_field_id_whatever_their_order() {
    let ids = |fields: &[(i32, &str)]| {
        let fields = fields.iter().map(|(id, name)| {
            let metadata = [("PARQUET:field_id".to_owned(), id.to_string())];
            let data_type = arrow_schema::DataType::Utf8;
            ArrowField::new(*name, data_type, true).with_metadata(metadata.into())
        });
        Arc::new(ArrowSchema::new(fields.collect::<Vec<_>>()))
    };
    let field = |id, name| {
        Arc::new(NestedField::optional(id, name, Type::Primitive(iceberg::spec::PrimitiveType::String)))
    };
    let schema =
        Schema::builder().with_fields([field(1, "x"), field(3, "y"), field(2, "z")]).build().unwrap();
    let mut decoder =
        JsonDecoder::new(&schema, ids(&[(2, "z"), (1, "x"), (3, "y")]), &DecodeOptions::default()).unwrap();
    let decoded = decoder.decode(&messages(&[br#"{"x":"X","y":"Y","z":"Z"}"#])).unwrap();
    assert_eq!(outcomes(&decoded), [row("Z | X | Y")]);
    let missing = JsonDecoder::new(&schema, ids(&[(2, "z"), (1, "x")]), &DecodeOptions::default());
    assert!(matches!(missing, Err(DecodeError::UnsupportedColumn { path, .. }) if path == "y"));
}

#[test]
fn a_reject_leaves_no_trace_in_the_batch() {
    let fields = [("o", NESTED), ("l", LIST), ("m", MAP), ("s", "string"), ("n!", "long")];
    let good = r#"{"o":{"a":1,"b":"x"},"l":[1,2],"m":{"k":1},"s":"text","n":1}"#;
    let expected = row("{a: 1, b: x} | [1, 2] | {k: 1} | text | 1");
    let bad = [
        (r#"{"o":{"a":1,"b":"trace"},"l":[1,2,null],"n":1}"#, rejected(RejectCode::NullInRequired, "l[2]")),
        (r#"{"o":{"a":null},"n":1}"#, rejected(RejectCode::NullInRequired, "o.a")),
        (r#"{"o":{"b":"trace"},"n":1}"#, rejected(RejectCode::MissingField, "o.a")),
        (r#"{"m":{"k":1,"j":2.5},"n":1}"#, rejected(RejectCode::NotAnInteger, "m[\"j\"]")),
        (r#"{"m":{"k":1,"k":2},"n":1}"#, rejected(RejectCode::DuplicateField, "m[\"k\"]")),
        (r#"{"s":"trace","n":1,"s":"again"}"#, rejected(RejectCode::DuplicateField, "s")),
        (r#"{"o":{"a":1,"a":1},"n":1}"#, rejected(RejectCode::DuplicateField, "o.a")),
        (r#"{"s":"trace","l":[7]}"#, rejected(RejectCode::MissingField, "n")),
        (r#"{"s":"trace","l":[7],"n":null}"#, rejected(RejectCode::NullInRequired, "n")),
        (r#"{"s":"trace","l":[7],"n":1"#, rejected(RejectCode::MalformedJson, "")),
        (r#"{"s":"trace","l":[7],"n":1}}"#, rejected(RejectCode::TrailingData, "")),
    ];
    let mut decoder = decoder(&schema(&fields), &DecodeOptions::default());
    let mut payloads: Vec<&[u8]> = Vec::new();
    let mut wanted = Vec::new();
    for (payload, outcome) in &bad {
        payloads.extend([payload.as_bytes(), good.as_bytes()]);
        wanted.extend([outcome.clone(), expected.clone()]);
    }
    for _ in 0..2 {
        let decoded = decoder.decode(&messages(&payloads)).unwrap();
        assert_eq!(outcomes(&decoded), wanted);
        assert_eq!(decoded.batch.num_rows(), bad.len());
        let strings = decoded.batch.column(3).to_data();
        assert_eq!(strings.buffers()[1].len(), bad.len() * "text".len());
    }
}

#[test]
fn one_poison_message_among_ten_thousand_is_the_only_one_missing() {
    let payloads: Vec<String> = (0..10_000)
        .map(|n| if n == 5_000 { "{\"id\":\"poison\"}".to_owned() } else { format!("{{\"id\":{n}}}") })
        .collect();
    let bytes: Vec<&[u8]> = payloads.iter().map(String::as_bytes).collect();
    let decoded =
        decoder(&schema(&[("id!", "long")]), &DecodeOptions::default()).decode(&messages(&bytes)).unwrap();
    assert_eq!(decoded.batch.num_rows(), 9_999);
    assert_eq!(
        decoded.rejects().map(|(index, reject)| (index, reject.code)).collect::<Vec<_>>(),
        [(5_000, RejectCode::WrongType)]
    );
    let found = outcomes(&decoded);
    assert!((0..10_000).filter(|n| *n != 5_000).all(|n| found[n] == row(&n.to_string())));
}

#[test]
fn a_reject_says_where_what_and_why() {
    let mut decoder = decoder(&schema(&[("o", NESTED)]), &DecodeOptions::default());
    let decoded = decoder.decode(&messages(&[br#"{"o":{"a" : 2.9, "b":"x"}}"#])).unwrap();
    let (_, reject) = decoded.rejects().next().unwrap();
    assert_eq!(
        reject.to_string(),
        "not-an-integer: the number has a fraction, in `o.a`, expected long, found `2.9`"
    );
}

#[test]
fn messages_without_a_json_object_have_their_own_codes() {
    let fields = [("a", "long")];
    let mut json = decoder(&schema(&fields), &DecodeOptions::default());
    let cases: [(&[u8], RejectCode); 9] = [
        (b"", RejectCode::EmptyValue),
        (b"   ", RejectCode::MalformedJson),
        (b"[1]", RejectCode::NotAnObject),
        (b"null", RejectCode::NotAnObject),
        (b"\"text\"", RejectCode::NotAnObject),
        (b"[1", RejectCode::MalformedJson),
        (b"{\"a\":\"\xff\"}", RejectCode::InvalidUtf8),
        (b"\xef\xbb\xbf{\"a\":1}", RejectCode::ByteOrderMark),
        (b"{\"a\":1}\0", RejectCode::TrailingData),
    ];
    let payloads: Vec<&[u8]> = cases.iter().map(|(payload, _)| *payload).collect();
    let decoded = json.decode(&messages(&payloads)).unwrap();
    let codes: Vec<RejectCode> = decoded.rejects().map(|(_, reject)| reject.code).collect();
    assert_eq!(codes, cases.map(|(_, code)| code));
}

#[test]
fn tombstones_are_rejected_or_passed_over() {
    let tombstone = [Message { topic: "t", ..Message::default() }];
    let schema = schema(&[("a", "long")]);
    let decoded = decoder(&schema, &DecodeOptions::default()).decode(&tombstone).unwrap();
    assert_eq!(outcomes(&decoded), [rejected(RejectCode::Tombstone, "")]);
    let options = DecodeOptions { tombstones: Tombstones::Skip, ..DecodeOptions::default() };
    let decoded = decoder(&schema, &options).decode(&tombstone).unwrap();
    assert_eq!(decoded.outcomes, [Outcome::Skipped]);
    assert_eq!(decoded.batch.num_rows(), 0);
}

#[test]
fn unknown_fields_are_counted_or_rejected() {
    let payloads = [r#"{"x":[1,{"y":2}],"a":1,"z":null}"#, r#"{"o":{"a":1,"q":0}}"#, r#"{"x":1,"a":"bad"}"#];
    let fields = [("a", "long"), ("o", NESTED)];
    let bytes = payloads.map(str::as_bytes);
    let decoded = decoder(&schema(&fields), &DecodeOptions::default()).decode(&messages(&bytes)).unwrap();
    // Those of the rejected message do not count.
    assert_eq!(decoded.unknown_fields, 3);
    let options = DecodeOptions { unknown_fields: UnknownFields::Reject, ..DecodeOptions::default() };
    assert_eq!(
        run(&fields, &options, &payloads),
        [
            rejected(RejectCode::UnknownField, "x"),
            rejected(RejectCode::UnknownField, "o.q"),
            rejected(RejectCode::UnknownField, "x"),
        ]
    );
}

#[test]
fn names_that_differ_in_case_or_hold_dots_are_other_names() {
    let found = run(
        &[("userId", "long"), ("a.b", "long")],
        &DecodeOptions::default(),
        &[r#"{"userid":1,"a.b":2}"#, r#"{"userId":1,"a":{"b":2}}"#, r#"{"a.b":"x"}"#],
    );
    assert_eq!(found, [row("null | 2"), row("1 | null"), rejected(RejectCode::WrongType, "[\"a.b\"]")]);
}

#[test]
fn names_that_need_escapes_are_matched_with_them_alone() {
    let found = run(
        &[("q\"uote", "long"), ("back\\slash", "long"), ("tab\t", "long")],
        &DecodeOptions::default(),
        &[
            r#"{"q\"uote":1,"back\\slash":2,"tab\t":3}"#,
            r#"{"q"uote":1}"#,
            r#"{"back\slash":1}"#,
            "{\"q\\\"uote\":1,\"tab\t\":1}",
        ],
    );
    let malformed = || rejected(RejectCode::MalformedJson, "");
    assert_eq!(found, [row("1 | 2 | 3"), malformed(), malformed(), malformed()]);
}

#[test]
fn names_that_repeat_in_unknown_fields_are_json() {
    let found =
        run(&[("a", "long")], &DecodeOptions::default(), &[r#"{"x":1,"x":2,"y":{"k":1,"k":1},"a":1}"#]);
    assert_eq!(found, [row("1")]);
}

#[test]
fn fields_that_come_and_go_and_change_places_stay_in_their_columns() {
    let fields = [("a", "long"), ("b", "long"), ("c", "long"), ("d", "long")];
    let found = run(
        &fields,
        &DecodeOptions::default(),
        &[
            r#"{"a":1,"b":2,"c":3,"d":4}"#,
            r#"{"a":1,"c":3,"d":4}"#,
            r#"{"d":4,"c":3,"b":2,"a":1}"#,
            r#"{"a":1,"b":2,"c":3,"d":4}"#,
            r#"{"c":3}"#,
            r#"{"x":0,"b":2,"x":0,"d":4,"x":0}"#,
        ],
    );
    let rows = [
        "1 | 2 | 3 | 4",
        "1 | null | 3 | 4",
        "1 | 2 | 3 | 4",
        "1 | 2 | 3 | 4",
        "null | null | 3 | null",
        "null | 2 | null | 4",
    ];
    assert_eq!(found, rows.map(row));
}

#[test]
fn depth_is_limited_in_known_and_unknown_fields() {
    let nested = |levels: usize| format!("{{\"x\":{}1{}}}", "[".repeat(levels), "]".repeat(levels));
    let fields = [("a", "long")];
    let deep = [nested(127), nested(128), nested(1_000), nested(100_000), "[".repeat(200_000)];
    let payloads: Vec<&str> = deep.iter().map(String::as_str).collect();
    let found = run(&fields, &DecodeOptions::default(), &payloads);
    assert_eq!(found[0], row("null"));
    assert!(found[1..].iter().all(|outcome| matches!(outcome, Err((RejectCode::TooDeep, _)))), "{found:?}");
    let too_much = DecodeOptions { max_depth: 100_000, ..DecodeOptions::default() };
    let schema = schema(&fields);
    let arrow = Arc::new(schema_to_arrow_schema(&schema).unwrap());
    assert!(matches!(JsonDecoder::new(&schema, arrow, &too_much), Err(DecodeError::Option { .. })));
}

#[test]
fn values_in_lists_are_limited() {
    let wide = r#"{"type":"list","element-id":20,"element-required":true,"element":{"type":"struct","fields":[
        {"id":21,"name":"a","required":false,"type":"long"},{"id":22,"name":"b","required":false,"type":"long"}]}}"#;
    let options = DecodeOptions { max_values: 9, ..DecodeOptions::default() };
    let found = run(&[("l", wide)], &options, &[r#"{"l":[{},{},{}]}"#, r#"{"l":[{},{},{},{}]}"#]);
    assert!(found[0].is_ok());
    assert_eq!(found[1], rejected(RejectCode::TooManyValues, "l"));
}

#[test]
fn a_field_of_sixteen_megabytes_is_a_value() {
    let text = "x".repeat(16 << 20);
    let payload = format!("{{\"s\":\"{text}\"}}");
    assert_eq!(run(&[("s", "string")], &DecodeOptions::default(), &[&payload]), [row(&text)]);
}

#[test]
fn options_of_a_column_hold_for_it_alone() {
    let json_text = ColumnOptions { strings: StringValues::JsonText, ..ColumnOptions::default() };
    let columns = BTreeMap::from([("o.b".to_owned(), json_text)]);
    let options = DecodeOptions { columns, ..DecodeOptions::default() };
    let found =
        run(&[("o", NESTED), ("s", "string")], &options, &[r#"{"o":{"a":1,"b":[2]}}"#, r#"{"s":[2]}"#]);
    assert_eq!(found, [row("{a: 1, b: [2]} | null"), rejected(RejectCode::WrongType, "s")]);
}

#[test]
fn options_for_columns_that_do_not_exist_are_refused() {
    let columns = BTreeMap::from([("o.z".to_owned(), ColumnOptions::default())]);
    let options = DecodeOptions { columns, ..DecodeOptions::default() };
    let schema = schema(&[("o", NESTED)]);
    let arrow = Arc::new(schema_to_arrow_schema(&schema).unwrap());
    let made = JsonDecoder::new(&schema, arrow, &options);
    assert!(matches!(made, Err(DecodeError::Option { path, .. }) if path == "o.z"));
}

#[test]
fn kafka_columns_hold_where_a_message_came_from() {
    let schema = with_kafka_columns(&schema(&[("_kafka_note", "string"), ("a!", "long")])).unwrap();
    let options = DecodeOptions { kafka_columns: KafkaColumns::On, ..DecodeOptions::default() };
    let mut decoder = decoder(&schema, &options);
    let headers = vec![Header { key: "h", value: Some(b"\x01") }, Header { key: "h", value: None }];
    let message = |offset, payload: &'static [u8]| Message {
        topic: "t",
        partition: 7,
        offset,
        timestamp_ms: Some(1_500),
        key: Some(b"k"),
        payload: Some(payload),
        headers: headers.clone(),
    };
    let bare = Message { timestamp_ms: None, key: None, headers: Vec::new(), ..message(9, b"{\"a\":3}") };
    // A field of that name in the message is one that the table does not know.
    let given = [
        message(5, br#"{"a":1,"_kafka":{"offset":0},"_kafka_note":"n"}"#),
        message(6, br#"{"a":null}"#),
        bare,
    ];
    let decoded = decoder.decode(&given).unwrap();
    assert_eq!(
        outcomes(&decoded),
        [
            row(
                "n | 1 | {topic: t, partition: 7, offset: 5, timestamp: 1970-01-01T00:00:01.500Z, key: 6b, headers: [{key: h, value: 01}, {key: h, value: null}]}"
            ),
            rejected(RejectCode::NullInRequired, "a"),
            row("null | 3 | {topic: t, partition: 7, offset: 9, timestamp: null, key: null, headers: []}"),
        ]
    );
    assert_eq!(decoded.unknown_fields, 1);
}

#[test]
fn flat_kafka_columns_are_filled_too_and_their_types_are_checked() {
    let options = DecodeOptions { kafka_columns: KafkaColumns::On, ..DecodeOptions::default() };
    let fields = [("_kafka_offset!", "long"), ("_kafka_key!", "binary"), ("a", "long")];
    let mut json = decoder(&schema(&fields), &options);
    let with_key = Message { key: Some(b"k"), offset: 4, payload: Some(b"{\"a\":1}"), ..Message::default() };
    let without = Message { key: None, ..with_key.clone() };
    let decoded = json.decode(&[without, with_key]).unwrap();
    assert_eq!(outcomes(&decoded), [rejected(RejectCode::NullInRequired, "_kafka_key"), row("4 | 6b | 1")]);
    let schema = schema(&[("_kafka_offset", "int")]);
    let arrow = Arc::new(schema_to_arrow_schema(&schema).unwrap());
    assert!(matches!(JsonDecoder::new(&schema, arrow, &options), Err(DecodeError::UnsupportedColumn { .. })));
}

#[test]
fn a_table_as_wide_as_five_thousand_columns_is_decoded() {
    let names: Vec<String> = (0..5_000).map(|n| format!("c{n}")).collect();
    let fields: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "long")).collect();
    let found = run(&fields, &DecodeOptions::default(), &[r#"{"c4999":1,"c0":2}"#, r#"{"c4998":"x"}"#]);
    assert!(found[0].as_ref().is_ok_and(|text| text.starts_with("2 | null") && text.ends_with("null | 1")));
    assert_eq!(found[1], rejected(RejectCode::WrongType, "c4998"));
}

#[test]
fn codes_are_distinct_and_in_kebab_case() {
    let mut texts: Vec<&str> = RejectCode::ALL.iter().map(|code| code.as_str()).collect();
    assert!(
        texts
            .iter()
            .all(|text| text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'))
    );
    texts.sort_unstable();
    texts.dedup();
    assert_eq!(texts.len(), RejectCode::ALL.len());
}

#[test]
fn a_small_batch_after_a_large_one_holds_little_memory() {
    let mut decoder = decoder(&schema(&[("s", "string")]), &DecodeOptions::default());
    let large = format!("{{\"s\":\"{}\"}}", "x".repeat(4 << 20));
    decoder.decode(&messages(&[large.as_bytes()])).unwrap();
    let small = decoder.decode(&messages(&[b"{\"s\":\"x\"}"])).unwrap();
    assert!(small.batch.get_array_memory_size() < 1 << 16, "{}", small.batch.get_array_memory_size());
}
