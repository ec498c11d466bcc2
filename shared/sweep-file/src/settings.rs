//! The `spotsweep:` mapping: where and how trials run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spotsweep_protocol::command_line::{HP_PREFIX, nested_variable};
use spotsweep_protocol::ids::SweepId;

use super::fields::{Fields, text, written};
use super::problem::Report;
use super::quantity::{mebibytes, seconds};
use super::template::{self, Context, Role};
use super::tree::Node;

mod checkpoints_of;
mod code;
mod data;
mod environment;
pub(crate) mod image;
mod outputs;
mod secrets;
mod setup;
mod stalled;
mod tags;
mod workspace;

pub use code::{Code, Folder};
pub use data::DataSource;
pub use environment::variable_problem;
pub use outputs::Outputs;
pub use stalled::Stalled;
pub use workspace::{InitializationRate, Keep, Start, Workspace, initialization_rate};

use code::CodeSchema;
use data::DataSchema;
use secrets::SecretsSchema;
use setup::SetupSchema;
use stalled::StalledSchema;
use workspace::WorkspaceSchema;

/// The attempts of a trial if the file does not set them: five rounds of Batch's ten. A trial that is reclaimed more
/// often although it keeps its progress runs on unsuitable capacity.
pub const ATTEMPTS: u8 = 50;

/// Where and how the trials run. Whatever is absent is up to the deployment.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Settings {
    /// Batch job definition that trials run as: name, name:revision or ARN.
    pub job_definition: Option<String>,
    /// Container image that takes the place of the job definition's, as for `docker pull`. W&B's `image_uri` means the same.
    pub image: Option<String>,
    /// Batch job queue: name or ARN.
    pub queue: Option<String>,
    /// How often a trial is started before it is given up, 1 to 100. A job has at most ten attempts; beyond them the
    /// trial is submitted again.
    #[schemars(range(min = 1, max = 100))]
    pub attempts: Option<u8>,
    /// Time one attempt may run: seconds, or for example `90m`, `2h`, `1d`. At least 60 seconds.
    #[schemars(rename = "timeout", with = "Option<Quantity>")]
    pub timeout_seconds: Option<u32>,
    /// How long a training may show no output, metric, checkpoint and GPU activity before its attempt is ended: seconds,
    /// or for example `30m`, `2h`. At least 60 seconds. Or `off`. Without it there is a warning after an hour, and no end.
    #[schemars(with = "Option<StalledSchema>")]
    pub stalled: Option<Stalled>,
    /// Command of the container, with W&B's macros. Goes before `program` and the W&B `command`.
    #[schemars(with = "Option<Vec<Written>>")]
    pub command: Option<Vec<String>>,
    /// What one trial needs of an instance.
    pub resources: Option<Resources>,
    /// The trial's volume for datasets and checkpoints, or `off`.
    #[schemars(with = "Option<WorkspaceSchema>")]
    pub workspace: Option<Workspace>,
    /// Training code to fetch before the command runs: a folder, which `spotsweep submit` packs and sends, or git.
    #[schemars(with = "Option<CodeSchema>")]
    pub code: Option<Code>,
    /// Commands of a shell that each attempt runs before the training command, in the folder of the code.
    #[schemars(default, with = "SetupSchema")]
    pub setup: Vec<String>,
    /// Environment variables of the trainings.
    #[schemars(default, with = "BTreeMap<String, Written>")]
    pub env: BTreeMap<String, String>,
    /// Environment variables whose values are secrets: a list of names that `spotsweep secret set` has stored, or for each
    /// variable such a name, the path or ARN of a parameter in SSM Parameter Store, or the ARN of a secret in AWS Secrets
    /// Manager, with `:KEY` behind it for one value of a JSON object.
    #[schemars(default, with = "SecretsSchema")]
    pub secrets: BTreeMap<String, String>,
    /// Objects of S3 that trainings read, by name: those of `imagenet` are at `/data/imagenet`.
    #[schemars(default, with = "BTreeMap<String, DataSchema>")]
    pub data: BTreeMap<String, DataSource>,
    /// Which files of a trial are collected.
    pub outputs: Option<Outputs>,
    /// Trials of earlier sweeps, one for each trial, in their order: `<sweep>/<index>`. Each trial starts from the checkpoint
    /// that is collected of that one. `spotsweep retry --continue` writes it.
    #[schemars(with = "Option<Vec<String>>")]
    pub checkpoints_of: Option<Vec<(SweepId, u32)>>,
    /// Who is notified of the sweep's end.
    pub notifications: Option<Notifications>,
    /// Limits after which no further trial starts.
    pub budget: Option<Budget>,
    /// Whether the sweep is stopped when its first five trials all fail within two minutes: `on`, the default, or `off`.
    #[schemars(with = "Option<Switch>")]
    pub fail_fast: Option<bool>,
    /// Tags for everything that the sweep creates.
    #[schemars(default, with = "BTreeMap<String, Written>")]
    pub tags: BTreeMap<String, String>,
}

