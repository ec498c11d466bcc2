//! Finds the sweep that a command is about, and reads what several commands need.

use std::collections::BTreeSet;

use spotsweep_aws::{ReadError, Reader, is_gone};
use spotsweep_protocol::ids::SweepId;
use spotsweep_records::sweep::{Plan, Sweep};
use spotsweep_records::trial::Trial;
use spotsweep_report::parameters::with_suggested;
use spotsweep_sweep_file::trials;

use crate::out;
use crate::target::{self, Table, Target};
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::words::counted;

/// A sweep from the table.
#[derive(Clone)]
pub(crate) struct Found {
    /// Its record.
    pub(crate) sweep: Sweep,
    /// Reads more of the sweep.
    pub(crate) reader: Reader,
    /// The control plane of the sweep.
    pub(crate) target: Target,
}

/// The word for the newest sweep.
pub(crate) const LATEST: &str = "latest";
/// Sweeps that a message names.
const MOST_NAMED: usize = 5;

/// Finds a sweep by its id, by the beginning of its id, or by `latest`.
pub(crate) async fn find(table: Table, wanted: &str) -> Result<Found, Failure> {
    check(wanted)?;
    let target = target::table(table.name).await?;
    let reader = Reader::new(&target.config, target.name.clone());
    let sweep = look_up(&reader, wanted).await.context(|| format!("cannot read the table {}", target.name))?;
    Ok(announced(Found { sweep: sweep?, reader, target }, wanted))
}

/// The only open sweep, if there is exactly one.
pub(crate) async fn only_open(table: Table) -> Result<Found, Failure> {
    let target = target::table(table.name).await?;
    let reader = Reader::new(&target.config, target.name.clone());
    let mut open = reader.open_sweeps().await.context(|| format!("cannot read the table {}", target.name))?;
    match open.pop() {
        None => Err(Failure::new("no sweep is open; `spotsweep watch latest` shows the newest one")),
        Some(sweep) if open.is_empty() => Ok(announced(Found { sweep, reader, target }, "")),
        Some(last) => {
            let ids: Vec<SweepId> = open.into_iter().chain([last]).map(|sweep| sweep.id).collect();
            Err(Failure::usage(format!("{} are open, name one: {}", counted(ids.len(), "sweep"), listed(&ids))))
        }
    }
}

/// Chooses a sweep among these, newest first.
pub(crate) fn chosen(wanted: &str, newest_first: Vec<Sweep>) -> Result<Sweep, Failure> {
    check(wanted)?;
    let fits = |sweep: &Sweep| wanted == LATEST || sweep.id.as_str().starts_with(wanted);
    let mut found: Vec<Sweep> = newest_first.into_iter().filter(fits).collect();
    let whole = found.iter().position(|sweep| wanted == LATEST || sweep.id.as_str() == wanted);
    match (whole, found.len()) {
        (Some(place), _) => Ok(found.swap_remove(place)),
        (None, 1) => Ok(found.swap_remove(0)),
        (None, 0) => Err(none(wanted)),
        (None, _) => {
            let ids: Vec<SweepId> = found.into_iter().map(|sweep| sweep.id).collect();
            Err(Failure::usage(format!(
                "{} begin with `{wanted}`, name one: {}",
                counted(ids.len(), "sweep"),
                listed(&ids)
            )))
        }
    }
}

/// A whole id takes one read. Everything else is compared with all sweeps.
pub(crate) async fn look_up(reader: &Reader, wanted: &str) -> Result<Result<Sweep, Failure>, ReadError> {
    if let Some(id) = SweepId::parse(wanted)
        && let Some(sweep) = reader.sweep(&id).await?
    {
        return Ok(Ok(sweep));
    }
    Ok(chosen(wanted, reader.sweeps().await?))
}

/// Refuses text with which no id begins, before any request.
fn check(wanted: &str) -> Result<(), Failure> {
    let is_id = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    match wanted.is_empty() || !wanted.bytes().all(is_id) {
        true => Err(Failure::usage(format!("no sweep named `{wanted}`; `spotsweep ls` lists them"))),
        false => Ok(()),
    }
}

fn none(wanted: &str) -> Failure {
    match wanted {
        LATEST => Failure::new("there are no sweeps yet: `spotsweep submit FILE` starts one"),
        _other => Failure::new(format!("no sweep named `{wanted}`; `spotsweep ls` lists them")),
    }
}

fn listed(ids: &[SweepId]) -> String {
    let shown: Vec<&str> = ids.iter().take(MOST_NAMED).map(SweepId::as_str).collect();
    shown.join(", ") + if ids.len() > MOST_NAMED { ", …" } else { "" }
}

/// Prints the sweep's id, if only a part of it was typed.
fn announced(found: Found, wanted: &str) -> Found {
    if found.sweep.id.as_str() != wanted {
        out::note(format_args!("sweep {}", found.sweep.id));
    }
    found
}

impl Found {
    /// Reads the sweep's record again.
    pub(crate) async fn refresh(&mut self) -> Result<(), Failure> {
        let read = self.reader.sweep(&self.sweep.id).await;
        let read = read.context(|| format!("cannot read the table {}", self.target.name))?;
        // If the record has expired in between, the old one stays.
        self.sweep = read.unwrap_or_else(|| self.sweep.clone());
        Ok(())
    }

