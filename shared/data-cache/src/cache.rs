//! Gets data sets onto the disk, and holds them there.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spotsweep_protocol::claim::DataSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::attempt::{Attempt, Turn};
use crate::blocking::blocking;
use crate::disk::Place;
use crate::error::DataError;
use crate::fetch::fetch;
use crate::folder::{Noted, SetFolder, make_folder};
use crate::listing::Checked;
use crate::pace::Pace;
use crate::settings::Settings;
use crate::site::Site;
use crate::source::Objects;
use crate::unpack;

/// Linux's number of the present boot: <https://man7.org/linux/man-pages/man5/proc_sys_kernel.5.html>.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
/// The data sets on an instance's disk.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
    pub(crate) boot: String,
    pub(crate) pace: Pace,
}

/// How far a set is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The bytes that have arrived.
    pub bytes: u64,
    /// The bytes of all objects.
    pub of_bytes: u64,
    /// Whether another runner fetches the set, and this one waits for it.
    pub is_waiting: bool,
}

/// A complete data set. It stays on the disk at least as long as this value.
#[derive(Debug)]
pub struct Held {
    folder: Arc<SetFolder>,
    tree: PathBuf,
    was_fetched: bool,
}

impl Held {
    /// The folder with the set's files.
    pub fn path(&self) -> &Path {
        &self.tree
    }

    /// The bytes that the set takes up on the disk.
    pub fn bytes(&self) -> u64 {
        self.folder.complete().map_or(0, |complete| complete.bytes)
    }

    /// Whether this runner has fetched the set, and did not find it on the disk.
    pub fn was_fetched(&self) -> bool {
        self.was_fetched
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Without the time of the end, a set that was used for long looks unused. It is no reason to fail.
        let _ = self.folder.mark_used();
    }
}

impl Cache {
    /// Opens the cache in a folder that only root can write, and makes it if it is missing.
    ///
    /// # Errors
    /// If the folder cannot be made, or the kernel does not say which boot this is.
    pub fn open(root: &Path) -> Result<Self, DataError> {
        if let Some(parent) = root.parent() {
            fs::create_dir_all(parent).map_err(DataError::disk("make the folder of the cache of data sets"))?;
        }
        make_folder(root).map_err(DataError::disk("make the cache of data sets"))?;
        let boot = fs::read_to_string(BOOT).map_err(DataError::disk("read the number of the instance's boot"))?;
        Ok(Self { root: root.to_owned(), boot: boot.trim().to_owned(), pace: Pace::default() })
    }

    /// Returns the set as soon as it is complete. If it is not on the disk, this runner fetches it, or waits for
    /// another one that does. `on_progress` is called about once a second meanwhile. The future may be dropped at any
    /// time; the locks are given up as soon as no thread works on the set any more.
    ///
    /// # Errors
    /// If an object does not arrive as it was when the sweep was accepted, if there is no room, or if the disk fails.
    /// What was fetched until then is removed by the next runner that needs the room or the set.
    pub async fn acquire<O: Objects>(
        &self,
        set: &DataSet,
        objects: Arc<O>,
        settings: &Settings,
        mut on_progress: impl FnMut(Progress) + Send,
    ) -> Result<Held, DataError> {
        let place = Place { root: self.root.clone(), id: set.id(), boot: self.boot.clone() };
        let wanted = set.clone();
        let mut attempt = blocking(move || Attempt::new(place, &wanted)).await?;
        let (mut was_fetched, mut reported) = (false, None);
        loop {
            let turn;
            (attempt, turn) = blocking(move || attempt.advance().map(|turn| (attempt, turn))).await?;
            match turn {
                Turn::Wait(noted) => {
                    if reported.is_none_or(|at: Instant| at.elapsed() >= self.pace.report) {
                        let Noted { bytes, .. } = noted.unwrap_or_default();
                        on_progress(Progress { bytes, of_bytes: set.listing.bytes, is_waiting: true });
                        reported = Some(Instant::now());
                    }
                    sleep(self.pace.poll).await;
                }
                Turn::Listing => {
                    let file = objects.listing().await.map_err(DataError::Listing)?;
                    let wanted = set.clone();
                    attempt.know(blocking(move || Checked::new(file, &wanted, unpack::at_once())).await?);
                }
                Turn::Fetch(listing) => {
                    let how = (settings, self.pace);
                    fetch_all(&attempt, (listing, set), Arc::clone(&objects), how, &mut on_progress).await?;
                    was_fetched = true;
                }
                Turn::Use => {
                    let (folder, tree) = (Arc::clone(&attempt.folder), attempt.folder.tree());
                    return Ok(Held { folder, tree, was_fetched });
                }
            }
        }
    }
}

/// Fetches the set, and reports how far it is.
async fn fetch_all<O: Objects>(
    attempt: &Attempt,
    (listing, set): (Checked, &DataSet),
    objects: Arc<O>,
    (settings, pace): (&Settings, Pace),
    on_progress: &mut (impl FnMut(Progress) + Send),
) -> Result<(), DataError> {
    let needed = listing.needed;
    let (folder, place) = (Arc::clone(&attempt.folder), attempt.place.clone());
    let make = move || {
        Site::make(folder, place, pace, unpack::at_once()).map_err(DataError::disk("make the data set's folder"))
    };
    let site = Arc::new(blocking(make).await?);
    let fetching = async {
        fetch(Arc::clone(&site), listing, objects, *settings).await?;
        let (site, objects) = (Arc::clone(&site), set.listing.objects);
        blocking(move || site.conclude(objects).map_err(DataError::disk("write the data set to the disk"))).await
    };
    let of_bytes = set.listing.bytes;
    tokio::select! {
        done = fetching => done?,
        failed = watch(&site, (of_bytes, needed), on_progress) => return Err(failed),
    }
    on_progress(Progress { bytes: of_bytes, of_bytes, is_waiting: false });
    Ok(())
}

/// Reports progress until nothing arrives any more.
async fn watch(
    site: &Arc<Site>,
    (of_bytes, needed): (u64, u64),
    on_progress: &mut (impl FnMut(Progress) + Send),
) -> DataError {
    let mut ticks = interval(site.pace.report);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut seen, mut since) = (None, Instant::now());
    loop {
        ticks.tick().await;
        let signs = site.meter.signs();
        if signs.is_none() || signs != seen {
            (seen, since) = (signs, Instant::now());
        } else if since.elapsed() >= site.pace.standstill {
            return DataError::Standstill { seconds: site.pace.standstill.as_secs() };
        }
        let bytes = site.meter.arrived();
        on_progress(Progress { bytes, of_bytes, is_waiting: false });
        let (site, to_come) = (Arc::clone(site), needed.saturating_sub(bytes));
        let noting = blocking(move || {
            let noted = site.folder().note(Noted { bytes, of_bytes, to_come });
            noted.map_err(DataError::disk("note the progress of the data set"))
        });
        if let Err(failed) = noting.await {
            return failed;
        }
    }
}
