//! Random schemas of writer and table, and random datums, broken ones among them: the fast decoder and the reference
//! agree on every one.

use iceberg::spec::{ListType, MapType, NestedFieldRef, PrimitiveType as P, StructType};
use serde_json::{Value as Json, json};

use super::super::avro_reference::Writer;
use super::super::differential::options;
use super::super::reference::cell;
use super::*;
use crate::generate::random::Random;

const SEEDS: u64 = 1_500;
const MESSAGES: usize = 25;

#[test]
fn the_fast_decoder_and_the_reference_agree() {
    let (mut rows, mut rejects) = (0, std::collections::BTreeMap::new());
    for seed in 0..SEEDS {
        let mut random = Random::new(seed, 7);
        let mut made = Made { names: 0, ids: 0 };
        let (json, fields) = made.record(&mut random, 2);
        let schema = Schema::builder().with_fields(fields).build().unwrap();
        let options = options(&mut random);
        let text = json.to_string();
        let payloads: Vec<Vec<u8>> = (0..MESSAGES).map(|_| message(&mut random, &json)).collect();
        let borrowed: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
        let decoded = avro(&schema, &options, &text).unwrap().decode(&messages(&borrowed)).unwrap();
        let writer = Writer::new(&text);
        let mut row = 0;
        for (payload, outcome) in payloads.iter().zip(&decoded.outcomes) {
            let expected = writer.decode(payload, schema.as_struct(), &options);
            let found = match outcome {
                Outcome::Row => {
                    row += 1;
                    Ok(decoded.batch.columns().iter().map(|column| cell(column, row - 1)).collect())
                }
                Outcome::Rejected(reject) => Err(malformed_alike(reject.code)),
                Outcome::Skipped => panic!("seed {seed}: a message was skipped"),
            };
            if has_wide_integer(payload) && found == Err(RejectCode::MalformedAvro) {
                continue;
            }
            assert_eq!(found, expected, "seed {seed}, {text}, table {schema}, {options:?}, {payload:02x?}");
            match found {
                Ok(_) => rows += 1,
                Err(code) => *rejects.entry(code).or_insert(0) += 1,
            }
        }
    }
    assert!(rows > 1_000, "{rows} rows, {rejects:?}");
    assert!(rejects.len() >= 14, "{rows} rows, {rejects:?}");
}

/// The reference has one code for all that is malformed.
fn malformed_alike(code: RejectCode) -> RejectCode {
    use RejectCode::{EmptyValue, InvalidUtf8, MalformedAvro};
    if matches!(code, EmptyValue | InvalidUtf8) { MalformedAvro } else { code }
}

/// An integer of ten bytes: `apache-avro` drops the bits beyond the 64th.
fn has_wide_integer(payload: &[u8]) -> bool {
    payload.windows(9).any(|bytes| bytes.iter().all(|byte| *byte >= 0x80))
}

struct Made {
    names: usize,
    ids: i32,
}

fn pick<T: Copy>(random: &mut Random, values: &[T]) -> T {
    values[random.below(values.len() as u64) as usize]
}

impl Made {
    fn id(&mut self) -> i32 {
        self.ids += 1;
        self.ids
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("n{}", self.names)
    }

    /// A record, and the columns of a table that has most of its fields, and one of its own now and then.
    fn record(&mut self, random: &mut Random, depth: usize) -> (Json, Vec<NestedFieldRef>) {
        let (mut members, mut fields) = (Vec::new(), Vec::new());
        for place in 0..1 + random.below(5) {
            let name = format!("f{place}");
            let (mut avro, column) = self.pair(random, depth);
            if random.below(3) == 0 {
                avro = if random.below(2) == 0 { json!(["null", avro]) } else { json!([avro, "null"]) };
            }
            members.push(json!({"name": name, "type": avro}));
            if random.below(6) > 0 {
                fields.push(Arc::new(NestedField::new(self.id(), name, column, random.below(3) == 0)));
            }
        }
        if fields.is_empty() || random.below(6) == 0 {
            let column = Type::Primitive(P::Long);
            fields.push(Arc::new(NestedField::new(self.id(), "own", column, random.below(6) == 0)));
        }
        if random.below(3) == 0 {
            fields.reverse();
        }
        (json!({"type": "record", "name": self.name(), "fields": members}), fields)
    }

