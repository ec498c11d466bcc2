//! What the bucket gets of the trial. Many scripts leave their model only among their checkpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use spotsweep_aws::{Reader, path_style_s3};
use spotsweep_local_stack::deploy::BUCKET;
use spotsweep_local_stack::stack::Stack;
use spotsweep_protocol::claim::{COLLECTED, Checkpoints, Patterns};
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::ids::SweepId;
use spotsweep_protocol::patterns::Filter;
use spotsweep_protocol::words::{counted, size};
use spotsweep_records::trial::Standing;
use spotsweep_seal::disk::{Disk, MountedDisk};
use spotsweep_seal::{CHECKPOINTS, OWN, STORAGE, collected, newest_name};

use crate::download::list;
use crate::metrics_record;
use crate::show;

/// The trial's volume in a container's root folder.
pub(super) const WORKSPACE: &str = "dltraining";
/// The runner's own objects among the outputs.
const OF_RUNNER: [&str; 3] = ["train.log", metrics_record::NAME, COLLECTED];
/// How often to look at a folder that the training may change meanwhile.
const LOOKS: usize = 3;

/// Sizes of files in bytes, by their paths.
type Files = BTreeMap<String, u64>;

/// What the bucket has of a trial that has succeeded. For another trial, what it would have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Bucket {
    /// Whether the trial has succeeded. If not, this is what would be collected if the training ended now with success.
    has_succeeded: bool,
    which: Checkpoints,
    /// Files below `$SPOTSWEEP_OUTPUT`.
    outputs: Files,
    /// Files below `$SPOTSWEEP_CHECKPOINTS`.
    checkpoints: Files,
    /// The newest of these checkpoints, if that is known.
    newest: Option<String>,
    /// What was not collected of a trial that has succeeded, with the reasons.
    left_out: Vec<String>,
}

/// What the bucket lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lack {
    /// The trial has succeeded, and none of its files is collected, although these checkpoints are to be.
    NoModel(Checkpoints),
    /// The checkpoint has more bytes than are collected.
    TooLarge { name: String, bytes: u64, most: u64 },
    /// This file was not collected, for a reason in the runner's words.
    LeftOut(String),
}

impl Bucket {
    /// The bucket of a trial that `is_over`, or that goes on. None if it has failed, or has no volume now.
    pub(super) async fn of(
        stack: &Stack,
        sweep: &SweepId,
        patterns: &Patterns,
        is_over: bool,
    ) -> Result<Option<Self>, Failure> {
        if is_over {
            return Self::got(stack, sweep, patterns.checkpoints).await;
        }
        Ok(Self::would_get(&stack.jobs().join("attempts"), patterns))
    }

    /// Reads what the bucket has.
    async fn got(stack: &Stack, sweep: &SweepId, which: Checkpoints) -> Result<Option<Self>, Failure> {
        let reader = Reader::new(stack.config(), stack.table().to_owned());
        let trial = reader.trial(sweep, 0).await.context(|| "cannot read the trial")?;
        let Some(trial) = trial.filter(|trial| trial.standing() == Standing::Succeeded) else { return Ok(None) };
        let prefix = sweep.trial_prefix(0);
        let objects = list(&path_style_s3(stack.config()), BUCKET, &prefix, &prefix).await?.objects;
        let objects = objects.into_iter().map(|object| (object.path.to_string_lossy().into_owned(), object.bytes));
        let left_out = trial.end.map(|end| end.outputs.left_out).unwrap_or_default();
        Ok(Some(Self { left_out, ..Self::of_objects(objects, which) }))
    }

    fn of_objects(objects: impl Iterator<Item = (String, u64)>, which: Checkpoints) -> Self {
        let mut bucket = Self { has_succeeded: true, which, ..Self::default() };
        for (path, bytes) in objects.filter(|(path, _)| !OF_RUNNER.contains(&path.as_str())) {
            match path.strip_prefix(CHECKPOINTS).and_then(|rest| rest.strip_prefix('/')) {
                Some(checkpoint) => bucket.checkpoints.insert(checkpoint.to_owned(), bytes),
                None => bucket.outputs.insert(path, bytes),
            };
        }
        bucket
    }