    /// The sweep's plan. A sweep whose file is being read, or was rejected, has none.
    pub(crate) fn plan(&self) -> Result<&Plan, Failure> {
        let Sweep { id, stage, plan, .. } = &self.sweep;
        plan.as_ref().ok_or_else(|| Failure::new(format!("sweep {id} has no trials: it is {}", stage.name())))
    }

    /// Its trials that have ever started.
    pub(crate) async fn trials(&self) -> Result<Vec<Trial>, Failure> {
        let trials = self.reader.trials(&self.sweep.id).await;
        trials.context(|| format!("cannot read the table {}", self.target.name))
    }

    /// The indexes in order and without repetition. Each must be that of a trial of the sweep.
    pub(crate) fn indices(&self, named: &[u32]) -> Result<BTreeSet<u32>, Failure> {
        let Sweep { id, .. } = &self.sweep;
        let trials = self.plan()?.trials;
        match named.iter().find(|index| **index >= trials) {
            Some(index) => Err(Failure::usage(format!(
                "sweep {id} has no trial {index}: it has {}, counted from 0",
                counted(trials, "trial")
            ))),
            None => Ok(named.iter().copied().collect()),
        }
    }

    pub(crate) fn bucket(&self) -> &str {
        &self.sweep.upload.bucket
    }

    /// A client of S3 for its bucket.
    pub(crate) fn s3(&self) -> aws_sdk_s3::Client {
        spotsweep_aws::path_style_s3(&self.target.config)
    }

    /// Reads an object of its bucket. None if there is no such key.
    pub(crate) async fn read(&self, key: &str) -> Result<Option<Vec<u8>>, Failure> {
        self.read_version(key, None).await
    }

    /// Reads a version of an object. None if it does not exist any more.
    pub(crate) async fn read_version(&self, key: &str, version: Option<String>) -> Result<Option<Vec<u8>>, Failure> {
        let cannot_read = || format!("cannot read s3://{}/{key}", self.bucket());
        let got = self.s3().get_object().bucket(self.bucket()).key(key).set_version_id(version).send().await;
        let got = match got {
            Err(error) if is_gone(&error) => return Ok(None),
            got => got.context(cannot_read)?,
        };
        Ok(Some(got.body.collect().await.context(cannot_read)?.to_vec()))
    }

    /// Reads `trials.jsonl`, which has each trial's parameters. Suggested ones are in their trials' records instead.
    pub(crate) async fn parameters(&self) -> Result<Vec<u8>, Failure> {
        let key = trials::lines_key(&self.sweep.id);
        let read = self.read(&key).await?;
        let is_gone = || Failure::new(format!("s3://{}/{key} is gone: it has the trials' parameters", self.bucket()));
        let lines = read.ok_or_else(is_gone)?;
        if self.sweep.plan.as_ref().is_some_and(|plan| plan.suggests) {
            return Ok(with_suggested(&lines, &self.trials().await?).into_owned());
        }
        Ok(lines)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use spotsweep_records::sweep::upload::Upload;

    use super::*;

    fn sweep(name: &str, version: &str) -> Sweep {
        Sweep::new(Upload {
            bucket: "b".to_owned(),
            key: format!("sweeps/{name}.yaml"),
            version_id: None,
            fingerprint: version.to_owned(),
            size: None,
            uploaded_at: jiff::Timestamp::UNIX_EPOCH,
        })
    }

    #[test]
    fn a_sweep_is_known_by_its_beginning_or_as_the_latest() {
        let all = || vec![sweep("digits", "2"), sweep("digits", "1"), sweep("text", "1")];
        let id = |at: usize| all()[at].id.clone();
        let chosen = |wanted: &str| chosen(wanted, all()).map(|sweep| sweep.id);
        assert_eq!(chosen("latest").unwrap(), id(0));
        assert_eq!(chosen("te").unwrap(), id(2));
        for at in 0..3 {
            let whole = id(at);
            assert_eq!(chosen(whole.as_str()).unwrap(), whole);
            assert_eq!(chosen(&whole.as_str()[..whole.as_str().len() - 9]).unwrap(), whole);
        }
        let several = chosen("digits").unwrap_err().to_string();
        assert!(several.contains("2 sweeps") && several.contains(id(0).as_str()) && several.contains(id(1).as_str()));
        assert_eq!(chosen("long").unwrap_err().to_string(), "no sweep named `long`; `spotsweep ls` lists them");
        for wanted in ["", "Missing", "a b"] {
            assert!(chosen(wanted).is_err(), "{wanted}");
        }
    }

    /// If one id is the beginning of another one, it names its own sweep.
    #[test]
    fn a_whole_id_goes_before_a_longer_one() {
        let short = sweep("digits", "1");
        let long = sweep(short.id.as_str(), "1");
        let all = vec![long, short.clone()];
        assert_eq!(chosen(short.id.as_str(), all).unwrap().id, short.id);
    }
}
