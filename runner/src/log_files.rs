//! The files in which the training's libraries log metrics: TensorBoard's, W&B's, Lightning's, Hugging Face's.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use spotsweep_beneath::{Folder, Kind, Status};
use spotsweep_training_metrics::{LogFile, Logged, Read, Shared};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::sleep;

use crate::exit::Failure;
use crate::progress::last_time;
use crate::user::User;
use crate::workplace::Workplace;

/// How often they are looked for.
const EVERY: Duration = Duration::from_secs(5);
/// More files than that are not of one training.
const MOST_FILES: usize = 1000;

/// A file, as it was when it was read last.
#[derive(Debug)]
struct Followed {
    log: LogFile,
    /// Inode, bytes, and nanoseconds since 1970 of the last change.
    stamp: (u64, u64, i64),
}

/// All such files of a trial, in the folders that the training writes to.
#[derive(Debug)]
pub(crate) struct LogFiles {
    /// Folders whose paths only the runner can change, and paths below them.
    roots: Vec<(PathBuf, PathBuf)>,
    /// Who the training runs as; `None` for the runner's own user.
    user: Option<User>,
    files: BTreeMap<PathBuf, Followed>,
    shared: Shared,
}

impl LogFiles {
    /// Those that lie there before the training starts at `started`: what they have is not this attempt's. But what an
    /// attempt before has logged after the last line of its record was not recorded.
    pub(crate) async fn at_start(place: &Workplace, started: SystemTime) -> Result<Self, Failure> {
        let ((roots, user), own) = (place.log_folders(), place.own.clone());
        let look = move || {
            let recorded = own.metrics()?.map(last_time).transpose()?.flatten();
            let started = started.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
            let shared = Shared::new(recorded.unwrap_or(started));
            let mut files = Self { roots, user, files: BTreeMap::new(), shared };
            files.look(Read::Before);
            Ok(files)
        };
        let failed = |source| Failure::System("look for files of metrics", source);
        spawn_blocking(look).await.map_err(|broken| failed(broken.into()))?.map_err(failed)
    }

    /// Hands over what is logged, until `stop`.
    pub(crate) async fn follow(mut self, found: mpsc::Sender<Logged>, mut stop: oneshot::Receiver<()>) {
        let mut when = Read::During;
        loop {
            let logged;
            // Fails only at the runner's own end.
            let Ok(next) = looked(self, when).await else { return };
            (self, logged) = next;
            for logged in logged {
                let _ = found.send(logged).await;
            }
            if when == Read::Last {
                return;
            }
            tokio::select! {
                _ = &mut stop => when = Read::Last,
                () = sleep(EVERY) => {}
            }
        }
    }

    /// What is new. A folder or file that cannot be read now may be at the next look.
    fn look(&mut self, when: Read) -> Vec<Logged> {
        let mut logged = Vec::new();
        for (base, name) in self.roots.clone() {
            let Ok(folder) = Folder::trusted(&base).and_then(|base| base.folder(&name)) else { continue };
            let mut found = Vec::new();
            // Fails where a folder is removed meanwhile.
            let _ = folder.walk(|below, entries| {
                let files = entries.iter().filter(|entry| entry.status.kind == Kind::File);
                let paths = files.map(|entry| below.join(&entry.name));
                found.extend(paths.filter_map(|path| Some((LogFile::named(&path)?, path))));
            });
            found.sort_by(|(_, one), (_, other)| one.cmp(other));
            for (log, path) in found.into_iter().take(MOST_FILES) {
                logged.extend(self.read((log, &path), &folder, &base.join(&name), when).unwrap_or_default());
            }
        }
        // The newest value of a metric is the last: two attempts may have written to files of their own.
        logged.sort_by(|one, other| one.time.unwrap_or(f64::MAX).total_cmp(&other.time.unwrap_or(f64::MAX)));
        logged
    }

    /// `place` is where the folder is. `log` is new; a file that is followed already goes on with its own.
    fn read(
        &mut self,
        (log, path): (LogFile, &Path),
        folder: &Folder,
        place: &Path,
        when: Read,
    ) -> io::Result<Vec<Logged>> {
        let file = folder.open(path)?;
        let status = Status::of(&file)?;
        if self.user.as_ref().is_some_and(|user| !user.can_read(&status)) {
            return Ok(Vec::new());
        }
        let stamp = (status.inode, status.bytes, status.modified_ns);
        let followed = self.files.entry(place.join(path)).or_insert(Followed { log, stamp: (0, 0, 0) });
        if when == Read::During && followed.stamp == stamp {
            return Ok(Vec::new());
        }
        // What an attempt before has logged and not recorded comes first: later it would be newer than this attempt's.
        followed.stamp = if when == Read::Before { (0, 0, 0) } else { stamp };
        followed.log.read(file, when, &mut self.shared)
    }
}

async fn looked(mut files: LogFiles, when: Read) -> Result<(LogFiles, Vec<Logged>), JoinError> {
    let look = move || {
        let logged = files.look(when);
        (files, logged)
    };
    spawn_blocking(look).await
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "works in a temporary folder")]
    use super::*;

    #[test]
    fn values_of_an_attempt_before_come_before_all_others() {
        let folder = tempfile::tempdir().unwrap();
        let recorded = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../shared/training-metrics/tests/recorded/tensorboard_writer/runs");
        std::fs::create_dir(folder.path().join("runs")).unwrap();
        std::fs::copy(
            recorded.join("events.out.tfevents.1795668261.vm.2799.0"),
            folder.path().join("runs/events.out.tfevents.1.host.1.0"),
        )
        .unwrap();
        let roots = vec![(folder.path().to_owned(), PathBuf::from("runs"))];
        let mut files = LogFiles { roots, user: None, files: BTreeMap::new(), shared: Shared::new(0.0) };
        assert_eq!(files.look(Read::Before), []);
        assert_ne!(files.look(Read::During), [], "at its end only, they would be newer than this attempt's");
        assert_eq!(files.look(Read::Last), []);
    }
}
