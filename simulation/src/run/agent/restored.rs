//! The uploaded checkpoint of a successful trial, and the trial of a later sweep that starts from it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use spotsweep_protocol::claim::{COLLECTED, Checkpoints, Collected, CollectedFile, Prefix};
use spotsweep_seal::disk::Disk;
use spotsweep_seal::{CHECKPOINTS, Restoration, collected, restoration, restored};

use super::workspace::POINT;
use super::{Agent, Doing, Next};
use crate::run::Simulation;
use crate::run::training::load::{self, Start};

/// How long half of a download takes.
const HALF: Duration = Duration::from_secs(20);

impl Simulation {
    /// Uploads the newest checkpoint of a successful trial to the bucket.
    pub(super) fn collect(&self, agent: &Agent, volume: &str) -> Result<(), String> {
        let prefix = agent.container.trial.sweep.trial_prefix(agent.container.trial.index);
        let cloud = &self.harness.cloud;
        let mut objects = Vec::new();
        let taken = self.with_files(agent, volume, |files| files.seen().clone())?;
        let record = self.with_disk(agent, volume, |disk| {
            let found = collected(disk, Path::new(CHECKPOINTS), Checkpoints::Newest)?;
            let mut record = Collected { files: Vec::new(), links: found.links };
            for path in found.newest {
                let place = Path::new(CHECKPOINTS).join(&path);
                let stamp = disk.stamp(&place)?;
                let (key, etag) = (format!("{CHECKPOINTS}/{path}"), String::new());
                let file = taken.files.get(place.to_str().unwrap_or_default());
                objects.push((format!("{prefix}{key}"), file.map(|file| file.bytes.to_vec()).unwrap_or_default()));
                record.files.push(CollectedFile {
                    path,
                    key,
                    bytes: stamp.bytes,
                    modified_ns: stamp.modified_ns,
                    etag,
                });
            }
            Ok(record)
        })?;
        let record: Collected = record.map_err(|error: std::io::Error| format!("not collected: {error}"))?;
        if record.files.is_empty() {
            return Ok(());
        }
        objects.into_iter().for_each(|(key, bytes)| cloud.put(&key, bytes));
        cloud.put(&format!("{prefix}{COLLECTED}"), serde_json::to_vec(&record).map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Puts the uploaded checkpoint on the volume. Returns what the runner does next if the download is not done.
    pub(super) fn restore(&mut self, agent: &mut Agent, volume: &str, from: &Prefix) -> Result<Option<Next>, String> {
        let left = self.with_disk(agent, volume, |disk| restoration(disk, Path::new(POINT), &from.prefix))?;
        let aside = match left.map_err(|error| format!("not restored: {error}"))? {
            Restoration::Done => {
                // The training must not start from the beginning.
                agent.restored = Some(1);
                return Ok(None);
            }
            Restoration::Occupied => return Err(format!("{}: other checkpoints are there", agent.container.trial)),
            Restoration::Into(aside) => aside,
        };
        let get = |name: &str| self.harness.cloud.get(&format!("{}{name}", from.prefix)).ok_or("nothing is collected");
        let record: Collected = serde_json::from_slice(&get(COLLECTED)?).map_err(|error| error.to_string())?;
        let mut files = Vec::new();
        for file in &record.files {
            files.push((aside.join(&file.path), get(&file.key)?));
        }
        // The runner downloads the first half now and the rest later.
        let is_half = !std::mem::replace(&mut agent.has_begun_restoring, true);
        files.truncate(if is_half { files.len() / 2 } else { files.len() });
        let whole = self.with_disk(agent, volume, |disk| {
            write(disk, &files, (!is_half).then_some((&record, &*aside, &*from.prefix)))
        })?;
        whole.map_err(|error| format!("not restored: {error}"))?;
        if is_half {
            agent.doing = Doing::Claiming;
            return Ok(Some(Next::After(HALF)));
        }
        let (index, habits) = (agent.container.trial.index, self.chaos.habits);
        let start = self.with_files(agent, volume, |files| load::start(&habits, index, files.seen()))?;
        self.note(agent, |_| format!("restores {}: {start:?}", from.prefix));
        match start {
            Start::From(loaded) if loaded.is_intact => agent.restored = Some(loaded.step),
            start @ (Start::From(_) | Start::Fresh | Start::Fails(_)) => {
                return Err(format!(
                    "{}: what is restored of {} is no start: {start:?}",
                    agent.container.trial, from.prefix
                ));
            }
        }
        Ok(None)
    }
}

fn write(
    disk: &dyn Disk,
    files: &[(PathBuf, Vec<u8>)],
    whole: Option<(&Collected, &Path, &str)>,
) -> std::io::Result<()> {
    for (path, bytes) in files {
        disk.write(path, bytes)?;
    }
    let Some((record, aside, of)) = whole else { return Ok(()) };
    for (link, target) in &record.links {
        disk.symbolic_link(&aside.join(link), Path::new(target))?;
    }
    restored(disk, Path::new(POINT), of)
}