/// What one trial needs of an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Resources {
    /// Whole vCPUs.
    #[schemars(range(min = 1))]
    pub vcpus: Option<u32>,
    /// Memory, for example `16GiB`.
    #[schemars(rename = "memory", with = "Option<String>")]
    pub memory_mib: Option<u32>,
    /// Whole GPUs.
    pub gpus: Option<u32>,
    /// Size of `/dev/shm`, for example `8GiB`. It is a part of the memory.
    #[schemars(rename = "shared_memory", with = "Option<String>")]
    pub shared_memory_mib: Option<u32>,
}

/// Who is notified of the sweep's end.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Notifications {
    /// ARN of an SNS topic.
    pub topic: String,
}

/// Limits after which no further trial starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[schemars(deny_unknown_fields)]
pub struct Budget {
    /// US dollars for the whole sweep.
    pub max_usd: Option<f64>,
    /// Hours since the sweep's submission.
    pub max_hours: Option<f64>,
}

/// Seconds, or a number with a unit.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "describes the written form to the JSON Schema; parsing goes over the spanned tree")]
enum Quantity {
    Seconds(u32),
    Written(String),
}

/// A text; numbers and booleans count as what was written.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "describes the written form to the JSON Schema; parsing goes over the spanned tree")]
enum Written {
    Text(String),
    Number(f64),
    Flag(bool),
}

/// A setting that is on or off.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "describes the written form to the JSON Schema; parsing goes over the spanned tree")]
enum Switch {
    Word(SwitchWord),
    Flag(bool),
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[expect(dead_code, reason = "describes the written form to the JSON Schema; parsing goes over the spanned tree")]
enum SwitchWord {
    On,
    Off,
}

/// Keys of [`Settings`] under `spotsweep:`. Those that choose trials are in [`super::choice`].
pub(crate) const KEYS: [&str; 20] = [
    "job_definition",
    "image",
    "queue",
    "attempts",
    "timeout",
    "stalled",
    "command",
    "resources",
    "workspace",
    "code",
    "setup",
    "env",
    "secrets",
    "data",
    "outputs",
    "checkpoints_of",
    "notifications",
    "budget",
    "fail_fast",
    "tags",
];

/// The settings that are mappings, with their keys.
pub(crate) const NESTED: [(&str, &[&str]); 6] = [
    ("resources", &["vcpus", "memory", "gpus", "shared_memory"]),
    ("budget", &["max_usd", "max_hours"]),
    ("code", &code::KEYS),
    ("outputs", &["include", "exclude", "checkpoints"]),
    ("notifications", &["topic"]),
    ("workspace", &workspace::KEYS),
];

/// Returns the keys of one of these settings.
fn keys_of(setting: &str) -> &'static [&'static str] {
    NESTED.iter().find(|(name, _)| *name == setting).map_or(&[], |(_, keys)| keys)
}

