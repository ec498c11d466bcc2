//! Compares names of metrics.

use spotsweep_protocol::metric::Source;

use crate::data_set;
use crate::logged::Logged;

/// Marks between the words of a name.
const MARKS: [char; 6] = [' ', '_', '-', '/', '.', ':'];

/// The metric that the sweep file names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Named {
    name: Option<String>,
    /// Whether the metric has been found in the sweep file's spelling. From then on another spelling is another metric.
    is_exact: bool,
}

impl Named {
    pub(crate) fn new(name: Option<String>) -> Self {
        Self { name, is_exact: false }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Whether a name means this metric.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name().is_some_and(|named| is_same(name, named))
    }

    /// Adds the data set to names that do not state it: `epoch_accuracy` of `validation` may be
    /// `validation/epoch_accuracy`.
    pub(crate) fn in_set(&self, set: &str, found: &mut Logged) {
        for value in found.values.iter_mut().filter(|value| !data_set::is_of_own(&value.name, set)) {
            if let Some(named) = self.name().filter(|named| is_of(set, &value.name, named)) {
                named.clone_into(&mut value.name);
            } else if data_set::is_less_reliable(set) {
                value.source = Source::OfTraining;
            }
        }
    }

    /// Replaces other spellings of the metric by that of the sweep file.
    pub(crate) fn spell(&mut self, found: &mut Logged) {
        let Some(named) = &self.name else { return };
        self.is_exact |= found.values.iter().any(|value| value.name == *named);
        if self.is_exact {
            return;
        }
        for value in found.values.iter_mut().filter(|value| is_same(&value.name, named)) {
            value.name.clone_from(named);
        }
    }
}

/// Maps characters that make no difference between two names to the same one.
pub(crate) fn fold(c: char) -> char {
    if MARKS.contains(&c) { '_' } else { c.to_ascii_lowercase() }
}

/// Whether two names have the same words. Capitals, marks, and short or long words for a data set make no difference:
/// `val_acc`, `Val Acc`, `validation/acc`.
pub(crate) fn is_same(name: &str, named: &str) -> bool {
    let is_equal = |one: &str, other: &str| words(one).eq(words(other)) && words(one).next().is_some();
    let is_of_same_set = || match (data_set::split(name), data_set::split(named)) {
        (Some((set, rest)), Some((other, other_rest))) => set == other && is_equal(rest, other_rest),
        (_, _) => false,
    };
    name == named || is_equal(name, named) || is_of_same_set()
}

/// Whether `named` is the metric `name` of this data set: `val_accuracy` is `Accuracy` after `Validation`.
pub(crate) fn is_of(set: &str, name: &str, named: &str) -> bool {
    data_set::split(named).is_some_and(|(short, rest)| short == set && is_same(rest, name))
}

/// Returns the characters of a name, folded, with one mark between two words.
fn words(name: &str) -> impl Iterator<Item = char> {
    let mut is_after_mark = false;
    let folded = name.trim_matches(MARKS).chars().map(fold);
    folded.filter(move |c| {
        let is_mark = *c == '_';
        !(std::mem::replace(&mut is_after_mark, is_mark) && is_mark)
    })
}

/// Returns the text before `name`, if a text ends with this name and it is not a part of a longer word. Capitals and
/// the marks between words may differ (`Test accuracy` for `test_accuracy`).
pub(crate) fn before_name<'a>(left: &'a str, name: &str) -> Option<&'a str> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '.');
    let left = left.trim_end();
    let mut rest = left.chars();
    let mut is_next = |wanted: char| rest.next_back().is_some_and(|found| fold(found) == fold(wanted));
    if !name.chars().rev().all(&mut is_next) {
        return None;
    }
    let before = rest.as_str();
    (!(name.starts_with(is_part) && before.ends_with(is_part))).then_some(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_the_same_words_are_the_same() {
        for (name, named) in [
            ("eval_accuracy", "eval/accuracy"),
            ("Val Acc", "val_acc"),
            ("test_acc_avg ", "test_acc_avg"),
            ("validation-rmse", "validation:rmse"),
            ("validation_accuracy", "val/accuracy"),
            ("val.acc", "val_acc"),
            ("val - acc", "val_acc"),
            ("정확도", "정확도"),
        ] {
            assert!(is_same(name, named) && is_same(named, name), "{name} {named}");
        }
        for (name, named) in [
            ("valacc", "val_acc"),
            ("train_acc", "val_acc"),
            ("acc", "val_acc"),
            ("eval_acc", "val_acc"),
            ("best_val_acc", "val_acc"),
            ("", " "),
        ] {
            assert!(!is_same(name, named), "{name} {named}");
        }
    }

    #[test]
    fn a_named_metric_is_that_of_its_data_set() {
        assert!(is_of("val", "Accuracy", "val_accuracy") && is_of("val", "accuracy", "validation/accuracy"));
        assert!(!is_of("test", "accuracy", "val_accuracy") && !is_of("val", "loss", "val_accuracy"));
    }
}
