//! The names of a table, and the values of the rows below them.

use spotsweep_protocol::metric::Source;

use super::cells::{Gap, words};
use super::label::{self, Label};
use super::{MOST_NAME_BYTES, is_in, is_name};
use crate::data_set;
use crate::logged::{Logged, Value};
use crate::names::{Named, is_same};
use crate::number::{Number, leading};

/// Columns that count steps, in any capitals. The first takes precedence.
const STEPS: [&str; 9] = ["global_step", "step", "iteration", "iter", "#", "epoch", "ep", "e", "round"];
/// First columns that are enough to recognise a table.
const FIRST: [&str; 5] = ["epoch", "step", "iter", "iteration", "global_step"];
/// Columns that are no metrics.
const NO_METRICS: [&str; 3] = ["time", "eta", "elapsed"];
/// First columns that state what a row is about.
const LABELS: [&str; 10] =
    ["class", "label", "category", "scope", "split", "set", "dataset", "subset", "phase", "data"];
/// Labels whose rows are of one class each, even if a class is named like a data set.
const CLASSES: [&str; 3] = ["class", "label", "category"];
/// First columns with the names of metrics. The other columns are data sets.
const METRICS: [&str; 4] = ["metric", "metrics", "measure", "name"];
/// First columns whose whole numbers do not count the steps of one training.
const PARTS: [&str; 8] = ["fold", "split", "run", "seed", "repeat", "rank", "model", "trial"];
/// The columns of scikit-learn's report.
const REPORT: [&str; 4] = ["precision", "recall", "f1-score", "support"];

/// The index before the values of a row, which has no name in the header.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Index {
    Nothing,
    /// The index is one cell.
    Cell,
    /// The index has any number of words, and each value ends below its name, as in pandas. The ends are in characters.
    Aligned(Vec<usize>),
}

/// The newest row with the named metric of a counted table.
#[derive(Debug, Clone)]
struct Newest {
    index: f64,
    count: Option<f64>,
    row: Logged,
}

#[derive(Debug, Clone)]
pub(super) struct Header {
    names: Vec<String>,
    gap: Gap,
    index: Index,
    /// Whether the index counts steps, because no column does.
    counts: bool,
    /// Whether the columns are data sets, and the rows metrics.
    is_of_sets: bool,
    is_report: bool,
    /// Whether more columns follow below the rows, because pandas folds wide tables.
    is_folded: bool,
    /// Whether an index preceded the newest row.
    is_counted: bool,
    /// Whether the rows follow one another in a training. Otherwise they are readings of the same metric.
    is_series: bool,
    /// The named metric in the previous row.
    previous: Option<f64>,
    newest: Option<Newest>,
    /// The newest row again, if the row that was read last is older.
    again: Option<Logged>,
}

impl Header {
    /// Returns the header in a line that is one whatever follows. `before` is the previous header.
    pub(super) fn certain(line: &str, gap: Gap, cells: &[&str], named: &Named, before: Option<&Self>) -> Option<Self> {
        let is_name = |cell: &&str| is_name(cell) || matches!(*cell, "..." | "\\");
        if let Some(before) = before.filter(|before| before.is_folded)
            && line.starts_with(' ')
            && cells.iter().all(is_name)
        {
            // The steps of its rows are in a part above.
            return Some(Self { is_series: before.is_series, counts: false, ..Self::new(line, gap, cells) });
        }
        let first = cells.iter().find(|cell| !cell.is_empty())?;
        // This check is cheap, because most lines are no header.
        let is_known = [&FIRST[..], &LABELS, &METRICS, &REPORT].iter().any(|words| is_in(words, first));
        if !is_known && data_set::short(first).is_none() {
            return None;
        }
        let header = Self::new(line, gap, cells);
        let (first, others) = header.names.split_first()?;
        let is_first = is_first(first) && !others.is_empty() && others.iter().all(|name| is_name(&name.as_str()));
        let is_labelled =
            || is_in(&LABELS, first) && others.iter().any(|name| may_be(name, named)) && header.is_plain();
        let is_of_sets = header.is_of_sets && header.index != Index::Nothing;
        (is_first || is_of_sets || header.is_report || is_labelled()).then_some(header)
    }

