//! Estimates the hours that a sweep is billed on Spot, and what its kept workspaces can cost.

use serde::Serialize;

use spotsweep_control_plane::settings::{KEEP_FAILED_SECONDS, WORKSPACE_GIB};
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::words::dollars;
use spotsweep_report::cost::most_kept_usd;
use spotsweep_sweep_file::expected::{Expected, INTERRUPTIONS_PER_HOUR, needs_checkpoints};
use spotsweep_sweep_file::{Keep, SweepFile, Workspace};

use super::asked::{Asked, Last};
use super::collected::Collected;
use super::data::DataCost;
use super::last_sweep::{LastSweep, MOST_SWEEPS};
use super::prices::{Prices, Usd};
use crate::{out, show};

/// The estimates for one file.
pub(super) struct Quote {
    pub(super) rows: Vec<Expected>,
    /// Where the length of its trials comes from.
    pub(super) hours: Hours,
    /// What is kept after trials' ends: if all of them fail, and if all of them succeed.
    pub(super) kept: Vec<Kept>,
    /// What the collected files cost, as far as it is known.
    pub(super) collected: Option<Collected>,
    /// What the requests for data sets cost, if they could be listed.
    pub(super) data: Vec<DataCost>,
    /// The prices, if a deployment could be asked.
    pub(super) prices: Option<Prices>,
    trials: u64,
}

/// Where the length of a trial comes from.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub(super) enum Hours {
    /// It is from the option.
    Option,
    /// It is the file's own limit, which an attempt may or may not reach.
    Timeout,
    /// It is what trials of the same code took that have succeeded.
    LastSweep(LastSweep),
    /// It is not known, so usual lengths are shown.
    Unknown {
        /// Whether earlier sweeps could be looked at.
        looked: bool,
    },
}

impl Hours {
    /// Text for people.
    fn line(&self) -> String {
        let from = match self {
            Self::Option => "as --hours says".to_owned(),
            Self::Timeout => "the file's `timeout`, the most that an attempt may take".to_owned(),
            Self::LastSweep(last) => last.described(),
            Self::Unknown { looked: true } => format!(
                "not known, as none of the newest {MOST_SWEEPS} sweeps has this command, code and job definition, and a \
                 succeeded trial: give --hours"
            ),
            Self::Unknown { looked: false } => "not known: give --hours".to_owned(),
        };
        format!("hours of a trial: {from}\n")
    }
}

/// Snapshots that are kept after their trials' ends, if all trials end in this way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Kept {
    after: &'static str,
    hours: f64,
    size_gib: u32,
    usd_at_most: f64,
}

