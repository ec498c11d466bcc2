//! Plays one trial through `decide`.

use jiff::{SignedDuration, Timestamp};
use spotsweep_control_plane::command::{Command, Reads};
use spotsweep_control_plane::decide::{Answer, Decision, decide};
use spotsweep_control_plane::input::{Followup, Input};
use spotsweep_control_plane::settings::{LEASE, POLL, RECHECK, Settings};
use spotsweep_control_plane::store::{History, Versioned, View};
use spotsweep_protocol::claim::{Grant, Reply};
use spotsweep_protocol::ids::SweepId;
use spotsweep_protocol::secret::Secret;
use spotsweep_records::sweep::pages::PAGE_TRIALS;
use spotsweep_records::sweep::upload::Upload;
use spotsweep_records::sweep::{Part, Plan, Stage, Sweep};
use spotsweep_records::workspace::{Call, Keep, Origin, WorkspacePlan};
use spotsweep_sweep_file::{Defaults, Hidden};

use super::words::{self, JOB};
use crate::nouns;

/// The trial with its sweep, the settings and the virtual time.
pub(super) struct ScenarioRunner {
    sweep: SweepId,
    view: View,
    settings: Settings,
    now: Timestamp,
}

impl ScenarioRunner {
    /// Parses `a trial`, `a trial from snap-…`, `a trial that adopts vol-… in ZONE` or `a trial that restores another`.
    /// Each may end with `, kept for SECONDS`.
    pub(super) fn given(text: &str) -> Result<Self, String> {
        let (text, kept) = text.split_once(", kept for ").unwrap_or((text, "0"));
        let seconds = kept.trim_end_matches('s').parse().map_err(|_| "kept for how many seconds?")?;
        let keep = Keep { failed_seconds: seconds, succeeded_seconds: 0 };
        let words: Vec<&str> = text.split_whitespace().collect();
        let origin = match words.as_slice() {
            ["a", "trial"] | ["a", "trial", "that", "restores", "another"] => Origin::Blank,
            ["a", "trial", "from", snapshot] => Origin::Snapshot { snapshot: (*snapshot).into() },
            ["a", "trial", "that", "adopts", volume, "in", zone] => {
                Origin::Adopted { volume: (*volume).into(), zone: (*zone).into(), name: "data".into() }
            }
            _ => return Err("not a trial".into()),
        };
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1_800_000_000);
        let settings = Settings {
            bucket: "b".into(),
            queue: None,
            job_definition: None,
            claim_function: "trial-claim".into(),
            trial_role: "trial".into(),
            parameters: "arn:aws:ssm:us-east-1:000000000000:parameter".into(),
            allowed_secrets: Vec::new(),
            defaults: Defaults::default(),
            workspace_gib: 20,
            initialization_rate: None,
            poll: POLL,
            page_trials: PAGE_TRIALS,
            lease: LEASE,
            recheck: RECHECK,
        };
        let mut record = sweep(origin, keep, now)?;
        record.plan.iter_mut().for_each(|plan| plan.restores = words.contains(&"restores"));
        let sweep = record.id.clone();
        let view = View {
            sweep: Some(Versioned { record, version: 1, due: None, recent: History::new() }),
            ..View::default()
        };
        Ok(Self { sweep, view, settings, now })
    }

    /// Applies an event, and returns what follows.
    pub(super) fn when(&mut self, text: &str) -> Result<Vec<String>, String> {
        if let ["wait", seconds] = text.split_whitespace().collect::<Vec<_>>().as_slice() {
            let seconds = seconds.trim_end_matches('s').parse().map_err(|_| "wait how many seconds?")?;
            self.now += SignedDuration::from_secs(seconds);
            return Ok(vec![]);
        }
        let event = words::input(&self.sweep, text)?;
        let (before, notes) = (self.stage(), self.notes());
        let decision = self.decided(&event);
        let mut follows = match &decision.answer {
            Answer::Advance(_) => vec![],
            Answer::Ignore(_) => vec!["ignore".to_owned()],
            Answer::Illegal(_) => vec!["illegal".to_owned()],
        };
        if let Some(change) = decision.change {
            self.view.apply(change, History::new());
        }
        let stage = self.stage();
        if stage != before {
            follows.push(format!("stage {stage}"));
        }
        follows.extend((notes..self.notes()).map(|_| "note".to_owned()));
        follows.extend(decision.commands.iter().map(command));
        follows.extend(decision.reply.iter().map(reply));
        Ok(follows)
    }

    /// The decision about an event. The sweep's record first takes what a request shows of its instance; then the
    /// request is decided.
    fn decided(&mut self, event: &Input) -> Decision {
        let mut decision = decide(nouns::ALL, &self.view, event, &self.settings, self.now);
        while let Some(noted) = decision.next.pop_if(|next| matches!(next, Followup::Requested(_))) {
            decision.change.into_iter().for_each(|change| self.view.apply(change, History::new()));
            decision = decide(nouns::ALL, &self.view, &Input::Followup(noted), &self.settings, self.now);
        }
        decision
    }

    /// Number of notes for people about fall-backs. These tests do not check the wording.
    fn notes(&self) -> usize {
        let trial = self.view.trial.as_ref().map(|held| &held.record);
        trial.and_then(|trial| trial.workspace.as_ref()).map_or(0, |workspace| workspace.notes.len())
    }

    fn stage(&self) -> String {
        use spotsweep_records::workspace::Stage;
        let trial = self.view.trial.as_ref().map(|held| &held.record);
        let Some(workspace) = trial.and_then(|trial| trial.workspace.as_ref()) else { return "none".into() };
        let volume = workspace.volume.id.as_deref().unwrap_or("a volume");
        let zone = &workspace.volume.zone;
        match &workspace.stage {
            Stage::Attaching { to, .. } => format!("attaching {volume} to {}", to.instance),
            Stage::Attached { to, mounted, .. } => {
                format!("attached {volume} to {}{}", to.instance, if *mounted { ", mounted" } else { "" })
            }
            stage @ (Stage::Creating
            | Stage::Detaching { .. }
            | Stage::Detached
            | Stage::AwaitingSnapshot
            | Stage::Kept { .. }
            | Stage::Disposing
            | Stage::Gone) => format!("{} {volume} in {zone}", stage.name()),
        }
    }
}

