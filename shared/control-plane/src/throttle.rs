//! How throttled calls are repeated.
//!
//! CreateSnapshot and SubmitJob have no client token, so the SDK must not repeat them itself (facts 1, 6).

use std::time::Duration;

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

/// The only pause when the account is throttled and an early snapshot holds most of the data already. Workspaces without
/// a snapshot, whose instances are gone within two minutes, then come first.
const SAVED_PAUSE: [Duration; 1] = [Duration::from_secs(45)];

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

/// The pauses before the next tries of one throttled CreateSnapshot.
#[derive(Debug, Clone)]
pub struct SnapshotRetries {
    saved_early: bool,
    pauses: Option<std::slice::Iter<'static, Duration>>,
}

impl SnapshotRetries {
    /// Makes the pauses of a new call. `saved_early` is whether an early snapshot holds most of the data already.
    pub fn new(saved_early: bool) -> Self {
        Self { saved_early, pauses: None }
    }

    /// Returns the pause after a throttled try; `None` if that was the last try. The first throttled try decides which
    /// pauses there are.
    pub fn pause(&mut self, limit: Limit) -> Option<Duration> {
        let waits_for_others = self.saved_early && limit == Limit::Account;
        let pauses: &[Duration] = if waits_for_others { &SAVED_PAUSE } else { &SNAPSHOT_PAUSES };
        self.pauses.get_or_insert_with(|| pauses.iter()).next().copied()
    }
}

/// Returns the pauses between tries of one throttled SubmitJob, 6 s in all.
pub fn submit_pauses() -> impl Iterator<Item = Duration> {
    (1..SUBMIT_TRIES).map(|tried| Duration::from_millis(200 << tried))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(saved_early: bool, limits: &[Limit]) -> Vec<Option<u64>> {
        let mut retries = SnapshotRetries::new(saved_early);
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
    fn a_submission_waits_six_seconds_at_most() {
        assert_eq!(submit_pauses().sum::<Duration>(), Duration::from_secs(6));
        assert_eq!(submit_pauses().count(), 4);
    }
}
