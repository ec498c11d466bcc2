//! The hours that a sweep is expected to be billed on Spot.

use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_sweep_file::SweepFile;
use spotsweep_sweep_file::expected::{Expected, INTERRUPTIONS_PER_HOUR, needs_checkpoints};

use crate::{out, show};

/// What is expected of one file.
pub(super) struct Quote {
    pub(super) rows: Vec<Expected>,
}

impl Quote {
    /// For trials of so many hours, else of the file's own limit.
    pub(super) fn of(file: &SweepFile, hours: Option<f64>) -> Self {
        let (trials, settings) = (file.trial_count(), &file.settings);
        let (attempts, has_workspace) = (settings.attempts, settings.has_workspace());
        let rows = match hours {
            Some(hours) => vec![Expected::of(trials, hours, attempts, has_workspace)],
            None => Expected::of_limit(trials, settings.timeout_seconds, attempts, has_workspace),
        };
        Self { rows }
    }

    /// Whether the length of the trials is known, they have no workspace for checkpoints, and most of what is billed is
    /// lost.
    pub(super) fn is_problem(&self) -> bool {
        let [only] = self.rows.as_slice() else { return false };
        only.billed_hours_with_checkpoints.is_none() && needs_checkpoints(only.trial_hours)
    }

    /// Prints a table, and the problem.
    pub(super) fn print(&self) -> Result<(), Failure> {
        let header = ["trial of", "useful", "billed with checkpoints", "billed without", "trials that end without"];
        let rows: Vec<Vec<String>> =
            [header.map(str::to_owned).to_vec()].into_iter().chain(self.rows.iter().map(row)).collect();
        let mut text = Vec::new();
        show::table(&mut text, &rows).context(|| "cannot lay out the table")?;
        let text = String::from_utf8_lossy(&text).into_owned();
        out::results(|to| {
            writeln!(to, "expected on Spot, with {INTERRUPTIONS_PER_HOUR:.2} interruptions an hour (docs/costs.md):")?;
            write!(to, "{text}")?;
            if self.is_problem() {
                writeln!(
                    to,
                    "problem: trials of this length have no workspace, so an interruption costs the whole training"
                )?;
                writeln!(to, "  → delete `workspace: off` and save checkpoints below $SPOTSWEEP_CHECKPOINTS")?;
            } else if self.rows.iter().all(|row| row.billed_hours_with_checkpoints.is_some()) {
                writeln!(to, "`spotsweep try` shows whether the training saves and loads checkpoints")?;
            }
            Ok(())
        })
    }
}

fn row(expected: &Expected) -> Vec<String> {
    let hours = |hours: f64| format!("{hours:.1} h");
    vec![
        hours(expected.trial_hours),
        hours(expected.useful_hours),
        expected.billed_hours_with_checkpoints.map_or_else(|| "no workspace".to_owned(), hours),
        hours(expected.billed_hours_without_checkpoints),
        format!("{:.1} %", expected.finished_without_checkpoints * 100.0),
    ]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_long_training_without_a_workspace_is_a_problem() {
        let is_problem = |settings: &str, hours| {
            let text = format!("spotsweep: {{{settings}}}\ntrials: [{{lr: 1}}]\n");
            Quote::of(&spotsweep_sweep_file::parse("f.yaml", "", text.as_bytes()).unwrap(), hours).is_problem()
        };
        assert!(is_problem("workspace: off", Some(6.0)));
        assert!(is_problem("workspace: off, timeout: 6h", None));
        assert!(!is_problem("workspace: off", Some(0.5)));
        assert!(!is_problem("workspace: off", None), "its length is not known");
        assert!(!is_problem("timeout: 6h", None));
    }
}
