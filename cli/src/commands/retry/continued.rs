//! Decides what `retry --continue` starts from: the kept workspaces of ended trials, or the collected checkpoints of
//! trials that have succeeded.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use spotsweep_protocol::claim::Collected;
use spotsweep_protocol::failure::Failure;
use spotsweep_records::trial::{Standing, Trial};
use spotsweep_records::workspace::Origin;
use spotsweep_sweep_file::{InitializationRate, Keep, Settings, Start, Workspace};

use super::collected;
use crate::out;
use crate::sweeps::Found;

/// A workspace that is deleted sooner than this is not continued, because the new sweep must be accepted by then.
const LEAST: SignedDuration = SignedDuration::from_mins(5);

/// What each trial goes on from, or why it cannot.
type Each<T> = BTreeMap<u32, Result<T, String>>;

/// Replaces what the trials start from. If each of them has a kept workspace, these are used, because they have all
/// checkpoints.
///
/// # Errors
/// Nothing is kept or collected of a trial. The message says what to do.
pub(super) async fn start(
    found: &Found,
    settings: &Settings,
    trials: &[Trial],
    indices: &BTreeSet<u32>,
    now: Timestamp,
) -> Result<Settings, Failure> {
    let plan = found.plan()?;
    if let Some(Origin::Adopted { volume, .. }) = plan.workspace.as_ref().map(|workspace| &workspace.origin) {
        return Err(Failure::new(format!(
            "the trial has a volume of yours, {volume}, which is still there: `spotsweep retry` without --continue \
             goes on from what is on it"
        )));
    }
    let held: BTreeMap<u32, &Trial> = trials.iter().map(|trial| (trial.index, trial)).collect();
    let kept: Each<String> = indices.iter().map(|index| (*index, snapshot(held.get(index).copied(), now))).collect();
    if let Some(snapshots) = all(&kept) {
        let size_gib = plan.workspace.as_ref().map(|workspace| workspace.size_gib);
        return Ok(from_snapshots(settings, size_gib, snapshots));
    }
    let succeeded = |index: &u32| held.get(index).is_some_and(|trial| trial.standing() == Standing::Succeeded);
    let successes = indices.iter().copied().filter(|index| succeeded(index)).collect();
    let mut collected = collected::look_up(found, &held, &successes).await?;
    for (index, kept) in &kept {
        let why = || kept.as_ref().err().cloned().unwrap_or_else(|| "it has not succeeded".to_owned());
        collected.entry(*index).or_insert_with(|| Err(why()));
    }
    match all(&collected) {
        Some(each) => {
            out::note(format_args!("{}", collected::cost(&each)));
            Ok(from_collected(found, settings, indices))
        }
        None => Err(nothing(found, &kept, &collected)),
    }
}

/// The values if there is one for each trial.
fn all<T: Clone>(each: &Each<T>) -> Option<Vec<T>> {
    each.values().map(|of| of.as_ref().ok().cloned()).collect()
}

fn nothing(found: &Found, kept: &Each<String>, collected: &Each<Collected>) -> Failure {
    let why = |(index, collected): (&u32, &Result<Collected, String>)| match (&kept[index], collected) {
        (Err(_), Err(why)) => Some(format!("trial {index}: {why}")),
        _has_one => None,
    };
    let missing: Vec<String> = collected.iter().filter_map(why).collect();
    if missing.is_empty() {
        let id = &found.sweep.id;
        let group = |of_kept: bool| {
            let those = kept.iter().filter(|(_, kept)| kept.is_ok() == of_kept).map(|(index, _)| index.to_string());
            format!("spotsweep retry {id} {} --continue", those.collect::<Vec<_>>().join(" "))
        };
        return Failure::new(format!(
            "nothing was started: some of these trials go on from kept workspaces and others from collected checkpoints, \
             and one sweep cannot have both. Retry them apart:\n  {}\n  {}",
            group(true),
            group(false)
        ));
    }
    Failure::new(format!(
        "nothing was started, because these trials have nothing to continue from:\n  {}\nname the others by their index, \
         and retry these without --continue",
        missing.join("\n  ")
    ))
}

