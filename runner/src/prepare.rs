//! The steps before the command: place, claim, workspace, files and environment.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use spotsweep_attempt::Event;
use spotsweep_protocol::claim::{Code, Environment, Found, Grant, Machine, Preparation, TrialLine, WandbPlace};
use spotsweep_protocol::command_line::expand;
use spotsweep_protocol::metric::MetricPattern;
use spotsweep_protocol::patterns::Filter;
use spotsweep_protocol::rungs::RungPlan;
use spotsweep_protocol::runner_log;
use spotsweep_protocol::stall::StallRule;
use spotsweep_seal::disk::Disk as _;
use spotsweep_seal::{OWN, Sealer};
use spotsweep_training_metrics::Definitions;
use tokio::sync::mpsc;
use tokio::time;

use crate::cache;
use crate::claim::Claims;
use crate::clients::{self, Clients, connector};
use crate::code;
use crate::config::Config;
use crate::data::{self, Data};
use crate::exit::Failure;
use crate::gpu_activity::Activity;
use crate::gpus::{self, Gpus};
use crate::instance_check;
use crate::launch::Launcher;
use crate::log::say;
use crate::mlflow;
use crate::parameters;
use crate::place;
use crate::reports;
use crate::restore::restore;
use crate::rungs::Rungs;
use crate::secrets::Secrets;
use crate::setup;
use crate::shared_memory;
use crate::surroundings::{self, Inherited};
use crate::upload::Uploader;
use crate::user::{User, accounts};
use crate::wandb;
use crate::workplace::Workplace;
use crate::workspace::{POINT, Workspace, point, take_charge};

/// The variable with the step of the next comparison, for scripts that fit their schedule to it.
const STEP_BUDGET: &str = "SPOTSWEEP_STEP_BUDGET";
/// Prefixes of the variables that the runner sets for libraries.
const OF_LIBRARIES: [&str; 3] = ["WANDB_", "MLFLOW_", "TENSORBOARD_"];

/// All that is needed to start the command.
pub(crate) struct Ready {
    pub(crate) command: Vec<String>,
    pub(crate) variables: Variables,
    /// Starts the command.
    pub(crate) launcher: Launcher,
    pub(crate) place: Workplace,
    pub(crate) uploader: Uploader,
    /// The metrics that are searched for in the output.
    pub(crate) metrics: Wanted,
    /// Whether MLflow is to go on with the run of an earlier attempt.
    pub(crate) goes_on_with_run: bool,
    /// The series by which trials are compared; absent if they are not compared.
    pub(crate) rungs: Option<Rungs>,
    /// The rule for a stall of the command, and the activity of its GPUs.
    pub(crate) stalls: (StallRule, Activity),
    /// Absent without a workspace.
    pub(crate) sealer: Option<Sealer>,
    /// The data sets, in use until the attempt ends.
    pub(crate) data: Data,
}

/// The metrics that the sweep file names.
pub(crate) struct Wanted {
    /// The metric that ranks the trials.
    pub(crate) named: Option<String>,
    /// The sweep file's own patterns.
    pub(crate) patterns: Vec<MetricPattern>,
}

/// Claims the trial, mounts its workspace, and prepares the rest. `workspace` is set as soon as it is mounted, so that
/// the caller unmounts it even if this is interrupted.
pub(crate) async fn prepare(
    config: &Config,
    command: &[String],
    clients: &Clients,
    (claims, events): (&Arc<Claims>, &mpsc::UnboundedSender<Event>),
    workspace: &mut Option<Workspace>,
) -> Result<Ready, Failure> {
    let deadline = time::Instant::now() + config.workspace_limit;
    let here = place::find(&clients.imds).await;
    let is_asked = gpus::are_to_be_asked_for(config, &|name| std::env::var(name).ok());
    let task = if is_asked { place::task(connector()?).await } else { None };
    let here = Machine { defect: instance_check::defect(config).await, task, ..here };
    let grant = claims.claim(here, deadline.saturating_duration_since(time::Instant::now())).await?;
    reports::during(claims, events, lay_out(config, command, clients, claims, (grant, deadline), workspace)).await
}