    /// A type of the writer and one of the table, most often its counterpart.
    fn pair(&mut self, random: &mut Random, depth: usize) -> (Json, Type) {
        match random.below(if depth == 0 { 6 } else { 9 }) {
            6 => {
                let (record, fields) = self.record(random, depth - 1);
                (record, Type::Struct(StructType::new(fields)))
            }
            7 => {
                let (items, column) = self.pair(random, depth - 1);
                let element = NestedField::list_element(self.id(), column, random.below(2) == 0);
                (json!({"type": "array", "items": items}), Type::List(ListType::new(Arc::new(element))))
            }
            8 => {
                let (values, column) = self.pair(random, depth - 1);
                let key = NestedField::map_key_element(self.id(), Type::Primitive(P::String));
                let value = NestedField::map_value_element(self.id(), column, random.below(2) == 0);
                let map = MapType::new(Arc::new(key), Arc::new(value));
                (json!({"type": "map", "values": values}), Type::Map(map))
            }
            0 => (self.leaf(random).0, self.leaf(random).1),
            _ => self.leaf(random),
        }
    }

    fn leaf(&mut self, random: &mut Random) -> (Json, Type) {
        let logical = |base: &str, name: &str| json!({"type": base, "logicalType": name});
        let decimal = P::Decimal { precision: 10, scale: 2 };
        let (avro, column) = match random.below(22) {
            0 => (json!("boolean"), P::Boolean),
            1 => (json!("int"), pick_of(random, &[P::Int, P::Long, P::Float, P::Double])),
            2 => (json!("long"), pick_of(random, &[P::Long, P::Int, P::Float, decimal, P::Timestamp])),
            3 => (json!("float"), pick_of(random, &[P::Float, P::Double, P::Int])),
            4 => (json!("double"), pick_of(random, &[P::Double, P::Float, P::Long])),
            5 => (json!("bytes"), pick_of(random, &[P::Binary, P::Fixed(3)])),
            6 => (json!("string"), P::String),
            7 => (json!("string"), pick_of(random, &[P::Date, P::Uuid, P::Long, P::Binary, P::Timestamptz])),
            8 => (json!({"type": "fixed", "name": self.name(), "size": 3}), P::Fixed(3)),
            9 => (json!({"type": "enum", "name": self.name(), "symbols": ["A", "BB", "CCC"]}), P::String),
            10 => (logical("int", "date"), P::Date),
            11 => (logical("int", "time-millis"), P::Time),
            12 => (logical("long", "time-micros"), P::Time),
            13 => (logical("long", "timestamp-millis"), P::Timestamptz),
            14 => (logical("long", "timestamp-micros"), pick_of(random, &[P::Timestamptz, P::Timestamp])),
            15 => (logical("long", "timestamp-nanos"), P::Timestamptz),
            16 => (logical("long", "local-timestamp-micros"), P::Timestamp),
            17 => (
                json!({"type": "long", "logicalType": "timestamp-millis", "adjust-to-utc": false}),
                P::Timestamp,
            ),
            18 => (json!({"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3}), decimal),
            19 => {
                let name = self.name();
                let fixed = json!({"type": "fixed", "name": name, "size": 6, "logicalType": "decimal",
                    "precision": 9, "scale": 1});
                (fixed, decimal)
            }
            20 => (logical("string", "uuid"), pick_of(random, &[P::Uuid, P::String])),
            _ => {
                let name = self.name();
                let fixed = json!({"type": "fixed", "name": name, "size": 16, "logicalType": "uuid"});
                (fixed, pick_of(random, &[P::Uuid, P::Fixed(16), P::Binary]))
            }
        };
        (avro, Type::Primitive(column))
    }
}

fn pick_of(random: &mut Random, columns: &[P]) -> P {
    // The first one is the counterpart.
    let place = if random.below(2) == 0 { 0 } else { random.below(columns.len() as u64) };
    columns[place as usize].clone()
}

fn message(random: &mut Random, schema: &Json) -> Vec<u8> {
    let mut out = Vec::new();
    value(random, schema, &mut out);
    if random.below(5) == 0 {
        let at = random.below(out.len() as u64 + 1) as usize;
        match random.below(4) {
            0 => out.truncate(at),
            1 => out.insert(at, random.below(256) as u8),
            2 if at < out.len() => out[at] ^= 1 << random.below(8),
            _ => out.extend([0; 2]),
        }
    }
    out
}

fn value(random: &mut Random, schema: &Json, out: &mut Vec<u8>) {
    if let Some(branches) = schema.as_array() {
        let branch = random.below(branches.len() as u64);
        out.extend(long(branch as i64));
        return value(random, &branches[branch as usize], out);
    }
    match schema.as_str().or_else(|| schema["type"].as_str()).unwrap() {
        "record" => schema["fields"].as_array().unwrap().iter().for_each(|f| value(random, &f["type"], out)),
        "array" => blocks(random, out, |random, out| value(random, &schema["items"], out)),
        "map" => blocks(random, out, |random, out| {
            out.extend(bytes(format!("k{}", random.below(12)).as_bytes()));
            value(random, &schema["values"], out);
        }),
        "null" => {}
        "boolean" => out.push(random.below(2) as u8),
        "int" => out.extend(long(integer(random, 32))),
        "long" => out.extend(long(integer(random, 64))),
        "float" => {
            let value = pick(random, &[0.0f32, -0.0, 1.5, 3.0, 1e30, f32::NAN, f32::INFINITY]);
            out.extend(value.to_le_bytes());
        }
        "double" => {
            let value = pick(random, &[0.0f64, -7.0, 2.5, 0.1, 1e300, 1e-300, f64::NAN, 9.3e18]);
            out.extend(value.to_le_bytes());
        }
        "enum" => out.push(random.below(3) as u8 * 2),
        "fixed" => (0..schema["size"].as_u64().unwrap()).for_each(|_| out.push(byte(random))),
        "bytes" => {
            let length = pick(random, &[0, 1, 2, 3, 3, 5, 17]);
            out.extend(bytes(&(0..length).map(|_| byte(random)).collect::<Vec<_>>()));
        }
        _ => out.extend(bytes(text(random).as_bytes())),
    }
}

fn blocks(random: &mut Random, out: &mut Vec<u8>, mut element: impl FnMut(&mut Random, &mut Vec<u8>)) {
    for _ in 0..random.below(3) {
        let count = 1 + random.below(3) as i64;
        let mut inside = Vec::new();
        (0..count).for_each(|_| element(random, &mut inside));
        if random.below(3) == 0 {
            out.extend([long(-count), long(inside.len() as i64)].concat());
        } else {
            out.extend(long(count));
        }
        out.extend(inside);
    }
    out.push(0);
}

fn byte(random: &mut Random) -> u8 {
    pick(random, &[0, 0, 1, 0x7f, 0x80, 0xff, 0xff, 10])
}

fn integer(random: &mut Random, bits: u32) -> i64 {
    let wide = random.next() as i64 >> random.below(64);
    if bits == 32 { i64::from(wide as i32) } else { wide }
}

fn text(random: &mut Random) -> &'static str {
    pick(
        random,
        &[
            "",
            "text",
            "é",
            "12",
            "-1.5",
            "2026-01-02",
            "2026-01-02T03:04:05Z",
            "00ff0a",
            "f79c3e09-677c-4bbd-a479-3f349cb785e7",
            "1e400",
        ],
    )
}
