//! The data sets of an attempt: on the instance's disk once for all its trials, and below `/data` of this container.
//!
//! All jobs of an instance mount the cache's folder. Each container sees only the sets of its own plan: the runner mounts
//! these read-only, and then an empty folder over the cache.

mod mount;
mod objects;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use spotsweep_data_cache::next::{ROOM_PATIENCE, Shortage};
use spotsweep_data_cache::{Cache, DataError, Held, Progress, Settings};
use spotsweep_protocol::cause::chain;
use spotsweep_protocol::claim::{DATA_FOLDER, DataSet, Fetch};
use spotsweep_protocol::words::size;
use tokio::time::{Instant, sleep};

use self::objects::S3Objects;
use crate::claim::Claims;
use crate::config::Config;
use crate::exit::Failure;
use crate::log::say;

/// How often a runner looks whether other trials' sets have made room.
const ROOM_POLL: Duration = Duration::from_secs(10);

/// Why an attempt has no data.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DataSetError {
    #[error(
        "the job definition mounts no folder for data sets: mount a folder of the instance, and name it in \
         SPOTSWEEP_DATA (docs/data.md)"
    )]
    NoFolder,
    #[error("the data set `{name}`")]
    Set { name: String, source: DataError },
}

/// The data sets that the training reads, in use until this is dropped.
#[derive(Default)]
pub(crate) struct Data {
    /// Each keeps a set on the disk.
    _held: Vec<Held>,
    /// The variables with the sets' folders.
    pub(crate) variables: Vec<(String, String)>,
}

/// Fetches what the instance does not have, and mounts the sets. Call it before any program runs that the training's
/// user starts.
pub(crate) async fn prepare(
    config: &Config,
    sets: &[DataSet],
    from: (&aws_sdk_s3::Client, &str),
    claims: &Claims,
) -> Result<Data, Failure> {
    let Some(cache) = &config.data else {
        return if sets.is_empty() { Ok(Data::default()) } else { Err(DataSetError::NoFolder.into()) };
    };
    let mut data = Data::default();
    let mut fetched = Fetched { claims, began: Instant::now(), before: Fetch::default(), is_noted: false };
    for set in sets {
        let own: u64 = data._held.iter().map(Held::bytes).sum();
        let failed = |source| failure((&set.name, own), source);
        let cached = Cache::open(cache).map_err(failed)?;
        let objects = Arc::new(S3Objects::new(from, &config.sweep, set));
        let held = acquire(&cached, (set, own), &objects, &mut fetched).await.map_err(failed)?;
        fetched.note_end(set, &held);
        let folder = folder(&config.root, &set.name);
        mount::show(held.path(), &config.root, &folder)
            .map_err(|source| Failure::System("mount a data set", source))?;
        data.variables.push((set.variable(), folder.to_string_lossy().into_owned()));
        data._held.push(held);
    }
    fetched.report_end().await;
    mount::hide(cache).map_err(|source| Failure::System("hide the cache of data sets", source))?;
    Ok(data)
}

/// Gets a set, and waits for a limited time for room that other trials' sets take up. `own` is what the attempt's earlier
/// sets take up.
async fn acquire(
    cache: &Cache,
    (set, own): (&DataSet, u64),
    objects: &Arc<S3Objects>,
    fetched: &mut Fetched<'_>,
) -> Result<Held, DataError> {
    let (began, mut is_said) = (Instant::now(), false);
    loop {
        let on_progress = |progress| fetched.note(progress);
        let held = cache.acquire(set, Arc::clone(objects), &Settings::default(), on_progress).await;
        let is_full = |shortage: &Shortage| shortage.is_caused_by_others(own) && began.elapsed() < ROOM_PATIENCE;
        let Some(full) = held.as_ref().err().filter(|error| matches!(error, DataError::DoesNotFit(of) if is_full(of)))
        else {
            return held;
        };
        if !std::mem::replace(&mut is_said, true) {
            say(&format!("data set {}: waits for room: {full}", set.name));
        }
        fetched.note(Progress { bytes: 0, of_bytes: set.listing.bytes, is_waiting: true });
        sleep(ROOM_POLL).await;
    }
}

fn folder(root: &Path, name: &str) -> PathBuf {
    root.join(DATA_FOLDER.trim_start_matches('/')).join(name)
}

/// A service that does not answer interrupts the attempt. So does the disk of one instance, and room on it that other
/// trials use. All else ends the trial. `own` is what the attempt's earlier sets take up.
fn failure((name, own): (&str, u64), source: DataError) -> Failure {
    let waits = matches!(&source, DataError::DoesNotFit(shortage) if shortage.is_caused_by_others(own));
    let goes_on = source.is_transient() || waits;
    let error = DataSetError::Set { name: name.to_owned(), source };
    if goes_on { Failure::Interrupted(chain(&error)) } else { Failure::Data(Box::new(error)) }
}

impl From<DataSetError> for Failure {
    fn from(error: DataSetError) -> Self {
        Self::Data(Box::new(error))
    }
}

/// How far the attempt has fetched all its sets.
struct Fetched<'a> {
    claims: &'a Claims,
    began: Instant,
    /// The sets that were fetched or waited for, and are there.
    before: Fetch,
    /// Whether the set that is under way is fetched or waited for.
    is_noted: bool,
}

impl Fetched<'_> {
    /// Adds the progress of the set that is under way. As long as it cannot be used, something is missing: its bytes may
    /// not be on the disk yet, or the attempt for which this one waits may be lost.
    fn note(&mut self, progress: Progress) {
        self.is_noted = true;
        let Fetch { bytes, of_bytes, .. } = self.before;
        let seconds = self.began.elapsed().as_secs();
        let of_bytes = of_bytes + progress.of_bytes;
        let bytes = (bytes + progress.bytes).min(of_bytes.saturating_sub(1));
        self.claims.fetches(Fetch { bytes, of_bytes, seconds });
    }

    fn note_end(&mut self, set: &DataSet, held: &Held) {
        let bytes = set.listing.bytes;
        let seconds = self.began.elapsed().as_secs_f64() - self.before.seconds as f64;
        // Without what it has waited for, the attempt would still seem to fetch while it trains.
        if std::mem::take(&mut self.is_noted) {
            self.before.bytes += bytes;
            self.before.of_bytes += bytes;
            self.before.seconds = self.began.elapsed().as_secs();
        }
        if !held.was_fetched() {
            say(&format!("data set {}: {} are on this instance", set.name, size(bytes)));
            return;
        }
        let rate = size((bytes as f64 / seconds.max(0.001)) as u64);
        say(&format!("data set {}: fetched {} in {seconds:.1} s ({rate}/s)", set.name, size(bytes)));
    }

    /// Reports that all sets are there: an interruption from now on is one of a training.
    async fn report_end(&self) {
        if self.before.of_bytes > 0 {
            self.claims.fetches(self.before);
            if let Some(Err(error)) = self.claims.report_fetch().await {
                say(&format!("not reported that the data is there: {}", chain(&error)));
            }
        }
    }
}
