//! Makes the plan of a sweep from its file, with the deployment's values where the file has none.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Context, data, secrets, stall};
use crate::settings::{KEEP_FAILED_SECONDS, WORKSPACE_GIB};
use spotsweep_protocol::claim::{Patterns, Preparation};
use spotsweep_records::sweep::{EarlyStopping, Plan, Prepared, Ranking};
use spotsweep_records::workspace::{Keep, Origin, WorkspacePlan};
use spotsweep_sweep_file::{
    self as sweep_file, ATTEMPTS, Folder, Goal, InitializationRate, Rejected, Resources, SecretSource, Settings, Start,
    SweepFile, Warning, Workspace,
};

/// Returns the plan of a file.
///
/// # Errors
/// Returns a problem for each value that neither the file nor the deployment has.
pub(super) fn plan(file: SweepFile, context: Context<'_>) -> Result<Prepared, Rejected> {
    let mut problems = Vec::new();
    let settings = &file.settings;
    let mut named = |what: &str, key: &str, stated: &Option<String>, otherwise: &Option<String>| {
        stated.clone().or_else(|| otherwise.clone()).unwrap_or_else(|| {
            let message = format!("no {what}: the file names none, and neither does this deployment");
            problems.push(file.problem_at(key, message, format!("add `spotsweep: {{{key}: <name>}}` to the file")));
            String::new()
        })
    };
    let queue = named("job queue", "queue", &settings.queue, &context.settings.queue);
    let definition =
        named("job definition", "job_definition", &settings.job_definition, &context.settings.job_definition);
    if let Some(sweep_file::Code::Folder(Folder { folder, .. })) = &settings.code {
        let message = format!("the folder {folder:?} of `code` was not sent with the file");
        let help = "drop the file with `spotsweep submit`, which packs and sends the folder; or write \
                    `code: {sha256: …}` with the hash of a folder that was sent before (`spotsweep code ls`)";
        problems.push(file.problem_at("code", message, help.to_owned()));
    }
    problems.extend(data::misplaced(&file, &context.settings.bucket));
    problems.extend(secrets::unreachable(&file, context.settings));
    let trials = u32::try_from(file.trial_count()).unwrap_or(u32::MAX);
    let plan = Plan {
        trials,
        page_trials: context.settings.page_trials,
        queue,
        definition,
        image: settings.image.clone(),
        attempts: settings.attempts.unwrap_or(ATTEMPTS),
        timeout_seconds: settings.timeout_seconds,
        // The job definition's number is set when it is looked up.
        gpus: 0,
        stalls: stall::rule(settings.stalled),
        command: settings.command.clone(),
        resources: settings.resources.map(requirements).unwrap_or_default(),
        tags: settings.tags.clone(),
        workspace: workspace(settings.workspace.as_ref(), context),
        restores: settings.checkpoints_of.is_some(),
        preparation: preparation(settings, &context.settings.bucket),
        patterns: settings.outputs.clone().map(Patterns::from).unwrap_or_default(),
        metric: file.metric.as_ref().map(ranking),
        suggests: file.search().is_some(),
        repeats: file.repeats().cloned(),
        target: file.metric.as_ref().and_then(|metric| metric.target),
        early_stopping: file.early_terminate.clone().map(|rule| EarlyStopping {
            rule,
            unit: file.rungs_by,
            length: file.training_length(),
        }),
        metrics: file.metrics.clone().into(),
        wandb: file.wandb.clone(),
        budget: settings.budget,
        starts_all: settings.fail_fast == Some(false),
        topic: settings.notifications.as_ref().map(|notifications| notifications.topic.clone()),
        warnings: warnings(&file, context),
        hidden: file.hidden.clone(),
        parts: Plan::cut(trials),
    };
    if problems.is_empty() {
        Ok(Prepared { file: Arc::new(file), plan, disks: Vec::new() })
    } else {
        Err(Rejected { problems, warnings: plan.warnings.into_vec() })
    }
}

/// Returns what the attempts prepare. The deployment has this bucket.
fn preparation(settings: &Settings, bucket: &str) -> Option<Preparation> {
    let path = |(variable, text): (&String, &String)| (variable.clone(), SecretSource::of(text).planned(bucket));
    Preparation::new(
        settings.code.as_ref().and_then(|code| code.fetched(bucket)),
        settings.setup.clone(),
        (settings.env.clone(), settings.secrets.iter().map(path).collect()),
        settings.resources.and_then(|resources| resources.shared_memory_mib),
    )
}

/// Returns the file's warnings. A warning that depends on whether this deployment gives trials a workspace is added.
fn warnings(file: &SweepFile, context: Context<'_>) -> Box<[Warning]> {
    let has_none = file.settings.workspace.is_none() && context.settings.workspace_gib == 0;
    let long = file.long_without_checkpoints().filter(|_| has_none);
    file.warnings.iter().cloned().chain(long).collect()
}

