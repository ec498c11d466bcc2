//! Reads the values in one line of text that follow their names.
//!
//! `name=value` follows Katib's collector (white space around `=` allowed; its default filter in kubeflow/katib
//! `pkg/metricscollector/v1beta1/common/const.go`). Katib has a list of the metrics. Without one, words that only begin
//! like a number and command-line flags (`--lr=0.1`) are ignored.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use spotsweep_protocol::metric::Source;

use super::phrase;
use crate::data_set::{self, Sets};
use crate::figures::differ;
use crate::logged::Logged;
use crate::names::{Named, before_name, is_of};
use crate::number::{Number, leading, measured, of_member};
use crate::object::{self, Nested, Scanner};
use crate::table::is_rule;
use crate::{step, worded};

/// The name under which Lightning prints the number of a version.
const VERSION: &str = "v_num";
/// The name that Katib gives to a line's time.
const TIMESTAMP: &str = "timestamp";
/// Words between a name and its value in a sentence.
const VERBS: [&str; 6] = ["is ", "was ", "of ", "-> ", "=> ", "→ "];
/// The spaces at the start of a line that is the rest of a too wide progress bar (rich, as Lightning uses it).
const OF_A_BAR: usize = 20;
/// Words before a name that make it another metric: `EMA pseudo Dice`, `target accuracy`.
const OTHERS: [&str; 14] = [
    "target",
    "goal",
    "baseline",
    "threshold",
    "required",
    "initial",
    "previous",
    "prev",
    "min",
    "max",
    "minimum",
    "maximum",
    "highest",
    "lowest",
];
/// Words before a name that mean a moving average, the last word first. As many other words may be between them and the
/// name.
const SMOOTHED: [&[&str]; 6] =
    [&["ema"], &["ewma"], &["smoothed"], &["average", "moving"], &["avg", "moving"], &["mean", "moving"]];
const MOST_BETWEEN: usize = 2;
/// The bytes of the text before a name that are searched.
const LOOKED_AT: usize = 64;
/// Matches a line of meters such as `Time  0.512 ( 0.843)`, with the mean in brackets after each value. PyTorch's
/// ImageNet example and timm print such lines.
static METERS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)(?:^|[^a-z])(?:time|data):?\s+\d+\.\d+\s*\(\s*\d+\.\d+\)").ok());
/// Beginnings of other lines of meters, by torchvision's references and their derivatives.
const OF_METERS: [&str; 2] = ["eta: ", "Averaged stats: "];
/// The longest mean, in bytes.
const MOST_MEAN: usize = 32;
const MOST_QUOTED: usize = 256;

/// A line, with what is true of it as a whole.
pub(super) struct Line<'a> {
    whole: &'a str,
    named: &'a Named,
    /// The ranges of the objects in it.
    pub(super) objects: Vec<Range<usize>>,
    /// The same line with blanks in place of the objects.
    pub(super) outside: Cow<'a, str>,
    sets: Sets,
    is_bar: bool,
    has_meters: bool,
}

impl<'a> Line<'a> {
    pub(super) fn new(whole: &'a str, named: &'a Named) -> Self {
        let objects = object::all(whole);
        let mut outside = Cow::Borrowed(whole);
        for object in &objects {
            outside.to_mut().replace_range(object.clone(), &" ".repeat(object.len()));
        }
        let (sets, is_bar) = (Sets::of(&outside), is_progress_bar(whole));
        let has_meters = has_meters(&outside);
        Self { whole, named, objects, outside, sets, is_bar, has_meters }
    }

    pub(super) fn values(&self) -> Logged {
        let mut found = Logged::default();
        // W&B prints the last values again for people.
        if self.whole.starts_with("wandb: ") {
            return found;
        }
        self.signed(&mut found);
        let with_sign: HashSet<String> = found.values.iter().map(|value| value.name.clone()).collect();
        for (before, name, value) in worded::values(&self.outside) {
            if !with_sign.contains(name) {
                self.add(&mut found, (before, name, value), self.source(Source::Text));
            }
        }
        self.unsigned(&mut found);
        self.phrased(&mut found);
        self.members(&mut found);
        found.values.retain(|value| value.name != VERSION && !data_set::LEVELS.contains(&value.name.as_str()));
        found.step = step::take(&mut found.values);
        found
    }

