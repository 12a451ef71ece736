//! Makes messages.

use std::io::Write;
use std::ops::Range;

use super::bad::{Bad, Spoiler, spoil};
use super::json::{write_decimal, write_int, write_string, write_timestamp, write_uuid};
use super::random::{Random, Weighted, murmur2};
use super::words::words;
use super::{FieldKind, FieldTemplate, Format, Partitioning, Template, avro};

/// One generated message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    /// The key: the JSON text of the key field's value, without quotes where it is text. `None` without a key field,
    /// and where its value is null or absent.
    pub key: Option<Vec<u8>>,
    /// The JSON text, or the bytes of Avro.
    pub payload: Vec<u8>,
    /// The partition, `0..partitions`.
    pub partition: i32,
    /// What was done to the message so that no decoder takes it.
    pub bad: Option<Bad>,
}

/// Makes the messages of one seed, each from its index alone.
#[derive(Debug, Clone)]
pub struct Generator {
    template: Template,
    /// One for each field.
    tables: Vec<Option<Weighted>>,
    words: Vec<&'static str>,
    word_weights: Weighted,
    key: Option<usize>,
    spoiler: Spoiler,
    seed: u64,
    partitions: i32,
}

/// What a message depends on beside its template and seed.
#[derive(Debug, Clone, Copy)]
struct Moment {
    index: u64,
    now_ms: i64,
}

/// A message as JSON.
#[derive(Debug)]
struct Object {
    text: Vec<u8>,
    key: Option<Vec<u8>>,
    /// Where each field's value is; `None` where it is null or absent.
    values: Vec<Option<Range<usize>>>,
}

impl Generator {
    /// The template was checked and there is a partition.
    pub(super) fn new(template: &Template, seed: u64, partitions: i32) -> Self {
        let tables = template.fields.iter().map(|field| table(&field.kind)).collect();
        let key =
            template.key.as_ref().and_then(|key| template.fields.iter().position(|field| field.name == *key));
        let words = words();
        // As frequent words are in a language.
        let word_weights = Weighted::zipf(words.len() as u32, 0.9);
        let spoiler = Spoiler::new(template);
        Self { template: template.clone(), tables, words, word_weights, key, spoiler, seed, partitions }
    }

    /// The `index`-th message. Timestamps are near `now_ms` (milliseconds since the epoch), which the caller gives.
    #[must_use]
    pub fn message(&self, index: u64, now_ms: i64) -> Generated {
        let mut random = Random::new(self.seed, index);
        let Object { mut text, key, values } = self.object(Moment { index, now_ms }, &mut random);
        let partitions = u64::from(self.partitions.unsigned_abs());
        let partition = match (self.template.partitioning, &key) {
            (Partitioning::Key, Some(key)) => u64::from(murmur2(key) & 0x7FFF_FFFF) % partitions,
            _ => index % partitions,
        };
        if self.template.format == Format::Avro {
            let texts: Vec<Option<&[u8]>> =
                values.iter().map(|place| place.clone().map(|place| &text[place])).collect();
            text = avro::encode(&self.template.fields, &texts);
        }
        let bad = self.spoiler.choose(&mut random, &mut Random::new(!self.seed, index));
        if let Some(bad) = bad {
            spoil(bad, &mut text, values.into_iter().flatten().next());
        }
        Generated { key, payload: text, partition: partition as i32, bad }
    }

    fn object(&self, moment: Moment, random: &mut Random) -> Object {
        let length = self.template.message_bytes.unwrap_or(256);
        let mut out = Vec::with_capacity(length + 16);
        let (mut key, mut text_at) = (None, None);
        let mut values: Vec<Option<Range<usize>>> = vec![None; self.template.fields.len()];
        out.push(b'{');
        for (place, field) in self.template.fields.iter().enumerate() {
            if random.happens(field.absent) {
                continue;
            }
            if out.len() > 1 {
                out.push(b',');
            }
            write_string(&field.name, &mut out);
            out.push(b':');
            if random.happens(field.nulls) {
                out.extend_from_slice(b"null");
                continue;
            }
            let start = out.len();
            self.value(place, moment, random, &mut out);
            values[place] = Some(start..out.len());
            if matches!(field.kind, FieldKind::Text {}) {
                text_at = Some((place, start + 1));
            }
            if self.key == Some(place) {
                key = Some(unquoted(&out[start..]).to_vec());
            }
        }
        out.push(b'}');
        if let Some((place, at)) = text_at {
            let text = self.text(length.saturating_sub(out.len()), random);
            for value in values[place..].iter_mut().flatten() {
                value.end += text.len();
                value.start += if value.start < at { 0 } else { text.len() };
            }
            out.splice(at..at, text);
        }
        Object { text: out, key, values }
    }

