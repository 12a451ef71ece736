use super::*;
use crate::files::testing::{every_type, primitive, schema};
use iceberg::spec::{NullOrder, PrimitiveType, SortDirection, SortField};

fn config(schema: &Schema, properties: &[(&str, &str)]) -> Result<MetricsConfig> {
    let properties = properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    MetricsConfig::new(schema, &SortOrder::unsorted_order(), &properties)
}

#[test]
fn modes_are_read_in_any_case() {
    for (text, mode) in [
        ("none", MetricsMode::None),
        ("COUNTS", MetricsMode::Counts),
        ("full", MetricsMode::Full),
        ("Truncate(20)", MetricsMode::Truncate(20)),
    ] {
        assert_eq!(config(&every_type(), &[(DEFAULT_MODE, text)]).unwrap().mode(1), mode);
    }
    for text in ["truncate(0)", "truncate", "some", ""] {
        let error = config(&every_type(), &[(DEFAULT_MODE, text)]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
    }
}

#[test]
fn only_the_first_hundred_columns_have_metrics_unless_asked() {
    let fields = (1..=120).map(|id| primitive(id, &format!("c{id}"), PrimitiveType::Int)).collect();
    let wide = schema(fields);
    let inferred = config(&wide, &[("write.metadata.metrics.column.c120", "counts")]).unwrap();
    assert_eq!(inferred.mode(100), TRUNCATE_DEFAULT);
    assert_eq!(inferred.mode(101), MetricsMode::None);
    assert_eq!(inferred.mode(120), MetricsMode::Counts);
    let asked = config(&wide, &[(DEFAULT_MODE, "truncate(16)")]).unwrap();
    assert_eq!(asked.mode(101), TRUNCATE_DEFAULT);
    let fewer = config(&wide, &[(MAX_INFERRED, "3")]).unwrap();
    assert_eq!((fewer.mode(3), fewer.mode(4)), (TRUNCATE_DEFAULT, MetricsMode::None));
}

#[test]
fn outer_columns_come_before_inner_ones() {
    assert_eq!(
        breadth_first(every_type().as_struct().fields())[..18],
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 21, 22]
    );
}

#[test]
fn sort_columns_have_bounds() {
    let order = SortOrder::builder()
        .with_sort_field(
            SortField::builder()
                .source_id(3)
                .transform(Transform::Identity)
                .direction(SortDirection::Ascending)
                .null_order(NullOrder::First)
                .build(),
        )
        .build_unbound()
        .unwrap();
    let properties = HashMap::from([(DEFAULT_MODE.to_owned(), "none".to_owned())]);
    let config = MetricsConfig::new(&every_type(), &order, &properties).unwrap();
    assert_eq!((config.mode(3), config.mode(2)), (TRUNCATE_DEFAULT, MetricsMode::None));
}
