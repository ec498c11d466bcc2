//! Which data the values in a line are of, where the line says it before their names.
//!
//! Scripts that train and evaluate often print the same names for both: `train epoch: 1, accuracy: 0.9`, then
//! `eval epoch: 1, accuracy: 0.8`.

/// Words for a data set, with its short name. `best` stands before the value of an earlier epoch, perhaps.
const SETS: [(&str, &str); 10] = [
    ("val", "val"),
    ("valid", "val"),
    ("validation", "val"),
    ("eval", "eval"),
    ("evaluation", "eval"),
    ("test", "test"),
    ("dev", "dev"),
    ("train", "train"),
    ("training", "train"),
    ("best", "best"),
];
/// Marks between a word and the name that it belongs to.
const MARKS: [char; 5] = [' ', '_', '-', '/', '.'];
/// Levels of log lines. A name of a logger stands after one.
pub(crate) const LEVELS: [&str; 5] = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"];

/// The short name of the data set that the text before a metric's name gives: the last of those that begin the line or
/// a part of it (`train: loss=0.5 | val: loss=0.4`), stand in brackets or before a colon, or directly before the name.
pub(crate) fn before(text: &str) -> Option<&'static str> {
    let mut end = 0;
    let mut last: Option<(&'static str, usize)> = None;
    while let Some(start) = text[end..].find(char::is_alphabetic).map(|at| end + at) {
        end = text[start..].find(|c: char| !c.is_alphabetic()).map_or(text.len(), |at| start + at);
        if let Some(short) = short(&text[start..end])
            && governs(&text[..start], &text[end..])
        {
            // `Best val acc: 0.9` is of the best epoch.
            let is_best = |(set, until): &(&str, usize)| *set == "best" && text[*until..start].chars().all(is_mark);
            last = Some((if last.as_ref().is_some_and(is_best) { "best" } else { short }, end));
        }
    }
    last.map(|(set, _)| set)
}

fn short(word: &str) -> Option<&'static str> {
    SETS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, short)| *short)
}

fn is_mark(c: char) -> bool {
    MARKS.contains(&c)
}

/// Characters that make no difference between two names are the same.
pub(crate) fn fold(c: char) -> char {
    if is_mark(c) { '_' } else { c.to_ascii_lowercase() }
}

/// Whether the values are no measure of the trained model: they are of the training data, or of an earlier epoch.
pub(crate) fn is_less_reliable(set: &str) -> bool {
    matches!(set, "train" | "best")
}

/// Whether a name says itself which data it is of: `val_acc`, `train-auc`, `Val`. The best is then still one of before.
pub(crate) fn is_in(name: &str, set: &str) -> bool {
    set != "best" && (split(name).is_some() || short(name).is_some())
}

/// Whether `named` is the metric `name` of this data set: `val_accuracy` is `Accuracy` after `Validation`.
pub(crate) fn is_of(set: &str, name: &str, named: &str) -> bool {
    split(named).is_some_and(|(short, rest)| short == set && rest.chars().map(fold).eq(name.chars().map(fold)))
}

fn split(name: &str) -> Option<(&'static str, &str)> {
    let (first, rest) = name.split_once(MARKS)?;
    Some((short(first)?, rest))
}

fn governs(left: &str, right: &str) -> bool {
    // `training's auc` and `valid_0's auc`, as LightGBM says it.
    let owned = right.trim_start_matches(|c: char| c == '_' || c.is_ascii_digit()).strip_prefix("'s");
    let right = owned.unwrap_or(right);
    let is_adjacent = right.chars().all(is_mark) && !right.is_empty();
    if is_adjacent && !left.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
        return true;
    }
    let is_opening = |c: char| c.is_whitespace() || matches!(c, '[' | '(' | '*' | '#' | '>' | '=');
    let outer = left.trim_end_matches(is_opening);
    // Between other brackets it is the name of a logger.
    let is_bracketed = left.ends_with(['[', '(']) && right.starts_with([']', ')']);
    let is_bracketed = is_bracketed && !left[..left.len() - 1].ends_with(']') && !right[1..].starts_with('[');
    let is_first = outer.is_empty() || outer.ends_with(['|', ';', '│']) || left.ends_with(" - ");
    let is_whole = right.starts_with([' ', ':', ']', ')', '|', '\t']) && !right.starts_with(" - ");
    let has_colon =
        right.starts_with(": ") && left.ends_with(' ') && !LEVELS.iter().any(|level| outer.ends_with(level));
    is_bracketed || has_colon || (is_first && is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_that_governs_a_name_counts() {
        for (text, expected) in [
            ("train epoch: 1, loss: 0.2712, ", Some("train")),
            ("eval epoch: 1, loss: 0.2712, ", Some("eval")),
            ("Train Epoch: 1 [0/60000 (0%)]\t", Some("train")),
            ("Train: 0 [   0/196 (  0%)]  ", Some("train")),
            ("Test set: Average loss: 0.5, ", Some("test")),
            ("Epoch(train)  [1][100/391]  lr: 0.1  ", Some("train")),
            ("[val] loss=0.3, ", Some("val")),
            ("train: loss=0.5, acc=0.8; val: loss=0.4, ", Some("val")),
            ("epoch 3 train: loss=0.5 val: loss=0.4 ", Some("val")),
            ("Epoch 3 | Train Loss: 0.5 | Val ", Some("val")),
            ("Training epoch 3: test ", Some("test")),
            ("[50]\ttraining's ", Some("train")),
            ("[50]\ttraining's auc: 0.9\tvalid_0's ", Some("val")),
            ("Best ", Some("best")),
            ("Best val ", Some("best")),
            ("Best model found, val ", Some("val")),
            ("training_acc 0.1 train ", Some("train")),
            // A logger, a function, a path, a part of a word.
            ("2026-11-26 INFO train: epoch 3 ", None),
            ("INFO:train:epoch 3 ", None),
            ("2026-11-26 | INFO | __main__:train:42 - epoch 3 ", None),
            ("[2026-11-26][train][INFO] - epoch 3 ", None),
            ("INFO - train - epoch 3 ", None),
            ("python train.py epoch 3 ", None),
            ("trainer ready, ", None),
            ("we train for 3 epochs, ", None),
            ("", None),
        ] {
            assert_eq!(before(text), expected, "{text}");
        }
    }

    #[test]
    fn a_named_metric_is_that_of_its_data_set() {
        assert!(is_of("val", "Accuracy", "val_accuracy") && is_of("val", "accuracy", "validation/accuracy"));
        assert!(!is_of("test", "accuracy", "val_accuracy") && !is_of("val", "loss", "val_accuracy"));
        assert!(
            is_in("val_acc", "train") && is_in("train-auc", "val") && is_in("Val", "train") && !is_in("acc", "val")
        );
        assert!(is_in("training", "val") && !is_in("val_acc", "best"));
    }
}