/// The most attempts of one trial. Batch makes at most ten of one job (fact 18), so this is ten jobs for one trial. A
/// trial that is interrupted more often has the wrong instance types.
const MAX_ATTEMPTS: i64 = 100;

/// Reads the settings from the `spotsweep:` mapping, and reports their problems.
pub(crate) fn read(fields: Fields<'_>, context: &Context<'_>, role: Role, report: &mut Report<'_>) -> Settings {
    let narrow = |value: i64| u8::try_from(value).ok();
    let variables: Vec<_> = context.parameters.iter().map(|name| nested_variable(HP_PREFIX, name)).collect();
    let env = fields.get("env").map(|node| environment::read(node, &variables, report)).unwrap_or_default();
    let secrets = fields.get("secrets").map(|node| secrets::read(node, &env, &variables, report)).unwrap_or_default();
    let settings = Settings {
        job_definition: aws_name(fields, "job_definition", report),
        // W&B has a key for it too, at the top level.
        image: None,
        queue: aws_name(fields, "queue", report),
        attempts: fields.integer("attempts", 1..=MAX_ATTEMPTS, report).and_then(narrow),
        timeout_seconds: fields.get("timeout").and_then(|node| timeout(node, report)),
        stalled: fields.get("stalled").and_then(|node| stalled::read(node, report)),
        command: fields.get("command").and_then(|node| template::read(node, context, role, report)),
        resources: fields.get("resources").and_then(|node| resources(node, report)),
        workspace: fields.get("workspace").and_then(|node| workspace::read(node, report)),
        code: fields.get("code").and_then(|node| code::read(node, report)),
        setup: fields.get("setup").map(|node| setup::read(node, report)).unwrap_or_default(),
        env,
        secrets,
        data: fields.get("data").map(|node| data::read(node, report)).unwrap_or_default(),
        outputs: fields.get("outputs").and_then(|node| outputs::read(node, report)),
        checkpoints_of: fields.get("checkpoints_of").and_then(|node| checkpoints_of::read(node, report)),
        notifications: fields.get("notifications").and_then(|node| notifications(node, report)),
        budget: fields.get("budget").and_then(|node| budget(node, report)),
        fail_fast: fields.get("fail_fast").and_then(|node| switch(node, "fail_fast", report)),
        tags: fields.get("tags").map(|node| tags::read(node, report)).unwrap_or_default(),
    };
    secrets::check_number(fields, &settings, report);
    settings
}

/// Reads `on` or `off` as YAML 1.2 and PyYAML do.
fn switch(node: &Node, what: &str, report: &mut Report<'_>) -> Option<bool> {
    let text = written(node, what, report)?;
    let switch = match text.as_str() {
        "on" | "true" => Some(true),
        "off" | "false" => Some(false),
        _ => None,
    };
    if switch.is_none() {
        report.add(node.place, format!("`{what}` is neither on nor off: {text}"), "write `on` or `off`");
    }
    switch
}

/// Checks the settings that depend on the number of trials.
pub(crate) fn check_trials(fields: Fields<'_>, trials: u64, report: &mut Report<'_>) {
    if let Some(node) = fields.get("workspace") {
        workspace::check_trials(node, trials, report);
    }
    if let Some(node) = fields.get("checkpoints_of") {
        checkpoints_of::check(node, fields.get("workspace"), trials, report);
    }
}

/// Reads a Batch name (1 to 128 of `[A-Za-z0-9_-]`, fact 19), with a revision, or an ARN.
fn aws_name(fields: Fields<'_>, key: &str, report: &mut Report<'_>) -> Option<String> {
    let node = fields.get(key)?;
    let name = text(node, key, report)?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-:/.".contains(c);
    if name.len() <= 512 && name.chars().all(allowed) {
        return Some(name.to_owned());
    }
    let message = format!("`{key}` is not a Batch name or ARN");
    report.add(node.place, message, "use letters, digits, `_` and `-`, or paste the ARN");
    None
}

