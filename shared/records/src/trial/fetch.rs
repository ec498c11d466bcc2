//! How far a trial's attempts have fetched their data sets.

use spotsweep_protocol::claim::Fetch;

use super::{Attempt, Standing, Trial};

impl Attempt {
    /// Whether the attempt was interrupted before its data sets were there.
    pub(super) fn was_interrupted_while_fetching(&self) -> bool {
        self.was_interrupted() && self.fetch.is_some_and(|fetch| fetch.is_under_way())
    }
}

impl Trial {
    /// Returns how far the running attempt has fetched its data sets; `None` if it does not fetch.
    pub fn fetching(&self) -> Option<Fetch> {
        let (_, newest) = self.attempts.last_key_value()?;
        newest.fetch.filter(|fetch| fetch.is_under_way() && self.standing() == Standing::Running)
    }

    pub(super) fn fetch_note(&self) -> Option<String> {
        Some(format!("fetches its data: {}", self.fetching()?))
    }
}

/// Returns how far all trials have fetched that do so now, and how many they are.
pub fn fetching<'a>(trials: impl IntoIterator<Item = &'a Trial>) -> Option<(u32, Fetch)> {
    let under_way = trials.into_iter().filter_map(Trial::fetching);
    let sum = under_way.fold((0, Fetch::default()), |(count, sum), next| (count + 1, sum.and(next)));
    Some(sum).filter(|(count, _)| *count > 0)
}
