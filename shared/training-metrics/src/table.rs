//! Metrics in tables: a line of names that begins with a step, and lines of numbers below it, as fastai prints them.

use spotsweep_protocol::metric::Source;

use crate::logged::Logged;
use crate::number::leading;

/// The first column, in any capitals.
const STEPS: [&str; 5] = ["epoch", "step", "iter", "iteration", "global_step"];
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
    /// `rollout/`, before rows of a name and a value, as Stable Baselines prints them.
    section: Option<String>,
}

/// Whether a character is a line between columns.
pub(crate) fn is_rule(c: char) -> bool {
    RULES.contains(&c)
}

impl Table {
    /// What a row says. A header is remembered.
    pub(crate) fn read(&mut self, line: &str) -> Option<Logged> {
        let cells = cells(line);
        if let Some(found) = self.pair(&cells, line.contains(RULES)) {
            return Some(found);
        }
        let (first, others) = cells.split_first()?;
        if STEPS.iter().any(|step| first.eq_ignore_ascii_case(step)) {
            if !others.is_empty() && others.iter().all(|cell| is_name(cell)) {
                self.names = others.iter().map(|cell| (*cell).to_owned()).collect();
            }
            return None;
        }
        if self.names.is_empty() || others.len() != self.names.len() {
            return None;
        }
        // `3/10` is the third.
        let step = leading(first.split('/').next()?)?.value;
        let mut found = Logged { step: Some(step), ..Logged::default() };
        for (name, cell) in self.names.iter().zip(others) {
            let is_metric = NO_METRICS.iter().all(|other| !name.eq_ignore_ascii_case(other));
            if let Some(number) = leading(cell).filter(|_| is_metric) {
                found.add(name, number.value, Source::Text);
            }
        }
        (!found.values.is_empty()).then_some(found)
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

fn cells(line: &str) -> Vec<&str> {
    let line = line.trim();
    if line.contains(RULES) {
        return line.trim_matches(RULES).split(RULES).map(str::trim).collect();
    }
    line.split_whitespace().collect()
}

fn is_name(cell: &str) -> bool {
    cell.starts_with(char::is_alphabetic) && !cell.contains(['=', ':']) && cell.len() <= MOST_NAME_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step, and the values of its row.
    type Row = (Option<f64>, Vec<(String, f64)>);

    fn read(lines: &[&str]) -> Vec<Row> {
        let mut table = Table::default();
        let found = lines.iter().filter_map(|line| table.read(line));
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
