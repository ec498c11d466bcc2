//! The files in which the training's libraries log metrics: TensorBoard's, W&B's, Lightning's, Hugging Face's.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use spotsweep_beneath::{Folder, Kind, Status};
use spotsweep_training_metrics::{LogFile, Logged, MENTION_BYTES, Read, Shared, may_have_metrics, mentions};

use super::Answer;

/// A single training does not have more files than this.
const MOST_FILES: usize = 1000;
/// How many values are held before they are sorted by their times.
const MOST_HELD: usize = 50_000;

/// The state of a file when it was last read.
#[derive(Debug)]
struct Followed {
    log: LogFile,
    /// Inode, size in bytes, and time of the last change in nanoseconds since 1970.
    stamp: (u64, u64, i64),
}

/// All log files of a trial, in the folders that the training writes to.
#[derive(Debug)]
pub(super) struct LogFiles {
    /// Pairs of a folder whose path only the runner can change, and a path below it.
    roots: Vec<(PathBuf, PathBuf)>,
    skipped: BTreeSet<String>,
    files: BTreeMap<PathBuf, Followed>,
    shared: Shared,
    /// Seconds since 1970: values logged before this time are recorded already.
    since: f64,
    /// The name of the metric that ranks the trials.
    named: Option<String>,
}

type Tell<'a> = dyn FnMut(Answer) -> io::Result<()> + 'a;

impl LogFiles {
    /// Makes a list of the files below `roots`. Values logged before `since`, in seconds since 1970, are recorded
    /// already. `named` is the metric that the sweep file names.
    pub(super) fn new(
        roots: Vec<(PathBuf, PathBuf)>,
        (since, named): (f64, Option<String>),
        skipped: BTreeSet<String>,
    ) -> Self {
        let shared = Shared::new(since, named.clone());
        Self { roots, skipped, files: BTreeMap::new(), shared, since, named }
    }

    /// Sends what is new. A folder or file that cannot be read now is tried again at the next look.
    ///
    /// # Errors
    ///
    /// Sending an answer has failed.
    pub(super) fn look(&mut self, when: Read, tell: &mut Tell<'_>) -> io::Result<()> {
        let mut held = Vec::new();
        for (base, name) in self.roots.clone() {
            let Ok(folder) = Folder::trusted(&base).and_then(|base| base.folder(&name)) else { continue };
            let mut sent = Ok(());
            let (mut found, mut others) = (Vec::new(), Vec::new());
            // Fails if a folder is removed meanwhile.
            let _ = folder.walk(|below, entries| {
                let files = entries.iter().filter(|entry| entry.status.kind == Kind::File);
                for path in files.map(|entry| below.join(&entry.name)) {
                    match LogFile::named(&path) {
                        Some(log) => found.push((log, path)),
                        None if may_have_metrics(&path) && others.len() < MOST_FILES => others.push(path),
                        None => {}
                    }
                }
                sent = std::mem::replace(&mut sent, Ok(())).and_then(|()| tell(reading(below)));
            });
            sent?;
            found.sort_by_cached_key(|(_, path)| by_numbers(path));
            let place = base.join(&name);
            if when == Read::Last && found.len() > MOST_FILES {
                let (more, place) = (found.len() - MOST_FILES, place.display());
                tell(unread(format!("{more} files of metrics in {place}, beyond the first {MOST_FILES}"), false))?;
            }
            for (log, path) in found.into_iter().take(MOST_FILES) {
                self.read_file((log, &path), &folder, &place, when, &mut held, tell)?;
                let followed = self.files.get(&place.join(&path));
                others.extend(followed.is_some_and(|followed| followed.log.is_of_other_form()).then_some(path));
            }
            if when == Read::Last {
                self.tell_others(&folder, &others, tell)?;
            }
        }
        if when == Read::Last {
            for (path, followed) in &self.files {
                if let Some(why) = followed.log.unread() {
                    tell(unread(format!("a part of {}: {why}", path.display()), false))?;
                }
            }
        }
        flush(&mut held, tell)
    }

    /// Sends which files of this attempt have the sweep's metric, but are of kinds that are not read. Rows of a dataset
    /// and single predictions look the same, and their values would rank the trial.
    fn tell_others(&self, folder: &Folder, others: &[PathBuf], tell: &mut Tell<'_>) -> io::Result<()> {
        let Some(named) = &self.named else { return Ok(()) };
        for path in others {
            let Ok(file) = folder.open(path) else { continue };
            let is_new = Status::of(&file).is_ok_and(|status| status.modified_ns as f64 / 1e9 >= self.since);
            let mut beginning = Vec::new();
            if is_new && file.take(MENTION_BYTES).read_to_end(&mut beginning).is_ok() && mentions(&beginning, named) {
                let what = format!("{} has `{named}`, and a file of this name or form is not read", path.display());
                tell(unread(what, true))?;
            }
        }
        Ok(())
    }

