//! Finds the data set of the values in a line, if the line states it before their names.
//!
//! Scripts that train and evaluate often print the same names for both: `train epoch: 1, accuracy: 0.9`, then
//! `eval epoch: 1, accuracy: 0.8`.

/// Words for a data set, with its short name. `best` precedes a value that may be of an earlier epoch.
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
/// Marks between a word and the name that it qualifies.
const MARKS: [char; 5] = [' ', '_', '-', '/', '.'];
/// Levels of log lines. The name of a logger follows a level.
pub(crate) const LEVELS: [&str; 5] = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"];

/// Members of an object, and columns, whose text states the data set of the other values: `"mode": "val"` of MMCV.
const MEMBERS: [&str; 7] = ["mode", "split", "phase", "stage", "subset", "dataset", "set"];

/// The words for data sets in a line. The line is searched once, however many values it has.
pub(crate) struct Sets(Vec<Word>);

struct Word {
    short: &'static str,
    /// The end of the word in the line.
    end: usize,
    /// The end of the word's suffix: trailing digits, and `'s`.
    own_end: usize,
    /// The end of the marks after the suffix. A name there directly follows the word.
    marks_end: usize,
    /// Whether the text before the word lets it qualify the name directly after it.
    may_be_adjacent: bool,
    /// Whether the word qualifies all names after it.
    governs_all: bool,
    /// Whether only marks are between the previous word and this one.
    follows: bool,
    /// The data set of the names after this word that do not directly follow it, and whether that is the word's own.
    set: Option<&'static str>,
}

impl Sets {
    /// Finds the words in a line.
    pub(crate) fn of(line: &str) -> Self {
        let mut words: Vec<Word> = Vec::new();
        let mut end = 0;
        while let Some(start) = line[end..].find(char::is_alphabetic).map(|at| end + at) {
            let before = end;
            end = line[start..].find(|c: char| !c.is_alphabetic()).map_or(line.len(), |at| start + at);
            let Some(short) = short(&line[start..end]) else { continue };
            let (left, right) = (&line[..start], &line[end..]);
            // LightGBM prints `training's auc` and `valid_0's auc`.
            let owned = right.trim_start_matches(|c: char| c == '_' || c.is_ascii_digit()).strip_prefix("'s");
            let right = owned.unwrap_or(right);
            let rest = right.trim_start_matches(is_mark);
            let last = words.last();
            let follows = last.is_some_and(|last| last.end == before) && line[before..start].chars().all(is_mark);
            let mut word = Word {
                short,
                end,
                own_end: line.len() - right.len(),
                marks_end: line.len() - rest.len(),
                may_be_adjacent: !left.ends_with(|c: char| c.is_alphanumeric() || c == '_'),
                governs_all: governs(left, right),
                follows,
                set: None,
            };
            let before = last.and_then(|last| last.set);
            word.set = if word.governs_all { Some(word.named(last)) } else { before };
            words.push(word);
        }
        Self(words)
    }

    /// Returns the short name of the data set that the line states before a metric's name at `name`. It is the last
    /// word that begins the line or a part of it (`train: loss=0.5 | val: loss=0.4`), is in brackets, precedes a colon,
    /// or directly precedes the name.
    pub(crate) fn before(&self, name: usize) -> Option<&'static str> {
        let count = self.0.partition_point(|word| word.end < name);
        let (last, earlier) = self.0[..count].split_last()?;
        let is_adjacent = last.may_be_adjacent && last.own_end < name && name <= last.marks_end;
        if is_adjacent { Some(last.named(earlier.last())) } else { last.set }
    }
}

impl Word {
    /// Returns the data set that the word states after the word `before` it: `Best val acc: 0.9` is of the best epoch.
    fn named(&self, before: Option<&Self>) -> &'static str {
        let is_best = before.is_some_and(|before| before.governs_all && before.set == Some("best"));
        if self.follows && is_best { "best" } else { self.short }
    }
}

/// Returns the short name of a word for a data set.
pub(crate) fn short(word: &str) -> Option<&'static str> {
    SETS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, short)| *short)
}

/// Returns the short name of the only data set among the words of a name: `best` of `best_model`.
pub(crate) fn in_words(name: &str) -> Option<&'static str> {
    let mut sets = name.split(|c: char| !c.is_ascii_alphabetic()).filter_map(short);
    let set = sets.next()?;
    sets.all(|other| other == set).then_some(set)
}

/// Returns the data set that a member with this name and text states.
pub(crate) fn of_member(name: &str, text: &str) -> Option<&'static str> {
    MEMBERS.iter().any(|known| name.eq_ignore_ascii_case(known)).then(|| short(text)).flatten()
}

fn is_mark(c: char) -> bool {
    MARKS.contains(&c)
}

/// Whether values of this data set do not measure the trained model, because they are of the training data or of an
/// earlier epoch.
pub(crate) fn is_less_reliable(set: &str) -> bool {
    matches!(set, "train" | "best")
}

/// Returns the short name of the data set that a name itself states.
pub(crate) fn of_name(name: &str) -> Option<&'static str> {
    split(name).map(|(set, _)| set).or_else(|| short(name))
}

/// Whether a name itself states its data set: `val_acc`, `train-auc`, `Val`. A best value may still be of an earlier
/// epoch.
pub(crate) fn is_in(name: &str, set: &str) -> bool {
    set != "best" && of_name(name).is_some()
}

/// Whether a value belongs to the data set that its name states, although the text around it states `set`.
pub(crate) fn is_of_own(name: &str, set: &str) -> bool {
    is_in(name, set) || split(name).is_some_and(|(own, _)| own == set)
}

/// Splits a name after the data set with which it begins: `val` and `acc` of `validation_acc`.
pub(crate) fn split(name: &str) -> Option<(&'static str, &str)> {
    let (first, rest) = name.split_once(|c| is_mark(c) || c == ':')?;
    Some((short(first)?, rest))
}

/// Whether a word between these texts qualifies all that follows.
fn governs(left: &str, right: &str) -> bool {
    let is_opening = |c: char| c.is_whitespace() || matches!(c, '[' | '(' | '*' | '#' | '>' | '=');
    let outer = left.trim_end_matches(is_opening);
    // Between other brackets the word is the name of a logger.
    let is_bracketed = left.ends_with(['[', '(']) && right.starts_with([']', ')']);
    let is_bracketed = is_bracketed && !left[..left.len() - 1].ends_with(']') && !right[1..].starts_with('[');
    let is_sentence = left.ends_with(". ");
    let is_first = outer.is_empty() || outer.ends_with(['|', ';', '│']) || left.ends_with(" - ") || is_sentence;
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
            ("Trial 41 finished with value: 0.75. Best is trial 3 with ", Some("best")),
            ("training_acc 0.1 train ", Some("train")),
            // These are a logger, a function, a path, and a part of a word.
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
            assert_eq!(Sets::of(text).before(text.len()), expected, "{text}");
        }
    }

    #[test]
    fn a_name_may_say_its_data_set() {
        assert!(
            is_in("val_acc", "train") && is_in("train-auc", "val") && is_in("Val", "train") && !is_in("acc", "val")
        );
        assert!(is_in("training", "val") && !is_in("val_acc", "best"));
        assert_eq!((of_member("Mode", "validation"), of_member("mode", "max")), (Some("val"), None));
        assert_eq!((of_member("split", "train"), of_member("model", "train")), (Some("train"), None));
    }
}