    fn value(&self, place: usize, moment: Moment, random: &mut Random, out: &mut Vec<u8>) {
        let FieldTemplate { kind, .. } = &self.template.fields[place];
        let pick = |random: &mut Random| self.tables[place].as_ref().map_or(0, |table| table.pick(random));
        match kind {
            FieldKind::Sequence { start } => write_int(start.wrapping_add_unsigned(moment.index), out),
            FieldKind::Int { min, max } => write_int(random.between(*min, *max), out),
            FieldKind::Zipf { prefix, .. } => match (prefix, pick(random) + 1) {
                (Some(prefix), key) => write_string(&format!("{prefix}{key}"), out),
                (None, key) => write_int(key as i64, out),
            },
            // Writing to a vector cannot fail.
            FieldKind::Float { min, max } => drop(write!(out, "{:?}", min + random.unit() * (max - min))),
            FieldKind::Decimal { min, max, scale } => {
                let unit = 10i64.pow(*scale);
                write_decimal(random.between(min * unit, max * unit), *scale, out);
            }
            FieldKind::Boolean { share } => {
                out.extend_from_slice(if random.happens(*share) { b"true" } else { b"false" });
            }
            FieldKind::String { length } => write_letters(*length, random, out),
            FieldKind::Unicode { length } => write_string(&unicode(*length, random), out),
            FieldKind::Choice { values, .. } => write_string(&values[pick(random)], out),
            FieldKind::Tags { values, max } => write_tags(values, *max, random, out),
            FieldKind::Url { pages } => {
                let page = random.below(u64::from(*pages));
                let section = self.words[(page % 17) as usize + 100];
                write_string(&format!("https://shop.example/{section}/{page}?ref={}", random.below(40)), out);
            }
            FieldKind::Uuid {} => write_uuid(random.next(), random.next(), out),
            FieldKind::Timestamp { max_delay_ms, late_share, max_late_ms } => {
                let longest = if random.happens(*late_share) { *max_late_ms } else { *max_delay_ms };
                let delay = random.between(0, i64::from(longest) * 1_000);
                write_timestamp(moment.now_ms.saturating_mul(1_000).saturating_sub(delay), out);
            }
            FieldKind::Text {} => out.extend_from_slice(b"\"\""),
        }
    }

    /// Words of about `length` bytes together.
    fn text(&self, length: usize, random: &mut Random) -> Vec<u8> {
        let mut text = Vec::with_capacity(length + 16);
        let mut since_stop = 0;
        while text.len() < length {
            since_stop += 1;
            text.extend_from_slice(self.words[self.word_weights.pick(random)].as_bytes());
            if since_stop > 6 && random.below(8) == 0 {
                text.push(b'.');
                since_stop = 0;
            }
            text.push(b' ');
        }
        text.truncate(length);
        text
    }
}

fn table(kind: &FieldKind) -> Option<Weighted> {
    match kind {
        FieldKind::Zipf { keys, exponent, .. } => Some(Weighted::zipf(*keys, *exponent)),
        FieldKind::Choice { values, weights } if weights.is_empty() => {
            Some(Weighted::new(values.iter().map(|_| 1.0)))
        }
        FieldKind::Choice { weights, .. } => Some(Weighted::new(weights.iter().copied())),
        _ => None,
    }
}

fn unquoted(json: &[u8]) -> &[u8] {
    json.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(json)
}

fn write_letters(length: usize, random: &mut Random, out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend((0..length).map(|_| b"abcdefghijklmnopqrstuvwxyz0123456789"[random.below(36) as usize]));
    out.push(b'"');
}

/// Each tag is as likely as any other to be among at most `max`.
fn write_tags(values: &[String], max: usize, random: &mut Random, out: &mut Vec<u8>) {
    let mut wanted = random.below(max.min(values.len()) as u64 + 1);
    out.push(b'[');
    for (place, value) in values.iter().enumerate() {
        let left = (values.len() - place) as u64;
        if random.below(left) < wanted {
            wanted -= 1;
            if out.last() != Some(&b'[') {
                out.push(b',');
            }
            write_string(value, out);
        }
    }
    out.push(b']');
}

/// Characters of one to four bytes in UTF-8: letters with and without marks, from right to left, control characters,
/// quotes, what joins and what combines, and the last ones of their length.
fn unicode(length: usize, random: &mut Random) -> String {
    const RANGES: [(u32, u32); 10] = [
        (0x0001, 0x001F),
        (0x0020, 0x007E),
        (0x00C0, 0x024F),
        (0x0300, 0x036F),
        (0x05D0, 0x05EA),
        (0x0915, 0x0939),
        (0x200B, 0x200F),
        (0x4E00, 0x9FFF),
        (0xFFF0, 0xFFFD),
        (0x1F300, 0x1F64F),
    ];
    let pick = |_| {
        let (first, last) = RANGES[random.below(RANGES.len() as u64) as usize];
        char::from_u32(random.between(i64::from(first), i64::from(last)) as u32).unwrap_or('\u{10FFFF}')
    };
    (0..length).map(pick).collect()
}
