//! Makes rows of the parameter sets of a sweep with repeats.

use serde_json::Value;

use super::MAX_ROWS;
use super::columns::{Parameters, cell};
use super::model::{Column, SetRow, Sets};
use spotsweep_ranking::sets::Set;
use spotsweep_sweep_file::Repeats;

/// Returns the sets whose parameters were read, best first.
pub(super) fn of_sets(repeats: &Repeats, sets: &[Set<'_>], columns: &[Column], parameters: &Parameters) -> Sets {
    let row = |(rank, set): (usize, &Set<'_>)| {
        let of_set = set.trials.iter().find_map(|trial| parameters.get(&trial.index))?;
        let value = |column: &Column| match column.name == repeats.parameter {
            true => Value::Null,
            false => cell(column, Some(of_set)),
        };
        Some(SetRow {
            rank: set.is_complete().then_some(rank),
            number: set.number,
            trials: set.indexes(),
            mean: set.mean,
            lacks: Some(set.lacks.to_string()).filter(|lacks| !lacks.is_empty()),
            is_flagged: set.lacks.is_final(),
            parameters: columns.iter().map(value).collect(),
        })
    };
    Sets {
        parameter: repeats.parameter.clone(),
        count: repeats.sets,
        repeats: repeats.values.len(),
        rows: (1..).zip(sets).filter_map(row).take(MAX_ROWS).collect(),
    }
}
