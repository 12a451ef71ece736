//! Every type, written by firn, read by all.

use anyhow::Result;
use firn_tests::checks::After;
use firn_tests::readers::{Filter, Question, agree};

use crate::stream::{Stream, TABLE};

const ALL: &str = r#"{"type":"struct","schema-id":0,"fields":[
  {"id":1,"name":"id","required":true,"type":"long"},
  {"id":2,"name":"i","required":false,"type":"int"},
  {"id":3,"name":"b","required":false,"type":"boolean"},
  {"id":4,"name":"f","required":false,"type":"float"},
  {"id":5,"name":"d","required":false,"type":"double"},
  {"id":6,"name":"m9","required":false,"type":"decimal(9, 2)"},
  {"id":7,"name":"m18","required":false,"type":"decimal(18, 6)"},
  {"id":8,"name":"m38","required":false,"type":"decimal(38, 10)"},
  {"id":9,"name":"day","required":false,"type":"date"},
  {"id":10,"name":"t","required":false,"type":"time"},
  {"id":11,"name":"ts","required":false,"type":"timestamp"},
  {"id":12,"name":"tz","required":false,"type":"timestamptz"},
  {"id":13,"name":"s","required":false,"type":"string"},
  {"id":14,"name":"u","required":false,"type":"uuid"},
  {"id":15,"name":"bin","required":false,"type":"binary"},
  {"id":16,"name":"fix","required":false,"type":"fixed[4]"},
  {"id":17,"name":"o","required":false,"type":{"type":"struct","fields":[
    {"id":18,"name":"x","required":false,"type":"int"},
    {"id":19,"name":"deep","required":false,"type":{"type":"struct","fields":[
      {"id":20,"name":"y","required":true,"type":"string"}]}}]}},
  {"id":21,"name":"l","required":false,"type":{"type":"list","element-id":22,"element-required":false,"element":"double"}},
  {"id":23,"name":"m","required":false,"type":{"type":"map","key-id":24,"key":"string","value-id":25,
    "value-required":false,"value":"long"}}]}"#;

fn message(id: i64) -> String {
    if id % 10 == 9 {
        return serde_json::json!({ "id": id }).to_string();
    }
    serde_json::json!({
        "id": id,
        "i": -id,
        "b": id % 2 == 0,
        "f": id as f32 / 4.0,
        "d": if id == 3 { -0.0 } else { id as f64 / 7.0 },
        "m9": format!("{}.{:02}", -id, id % 100),
        "m18": format!("{id}.000001"),
        "m38": format!("1234567890123456789{id}.0000000001"),
        "day": format!("19{:02}-03-0{}", 60 + id % 40, id % 9 + 1),
        "t": format!("{:02}:59:59.999999", id % 24),
        "ts": format!("19{:02}-12-31T23:59:59.999999", 60 + id % 40),
        "tz": format!("20{:02}-02-03T04:05:06.000007Z", id % 100),
        "s": format!("ä\u{1F600}\u{0}{id}"),
        "u": format!("f79c3e09-677c-4bbd-a479-{id:012}"),
        "bin": format!("00ff{id:04x}"),
        "fix": format!("{id:08x}"),
        "o": if id % 3 == 0 { serde_json::Value::Null } else { serde_json::json!({ "x": id, "deep": { "y": "z" } }) },
        "l": if id % 4 == 0 { serde_json::json!([]) } else { serde_json::json!([id as f64, null, 0.5]) },
        "m": if id % 5 == 0 { serde_json::json!({}) } else { serde_json::json!({ "k": id, "null": null }) },
    })
    .to_string()
}

#[tokio::test]
#[ignore = "needs Kafka, Java and Python: tests/run engines"]
async fn every_type_is_read_alike_by_all_before_and_after_compaction() -> Result<()> {
    let stream = Stream::with_schema("all-types", ALL).await?;
    let options = ["--set", "decode.defaults.binary=hex", "--set", "decode.defaults.numbers=parse"];
    for first in (0..60).step_by(20) {
        stream.produce_values((first..first + 20).map(message))?;
        stream.write(&options).await?.success()?;
    }
    let question = || Question {
        warehouse: &stream.warehouse,
        table: TABLE.to_owned(),
        filters: vec![
            Filter::new("i", "lteq", -50, 9),
            Filter::is_null("ts", 6),
            Filter::new("m9", "lt", "-57.00", 2),
            Filter::new("day", "lt", "1970-01-01", 18),
            Filter::new("u", "eq", "f79c3e09-677c-4bbd-a479-000000000011", 1),
        ],
    };
    let before = agree(&[question()]).await?;
    let run = ["compact", TABLE, "--option", "min-input-files=2", "--require-work"];
    stream.warehouse.run(&run)?.success()?;
    let after = agree(&[question()]).await?;
    assert_eq!(before[0].columns, after[0].columns);
    stream.warehouse.check(TABLE, After::GracefulStop).await
}