/// All steps between the grant and the command.
async fn lay_out(
    config: &Config,
    command: &[String],
    clients: &Clients,
    claims: &Arc<Claims>,
    (grant, deadline): (Grant, time::Instant),
    workspace: &mut Option<Workspace>,
) -> Result<Ready, Failure> {
    let gpus = Gpus::find(&|name| std::env::var(name).ok(), grant.gpus.clone());
    let launcher = Launcher::new(config, &gpus)?;
    cache::narrow(config)?;
    let filter = Filter::new(&grant.patterns)?;
    // A pattern that cannot be compiled fails the attempt here.
    Definitions::new(&grant.metrics)?;
    let metrics = Wanted { named: grant.metric.clone(), patterns: grant.metrics.clone() };
    let preparation = grant.preparation.as_ref();
    let trials_own = clients.of_trial(claims).await?;
    let s3 = clients::s3(&trials_own);
    let secrets = preparation.map(Preparation::all_secrets).unwrap_or_default();
    let bucket = grant.outputs.bucket.as_str();
    let secrets = Secrets::read(&trials_own, &secrets, bucket).await?;
    let trial = parameters::fetch(&s3, &grant.parameters, config.index).await?;
    let trial = match grant.suggested.clone() {
        Some(parameters) => TrialLine { parameters, ..trial },
        None => trial,
    };
    announce(config, &trial);
    let (sealer, newest) = mount(config, (&grant, &s3), claims, deadline, workspace).await?.unzip();

    let user = config.user.as_ref();
    let mounted = workspace.as_ref().map(|workspace| workspace.point().to_owned());
    let is_mounted = mounted.is_some();
    let folder = mounted.map_or_else(|| point(config), Ok)?;
    let mut place = Workplace::make((&config.root, folder), &trial, is_mounted, user)?;
    if let Some(mib) = preparation.and_then(Preparation::shared_memory_mib) {
        shared_memory::mount_of(mib)?;
    }
    let data = preparation.map(Preparation::data).unwrap_or_default();
    let data = data::prepare(config, data, (&s3, bucket), claims).await?;
    if let Some(code) = preparation.and_then(Preparation::code) {
        place.code = Some(fetch(code, &secrets, (&s3, bucket), &place, &launcher).await?);
    }
    let rungs = match grant.rungs.clone() {
        Some(plan) => Some(series(plan, &place, newest.flatten().as_deref())?),
        None => None,
    };
    let mut env = preparation.map(Preparation::env).unwrap_or_default();
    env.extend(secrets.variables(preparation.map(Preparation::secrets).unwrap_or_default()));
    let inherited = |name: &str| env.get(name).cloned().or_else(|| std::env::var(name).ok());
    let inherited: Inherited<'_> = &inherited;
    let trial_of = (&trial, &grant.wandb);
    let (command, mut variables) =
        words(command, (&place, &gpus), trial_of, (config, clients.region()), (&env, inherited))?;
    let budget = rungs.as_ref().and_then(Rungs::next);
    variables.extend(data.variables.iter().cloned());
    variables.extend(budget.map(|step| (STEP_BUDGET.to_owned(), step.to_string())));
    let run = earlier_run(config, &place, &trial, inherited).await?;
    let goes_on_with_run = run.is_some();
    variables.extend(run.map(|run| (mlflow::RUN.to_owned(), run)));
    if let Some(preparation) = preparation.filter(|preparation| !preparation.setup().is_empty()) {
        variables.extend(surroundings::own_programs(&variables, inherited));
        variables.extend(config.cache.iter().flat_map(|cache| cache::variables(cache, inherited)));
        setup::run(preparation.setup(), &variables, &launcher, place.code.as_deref()).await?;
    }
    let uploader = Uploader::new(s3, grant.outputs, place.storage.clone(), filter);
    let stalls = (grant.stalls, Activity::new(config, &gpus, launcher.clone()));
    Ok(Ready { command, variables, launcher, place, uploader, metrics, goes_on_with_run, rungs, stalls, sealer, data })
}

