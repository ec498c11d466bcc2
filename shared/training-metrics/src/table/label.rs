//! What the words before a row say of it.

use crate::data_set;
use crate::names::Named;

/// Rows of all classes together: Ultralytics, MMSegmentation, and scripts of one's own.
const WHOLE: [&str; 7] = ["all", "overall", "global", "total", "mean", "average", "avg"];
/// Means over classes in scikit-learn's report, and its columns.
const MEANS: [&str; 4] = ["macro", "weighted", "micro", "samples"];
const COLUMNS: [(&str, &str); 3] = [("precision", "precision"), ("recall", "recall"), ("f1", "f1-score")];
/// Words in the names of such means that make no difference.
const FILLERS: [&str; 3] = ["avg", "average", "score"];

/// What stands before the values of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Label {
    /// A number, as pandas has before each row.
    Index(f64),
    /// The data set of the row's values.
    Set(&'static str),
    /// The row is of all classes.
    Whole,
    /// The row is of one of many.
    Other,
}

impl Label {
    /// The number that counts the rows.
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

/// The mean over classes and the column of scikit-learn's report that a name means without doubt: `macro_f1`, `macro avg
/// f1-score`. A name of a column alone may mean each of its rows.
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
