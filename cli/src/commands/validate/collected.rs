//! Estimates what the collected files of trials that succeed cost in S3. They stay until they are deleted.

use serde::Serialize;
use spotsweep_protocol::claim::Checkpoints;
use spotsweep_protocol::ids::SweepId;
use spotsweep_protocol::words::{counted, dollars, size};
use spotsweep_report::cost::S3_USD;
use spotsweep_sweep_file::SweepFile;

use super::last_sweep::LastSweep;

const GIB: f64 = (1_u64 << 30) as f64;

/// What is known about the cost, if all trials succeed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Collected {
    checkpoints: Checkpoints,
    /// The last sweep of this code, and what one of its trials left on average: outputs, log and checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<(SweepId, f64)>,
    /// Largest checkpoint that is collected.
    #[serde(skip_serializing_if = "Option::is_none")]
    most_checkpoint_bytes: Option<u64>,
    usd_per_gib_month: f64,
    /// Cost of all trials: what is expected, or else the most that their checkpoints can cost. None if neither is
    /// known.
    #[serde(skip_serializing_if = "Option::is_none")]
    usd_per_month: Option<f64>,
    trials: u64,
}

impl Collected {
    /// The cost for the trials of a file. None if no checkpoint is collected, and the size of the other files is not
    /// known.
    pub(super) fn of(file: &SweepFile, last: Option<&LastSweep>) -> Option<Self> {
        let checkpoints = file.settings.outputs.as_ref().and_then(|outputs| outputs.checkpoints).unwrap_or_default();
        let measured = last.and_then(|last| Some((last.sweep.clone(), last.mean_bytes?)));
        let (trials, most) = (file.trial_count(), checkpoints.most_bytes());
        let of_one = measured.as_ref().map(|(_, bytes)| *bytes).or(most.map(|most| most as f64));
        (checkpoints != Checkpoints::None || measured.is_some()).then(|| Self {
            checkpoints,
            measured,
            most_checkpoint_bytes: most,
            usd_per_gib_month: S3_USD,
            usd_per_month: of_one.map(|bytes| trials as f64 * bytes / GIB * S3_USD),
            trials,
        })
    }

    /// Text for people.
    pub(super) fn line(&self) -> String {
        let trials = counted(self.trials, "trial");
        let usd = self.usd_per_month.map(dollars).unwrap_or_default();
        if let Some((sweep, bytes)) = &self.measured {
            let size = size(*bytes as u64);
            return format!("collected files: {size} a trial in sweep {sweep}, so {usd} a month in S3 for {trials}\n");
        }
        match self.most_checkpoint_bytes {
            Some(most) => format!(
                "collected checkpoints: the newest of each trial that succeeds. Its size is not known before a trial has run: \
                 ${S3_USD} a month in S3 for each GiB, so {usd} at most for {trials} ({} each)\n",
                size(most)
            ),
            None => format!(
                "collected checkpoints: all of each trial that succeeds. Their size is not known before a trial has run: \
                 ${S3_USD} a month in S3 for each GiB, without a limit\n"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_collected_is_in_the_quote_as_far_as_it_is_known() {
        let line = |outputs: &str, bytes: Option<f64>| {
            let text = format!("spotsweep: {{outputs: {{{outputs}}}}}\ntrials: [{{lr: 1}}, {{lr: 2}}]\n");
            let file = spotsweep_sweep_file::parse("f.yaml", "", text.as_bytes()).unwrap();
            let last = bytes.map(|bytes| LastSweep::with_bytes(SweepId::parse("k-0123456789ab").unwrap(), bytes));
            Collected::of(&file, last.as_ref()).map(|collected| collected.line())
        };
        for (outputs, bytes, expected) in [
            (
                "include: [a]",
                None,
                "$0.023 a month in S3 for each GiB, so $0.92 at most for 2 trials (20.0 GiB each)\n",
            ),
            (
                "checkpoints: newest",
                Some(GIB * 1.5),
                "1.5 GiB a trial in sweep k-0123456789ab, so $0.07 a month in S3 for 2 trials\n",
            ),
            ("checkpoints: all", None, "in S3 for each GiB, without a limit\n"),
            (
                "checkpoints: none",
                Some(GIB),
                "1.0 GiB a trial in sweep k-0123456789ab, so $0.05 a month in S3 for 2 trials\n",
            ),
        ] {
            let line = line(outputs, bytes).unwrap();
            assert!(line.ends_with(expected), "{outputs}: {line}");
        }
        assert_eq!(line("checkpoints: none", None), None);
    }
}
