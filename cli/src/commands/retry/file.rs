//! Makes a sweep file that is equal to another one except for its trials.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use spotsweep_protocol::claim::{TrialLine, WandbPlace};
use spotsweep_protocol::ids::SweepId;
use spotsweep_protocol::rungs::Unit;
use spotsweep_sweep_file::{
    Budget, Code, DataSource, Folder, Goal, InitializationRate, MetricGoal, Notifications, Outputs, Repeats, Resources,
    Settings, Stalled, Start, SweepFile, Workspace,
};

/// Trials that are all repeats of some parameter sets, so that the new file can use `repeats`.
#[derive(Debug)]
pub(super) struct Repeated {
    /// Number of sets, which are those of the first trials.
    sets: usize,
    parameter: String,
    values: Vec<Value>,
}

impl Repeated {
    /// `None` if a set lacks a repeat that another one has.
    pub(super) fn of(trials: &[TrialLine], repeats: &Repeats) -> Option<Self> {
        let parameter = &repeats.parameter;
        let mut values: Vec<Value> = Vec::new();
        for TrialLine { parameters, .. } in trials {
            let value = parameters.get(parameter)?;
            if values.last() != Some(value) {
                values.push(value.clone());
            }
        }
        let sets = trials.len().checked_div(values.len())?;
        let of = Repeats { parameter: parameter.clone(), values: values.clone(), sets: sets as u64 };
        let is_repeat = |(index, trial): (usize, &TrialLine)| {
            let mut expected = trials.get(index % sets.max(1))?.parameters.clone();
            of.complete(index as u64, &mut expected);
            Some(expected == trial.parameters)
        };
        let is_whole = sets * values.len() == trials.len() && values.len() <= repeats.values.len();
        let all = is_whole && trials.iter().enumerate().all(|each| is_repeat(each) == Some(true));
        all.then(|| Self { sets, parameter: parameter.clone(), values })
    }
}

