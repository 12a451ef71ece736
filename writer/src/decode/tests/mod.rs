use std::sync::Arc;

use arrow_cast::display::{ArrayFormatter, FormatOptions};
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::spec::{NestedField, Schema, Type};

use super::{DecodeOptions, Decoded, Decoder, JsonDecoder, Message, Outcome, RejectCode};

mod avro;
mod avro_reference;
mod differential;
mod fate;
mod json_text;
mod messages;
mod raw;
mod reference;
mod types;

/// A schema of optional fields with ids from 1 on; a name that ends with `!` is of a required field.
fn schema(fields: &[(&str, &str)]) -> Schema {
    let fields = fields.iter().zip(1..).map(|((name, text), id)| {
        let field_type: Type = serde_json::from_str(&type_json(text)).unwrap();
        match name.strip_suffix('!') {
            Some(name) => Arc::new(NestedField::required(id, name, field_type)),
            None => Arc::new(NestedField::optional(id, *name, field_type)),
        }
    });
    Schema::builder().with_fields(fields).build().unwrap()
}

/// A nested type is given as JSON, a primitive one by its name.
fn type_json(text: &str) -> String {
    if text.starts_with('{') { text.to_owned() } else { format!("{text:?}") }
}

fn decoder(schema: &Schema, options: &DecodeOptions) -> JsonDecoder {
    let arrow = Arc::new(schema_to_arrow_schema(schema).unwrap());
    JsonDecoder::new(schema, arrow, options).unwrap()
}

fn messages<'a>(payloads: &[&'a [u8]]) -> Vec<Message<'a>> {
    let message = |(payload, offset): (&&'a [u8], i64)| Message {
        topic: "events",
        partition: 3,
        offset,
        payload: Some(payload),
        ..Message::default()
    };
    payloads.iter().zip(0..).map(message).collect()
}

/// The rows as text, one string for each row, and the reject's code and path for each message that is none.
fn outcomes(decoded: &Decoded) -> Vec<Result<String, (RejectCode, String)>> {
    let options = FormatOptions::default().with_null("null");
    let columns: Vec<_> = decoded
        .batch
        .columns()
        .iter()
        .map(|column| ArrayFormatter::try_new(column.as_ref(), &options).unwrap())
        .collect();
    let mut row = 0;
    let mut rendered = Vec::new();
    for outcome in &decoded.outcomes {
        rendered.push(match outcome {
            Outcome::Row => {
                let cells: Vec<String> = columns.iter().map(|column| column.value(row).to_string()).collect();
                row += 1;
                Ok(cells.join(" | "))
            }
            Outcome::Skipped => Ok("skipped".to_owned()),
            Outcome::Rejected(reject) => Err((reject.code, reject.path.clone())),
        });
    }
    assert_eq!(row, decoded.batch.num_rows());
    rendered
}

/// The one column of one message.
fn decode_value(column_type: &str, options: &DecodeOptions, value: &str) -> Result<String, RejectCode> {
    let mut decoder = decoder(&schema(&[("v", column_type)]), options);
    let payload = format!("{{\"v\":{value}}}");
    let decoded = decoder.decode(&messages(&[payload.as_bytes()])).unwrap();
    outcomes(&decoded).remove(0).map_err(|(code, path)| {
        let whole =
            ["malformed-json", "trailing-data", "too-deep", "lone-surrogate"].contains(&code.as_str());
        assert!(path == "v" || whole, "{value}: the path is {path:?}");
        code
    })
}