/// Puts the training code on the workspace, and returns its folder.
async fn fetch(
    code: Code,
    secrets: &Secrets,
    from: (&aws_sdk_s3::Client, &str),
    place: &Workplace,
    launcher: &Launcher,
) -> Result<PathBuf, Failure> {
    Ok(match code {
        Code::Git(git) => code::fetch((&git, None), &place.for_code(), launcher).await?,
        Code::Private { private, token } => {
            code::fetch((&private, secrets.value(&token)), &place.for_code(), launcher).await?
        }
        Code::Packed { sha256 } => code::packed::fetch(from, &sha256, &place.for_code(), launcher).await?,
    })
}

fn announce(config: &Config, trial: &TrialLine) {
    say(&format!(
        "sweep {} trial {} attempt {}: {}",
        config.sweep,
        trial.index,
        config.attempt,
        serde_json::Value::Object(trial.parameters.clone())
    ));
}

/// The metric's series up to the checkpoint from which the training goes on.
fn series(plan: RungPlan, place: &Workplace, newest: Option<&str>) -> Result<Rungs, Failure> {
    let failed = |source| Failure::System("read the metric's series on the workspace", source);
    let files = place.disk().files(&place.checkpoints).map_err(failed)?;
    let is_of = |path: &str| newest.is_some_and(|newest| Path::new(path).starts_with(newest));
    let saved = files.iter().filter(|(path, _)| is_of(path)).map(|(_, stamp)| stamp.modified_ns).max();
    Rungs::go_on(plan, place.own.clone(), saved.map(|nanoseconds| nanoseconds as f64 / 1e9)).map_err(failed)
}

/// Mounts the granted workspace, checks it against its seal, and reports it. Until the report is accepted, the source
/// of the workspace must be kept, so no training may start on it. Returns the sealer and the newest checkpoint. If the
/// trial starts from another trial's checkpoint, that one is on the workspace at this time.
async fn mount(
    config: &Config,
    (grant, s3): (&Grant, &aws_sdk_s3::Client),
    claims: &Claims,
    deadline: time::Instant,
    slot: &mut Option<Workspace>,
) -> Result<Option<(Sealer, Option<String>)>, Failure> {
    let Some(granted) = &grant.workspace else {
        if let Some(from) = &grant.restores {
            restore(s3, from, &point(config)?, config.user.as_ref().map(User::owner)).await?;
        }
        return Ok(None);
    };
    let started = Instant::now();
    let workspace = slot.insert(Workspace::mount(config, granted, deadline).await?);
    take_charge(workspace.point())?;
    if let Some(from) = &grant.restores {
        let user = config.user.clone().unwrap_or_else(User::own);
        restore(s3, from, workspace.point(), Some(user.owner())).await?;
    }
    let (point, attempt, is_disk) = (workspace.point().to_owned(), config.attempt, workspace.is_disk());
    let disk = workspace.disk();
    let checking = tokio::task::spawn_blocking(move || Sealer::resume(&disk, &point, attempt, is_disk, say));
    let failed = |source| Failure::System("check the workspace's checkpoints", source);
    let (sealer, found) = checking.await.map_err(|broken| failed(broken.into()))?.map_err(failed)?;
    let found = Found { formatted: workspace.formatted, ..found };
    let seconds = started.elapsed().as_secs_f64();
    tell(&workspace.volume, &found, seconds);
    let newest = found.newest.clone();
    claims.mounted(&workspace.volume, found, seconds).await?;
    Ok(Some((sealer, newest)))
}

