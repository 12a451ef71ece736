//! Partition tuples as keys.

use std::fmt::Write as _;

use iceberg::spec::{Literal, PrimitiveLiteral, Struct};

/// The key of a partition tuple: equal for equal tuples, whatever manifests they came from, and different for a null
/// and the string `null`, which share a path. A value whose source was promoted keeps its key.
#[must_use]
pub fn partition_key(partition: &Struct) -> String {
    let mut key = String::new();
    for value in partition.iter() {
        key.push('/');
        match value {
            None => key.push('-'),
            Some(Literal::Primitive(value)) => push_primitive(&mut key, value),
            Some(value) => push(&mut key, format_args!("{value:?}")),
        }
    }
    key
}

fn push_primitive(key: &mut String, value: &PrimitiveLiteral) {
    match value {
        PrimitiveLiteral::Int(value) => push(key, format_args!("i{value}")),
        PrimitiveLiteral::Long(value) => push(key, format_args!("i{value}")),
        PrimitiveLiteral::Float(value) => push(key, format_args!("f{:x}", f64::from(value.0).to_bits())),
        PrimitiveLiteral::Double(value) => push(key, format_args!("f{:x}", value.0.to_bits())),
        // Quoted by the debug form, so that a slash in it is no separator.
        value => push(key, format_args!("{value:?}")),
    }
}

fn push(key: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = key.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuple(values: Vec<Option<Literal>>) -> Struct {
        values.into_iter().collect()
    }

    #[test]
    fn a_null_and_the_string_null_are_two_partitions() {
        let null = partition_key(&tuple(vec![None]));
        assert_ne!(null, partition_key(&tuple(vec![Some(Literal::string("null"))])));
        assert_ne!(null, partition_key(&tuple(vec![Some(Literal::string("-"))])));
        assert_ne!(null, partition_key(&tuple(vec![])));
    }

    #[test]
    fn a_separator_in_a_value_does_not_mix_fields() {
        let joined = tuple(vec![Some(Literal::string("a/b")), None]);
        let apart = tuple(vec![Some(Literal::string("a")), Some(Literal::string("b"))]);
        assert_ne!(partition_key(&joined), partition_key(&apart));
        let quoted = tuple(vec![Some(Literal::string("a\"")), Some(Literal::string("\"b"))]);
        assert_ne!(partition_key(&quoted), partition_key(&apart));
    }

    #[test]
    fn a_promoted_value_keeps_its_key() {
        let int = tuple(vec![Some(Literal::int(-7)), Some(Literal::float(0.5))]);
        let long = tuple(vec![Some(Literal::long(-7_i64)), Some(Literal::double(0.5))]);
        assert_eq!(partition_key(&int), partition_key(&long));
        assert_ne!(
            partition_key(&int),
            partition_key(&tuple(vec![Some(Literal::int(7)), Some(Literal::float(0.5))]))
        );
    }
}
