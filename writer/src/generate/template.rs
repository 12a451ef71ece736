//! Templates: the default one, their TOML form, their schema, and what they must be like.

use std::collections::BTreeMap;
use std::sync::Arc;

use iceberg::spec::{ListType, NestedField, PrimitiveType, Schema, Type};

use super::generator::Generator;
use super::{FieldKind, FieldTemplate, Format, Partitioning, Template, TemplateError, avro};

/// Zipf keys are kept as a table.
const MAX_KEYS: u32 = 1 << 20;

/// Messages and their parts beyond this are mistakes.
const MAX_BYTES: usize = 16 << 20;

impl Template {
    /// Events of about 1 KiB with 12 fields, such as a shop's site sends: `id`, `ts`, `user_id`, `kind`, `country`,
    /// `url`, `amount`, `duration_ms`, `ok`, `tags`, `session`, `text`.
    #[must_use]
    pub fn default_events() -> Self {
        let values = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
        let kinds = values(&["view", "click", "search", "cart", "purchase", "refund", "error"]);
        let kind_weights = vec![50.0, 25.0, 10.0, 7.0, 5.0, 1.0, 2.0];
        let countries = values(&["DE", "US", "FR", "IN", "BR", "JP", "GB", "NG", "CN", "MX"]);
        let country_weights = vec![20.0, 18.0, 12.0, 11.0, 9.0, 8.0, 8.0, 5.0, 5.0, 4.0];
        let tags = values(&["mobile", "returning", "beta", "newsletter", "discount", "guest"]);
        let field =
            |name: &str, nulls, kind| FieldTemplate { name: name.to_owned(), nulls, absent: 0.0, kind };
        Self {
            key: Some("user_id".to_owned()),
            partitioning: Partitioning::RoundRobin,
            message_bytes: Some(1024),
            format: Format::Json,
            bad_share: 0.0,
            bad: BTreeMap::new(),
            fields: vec![
                field("id", 0.0, FieldKind::Sequence { start: 0 }),
                field("ts", 0.0, FieldKind::Timestamp { max_delay_ms: 0, late_share: 0.0, max_late_ms: 0 }),
                field("user_id", 0.0, FieldKind::Zipf { keys: 100_000, exponent: 1.1, prefix: None }),
                field("kind", 0.0, FieldKind::Choice { values: kinds, weights: kind_weights }),
                field("country", 0.02, FieldKind::Choice { values: countries, weights: country_weights }),
                field("url", 0.0, FieldKind::Url { pages: 5_000 }),
                field("amount", 0.6, FieldKind::Decimal { min: 0, max: 2_000, scale: 2 }),
                field("duration_ms", 0.0, FieldKind::Int { min: 1, max: 60_000 }),
                field("ok", 0.0, FieldKind::Boolean { share: 0.97 }),
                field("tags", 0.0, FieldKind::Tags { values: tags, max: 3 }),
                field("session", 0.0, FieldKind::Uuid {}),
                field("text", 0.0, FieldKind::Text {}),
            ],
        }
    }

    /// Reads a template from TOML and checks it.
    pub fn from_toml(text: &str) -> Result<Self, TemplateError> {
        let template: Self = toml::from_str(text).map_err(|error| fault("(file)", error.to_string()))?;
        template.check()?;
        Ok(template)
    }

    /// The template as TOML.
    pub fn to_toml(&self) -> Result<String, TemplateError> {
        toml::to_string(self).map_err(|error| fault("(file)", error.to_string()))
    }

    /// The Iceberg schema that fits the messages, with fresh ids.
    pub fn schema(&self) -> Result<Schema, TemplateError> {
        self.check()?;
        let fields = self.fields.iter().zip(1..).map(|(field, id)| {
            let required = field.nulls == 0.0 && field.absent == 0.0;
            let list_id = 1 + i32::try_from(self.fields.len()).unwrap_or(i32::MAX / 2) + id;
            Arc::new(NestedField::new(id, &field.name, field_type(&field.kind, list_id), required))
        });
        let built = Schema::builder().with_fields(fields).build();
        built.map_err(|error| fault("fields", error.message().to_owned()))
    }

    /// The Avro schema of the messages, as JSON.
    pub fn avro_schema(&self) -> Result<serde_json::Value, TemplateError> {
        self.check()?;
        match self.fields.iter().find(|field| !avro::is_name(&field.name)) {
            Some(field) => Err(fault(&field.name, "it is no name in Avro".to_owned())),
            None => Ok(avro::schema(&self.fields)),
        }
    }

    /// A generator for a topic with `partitions` partitions.
    pub fn generator(&self, seed: u64, partitions: i32) -> Result<Generator, TemplateError> {
        self.check()?;
        if partitions < 1 {
            return Err(fault("(topic)", format!("{partitions} partitions: at least one is needed")));
        }
        Ok(Generator::new(self, seed, partitions))
    }

    fn check(&self) -> Result<(), TemplateError> {
        if self.fields.is_empty() {
            return Err(fault("fields", "there are none".to_owned()));
        }
        self.check_bad()?;
        for (index, field) in self.fields.iter().enumerate() {
            if field.name.is_empty() || self.fields[..index].iter().any(|other| other.name == field.name) {
                return Err(fault(&field.name, "its name is empty or that of an earlier field".to_owned()));
            }
            check_share(&field.name, field.nulls)?;
            check_share(&field.name, field.absent)?;
            check_kind(&field.kind).map_err(|reason| fault(&field.name, reason.to_owned()))?;
        }
        self.check_key()?;
        self.check_text()?;
        let no_name = |field: &&FieldTemplate| self.format == Format::Avro && !avro::is_name(&field.name);
        match self.fields.iter().find(no_name) {
            Some(field) => Err(fault(&field.name, "it is no name in Avro".to_owned())),
            None => Ok(()),
        }
    }

