//! Decides when the training is interrupted, and how.

use std::fmt;

/// The first seconds after the start of the command, in which it imports, compiles and loads data.
const FIRST_SECONDS: f64 = 1.5;
/// After so many seconds without a checkpoint, the training is interrupted anyway.
const PATIENCE: f64 = 30.0;
/// After so many checkpoints of an attempt, any moment is used: the right one is shorter than the time between two
/// looks.
const MANY: usize = 20;

/// The moment in the training at which an interruption happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    FirstSeconds,
    BetweenSaves,
    WhileSaving,
    InEvaluation,
    BeforeSave,
}

impl fmt::Display for Moment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::FirstSeconds => "in the first seconds",
            Self::BetweenSaves => "between two checkpoints",
            Self::WhileSaving => "while it saves",
            Self::InEvaluation => "in evaluation",
            Self::BeforeSave => "shortly before a checkpoint",
        })
    }
}

/// One interruption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interruption {
    pub(super) moment: Moment,
    /// Whether EC2 gives its notice of two minutes. Without one, the instance ends at once.
    pub(super) with_notice: bool,
}

const fn interruption(moment: Moment, with_notice: bool) -> Interruption {
    Interruption { moment, with_notice }
}

/// All interruptions. The third one follows as soon as the training is back after the second. The last one happens
/// shortly before a checkpoint, if the output of the training does not show when it evaluates.
pub(super) const INTERRUPTIONS: [Interruption; 5] = [
    interruption(Moment::FirstSeconds, true),
    interruption(Moment::BetweenSaves, true),
    interruption(Moment::FirstSeconds, false),
    interruption(Moment::WhileSaving, false),
    interruption(Moment::InEvaluation, false),
];

/// What was seen of the running attempt. Times are in seconds since the trial began.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Seen {
    pub(super) now: f64,
    /// When its command was started.
    pub(super) started: Option<f64>,
    /// When its checkpoints were complete.
    pub(super) saves: Vec<f64>,
    /// Whether a checkpoint is being written.
    pub(super) is_saving: bool,
    /// Whether it evaluates, by its last line.
    pub(super) is_evaluating: bool,
    /// Whether its output ever showed that it evaluates.
    pub(super) shows_evaluation: bool,
    /// Seconds between two checkpoints, if known.
    pub(super) interval: Option<f64>,
}

impl Seen {
    /// When the newest checkpoint was complete, or else when the training was started.
    fn since(&self) -> Option<f64> {
        self.started.map(|started| self.saves.last().copied().unwrap_or(started))
    }

    /// After so many more seconds, the training is interrupted in any case.
    fn patience(&self) -> f64 {
        PATIENCE.max(self.interval.unwrap_or(0.0) * 2.0)
    }
}

impl Interruption {
    /// What the training has to do before it is interrupted, and for how many more seconds at most that is waited for.
    pub(super) fn waits_for(self, seen: &Seen) -> (&'static str, f64) {
        let Some(since) = seen.since() else { return ("the training to start", f64::INFINITY) };
        let what = match self.moment {
            Moment::FirstSeconds => "its first seconds",
            Moment::WhileSaving => "the moment in which it saves",
            Moment::BetweenSaves | Moment::BeforeSave if seen.saves.is_empty() => "a checkpoint",
            Moment::BetweenSaves => "the middle between two checkpoints",
            Moment::InEvaluation if seen.shows_evaluation => "an evaluation",
            Moment::InEvaluation if seen.saves.is_empty() => "an evaluation or a checkpoint",
            Moment::InEvaluation | Moment::BeforeSave => "the time shortly before a checkpoint",
        };
        (what, since + seen.patience() - seen.now)
    }