/// The file's text: a list of trials, and everything else from the original. The YAML is also JSON.
pub(super) fn text(original: &SweepFile, trials: &[TrialLine], repeated: Option<&Repeated>, comment: &str) -> String {
    let mut text = format!("# {comment}\n");
    let WandbPlace { project, entity } = &original.wandb;
    for (key, label) in [("name", &original.name), ("project", project), ("entity", entity)] {
        if let Some(label) = label {
            text.push_str(&format!("{key}: {}\n", json!(label)));
        }
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
    if let Some(rule) = &original.early_terminate_written {
        text.push_str(&format!("early_terminate: {}\n", json!(rule)));
    }
    if !original.metrics.is_empty() {
        text.push_str(&format!("metrics: {}\n", json!(original.metrics)));
    }
    let mut settings = settings(&original.settings);
    if original.rungs_by != Unit::default() {
        settings.insert("rungs_by".to_owned(), json!(original.rungs_by));
    }
    if let Some(Repeated { parameter, values, .. }) = repeated {
        settings.insert("repeats".to_owned(), json!({ "parameter": parameter, "values": values }));
    }
    if !settings.is_empty() {
        text.push_str("spotsweep:\n");
        settings.iter().for_each(|(key, value)| text.push_str(&format!("  {key}: {value}\n")));
    }
    text.push_str("trials:\n");
    for TrialLine { index, parameters } in trials.iter().take(repeated.map_or(usize::MAX, |of| of.sets)) {
        let mut parameters = parameters.clone();
        if let Some(of) = repeated {
            parameters.shift_remove(&of.parameter);
        }
        text.push_str(&format!("  - {}  # trial {index}\n", Value::Object(parameters)));
    }
    text
}

/// The content of `spotsweep:`. Every setting is named here, so that none can be forgotten.
fn settings(settings: &Settings) -> Map<String, Value> {
    let Settings {
        job_definition,
        image,
        queue,
        attempts,
        timeout_seconds,
        stalled,
        command,
        resources,
        workspace,
        code,
        setup,
        env,
        secrets,
        data,
        outputs,
        checkpoints_of,
        notifications,
        budget,
        fail_fast,
        tags,
    } = settings;
    let trial = |(sweep, index): &(SweepId, u32)| format!("{sweep}/{index}");
    let all = [
        ("job_definition", job_definition.as_ref().map(|name| json!(name))),
        ("image", image.as_ref().map(|name| json!(name))),
        ("queue", queue.as_ref().map(|name| json!(name))),
        ("attempts", attempts.map(Value::from)),
        ("timeout", timeout_seconds.map(Value::from)),
        ("stalled", stalled.map(stalled_value)),
        ("command", command.as_ref().map(|command| json!(command))),
        (
            "resources",
            resources.map(|Resources { vcpus, memory_mib, gpus, shared_memory_mib }| {
                let size = |mib: Option<u32>| json!(mib.map(|mib| format!("{mib}MiB")));
                let (memory, shared) = (size(memory_mib), size(shared_memory_mib));
                present([("vcpus", json!(vcpus)), ("memory", memory), ("gpus", json!(gpus)), ("shared_memory", shared)])
            }),
        ),
        ("workspace", workspace.as_ref().map(workspace_value)),
        ("code", code.as_ref().map(code_value)),
        ("setup", (!setup.is_empty()).then(|| json!(setup))),
        ("env", (!env.is_empty()).then(|| json!(env))),
        ("secrets", (!secrets.is_empty()).then(|| json!(secrets))),
        ("data", (!data.is_empty()).then(|| data_value(data))),
        (
            "outputs",
            outputs.as_ref().map(|Outputs { include, exclude, checkpoints }| {
                let listed = |patterns: &Vec<String>| if patterns.is_empty() { Value::Null } else { json!(patterns) };
                let of =
                    [("include", listed(include)), ("exclude", listed(exclude)), ("checkpoints", json!(checkpoints))];
                present(of)
            }),
        ),
        ("checkpoints_of", checkpoints_of.as_ref().map(|trials| trials.iter().map(trial).collect())),
        ("notifications", notifications.as_ref().map(|Notifications { topic }| json!({ "topic": topic }))),
        (
            "budget",
            budget.map(|Budget { max_usd, max_hours }| {
                present([("max_usd", json!(max_usd)), ("max_hours", json!(max_hours))])
            }),
        ),
        ("fail_fast", fail_fast.map(|is_on| json!(if is_on { "on" } else { "off" }))),
        ("tags", (!tags.is_empty()).then(|| json!(tags))),
    ];
    all.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

/// The code as a sweep file names it.
pub(crate) fn code_value(code: &Code) -> Value {
    match code {
        Code::Git { git, reference, token } => {
            present([("git", json!(git)), ("ref", json!(reference)), ("token", json!(token))])
        }
        Code::Packed { sha256 } => json!({ "sha256": sha256 }),
        Code::Folder(Folder { folder, include, exclude }) => {
            json!({ "folder": folder, "include": include, "exclude": exclude })
        }
    }
}

fn data_value(data: &BTreeMap<String, DataSource>) -> Value {
    let value = |source: &DataSource| match (source.url(), source.unpack) {
        (url, true) => json!({ "from": url, "unpack": true }),
        (url, false) => json!(url),
    };
    data.iter().map(|(name, source)| (name.as_str(), value(source))).collect()
}

fn stalled_value(stalled: Stalled) -> Value {
    match stalled {
        Stalled::Off => json!("off"),
        Stalled::After { seconds } => json!(seconds),
    }
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

/// The rate as the file has it. 0 is EC2's own rate.
fn rate(of: Option<InitializationRate>) -> (&'static str, Value) {
    ("initialization_rate", json!(of.map(|rate| rate.unwrap_or(0))))
}

/// An object of the fields that have a value.
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
metric: {name: val_loss, goal: maximize, target: 0.5, over: best}
early_terminate: {type: hyperband, max_iter: 27, s: 2, eta: 3.0, strict: no, patience: 3}
metrics: [{name: val_loss, regex: 'loss "is": (\S+)'}]
command: ["${env}", "${interpreter}", "-u", "${program}", "${args}"]
parameters:
  lr: {values: [1e-4, 0.1, 1.0, 12345678901234567]}
  text: {values: ["off", "12:30", "a: b, [c] # d", "é\n\"\\", "", "0x10", ~, true]}
  optimizer: {parameters: {kind: {value: [1, {deep: "yes"}]}}}
spotsweep:
  job_definition: arn:aws:batch:us-east-1:123456789012:job-definition/train:3
  image: me/train:2
  queue: gpu
  attempts: 7
  timeout: 90m
  stalled: 30m
  resources: {vcpus: 4, memory: 16GiB, gpus: 1, shared_memory: 2GiB}
  workspace: {size: 100GiB, snapshot: snap-0123456789abcdef0, keep_failed: 12h, keep_succeeded: 0}
  code: {git: "https://github.com/me/train.git", ref: v1.2, token: GIT_TOKEN}
  setup: [pip install -r requirements.txt, "make\n"]
  env: {HF_HOME: /data, N: "010", YES: yes}
  secrets: {WANDB_API_KEY: team-wandb}
  data: {imagenet: "s3://bucket/image net/", wiki: {from: "s3://bucket/wiki.tar.zst", unpack: true}, all: "s3://bucket"}
  outputs: {include: ["model/*.pt"], exclude: [tmp/**, "*.log"]}
  notifications: {topic: "arn:aws:sns:us-east-1:123456789012:done"}
  budget: {max_usd: 12.5, max_hours: 3}
  tags: {team: vision, cost: 007}
  rungs_by: step
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
            settings("workspace: {snapshot: snap-0a}, checkpoints_of: [old-0123456789ab/4]"),
            settings("rungs_by: reports"),
            settings("code: {folder: ../a, exclude: [b]}, setup: make"),
            settings(&format!("code: {{sha256: {}}}", "0a".repeat(32))),
            "project: p\nentity: \"1\"\ntrials: [{lr: 0.1}]\n".to_owned(),
            settings("resources: {}, outputs: {}, code: {git: a}, budget: {max_usd: 1}"),
        ];
        for text_before in files {
            let before = parse("before", "v", text_before.as_bytes())
                .unwrap_or_else(|problems| unreachable!("{text_before}: {problems:?}"));
            let text = text(&before, &lines(&before), None, "once more");
            let after =
                parse("after", "w", text.as_bytes()).unwrap_or_else(|problems| unreachable!("{text}: {problems:?}"));
            assert_eq!(after.settings, before.settings, "{text}");
            assert_eq!((&after.metric, &after.name), (&before.metric, &before.name));
            assert_eq!((&after.metrics, after.rungs_by), (&before.metrics, before.rungs_by), "{text}");
            assert_eq!(after.early_terminate, before.early_terminate, "{text}");
            assert_eq!(after.training_length(), before.training_length(), "{text}");
            assert_eq!(lines(&after), lines(&before), "{text}");
        }
    }

    #[test]
    fn whole_sets_stay_repeats() {
        let file = "spotsweep: {repeats: {parameter: seed, values: [1, 2, 3]}}\n\
            method: grid\nparameters: {lr: {values: [0.1, 0.2]}}\n";
        let before = parse("before", "v", file.as_bytes()).unwrap();
        let all = lines(&before);
        let pick = |indices: &[usize]| -> Vec<TrialLine> { indices.iter().map(|index| all[*index].clone()).collect() };
        // Trials 0, 2 and 4 are of the first set. Trials 0 and 1 have the first seed.
        for (indices, values) in [
            (&[0, 1, 2, 3, 4, 5][..], Some(vec![1, 2, 3])),
            (&[0, 2, 4], Some(vec![1, 2, 3])),
            (&[1, 5], Some(vec![1, 3])),
            (&[0, 1], Some(vec![1])),
            (&[3], Some(vec![2])),
            (&[0, 1, 2], None),
            (&[0, 3], None),
        ] {
            let picked = pick(indices);
            let repeated = Repeated::of(&picked, before.repeats().unwrap());
            let text = text(&before, &picked, repeated.as_ref(), "once more");
            let after = parse("after", "w", text.as_bytes()).unwrap_or_else(|problems| unreachable!("{problems:?}"));
            let found = after.repeats().map(|repeats| repeats.values.clone());
            assert_eq!(found, values.map(|values| values.into_iter().map(Value::from).collect()), "{indices:?}");
            let parameters: Vec<_> = picked.iter().map(|line| line.parameters.clone()).collect();
            assert_eq!(after.trials().collect::<Vec<_>>(), parameters, "{text}");
        }
        // With one seed for all, the repeats do not differ from each other.
        let mut same = all;
        for line in &mut same {
            line.parameters.insert("seed".to_owned(), Value::from(7));
        }
        let repeated = Repeated::of(&same, before.repeats().unwrap()).unwrap();
        assert_eq!((repeated.sets, repeated.values), (6, vec![Value::from(7)]));
    }
}
