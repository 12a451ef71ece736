use std::sync::Arc;

use iceberg::arrow::schema_to_arrow_schema;
use iceberg::spec::{NestedField, PrimitiveType, Type};

use super::*;
use crate::decode::{DecodeOptions, Decoder, JsonDecoder, Message};

/// The columns as `name: type`, required ones with `!`.
fn columns(schema: &Schema) -> Vec<String> {
    schema.as_struct().fields().iter().map(|field| column(field)).collect()
}

fn column(field: &NestedField) -> String {
    let mark = if field.required { "!" } else { "" };
    format!("{}{mark}: {}", field.name, describe(&field.field_type))
}

fn describe(field_type: &Type) -> String {
    let optional = |field: &NestedField| if field.required { "" } else { "?" };
    match field_type {
        Type::Primitive(primitive) => primitive.to_string(),
        Type::Struct(fields) => {
            let fields: Vec<String> = fields.fields().iter().map(|field| column(field)).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Type::List(list) => {
            format!("[{}{}]", describe(&list.element_field.field_type), optional(&list.element_field))
        }
        Type::Map(map) => {
            format!("map<{}{}>", describe(&map.value_field.field_type), optional(&map.value_field))
        }
    }
}

mod given {
    use super::*;

    #[test]
    fn an_iceberg_schema_keeps_its_ids() {
        let text = r#"{"type":"struct","schema-id":4,"identifier-field-ids":[7],"fields":[
            {"id":7,"name":"b","required":true,"type":"long"},
            {"id":3,"name":"a","required":false,"type":{"type":"list","element-id":9,"element-required":false,"element":"decimal(9,2)"}}]}"#;
        let schema = parse_schema(text).unwrap();
        assert_eq!(columns(&schema), ["b!: long", "a: [decimal(9, 2)?]"]);
        assert_eq!(schema.field_id_by_name("a.element"), Some(9));
        assert_eq!(schema.field_id_by_name("b"), Some(7));
    }

    #[test]
    fn texts_that_are_no_schema_are_refused_with_a_reason() {
        for (text, part) in [
            ("", "EOF"),
            ("[]", "neither an Iceberg schema"),
            ("{\"type\":\"enum\"}", "neither an Iceberg schema"),
            ("{\"type\":\"struct\",\"fields\":[]}", "no fields"),
            (
                "{\"type\":\"struct\",\"fields\":[{\"id\":1,\"name\":\"a\",\"required\":true,\"type\":\"colour\"}]}",
                "Iceberg schema",
            ),
            (
                "{\"type\":\"struct\",\"fields\":[{\"id\":1,\"name\":\"a\",\"required\":true,\"type\":\"int\"},{\"id\":1,\"name\":\"b\",\"required\":true,\"type\":\"int\"}]}",
                "Iceberg schema",
            ),
        ] {
            let error = parse_schema(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn every_avro_type_has_its_counterpart() {
        let field =
            |avro: &str| format!(r#"{{"type":"record","name":"r","fields":[{{"name":"f","type":{avro}}}]}}"#);
        for (avro, expected) in [
            (r#""boolean""#, "f!: boolean"),
            (r#""int""#, "f!: int"),
            (r#""long""#, "f!: long"),
            (r#""float""#, "f!: float"),
            (r#""double""#, "f!: double"),
            (r#""string""#, "f!: string"),
            (r#""bytes""#, "f!: binary"),
            (r#"["null","long"]"#, "f: long"),
            (r#"["long","null"]"#, "f: long"),
            (r#"["long"]"#, "f!: long"),
            (r#"{"type":"int","logicalType":"date"}"#, "f!: date"),
            (r#"{"type":"int","logicalType":"time-millis"}"#, "f!: time"),
            (r#"{"type":"long","logicalType":"time-micros"}"#, "f!: time"),
            (r#"{"type":"long","logicalType":"timestamp-millis"}"#, "f!: timestamptz"),
            (r#"{"type":"long","logicalType":"timestamp-micros","adjust-to-utc":true}"#, "f!: timestamptz"),
            (r#"{"type":"long","logicalType":"timestamp-micros","adjust-to-utc":false}"#, "f!: timestamp"),
            (r#"{"type":"long","logicalType":"timestamp-nanos"}"#, "f!: timestamptz_ns"),
            (r#"{"type":"long","logicalType":"local-timestamp-micros"}"#, "f!: timestamp"),
            (r#"{"type":"bytes","logicalType":"decimal","precision":9,"scale":2}"#, "f!: decimal(9, 2)"),
            (
                r#"{"type":"fixed","name":"d","size":5,"logicalType":"decimal","precision":9}"#,
                "f!: decimal(9, 0)",
            ),
            (r#"{"type":"fixed","name":"d","size":16,"logicalType":"uuid"}"#, "f!: uuid"),
            (r#"{"type":"string","logicalType":"uuid"}"#, "f!: uuid"),
            (r#"{"type":"fixed","name":"d","size":5}"#, "f!: fixed(5)"),
            (r#"{"type":"enum","name":"e","symbols":["A"]}"#, "f!: string"),
            (r#"{"type":"long","logicalType":"made-up"}"#, "f!: long"),
            (r#"{"type":"string","logicalType":"date"}"#, "f!: string"),
            (r#"{"type":"array","items":"int"}"#, "f!: [int]"),
            (r#"{"type":"array","items":["null","int"]}"#, "f!: [int?]"),
            (r#"{"type":"map","values":["null","string"]}"#, "f!: map<string?>"),
            (r#"{"type":"record","name":"n","fields":[{"name":"a","type":["null","int"]}]}"#, "f!: {a: int}"),
            (r#"{"type":{"type":"long","logicalType":"timestamp-millis"}}"#, "f!: timestamptz"),
        ] {
            let schema = parse_schema(&field(avro)).unwrap_or_else(|error| panic!("{avro}: {error}"));
            assert_eq!(columns(&schema), [expected], "{avro}");
        }
    }

    #[test]
    fn named_avro_types_are_found_by_their_full_names() {
        let text = r#"{"type":"record","name":"r","namespace":"com.shop","fields":[
            {"name":"a","type":{"type":"record","name":"point","fields":[{"name":"x","type":"int"}]}},
            {"name":"b","type":["null","point"]},
            {"name":"c","type":"com.shop.point","doc":"the third"},
            {"name":"d","type":{"type":"enum","name":"other.colour","symbols":["RED"]}},
            {"name":"e","type":"other.colour"}]}"#;
        let schema = parse_schema(text).unwrap();
        assert_eq!(
            columns(&schema),
            ["a!: {x!: int}", "b: {x!: int}", "c!: {x!: int}", "d!: string", "e!: string"]
        );
        assert_eq!(schema.field_by_name("c").unwrap().doc.as_deref(), Some("the third"));
        // Ids are fresh and differ although the type is one.
        let ids: Vec<_> =
            ["a", "b", "c", "d", "e", "a.x", "b.x", "c.x"].map(|name| schema.field_id_by_name(name)).into();
        assert_eq!(ids, (1..=8).map(Some).collect::<Vec<_>>());
    }

    #[test]
    fn what_iceberg_cannot_hold_is_refused_with_its_path() {
        let inner = |avro: &str| {
            format!(
                r#"{{"type":"record","name":"r","fields":[{{"name":"o","type":{{"type":"record","name":"s","fields":[{{"name":"f","type":{avro}}}]}}}}]}}"#
            )
        };
        for (avro, path) in [
            (r#"["int","string"]"#, "o.f"),
            (r#"["null","int","string"]"#, "o.f"),
            (r#""null""#, "o.f"),
            (r#"["null"]"#, "o.f"),
            (r#"{"type":"array","items":["int","string"]}"#, "o.f.element"),
            (r#"{"type":"map","values":"nothing"}"#, "o.f.value"),
            (r#""s""#, "o.f"),
            (r#"{"type":"array","items":"r"}"#, "o.f.element"),
            (r#""missing""#, "o.f"),
            (r#"{"type":"bytes","logicalType":"decimal","precision":39,"scale":2}"#, "o.f"),
            (r#"{"type":"bytes","logicalType":"decimal","precision":4,"scale":5}"#, "o.f"),
            (r#"{"type":"bytes","logicalType":"decimal"}"#, "o.f"),
            (r#"{"type":"fixed","name":"x"}"#, "o.f"),
            (r#"{"type":"record","name":"x"}"#, "o.f"),
            (r#"{"type":"record","name":"s","fields":[]}"#, "o.f"),
            (r#"{"items":"int"}"#, "o.f"),
            ("7", "o.f"),
        ] {
            match parse_schema(&inner(avro)) {
                Err(SchemaError::Unsupported { path: found, .. }) => assert_eq!(found, path, "{avro}"),
                other => panic!("{avro}: {other:?}"),
            }
        }
    }

    #[test]
    fn metadata_columns_come_last_with_ids_of_their_own() {
        let schema =
            parse_schema(r#"{"type":"record","name":"r","fields":[{"name":"a","type":"int"}]}"#).unwrap();
        let with = with_kafka_columns(&schema).unwrap();
        assert_eq!(
            columns(&with),
            [
                "a!: int",
                "_kafka!: {topic!: string, partition!: int, offset!: long, timestamp: timestamptz, key: binary, \
             headers: [{key!: string, value: binary}]}"
            ]
        );
        assert_eq!(with.highest_field_id(), 11);
        assert!(with_kafka_columns(&with).is_err());
    }
}

mod partitions {
    use iceberg::spec::Transform;

    use super::*;

    fn schema() -> Schema {
        parse_schema(
            r#"{"type":"record","name":"r","fields":[
            {"name":"id","type":"long"}, {"name":"s","type":"string"}, {"name":"d","type":{"type":"int","logicalType":"date"}},
            {"name":"ts","type":{"type":"long","logicalType":"timestamp-micros"}}, {"name":"ok","type":"boolean"},
            {"name":"user","type":{"type":"record","name":"u","fields":[{"name":"id","type":"long"}]}},
            {"name":"tags","type":{"type":"array","items":"string"}}, {"name":"taken_day","type":"int"},
            {"name":"taken","type":{"type":"int","logicalType":"date"}}]}"#,
        )
        .unwrap()
    }

    fn parse(expressions: &[&str]) -> Result<Vec<(String, i32, Transform)>, String> {
        let spec = parse_partition_spec(expressions, &schema()).map_err(|error| error.to_string())?;
        Ok(spec.fields().iter().map(|field| (field.name.clone(), field.source_id, field.transform)).collect())
    }

    #[test]
    fn expressions_have_the_names_of_other_writers() {
        let field = |name: &str, column: &str, transform| {
            (name.to_owned(), schema().field_id_by_name(column).unwrap(), transform)
        };
        let found = parse(&[
            "day(ts)",
            " bucket( 16 , id ) ",
            "truncate(4, s)",
            "identity(ok)",
            "d",
            "bucket(8, user.id) as user_bucket",
            "void(s)",
        ]);
        assert_eq!(
            found.unwrap(),
            [
                field("ts_day", "ts", Transform::Day),
                field("id_bucket", "id", Transform::Bucket(16)),
                field("s_trunc", "s", Transform::Truncate(4)),
                field("ok", "ok", Transform::Identity),
                field("d", "d", Transform::Identity),
                field("user_bucket", "user.id", Transform::Bucket(8)),
                field("s_null", "s", Transform::Void),
            ]
        );
        for (expression, name, transform) in [
            ("year(ts)", "ts_year", Transform::Year),
            ("MONTHS(d)", "d_month", Transform::Month),
            ("days(d)", "d_day", Transform::Day),
            ("hour(ts)", "ts_hour", Transform::Hour),
            ("Bucket(4, ts)", "ts_bucket", Transform::Bucket(4)),
            ("truncate(10, id)", "id_trunc", Transform::Truncate(10)),
        ] {
            let (found, _, found_transform) = parse(&[expression]).unwrap().remove(0);
            assert_eq!((found.as_str(), found_transform), (name, transform), "{expression}");
        }
        assert_eq!(parse(&[]).unwrap(), []);
    }

    #[test]
    fn expressions_that_cannot_be_are_refused_before_anything_is_written() {
        for (expressions, part) in [
            (&["nothing"][..], "no column `nothing`"),
            (&["day(s)"], "does not apply"),
            (&["hour(d)"], "does not apply"),
            (&["bucket(16, ok)"], "does not apply"),
            (&["truncate(4, ts)"], "does not apply"),
            (&["bucket(0, id)"], "width `0`"),
            (&["bucket(-1, id)"], "width `-1`"),
            (&["bucket(2147483648, id)"], "width"),
            (&["bucket(id)"], "takes a width"),
            (&["day(1, ts)"], "takes a column only"),
            (&["day(ts"], "closing parenthesis"),
            (&["zorder(id)"], "none of identity"),
            (&[""], "it is empty"),
            (&["user"], "nested"),
            (&["tags.element"], "within a list"),
            (&["bucket(16, user.id)"], "`user.id_bucket`"),
            (&["user.id"], "`user.id`"),
            (&["id as a-b"], "`a-b`"),
            (&["id as 1a"], "`1a`"),
            (&["day(taken)"], "that of a column"),
            (&["id as s"], "partition spec"),
            (&["id", "id"], "repeats"),
            (&["day(ts)", "hour(ts)"], "repeats"),
            (&["id as x", "s as x"], "repeats"),
        ] {
            let error = parse(expressions).expect_err(&format!("{expressions:?}"));
            assert!(error.contains(part), "{expressions:?}: {error}");
        }
        assert!(parse(&["bucket(16, id)", "bucket(32, id) as id_bucket_32"]).is_ok());
    }
}

mod inferred {
    use super::*;

    fn infer_in_order(
        payloads: &[&str],
        order: &[usize],
        on_conflict: OnConflict,
    ) -> Result<Inferred, SchemaError> {
        let mut inference = Inference::default();
        for index in order {
            inference.observe(&Message {
                topic: "t",
                offset: *index as i64,
                payload: Some(payloads[*index].as_bytes()),
                ..Message::default()
            });
        }
        inference.finish(on_conflict)
    }

    /// Everything about an outcome; a schema's own debug form has its maps in any order.
    fn show(outcome: &Result<Inferred, SchemaError>) -> String {
        match outcome {
            Ok(inferred) => {
                let schema = serde_json::to_string(&inferred.schema).unwrap();
                let Inferred { schema: _, columns, omitted, messages, unusable, first_unusable } = inferred;
                format!("{schema} {columns:?} {omitted:?} {messages} {unusable} {first_unusable:?}")
            }
            Err(error) => error.to_string(),
        }
    }

    /// Infers in all orders of arrival; the outcome is one.
    fn infer(payloads: &[&str], on_conflict: OnConflict) -> Result<Inferred, SchemaError> {
        let mut order: Vec<usize> = (0..payloads.len()).collect();
        let first = infer_in_order(payloads, &order, on_conflict);
        let shown = show(&first);
        for rotation in 0..payloads.len() {
            order.rotate_left(1);
            assert_eq!(show(&infer_in_order(payloads, &order, on_conflict)), shown, "rotation {rotation}");
            let backwards: Vec<usize> = order.iter().rev().copied().collect();
            assert_eq!(show(&infer_in_order(payloads, &backwards, on_conflict)), shown);
        }
        first
    }

    fn types(payloads: &[&str]) -> Vec<String> {
        columns(&infer(payloads, OnConflict::Fail).unwrap().schema)
    }

    #[test]
    fn kinds_that_go_together_have_their_common_type() {
        for (payloads, expected) in [
            (&[r#"{"x":true}"#, r#"{"x":null}"#][..], "x: boolean"),
            (&[r#"{"x":1}"#, r#"{"x":-9223372036854775808}"#], "x: long"),
            (&[r#"{"x":1}"#, r#"{"x":18446744073709551615}"#], "x: decimal(38, 0)"),
            (&[r#"{"x":9007199254740993}"#, r#"{"x":9223372036854775808}"#], "x: decimal(38, 0)"),
            (&[r#"{"x":1}"#, r#"{"x":1.5}"#, r#"{"y":0}"#], "x: double"),
            (&[r#"{"x":1e3}"#], "x: double"),
            (&[r#"{"x":"2026-01-02T03:04:05Z"}"#, r#"{}"#], "x: string"),
            (&[r#"{"x":[1,null]}"#, r#"{"x":[]}"#, r#"{"x":null}"#], "x: [long?]"),
            (&[r#"{"x":[1]}"#, r#"{"x":[2.5]}"#], "x: [double?]"),
            (&[r#"{"x":{"a":1}}"#, r#"{"x":{"b":"s"}}"#, r#"{"x":{}}"#], "x: {a: long, b: string}"),
            (&[r#"{"x":[{"a":1},{"b":[true]}]}"#], "x: [{a: long, b: [boolean?]}?]"),
        ] {
            assert_eq!(types(payloads)[0], expected, "{payloads:?}");
        }
    }

    #[test]
    fn kinds_that_do_not_go_together_are_a_conflict_that_names_path_and_offsets() {
        let payloads = [r#"{"x":1,"y":0}"#, r#"{"x":[1]}"#, r#"{"x":{"y":1}}"#, r#"{"x":2}"#];
        let error = infer(&payloads, OnConflict::Fail).unwrap_err().to_string();
        assert!(
            error.contains("`x`, which holds integer (at t/0@0), list (at t/0@1), object (at t/0@2)"),
            "{error}"
        );
        let kept = infer(&payloads, OnConflict::String).unwrap();
        assert_eq!(columns(&kept.schema), ["x: string", "y: long"]);
        assert_eq!(kept.columns.keys().collect::<Vec<_>>(), ["x"]);
        for (payload, path) in [
            (r#"{"a":[1,"x"]}"#, "a.element"),
            (r#"{"a":{"b":[{"c":1},{"c":true}]}}"#, "a.b.element.c"),
            (r#"{"a":[9007199254740993,1.5]}"#, "a.element"),
            (r#"{"a":[18446744073709551616,1.5]}"#, "a.element"),
            (r#"{"a":123456789012345678901234567890123456789}"#, "a"),
        ] {
            match infer(&[payload], OnConflict::Fail) {
                Err(SchemaError::Conflicts(conflicts)) => assert_eq!(conflicts[0].path, path, "{payload}"),
                other => panic!("{payload}: {other:?}"),
            }
        }
    }

    #[test]
    fn fields_without_a_type_are_left_out_and_reported() {
        let payloads = [
            r#"{"a":null,"b":[],"c":{},"d":[null],"e":{"f":null},"g":[{}],"h":1}"#,
            r#"{"":1,"i.j":2,"H":3}"#,
        ];
        let inferred = infer(&payloads, OnConflict::Fail).unwrap();
        // `H` comes earlier in its object than `h` does on average.
        assert_eq!(columns(&inferred.schema), ["H: long"]);
        let omitted: Vec<&str> = inferred.omitted.iter().map(|(path, _)| path.as_str()).collect();
        let mut sorted = omitted.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, ["", "a", "b", "c", "d", "e", "e.f", "g.element", "h", "i.j"]);
    }

    #[test]
    fn columns_stand_as_fields_stand_in_messages() {
        let payloads =
            [r#"{"id":1,"ts":"x","zone":"y","amount":2}"#, r#"{"id":1,"ts":"x","amount":2}"#, r#"{"id":2}"#];
        let inferred = infer(&payloads, OnConflict::Fail).unwrap();
        let names: Vec<_> =
            inferred.schema.as_struct().fields().iter().map(|field| field.name.clone()).collect();
        assert_eq!(names, ["id", "ts", "zone", "amount"]);
    }

    #[test]
    fn unusable_messages_are_counted_and_the_first_is_named() {
        let payloads = ["[1]", r#"{"a":1"#, r#"{"a":1,"a":2}"#, r#"{"a":1}"#];
        let inferred = infer(&payloads, OnConflict::Fail).unwrap();
        assert_eq!((inferred.messages, inferred.unusable), (1, 3));
        assert!(inferred.first_unusable.unwrap().starts_with("t/0@0: not-an-object"));
        assert!(matches!(infer(&["[1]"], OnConflict::Fail), Err(SchemaError::NoColumns { .. })));
        assert!(matches!(infer(&["{}"], OnConflict::Fail), Err(SchemaError::NoColumns { .. })));
        assert!(matches!(infer(&[], OnConflict::Fail), Err(SchemaError::NoColumns { .. })));
    }

    #[test]
    fn names_that_are_data_do_not_become_columns() {
        let fields: Vec<String> = (0..10_001).map(|n| format!("\"k{n}\":1")).collect();
        let payload = format!("{{{}}}", fields.join(","));
        let error = infer(&[&payload], OnConflict::Fail).unwrap_err().to_string();
        assert!(error.contains("10001 fields"), "{error}");
    }

    #[test]
    fn every_message_of_the_sample_is_a_row_of_the_inferred_schema() {
        use crate::generate::random::Random;
        for seed in 0..300 {
            let mut random = Random::new(seed, 2);
            let payloads: Vec<String> = (0..10).map(|_| object(&mut random, 3)).collect();
            let borrowed: Vec<&str> = payloads.iter().map(String::as_str).collect();
            let inferred = match infer(&borrowed, OnConflict::String) {
                Ok(inferred) => inferred,
                Err(SchemaError::NoColumns { .. }) => continue,
                Err(other) => panic!("seed {seed}: {other}"),
            };
            let arrow = Arc::new(schema_to_arrow_schema(&inferred.schema).unwrap());
            let options = DecodeOptions { columns: inferred.columns, ..DecodeOptions::default() };
            let mut decoder = JsonDecoder::new(&inferred.schema, arrow, &options).unwrap();
            let messages: Vec<Message<'_>> = payloads
                .iter()
                .map(|payload| Message { payload: Some(payload.as_bytes()), ..Message::default() })
                .collect();
            let decoded = decoder.decode(&messages).unwrap();
            let reject = decoded.rejects().next();
            assert!(reject.is_none(), "seed {seed}: {reject:?} of {payloads:?} by {}", inferred.schema);
        }
    }

    fn object(random: &mut crate::generate::random::Random, depth: u64) -> String {
        let mut members = Vec::new();
        for name in ["a", "b", "c", "d", "e"] {
            if random.below(3) > 0 {
                members.push(format!("\"{name}\":{}", value(random, depth)));
            }
        }
        format!("{{{}}}", members.join(","))
    }

    fn value(random: &mut crate::generate::random::Random, depth: u64) -> String {
        match random.below(if depth == 0 { 7 } else { 12 }) {
            0 => "null".to_owned(),
            1 => random.between(-5, 5).to_string(),
            2 => "9007199254740993".to_owned(),
            3 => "18446744073709551615".to_owned(),
            4 => format!("{}.5", random.below(100)),
            5 => "\"text \\u00e9\"".to_owned(),
            6 => "true".to_owned(),
            7 | 8 => {
                let elements: Vec<String> = (0..random.below(3)).map(|_| value(random, depth - 1)).collect();
                format!("[{}]", elements.join(", "))
            }
            _ => object(random, depth - 1),
        }
    }

    #[test]
    fn integers_of_38_digits_and_no_more_are_decimals() {
        let digits = |count: usize| format!("{{\"x\":-{}}}", "9".repeat(count));
        let schema = infer(&[&digits(38)], OnConflict::Fail).unwrap().schema;
        let expected = PrimitiveType::Decimal { precision: 38, scale: 0 };
        assert_eq!(*schema.field_by_name("x").unwrap().field_type, Type::Primitive(expected));
        assert!(infer(&[&digits(39)], OnConflict::Fail).is_err());
    }
}
