//! Which live files a user means: a query over the layout.

use std::collections::HashSet;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use datafusion::logical_expr::{Expr, col, lit};
use firn_table::layout::{LiveFile, files_batch};
use iceberg::table::Table;

use crate::plan::PlanOptions;
use crate::session::{configuration, internal, session_over};
use crate::{Error, ErrorKind, Result};

/// The column of `files` that names a file, and the one that names its partition.
const PATH: &str = "file_path";
const PARTITION: &str = "partition";

/// The paths of the files that the options select; `None` where they select all.
pub(super) async fn selected_paths(
    table: &Table,
    files: &[LiveFile],
    options: &PlanOptions,
) -> Result<Option<HashSet<String>>> {
    let of_policy = options.policy.as_ref().and_then(|at| at.policy.filter.as_ref());
    if options.filter.is_none() && options.partition.is_none() && of_policy.is_none() {
        return Ok(None);
    }
    let session = session_over(&[("files", files_batch(table, files)?)])?;
    let mut rows = session.table("files").await.map_err(internal)?;
    let filters: Vec<&String> = options.filter.iter().chain(of_policy).collect();
    for filter in &filters {
        let wrong = |cause| configuration(format!("the condition `{filter}` cannot be used"), cause);
        let condition = rows.parse_sql_expr(filter).map_err(wrong)?;
        rows = rows.filter(condition).map_err(wrong)?;
    }
    if let Some(partition) = &options.partition {
        rows = rows.filter(partition_condition(partition)?).map_err(internal)?;
    }
    let rows = rows.select_columns(&[PATH]).map_err(internal)?;
    let batches = rows
        .collect()
        .await
        .map_err(|cause| configuration(format!("the conditions {filters:?} cannot be computed"), cause))?;
    let mut paths = HashSet::new();
    for batch in &batches {
        let column = batch.column(0).as_string_opt::<i32>().ok_or_else(|| {
            Error::new(ErrorKind::Internal, format!("the layout's column `{PATH}` is no string"))
        })?;
        paths.extend((0..column.len()).map(|row| column.value(row).to_owned()));
    }
    Ok(Some(paths))
}

/// `a=1/b=2` as a condition: the partition has each of the segments, at any place.
fn partition_condition(partition: &str) -> Result<Expr> {
    let segments = partition.split('/').filter(|segment| !segment.is_empty());
    let slashed = datafusion::functions::string::expr_fn::concat(vec![lit("/"), col(PARTITION), lit("/")]);
    let mut condition: Option<Expr> = None;
    for segment in segments {
        if !segment.contains('=') {
            return Err(Error::new(
                ErrorKind::Configuration,
                format!(
                    "the partition `{partition}` has the segment `{segment}`, which is not `field=value`"
                ),
            ));
        }
        let has =
            datafusion::functions::string::expr_fn::contains(slashed.clone(), lit(format!("/{segment}/")));
        condition = Some(condition.map_or(has.clone(), |others| others.and(has)));
    }
    condition.ok_or_else(|| {
        Error::new(ErrorKind::Configuration, "an empty partition selects nothing: give `field=value`")
    })
}
