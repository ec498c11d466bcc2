//! A sweep file that says what another says, but for its trials.

use serde_json::{Map, Value, json};
use spotsweep_protocol::claim::TrialLine;
use spotsweep_sweep_file::{
    Budget, Code, Goal, InitializationRate, MetricGoal, Notifications, Outputs, Resources, Settings, Stalled, Start,
    SweepFile, Workspace,
};

/// The file's text: a list of trials with the original's settings, metric and name. It is YAML that could be JSON.
pub(super) fn text(original: &SweepFile, trials: &[TrialLine], comment: &str) -> String {
    let mut text = format!("# {comment}\n");
    if let Some(name) = &original.name {
        text.push_str(&format!("name: {}\n", json!(name)));
    }
    if let Some(MetricGoal { name, goal, over, target }) = &original.metric {
        let goal = match goal {
            Goal::Minimize => "minimize",
            Goal::Maximize => "maximize",
        };
        let fields = [("name", json!(name)), ("goal", json!(goal)), ("over", json!(over)), ("target", json!(target))];
        let metric = present(fields);
        text.push_str(&format!("metric: {metric}\n"));
    }
    let settings = settings(&original.settings);
    if !settings.is_empty() {
        text.push_str("spotsweep:\n");
        settings.iter().for_each(|(key, value)| text.push_str(&format!("  {key}: {value}\n")));
    }
    text.push_str("trials:\n");
    for TrialLine { index, parameters } in trials {
        text.push_str(&format!("  - {}  # trial {index}\n", Value::Object(parameters.clone())));
    }
    text
}

