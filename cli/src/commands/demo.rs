//! `spotsweep demo`: runs a sweep on this machine, from the file to the collected models.

mod follow;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use spotsweep_aws::Reader;
use spotsweep_protocol::ids::SweepId;
use tokio::time::sleep;

use crate::commands::explain;
use crate::commands::local::{clear_killed, copy};
use crate::dropped::{Answer, Dropped, rejected, upload};
use crate::secrets;
use crate::signals::unless_stopped;
use crate::{code_folder, out, show, sweep_file};
use follow::{Watched, watch};
use spotsweep_local_stack::batch::ZONES;
use spotsweep_local_stack::deploy::BUCKET;
use spotsweep_local_stack::installation::Installation;
use spotsweep_local_stack::leftovers::Leftovers;
use spotsweep_local_stack::reclaims::{Reclaims, Wish, turns};
use spotsweep_local_stack::stack::{Logs, NOTICE, Ready, Stack, StackOptions};
use spotsweep_local_stack::state::{Desk, Hosting, State};
use spotsweep_protocol::failure::{Context, FAILED, Failure};
use spotsweep_protocol::words::{counted, duration, rounded};
use spotsweep_records::sweep::upload::Given;
use spotsweep_sweep_file::SweepFile;

/// `spotsweep demo`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  spotsweep demo
  spotsweep demo --sweep my-sweep.yaml --json
  spotsweep demo --code . --sweep my.yaml       your own code, in the current folder
  spotsweep demo --reclaims 12 --seed 1         twelve spot reclaims of every kind meanwhile
  spotsweep demo --keep out                     also keep the bucket and the table's records")]
pub(crate) struct Demo {
    /// The sweep file [default: the bundled digits example; with reclaims, one that trains longer]
    #[arg(long, value_name = "FILE")]
    pub(crate) sweep: Option<PathBuf>,
    /// The folder that trials run in [default: that of the sweep file, if it has the program; else examples/digits]
    #[arg(long, value_name = "DIR")]
    pub(crate) code: Option<PathBuf>,
    /// Print the sweep's summary as one line of JSON; everything else goes to standard error
    #[arg(long)]
    pub(crate) json: bool,
    /// Leave a copy of the bucket and a dump of the table in DIR
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Where the models and results go, in a folder of the sweep's name
    #[arg(long, value_name = "DIR", default_value = "spotsweep-results")]
    pub(crate) results: PathBuf,
    /// Give up after this many seconds of training
    #[arg(long, value_name = "SECONDS", default_value_t = 86_400, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: u64,
    /// Take instances away N times while trials train on them: with notice, without, a whole zone, …
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) reclaims: u32,
    /// Which instances, when and how: the same seed makes the same plan
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Let zones lose and regain their capacity as in a recorded spot trace: a folder of <zone>.json files
    #[arg(long, value_name = "DIR")]
    pub(crate) trace: Option<PathBuf>,
    /// Do not drain instances on a notice, as AWS's default is: Batch may start a trial again on the one that is taken
    #[arg(long)]
    pub(crate) no_draining: bool,
    /// Also show every event of the trial that was interrupted most often
    #[arg(long, short)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) stack: StackOptions,
}

/// Rows of the leaderboard that are shown.
const SHOWN_ROWS: usize = 10;
/// Failed trials that are named.
const SHOWN_FAILURES: usize = 5;
/// How long the stack stays for views of it, so that they show the sweep's end.
const LAST_LOOK: Duration = Duration::from_secs(10);
/// Deleting takes a tenth of a second on the local stack.
const CLEAN_UP_DEADLINE: Duration = Duration::from_secs(10);

/// A sweep that has run to its end.
struct Collected {
    summary: Value,
    folder: PathBuf,
    failures: Vec<(u32, String)>,
    leftovers: Leftovers,
}

impl Collected {
    fn is_clean(&self) -> bool {
        self.failures.is_empty() && count(&self.summary, "failed") == 0 && self.leftovers.is_empty()
    }
}

