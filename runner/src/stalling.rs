//! Looks for a training's signs of progress while it runs, and reports a stall.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use spotsweep_attempt::stall::{Files, Gpu, Signs, Stall, Step};
use spotsweep_attempt::{Answer, Event};
use spotsweep_protocol::cause::chain;
use spotsweep_protocol::stall::{NO_SIGN, StallRule};
use spotsweep_protocol::words::duration;
use spotsweep_seal::disk::{Disk, MountedDisk};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::claim::Claims;
use crate::gpu_activity::Activity;
use crate::log::say;
use crate::reports::News;
use crate::workplace::Workplace;

/// What is needed to look at a training, and to report a stall.
pub(crate) struct Stalling<'a> {
    claims: &'a Claims,
    rule: StallRule,
    /// Bytes of output so far.
    output_bytes: Arc<AtomicU64>,
    /// The folders of checkpoints and of outputs.
    folders: [(MountedDisk, PathBuf); 2],
    news: News,
    last_sign: watch::Sender<Option<Instant>>,
    gpus: Activity,
}

impl<'a> Stalling<'a> {
    /// Looks at the training by `rule`, and at the GPUs too. `news` is what each report has. While the training is
    /// stalled, the time of the last sign is sent to `last_sign`.
    pub(crate) fn new(
        claims: &'a Claims,
        (rule, gpus): (StallRule, Activity),
        place: &Workplace,
        output_bytes: Arc<AtomicU64>,
        (news, last_sign): (News, watch::Sender<Option<Instant>>),
    ) -> Self {
        let (base, outputs) = place.storage.place();
        let folders = [(place.disk(), place.checkpoints.clone()), (MountedDisk::below(base), outputs)];
        Self { claims, rule, output_bytes, folders, news, last_sign, gpus }
    }

    /// Returns when a stall has to end the attempt.
    pub(crate) async fn end(mut self) -> Event {
        let began = Instant::now();
        let Some(mut stall) = Stall::new(self.rule, self.signs().await, Duration::ZERO) else {
            return std::future::pending().await;
        };
        loop {
            sleep(stall.tick()).await;
            let signs = self.signs().await;
            let gpu = if stall.is_sign(signs) { Gpu::Absent } else { self.gpus.look().await };
            match stall.look(began.elapsed(), signs, gpu) {
                Step::Nothing => {}
                Step::Warn => {
                    let silent = stall.silent();
                    say(&format!("stalled: {NO_SIGN} for {}", duration(silent.as_secs_f64())));
                    if gpu == Gpu::Unknown {
                        say("the GPUs give no figure: without one, the attempt is not ended");
                    }
                    self.last_sign.send_replace(Instant::now().checked_sub(silent));
                    self.report().await;
                }
                Step::GoesOn => {
                    say("the training goes on");
                    self.last_sign.send_replace(None);
                    self.report().await;
                }
                Step::End => {
                    return Event::Stalled { seconds: stall.silent().as_secs(), is_last: self.rule.is_last };
                }
            }
        }
    }

    async fn signs(&self) -> Signs {
        let folders = self.folders.clone();
        let files = tokio::task::spawn_blocking(move || files(&folders)).await;
        let files = files.map_err(io::Error::other).flatten();
        // Read after the files, because the look at the files may take long.
        Signs { bytes: self.output_bytes.load(Ordering::Relaxed), files: files.ok() }
    }

    /// Reports whether the training is stalled, for the configured patience.
    async fn report(&mut self) {
        let (latest, seal, stalled_seconds) = self.news.take();
        match self.claims.report_patiently(latest, seal, stalled_seconds).await {
            Ok(Answer::Accepted | Answer::Unavailable(_) | Answer::Waiting { .. }) => {}
            // The next report has the same answer, and stops the training.
            Ok(Answer::Stop(why)) => say(&why),
            Ok(Answer::Refused(reason)) => say(&format!("the report was not taken: {reason}")),
            Err(error) => say(&format!("that the training is stalled, or goes on, is not reported: {}", chain(&error))),
        }
    }
}

fn files(folders: &[(MountedDisk, PathBuf)]) -> io::Result<Files> {
    folders.iter().try_fold(Files::default(), |sum, (disk, folder)| {
        let found = disk.files(folder)?;
        Ok(sum.with(found.values().map(|stamp| (stamp.bytes, stamp.modified_ns))))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
#[allow(clippy::disallowed_methods, reason = "works in a temporary folder")]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn each_change_of_a_file_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let disk = MountedDisk::below(folder.path());
        let folders = ["checkpoints", "gone"].map(|name| (disk.clone(), folder.path().join(name)));
        let file = folders[0].1.join("epoch-1/model.pt");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let mut seen = vec![files(&folders).unwrap()];
        assert_eq!(seen[0], Files::default());
        let mut look = |what: &str| {
            let found = files(&folders).unwrap();
            assert_ne!(found, *seen.last().unwrap(), "{what}");
            seen.push(found);
        };
        fs::write(&file, "1").unwrap();
        look("a new file");
        fs::write(&file, "12").unwrap();
        look("a longer file");
        let later = fs::metadata(&file).unwrap().modified().unwrap() + Duration::from_nanos(1);
        fs::File::options().write(true).open(&file).unwrap().set_modified(later).unwrap();
        look("a file of the same length");
        fs::remove_file(&file).unwrap();
        look("a file that is removed");
    }
}
