//! The hours that a sweep is expected to be billed on Spot, and what its kept workspaces cost at most.

use serde::Serialize;

use spotsweep_control_plane::results::cost::most_kept_usd;
use spotsweep_control_plane::settings::{KEEP_FAILED_SECONDS, WORKSPACE_GIB};
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::words::dollars;
use spotsweep_sweep_file::expected::{Expected, INTERRUPTIONS_PER_HOUR, needs_checkpoints};
use spotsweep_sweep_file::{Keep, SweepFile, Workspace};

use super::prices::{Prices, Usd};
use crate::{out, show};

/// What is expected of one file.
pub(super) struct Quote {
    pub(super) rows: Vec<Expected>,
    /// What is kept after trials' ends: if all of them fail, and if all of them succeed.
    pub(super) kept: Vec<Kept>,
    /// Where a deployment could be asked.
    pub(super) prices: Option<Prices>,
    trials: u64,
}

/// Snapshots that are kept after their trials' ends, if all trials end so.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Kept {
    after: &'static str,
    hours: f64,
    size_gib: u32,
    usd_at_most: f64,
}

impl Kept {
    /// Where a file leaves it to the deployment, with the defaults of that.
    fn of(file: &SweepFile) -> Vec<Self> {
        let (size, keep) = match &file.settings.workspace {
            None => (None, Keep::default()),
            Some(Workspace::Volume { size_gib, keep, .. }) => (*size_gib, *keep),
            // A volume of one's own stays in any case.
            Some(Workspace::Off | Workspace::Adopted { .. }) => return Vec::new(),
        };
        let size_gib = size.unwrap_or(WORKSPACE_GIB);
        let kept = |(after, seconds)| Self {
            after,
            hours: f64::from(seconds) / 3600.0,
            size_gib,
            usd_at_most: file.trial_count() as f64 * most_kept_usd(size_gib, seconds),
        };
        let of = [
            ("failure", keep.failed_seconds.unwrap_or(KEEP_FAILED_SECONDS)),
            ("success", keep.succeeded_seconds.unwrap_or(0)),
        ];
        of.into_iter().filter(|(_, seconds)| *seconds > 0).map(kept).collect()
    }
}

impl Quote {
    /// For trials of so many hours, else of the file's own limit.
    pub(super) fn of(file: &SweepFile, hours: Option<f64>, prices: Option<Prices>) -> Self {
        let (trials, settings) = (file.trial_count(), &file.settings);
        let (attempts, has_workspace) = (settings.attempts, settings.has_workspace());
        let rows = match hours {
            Some(hours) => vec![Expected::of(trials, hours, attempts, has_workspace)],
            None => Expected::of_limit(trials, settings.timeout_seconds, attempts, has_workspace),
        };
        Self { rows, kept: Kept::of(file), prices, trials }
    }

    /// Expected dollars for each length of a trial, where prices are known.
    pub(super) fn usd(&self) -> Option<Vec<Usd>> {
        let prices = self.prices.as_ref()?;
        Some(self.rows.iter().map(|row| prices.usd(row, self.trials)).collect())
    }

    /// Whether the length of the trials is known, they have no workspace for checkpoints, and most of what is billed is
    /// lost.
    pub(super) fn is_problem(&self) -> bool {
        let [only] = self.rows.as_slice() else { return false };
        only.billed_hours_with_checkpoints.is_none() && needs_checkpoints(only.trial_hours)
    }

    /// Prints a table, and the problem.
    pub(super) fn print(&self) -> Result<(), Failure> {
        let header = ["trial of", "useful", "billed with checkpoints", "billed without", "finish rate without"];
        let rows: Vec<Vec<String>> =
            [header.map(str::to_owned).to_vec()].into_iter().chain(self.rows.iter().map(row)).collect();
        let mut text = Vec::new();
        show::table(&mut text, &rows).context(|| "cannot lay out the table")?;
        let text = String::from_utf8_lossy(&text).into_owned();
        out::results(|to| {
            if let Some(prices) = &self.prices {
                write!(to, "{}", prices.lines(&self.rows, self.trials))?;
            }
            writeln!(to, "expected on Spot, with {INTERRUPTIONS_PER_HOUR:.2} interruptions an hour (docs/costs.md):")?;
            write!(to, "{text}")?;
            for Kept { after, hours, size_gib, usd_at_most } in &self.kept {
                let usd = dollars(*usd_at_most);
                writeln!(
                    to,
                    "workspaces of {size_gib} GiB are kept for {hours:.0} h after a {after}: at most {usd} if all trials end so"
                )?;
            }
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
    fn what_is_kept_is_in_the_quote() {
        let kept = |settings: &str| {
            let text = format!("spotsweep: {{{settings}}}\ntrials: [{{lr: 1}}, {{lr: 2}}]\n");
            let quote = Quote::of(&spotsweep_sweep_file::parse("f.yaml", "", text.as_bytes()).unwrap(), None, None);
            quote.kept.iter().map(|kept| (kept.after, (kept.usd_at_most * 100.0).round())).collect::<Vec<_>>()
        };
        // Two trials, a month of 730 hours at $0.05 a GiB.
        assert_eq!(kept("attempts: 9"), [("failure", 20.0)]);
        let settings = "workspace: {size: 100GiB, keep_failed: 0, keep_succeeded: 30d}";
        assert_eq!(kept(settings), [("success", 986.0)]);
        assert_eq!(kept("workspace: off"), []);
    }

    #[test]
    fn a_long_training_without_a_workspace_is_a_problem() {
        let is_problem = |settings: &str, hours| {
            let text = format!("spotsweep: {{{settings}}}\ntrials: [{{lr: 1}}]\n");
            Quote::of(&spotsweep_sweep_file::parse("f.yaml", "", text.as_bytes()).unwrap(), hours, None).is_problem()
        };
        assert!(is_problem("workspace: off", Some(6.0)));
        assert!(is_problem("workspace: off, timeout: 6h", None));
        assert!(!is_problem("workspace: off", Some(0.5)));
        assert!(!is_problem("workspace: off", None), "its length is not known");
        assert!(!is_problem("timeout: 6h", None));
    }
}
