//! Reads the named metric if its data set follows it: `Accuracy of the network on the 10000 test images: 55 %`,
//! `Accuracy (val): 0.91`.

use crate::data_set;
use crate::names::{Named, fold};
use crate::number::measured;

/// The longest phrase, in bytes.
const MOST_BYTES: usize = 96;
/// Words that may directly follow the name. Any other word makes another metric of it: `accuracy threshold: 0.5`.
const BEGINNINGS: [&str; 7] = ["of", "on", "for", "over", "in", "at", "after"];
/// Words that may follow in addition to data sets. Any other may name a class, a fold, or a baseline.
const KNOWN: [&str; 26] = [
    "the", "a", "of", "on", "for", "over", "in", "at", "after", "all", "whole", "entire", "full", "neural", "network",
    "net", "model", "images", "image", "data", "set", "dataset", "samples", "examples", "epoch", "epochs",
];
/// Words that show that the number before them is not that of a class, as epochs before a number do.
const COUNTED: [&str; 4] = ["images", "data", "samples", "examples"];
const EPOCHS: [&str; 2] = ["epoch", "epochs"];

/// Returns such a value, with the text before the name, and its data set.
pub(super) fn value<'a>(line: &'a str, named: &Named) -> Option<(&'a str, f64, &'static str)> {
    let name = named.name()?;
    let (own, name) = data_set::split(name).map_or((None, name), |(set, rest)| (Some(set), rest));
    let is_percent = line.trim_end().ends_with('%');
    line.match_indices([':', '=']).find_map(|(at, _)| {
        let (before, words) = behind(&line[..at], name)?;
        let set = set_of(words).filter(|set| own.is_none_or(|own| own == *set))?;
        let number = measured(&line[at + 1..]).filter(|number| !number.is_whole || is_percent)?;
        Some((before, number.value, set))
    })
}

/// Returns the text before a name, and the words behind it, in the last part of a text.
fn behind<'a>(text: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    let first = text.ceil_char_boundary(text.len().saturating_sub(MOST_BYTES));
    let start = text[first..].rfind([':', '=', ',', ';', '|', '│']).map_or(first, |at| first + at);
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '.');
    let starts = text[start..].char_indices().map(|(at, _)| start + at);
    starts.filter(|at| !text[..*at].ends_with(is_part)).find_map(|at| {
        let mut rest = text[at..].chars();
        let is_same = name.chars().all(|wanted| rest.next().is_some_and(|found| fold(found) == fold(wanted)));
        let words = rest.as_str();
        (is_same && words.starts_with(' ')).then_some((&text[..at], words.trim()))
    })
}

/// Returns the only data set that the words behind a name state.
fn set_of(words: &str) -> Option<&'static str> {
    let all = || words.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let is_among = |known: &[&str], word: &str| known.iter().any(|known| known.eq_ignore_ascii_case(word));
    let begins = words.starts_with('(') || all().next().is_some_and(|first| is_among(&BEGINNINGS, first));
    let is_counted =
        |word: &str| is_among(&COUNTED, word) || is_among(&EPOCHS, word) || data_set::short(word).is_some();
    let is_known = |at: usize, word: &str| match word.bytes().all(|byte| byte.is_ascii_digit()) {
        true => {
            let is_of_epoch =
                at.checked_sub(1).and_then(|at| all().nth(at)).is_some_and(|word| is_among(&EPOCHS, word));
            is_of_epoch || all().nth(at + 1).is_some_and(is_counted)
        }
        false => is_among(&KNOWN, word) || data_set::short(word).is_some(),
    };
    if !begins || !all().enumerate().all(|(at, word)| is_known(at, word)) {
        return None;
    }
    let mut sets = all().filter_map(data_set::short);
    let set = sets.next()?;
    sets.all(|other| other == set).then_some(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_set_may_follow_the_name() {
        let found = |named: &str, line: &str| {
            value(line, &Named::new(Some(named.to_owned()))).map(|(_, value, set)| (value, set))
        };
        for (named, line, expected) in [
            ("accuracy", "Accuracy of the network on the 10000 test images: 55 %", Some((55.0, "test"))),
            ("test_accuracy", "Test Accuracy of the model on the 10000 test images: 97.25 %", Some((97.25, "test"))),
            ("accuracy", "10:00:00 INFO - Epoch 3: accuracy on validation set = 0.75", Some((0.75, "val"))),
            ("val_accuracy", "Accuracy (val): 0.75", Some((0.75, "val"))),
            ("F1 score", "F1-score on dev: 0.75", Some((0.75, "dev"))),
            ("accuracy", "Accuracy on the training data: 0.75", Some((0.75, "train"))),
            ("val_accuracy", "Accuracy on the test set: 0.75", None),
            ("accuracy", "Accuracy after epoch 3 on the validation set: 0.75", Some((0.75, "val"))),
            ("accuracy", "Accuracy of plane : 56 %", None),
            ("accuracy", "Accuracy of cat on the test set: 56.1 %", None),
            ("accuracy", "Accuracy of 3 on the test set: 56.1 %", None),
            ("accuracy", "Accuracy of a bird in the test images: 56.1 %", None),
            ("accuracy", "Accuracy of fold 3 on validation data: 0.75", None),
            ("accuracy", "Accuracy for class 3 of the test set: 0.75", None),
            ("accuracy", "Accuracy on train and test: 0.75", None),
            ("accuracy", "accuracy threshold for val: 0.75", None),
            ("accuracy", "top_accuracy on val: 0.75", None),
            ("accuracy", "accuracy on val: 5", None),
            ("accuracy", "accuracy on val, lr: 0.5", None),
        ] {
            assert_eq!(found(named, line), expected, "{named}: {line}");
        }
    }
}
