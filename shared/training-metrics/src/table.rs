//! Metrics in tables: a line of names, and lines of numbers below it, as fastai and spaCy print them. The names begin with
//! a step, or have the metric that the sweep file names among them.

use spotsweep_protocol::metric::Source;

use crate::logged::Logged;
use crate::names::Named;
use crate::number::leading;

/// Columns that count steps, in any capitals: the best first.
const STEPS: [&str; 9] = ["global_step", "step", "iteration", "iter", "#", "epoch", "ep", "e", "round"];
/// Those that make a table by themselves, as the first column.
const FIRST: [&str; 5] = ["epoch", "step", "iter", "iteration", "global_step"];
/// Columns that are no metrics.
const NO_METRICS: [&str; 3] = ["time", "eta", "elapsed"];
/// The longest name: each row repeats those of its header.
const MOST_NAME_BYTES: usize = 256;
/// Lines between columns.
const RULES: [char; 3] = ['|', '│', '┃'];

/// The table under way. Lines that are no part of it may stand between its rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    names: Vec<String>,
    /// A line with the named metric, until the next line shows whether it is a header.
    next: Option<Vec<String>>,
    /// `rollout/`, before rows of a name and a value, as Stable Baselines prints them.
    section: Option<String>,
}

/// Whether a character is a line between columns.
pub(crate) fn is_rule(c: char) -> bool {
    RULES.contains(&c)
}

impl Table {
    /// What a row says. A header is remembered.
    pub(crate) fn read(&mut self, line: &str, named: &Named) -> Option<Logged> {
        let cells = cells(line);
        if let Some(found) = self.pair(&cells, line.contains(RULES)) {
            return Some(found);
        }
        let (first, others) = cells.split_first()?;
        if is_in(&FIRST, first) {
            if !others.is_empty() && others.iter().all(|cell| is_name(cell)) {
                (self.names, self.next) = (owned(&cells), None);
            }
            return None;
        }
        if let Some(next) = self.next.take() {
            let is_value = |cell: &&str| leading(cell).is_some() || cell.contains(':') || *cell == "-";
            if let Some(found) = row(&next, &cells).filter(|_| cells.iter().all(is_value)) {
                self.names = next;
                return Some(found);
            }
            self.next = Some(next).filter(|_| is_separator(line));
        }
        let found = row(&self.names, &cells);
        if found.is_none() && self.next.is_none() {
            self.next = header(line, named);
        }
        found
    }

    /// What a row of two columns says below the name of its section; `None` outside of sections.
    fn pair(&mut self, cells: &[&str], has_rules: bool) -> Option<Logged> {
        match (cells, &self.section) {
            ([name, ""], _) if has_rules && name.ends_with('/') && name.len() <= MOST_NAME_BYTES => {
                self.section = Some((*name).to_owned());
                None
            }
            ([name, value], Some(section)) if has_rules => {
                let number = leading(value).filter(|_| is_name(name))?;
                let mut found = Logged::default();
                found.add(&format!("{section}{name}"), number.value, Source::Text);
                Some(found)
            }
            (_, _) => {
                self.section = None;
                None
            }
        }
    }
}

/// The names in a line that has the named metric among them. They may have spaces where gaps between columns are wider.
fn header(line: &str, named: &Named) -> Option<Vec<String>> {
    let is_header = |cells: &Vec<&str>| {
        cells.len() >= 2
            && cells.iter().any(|cell| named.is(cell))
            && cells.iter().all(|cell| !cell.contains(['=', ':']) && leading(cell).is_none())
            && cells.iter().all(|cell| (1..=MOST_NAME_BYTES).contains(&cell.len()))
    };
    let wide: Vec<&str> = if line.contains(RULES) {
        cells(line)
    } else {
        line.split("  ").flat_map(|part| part.split('\t')).map(str::trim).filter(|cell| !cell.is_empty()).collect()
    };
    let narrow = || Some(line.split_whitespace().collect()).filter(is_header);
    Some(wide).filter(is_header).or_else(narrow).map(|cells| owned(&cells))
}

/// The values of a row below these names.
fn row(names: &[String], cells: &[&str]) -> Option<Logged> {
    if names.is_empty() || cells.len() != names.len() {
        return None;
    }
    let columns = || names.iter().map(String::as_str).zip(cells.iter().copied());
    let counted = STEPS.iter().find_map(|step| columns().find(|(name, _)| name.eq_ignore_ascii_case(step)));
    let (step_name, step) = counted.or_else(|| columns().next())?;
    // `3/10` is the third.
    let step = leading(step.split('/').next()?).filter(|number| counted.is_some() || number.is_whole);
    if counted.is_some() && step.is_none() {
        return None;
    }
    let mut found = Logged { step: step.map(|step| step.value), ..Logged::default() };
    for (name, cell) in columns().filter(|(name, _)| !is_in(&STEPS, name) && !is_in(&NO_METRICS, name)) {
        if let Some(number) = leading(cell).filter(|_| step.is_none() || name != step_name) {
            found.add(name, number.value, Source::Text);
        }
    }
    (!found.values.is_empty()).then_some(found)
}

fn cells(line: &str) -> Vec<&str> {
    let line = line.trim();
    if line.contains(RULES) {
        return line.trim_matches(RULES).split(RULES).map(str::trim).collect();
    }
    line.split_whitespace().collect()
}