    /// The interruption with its present moment, if its time has come.
    pub(super) fn due(self, seen: &Seen) -> Option<Self> {
        let (started, since) = (seen.started?, seen.since()?);
        let passed = |share: f64| seen.interval.is_some_and(|interval| seen.now - since >= interval * share);
        let is_overdue = seen.now - since >= seen.patience();
        let has_begun = seen.now - started >= FIRST_SECONDS;
        let has_saved = !seen.saves.is_empty();
        let is_frequent = seen.saves.len() >= MANY;
        let is_due = match self.moment {
            Moment::FirstSeconds => has_begun,
            Moment::BetweenSaves => (has_saved && passed(0.5)) || is_frequent || is_overdue,
            // Before that, the volume's files appear.
            Moment::WhileSaving => (seen.is_saving && has_begun) || is_overdue,
            Moment::InEvaluation if seen.is_evaluating => true,
            Moment::InEvaluation | Moment::BeforeSave => {
                // An evaluation may be too short to be seen.
                let waits = seen.shows_evaluation && seen.now - started < PATIENCE;
                (!waits && ((has_saved && passed(0.9)) || is_frequent)) || is_overdue
            }
        };
        let moment = match self.moment {
            Moment::InEvaluation if !seen.is_evaluating => Moment::BeforeSave,
            moment => moment,
        };
        is_due.then_some(Self { moment, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for_is_known() {
        let seen = Seen { now: 15.0, started: Some(10.0), ..Seen::default() };
        let waits = |moment, seen: &Seen| interruption(moment, true).waits_for(seen);
        assert_eq!(waits(Moment::BetweenSaves, &Seen::default()).0, "the training to start");
        assert_eq!(waits(Moment::BetweenSaves, &seen), ("a checkpoint", 25.0));
        let saved = Seen { saves: vec![14.0], interval: Some(20.0), ..seen };
        assert_eq!(waits(Moment::BetweenSaves, &saved), ("the middle between two checkpoints", 39.0));
        assert_eq!(waits(Moment::InEvaluation, &saved).0, "the time shortly before a checkpoint");
        assert_eq!(waits(Moment::InEvaluation, &Seen { shows_evaluation: true, ..saved }).0, "an evaluation");
    }

    #[test]
    fn each_moment_has_its_time() {
        let seen = |now, saves: &[f64], is_saving, interval| Seen {
            now,
            started: Some(10.0),
            saves: saves.to_vec(),
            is_saving,
            interval,
            ..Seen::default()
        };
        let due = |moment, seen: &Seen| interruption(moment, true).due(seen).is_some();
        assert!(!due(Moment::FirstSeconds, &seen(11.0, &[], false, None)));
        assert!(due(Moment::FirstSeconds, &seen(11.6, &[], false, None)));
        assert!(!due(Moment::FirstSeconds, &Seen { now: 100.0, ..Seen::default() }), "not started");

        assert!(!due(Moment::BetweenSaves, &seen(16.0, &[], false, Some(4.0))), "nothing is saved yet");
        assert!(!due(Moment::BetweenSaves, &seen(17.0, &[16.0], false, Some(4.0))));
        assert!(due(Moment::BetweenSaves, &seen(18.1, &[16.0], false, Some(4.0))));
        assert!(due(Moment::WhileSaving, &seen(12.0, &[], true, None)));
        assert!(!due(Moment::WhileSaving, &seen(10.5, &[], true, None)), "the volume's own files appear");
        assert!(!due(Moment::InEvaluation, &seen(13.7, &[], false, Some(4.0))), "it has not come as far");
        assert!(!due(Moment::InEvaluation, &seen(15.0, &[12.0], false, Some(4.0))));
        let many = [12.0; 20];
        for moment in [Moment::BetweenSaves, Moment::InEvaluation] {
            assert!(due(moment, &seen(12.1, &many, false, Some(4.0))), "{moment}: no look meets it");
        }
        let evaluates = Seen { is_evaluating: true, shows_evaluation: true, ..seen(12.0, &[], false, Some(4.0)) };
        assert_eq!(
            interruption(Moment::InEvaluation, true).due(&evaluates),
            Some(interruption(Moment::InEvaluation, true))
        );
        let trains = Seen { is_evaluating: false, ..evaluates };
        let trains = Seen { saves: vec![12.0], ..trains };
        assert!(!due(Moment::InEvaluation, &Seen { now: 15.9, ..trains.clone() }), "it evaluates soon");
        assert!(due(Moment::InEvaluation, &Seen { now: 42.0, saves: vec![38.0], ..trains }), "it was not seen");
        let silent = interruption(Moment::InEvaluation, true).due(&seen(15.7, &[12.0], false, Some(4.0)));
        assert_eq!(silent, Some(interruption(Moment::BeforeSave, true)), "its output does not show when");
        for moment in [Moment::BetweenSaves, Moment::WhileSaving, Moment::InEvaluation] {
            assert!(due(moment, &seen(40.1, &[], false, None)), "{moment}: it saves nothing");
        }
    }
}