fn sweep(origin: Origin, keep: Keep, now: Timestamp) -> Result<Sweep, String> {
    let upload = serde_json::json!({ "bucket": "b", "key": "sweeps/s.yaml", "fingerprint": "v", "uploaded_at": now });
    let upload: Upload = serde_json::from_value(upload).map_err(|error| error.to_string())?;
    let mut sweep = Sweep::new(upload);
    sweep.stage = Stage::Running;
    sweep.claim_token = Some(Secret::of(words::TOKEN));
    sweep.plan = Some(Plan {
        trials: 1,
        page_trials: PAGE_TRIALS,
        queue: "q".into(),
        definition: "d:1".into(),
        image: None,
        attempts: 50,
        timeout_seconds: None,
        gpus: 0,
        stalls: Default::default(),
        command: None,
        resources: Default::default(),
        tags: Default::default(),
        workspace: Some(WorkspacePlan { size_gib: 20, origin, keep, initialization_rate: None }),
        restores: false,
        preparation: None,
        patterns: Default::default(),
        metric: None,
        suggests: false,
        repeats: None,
        target: None,
        early_stopping: None,
        metrics: Default::default(),
        wandb: Default::default(),
        budget: None,
        starts_all: false,
        topic: None,
        warnings: Box::default(),
        hidden: Hidden::default(),
        parts: vec![Part { trials: 1, job: Some(JOB.into()), ended: None }],
    });
    Ok(sweep)
}

fn command(command: &Command) -> String {
    let name = command.name();
    match command {
        Command::Workspace { call, .. } => match call {
            Call::CreateVolume(new) => match &new.snapshot {
                Some(snapshot) => format!("command {name} {} in {} from {snapshot}", new.operation, new.zone),
                None => format!("command {name} {} in {}", new.operation, new.zone),
            },
            Call::AttachVolume { volume, instance, device } => {
                format!("command {name} {volume} to {instance} as {device}")
            }
            Call::DetachVolume { volume, force } => {
                format!("command {name} {volume}{}", if *force { " by force" } else { "" })
            }
            Call::TakeSnapshot { operation, volume, .. } => format!("command {name} {operation} of {volume}"),
            Call::FindVolume { operation } | Call::FindSnapshot { operation } => format!("command {name} {operation}"),
            Call::DescribeVolume(id)
            | Call::AwaitDetached(id)
            | Call::DeleteVolume(id)
            | Call::DescribeSnapshot(id)
            | Call::DeleteSnapshot(id) => format!("command {name} {id}"),
        },
        Command::IssueCredentials { reads: Reads { restores: Some(of), .. }, .. } => {
            format!("command {name} that read {of}")
        }
        other => format!("command {}", other.name()),
    }
}

fn reply(reply: &Reply) -> String {
    let name = match reply {
        Reply::Granted(Grant { restores: Some(of), .. }) => return format!("reply granted with {}", of.prefix),
        Reply::Granted(_) => "granted",
        Reply::Access(_) => "access",
        Reply::Waiting { .. } => "waiting",
        Reply::Unavailable { .. } => "unavailable",
        Reply::Accepted {} => "accepted",
        Reply::Stop { .. } => "stop",
        Reply::Refused { .. } => "refused",
    };
    format!("reply {name}")
}