    fn source(&self, source: Source) -> Source {
        if self.is_bar { Source::ProgressBar } else { source }
    }

    /// Adds the values that follow a sign.
    fn signed(&self, found: &mut Logged) {
        let line: &str = &self.outside;
        for (at, mark) in line.match_indices(['=', ':']) {
            let (left, right) = (&line[..at], &line[at + 1..]);
            let named = self.named.name().and_then(|name| Some((name, before_name(left, name)?)));
            let quoted = || quoted(left).filter(|(name, _)| self.named.is(name) || step::is_name(name));
            let Some((name, before)) = named.or_else(quoted).or_else(|| name_before(left)) else { continue };
            let (is_named, is_step) = (self.named.is(name), step::is_name(name));
            if is_step && step::is_earlier(before) {
                continue;
            }
            let number = if is_named { measured(unquoted(right)) } else { leading(right) };
            let Some(Number { value, is_whole }) = number.filter(|_| !is_share(right)) else { continue };
            // Counts, ports, and numbers of parameters or lines are whole numbers.
            let is_count = mark == ":" && (is_whole || !value.is_finite()) && !(is_step && quoted().is_some());
            if !is_named && (is_count || is_whole && is_argument(before)) {
                continue;
            }
            // `epoch=3/10` is epoch 3.
            let counted = right.split('/').next().filter(|_| is_step).and_then(leading);
            let value = counted.map_or(value, |number| number.value);
            let source = if mark == "=" { Source::Stated } else { Source::Text };
            let (value, source) = self.mean(right).unwrap_or((value, self.source(source)));
            self.add(found, (before, name, value), source);
        }
    }

    /// Adds a value that follows `before` and its name. It may get a second name, which the sweep file ranks by.
    fn add(&self, found: &mut Logged, (before, name, value): (&str, &str, f64), source: Source) {
        let set = self.sets.before(before.len()).filter(|set| !data_set::is_in(name, set));
        let source = source_after(before, (name, set), source);
        let is_less_reliable = set.is_some_and(data_set::is_less_reliable);
        found.add(name, value, if is_less_reliable { Source::OfTraining } else { source });
        let is_named = |named: &&str| set.is_some_and(|set| is_of(set, name, named));
        if let Some(named) = self.named.name().filter(is_named) {
            found.add(named, value, source);
        }
    }

