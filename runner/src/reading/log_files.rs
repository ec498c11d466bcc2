//! The files in which the training's libraries log metrics: TensorBoard's, W&B's, Lightning's, Hugging Face's.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

use spotsweep_beneath::{Folder, Kind, Status};
use spotsweep_training_metrics::{LogFile, Logged, Read, Shared};

use super::Answer;

/// More files than that are not of one training.
const MOST_FILES: usize = 1000;
/// Values that are held to be put in the order of their times.
const MOST_HELD: usize = 50_000;

/// A file, as it was when it was read last.
#[derive(Debug)]
struct Followed {
    log: LogFile,
    /// Inode, bytes, and nanoseconds since 1970 of the last change.
    stamp: (u64, u64, i64),
}

/// All such files of a trial, in the folders that the training writes to.
#[derive(Debug)]
pub(super) struct LogFiles {
    /// Folders whose paths only the runner can change, and paths below them.
    roots: Vec<(PathBuf, PathBuf)>,
    skipped: BTreeSet<String>,
    files: BTreeMap<PathBuf, Followed>,
    shared: Shared,
}

/// Where answers go.
type Tell<'a> = dyn FnMut(Answer) -> io::Result<()> + 'a;

impl LogFiles {
    /// Those below `roots`. What was logged before `since`, in seconds since 1970, is recorded already.
    pub(super) fn new(roots: Vec<(PathBuf, PathBuf)>, since: f64, skipped: BTreeSet<String>) -> Self {
        Self { roots, skipped, files: BTreeMap::new(), shared: Shared::new(since) }
    }

    /// Tells what is new. A folder or file that cannot be read now may be at the next look.
    ///
    /// # Errors
    /// Where the answer cannot be sent.
    pub(super) fn look(&mut self, when: Read, tell: &mut Tell<'_>) -> io::Result<()> {
        let mut held = Vec::new();
        for (base, name) in self.roots.clone() {
            let Ok(folder) = Folder::trusted(&base).and_then(|base| base.folder(&name)) else { continue };
            let mut sent = Ok(());
            let mut found = Vec::new();
            // Fails where a folder is removed meanwhile.
            let _ = folder.walk(|below, entries| {
                let files = entries.iter().filter(|entry| entry.status.kind == Kind::File);
                let paths = files.map(|entry| below.join(&entry.name));
                found.extend(paths.filter_map(|path| Some((LogFile::named(&path)?, path))));
                sent = std::mem::replace(&mut sent, Ok(())).and_then(|()| tell(reading(below)));
            });
            sent?;
            found.sort_by(|(_, one), (_, other)| one.cmp(other));
            for (log, path) in found.into_iter().take(MOST_FILES) {
                self.read_file((log, &path), &folder, &base.join(&name), when, &mut held, tell)?;
            }
        }
        flush(&mut held, tell)
    }

    /// `place` is where the folder is. `log` is new; a file that is followed already goes on with its own.
    fn read_file(
        &mut self,
        (log, path): (LogFile, &Path),
        folder: &Folder,
        place: &Path,
        when: Read,
        held: &mut Vec<Logged>,
        tell: &mut Tell<'_>,
    ) -> io::Result<()> {
        let whole = place.join(path);
        if self.skipped.contains(&*whole.to_string_lossy()) {
            return Ok(());
        }
        let Ok(file) = folder.open(path) else { return Ok(()) };
        let Ok(status) = Status::of(&file) else { return Ok(()) };
        let stamp = (status.inode, status.bytes, status.modified_ns);
        tell(reading(&whole))?;
        let followed = self.files.entry(whole.clone()).or_insert(Followed { log, stamp: (0, 0, 0) });
        if when == Read::During && followed.stamp == stamp {
            return Ok(());
        }
        // What an attempt before has logged and not recorded comes first: later it would be newer than this attempt's.
        followed.stamp = if when == Read::Before { (0, 0, 0) } else { stamp };
        let origin = origin(&whole);
        while let Ok(found) = followed.log.read(&file, when, &mut self.shared) {
            held.extend(found.logged.into_iter().map(|logged| Logged { origin, ..logged }));
            if held.iter().map(|logged| logged.values.len()).sum::<usize>() > MOST_HELD {
                flush(held, tell)?;
            }
            if !found.has_more {
                break;
            }
            tell(reading(&whole))?;
        }
        Ok(())
    }
}

/// A number of the file's own, beyond those of the streams of output.
fn origin(path: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}

fn reading(path: &Path) -> Answer {
    Answer::Reading(path.to_string_lossy().into_owned())
}

/// The newest value of a metric is the last: two attempts may have written to files of their own.
fn flush(held: &mut Vec<Logged>, tell: &mut Tell<'_>) -> io::Result<()> {
    held.sort_by(|one, other| one.time.unwrap_or(f64::MAX).total_cmp(&other.time.unwrap_or(f64::MAX)));
    held.drain(..).try_for_each(|logged| tell(Answer::Logged(logged)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "works in a temporary folder")]
    use super::*;

    fn looked(files: &mut LogFiles, when: Read) -> Vec<Logged> {
        let mut all = Vec::new();
        let sent = files.look(when, &mut |answer| {
            if let Answer::Logged(logged) = answer {
                all.push(logged);
            }
            Ok(())
        });
        sent.unwrap();
        all
    }

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
        let mut files = LogFiles::new(roots, 0.0, BTreeSet::new());
        assert_eq!(looked(&mut files, Read::Before), []);
        assert_ne!(looked(&mut files, Read::During), [], "at its end only, they would be newer than this attempt's");
        assert_eq!(looked(&mut files, Read::Last), []);
    }
}