    /// What it would get from the container below `attempts` that has a volume.
    fn would_get(attempts: &Path, patterns: &Patterns) -> Option<Self> {
        let containers = fs::read_dir(attempts).into_iter().flatten().flatten();
        let mut volumes = containers.map(|container| container.path().join(WORKSPACE));
        let volume = volumes.find(|volume| volume.join(CHECKPOINTS).is_dir())?;
        // A file may be removed before it is read.
        (0..LOOKS).find_map(|_| Self::on_volume(&volume, patterns).ok())
    }

    fn on_volume(volume: &Path, patterns: &Patterns) -> io::Result<Self> {
        let disk = MountedDisk::below(volume);
        let filter = Filter::new(patterns).map_err(io::Error::other)?;
        let outputs = disk.files(&volume.join(OWN).join(STORAGE))?.into_iter().map(|(path, stamp)| (path, stamp.bytes));
        let folder = volume.join(CHECKPOINTS);
        let checkpoints = collected(&disk, &folder, patterns.checkpoints)?;
        let newest = newest_name(&disk, &folder, &checkpoints.files)?;
        let sized = checkpoints.files.into_iter().map(|path| Ok((disk.stamp(&folder.join(&path))?.bytes, path)));
        let sized: Vec<(u64, String)> = sized.collect::<io::Result<_>>()?;
        Ok(Self {
            has_succeeded: false,
            which: patterns.checkpoints,
            outputs: outputs.filter(|(path, _)| filter.admits(path)).collect(),
            checkpoints: sized.into_iter().map(|(bytes, path)| (path, bytes)).collect(),
            newest,
            left_out: Vec::new(),
        })
    }

    /// Why there is less in the bucket than there should be.
    pub(super) fn lack(&self) -> Option<Lack> {
        let (bytes, most) = (total(&self.checkpoints), self.which.most_bytes());
        if let Some(most) = most.filter(|most| bytes > *most) {
            return Some(Lack::TooLarge { name: self.name(), bytes, most });
        }
        if let Some(why) = self.left_out.first() {
            return Some(Lack::LeftOut(why.clone()));
        }
        let has_none = self.outputs.is_empty() && self.checkpoints.is_empty();
        (self.has_succeeded && has_none).then_some(Lack::NoModel(self.which))
    }

    /// A name for the checkpoints: the folder that contains all of them, or else the newest one, or the first file.
    fn name(&self) -> String {
        let files = || self.checkpoints.keys();
        let folders = |path: &String| -> BTreeSet<String> {
            path.match_indices('/').map(|(end, _)| path[..=end].to_owned()).collect()
        };
        let common = files().map(folders).reduce(|common, more| &common & &more).unwrap_or_default();
        if let Some(folder) = common.last().filter(|_| files().len() > 1) {
            return folder.clone();
        }
        let others = |name: &str| files().filter(|path| !Path::new(path).starts_with(name)).count();
        let newest = self.newest.as_ref().filter(|newest| others(newest) < files().len());
        let name = newest.or(files().next()).map_or("", String::as_str);
        match others(name) {
            0 => name.to_owned(),
            count => format!("{name} and {} more", counted(count as u64, "file")),
        }
    }

    /// Text for people, after "collected in the bucket".
    pub(super) fn described(&self) -> String {
        let when = if self.has_succeeded { "" } else { ", if the training ended now" };
        let outputs = match self.outputs.len() {
            0 => "no file of $SPOTSWEEP_OUTPUT".to_owned(),
            count => {
                let files = counted(count as u64, "file");
                format!("{files} of $SPOTSWEEP_OUTPUT ({})", size(total(&self.outputs)))
            }
        };
        let size = size(total(&self.checkpoints));
        let checkpoints = match self.which {
            Checkpoints::None => "no checkpoint, as the sweep file says".to_owned(),
            Checkpoints::Newest | Checkpoints::All if self.checkpoints.is_empty() => "no checkpoint".to_owned(),
            Checkpoints::Newest if matches!(self.lack(), Some(Lack::TooLarge { .. })) => {
                format!("no checkpoint, as the newest is too large ({size})")
            }
            Checkpoints::Newest => format!("the newest complete checkpoint, {} ({size})", self.name()),
            Checkpoints::All => {
                format!("all complete checkpoints ({}, {size})", counted(self.checkpoints.len() as u64, "file"))
            }
        };
        show::line(format!("{when}: {outputs}, and {checkpoints}"))
    }
}

