use std::collections::BTreeMap;
use std::sync::Arc;

use iceberg::arrow::schema_to_arrow_schema;
use serde_json::Value;

use super::random::murmur2;
use super::*;
use crate::decode::{DecodeOptions, Decoder, JsonDecoder, Message, Outcome};

fn parse(payload: &[u8]) -> Value {
    serde_json::from_slice(payload).expect("a message is JSON")
}

#[test]
fn a_message_depends_on_seed_index_and_clock_alone() {
    let template = Template::default_events();
    let (one, other) = (template.generator(1, 4).unwrap(), template.generator(1, 4).unwrap());
    let backwards: Vec<_> = (0..100).rev().map(|index| one.message(index, 5)).collect();
    let forwards: Vec<_> = (0..100).map(|index| other.message(index, 5)).collect();
    assert!(backwards.iter().rev().eq(forwards.iter()));
    let another_seed = template.generator(2, 4).unwrap();
    assert!((0..100).all(|index| another_seed.message(index, 5) != forwards[index as usize]));
}

#[test]
fn a_seed_gives_in_every_version_what_it_gave_before() {
    let generator = Template::from_toml(
        r#"
        fields = [
            { name = "a", kind = "int", min = -9, max = 9 },
            { name = "b", kind = "string", length = 8 },
            { name = "c", kind = "uuid" },
        ]"#,
    )
    .unwrap()
    .generator(42, 3)
    .unwrap();
    let text = String::from_utf8(generator.message(7, 0).payload).unwrap();
    assert_eq!(text, r#"{"a":5,"b":"u932ly03","c":"ca86d554-387a-436c-9157-61d960a7350f"}"#);
}

#[test]
fn default_events_are_about_a_kibibyte_and_rows_of_their_schema() {
    let template = Template::default_events();
    let schema = template.schema().unwrap();
    let arrow = Arc::new(schema_to_arrow_schema(&schema).unwrap());
    let mut decoder = JsonDecoder::new(&schema, arrow, &DecodeOptions::default()).unwrap();
    let generator = template.generator(3, 4).unwrap();
    let generated: Vec<_> = (0..500).map(|index| generator.message(index, 1_800_000_000_123)).collect();
    for message in &generated {
        assert!((1000..=1100).contains(&message.payload.len()), "{} bytes", message.payload.len());
    }
    let messages: Vec<_> = generated
        .iter()
        .map(|message| Message { payload: Some(&message.payload), ..Message::default() })
        .collect();
    let decoded = decoder.decode(&messages).unwrap();
    assert!(
        decoded.outcomes.iter().all(|outcome| *outcome == Outcome::Row),
        "{:?}",
        decoded.rejects().next()
    );
    assert_eq!(decoded.batch.num_rows(), 500);
    assert_eq!(decoded.unknown_fields, 0);
}

#[test]
fn timestamps_are_the_clock() {
    let generator = Template::from_toml(r#"fields = [{ name = "ts", kind = "timestamp" }]"#).unwrap();
    let generator = generator.generator(1, 1).unwrap();
    for (now_ms, text) in [
        (0, "1970-01-01T00:00:00.000000Z"),
        (951_782_400_001, "2000-02-29T00:00:00.001000Z"),
        (1_767_225_599_999, "2025-12-31T23:59:59.999000Z"),
        (-1, "1969-12-31T23:59:59.999000Z"),
    ] {
        assert_eq!(parse(&generator.message(0, now_ms).payload)["ts"], text);
    }
}

#[test]
fn nulls_and_absent_fields_have_their_share() {
    let template = r#"
        fields = [
            { name = "id", kind = "sequence", start = 10 },
            { name = "a", kind = "boolean", share = 0.5, nulls = 0.25, absent = 0.5 },
        ]"#;
    let generator = Template::from_toml(template).unwrap().generator(5, 1).unwrap();
    let (mut nulls, mut absent) = (0, 0);
    for index in 0..4000 {
        let value = parse(&generator.message(index, 0).payload);
        assert_eq!(value["id"], 10 + index);
        match value.get("a") {
            None => absent += 1,
            Some(Value::Null) => nulls += 1,
            Some(_) => {}
        }
    }
    assert!((1900..2100).contains(&absent), "{absent}");
    assert!((430..570).contains(&nulls), "{nulls}");
}

#[test]
fn zipf_keys_follow_their_weights() {
    let template = r#"
        key = "k"
        fields = [{ name = "k", kind = "zipf", keys = 100, exponent = 1.0, prefix = "u-" }]"#;
    let generator = Template::from_toml(template).unwrap().generator(9, 1).unwrap();
    let mut counts: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    for index in 0..20_000 {
        *counts.entry(generator.message(index, 0).key.unwrap()).or_default() += 1;
    }
    // The harmonic number of 100 is 5.187: key 1 has 19.3 %, key 10 has 1.93 %.
    let count = |key: &str| counts[key.as_bytes()];
    assert!((3_600..4_120).contains(&count("u-1")), "{}", count("u-1"));
    assert!((310..470).contains(&count("u-10")), "{}", count("u-10"));
    assert_eq!(counts.len(), 100);
}

#[test]
fn keyed_messages_go_where_kafka_sends_them() {
    // Values of Kafka's own test of its partitioner.
    for (key, hash) in [
        ("21", -973_932_308),
        ("foobar", -790_332_482),
        ("a-little-bit-long-string", -985_981_536),
        ("a-little-bit-longer-string", -1_486_304_829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
        ("abc", 479_470_107),
    ] {
        assert_eq!(murmur2(key.as_bytes()) as i32, hash, "{key}");
    }
}

#[test]
fn bad_messages_are_no_rows_and_all_others_are() {
    let mut template = Template::default_events();
    template.bad_share = 0.3;
    let schema = template.schema().unwrap();
    let arrow = Arc::new(schema_to_arrow_schema(&schema).unwrap());
    let mut decoder = JsonDecoder::new(&schema, arrow, &DecodeOptions::default()).unwrap();
    let generator = template.generator(11, 1).unwrap();
    let mut bad = 0;
    for index in 0..1000 {
        let generated = generator.message(index, 0);
        let message = Message { payload: Some(&generated.payload), ..Message::default() };
        let decoded = decoder.decode(&[message]).unwrap();
        assert_eq!(decoded.batch.num_rows() == 0, generated.bad.is_some(), "message {index}");
        bad += usize::from(generated.bad.is_some());
    }
    assert!((250..350).contains(&bad), "{bad}");
}

#[test]
fn a_template_comes_back_from_its_toml() {
    let template = Template::default_events();
    assert_eq!(Template::from_toml(&template.to_toml().unwrap()).unwrap(), template);
}

#[test]
fn templates_that_make_no_sense_are_refused_with_their_place() {
    for (text, path) in [
        ("fields = []", "fields"),
        (r#"fields = [{ name = "a", kind = "uuid" }, { name = "a", kind = "uuid" }]"#, "a"),
        (r#"fields = [{ name = "a", kind = "uuid", nulls = 1.5 }]"#, "a"),
        (r#"fields = [{ name = "a", kind = "int", min = 2, max = 1 }]"#, "a"),
        (r#"fields = [{ name = "a", kind = "choice", values = [] }]"#, "a"),
        (r#"fields = [{ name = "a", kind = "zipf", keys = 0, exponent = 1.0 }]"#, "a"),
        (r#"fields = [{ name = "a", kind = "decimal", min = 0, max = 10000000000, scale = 9 }]"#, "a"),
        (r#"fields = [{ name = "a", kind = "text" }]"#, "message_bytes"),
        ("message_bytes = 10\nfields = [{ name = \"a\", kind = \"uuid\" }]", "message_bytes"),
        ("key = \"b\"\nfields = [{ name = \"a\", kind = \"uuid\" }]", "key"),
        (r#"fields = [{ name = "a", kind = "nonsense" }]"#, "(file)"),
        (r#"fields = [{ name = "a", kind = "uuid", length = 3 }]"#, "(file)"),
    ] {
        match Template::from_toml(text) {
            Err(error) => assert_eq!(error.path, path, "{text}: {error}"),
            Ok(_) => panic!("accepted: {text}"),
        }
    }
}
