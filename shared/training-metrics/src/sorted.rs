//! Orders rows that may be sorted by their values, as a table of the best epochs is. The last row is then not the
//! newest.

use std::collections::BTreeSet;

use spotsweep_protocol::metric::Source;

use crate::figures::differ;
use crate::logged::{Logged, Value};
use crate::names::Named;

/// The order in which a file's rows are returned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Order {
    /// Each row was appended, so the last one is the newest.
    #[default]
    Appended,
    /// The rows were written at once, so they may be sorted.
    AtOnce,
    /// The last rows, as many as the number, were inserted among earlier ones, so the rows are sorted.
    Inserted(usize),
}

/// Puts rows that are sorted by the named metric into the order of their steps. If the steps do not show which row is
/// the newest, the last row gets both readings.
pub(crate) fn in_order(rows: &mut [Logged], order: Order, named: &Named) {
    let (rows, is_inserted) = match order {
        Order::Appended => return,
        Order::AtOnce => (rows, false),
        Order::Inserted(count) => {
            let start = rows.len().saturating_sub(count);
            (&mut rows[start..], true)
        }
    };
    let readings: Vec<(Option<f64>, Value)> =
        rows.iter().filter_map(|row| Some((row.step, row.values.get(place(row, named)?)?.clone()))).collect();
    let values = || readings.iter().map(|(_, reading)| reading.value);
    let is_sorted = is_inserted || are_sorted(values());
    let ([(_, first), ..], [.., (_, last)]) = (&readings[..], &readings[..]) else { return };
    if !is_sorted || !differ(first.value, last.value) {
        return;
    }
    let Some(mut steps) = readings.iter().map(|(step, _)| *step).collect::<Option<Vec<f64>>>() else {
        // All columns of a short training may be sorted, if it improves in every way at each epoch.
        if is_inserted || has_unsorted(rows, named) {
            add_reading(rows, first, named);
        }
        return;
    };
    let falls = steps.windows(2).filter(|pair| matches!(pair, [one, next] if next < one)).count();
    steps.sort_by(f64::total_cmp);
    let is_repeated = steps.windows(2).any(|pair| matches!(pair, [one, next] if one.total_cmp(next).is_eq()));
    // A training that starts again counts its steps from the beginning.
    if falls == 0 || is_repeated {
        return;
    }
    let step = |row: &Logged| row.step.unwrap_or(f64::NEG_INFINITY);
    rows.sort_by(|one, other| step(one).total_cmp(&step(other)));
    if falls == 1 && !is_inserted {
        add_reading(rows, last, named);
    }
}

fn are_sorted(values: impl Iterator<Item = f64> + Clone) -> bool {
    values.clone().is_sorted_by(|one, next| one >= next) || values.is_sorted_by(|one, next| one <= next)
}

/// Whether another column is not sorted.
fn has_unsorted(rows: &[Logged], named: &Named) -> bool {
    let all = || rows.iter().flat_map(|row| &row.values).filter(|value| !named.is(&value.name));
    let names: BTreeSet<&str> = all().map(|value| value.name.as_str()).collect();
    names.into_iter().any(|name| !are_sorted(all().filter(|value| value.name == name).map(|value| value.value)))
}

/// Returns the index of the named metric in a row.
fn place(row: &Logged, named: &Named) -> Option<usize> {
    row.values.iter().rposition(|value| named.is(&value.name) && value.source > Source::OfTraining)
}

/// Adds another reading to the last row that has one.
fn add_reading(rows: &mut [Logged], other: &Value, named: &Named) {
    let last = rows.iter_mut().rev().find_map(|row| Some((place(row, named)?, row)));
    if let Some((place, row)) = last {
        row.values.insert(place, other.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_sorted_rows_is_the_last() {
        const AT_ONCE: Order = Order::AtOnce;
        type Row = (Option<f64>, &'static [f64]);
        let cases: [(Order, &[Row], &[f64]); 10] = [
            (AT_ONCE, &[(Some(7.0), &[0.9]), (Some(8.0), &[0.8]), (Some(3.0), &[0.7]), (Some(1.0), &[0.5])], &[0.8]),
            (Order::Appended, &[(Some(7.0), &[0.9]), (Some(3.0), &[0.7]), (Some(1.0), &[0.5])], &[0.5]),
            // Two epochs, or an earlier and a later training, give a reading each.
            (AT_ONCE, &[(Some(7.0), &[0.9]), (Some(1.0), &[0.5])], &[0.5, 0.9]),
            (Order::Inserted(2), &[(Some(7.0), &[0.9]), (Some(1.0), &[0.5])], &[0.9]),
            // These have growing steps, repeated steps, and unsorted values.
            (AT_ONCE, &[(Some(1.0), &[0.9]), (Some(2.0), &[0.5])], &[0.5]),
            (AT_ONCE, &[(Some(1.0), &[0.5]), (Some(2.0), &[0.6]), (Some(1.0), &[0.7])], &[0.7]),
            (AT_ONCE, &[(Some(3.0), &[0.5]), (Some(2.0), &[0.9]), (Some(1.0), &[0.7])], &[0.7]),
            // There are no steps, and no other column shows that the rows are sorted.
            (AT_ONCE, &[(None, &[0.9]), (None, &[0.7]), (None, &[0.5])], &[0.5]),
            (AT_ONCE, &[(None, &[0.9]), (None, &[0.5]), (None, &[0.7])], &[0.7]),
            (Order::Inserted(1), &[(None, &[0.9]), (None, &[0.7]), (None, &[0.8])], &[0.8]),
        ];
        let named = Named::new(Some("acc".to_owned()));
        for (order, rows, expected) in cases {
            let value = |value: &f64| Value { name: "acc".to_owned(), value: *value, source: Source::Rows };
            let row = |(step, values): &Row| Logged {
                step: *step,
                values: values.iter().map(value).collect(),
                ..Logged::default()
            };
            let mut sorted: Vec<Logged> = rows.iter().map(row).collect();
            in_order(&mut sorted, order, &named);
            let last: Vec<f64> =
                sorted.last().into_iter().flat_map(|row| &row.values).map(|found| found.value).collect();
            assert_eq!(last, expected, "{order:?} {rows:?}");
        }
    }
}