fn timeout(node: &Node, report: &mut Report<'_>) -> Option<u32> {
    let limit = written(node, "timeout", report)?;
    let parsed = seconds(&limit).and_then(|seconds| u32::try_from(seconds).ok());
    // Batch refuses less than 60 s, and the field is a signed 32-bit integer (fact 18).
    let valid = parsed.filter(|seconds| (60..=i32::MAX as u32).contains(seconds));
    if valid.is_none() {
        let help = "write at least 60 seconds, for example 3600, 90m, 2h or 1d";
        report.add(node.place, format!("`timeout` is not a duration that Batch takes: {limit}"), help);
    }
    valid
}

fn resources(node: &Node, report: &mut Report<'_>) -> Option<Resources> {
    let fields = Fields::known(node, "`resources`", keys_of("resources"), report)?;
    let count = |value: i64| u32::try_from(value).ok();
    let mut memory = |key, least| fields.get(key).and_then(|node| size(node, key, least..=u64::from(u32::MAX), report));
    // Batch wants at least 4 MiB for a container.
    let (memory_mib, shared_memory_mib) = (memory("memory", 4), memory("shared_memory", 1));
    if let (Some(memory), Some(shared), Some(node)) = (memory_mib, shared_memory_mib, fields.get("shared_memory"))
        && shared > memory
    {
        let message = format!("`shared_memory` is larger than `memory`, {memory} MiB, of which it is a part");
        report.add(node.place, message, "ask for more memory, or for less shared memory");
    }
    Some(Resources {
        vcpus: fields.integer("vcpus", 1..=1024, report).and_then(count),
        memory_mib,
        gpus: fields.integer("gpus", 0..=64, report).and_then(count),
        shared_memory_mib,
    })
}

/// Reads a size in MiB.
fn size(node: &Node, key: &str, range_mib: std::ops::RangeInclusive<u64>, report: &mut Report<'_>) -> Option<u32> {
    let size = written(node, key, report)?;
    let valid = mebibytes(&size).filter(|mib| range_mib.contains(mib)).and_then(|mib| u32::try_from(mib).ok());
    if valid.is_none() {
        let (least, unit) = if range_mib.start().is_multiple_of(1024) {
            (range_mib.start() / 1024, "GiB")
        } else {
            (*range_mib.start(), "MiB")
        };
        let help = format!("write {least}{unit} or more, with the unit, for example 16GiB");
        report.add(node.place, format!("`{key}` is not a usable size: {size}"), help);
    }
    valid
}

fn notifications(node: &Node, report: &mut Report<'_>) -> Option<Notifications> {
    let fields = Fields::known(node, "`notifications`", keys_of("notifications"), report)?;
    let Some(topic) = fields.get("topic") else {
        report.add(fields.place(), "`notifications` has no `topic`", "add the ARN of an SNS topic");
        return None;
    };
    let arn = text(topic, "topic", report)?;
    let is_arn = arn.starts_with("arn:") && arn.split(':').nth(2) == Some("sns") && arn.split(':').count() == 6;
    if !is_arn {
        let help = "write it as arn:aws:sns:us-east-1:123456789012:name";
        report.add(topic.place, format!("`{arn}` is not the ARN of an SNS topic"), help);
    }
    Some(Notifications { topic: arn.to_owned() })
}

fn budget(node: &Node, report: &mut Report<'_>) -> Option<Budget> {
    let fields = Fields::known(node, "`budget`", keys_of("budget"), report)?;
    let mut positive = |key| {
        let number = fields.figure(key, report)?;
        if let (false, Some(node)) = (number > 0.0, fields.get(key)) {
            report.add(
                node.place,
                format!("`{key}` must be more than 0"),
                "write a positive number, or delete the line",
            );
        }
        Some(number)
    };
    Some(Budget { max_usd: positive("max_usd"), max_hours: positive("max_hours") })
}
