//! How throttled calls are repeated, and whose calls come first.
//!
//! CreateSnapshot and SubmitJob have no client token, so the SDK must not repeat them itself (facts 1, 6).

use std::time::Duration;

use spotsweep_search::stop::Rank;

/// Pauses between tries of a throttled CreateSnapshot, which together are as long as a function may run. The reclaim of
/// a whole zone needs hundreds of calls at once, and the bucket refills with 5 a second (fact 23). EBS takes one
/// snapshot of a volume in 15 s, and the early snapshot of an interruption is often followed by the final one within
/// that time.
const SNAPSHOT_PAUSES: [Duration; 8] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(8),
    Duration::from_secs(8),
    Duration::from_secs(8),
    Duration::from_secs(8),
];

/// The longest time for all pauses together, which includes the wait for other trials.
const PATIENCE: Duration = Duration::from_secs(47);

/// The longest first pause when the account is throttled. It is the only pause if an early snapshot holds most of the
/// data already and no rank is known. Workspaces without a snapshot, whose instances are gone within two minutes, then
/// come first.
const LONGEST_WAIT: Duration = Duration::from_secs(45);

/// Tries of SubmitJob, whose bucket refills with 50 tokens a second (fact 18).
const SUBMIT_TRIES: u32 = 5;

/// The error code of one volume's limit: "Wait at least 15 seconds between concurrent volume snapshots"
/// (<https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html>).
const OF_VOLUME: &str = "SnapshotCreationPerVolumeRateExceeded";

/// The error codes of the account's limits.
const OF_ACCOUNT: [&str; 6] = [
    "RequestLimitExceeded",
    "Throttling",
    "ThrottlingException",
    "RequestThrottled",
    "RequestThrottledException",
    "TooManyRequestsException",
];

/// The limit that a throttled call has exceeded. The call had no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The limit of the account's calls.
    Account,
    /// The limit of one volume's snapshots.
    Volume,
}

impl Limit {
    /// Returns the limit of an error code; `None` if the error is not about a limit of calls.
    pub fn of(code: &str) -> Option<Self> {
        if code == OF_VOLUME { Some(Self::Volume) } else { OF_ACCOUNT.contains(&code).then_some(Self::Account) }
    }
}

/// The order of calls when the account's limits are exceeded. The call of a trial that leads does not wait for others.
/// Another trial's call waits the longer, the more of the others are better. Each wait is bounded, and the call is made
/// at its end.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Turn {
    /// The share of the other trials that are better, if it is known.
    behind: Option<f64>,
}

impl Turn {
    /// Returns the turn of a trial with this rank.
    pub fn of(rank: Option<Rank>) -> Self {
        Self { behind: rank.map(|rank| rank.behind()) }
    }

    /// Returns a wait of `least` to twice `least`.
    pub fn wait(self, least: Duration) -> Duration {
        least.mul_f64(1.0 + self.behind.unwrap_or_default())
    }
}

/// The pauses before the next tries of one throttled CreateSnapshot.
#[derive(Debug, Clone)]
pub struct SnapshotRetries {
    saved_early: bool,
    turn: Turn,
    pauses: Option<std::vec::IntoIter<Duration>>,
}

impl SnapshotRetries {
    /// Makes the pauses of a new call. `saved_early` is whether an early snapshot holds most of the data already.
    pub fn new(saved_early: bool, turn: Turn) -> Self {
        Self { saved_early, turn, pauses: None }
    }

    /// Returns the pause after a throttled try; `None` if that was the last try. The first throttled try decides which
    /// pauses there are.
    pub fn pause(&mut self, limit: Limit) -> Option<Duration> {
        let (saved_early, turn) = (self.saved_early, self.turn);
        self.pauses.get_or_insert_with(|| pauses(saved_early, turn, limit).into_iter()).next()
    }
}

fn pauses(saved_early: bool, turn: Turn, limit: Limit) -> Vec<Duration> {
    let wait = match (limit, turn.behind) {
        (Limit::Account, None) if saved_early => return vec![LONGEST_WAIT],
        (Limit::Account, Some(behind)) => LONGEST_WAIT.mul_f64(behind),
        (Limit::Account, None) | (Limit::Volume, _) => Duration::ZERO,
    };
    let mut left = PATIENCE;
    let is_in_time = |pause: &Duration| left.checked_sub(*pause).map(|after| left = after).is_some();
    Some(wait).filter(|wait| !wait.is_zero()).into_iter().chain(SNAPSHOT_PAUSES).take_while(is_in_time).collect()
}

/// Returns the pauses between tries of one throttled SubmitJob, 6 s in all.
pub fn submit_pauses() -> impl Iterator<Item = Duration> {
    (1..SUBMIT_TRIES).map(|tried| Duration::from_millis(200 << tried))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(better: usize) -> Turn {
        Turn::of(Some(Rank { rung: 1, better, of: 11 }))
    }

    fn pauses(saved_early: bool, limits: &[Limit]) -> Vec<Option<u64>> {
        pauses_of(saved_early, Turn::default(), limits)
    }

    fn pauses_of(saved_early: bool, turn: Turn, limits: &[Limit]) -> Vec<Option<u64>> {
        let mut retries = SnapshotRetries::new(saved_early, turn);
        limits.iter().map(|limit| retries.pause(*limit).map(|pause| pause.as_secs())).collect()
    }

    #[test]
    fn what_is_saved_gives_way_to_the_account_and_not_to_its_own_volume() {
        use Limit::{Account, Volume};
        assert_eq!(pauses(true, &[Account, Account]), [Some(45), None]);
        let patient = [Some(1), Some(2), Some(4), Some(8), Some(8), Some(8), Some(8), Some(8), None];
        assert_eq!(pauses(true, &[Volume; 9]), patient);
        assert_eq!(pauses(false, &[Account; 9]), patient);
        assert_eq!(pauses(true, &[Volume, Account]), [Some(1), Some(2)]);
    }

    #[test]
    fn a_trial_waits_the_longer_the_more_others_are_better() {
        use Limit::{Account, Volume};
        let patient = [Some(1), Some(2), Some(4), Some(8), Some(8), Some(8), Some(8), Some(8), None];
        for saved_early in [false, true] {
            assert_eq!(pauses_of(saved_early, turn(0), &[Account; 9]), patient, "the best one waits for none");
            assert_eq!(pauses_of(saved_early, turn(4), &[Account; 7])[..4], [Some(18), Some(1), Some(2), Some(4)]);
            assert_eq!(pauses_of(saved_early, turn(10), &[Account; 3]), [Some(45), Some(1), None]);
            assert_eq!(pauses_of(saved_early, turn(10), &[Volume; 9]), patient, "its own volume's limit is no other's");
        }
        let waits: Vec<Duration> = (0..=10).map(|better| turn(better).wait(Duration::from_secs(60))).collect();
        assert!(waits.is_sorted() && waits[0].as_secs() == 60 && waits[10].as_secs() == 120, "{waits:?}");
    }

    #[test]
    fn no_wait_outlives_its_function() {
        for better in 0..=10 {
            for (saved_early, limit) in [(false, Limit::Account), (true, Limit::Account), (true, Limit::Volume)] {
                let mut retries = SnapshotRetries::new(saved_early, turn(better));
                let all: Duration = std::iter::from_fn(|| retries.pause(limit)).sum();
                assert!(all <= PATIENCE, "{all:?}");
            }
        }
    }

    #[test]
    fn a_submission_waits_six_seconds_at_most() {
        assert_eq!(submit_pauses().sum::<Duration>(), Duration::from_secs(6));
        assert_eq!(submit_pauses().count(), 4);
    }
}