    fn check_bad(&self) -> Result<(), TemplateError> {
        check_share("bad_share", self.bad_share)?;
        for (bad, share) in &self.bad {
            check_share("bad", *share)?;
            if !bad.applies_to(self.format) {
                return Err(fault("bad", format!("{bad:?} is no way in which Avro can be bad")));
            }
        }
        check_share("bad", self.bad.values().sum())
    }

    fn check_key(&self) -> Result<(), TemplateError> {
        match &self.key {
            Some(key) if !self.fields.iter().any(|field| field.name == *key) => {
                Err(fault("key", format!("there is no field `{key}`")))
            }
            _ => Ok(()),
        }
    }

    fn check_text(&self) -> Result<(), TemplateError> {
        let texts = self.fields.iter().filter(|field| field.kind == FieldKind::Text {}).count();
        match self.message_bytes {
            Some(bytes) if bytes > MAX_BYTES => {
                Err(fault("message_bytes", format!("{bytes} is more than {MAX_BYTES}")))
            }
            Some(_) if texts == 0 => {
                Err(fault("message_bytes", "no field of kind `text` can fill the message".to_owned()))
            }
            None if texts > 0 => Err(fault("message_bytes", "a field of kind `text` needs it".to_owned())),
            _ if texts > 1 => Err(fault("fields", "more than one is of kind `text`".to_owned())),
            _ => Ok(()),
        }
    }
}

fn fault(path: &str, reason: String) -> TemplateError {
    TemplateError { path: path.to_owned(), reason }
}

fn check_share(path: &str, share: f64) -> Result<(), TemplateError> {
    if (0.0..=1.0).contains(&share) {
        return Ok(());
    }
    Err(fault(path, format!("the share {share} is not from 0 to 1")))
}

fn check_kind(kind: &FieldKind) -> Result<(), &'static str> {
    match kind {
        FieldKind::Int { min, max } if min > max => Err("`min` is above `max`"),
        FieldKind::Decimal { min, max, .. } if min > max => Err("`min` is above `max`"),
        FieldKind::Decimal { min, max, scale } => {
            let digits = min.unsigned_abs().max(max.unsigned_abs()).checked_ilog10().map_or(1, |log| log + 1);
            if digits + scale > 18 { Err("it has more than 18 digits") } else { Ok(()) }
        }
        FieldKind::Float { min, max } if !(min < max && min.is_finite() && max.is_finite()) => {
            Err("`min` is not below `max`")
        }
        FieldKind::Zipf { keys, .. } if !(1..=MAX_KEYS).contains(keys) => {
            Err("`keys` is not from 1 to 1,048,576")
        }
        FieldKind::Zipf { exponent, .. } if !(0.0..=10.0).contains(exponent) => {
            Err("`exponent` is not from 0 to 10")
        }
        FieldKind::Boolean { share } if !(0.0..=1.0).contains(share) => Err("`share` is not from 0 to 1"),
        FieldKind::Timestamp { late_share, .. } if !(0.0..=1.0).contains(late_share) => {
            Err("`late_share` is not from 0 to 1")
        }
        FieldKind::Timestamp { late_share, max_delay_ms, max_late_ms }
            if *late_share > 0.0 && max_late_ms <= max_delay_ms =>
        {
            Err("`max_late_ms` is not above `max_delay_ms`")
        }
        FieldKind::String { length } | FieldKind::Unicode { length } if *length > MAX_BYTES => {
            Err("`length` is more than 16 MiB")
        }
        FieldKind::Url { pages: 0 } => Err("`pages` is zero"),
        FieldKind::Choice { values, .. } | FieldKind::Tags { values, .. } if values.is_empty() => {
            Err("`values` is empty")
        }
        FieldKind::Choice { values, weights } if !weights.is_empty() && weights.len() != values.len() => {
            Err("there are not as many `weights` as `values`")
        }
        FieldKind::Choice { weights, .. }
            if weights.iter().any(|weight| !(*weight > 0.0 && weight.is_finite())) =>
        {
            Err("a weight is not above zero")
        }
        _ => Ok(()),
    }
}

fn field_type(kind: &FieldKind, list_id: i32) -> Type {
    Type::Primitive(match kind {
        FieldKind::Int { min, max } if i32::try_from(*min).is_ok() && i32::try_from(*max).is_ok() => {
            PrimitiveType::Int
        }
        FieldKind::Sequence { .. } | FieldKind::Int { .. } | FieldKind::Zipf { prefix: None, .. } => {
            PrimitiveType::Long
        }
        FieldKind::Float { .. } => PrimitiveType::Double,
        FieldKind::Decimal { scale, .. } => PrimitiveType::Decimal { precision: 18, scale: *scale },
        FieldKind::Boolean { .. } => PrimitiveType::Boolean,
        FieldKind::Uuid {} => PrimitiveType::Uuid,
        FieldKind::Timestamp { .. } => PrimitiveType::Timestamptz,
        FieldKind::Tags { .. } => {
            let element = NestedField::list_element(list_id, Type::Primitive(PrimitiveType::String), true);
            return Type::List(ListType::new(Arc::new(element)));
        }
        FieldKind::Zipf { prefix: Some(_), .. }
        | FieldKind::String { .. }
        | FieldKind::Unicode { .. }
        | FieldKind::Choice { .. }
        | FieldKind::Url { .. }
        | FieldKind::Text {} => PrimitiveType::String,
    })
}