    /// `place` is the path of the folder. `log` is new; if the file is followed already, its existing log is used.
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
        // Values that an earlier attempt has not recorded come first: later they would be newer than this attempt's.
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

/// A key that orders files by the numbers in their paths: `version_10` is newer than `version_9`.
fn by_numbers(path: &Path) -> Vec<(u64, String)> {
    let path = path.to_string_lossy();
    let number = |digits: &str| if digits.is_empty() { 0 } else { digits.parse().unwrap_or(u64::MAX) };
    let is_other = |c: char| !c.is_ascii_digit();
    path.split_inclusive(is_other).map(|part| (number(part.trim_end_matches(is_other)), part.to_owned())).collect()
}

/// A number that identifies the file, larger than the numbers of the output streams.
fn origin(path: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}

fn unread(what: String, is_other: bool) -> Answer {
    Answer::Unread { what, is_other }
}

fn reading(path: &Path) -> Answer {
    Answer::Reading(path.to_string_lossy().into_owned())
}

/// Sends values in the order of their times, because two attempts may have written to separate files.
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
        let mut files = LogFiles::new(roots, (0.0, None), BTreeSet::new());
        assert_eq!(looked(&mut files, Read::Before), []);
        assert_ne!(looked(&mut files, Read::During), [], "at its end only, they would be newer than this attempt's");
        assert_eq!(looked(&mut files, Read::Last), []);
    }

    /// Paths and contents of files.
    type Files = &'static [(&'static str, &'static str)];
    /// Steps and values of a metric.
    type Values = &'static [(Option<f64>, f64)];

    #[test]
    fn an_attempt_has_the_rows_of_its_own_folder() {
        // The files that the attempt before has left, the files at each look, and the values that are found.
        let cases: [(Files, &[Files], Values); 4] = [
            // Lightning's CSVLogger.
            (
                &[("version_0/metrics.csv", "epoch,step,val_acc\n0,9,0.5\n1,19,0.6\n")],
                &[
                    &[("version_1/metrics.csv", "epoch,step,val_acc\n1,19,0.7\n")],
                    &[("version_1/metrics.csv", "epoch,step,val_acc\n1,19,0.7\n2,29,0.8\n")],
                ],
                &[(Some(19.0), 0.7), (Some(29.0), 0.8)],
            ),
            // Two of its files in one look.
            (
                &[],
                &[&[
                    ("version_10/metrics.csv", "epoch,step,val_acc\n0,9,0.7\n1,19,0.8\n"),
                    ("version_9/metrics.csv", "epoch,step,val_acc\n0,9,0.5\n1,19,0.6\n"),
                ]],
                &[(Some(9.0), 0.5), (Some(19.0), 0.6), (Some(9.0), 0.7), (Some(19.0), 0.8)],
            ),
            // Ray Tune continues in the folder of its trial.
            (
                &[("train_fn_a_00000_0_lr=0.1/progress.csv", "val_acc,training_iteration,trial_id\n0.5,1,a_00000\n")],
                &[&[(
                    "train_fn_a_00000_0_lr=0.1/progress.csv",
                    "val_acc,training_iteration,trial_id\n0.5,1,a_00000\n0.6,2,a_00000\n",
                )]],
                &[(Some(2.0), 0.6)],
            ),
            // Hydra.
            (
                &[("2026-11-26/04-31-32/metrics.jsonl", "{\"epoch\": 1, \"val_acc\": 0.5}\n")],
                &[&[("2026-11-26/14-02-10/metrics.jsonl", "{\"epoch\": 2, \"val_acc\": 0.6}\n")]],
                &[(Some(2.0), 0.6)],
            ),
        ];
        for (before, looks, expected) in cases {
            let folder = tempfile::tempdir().unwrap();
            let write = |files: Files| {
                for (path, text) in files {
                    let path = folder.path().join("logs").join(path);
                    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                    std::fs::write(path, text).unwrap();
                }
            };
            write(before);
            let roots = vec![(folder.path().to_owned(), PathBuf::from("logs"))];
            let mut files = LogFiles::new(roots, (0.0, Some("val_acc".to_owned())), BTreeSet::new());
            let mut logged = looked(&mut files, Read::Before);
            for look in looks {
                write(look);
                logged.extend(looked(&mut files, Read::During));
            }
            logged.extend(looked(&mut files, Read::Last));
            let value = |row: &Logged| row.values.iter().find(|value| value.name == "val_acc").map(|value| value.value);
            let found: Vec<_> = logged.iter().filter_map(|row| Some((row.step, value(row)?))).collect();
            assert_eq!(found, expected, "{looks:?}");
        }
    }

    #[test]
    fn what_is_not_read_is_said() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("runs")).unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join("runs").join(name), text).unwrap();
        write("scores.csv", "epoch,Val Acc\n1,0.5\n");
        write("other.csv", "epoch,f1\n1,0.5\n");
        write("metrics.jsonl", &format!("{{\"a\": \"{}\"}}\n", "x".repeat(300_000)));
        write("metrics.json", "[{\"fold\": 1, \"val_acc\": 0.5},\n{\"fold\": 2, \"val_acc\": 0.75}]");
        let roots = vec![(folder.path().to_owned(), PathBuf::from("runs"))];
        let mut files = LogFiles::new(roots, (0.0, Some("val_acc".to_owned())), BTreeSet::new());
        let mut unread = Vec::new();
        let mut tell = |answer| {
            if let Answer::Unread { what, is_other } = answer {
                unread.push((what, is_other));
            }
            Ok(())
        };
        files.look(Read::During, &mut tell).unwrap();
        files.look(Read::Last, &mut tell).unwrap();
        let [(other, true), (form, true), (long, false)] = &unread[..] else { panic!("{unread:?}") };
        assert!(other.contains("scores.csv") && form.contains("metrics.json "), "{unread:?}");
        assert!(long.contains("metrics.jsonl"), "{unread:?}");
    }
}