fn tell(volume: &str, found: &Found, seconds: f64) {
    for name in &found.torn {
        say(&format!("checkpoint {name} is torn: put aside in {POINT}/{OWN}/torn"));
    }
    for name in &found.missing {
        say(&format!("checkpoint file {name} is gone, though it was sealed"));
    }
    say(&runner_log::mounted(volume, seconds, found.newest.as_deref()));
}

type Variables = Vec<(String, String)>;

/// MLflow's run of earlier attempts. A server that does not answer prevents no training.
async fn earlier_run(
    config: &Config,
    place: &Workplace,
    trial: &TrialLine,
    inherited: Inherited<'_>,
) -> Result<Option<String>, Failure> {
    if config.attempt <= 1 || !place.own.may_go_on_with_a_run() {
        return Ok(None);
    }
    let Some(server) = mlflow::Server::of(connector()?, inherited) else { return Ok(None) };
    let found = server.run_of(&name(config, trial)).await;
    Ok(match found {
        Ok(Some(run)) => {
            say(&format!("MLflow goes on with run {run} of an earlier attempt"));
            Some(run)
        }
        Ok(None) => None,
        Err(reason) => {
            say(&format!("MLflow's run of an earlier attempt is not known: {reason}"));
            None
        }
    })
}

/// A trial's name in W&B and MLflow.
fn name(config: &Config, trial: &TrialLine) -> String {
    format!("{}-{}", config.sweep, trial.index)
}

/// Logs the variables for libraries, to explain how they behave in a trial. Values that include the job's own value may
/// be secret and are left out.
fn announce_libraries(variables: &Variables, inherited: Inherited<'_>) {
    let is_of_library = |name: &str| OF_LIBRARIES.iter().any(|library| name.starts_with(library));
    let word = |(name, value): &(String, String)| match inherited(name) {
        Some(_) => name.clone(),
        None => format!("{name}={value}"),
    };
    let words: Vec<String> = variables.iter().filter(|(name, _)| is_of_library(name)).map(word).collect();
    say(&format!("set for libraries: {}", words.join(" ")));
}

/// The command with its macros filled in, and its environment.
fn words(
    command: &[String],
    (place, gpus): (&Workplace, &Gpus),
    (trial, of_wandb): (&TrialLine, &WandbPlace),
    (config, region): (&Config, Option<&str>),
    (env, inherited): (&Environment, Inherited<'_>),
) -> Result<(Vec<String>, Variables), Failure> {
    // Of two values for a name, the later one counts.
    let mut variables: Variables = env.clone().into_iter().collect();
    variables.extend(place.variables(&trial.parameters, inherited));
    variables.extend(gpus.variable(inherited));
    variables.extend(surroundings::region(region, inherited));
    if let Some(user) = &config.user {
        let home = place.home()?;
        variables.extend(surroundings::identity(user, &accounts("/etc/passwd"), &home, inherited));
    }
    let home = variables.iter().find(|(name, _)| name == "HOME").map(|(_, home)| home.clone());
    let home = home.or_else(|| inherited("HOME")).map(PathBuf::from);
    let (parameters, folder) = (place.wandb_parameters(), place.output());
    let sweep = config.sweep.to_string();
    let run = wandb::Run { sweep: &sweep, index: trial.index, parameters: &parameters, folder, place: of_wandb };
    variables.extend(wandb::variables(run, home.as_deref(), inherited));
    variables.extend(mlflow::tags(&config.sweep.to_string(), &name(config, trial), inherited));
    let variable = |name: &str| {
        let own = variables.iter().rev().find(|(key, _)| key == name);
        own.map(|(_, value)| value.clone()).or_else(|| inherited(name))
    };
    announce_libraries(&variables, inherited);
    let json_file = place.parameters();
    let command = expand(command, &trial.parameters, &variable, &json_file.to_string_lossy())?;
    Ok((command, variables))
}