    /// Returns the header in a line that has the named metric among its names. It is a header only if a row follows.
    /// The names may have spaces if the gaps between columns are wider.
    pub(super) fn named(line: &str, gap: Gap, cells: &[&str], named: &Named) -> Option<Self> {
        let is_header = |header: &Self| {
            let is_alone = header.names.len() == 1 && matches!(header.index, Index::Nothing);
            !is_alone && header.names.iter().any(|name| may_be(name, named)) && header.is_plain()
        };
        let wide = || words(line, 2).into_iter().map(|(word, _)| word).collect::<Vec<_>>();
        let wide = (gap == Gap::Spaces).then(wide).unwrap_or_default();
        if !wide.iter().chain(cells).any(|cell| may_be(in_brackets(cell), named)) {
            return None;
        }
        let narrow = || Some(Self::new(line, gap, cells)).filter(is_header);
        let wide = Some(wide).filter(|wide| !wide.is_empty()).map(|wide| Self::new(line, gap, &wide));
        wide.filter(is_header).or_else(narrow)
    }

    fn new(line: &str, gap: Gap, cells: &[&str]) -> Self {
        let is_folded = cells.last() == Some(&"\\");
        let cells = &cells[..cells.len() - usize::from(is_folded)];
        let is_set = |cells: &[&str]| cells.len() >= 2 && cells.iter().all(|cell| data_set::short(cell).is_some());
        let (cells, index) = match cells {
            ["", rest @ ..] if gap != Gap::Spaces => (rest, Index::Cell),
            [first, rest @ ..] if is_in(&METRICS, first) && is_set(rest) => (rest, Index::Cell),
            cells if gap == Gap::Rules && is_set(cells) => (cells, Index::Cell),
            cells if gap == Gap::Spaces && line.starts_with(' ') => {
                let ends = |spaces| words(line, spaces).into_iter().map(|(_, end)| end).take(cells.len()).collect();
                let is_wide = line.split_whitespace().nth(cells.len() + usize::from(is_folded)).is_some();
                (cells, Index::Aligned(ends(if is_wide { 2 } else { 1 })))
            }
            cells => (cells, Index::Nothing),
        };
        let names: Vec<String> = cells.iter().map(|cell| in_brackets(cell).to_owned()).collect();
        let has_steps = names.iter().any(|name| is_in(&STEPS, name));
        let has_loss = || names.iter().any(|name| name.to_ascii_lowercase().ends_with("loss"));
        let has_parts = || names.first().is_some_and(|first| is_in(&PARTS, first));
        let is_series = has_steps || has_loss() && !has_parts();
        Self {
            is_of_sets: is_set(cells),
            is_report: cells.len() >= 3 && cells.iter().all(|cell| is_in(&REPORT, cell)),
            is_series,
            counts: is_series,
            names,
            gap,
            index,
            is_folded,
            is_counted: false,
            previous: None,
            newest: None,
            again: None,
        }
    }

    /// Whether a number without a column of its own preceded the newest row.
    pub(super) fn is_counted(&self) -> bool {
        self.is_counted
    }

    /// Takes the newest row, if the row that was read last is older.
    pub(super) fn again(&mut self) -> Option<Logged> {
        self.again.take()
    }

    /// Whether none of its names is a value.
    fn is_plain(&self) -> bool {
        let is_name = |name: &String| {
            (1..=MOST_NAME_BYTES).contains(&name.len()) && !name.contains(['=', ':']) && leading(name).is_none()
        };
        !self.names.is_empty() && self.names.iter().all(is_name)
    }

    /// Adds the name of the index, which pandas prints below the other names. Returns whether the line is that name.
    pub(super) fn take_index(&mut self, cells: &[&str]) -> bool {
        let is_index = matches!((&self.index, cells), (Index::Aligned(_), [name]) if is_in(&STEPS, name));
        self.counts |= is_index;
        self.is_series |= is_index;
        is_index
    }

    /// Returns the first row, if all values of the line are numbers.
    pub(super) fn first_row(&mut self, line: &str, gap: Gap, cells: &[&str], named: &Named) -> Option<Logged> {
        let (_, values) = self.split(line, gap, cells)?;
        let is_value = |(name, cell): (&String, &&str)| {
            let is_left_out = *cell == "-" || *cell == "..." && name == "...";
            leading(cell).is_some() || cell.contains(':') || is_left_out || data_set::of_member(name, cell).is_some()
        };
        let names = &self.names[self.names.len() - values.len()..];
        names.iter().zip(values).all(is_value).then(|| self.row(line, gap, cells, named))?
    }

