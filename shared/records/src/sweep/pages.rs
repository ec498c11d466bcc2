//! The pages of a large sweep's trials. One invocation of `sweep-settled` reads one page of records and stores it in
//! S3, because reading all records takes longer than an invocation may. The last invocation reads the stored pages. A
//! sweep of a single page is not stored: its results are made in the same invocation.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{Plan, Sweep};
use spotsweep_protocol::ids::SweepId;

/// Number of trials in a page. Their records take about half of the read units that a partition has per second.
pub const PAGE_TRIALS: u32 = 1_000;

/// Which pages of a sweep are stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pages {
    /// The page that is read next, or the number of pages once all are stored.
    pub next: u32,
    /// Pages whose trials have all ended for good. They are not read from the table again.
    pub ended: BTreeSet<u32>,
}

impl Pages {
    /// Notes that a page is stored and whether all of its trials have ended, and goes to the next one.
    fn store(&mut self, page: u32, has_ended: bool, of: u32) {
        if has_ended {
            self.ended.insert(page);
        }
        self.go_on(page + 1, of);
    }

    /// Sets the next page to the first one from `page` on that has not ended.
    fn go_on(&mut self, page: u32, of: u32) {
        self.next = (page..of).find(|page| !self.ended.contains(page)).unwrap_or(of);
    }
}

impl Plan {
    /// Returns the number of pages.
    pub fn pages(&self) -> u32 {
        self.trials.div_ceil(self.page_trials.max(1))
    }

    /// Returns the indexes of a page's trials.
    pub fn page(&self, page: u32) -> Range<u32> {
        let first = page.saturating_mul(self.page_trials).min(self.trials);
        first..first.saturating_add(self.page_trials).min(self.trials)
    }
}

impl Sweep {
    /// Whether an event is about the page that is read next. An event without a page always is.
    pub fn is_next(&self, page: Option<u32>) -> bool {
        page.is_none_or(|page| page == self.pages.next)
    }

    /// Returns the indexes of the trials that are needed for an event about that page. There are none if all pages are
    /// stored, or if the event has come before.
    pub fn page(&self, page: Option<u32>) -> Range<u32> {
        let plan = self.plan.as_ref().filter(|_| self.is_next(page));
        plan.map_or(0..0, |plan| plan.page(self.pages.next))
    }

    /// Starts another pass at the first page that has not ended.
    pub fn begin_pages(&mut self) {
        let of = self.plan.as_ref().map_or(0, Plan::pages);
        self.pages.go_on(0, of);
    }

    /// Notes that a page is stored.
    pub fn store_page(&mut self, page: u32, has_ended: bool) {
        let of = self.plan.as_ref().map_or(0, Plan::pages);
        self.pages.store(page, has_ended, of);
    }
}

/// Returns the key of a page. Trials that may still change are stored under another key, so that a late invocation
/// cannot replace the final page.
pub fn page_key(sweep: &SweepId, page: u32, has_ended: bool) -> String {
    let end = if has_ended { "json" } else { "running.json" };
    format!("{}pages/{page:04}.{end}", sweep.results_prefix())
}

pub(super) fn page_trials() -> u32 {
    PAGE_TRIALS
}

pub(super) fn is_usual(page_trials: &u32) -> bool {
    *page_trials == PAGE_TRIALS
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::Map;
    use spotsweep_protocol::ids::JobId;
    use spotsweep_protocol::metric::{Metric, Source};
    use spotsweep_search::suggest::Basis;

    use super::*;
    use crate::trial::{Suggested, Trial};

    #[test]
    fn pages_that_have_ended_are_passed_over() {
        let mut pages = Pages::default();
        let mut read = Vec::new();
        for _pass in 0..2 {
            pages.go_on(0, 4);
            while pages.next < 4 {
                read.push(pages.next);
                pages.store(pages.next, pages.next % 2 == 1, 4);
            }
        }
        assert_eq!(read, [0, 1, 2, 3, 0, 2]);
    }

    /// A diverged trial has figures for which JSON has no number.
    #[test]
    fn a_trial_that_has_diverged_comes_back_from_its_page() {
        let mut trial = Trial::new(SweepId::derive("b", "k", "v"), 3, JobId::from("j:3".to_owned()));
        trial.metrics.insert("loss".to_owned(), Metric::of(f64::NAN, None, Source::Stated));
        let basis = Basis::Model { mean: f64::INFINITY, deviation: f64::NAN };
        trial.suggested = Some(Suggested::new(&Map::new(), Some(basis)));
        let page = serde_json::to_vec(&[&trial]).unwrap();
        let found: Vec<Trial> = serde_json::from_slice(&page).unwrap();
        assert_eq!(format!("{found:?}"), format!("{:?}", [trial]));
    }
}
