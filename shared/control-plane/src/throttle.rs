//! What follows a throttled call that the SDK must not repeat by itself, because it has no client token (facts 1, 6).

use std::time::Duration;

/// Pauses between tries of a throttled CreateSnapshot, as long as a function may live. A whole zone's reclaim asks for
/// hundreds at once and the bucket refills with 5 a second (fact 23); of one volume EBS takes one in 15 s, and an
/// interruption's early snapshot is often followed by the final one within that.
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

/// The one pause where the account is throttled and an early snapshot holds most already: workspaces of which nothing
/// is saved, and whose instances go within two minutes, come first.
const SAVED_EARLY_PAUSE: [Duration; 1] = [Duration::from_secs(45)];

/// Tries of SubmitJob, whose bucket refills with 50 a second (fact 18).
const SUBMIT_TRIES: u32 = 5;

/// The code of one volume's limit: "Wait at least 15 seconds between concurrent volume snapshots"
/// (<https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html>).
const OF_VOLUME: &str = "SnapshotCreationPerVolumeRateExceeded";

/// The codes of the account's limits.
const OF_ACCOUNT: [&str; 6] = [
    "RequestLimitExceeded",
    "Throttling",
    "ThrottlingException",
    "RequestThrottled",
    "RequestThrottledException",
    "TooManyRequestsException",
];

/// The limit that a throttled call has met. The call has had no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Calls of the account.
    Account,
    /// Snapshots of one volume.
    Volume,
}

impl Limit {
    /// By an error's code; none where the error is not about a limit of calls.
    pub fn of(code: &str) -> Option<Self> {
        if code == OF_VOLUME { Some(Self::Volume) } else { OF_ACCOUNT.contains(&code).then_some(Self::Account) }
    }
}

/// The pauses before the next tries of one throttled CreateSnapshot.
#[derive(Debug, Clone)]
pub struct SnapshotRetries {
    saved_early: bool,
    pauses: Option<&'static [Duration]>,
}

impl SnapshotRetries {
    /// Before the first try. `saved_early`: whether an early snapshot holds most already.
    pub fn new(saved_early: bool) -> Self {
        Self { saved_early, pauses: None }
    }

    /// The pause after a try that was throttled; none where it was the last. The first throttle decides which pauses
    /// there are.
    pub fn pause(&mut self, limit: Limit) -> Option<Duration> {
        let may_wait = self.saved_early && limit == Limit::Account;
        let pauses = self.pauses.unwrap_or(if may_wait { &SAVED_EARLY_PAUSE } else { &SNAPSHOT_PAUSES });
        let (pause, later) = pauses.split_first()?;
        self.pauses = Some(later);
        Some(*pause)
    }
}

/// The pauses between tries of one throttled SubmitJob, 6 s in all.
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