    /// Returns the label of a row, and its values, which are in the last columns.
    fn split<'a, 'b>(&self, line: &str, gap: Gap, cells: &'b [&'a str]) -> Option<(Option<String>, &'b [&'a str])> {
        let extra = cells.len().checked_sub(self.names.len()).filter(|_| gap == self.gap && !self.names.is_empty())?;
        let (label, values) = cells.split_at(extra);
        match (&self.index, label) {
            (_, []) => {
                let first = values[0];
                let may_be_label = [&LABELS[..], &PARTS].iter().any(|words| is_in(words, &self.names[0]));
                let is_label = may_be_label && leading(first).is_none();
                Some(if is_label { (Some(first.to_owned()), &values[1..]) } else { (None, values) })
            }
            (Index::Cell, [label]) => Some((Some((*label).to_owned()), values)),
            (Index::Aligned(ends), label) => {
                let words = words(line, 1);
                let are_aligned = words[words.len() - values.len()..].iter().map(|(_, end)| end).eq(ends);
                are_aligned.then(|| (Some(label.join(" ")), values))
            }
            (_, _) => None,
        }
    }

    pub(super) fn row(&mut self, line: &str, gap: Gap, cells: &[&str], named: &Named) -> Option<Logged> {
        let (label, values) = self.split(line, gap, cells)?;
        if self.is_report {
            return self.mean(&label?, values, named);
        }
        if self.is_of_sets {
            return self.of_sets(&label?, values, named);
        }
        let names = &self.names[self.names.len() - values.len()..];
        let columns = || names.iter().map(String::as_str).zip(values.iter().copied());
        let label = label.map(|label| Label::of(&label));
        // A word before a row without a column for it names a statistic: the mean, the deviation.
        let is_labelled = values.len() < self.names.len();
        if label == Some(Label::Other) || label == Some(Label::Whole) && !is_labelled {
            return None;
        }
        if matches!(label, Some(Label::Set(_))) && is_in(&CLASSES, &self.names[0]) {
            return None;
        }
        let index = label.and_then(Label::index);
        let (step_name, step) = self.step(label, columns)?;
        let mut found = Logged { step, ..Logged::default() };
        let is_metric = |name: &str| [&STEPS[..], &NO_METRICS, &PARTS].iter().all(|words| !is_in(words, name));
        for (name, cell) in columns().filter(|(name, _)| is_metric(name)) {
            // pandas prints NaN where a row has no value.
            let is_value = |number: &Number| Some(name) != step_name && !(index.is_some() && number.value.is_nan());
            if let Some(number) = leading(cell).filter(is_value) {
                found.add(name, number.value, Source::Text);
            }
        }
        let of_row = match label {
            Some(Label::Set(set)) => Some(set),
            _ => columns().find_map(|(name, cell)| data_set::of_member(name, cell)),
        };
        of_row.into_iter().for_each(|set| named.in_set(set, &mut found));
        // Epochs take precedence if the table has several counts, because the others start again with each epoch. With
        // folds, all counts start again.
        let is_one = self.is_series && !names.iter().any(|name| is_in(&PARTS, name));
        let of_column = |known: &&str| columns().find(|(name, _)| name.eq_ignore_ascii_case(known));
        let outer = STEPS.iter().rev().find_map(of_column).and_then(|(_, cell)| leading(cell));
        let count = outer.map(|number| number.value).or(step);
        (self.is_counted, self.again) = (index.is_some(), None);
        index.filter(|_| is_one).into_iter().for_each(|index| self.find_newest(index, &found, count, named));
        // The mean of folds or seeds represents all of them.
        let is_mean = label == Some(Label::Whole) && is_in(&PARTS, &self.names[0]);
        if step.is_none() && !is_mean && (!self.is_series || matches!(label, Some(Label::Set(_)))) {
            self.compare(&mut found, named);
        }
        (!found.values.is_empty()).then_some(found)
    }

    /// Returns the step of a row, and the column that has it; `None` if the column of steps is empty.
    fn step<'a, C: Iterator<Item = (&'a str, &'a str)>>(
        &self,
        label: Option<Label>,
        columns: impl Fn() -> C,
    ) -> Option<(Option<&'a str>, Option<f64>)> {
        // `3/10` is step 3.
        let number = |cell: &str| leading(cell.split('/').next()?);
        if let Some((name, cell)) =
            STEPS.iter().find_map(|step| columns().find(|(name, _)| name.eq_ignore_ascii_case(step)))
        {
            return Some((Some(name), Some(number(cell)?.value)));
        }
        let index = match label {
            Some(Label::Index(index)) if self.counts => Some(index),
            _ => None,
        };
        let first = columns().next().filter(|(name, _)| label.is_none() && !is_in(&PARTS, name));
        let counted = first.and_then(|(name, cell)| Some((name, number(cell).filter(|number| number.is_whole)?.value)));
        Some(counted.map_or((None, index), |(name, step)| (Some(name), Some(step))))
    }

    /// Adds the previous row's value as another reading if it differs, for rows that do not follow one another.
    fn compare(&mut self, found: &mut Logged, named: &Named) {
        let is_reading = |value: &&Value| named.is(&value.name) && value.source > Source::OfTraining;
        if let Some(reading) = found.values.iter().find(is_reading).cloned()
            && let Some(previous) = self.previous.replace(reading.value)
        {
            found.values.insert(0, Value { value: previous, ..reading });
        }
    }

    /// Remembers the newest row of a counted table. A table that is sorted by values may have it anywhere, and it must
    /// count after an older one.
    fn find_newest(&mut self, index: f64, found: &Logged, count: Option<f64>, named: &Named) {
        let is_reading = |value: &&Value| named.is(&value.name) && value.source > Source::OfTraining;
        let values: Vec<Value> = found.values.iter().filter(is_reading).cloned().collect();
        if values.is_empty() {
            return;
        }
        let is_older = |newest: &Newest| match (count, newest.count) {
            (Some(count), Some(newest)) if count != newest => count < newest,
            (_, _) => index < newest.index,
        };
        if let Some(newest) = self.newest.as_ref().filter(|newest| is_older(newest)) {
            self.again = Some(newest.row.clone());
        } else {
            self.newest = Some(Newest { index, count, row: Logged { values, ..found.clone() } });
        }
    }

    /// Returns the row of a metric, with a value for each data set.
    fn of_sets(&self, label: &str, values: &[&str], named: &Named) -> Option<Logged> {
        let mut all = Logged::default();
        for (name, cell) in self.names.iter().zip(values).filter(|_| is_name(label)) {
            if let (Some(set), Some(number)) = (data_set::short(name), leading(cell)) {
                let mut found = Logged::default();
                found.add(label, number.value, Source::Text);
                named.in_set(set, &mut found);
                all.values.append(&mut found.values);
            }
        }
        (!all.values.is_empty()).then_some(all)
    }

    /// Returns the named mean over classes, if the row of scikit-learn's report has it.
    fn mean(&self, label: &str, values: &[&str], named: &Named) -> Option<Logged> {
        let (_, column) = label::mean_of(named).filter(|(mean, _)| label::is_mean(label, mean))?;
        let at = self.names.iter().position(|name| is_same(name, column))?;
        let mut found = Logged::default();
        found.add(named.name()?, leading(values[at])?.value, Source::Text);
        Some(found)
    }
}

/// Whether a cell is the first of a table by its name.
pub(super) fn is_first(cell: &str) -> bool {
    is_in(&FIRST, cell)
}

/// Whether a column is the named metric, or the metric of a data set that a row may name.
fn may_be(name: &str, named: &Named) -> bool {
    let rest = || named.name().and_then(data_set::split).map(|(_, rest)| rest);
    named.is(name) || rest().is_some_and(|rest| is_same(rest, name))
}

/// Removes half a pair of brackets from a name: `Box(P`, `mAP50-95)`.
fn in_brackets(name: &str) -> &str {
    match (name.split_once('('), name.strip_suffix(')')) {
        (Some((_, inner)), None) => inner,
        (None, Some(inner)) => inner,
        (_, _) => name,
    }
}