fn from_snapshots(settings: &Settings, plan_gib: Option<u32>, snapshots: Vec<String>) -> Settings {
    let (size_gib, initialization_rate, keep) = own(settings);
    let (size_gib, start) = (size_gib.or(plan_gib), Start::Snapshots(snapshots));
    let workspace = Workspace::Volume { size_gib, start, initialization_rate, keep };
    Settings { workspace: Some(workspace), checkpoints_of: None, ..settings.clone() }
}

/// The workspaces do not start from other trials' snapshots, because these have checkpoints. A snapshot for all trials
/// has the datasets, so it is used.
fn from_collected(found: &Found, settings: &Settings, indices: &BTreeSet<u32>) -> Settings {
    let mut settings = settings.clone();
    if let Some(Workspace::Volume { start: start @ Start::Snapshots(_), .. }) = &mut settings.workspace {
        *start = Start::Blank;
    }
    let id = &found.sweep.id;
    Settings { checkpoints_of: Some(indices.iter().map(|index| (id.clone(), *index)).collect()), ..settings }
}

/// What a retry without --continue starts from: the same as the trials that it repeats.
pub(super) fn again(settings: &Settings, indices: &BTreeSet<u32>) -> Settings {
    let mut settings = settings.clone();
    if let Some(Workspace::Volume { start: Start::Snapshots(snapshots), .. }) = &mut settings.workspace {
        *snapshots = picked(snapshots, indices);
    }
    settings.checkpoints_of = settings.checkpoints_of.map(|trials| picked(&trials, indices));
    settings
}

fn picked<T: Clone>(of_all: &[T], indices: &BTreeSet<u32>) -> Vec<T> {
    indices.iter().filter_map(|index| of_all.get(*index as usize).cloned()).collect()
}

/// What the file says about new volumes.
fn own(settings: &Settings) -> (Option<u32>, Option<InitializationRate>, Keep) {
    match &settings.workspace {
        Some(Workspace::Volume { size_gib, initialization_rate, keep, .. }) => (*size_gib, *initialization_rate, *keep),
        Some(Workspace::Off | Workspace::Adopted { .. }) | None => (None, None, Keep::default()),
    }
}

fn snapshot(trial: Option<&Trial>, now: Timestamp) -> Result<String, String> {
    let Some(trial) = trial else { return Err("it has not started".to_owned()) };
    if !trial.is_over() {
        return Err(format!("it has not ended, it is {}", trial.standing().name()));
    }
    let Some(workspace) = &trial.workspace else { return Err("it has never had a workspace".to_owned()) };
    let kept =
        workspace.kept().ok_or("its workspace is deleted; `keep_failed` and `keep_succeeded` set when that is")?;
    if kept.until.duration_since(now) < LEAST {
        return Err(format!("its workspace is about to be deleted, at {}", kept.until));
    }
    let pending = || "its snapshot is not complete yet; try again in some minutes".to_owned();
    kept.snapshot.map(str::to_owned).ok_or_else(pending)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_starts_from_what_its_trials_have_started_from() {
        let text =
            "spotsweep: {workspace: {snapshots: [snap-0a, snap-0b, snap-0c]}}\ntrials: [{a: 1}, {a: 2}, {a: 3}]\n";
        let restored =
            "spotsweep: {checkpoints_of: [old-0123456789ab/4, old-0123456789ab/7]}\ntrials: [{a: 1}, {a: 2}]\n";
        let again = |text: &str, indices: &[u32]| {
            let file = spotsweep_sweep_file::parse("a", "v", text.as_bytes());
            let file = file.unwrap_or_else(|problems| unreachable!("{problems:?}"));
            again(&file.settings, &indices.iter().copied().collect())
        };
        let settings = again(text, &[0, 2]);
        let expected = Start::Snapshots(vec!["snap-0a".to_owned(), "snap-0c".to_owned()]);
        assert!(matches!(settings.workspace, Some(Workspace::Volume { start, .. }) if start == expected));
        let settings = again(restored, &[1]);
        let named: Vec<String> =
            settings.checkpoints_of.iter().flatten().map(|(sweep, index)| format!("{sweep}/{index}")).collect();
        assert_eq!(named, ["old-0123456789ab/7"]);
    }
}
