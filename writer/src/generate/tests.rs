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
        ("bad = { empty = 2.0 }\nfields = [{ name = \"a\", kind = \"uuid\" }]", "bad"),
        ("format = \"avro\"\nfields = [{ name = \"a b\", kind = \"uuid\" }]", "a b"),
        ("bad = { upside-down = 0.1 }\nfields = [{ name = \"a\", kind = \"uuid\" }]", "(file)"),
        (r#"fields = [{ name = "a", kind = "timestamp", late_share = 0.1 }]"#, "a"),
        (r#"fields = [{ name = "a", kind = "nonsense" }]"#, "(file)"),
        (r#"fields = [{ name = "a", kind = "uuid", length = 3 }]"#, "(file)"),
    ] {
        match Template::from_toml(text) {
            Err(error) => assert_eq!(error.path, path, "{text}: {error}"),
            Ok(_) => panic!("accepted: {text}"),
        }
    }
}

/// Every kind of field, some of them null or absent.
const EVERYTHING: &str = r#"
    key = "z"
    message_bytes = 600
    fields = [
        { name = "id", kind = "sequence", start = -2 },
        { name = "i", kind = "int", min = -70000, max = 70000 },
        { name = "l", kind = "int", min = -9000000000, max = 9000000000, nulls = 0.2 },
        { name = "z", kind = "zipf", keys = 50, exponent = 1.0, prefix = "k-" },
        { name = "f", kind = "float", min = -1.0, max = 1.0 },
        { name = "d", kind = "decimal", min = -500, max = 500, scale = 2, absent = 0.3 },
        { name = "b", kind = "boolean", share = 0.5 },
        { name = "s", kind = "string", length = 5 },
        { name = "t", kind = "text", nulls = 0.1 },
        { name = "u", kind = "unicode", length = 9 },
        { name = "c", kind = "choice", values = ["x", "y\\\"z"] },
        { name = "g", kind = "tags", values = ["p", "q", "r"], max = 3 },
        { name = "w", kind = "url", pages = 9 },
        { name = "n", kind = "uuid" },
        { name = "ts", kind = "timestamp", max_delay_ms = 1000, late_share = 0.3, max_late_ms = 90000 },
    ]"#;

#[test]
fn late_messages_unicode_and_kinds_of_bad_ones_are_golden() {
    let mut template = Template::from_toml(
        r#"
        bad = { wrong-type = 0.2, empty = 0.2, cut-off = 0.2 }
        fields = [
            { name = "u", kind = "unicode", length = 3 },
            { name = "ts", kind = "timestamp", max_delay_ms = 1, late_share = 0.5, max_late_ms = 60000 },
        ]"#,
    )
    .unwrap();
    let text = |template: &Template, index| {
        let message = template.generator(42, 3).unwrap().message(index, 0);
        (String::from_utf8_lossy(&message.payload).into_owned(), message.bad)
    };
    let spoilt: Vec<_> = (0..5).map(|index| text(&template, index)).collect();
    template.bad.clear();
    let whole: Vec<_> = (0..5).map(|index| text(&template, index)).collect();
    assert_eq!(format!("{spoilt:#?}{whole:#?}"), include_str!("golden.txt").trim_end());
}

#[test]
fn avro_messages_hold_the_values_of_the_json_messages() {
    let json = Template::from_toml(EVERYTHING).unwrap();
    let avro = Template { format: Format::Avro, ..json.clone() };
    let schema = apache_avro::Schema::parse(&avro.avro_schema().unwrap()).unwrap();
    let (json, avro) = (json.generator(6, 2).unwrap(), avro.generator(6, 2).unwrap());
    for index in 0..300 {
        let (json, avro) = (json.message(index, 1_800_000_000_123), avro.message(index, 1_800_000_000_123));
        assert_eq!((&json.key, json.partition, json.bad), (&avro.key, avro.partition, avro.bad));
        let mut rest = avro.payload.as_slice();
        let read = apache_avro::from_avro_datum(&schema, &mut rest, None).unwrap();
        assert!(rest.is_empty(), "message {index}: {} bytes are left", rest.len());
        let apache_avro::types::Value::Record(fields) = read else { panic!("no record: {read:?}") };
        let wanted = parse(&json.payload);
        for (name, value) in fields {
            let wanted = wanted.get(&name).cloned().unwrap_or_default();
            assert_eq!(as_json(value), as_text(&wanted), "message {index}, field {name}");
        }
    }
}

/// A value of Avro's reader in the words of the JSON message.
fn as_json(value: apache_avro::types::Value) -> String {
    use apache_avro::types::Value as Avro;
    match value {
        Avro::Union(_, inner) => as_json(*inner),
        Avro::Null => "null".to_owned(),
        Avro::Int(value) => value.to_string(),
        Avro::Long(value) => value.to_string(),
        Avro::Double(value) => format!("{value:?}"),
        Avro::Boolean(value) => value.to_string(),
        Avro::String(value) => value,
        Avro::Uuid(value) => value.to_string(),
        Avro::TimestampMicros(micros) => {
            let time = chrono::DateTime::from_timestamp_micros(micros).unwrap();
            time.to_rfc3339_opts(chrono::SecondsFormat::Micros, true)
        }
        Avro::Decimal(value) => {
            let bytes: Vec<u8> = value.try_into().unwrap();
            let fill = if bytes[0] & 0x80 == 0 { 0 } else { 0xFF };
            let mut whole = [fill; 8];
            whole[8 - bytes.len()..].copy_from_slice(&bytes);
            format!("{:?}", i64::from_be_bytes(whole) as f64 / 100.0)
        }
        Avro::Array(items) => items.into_iter().map(as_json).collect::<Vec<_>>().join(","),
        other => panic!("unexpected: {other:?}"),
    }
}

fn as_text(value: &Value) -> String {
    match value {
        Value::Number(number) if number.is_f64() => format!("{:?}", number.as_f64().unwrap()),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(as_text).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

#[test]
fn a_table_made_from_the_avro_schema_is_that_of_the_template() {
    let template = Template::from_toml(EVERYTHING).unwrap();
    let text = template.avro_schema().unwrap().to_string();
    let (from_avro, own) = (crate::schema::parse_schema(&text).unwrap(), template.schema().unwrap());
    for (found, wanted) in from_avro.as_struct().fields().iter().zip(own.as_struct().fields()) {
        assert_eq!((&found.name, found.required), (&wanted.name, wanted.required));
        assert_eq!(found.field_type.is_primitive(), wanted.field_type.is_primitive());
        if wanted.field_type.is_primitive() {
            assert_eq!(found.field_type, wanted.field_type, "{}", wanted.name);
        }
    }
}

#[test]
fn each_kind_of_bad_message_has_its_share_and_changes_no_other() {
    let kinds = [Bad::CutOff, Bad::NotUtf8, Bad::Trailing, Bad::NotAnObject, Bad::Empty, Bad::WrongType];
    let clean = Template::default_events();
    let bad = kinds.into_iter().map(|kind| (kind, 0.05)).collect();
    let spoilt = Template { bad, ..clean.clone() };
    let schema = clean.schema().unwrap();
    let arrow = Arc::new(schema_to_arrow_schema(&schema).unwrap());
    let mut decoder = JsonDecoder::new(&schema, arrow, &DecodeOptions::default()).unwrap();
    let (clean, spoilt) = (clean.generator(11, 1).unwrap(), spoilt.generator(11, 1).unwrap());
    let mut counts: BTreeMap<Bad, usize> = BTreeMap::new();
    for index in 0..4000 {
        let generated = spoilt.message(index, 0);
        let message = Message { payload: Some(&generated.payload), ..Message::default() };
        let rows = decoder.decode(&[message]).unwrap().batch.num_rows();
        assert_eq!(rows == 0, generated.bad.is_some(), "message {index} is {:?}", generated.bad);
        match generated.bad {
            None => assert_eq!(generated, clean.message(index, 0)),
            Some(bad) => *counts.entry(bad).or_default() += 1,
        }
    }
    for kind in kinds {
        assert!((140..260).contains(&counts[&kind]), "{kind:?}: {}", counts[&kind]);
    }
}

#[test]
fn bad_avro_messages_cannot_be_read() {
    let mut template = Template { format: Format::Avro, ..Template::default_events() };
    template.bad = BTreeMap::from([(Bad::CutOff, 0.3), (Bad::Empty, 0.3), (Bad::Trailing, 0.3)]);
    let schema = apache_avro::Schema::parse(&template.avro_schema().unwrap()).unwrap();
    let generator = template.generator(4, 1).unwrap();
    for index in 0..300 {
        let generated = generator.message(index, 0);
        let mut rest = generated.payload.as_slice();
        let read = apache_avro::from_avro_datum(&schema, &mut rest, None);
        // The reader gives null for a text that is cut; a field that may be null is a union.
        let whole = read.is_ok_and(|value| match value {
            apache_avro::types::Value::Record(fields) => {
                fields.iter().all(|(_, value)| *value != apache_avro::types::Value::Null)
            }
            _ => false,
        });
        let whole = whole && rest.is_empty();
        assert_eq!(whole, generated.bad.is_none(), "message {index} is {:?}", generated.bad);
    }
    template.bad.insert(Bad::NotUtf8, 0.05);
    assert_eq!(template.generator(4, 1).unwrap_err().path, "bad");
}

#[test]
fn late_messages_have_their_share() {
    let template = r#"
        fields = [{ name = "ts", kind = "timestamp", max_delay_ms = 10, late_share = 0.2, max_late_ms = 100000 }]"#;
    let generator = Template::from_toml(template).unwrap().generator(8, 1).unwrap();
    let late = (0..2000).filter(|index| {
        let value = parse(&generator.message(*index, 1_000_000).payload);
        let time = chrono::DateTime::parse_from_rfc3339(value["ts"].as_str().unwrap()).unwrap();
        time.timestamp_millis() < 1_000_000 - 10
    });
    let late = late.count();
    assert!((330..470).contains(&late), "{late}");
}