/// What stands under `spotsweep:`. Every setting is named here, so that none can be forgotten.
fn settings(settings: &Settings) -> Map<String, Value> {
    let Settings {
        job_definition,
        queue,
        attempts,
        timeout_seconds,
        stalled,
        command,
        resources,
        workspace,
        code,
        outputs,
        notifications,
        budget,
        tags,
    } = settings;
    let all = [
        ("job_definition", job_definition.as_ref().map(|name| json!(name))),
        ("queue", queue.as_ref().map(|name| json!(name))),
        ("attempts", attempts.map(Value::from)),
        ("timeout", timeout_seconds.map(Value::from)),
        (
            "stalled",
            stalled.map(|stalled| match stalled {
                Stalled::Off => json!("off"),
                Stalled::After { seconds } => json!(seconds),
            }),
        ),
        ("command", command.as_ref().map(|command| json!(command))),
        (
            "resources",
            resources.map(|Resources { vcpus, memory_mib, gpus }| {
                let memory = memory_mib.map(|mib| format!("{mib}MiB"));
                present([("vcpus", json!(vcpus)), ("memory", json!(memory)), ("gpus", json!(gpus))])
            }),
        ),
        ("workspace", workspace.as_ref().map(workspace_value)),
        (
            "code",
            code.as_ref().map(|Code { git, reference }| present([("git", json!(git)), ("ref", json!(reference))])),
        ),
        (
            "outputs",
            outputs.as_ref().map(|Outputs { include, exclude }| {
                let listed = |patterns: &Vec<String>| if patterns.is_empty() { Value::Null } else { json!(patterns) };
                present([("include", listed(include)), ("exclude", listed(exclude))])
            }),
        ),
        ("notifications", notifications.as_ref().map(|Notifications { topic }| json!({ "topic": topic }))),
        (
            "budget",
            budget.map(|Budget { max_usd, max_hours }| {
                present([("max_usd", json!(max_usd)), ("max_hours", json!(max_hours))])
            }),
        ),
        ("tags", (!tags.is_empty()).then(|| json!(tags))),
    ];
    all.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

fn workspace_value(workspace: &Workspace) -> Value {
    match workspace {
        Workspace::Off => json!("off"),
        Workspace::Volume { size_gib, start, initialization_rate, keep } => {
            let size = size_gib.map(|gib| format!("{gib}GiB"));
            let from = match start {
                Start::Blank => ("snapshot", Value::Null),
                Start::Snapshot(snapshot) => ("snapshot", json!(snapshot)),
                Start::Snapshots(snapshots) => ("snapshots", json!(snapshots)),
            };
            let failed = ("keep_failed", json!(keep.failed_seconds));
            let succeeded = ("keep_succeeded", json!(keep.succeeded_seconds));
            present([("size", json!(size)), from, rate(*initialization_rate), failed, succeeded])
        }
        Workspace::Adopted { volume, initialization_rate } => {
            present([("volume", json!(volume)), rate(*initialization_rate)])
        }
    }
}

/// As it is written: 0 is EC2's own rate.
fn rate(of: Option<InitializationRate>) -> (&'static str, Value) {
    ("initialization_rate", json!(of.map(|rate| rate.unwrap_or(0))))
}

/// An object of the fields that are there.
fn present<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let there = fields.into_iter().filter(|(_, value)| !value.is_null());
    Value::Object(there.map(|(key, value)| (key.to_owned(), value)).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use spotsweep_sweep_file::parse;

    use super::*;

    const EVERYTHING: &str = r#"
program: train.py
name: "all: of it"
method: grid
metric: {name: val_loss}
command: ["${env}", "${interpreter}", "-u", "${program}", "${args}"]
parameters:
  lr: {values: [1e-4, 0.1, 1.0, 12345678901234567]}
  text: {values: ["off", "12:30", "a: b, [c] # d", "é\n\"\\", "", "0x10", ~, true]}
  optimizer: {parameters: {kind: {value: [1, {deep: "yes"}]}}}
spotsweep:
  job_definition: arn:aws:batch:us-east-1:123456789012:job-definition/train:3
  queue: gpu
  attempts: 7
  timeout: 90m
  stalled: 30m
  resources: {vcpus: 4, memory: 16GiB, gpus: 1}
  workspace: {size: 100GiB, snapshot: snap-0123456789abcdef0, keep_failed: 12h, keep_succeeded: 0}
  code: {git: "https://github.com/me/train.git", ref: v1.2}
  outputs: {include: ["model/*.pt"], exclude: [tmp/**, "*.log"]}
  notifications: {topic: "arn:aws:sns:us-east-1:123456789012:done"}
  budget: {max_usd: 12.5, max_hours: 3}
  tags: {team: vision, cost: 007}
"#;

    fn lines(file: &SweepFile) -> Vec<TrialLine> {
        (0..).zip(file.trials()).map(|(index, parameters)| TrialLine { index, parameters }).collect()
    }

    #[test]
    fn a_retry_says_what_the_original_says() {
        let settings = |rest: &str| format!("spotsweep: {{{rest}}}\ntrials: [{{lr: 0.1}}]\n");
        let files = [
            EVERYTHING.to_owned(),
            "- {lr: 0.1, units: 64}\n- {lr: 1e-2}\n".to_owned(),
            "program: train.py\nmethod: grid\nparameters: {lr: {values: [1, 2]}}\n".to_owned(),
            settings("workspace: off"),
            settings("stalled: off"),
            settings("workspace: {}"),
            settings("workspace: {snapshots: [snap-0a], keep_failed: 0}"),
            settings("workspace: {volume: my-volume}"),
            settings("resources: {}, outputs: {}, code: {git: a}, budget: {max_usd: 1}"),
        ];
        for text_before in files {
            let before = parse("before", "v", text_before.as_bytes())
                .unwrap_or_else(|problems| unreachable!("{text_before}: {problems:?}"));
            let text = text(&before, &lines(&before), "once more");
            let after =
                parse("after", "w", text.as_bytes()).unwrap_or_else(|problems| unreachable!("{text}: {problems:?}"));
            assert_eq!(after.settings, before.settings, "{text}");
            assert_eq!((&after.metric, &after.name), (&before.metric, &before.name));
            assert_eq!(lines(&after), lines(&before), "{text}");
        }
    }
}
