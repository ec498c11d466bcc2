//! Reads a whole history in one object: lists of equal length with an element per epoch, as Keras's `History` and many
//! scripts print them: `{'loss': [0.5, 0.25], 'val_loss': [0.6, 0.5]}`.
//!
//! Values per class, fold or sample are also lists in objects. So only an object that is certainly a history is read,
//! and only the named metric in it.

use spotsweep_protocol::metric::Source;

use crate::logged::Logged;
use crate::names::Named;
use crate::number::of_member;
use crate::object::{self, Scanner, word};
use crate::{
    data_set::{self, Sets},
    step,
};

/// Columns that Keras adds to a history for its callbacks.
const RATES: [&str; 2] = ["lr", "learning_rate"];

/// Returns the rows of the histories in a text. `newest` is the newest step that is known from elsewhere.
pub(crate) fn rows(text: &str, named: &Named, newest: Option<f64>, source: Source) -> Vec<Logged> {
    // Most lines have no list in an object, and return early.
    if named.name().is_none() || !(text.contains('[') && text.contains('{')) {
        return Vec::new();
    }
    let (mut all, mut sets) = (Vec::new(), None);
    for range in object::all(text) {
        let mut rows = of_object(&text[range.clone()], named, newest, source);
        // The data set, as in `Train: {…}`, is only searched for histories, because most objects are none.
        if !rows.is_empty()
            && let Some(set) = sets.get_or_insert_with(|| Sets::of(text)).before(range.start)
        {
            rows.iter_mut().for_each(|row| named.in_set(set, row));
        }
        all.append(&mut rows);
    }
    all
}

/// A named list. An element may be missing.
type List = (String, Vec<Option<f64>>);

fn of_object(object: &str, named: &Named, newest: Option<f64>, source: Source) -> Vec<Logged> {
    let (mut lists, mut is_of_a_set) = (Vec::new(), false);
    let end = Scanner::default().scan(object, |names, value| {
        if let [name] = names {
            lists.extend(list(value).map(|list| ((*name).to_owned(), list)));
            is_of_a_set |= data_set::of_member(name, word(value)).is_some();
        }
    });
    // An object without an end may have more lists that are not known.
    if end.is_none() || is_of_a_set {
        return Vec::new();
    }
    series(&lists, named, newest, source).unwrap_or_default()
}

/// Returns the rows of the metric; `None` if the lists may not be a history.
fn series(lists: &[List], named: &Named, newest: Option<f64>, source: Source) -> Option<Vec<Logged>> {
    let mut wanted = lists.iter().filter(|(name, _)| named.is(name));
    let (name, values) = wanted.next().filter(|_| wanted.next().is_none())?;
    let length = values.len();
    if lists.len() < 2 || lists.iter().any(|(_, list)| list.len() != length) {
        return None;
    }
    let counted = lists.iter().find(|(name, _)| step::is_name(name)).map(|(_, steps)| steps);
    let is_counted = counted.is_some_and(|steps| steps.windows(2).all(|pair| pair[0] < pair[1]));
    let count = length as f64;
    // After an interruption, the history has only the later epochs.
    let is_so_long = newest.is_some_and(|newest| count == newest || count == newest + 1.0);
    let has_loss = lists.iter().any(|(name, _)| name.to_ascii_lowercase().ends_with("loss"));
    if !(is_counted || has_loss && (is_so_long || is_of_keras(lists))) {
        return None;
    }
    let first = newest.filter(|newest| count <= newest + 1.0).map(|newest| newest - count + 1.0);
    let row = |(at, value): (usize, &Option<f64>)| {
        let own = || counted.and_then(|steps| steps[at]);
        let step = own().or_else(|| first.map(|first| first + at as f64));
        let mut row = Logged { step, ..Logged::default() };
        row.add(name, (*value)?, source);
        Some(row)
    };
    Some(values.iter().enumerate().filter_map(row).collect())
}

/// Whether the names are those of Keras: each with its `val_`, and the loss among them.
fn is_of_keras(lists: &[List]) -> bool {
    let has = |wanted: &str| lists.iter().any(|(name, _)| *name == wanted);
    let is_paired = |name: &String| match name.strip_prefix("val_") {
        Some(rest) => has(rest),
        None => has(&format!("val_{name}")) || RATES.contains(&name.as_str()),
    };
    has("loss") && lists.iter().all(|(name, _)| is_paired(name))
}

/// Returns the numbers of the list that a text begins with.
fn list(text: &str) -> Option<Vec<Option<f64>>> {
    let text = text.trim_start().strip_prefix('[')?;
    // A list with quotes or braces in it does not hold numbers.
    let end = text.find([']', '{', '}', '"', '\''])?;
    let inner = Some(&text[..end]).filter(|_| text[end..].starts_with(']'))?;
    let element = |text: &str| match text.trim() {
        "null" | "None" => Some(None),
        text => of_member(text).map(Some),
    };
    inner.split(',').map(element).collect()
}
