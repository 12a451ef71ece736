//! The partition tuples of outputs.

use iceberg::spec::{Literal, PartitionSpec, PrimitiveLiteral, PrimitiveType, Schema, Struct, Type};

/// The tuple of a group's outputs: that of its inputs, with values in the types that the current schema gives the
/// spec's fields (a promoted source column promotes them). Fields whose source was dropped stay as they are.
pub(crate) fn output_partition(spec: &PartitionSpec, schema: &Schema, inputs: &Struct) -> Struct {
    let Ok(partition_type) = spec.partition_type(schema) else { return inputs.clone() };
    let types =
        partition_type.fields().iter().map(|field| Some(&*field.field_type)).chain(std::iter::repeat(None));
    inputs.iter().zip(types).map(|(value, r#type)| value.map(|value| promoted(value, r#type))).collect()
}

fn promoted(value: &Literal, r#type: Option<&Type>) -> Literal {
    let Some(Type::Primitive(r#type)) = r#type else { return value.clone() };
    match (value, r#type) {
        (Literal::Primitive(PrimitiveLiteral::Int(value)), PrimitiveType::Long) => Literal::long(*value),
        (Literal::Primitive(PrimitiveLiteral::Float(value)), PrimitiveType::Double) => {
            Literal::double(value.0)
        }
        _ => value.clone(),
    }
}
