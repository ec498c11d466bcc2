//! A whole history in one object: lists of equal length, with an element for each epoch, as Keras's `History` and many
//! scripts have them: `{'loss': [0.5, 0.25], 'val_loss': [0.6, 0.5]}`.
//!
//! Values per class, per fold or per sample are lists in objects too. So only what shows that it is a history is read, and
//! of it only the metric that the sweep file names.

use spotsweep_protocol::metric::Source;

use crate::logged::Logged;
use crate::names::Named;
use crate::number::of_member;
use crate::object::{self, Scanner, word};
use crate::{
    data_set::{self, Sets},
    step,
};

/// What Keras adds to a history for its callbacks.
const RATES: [&str; 2] = ["lr", "learning_rate"];

/// The rows of the histories in a text. `newest` is the step that is known from elsewhere, if one is.
pub(crate) fn rows(text: &str, named: &Named, newest: Option<f64>, source: Source) -> Vec<Logged> {
    // Most lines have no list in an object.
    if named.name().is_none() || !(text.contains('[') && text.contains('{')) {
        return Vec::new();
    }
    let (mut all, mut sets) = (Vec::new(), None);
    for range in object::all(text) {
        let mut rows = of_object(&text[range.clone()], named, newest, source);
        // `Train: {…}`: most objects are no history, and their lines are not searched for words.
        if !rows.is_empty()
            && let Some(set) = sets.get_or_insert_with(|| Sets::of(text)).before(range.start)
        {
            rows.iter_mut().for_each(|row| named.in_set(set, row));
        }
        all.append(&mut rows);
    }
    all
}

/// A list with its name. An element may be missing.
type List = (String, Vec<Option<f64>>);

fn of_object(object: &str, named: &Named, newest: Option<f64>, source: Source) -> Vec<Logged> {
    let (mut lists, mut is_of_a_set) = (Vec::new(), false);
    let end = Scanner::default().scan(object, |names, value| {
        if let [name] = names {
            lists.extend(list(value).map(|list| ((*name).to_owned(), list)));
            is_of_a_set |= data_set::of_member(name, word(value)).is_some();
        }
    });
    // Without its end it is not known what else it has.
    if end.is_none() || is_of_a_set {
        return Vec::new();
    }
    series(&lists, named, newest, source).unwrap_or_default()
}

/// The rows of the metric; `None` where the lists may be something else than a history.
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
    // Of a training that was interrupted, the history has the epochs after that.
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

/// The numbers of the list that a text begins with.
fn list(text: &str) -> Option<Vec<Option<f64>>> {
    let text = text.trim_start().strip_prefix('[')?;
    // Where quotes or braces come first, it is a list of something else.
    let end = text.find([']', '{', '}', '"', '\''])?;
    let inner = Some(&text[..end]).filter(|_| text[end..].starts_with(']'))?;
    let element = |text: &str| match text.trim() {
        "null" | "None" => Some(None),
        text => of_member(text).map(Some),
    };
    inner.split(',').map(element).collect()
}