/// Runs the command. The exit code is 0 only if every trial succeeded or was stopped early, and nothing is left.
pub(crate) async fn run(mut args: Demo) -> Result<ExitCode, Failure> {
    let installation = Installation::locate()?;
    let wish = wish(&args)?;
    // A trial that ends after a second cannot be interrupted.
    let example = if wish.is_empty() { "digits.yaml" } else { "reclaims.yaml" };
    let file = args.sweep.clone().unwrap_or_else(|| installation.digits().join(example));
    // A bad file is rejected here, before the build takes minutes.
    upload(BUCKET, &file)?;
    args.stack.secrets =
        sweep_file::read(&file, "")?.iter().flat_map(|file| secrets::patterns(&file.settings)).collect();
    let code = args.code.clone().map_or_else(|| folder_of(&file, &installation), Ok)?;
    let desk = Desk::of_demo(&installation.local());
    let mut stack = unless_stopped(async {
        clear_killed(&installation).await?;
        let ready = Ready::make(installation, &args.stack).await?;
        let started = Instant::now();
        let stack = Stack::start(&ready, &code, &args.stack).await?;
        stack.with_world(|world, _| world.trouble_mut().without_draining = args.no_draining);
        out::note(format_args!("local stack started in {}", duration(started.elapsed().as_secs_f64())));
        Ok(stack)
    })
    .await?;
    let _announced = announce(&desk, &State::of(&stack, &args.stack)).await;
    let outcome = unless_stopped(async {
        let outcome = sweep(&mut stack, &file, &args, wish).await;
        if let Some(keep) = &args.keep {
            copy::all(stack.config(), BUCKET, stack.table(), keep).await?;
        }
        outcome
    })
    .await;
    // If a part of the stack has ended, this explains every refused connection.
    let outcome = outcome.map_err(|failure| stack.check().err().unwrap_or(failure));
    if outcome.is_ok() {
        desk.unviewed(LAST_LOOK).await;
    }
    let logs = stack.functions_log().to_owned();
    let is_clean = outcome.as_ref().is_ok_and(|end| end.as_ref().is_none_or(Collected::is_clean));
    stack.stop(if is_clean { Logs::Remove } else { Logs::Keep }).await;
    match outcome {
        Ok(Some(collected)) => {
            report(&collected, args.json)?;
            Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
        }
        Ok(None) => Ok(ExitCode::from(FAILED)),
        Err(failure) => {
            out::note(format_args!("the functions' log: {}", logs.display()));
            Err(failure)
        }
    }
}

/// Publishes the demo's state, so that `watch` and other commands find its stack. Of two demos at once, only the first
/// one is found.
async fn announce(desk: &Desk, state: &State) -> Option<Hosting> {
    let hosting = desk.host().await.ok()?;
    hosting.announce(state).ok()?;
    Some(hosting)
}

/// The reclaims and zone changes that the options ask for.
fn wish(args: &Demo) -> Result<Wish, Failure> {
    let turns = args.trace.as_ref().map_or(Ok(Vec::new()), |folder| turns(folder, &ZONES.map(String::from)))?;
    Ok(Wish { count: args.reclaims, seed: args.seed, turns })
}

/// The folder in which the trials run. It is that of the sweep file if that folder has the file's program, and the
/// example's otherwise.
fn folder_of(file: &Path, installation: &Installation) -> Result<PathBuf, Failure> {
    let folder = match file.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Err(Failure::usage(format!("{} is not a file", file.display()))),
    };
    let own = sweep_file::read(file, "")?.is_ok_and(|sweep| holds_program(&sweep, folder));
    Ok(if own { folder.to_owned() } else { installation.digits() })
}

/// Drops the file, follows the sweep, and collects its results. `None` if the file was rejected.
async fn sweep(stack: &mut Stack, file: &Path, args: &Demo, wish: Wish) -> Result<Option<Collected>, Failure> {
    let s3 = spotsweep_aws::path_style_s3(stack.config());
    let settings = sweep_file::read(file, "")?.ok().map(|file| file.settings);
    if let Some(settings) = &settings {
        secrets::take_from_shell(stack.config(), BUCKET, settings).await?;
    }
    let code = match settings.as_ref().and_then(|settings| settings.code.as_ref()?.folder()) {
        Some(folder) => Some(code_folder::look(file, folder)?.send(&s3, BUCKET, false).await?),
        None => None,
    };
    let dropped = Dropped::put(s3.clone(), BUCKET, file, Given { code, ..Given::default() }).await?;
    out::note(format_args!("submitted {} to the bucket", file.display()));
    let plan = match dropped.answer().await? {
        Answer::Planned(plan) => plan,
        Answer::Rejected(rejection) => {
            sweep_file::explain(&rejected(&rejection));
            return Ok(None);
        }
    };
    let sweep = plan.get("sweep").and_then(Value::as_str).unwrap_or_default();
    out::note(format_args!("watch it in another terminal: spotsweep watch {sweep}"));
    if !wish.is_empty() {
        let time = duration(NOTICE.as_secs_f64());
        out::note(format_args!("an interruption notice is {time} here, instead of two minutes"));
    }
    let Watched { sweep, mut summary, failures, reclaims } = watch(stack, &plan, args.timeout, wish).await?;
    let folder = results_folder(&args.results)?.join(sweep.as_str());
    copy::copy(&s3, BUCKET, &sweep.results_prefix(), &folder).await?;
    let leftovers = cleaned_up(stack, &sweep).await?;
    if let Some(fields) = summary.as_object_mut() {
        // The bucket is removed with the stack, so the summary names the folder that stays.
        fields.insert("outputs".to_owned(), Value::from(folder.display().to_string()));
        fields.insert("reclaims".to_owned(), reclaims.as_ref().map_or(json!([]), Reclaims::json));
        fields.insert("leftovers".to_owned(), leftovers.json());
    }
    if let Some(reclaims) = &reclaims {
        tell(reclaims, stack, &sweep, args.verbose).await?;
    }
    Ok(Some(Collected { summary, folder, failures, leftovers }))
}

