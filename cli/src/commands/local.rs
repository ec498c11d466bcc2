//! `spotsweep local`: runs the stack in the background.

pub(crate) mod copy;
mod reclaim;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use clap::Subcommand;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Command;
use tokio::time::{sleep, timeout};

use self::reclaim::Reclaim;
use crate::consent::Loss;
use crate::out;
use crate::signals::{requested_stop, unless_stopped};
use spotsweep_aws::Reader;
use spotsweep_local_stack::group::Group;
use spotsweep_local_stack::installation::Installation;
use spotsweep_local_stack::killed::{Cleared, clear};
use spotsweep_local_stack::run_folder::tail;
use spotsweep_local_stack::sdk::{self, LOCAL_CREDENTIAL, LOCAL_REGION};
use spotsweep_local_stack::stack::{Logs, Ready, Stack, StackOptions};
use spotsweep_local_stack::state::{Desk, Hosting, State};
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::words::{counted, size};

/// `spotsweep local`
#[derive(Debug, Subcommand)]
pub(crate) enum Local {
    /// Start the local stack and leave it running
    #[command(after_help = "Example:\n  spotsweep local up && eval \"$(spotsweep local env)\"")]
    Up(Up),
    /// Stop the local stack and everything that it started
    #[command(
        after_help = "Examples:\n  spotsweep local down\n  spotsweep local down --keep out && spotsweep explain latest 0 --kept out"
    )]
    Down(Down),
    /// Take the instance of a trial away, as EC2 does on Spot
    Reclaim(Reclaim),
    /// Print the variables that let SDKs and tools reach the local stack
    #[command(after_help = "Example:\n  eval \"$(spotsweep local env)\"")]
    Env,
    /// Host the local stack until it is stopped (what `up` starts in the background)
    #[command(hide = true)]
    Serve(Up),
}

/// `spotsweep local up`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Up {
    /// The folder that trials run in [default: examples/digits]
    #[arg(long, value_name = "DIR")]
    pub(crate) code: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) stack: StackOptions,
}

/// `spotsweep local down`
#[derive(Debug, clap::Args)]
pub(crate) struct Down {
    /// Leave a copy of the bucket and a dump of the table in DIR; a trial that runs still ends with the stack
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Do not ask at the terminal, and end open sweeps where there is none
    #[arg(long, short)]
    pub(crate) yes: bool,
}

const POLL: Duration = Duration::from_millis(50);
/// It usually takes a second.
const STOP_DEADLINE: Duration = Duration::from_secs(30);
/// If a stack does not list its sweeps within this time, none of them could go on.
const LIST_DEADLINE: Duration = Duration::from_secs(5);