impl Kept {
    /// What is kept by this file. Where it leaves that to the deployment, the deployment's defaults count.
    fn of(file: &SweepFile) -> Vec<Self> {
        let (size, keep) = match &file.settings.workspace {
            None => (None, Keep::default()),
            Some(Workspace::Volume { size_gib, keep, .. }) => (*size_gib, *keep),
            // A volume of the user's own stays in any case.
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
    /// Estimates for trials of so many hours. Otherwise they take the file's own limit, or else as long as those of the
    /// last sweep of this code.
    pub(super) fn of(file: &SweepFile, hours: Option<f64>, asked: Asked) -> Self {
        let (trials, settings) = (file.trial_count(), &file.settings);
        let (attempts, has_workspace) = (settings.attempts, settings.has_workspace());
        let of = |hours| vec![Expected::of(trials, hours, attempts, has_workspace)];
        let of_limit = |limit| Expected::of_limit(trials, limit, attempts, has_workspace);
        let last = if let Last::Known(last) = &asked.last { Some(last) } else { None };
        let collected = Collected::of(file, last);
        let (rows, hours) = match (hours, settings.timeout_seconds, asked.last) {
            (Some(hours), _, _) => (of(hours), Hours::Option),
            (None, Some(limit), _) => (of_limit(Some(limit)), Hours::Timeout),
            (None, None, Last::Known(last)) => (of(last.mean_hours), Hours::LastSweep(last)),
            (None, None, Last::None) => (of_limit(None), Hours::Unknown { looked: true }),
            (None, None, Last::Unknown) => (of_limit(None), Hours::Unknown { looked: false }),
        };
        Self { rows, hours, kept: Kept::of(file), collected, data: asked.data, prices: asked.prices, trials }
    }

    /// Expected cost in USD for each length of a trial, if prices are known.
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

    /// Prints a table, and the problem if there is one.
    pub(super) fn print(&self) -> Result<(), Failure> {
        let header = ["trial of", "useful", "billed with checkpoints", "billed without", "finish rate without"];
        let rows: Vec<Vec<String>> =
            [header.map(str::to_owned).to_vec()].into_iter().chain(self.rows.iter().map(row)).collect();
        let mut text = Vec::new();
        show::table(&mut text, &rows).context(|| "cannot lay out the table")?;
        let text = String::from_utf8_lossy(&text).into_owned();
        out::results(|to| {
            write!(to, "{}", self.hours.line())?;
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
            if let Some(collected) = &self.collected {
                write!(to, "{}", collected.line())?;
            }
            self.data.iter().try_for_each(|set| write!(to, "{}", set.line()))?;
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
    vec![
        show::hours(expected.trial_hours),
        show::hours(expected.useful_hours),
        expected.billed_hours_with_checkpoints.map_or_else(|| "no workspace".to_owned(), show::hours),
        show::hours(expected.billed_hours_without_checkpoints),
        format!("{:.1} %", expected.finished_without_checkpoints * 100.0),
    ]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use spotsweep_protocol::ids::SweepId;

    use super::*;

    #[test]
    fn what_is_kept_is_in_the_quote() {
        let kept = |settings: &str| {
            let text = format!("spotsweep: {{{settings}}}\ntrials: [{{lr: 1}}, {{lr: 2}}]\n");
            let file = spotsweep_sweep_file::parse("f.yaml", "", text.as_bytes()).unwrap();
            let quote = Quote::of(&file, None, Asked::default());
            quote.kept.iter().map(|kept| (kept.after, (kept.usd_at_most * 100.0).round())).collect::<Vec<_>>()
        };
        // Two trials cost this for a month of 730 hours at $0.05 a GiB.
        assert_eq!(kept("attempts: 9"), [("failure", 20.0)]);
        let settings = "workspace: {size: 100GiB, keep_failed: 0, keep_succeeded: 30d}";
        assert_eq!(kept(settings), [("success", 986.0)]);
        assert_eq!(kept("workspace: off"), []);
    }

    #[test]
    fn a_long_training_without_a_workspace_is_a_problem() {
        let is_problem = |settings: &str, hours| {
            let text = format!("spotsweep: {{{settings}}}\ntrials: [{{lr: 1}}]\n");
            let file = spotsweep_sweep_file::parse("f.yaml", "", text.as_bytes()).unwrap();
            Quote::of(&file, hours, Asked::default()).is_problem()
        };
        assert!(is_problem("workspace: off", Some(6.0)));
        assert!(is_problem("workspace: off, timeout: 6h", None));
        assert!(!is_problem("workspace: off", Some(0.5)));
        assert!(!is_problem("workspace: off", None), "its length is not known");
        assert!(!is_problem("timeout: 6h", None));
    }

    #[test]
    fn hours_come_from_the_option_the_file_or_the_last_sweep() {
        let last = || Last::Known(LastSweep::with_bytes(SweepId::derive("b", "k", "v"), 1e9));
        for (settings, hours, last, expected, words) in [
            ("timeout: 6h", Some(2.0), last(), vec![2.0], "as --hours says"),
            ("timeout: 6h", None, last(), vec![6.0], "the file's `timeout`, the most"),
            ("attempts: 3", None, last(), vec![1.0], "1.0 h, the mean of 1 succeeded trial of sweep k-"),
            ("attempts: 3", None, Last::None, vec![1.0, 4.0, 10.0], "none of the newest 20 sweeps"),
            ("attempts: 3", None, Last::Unknown, vec![1.0, 4.0, 10.0], "not known: give --hours"),
        ] {
            let text = format!("spotsweep: {{{settings}}}\ntrials: [{{lr: 1}}]\n");
            let file = spotsweep_sweep_file::parse("f.yaml", "", text.as_bytes()).unwrap();
            let quote = Quote::of(&file, hours, Asked { last, ..Asked::default() });
            assert_eq!(quote.rows.iter().map(|row| row.trial_hours).collect::<Vec<_>>(), expected, "{words}");
            assert!(quote.hours.line().contains(words), "{words}: {}", quote.hours.line());
        }
    }
}