/// Waits until deletions are over, and returns what is still there and is not kept for a trial.
async fn cleaned_up(stack: &Stack, sweep: &SweepId) -> Result<Leftovers, Failure> {
    let reader = Reader::new(stack.config(), stack.table().to_owned());
    let deadline = Instant::now() + CLEAN_UP_DEADLINE;
    loop {
        let trials = reader.trials(sweep).await.context(|| format!("cannot read the trials of {sweep}"))?;
        let kept = trials.iter().filter_map(|trial| trial.workspace.as_ref()?.kept()?.snapshot);
        let leftovers = stack.leftovers().without(&kept.collect());
        if leftovers.is_empty() || Instant::now() >= deadline {
            return Ok(leftovers);
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// Prints which planned reclaims did not happen. With `--verbose` it also prints the history of the trial that was
/// interrupted most often.
async fn tell(reclaims: &Reclaims, stack: &Stack, sweep: &SweepId, verbose: bool) -> Result<(), Failure> {
    let (missed, planned) = reclaims.missed();
    if missed > 0 {
        let planned = counted(planned, "reclaim");
        out::note(format_args!("{missed} of {planned} found no trial in training: the sweep was over before"));
    }
    let reader = Reader::new(stack.config(), stack.table().to_owned());
    let Some(trial) = reclaims.most_interrupted().filter(|_| verbose) else { return Ok(()) };
    if let Some(history) = explain::read(&reader, sweep, trial).await? {
        out::note(format_args!("\n$ spotsweep explain {sweep} {trial}\n{}", history.text()));
    }
    Ok(())
}

/// Makes the folder of all results. A file in it keeps it out of the git repository around it.
fn results_folder(folder: &Path) -> Result<PathBuf, Failure> {
    let cannot_make = || format!("cannot make the folder {}", folder.display());
    if !folder.is_dir() {
        std::fs::create_dir_all(folder).context(cannot_make)?;
        std::fs::write(folder.join(".gitignore"), "*\n").context(cannot_make)?;
    }
    folder.canonicalize().context(cannot_make)
}

fn count(summary: &Value, field: &str) -> u64 {
    summary.get(field).and_then(Value::as_u64).unwrap_or(0)
}

/// Prints the leaderboard, the failures, and where the results are. With `json`, the summary is on standard output and
/// the rest on standard error.
fn report(collected: &Collected, json: bool) -> Result<(), Failure> {
    let Collected { summary, folder, failures, leftovers } = collected;
    let mut text = Vec::new();
    show::table(&mut text, &leaderboard(&folder.join("leaderboard.csv"))?)
        .context(|| "cannot lay out the leaderboard")?;
    let mut text = String::from_utf8_lossy(&text).into_owned();
    let time = duration(summary.get("wall_seconds").and_then(Value::as_f64).unwrap_or(0.0));
    let (trials, succeeded) = (counted(count(summary, "trials"), "trial"), count(summary, "succeeded"));
    let stopped = match count(summary, "stopped_early") {
        0 => String::new(),
        stopped => format!(", {stopped} stopped early,"),
    };
    text.push_str(&format!("\n{succeeded} of {trials} succeeded{stopped} in {time}\n"));
    for warning in summary.get("warnings").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        text.push_str(&format!("warning: {}\n", show::line(warning)));
    }
    for (index, reason) in failures.iter().take(SHOWN_FAILURES) {
        let log = folder.join(format!("trials/{index}/train.log"));
        text.push_str(&format!("trial {index} failed: {}; see {}\n", show::line(reason), log.display()));
    }
    if failures.len() > SHOWN_FAILURES {
        text.push_str(&format!("and {} more\n", failures.len() - SHOWN_FAILURES));
    }
    if let Some(reclaims) = summary.get("reclaims").and_then(Value::as_array).filter(|all| !all.is_empty()) {
        text.push_str(&losses(reclaims));
    }
    if !leftovers.is_empty() {
        text.push_str(&format!("left behind: {}\n", leftovers.names()));
    }
    text.push_str(&format!("models and logs: {}/trials/<index>/\n", folder.display()));
    text.push_str(&format!("report: {}", folder.join("report.html").display()));
    if json {
        out::note(format_args!("{text}"));
        out::results(|to| writeln!(to, "{summary}"))
    } else {
        out::results(|to| writeln!(to, "{text}"))
    }
}

/// What the reclaims have cost, in one sentence.
fn losses(reclaims: &[Value]) -> String {
    let mut seconds: Vec<f64> = reclaims.iter().filter_map(|reclaim| reclaim.get("seconds_lost")?.as_f64()).collect();
    seconds.sort_by(f64::total_cmp);
    let median = duration(seconds.get(seconds.len() / 2).copied().unwrap_or(0.0));
    let worst = duration(seconds.last().copied().unwrap_or(0.0));
    let epochs: u64 = reclaims.iter().map(|reclaim| count(reclaim, "epochs_repeated")).sum();
    let (times, epochs) = (reclaims.len(), counted(epochs, "epoch"));
    format!(
        "instances lost under a trial: {times}; until it ran again: median {median}, at worst {worst}; \
         {epochs} repeated\n"
    )
}

/// The header and the first rows of the leaderboard: rank, index, and the columns that distinguish trials.
fn leaderboard(path: &Path) -> Result<Vec<Vec<String>>, Failure> {
    let unreadable = || format!("cannot read {}", path.display());
    let mut csv = csv::Reader::from_path(path).context(unreadable)?;
    let header = csv.headers().context(unreadable)?.clone();
    let mut rows = Vec::new();
    let mut differs = vec![false; header.len()];
    let mut first: Option<csv::StringRecord> = None;
    for row in csv.records() {
        let row = row.context(unreadable)?;
        let first = first.get_or_insert_with(|| row.clone());
        for ((cell, of_first), differs) in row.iter().zip(first.iter()).zip(&mut differs) {
            *differs |= cell != of_first;
        }
        if rows.len() < SHOWN_ROWS {
            rows.push(row);
        }
    }
    let is_alone = rows.len() == 1;
    let shown = |column: &usize| *column < 2 || is_alone || differs.get(*column).copied().unwrap_or(false);
    let columns: Vec<usize> = (0..header.len()).filter(shown).collect();
    let cells = |row: &csv::StringRecord, text: &dyn Fn(&str) -> String| {
        columns.iter().filter_map(|column| row.get(*column)).map(text).collect()
    };
    let names = cells(&header, &|name| bare(name, &header).to_owned());
    Ok(std::iter::once(names).chain(rows.iter().map(|row| cells(row, &short))).collect())
}

/// A parameter's own name, unless a metric has the same name.
fn bare<'a>(name: &'a str, header: &csv::StringRecord) -> &'a str {
    name.strip_prefix("parameters.").filter(|bare| header.iter().all(|other| other != *bare)).unwrap_or(name)
}