    /// Returns the mean after the value of a meter. It is of a part of an epoch, like that of a progress bar.
    fn mean(&self, right: &str) -> Option<(f64, Source)> {
        let right = Some(right.trim_start()).filter(|_| self.has_meters)?;
        let rest = right.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | '+' | '-'));
        let inner = rest.trim_start().strip_prefix('(').filter(|_| rest.len() < right.len())?;
        let (inner, _) = inner[..inner.floor_char_boundary(MOST_MEAN)].split_once(')')?;
        Some((inner.trim().parse().ok()?, Source::ProgressBar))
    }

    /// Adds the named metric where no sign precedes its value: `val_acc 0.9`, `| val_acc | 0.9 |`, `accuracy is 90%`.
    fn unsigned(&self, found: &mut Logged) {
        let is_known = found.values.iter().any(|value| self.named.is(&value.name));
        let Some(name) = self.named.name().filter(|_| !is_known) else { return };
        let line: &str = &self.outside;
        let is_gap = |c: char| c.is_whitespace() || is_rule(c);
        let is_percent = line.trim_end().ends_with('%');
        let ends = line.char_indices().filter(|(_, c)| is_gap(*c)).map(|(end, _)| end);
        for (left, right) in ends.map(|end| line.split_at(end)) {
            // Only the beginning of a gap is looked at.
            let Some(before) = (!left.ends_with(is_gap)).then(|| before_name(left, name)).flatten() else { continue };
            let after = right.trim_start_matches(is_gap);
            let is_cell = right[..right.len() - after.len()].contains(is_rule);
            let after = VERBS.iter().find_map(|verb| after.strip_prefix(verb)).unwrap_or(after);
            let number = measured(after).filter(|number| is_cell || !number.is_whole || is_percent);
            let Some(number) = number else { continue };
            // In a row of several values it is not known which one is meant. Of two, both are kept; of more, none.
            let is_row = !before.contains(char::is_alphanumeric);
            let cells = is_row.then(|| after.split(is_gap).filter(|cell| !cell.is_empty()).skip(1));
            let others: Vec<f64> = cells.into_iter().flatten().map_while(decimal).collect();
            if others.len() > 1 && others.iter().any(|other| differ(*other, number.value)) {
                continue;
            }
            for other in others {
                self.add(found, (before, name, other), self.source(Source::Text));
            }
            let (value, source) = self.mean(after).unwrap_or((number.value, self.source(Source::Text)));
            self.add(found, (before, name, value), source);
        }
    }

    /// Adds the named metric if its data set follows it and nothing else in the line is the metric.
    fn phrased(&self, found: &mut Logged) {
        let is_known = found.values.iter().any(|value| self.named.is(&value.name));
        let Some(name) = self.named.name().filter(|_| !is_known) else { return };
        if let Some((before, value, set)) = phrase::value(&self.outside, self.named) {
            let is_of_training = data_set::is_less_reliable(set) && !data_set::is_in(name, set);
            let source = source_after(before, (name, Some(set)), self.source(Source::Text));
            found.add(name, value, if is_of_training { Source::OfTraining } else { source });
        }
    }

    /// Adds the numbers of the line's objects, including numbers in quotes, but not those of inner objects and lists.
    /// If the line has other values, a named object is an argument (`config={'lr': 0.1}`). In arguments and inner
    /// objects only the named metric is read.
    fn members(&self, found: &mut Logged) {
        let has_others = found.values.iter().any(|value| !step::is_name(&value.name));
        for object in &self.objects {
            let before = &self.whole[..object.start];
            let is_argument = has_others && before.trim_end().ends_with(['=', ':']);
            let (mut members, mut nested, mut set) = (Vec::new(), Nested::default(), None);
            Scanner::default().scan(&self.whole[object.clone()], |names, value| {
                if let [name] = names {
                    set = set.or_else(|| data_set::of_member(name, object::word(value)));
                }
                let value = of_member(value);
                match (names, value) {
                    ([name], Some(value)) if !is_argument && *name != TIMESTAMP && !name.is_empty() => {
                        members.push(((*name).to_owned(), value));
                    }
                    (_, _) => nested.take(names, value, self.named),
                }
            });
            let mut own = Logged::default();
            for (name, value) in &members {
                self.add(&mut own, (before, name, *value), self.source(Source::Text));
            }
            set.into_iter().for_each(|set| self.named.in_set(set, &mut own));
            found.values.append(&mut own.values);
            let is_known = || found.values.iter().any(|value| self.named.is(&value.name));
            if self.named.name().is_some() && !is_known() {
                nested.add(found, self.named, self.source(Source::Text), set);
            }
        }
    }
}

/// Reads a cell that is a number with a point.
fn decimal(cell: &str) -> Option<f64> {
    cell.parse().ok().filter(|_| cell.contains('.'))
}

fn has_meters(line: &str) -> bool {
    let is_match = || METERS.as_ref().is_some_and(|meters| meters.is_match(line));
    line.contains('(') && (OF_METERS.iter().any(|mark| line.contains(mark)) || is_match())
}

