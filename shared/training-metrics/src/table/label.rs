//! Interprets the words before a row.

use crate::data_set;
use crate::names::Named;

/// Labels of rows over all classes: of Ultralytics, of MMSegmentation, and of people's own scripts.
const WHOLE: [&str; 7] = ["all", "overall", "global", "total", "mean", "average", "avg"];
/// The means over classes in scikit-learn's report, and its columns.
const MEANS: [&str; 4] = ["macro", "weighted", "micro", "samples"];
const COLUMNS: [(&str, &str); 3] = [("precision", "precision"), ("recall", "recall"), ("f1", "f1-score")];
/// Words in the names of such means that make no difference.
const FILLERS: [&str; 3] = ["avg", "average", "score"];

/// The label before the values of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Label {
    /// A number, which pandas prints before each row.
    Index(f64),
    /// The data set of the row's values.
    Set(&'static str),
    /// The row is over all classes.
    Whole,
    /// The row is of one of many.
    Other,
}

impl Label {
    /// Returns the number that counts the rows.
    pub(super) fn index(self) -> Option<f64> {
        if let Self::Index(index) = self { Some(index) } else { None }
    }

    pub(super) fn of(text: &str) -> Self {
        let is_count = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match (text.parse(), data_set::short(text)) {
            (Ok(number), _) if is_count => Self::Index(number),
            (_, Some(set)) => Self::Set(set),
            _ if super::is_in(&WHOLE, text) => Self::Whole,
            _ => Self::Other,
        }
    }
}

/// Returns the mean over classes and the column of scikit-learn's report that a name certainly means: `macro_f1`,
/// `macro avg f1-score`. The name of a column alone may mean any of its rows.
pub(super) fn mean_of(named: &Named) -> Option<(&'static str, &'static str)> {
    let name = named.name()?.to_ascii_lowercase();
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let words: Vec<&str> = words.filter(|word| !FILLERS.contains(word)).take(3).collect();
    let [one, other] = words[..] else { return None };
    let mean = MEANS.into_iter().find(|mean| *mean == one || *mean == other)?;
    let (_, column) = COLUMNS.into_iter().find(|(short, _)| *short == one || *short == other)?;
    Some((mean, column))
}

/// Whether a row of that report has this mean: `macro avg`.
pub(super) fn is_mean(text: &str, mean: &str) -> bool {
    text.strip_prefix(mean).is_some_and(|rest| matches!(rest, "" | " avg"))
}