/// A number with few enough digits to be compared by eye. The file has all of them.
fn short(cell: &str) -> String {
    let has_many_digits = cell.len() > 8 && cell.contains('.');
    match cell.parse::<f64>() {
        Ok(number) if has_many_digits && number.is_finite() => rounded(number, 5),
        Ok(_) | Err(_) => cell.to_owned(),
    }
}

/// Whether the file's command names a program in the folder, so that its trials can run there.
fn holds_program(file: &SweepFile, folder: &Path) -> bool {
    let words = file.settings.command.iter().flatten();
    let names_file = |word: &String| !word.is_empty() && !word.starts_with('/') && folder.join(word).is_file();
    words.into_iter().any(names_file)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_leaderboard_shows_what_tells_trials_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("leaderboard.csv");
        let mut text = String::from("rank,index,status,acc,parameters.lr,parameters.seed\n");
        for rank in 1..=12 {
            text.push_str(&format!("{rank},7,succeeded,0.12345678{rank},{rank},1\n"));
        }
        std::fs::write(&path, &text).unwrap();
        let shown = leaderboard(&path).unwrap();
        assert_eq!(shown.len(), 1 + SHOWN_ROWS);
        assert_eq!(shown[0], ["rank", "index", "acc", "lr"]);
        assert_eq!(shown[2], ["2", "7", "0.12346", "2"]);
        std::fs::write(&path, text.lines().take(2).collect::<Vec<_>>().join("\n")).unwrap();
        assert_eq!(leaderboard(&path).unwrap()[0], ["rank", "index", "status", "acc", "lr", "seed"]);
        std::fs::write(&path, "rank,index,lr,parameters.lr\n1,0,0.1,0.1\n2,1,0.2,parameters.x\n").unwrap();
        let shown = leaderboard(&path).unwrap();
        assert_eq!((&shown[0][3], &shown[2][3]), (&"parameters.lr".to_owned(), &"parameters.x".to_owned()));
    }
}
