//! Shows all trials as a block of cells.

use spotsweep_records::trial::{self, Trial};

/// State of a trial. If one cell stands for several trials, it shows the last of these states among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// It has succeeded.
    Succeeded,
    /// It has not run yet.
    Waiting,
    /// It has an instance, but its container does not run yet.
    Starting,
    /// Its container runs.
    Running,
    /// It was interrupted, and waits to go on.
    Interrupted,
    /// A person has cancelled it.
    Cancelled,
    /// It was stopped early, because others are better.
    Stopped,
    /// It has failed for good.
    Failed,
}

impl Standing {
    /// All states in the order of the legend. States that need a look come first, where nothing is cut off.
    pub(crate) const ALL: [Self; 8] = [
        Self::Failed,
        Self::Stopped,
        Self::Cancelled,
        Self::Interrupted,
        Self::Running,
        Self::Starting,
        Self::Waiting,
        Self::Succeeded,
    ];

    fn of(trial: &Trial) -> Self {
        match trial.standing() {
            trial::Standing::Waiting if trial.ended > 0 => Self::Interrupted,
            trial::Standing::Waiting => Self::Waiting,
            trial::Standing::Starting => Self::Starting,
            trial::Standing::Running => Self::Running,
            trial::Standing::Succeeded => Self::Succeeded,
            trial::Standing::Failed => Self::Failed,
            trial::Standing::Cancelled => Self::Cancelled,
            trial::Standing::Stopped => Self::Stopped,
        }
    }

    /// A symbol that distinguishes it without colours.
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Waiting => "·",
            Self::Starting => "○",
            Self::Running => "●",
            Self::Interrupted => "↻",
            Self::Succeeded => "■",
            Self::Failed => "✗",
            Self::Cancelled => "–",
            Self::Stopped => "◧",
        }
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Succeeded => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Stopped => "stopped",
        }
    }
}

/// Each trial's state, by index. A trial without a record has had no event yet, so it waits.
pub(super) fn standings(total: u32, trials: &[Trial]) -> Vec<Standing> {
    let mut all = vec![Standing::Waiting; total as usize];
    for trial in trials {
        if let Some(standing) = all.get_mut(trial.index as usize) {
            *standing = Standing::of(trial);
        }
    }
    all
}

/// The trials as at most so many cells, and how many trials one cell stands for.
pub(super) fn cells(standings: &[Standing], most: usize) -> (Vec<Standing>, usize) {
    let each = standings.len().div_ceil(most.max(1)).max(1);
    (standings.chunks(each).filter_map(|some| some.iter().max().copied()).collect(), each)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::samples::trial;
    use spotsweep_records::trial::JobStatus;

    #[test]
    fn a_cell_shows_what_needs_a_look() {
        let mut again = trial(2, JobStatus::Runnable);
        again.ended = 1;
        let trials = [trial(0, JobStatus::Succeeded), again, trial(3, JobStatus::Running), trial(9, JobStatus::Failed)];
        let standings = standings(5, &trials);
        use Standing::{Interrupted, Running, Succeeded, Waiting};
        assert_eq!(standings, [Succeeded, Waiting, Interrupted, Running, Waiting]);
        assert_eq!(cells(&standings, 5), (standings.clone(), 1));
        assert_eq!(cells(&standings, 4), (vec![Waiting, Interrupted, Waiting], 2));
        assert_eq!(cells(&standings, 0), (vec![Interrupted], 5));
        assert_eq!(cells(&[], 5), (vec![], 1));
        let many = vec![Succeeded; 10_000];
        let (shown, each) = cells(&many, 480);
        assert_eq!((shown.len(), each), (477, 21), "21 * 477 = 10 017");
    }
}