/// Returns the plan of the workspaces. A volume or snapshot that the file names is looked up by CheckTarget.
fn workspace(wanted: Option<&Workspace>, context: Context<'_>) -> Option<WorkspacePlan> {
    let size = context.settings.workspace_gib;
    let plan = |size_gib: Option<u32>, origin, rate: Option<InitializationRate>, keep| {
        let size_gib = size_gib.unwrap_or(if size > 0 { size } else { WORKSPACE_GIB });
        let initialization_rate = rate.unwrap_or(context.settings.initialization_rate);
        Some(WorkspacePlan { size_gib, origin, keep, initialization_rate })
    };
    match wanted {
        None if size == 0 => None,
        None => plan(None, Origin::Blank, None, kept(sweep_file::Keep::default())),
        Some(Workspace::Off) => None,
        Some(Workspace::Volume { size_gib, start, initialization_rate, keep }) => {
            let origin = match start {
                Start::Blank => Origin::Blank,
                Start::Snapshot(snapshot) => Origin::Snapshot { snapshot: snapshot.clone() },
                Start::Snapshots(_) => Origin::Snapshots,
            };
            plan(*size_gib, origin, *initialization_rate, kept(*keep))
        }
        // An adopted volume is never deleted, so there is nothing to keep.
        Some(Workspace::Adopted { volume, initialization_rate }) => {
            let (volume, zone, name) = (volume.clone(), String::new(), String::new());
            plan(None, Origin::Adopted { volume, zone, name }, *initialization_rate, Keep::default())
        }
    }
}

fn kept(wanted: sweep_file::Keep) -> Keep {
    Keep {
        failed_seconds: wanted.failed_seconds.unwrap_or(KEEP_FAILED_SECONDS),
        succeeded_seconds: wanted.succeeded_seconds.unwrap_or(0),
    }
}

fn ranking(metric: &sweep_file::MetricGoal) -> Ranking {
    Ranking { name: metric.name.clone(), maximize: metric.goal == Goal::Maximize, over: metric.over }
}

/// Returns the file's resources as Batch's `resourceRequirements`, with the memory in MiB.
fn requirements(wanted: Resources) -> BTreeMap<String, String> {
    [("VCPU", wanted.vcpus), ("MEMORY", wanted.memory_mib), ("GPU", wanted.gpus)]
        .into_iter()
        .filter_map(|(kind, amount)| Some((kind.to_owned(), amount?.to_string())))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use jiff::Timestamp;
    use serde_json::json;
    use spotsweep_records::sweep::upload::{Given, Upload};

    use super::super::given;
    use super::*;

    #[test]
    fn a_secret_is_of_the_deployment_and_no_other_value_replaces_it() {
        let now = Timestamp::UNIX_EPOCH;
        let upload = json!({ "bucket": "b", "key": "sweeps/s.yaml", "fingerprint": "v", "uploaded_at": now });
        let upload: Upload = serde_json::from_value(upload).unwrap();
        let file =
            b"spotsweep: {secrets: {A: team-a}, code: {git: 'https://h/x.git', token: GIT}}\ntrials: [{lr: 1}]\n";
        let planned = |env: &str| {
            let settings = crate::settings::Settings::from_variables(|name| match name {
                "SPOTSWEEP_WORKSPACE_GIB" => Some("0".to_owned()),
                "SPOTSWEEP_BUCKET"
                | "SPOTSWEEP_CLAIM_FUNCTION"
                | "SPOTSWEEP_TRIAL_ROLE"
                | "SPOTSWEEP_PARAMETERS"
                | "SPOTSWEEP_QUEUE"
                | "SPOTSWEEP_JOB_DEFINITION" => Some("x".to_owned()),
                _unset => None,
            });
            let context = Context { settings: &settings.unwrap(), now };
            let given = Given { env: Some(env.to_owned()), ..Given::default() };
            let prepared = given::parse(&upload, file, &given, context).and_then(|file| plan(file, context));
            prepared.map(|prepared| json!(prepared.plan.preparation)).map_err(|rejected| rejected.problems)
        };
        let git = json!({ "private": { "git": "https://h/x.git" }, "token": "/spotsweep/x/GIT" });
        let env = json!({ "A": { "secret": "/spotsweep/x/team-a" }, "B": "b" });
        assert_eq!(planned(r#"{"B": "b"}"#).unwrap(), json!({ "code": git, "env": env }));
        let problems = planned(r#"{"A": "b"}"#).unwrap_err();
        assert!(problems.len() == 1 && problems[0].message.contains("`A` is in the object's metadata"), "{problems:?}");
    }
}