fn total(files: &Files) -> u64 {
    files.values().sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The content of a file that is no text and has no known format.
    const MODEL: &[u8] = &[255; 50];

    /// What is collected of these files, which a training has written to its volume in this order.
    fn left(files: &[(&str, &[u8])], patterns: &Patterns) -> Bucket {
        let folder = tempfile::tempdir().unwrap();
        let volume = folder.path().join("digits-0").join(WORKSPACE);
        fs::create_dir_all(volume.join(CHECKPOINTS)).unwrap();
        for (path, content) in files {
            let path = volume.join(path.replace("output/", &format!("{OWN}/{STORAGE}/")));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        Bucket::would_get(folder.path(), patterns).unwrap()
    }

    #[test]
    fn what_the_bucket_would_get_is_said() {
        let patterns = |checkpoints| Patterns { exclude: vec!["*.tmp".to_owned()], checkpoints, ..Patterns::default() };
        let model = ("output/model/w.raw", MODEL);
        let checkpoint = ("checkpoints/a-1/w.raw", MODEL);
        let optimizer = ("checkpoints/a-1/o.raw", MODEL);
        for (files, which, expected) in [
            (
                &[model, ("output/a.tmp", MODEL), checkpoint, optimizer][..],
                Checkpoints::Newest,
                "1 file of $SPOTSWEEP_OUTPUT (50 bytes), and the newest complete checkpoint, a-1/ (100 bytes)",
            ),
            (
                &[("checkpoints/a.raw", MODEL), ("checkpoints/last.raw", MODEL)],
                Checkpoints::Newest,
                "no file of $SPOTSWEEP_OUTPUT, and the newest complete checkpoint, last.raw and 1 file more (100 bytes)",
            ),
            (
                &[checkpoint, optimizer],
                Checkpoints::All,
                "no file of $SPOTSWEEP_OUTPUT, and all complete checkpoints (2 files, 100 bytes)",
            ),
            (
                &[checkpoint],
                Checkpoints::None,
                "no file of $SPOTSWEEP_OUTPUT, and no checkpoint, as the sweep file says",
            ),
            (&[], Checkpoints::Newest, "no file of $SPOTSWEEP_OUTPUT, and no checkpoint"),
        ] {
            let bucket = left(files, &patterns(which));
            assert_eq!(bucket.described(), format!(", if the training ended now: {expected}"));
            assert_eq!(bucket.lack(), None, "the training may still write it");
        }
        assert_eq!(Bucket::would_get(Path::new("/nowhere"), &Patterns::default()), None);
    }

    #[test]
    fn what_the_bucket_lacks_of_a_success_is_a_problem() {
        let of = |names: &[(&str, u64)]| {
            Bucket::of_objects(names.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes)), Checkpoints::Newest)
        };
        let own = [("train.log", 9), ("metrics.jsonl", 9)];
        assert_eq!(of(&own).lack(), Some(Lack::NoModel(Checkpoints::Newest)));
        let saved = of(&[own[0], own[1], ("checkpoints/e-1.pt", 5)]);
        assert_eq!(saved.lack(), None);
        let words = ": no file of $SPOTSWEEP_OUTPUT, and the newest complete checkpoint, e-1.pt (5 bytes)";
        assert_eq!(saved.described(), words);
        let left_out = Bucket { left_out: vec!["\"a\": why".to_owned()], ..of(&own) };
        assert_eq!(left_out.lack(), Some(Lack::LeftOut("\"a\": why".to_owned())));
        let large = Bucket { has_succeeded: false, ..of(&[("checkpoints/a.pt", 20 << 30), ("checkpoints/b.pt", 1)]) };
        let (bytes, most) = ((20 << 30) + 1, 20 << 30);
        let name = "a.pt and 1 file more".to_owned();
        assert_eq!(large.lack(), Some(Lack::TooLarge { name, bytes, most }));
        assert!(large.described().ends_with("and no checkpoint, as the newest is too large (20.0 GiB)"));
    }
}
