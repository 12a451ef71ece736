//! JSON messages.

use arrow_schema::SchemaRef;
use iceberg::spec::Schema;

use super::{DecodeError, DecodeOptions, Decoded, Decoder, Message};

/// Decodes JSON objects into the columns of a table's schema.
#[derive(Debug)]
pub struct JsonDecoder {
    arrow_schema: SchemaRef,
}

impl JsonDecoder {
    /// A decoder for a table. `arrow_schema` is the Arrow form of `schema` with field ids, as data files are written.
    pub fn new(
        schema: &Schema,
        arrow_schema: SchemaRef,
        options: &DecodeOptions,
    ) -> Result<Self, DecodeError> {
        let _ = (schema, options);
        Ok(Self { arrow_schema })
    }
}

impl Decoder for JsonDecoder {
    fn arrow_schema(&self) -> &SchemaRef {
        &self.arrow_schema
    }

    fn decode(&mut self, messages: &[Message<'_>]) -> Result<Decoded, DecodeError> {
        let _ = messages;
        unimplemented!()
    }
}
