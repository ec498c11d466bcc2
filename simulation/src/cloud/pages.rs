//! The trials of a large sweep, page by page.

use spotsweep_control_plane::outcome::Outcome;
use spotsweep_control_plane::sweep::pages::page_key;
use spotsweep_control_plane::trial::Trial;
use spotsweep_protocol::ids::SweepId;

use super::{Cloud, Executed};

impl Cloud {
    pub(super) async fn store_page(
        &self,
        sweep: SweepId,
        (page, has_ended): (u32, bool),
        trials: &[Trial],
    ) -> Executed {
        self.put_object(page_key(&sweep, page, has_ended), serde_json::to_vec(trials)?).await?;
        Ok(vec![Outcome::PageStored { sweep, page, has_ended }])
    }

    pub(super) async fn read_pages(&self, sweep: SweepId, pages: Vec<bool>) -> Executed {
        let mut trials: Vec<Trial> = Vec::new();
        for (page, has_ended) in (0..).zip(pages) {
            let page = self.get_object(&page_key(&sweep, page, has_ended)).await?.ok_or("NoSuchKey")?;
            trials.extend(serde_json::from_slice::<Vec<Trial>>(&page)?);
        }
        Ok(vec![Outcome::PagesRead { sweep, trials: trials.into() }])
    }
}