/// Runs one of the subcommands.
pub(crate) async fn run(command: Local) -> Result<ExitCode, Failure> {
    let installation = Installation::locate()?;
    match command {
        Local::Up(args) => up(installation, args).await?,
        Local::Down(args) => down(&installation, args).await?,
        Local::Reclaim(args) => reclaim::run(&installation, &args).await?,
        Local::Env => env(&Desk::new(&installation.local()))?,
        Local::Serve(args) => serve(installation, args).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn up(installation: Installation, args: Up) -> Result<(), Failure> {
    let desk = Desk::new(&installation.local());
    if let Some(state) = desk.running()? {
        unchanged(&state, &args)?;
        out::note(format_args!("the local stack is running already; its trials run in {}", state.code.display()));
        describe(&state);
        return Ok(());
    }
    let state = unless_stopped(async {
        clear_killed(&installation).await?;
        // The build runs here, where its output is seen. The host then finds everything built.
        let ready = Ready::make(installation, &args.stack).await?;
        start_host(&desk, &args, ready.binaries()).await
    })
    .await?;
    describe(&state);
    Ok(())
}

/// Fails if the running stack has other options than those that are asked for. It stays as it is.
fn unchanged(state: &State, args: &Up) -> Result<(), Failure> {
    let named = args.code.as_ref().map(|code| (code, code.canonicalize()));
    let mut others: Vec<String> = args.stack.words().into_iter().filter(|word| !state.options.contains(word)).collect();
    if let Some((code, found)) = named
        && found.as_ref().ok() != Some(&state.code)
    {
        others.insert(0, format!("--code={}", code.display()));
    }
    if others.is_empty() {
        return Ok(());
    }
    let options = std::iter::once(format!("--code={}", state.code.display())).chain(state.options.iter().cloned());
    Err(Failure::new(format!(
        "the local stack is running already, and {} changes nothing: it runs with {}. To change that, stop it and start it \
         again: `spotsweep local down`, then `spotsweep local up {}`. Its sweeps are gone then",
        others.join(" "),
        options.collect::<Vec<_>>().join(" "),
        others.join(" "),
    )))
}

/// Clears what killed stacks have left, and reports it.
pub(crate) async fn clear_killed(installation: &Installation) -> Result<(), Failure> {
    let cleared = clear(&installation.local()).await?;
    if !cleared.is_empty() {
        let Cleared { processes, devices, bytes } = cleared;
        let processes = counted(processes, "process");
        out::note(format_args!("an earlier local stack was killed: its sweeps are gone"));
        out::note(format_args!(
            "cleared what it had left: {processes}, loop devices and mounts: {devices}, {}",
            size(bytes)
        ));
    }
    Ok(())
}

/// Starts `local serve` and waits until its stack is ready. Dropping the future ends the host.
async fn start_host(desk: &Desk, args: &Up, binaries: &Path) -> Result<State, Failure> {
    let log = desk.log();
    let output = File::create(&log).context(|| format!("cannot write {}", log.display()))?;
    let errors = output.try_clone().context(|| format!("cannot write {}", log.display()))?;
    let binary = std::env::current_exe().context(|| "cannot find the running binary")?;
    let mut command = Command::new(binary);
    command.args(["local", "serve", "--binaries"]).arg(binaries).args(args.stack.words());
    if let Some(code) = &args.code {
        command.arg("--code").arg(code);
    }
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
    let mut host = Group::start(&mut command).context(|| "cannot start the stack's host")?;
    // Each step of the host has a time limit, so it either gets ready or ends.
    loop {
        if let Some(status) = host.ended().context(|| "cannot follow the stack's host")? {
            return Err(Failure::new(format!("the local stack did not start ({status}); {}", tail(&log, 20))));
        }
        if let Some(state) = desk.running()? {
            host.detach();
            return Ok(state);
        }
        sleep(POLL).await;
    }
}

async fn serve(installation: Installation, args: Up) -> Result<(), Failure> {
    let hosting = Desk::new(&installation.local()).host().await?;
    let code = args.code.clone().unwrap_or_else(|| installation.digits());
    let start = async {
        let ready = Ready::make(installation, &args.stack).await?;
        Stack::start(&ready, &code, &args.stack).await
    };
    let mut stack = unless_stopped(start).await?;
    let outcome = tokio::select! {
        outcome = host(&mut stack, &hosting, &args) => outcome,
        signal = requested_stop() => signal.map(drop),
    };
    stack.stop(if outcome.is_ok() { Logs::Remove } else { Logs::Keep }).await;
    outcome
}

/// Publishes that the stack is ready, and watches it.
async fn host(stack: &mut Stack, hosting: &Hosting, args: &Up) -> Result<(), Failure> {
    hosting.announce(&State::of(stack, &args.stack))?;
    loop {
        stack.check()?;
        sleep(Duration::from_secs(1)).await;
    }
}

async fn down(installation: &Installation, Down { keep, yes }: Down) -> Result<(), Failure> {
    let desk = Desk::new(&installation.local());
    if let Some(state) = desk.running()?
        && let Some(what) = loses(&state).await
    {
        Loss { what: &what, named: None, id: None }.agreed(yes).await?;
    }
    if let Some(folder) = &keep {
        let state = desk.running()?.ok_or_else(not_running)?;
        unless_stopped(copy::all(&sdk::local(&state.endpoint), &state.bucket, &state.table, folder)).await?;
    }
    let Some(pid) = desk.host_pid()? else {
        desk.forget();
        clear_killed(installation).await?;
        out::note(format_args!("no local stack is running"));
        return Ok(());
    };
    let pid = Pid::from_raw(pid).ok_or_else(|| Failure::new("the running stack's pid is unreadable"))?;
    // An error means that it has just ended, which the lock shows.
    let _ = kill_process(pid, Signal::TERM);
    if desk.deserted(STOP_DEADLINE).await? {
        let kept = if keep.is_some() { "what it had is kept" } else { "its sweeps are gone with it" };
        out::note(format_args!("the local stack has stopped; {kept}"));
        return Ok(());
    }
    let _ = kill_process(pid, Signal::KILL);
    desk.forget();
    let seconds = STOP_DEADLINE.as_secs();
    Err(Failure::new(format!(
        "the local stack did not stop within {seconds} s and was killed; see {}",
        desk.log().display()
    )))
}

/// What would be lost if the stack is stopped, if a sweep is open.
async fn loses(state: &State) -> Option<String> {
    let reader = Reader::new(&sdk::local(&state.endpoint), state.table.clone());
    let open = timeout(LIST_DEADLINE, reader.open_sweeps()).await.ok()?.ok()?;
    let newest = open.first()?;
    let (others, endpoint) = (counted(open.len() - 1, "other open sweep"), &state.endpoint);
    Some(format!("stop the local stack at {endpoint}, and end sweep {} and {others} with it", newest.id))
}

fn env(desk: &Desk) -> Result<(), Failure> {
    let state = desk.running()?;
    let state = state.ok_or_else(not_running)?;
    let port = state.endpoint.rsplit(':').next().unwrap_or_default();
    let variables = [
        ("AWS_ENDPOINT_URL", state.endpoint.as_str()),
        ("AWS_ENDPOINT_URL_BATCH", &state.emulator),
        ("AWS_ENDPOINT_URL_EC2", &state.emulator),
        ("AWS_ENDPOINT_URL_ECS", &state.emulator),
        ("AWS_ENDPOINT_URL_FIS", &state.emulator),
        ("AWS_ENDPOINT_URL_PRICING", &state.emulator),
        ("AWS_ENDPOINT_URL_CLOUDWATCH_LOGS", &state.emulator),
        ("AWS_ACCESS_KEY_ID", LOCAL_CREDENTIAL),
        ("AWS_SECRET_ACCESS_KEY", LOCAL_CREDENTIAL),
        ("AWS_REGION", LOCAL_REGION),
        ("AWS_DEFAULT_REGION", LOCAL_REGION),
        ("SPOTSWEEP_BUCKET", &state.bucket),
        ("SPOTSWEEP_TABLE", &state.table),
        ("SPOTSWEEP_QUEUE", &state.queue),
        ("SPOTSWEEP_JOB_DEFINITION", &state.job_definition),
        ("SPOTSWEEP_CLAIM_FUNCTION", &state.claim_function),
        // For `cargo lambda invoke --invoke-address 127.0.0.1 --invoke-port $SPOTSWEEP_PORT`.
        ("SPOTSWEEP_PORT", port),
    ];
    out::results(|to| {
        // A session token of the caller would be combined with the stack's credentials.
        writeln!(to, "unset AWS_SESSION_TOKEN AWS_PROFILE")?;
        variables.iter().try_for_each(|(name, value)| writeln!(to, "export {name}={}", quoted(value)))
    })
}

fn not_running() -> Failure {
    Failure::new("no local stack is running: start one with `spotsweep local up`")
}

/// A word, quoted for any POSIX shell.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn describe(state: &State) {
    out::note(format_args!("AWS (S3, DynamoDB, EventBridge, Lambda): {}", state.endpoint));
    out::note(format_args!("Batch, EC2, EBS and ECS:                 {}", state.emulator));
    out::note(format_args!("drop sweep files into                    s3://{}/sweeps/", state.bucket));
    out::note(format_args!("functions' log                           {}", state.functions_log.display()));
    out::note(format_args!("jobs' logs                               {}", state.jobs_logs.display()));
    out::note(format_args!("next: eval \"$(spotsweep local env)\"; stop it with: spotsweep local down"));
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_survive_the_shell() {
        assert_eq!(quoted("a b$c"), "'a b$c'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
