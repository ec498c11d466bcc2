//! What a runner does and has until it can use its data sets.

use std::time::Duration;

use jiff::Timestamp;
use spotsweep_data_cache::next::{Content, Hold, ROOM_PATIENCE};
use spotsweep_protocol::claim::{DataObject, DataSet, Fetch};

/// How often a runner reports how far it is.
pub(super) const FETCH_EVERY: Duration = Duration::from_secs(15);

/// What a runner does and has until it can use all its data sets.
#[derive(Debug, Clone)]
pub(in crate::run::agent) struct Acquiring {
    pub(super) began: Timestamp,
    /// The place of the set among those of its grant.
    pub(super) set: usize,
    pub(super) work: Work,
    pub(super) hold: Hold,
    pub(super) is_refused: bool,
    pub(super) needed: Option<u64>,
    pub(super) has_room: bool,
    /// Since when it has waited for room that other attempts' sets take up.
    pub(super) waits_since: Option<Timestamp>,
    /// What it has last seen in the set's folder.
    pub(super) seen: Content,
    /// With a bug injected: what it takes for the content of the set's folder.
    pub(super) mistaken: Option<Content>,
    /// The sets that it has fetched or waited for.
    pub(super) before: Fetch,
    /// How far the set is for which it fetches or waits.
    pub(super) now: Option<Fetch>,
    pub(super) is_news: bool,
    pub(super) reports_at: Timestamp,
}

#[derive(Debug, Clone)]
pub(super) enum Work {
    Deciding,
    Taking(Hold),
    Listing,
    /// A set is removed, perhaps another one.
    Removing(String),
    /// The objects that have not arrived; the next one first.
    Fetching(Vec<DataObject>),
}

impl Acquiring {
    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            began: now,
            set: 0,
            work: Work::Deciding,
            hold: Hold::Nothing,
            is_refused: false,
            needed: None,
            has_room: false,
            waits_since: None,
            seen: Content::Nothing,
            mistaken: None,
            before: Fetch::default(),
            now: None,
            is_news: false,
            reports_at: now + FETCH_EVERY,
        }
    }

    /// Whether it has waited long enough for room. The first call begins to count.
    pub(super) fn has_waited(&mut self, now: Timestamp) -> bool {
        now.duration_since(*self.waits_since.get_or_insert(now)).unsigned_abs() >= ROOM_PATIENCE
    }

    /// Notes how far the set is. As long as it cannot be used, something is missing.
    pub(super) fn note(&mut self, bytes: u64, of: &DataSet, now: Timestamp) {
        let of_bytes = self.before.of_bytes + of.listing.bytes;
        let bytes = (self.before.bytes + bytes).min(of_bytes.saturating_sub(1));
        (self.now, self.is_news) = (Some(Fetch { bytes, of_bytes, seconds: self.seconds(now) }), true);
    }

    pub(super) fn seconds(&self, now: Timestamp) -> u64 {
        u64::try_from(now.duration_since(self.began).as_secs()).unwrap_or(0)
    }

    /// Turns to the next set.
    pub(super) fn go_on(&mut self, done: &DataSet, now: Timestamp) {
        if self.now.is_some() {
            self.before.bytes += done.listing.bytes;
            self.before.of_bytes += done.listing.bytes;
            self.before.seconds = self.seconds(now);
        }
        let Self { began, set, before, reports_at, .. } = *self;
        *self = Self { began, set: set + 1, before, reports_at, ..Self::new(now) };
    }
}