fn owned(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_owned()).collect()
}

fn is_in(words: &[&str], cell: &str) -> bool {
    words.iter().any(|word| cell.eq_ignore_ascii_case(word))
}

fn is_name(cell: &str) -> bool {
    cell.starts_with(char::is_alphabetic) && !cell.contains(['=', ':']) && cell.len() <= MOST_NAME_BYTES
}

/// Whether a line only separates a header from its rows.
fn is_separator(line: &str) -> bool {
    line.chars().all(|c| c.is_whitespace() || matches!(c, '-' | '=' | '+' | '|' | ':' | '\u{2500}'..='\u{257f}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step, and the values of its row.
    type Row = (Option<f64>, Vec<(String, f64)>);

    fn read(lines: &[&str]) -> Vec<Row> {
        read_named(lines, "")
    }

    fn read_named(lines: &[&str], metric: &str) -> Vec<Row> {
        let (mut table, named) = (Table::default(), Named::new(Some(metric.to_owned())));
        let found = lines.iter().filter_map(|line| table.read(line, &named));
        let values = |found: Logged| found.values.into_iter().map(|value| (value.name, value.value)).collect();
        found.map(|found| (found.step, values(found))).collect()
    }

    #[test]
    fn rows_have_the_names_of_their_header() {
        let fastai = [
            "epoch     train_loss  valid_loss  accuracy  time    ",
            "Epoch 1/2 : |███████-----| 50.00% [5/10 00:01<00:01]",
            "0         0.512300    0.431000    0.875000  00:03     ",
            "1         0.312300    nan         0.900000  00:03     ",
        ];
        let found = read(&fastai);
        let named = |train: f64, valid: f64, accuracy: f64| {
            [("train_loss", train), ("valid_loss", valid), ("accuracy", accuracy)]
                .map(|(name, value)| (name.to_owned(), value))
                .to_vec()
        };
        assert_eq!(found[0], (Some(0.0), named(0.5123, 0.431, 0.875)));
        assert!(found.len() == 2 && found[1].0 == Some(1.0) && found[1].1[1].1.is_nan(), "{found:?}");
        let rules = ["| Step | Training Loss |", "|------|------|", "| 3/10 | 0.25 |", "| 4/10 | - |"];
        assert_eq!(read(&rules), [(Some(3.0), vec![("Training Loss".to_owned(), 0.25)])]);
    }

    #[test]
    fn a_header_may_have_the_named_metric() {
        let spacy = [
            "E    #       LOSS TOK2VEC  LOSS NER  ENTS_F  ENTS_P  ENTS_R  SCORE ",
            "---  ------  ------------  --------  ------  ------  ------  ------",
            "  0       0          0.00     60.19    0.50    1.19    0.04    0.01",
            "a line of something else",
            "  1     200         57.60    120.19   81.25   80.19   82.04    0.81",
        ];
        let of = |lines: &[&str], metric: &str| {
            let rows = read_named(lines, metric).into_iter();
            let value = |(step, values): Row| {
                values.into_iter().find(|(name, _)| name == metric).map(|(_, value)| (step, value))
            };
            rows.filter_map(value).collect::<Vec<_>>()
        };
        assert_eq!(of(&spacy, "ENTS_F"), [(Some(0.0), 0.5), (Some(200.0), 81.25)]);
        assert_eq!(of(&spacy, "LOSS NER"), [(Some(0.0), 60.19), (Some(200.0), 120.19)]);
        assert_eq!(of(&spacy, "other"), []);
        assert_eq!(of(&["n loss val_acc", "3 0.5 0.25"], "val_acc"), [(Some(3.0), 0.25)]);
        assert_eq!(of(&["loss  val_acc", "0.5  0.25"], "val_acc"), [(None, 0.25)]);
        assert_eq!(of(&["run\tval_acc\ttime", "a\t0.25\t00:03"], "val_acc"), [], "not a number in each column");
        // Per class, with a name before each row.
        let report =
            ["   precision    f1-score   support", "", "   0   0.95    0.96     100", "   accuracy    0.95   360"];
        assert_eq!(of(&report, "f1-score"), []);
        assert_eq!(of(&["the loss and val_acc", "were computed", "1 2 3 4"], "val_acc"), []);
    }

    #[test]
    fn a_row_below_a_section_has_its_name() {
        let lines = [
            "----------------------------------",
            "| rollout/           |          |",
            "|    ep_rew_mean     | 500      |",
            "| train/             |          |",
            "|    loss            | 0.0213   |",
            "----------------------------------",
            "|    other           | 0.5      |",
        ];
        let named = |name: &str, value| (None, vec![(name.to_owned(), value)]);
        assert_eq!(read(&lines), [named("rollout/ep_rew_mean", 500.0), named("train/loss", 0.0213)]);
    }

    #[test]
    fn other_lines_are_no_tables() {
        assert_eq!(read(&["1 2 3", "epoch one is over now", "1 of 3 files", "epoch loss: 0.5", "1 0.5"]), []);
        assert_eq!(read(&["Epoch 3 0.5", "4 0.25 0.5"]), [], "its first line has numbers");
    }
}