/// Returns the source of a value that follows `before` and its name, because words there may make it another metric. A
/// moving average counts if its name states its data set, or if `set`, the data set of the line, is not the training
/// data.
fn source_after(before: &str, (name, set): (&str, Option<&str>), source: Source) -> Source {
    let is_known = || data_set::of_name(name).or(set.filter(|set| !data_set::is_less_reliable(set))).is_some();
    match other_metric(before) {
        None => source,
        Some(Other::MovingAverage) if source > Source::ProgressBar && is_known() => Source::Smoothed,
        Some(Other::MovingAverage | Other::Different) => Source::OfTraining,
    }
}

/// The effect of the words before a name on its metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Other {
    MovingAverage,
    /// The value is a bound, or an earlier value.
    Different,
}

fn other_metric(before: &str) -> Option<Other> {
    let before = &before[before.ceil_char_boundary(before.len().saturating_sub(LOOKED_AT))..];
    let clause = before.rsplit([',', ';', '|', ':', '=']).next().unwrap_or_default();
    let mut words = clause.rsplit(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).peekable();
    let is_set = words.peek().is_some_and(|word| data_set::short(word).is_some());
    let last = words.clone().nth(usize::from(is_set));
    let is_other = last.is_some_and(|last| OTHERS.iter().any(|other| last.eq_ignore_ascii_case(other)));
    let near: Vec<&str> = words.take(MOST_BETWEEN + 1).collect();
    let has = |known: &[&str]| {
        let is_equal = |(word, known): (&&str, &&str)| word.eq_ignore_ascii_case(known);
        near.windows(known.len()).any(|words| words.iter().zip(known).all(is_equal))
    };
    let is_smoothed = SMOOTHED.iter().any(|known| has(known));
    match (is_smoothed, is_other || is_smoothed && has(&["best"])) {
        (_, true) => Some(Other::Different),
        (true, false) => Some(Other::MovingAverage),
        (false, false) => None,
    }
}

/// Whether a name is that of an argument: `Trainer(log_every_n_steps=50)`, and "`max_epochs=200` reached".
fn is_argument(before: &str) -> bool {
    let called = before.strip_suffix('(').is_some_and(|call| call.ends_with(|c: char| c.is_alphanumeric() || c == '_'));
    called || before.ends_with('`')
}

/// Returns the word that a text ends with, and the text before it.
fn name_before(left: &str) -> Option<(&str, &str)> {
    let left = left.trim_end();
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/' | '.');
    let before = left.trim_end_matches(inner);
    let word = &left[before.len()..];
    if word.starts_with('-') {
        return None;
    }
    let name = word.trim_start_matches(|c: char| !c.is_ascii_alphabetic() && c != '_');
    (!name.is_empty()).then(|| (name, &left[..left.len() - name.len()]))
}

/// Returns the name in quotes that a text ends with, and the text before it. It is a member of an object that begins in
/// another line.
fn quoted(left: &str) -> Option<(&str, &str)> {
    let left = left.trim_end();
    let quote = left.chars().next_back().filter(|c| matches!(c, '"' | '\''))?;
    let inner = &left[..left.len() - 1];
    let first = inner.ceil_char_boundary(inner.len().saturating_sub(MOST_QUOTED));
    let start = first + inner[first..].rfind(quote)?;
    Some((&inner[start + 1..], &inner[..start]))
}

fn unquoted(right: &str) -> &str {
    let right = right.trim_start();
    right.strip_prefix(['"', '\'']).unwrap_or(right)
}

/// Whether a progress bar's own share follows its description: `Writing shards: 100%|███|`.
fn is_share(right: &str) -> bool {
    right.trim_start().trim_start_matches(|c: char| c.is_ascii_digit()).starts_with("%|")
}

/// Whether a line is a progress bar of tqdm, Keras, rich or Lightning.
fn is_progress_bar(line: &str) -> bool {
    let has_rate = ["it/s", "s/it", "s/step", "s/epoch"].iter().any(|rate| line.contains(rate));
    let has_bar = line.contains("%|") || line.contains('━') || line.contains("[====");
    let is_rest = line.len() - line.trim_start_matches(' ').len() >= OF_A_BAR;
    has_rate || has_bar || is_rest
}
