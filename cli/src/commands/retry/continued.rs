//! What `retry --continue` starts from: the workspaces that are kept of trials that have ended.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use spotsweep_control_plane::sweep::Plan;
use spotsweep_control_plane::trial::Trial;
use spotsweep_control_plane::workspace::Origin;
use spotsweep_protocol::failure::Failure;
use spotsweep_sweep_file::{InitializationRate, Keep, Settings, Start, Workspace};

/// What is deleted sooner than this is not continued: the new sweep has to be accepted by then.
const LEAST: SignedDuration = SignedDuration::from_mins(5);

/// Replaces what the workspaces start from.
///
/// # Errors
/// A trial of which no snapshot is kept, with what to do.
pub(super) fn start(
    settings: &Settings,
    plan: &Plan,
    trials: &[Trial],
    indices: &BTreeSet<u32>,
    now: Timestamp,
) -> Result<Settings, Failure> {
    let held: BTreeMap<u32, &Trial> = trials.iter().map(|trial| (trial.index, trial)).collect();
    if let Some(Origin::Adopted { volume, .. }) = plan.workspace.as_ref().map(|workspace| &workspace.origin) {
        return Err(Failure::new(format!(
            "the trial has a volume of yours, {volume}, which is still there: `spotsweep retry` without --continue \
             goes on from what is on it"
        )));
    }
    let mut snapshots = Vec::new();
    let mut missing = Vec::new();
    for index in indices {
        match snapshot(held.get(index).copied(), now) {
            Ok(snapshot) => snapshots.push(snapshot),
            Err(why) => missing.push(format!("trial {index}: {why}")),
        }
    }
    if !missing.is_empty() {
        let missing = missing.join("\n  ");
        return Err(Failure::new(format!(
            "nothing was started, because these trials have nothing to continue from:\n  {missing}\nname the others by \
             their index, and retry these without --continue"
        )));
    }
    let (size_gib, initialization_rate, keep) = own(settings);
    let size_gib = size_gib.or(plan.workspace.as_ref().map(|workspace| workspace.size_gib));
    let workspace = Workspace::Volume { size_gib, start: Start::Snapshots(snapshots), initialization_rate, keep };
    Ok(Settings { workspace: Some(workspace), ..settings.clone() })
}

/// What the file says of new volumes.
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
