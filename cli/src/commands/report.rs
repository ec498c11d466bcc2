//! `spotsweep report`: writes a sweep's report page to a file, opens it in the browser, or makes a link for others.

mod compare;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use aws_sdk_s3::presigning::PresigningConfig;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use spotsweep_aws::results;
use spotsweep_control_plane::command::Command::Gather;
use spotsweep_control_plane::execute::Services;
use spotsweep_control_plane::handle::Executor;
use spotsweep_control_plane::outcome::Outcome;
use spotsweep_records::sweep::Stage;
use spotsweep_report::inputs::Wanted;
use spotsweep_report::page::render;
use tokio::process::Command;

use crate::download::{Arrival, Object, Present, fetch, list};
use crate::sweeps::Found;
use crate::target::Table;
use crate::{out, save, sweeps};
use spotsweep_protocol::failure::{Context, Failure};

/// Name of the report among a sweep's results.
const PAGE: &str = "report.html";
/// How long a link works by default.
const LINK_LASTS: &str = "24h";
/// S3's limit of a signature (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/using-presigned-url.html>).
const LONGEST_LINK: Duration = Duration::from_secs(7 * 24 * 3600);

/// `spotsweep report`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
One page with all that is known of the sweep; it needs no network. While the sweep runs the page is drawn now, from \
what is known by now. The command prints where it has put the page; with --link it prints an address instead, which shows it to whoever has the address, without any credentials, until it expires. One \
that was signed with temporary credentials (SSO, a role) ends with those.

Examples:
  spotsweep report digits-1a2b3c4d5e6f --open
  spotsweep report digits-1a2b3c4d5e6f --output digits.html
  spotsweep report digits-1a2b3c4d5e6f --link --expires 2h
  spotsweep report digits-1a2b3c4d5e6f text-0f1e2d3c4b5a   two sweeps side by side, as a table")]
pub(crate) struct Report {
    /// The sweep: its id, the beginning of its id, or `latest`
    #[arg(value_name = "SWEEP")]
    sweep: String,
    /// Another sweep: print a table that compares the two
    #[arg(value_name = "OTHER", conflicts_with_all = ["open", "output", "link"])]
    other: Option<String>,
    /// Show it in the browser: $BROWSER, else the system's own
    #[arg(long)]
    open: bool,
    /// Where it goes [default: a file of the sweep's name in the user's cache]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print a link that works without credentials, and fetch nothing
    #[arg(long, conflicts_with_all = ["open", "output"])]
    link: bool,
    /// How long the link works, at most 7d
    #[arg(long, value_name = "TIME", default_value = LINK_LASTS, value_parser = lasting, requires = "link")]
    expires: Duration,
    /// Print path or link as one line of JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    table: Table,
}

/// Runs the command. It fails if there is nothing to draw, or if a link is asked for and there is no report yet.
pub(super) async fn run(args: Report) -> Result<ExitCode, Failure> {
    let found = sweeps::find(args.table.clone(), &args.sweep).await?;
    if let Some(other) = &args.other {
        let other = sweeps::find(args.table.clone(), other).await?;
        return compare::compare(&found, &other, args.json).await.map(|()| ExitCode::SUCCESS);
    }
    let key = format!("{}{PAGE}", found.sweep.id.results_prefix());
    let objects = list(&found.s3(), found.bucket(), &key, &found.sweep.id.results_prefix()).await?;
    let object = objects.objects.into_iter().find(|object| object.key == key);
    if args.link {
        let (sweep, stage) = (&found.sweep.id, found.sweep.stage.name());
        object.ok_or_else(|| {
            Failure::new(format!("no report yet: updated every 10–15 min and at the end; {sweep} is {stage}"))
        })?;
        return link(&found, &key, &args).await.map(|()| ExitCode::SUCCESS);
    }
    let file = match &args.output {
        Some(file) => file.clone(),
        // The name differs from that among the results, because the page's links depend on it.
        None => cache()?.join("spotsweep").join(format!("{}.html", found.sweep.id)),
    };
    let file = std::path::absolute(&file).context(|| format!("cannot use {}", file.display()))?;
    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else {
        return Err(Failure::usage(format!("{} is not a file", file.display())));
    };
    match object.filter(|_| found.sweep.stage == Stage::Settled) {
        Some(object) => fetched(&found, Object { path: name.into(), ..object }, folder).await?,
        None => {
            let page = drawn(&found).await?;
            fs::create_dir_all(folder).context(|| format!("cannot make the folder {}", folder.display()))?;
            save::whole(&file, page.as_bytes())?;
        }
    }
    let path = file.display();
    out::results(|to| {
        if args.json { writeln!(to, "{}", json!({ "path": path.to_string() })) } else { writeln!(to, "{path}") }
    })?;
    if args.open {
        open(&file).await?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Downloads the page that the control plane has drawn.
async fn fetched(found: &Found, object: Object, folder: &Path) -> Result<(), Failure> {
    let mut refused = None;
    let tell = |arrival| match arrival {
        Arrival::Fetched(_) | Arrival::WasThere(_) => {}
        Arrival::Failed(trouble) => refused = Some(trouble),
    };
    fetch(&found.s3(), found.bucket(), vec![object], folder, Present::Replace, tell).await?;
    refused.map_or(Ok(()), |trouble| Err(Failure::from(trouble)))
}

/// Draws the page as the control plane would now. It has the prices that the caller may read.
async fn drawn(found: &Found) -> Result<String, Failure> {
    let (sweep, plan, trials) = (&found.sweep, found.plan()?, found.trials().await?);
    let reads = Services::default().reaching(results(&found.target.config));
    let gathered = reads.execute(Gather { wanted: Wanted::of(sweep, plan, &trials), trials: trials.into() }).await;
    let gathered = gathered.context(|| format!("cannot read what {} has collected", sweep.id))?;
    let inputs = gathered.into_iter().find_map(|outcome| {
        let Outcome::ReportInputs { trials, inputs, .. } = outcome else { return None };
        Some((trials, inputs))
    });
    let (trials, inputs) =
        inputs.ok_or_else(|| Failure::new("nothing was gathered for the report: a defect, please report it"))?;
    let made = inputs.results(sweep, plan, &trials, false, Timestamp::now());
    let (results, _) = made.context(|| "trials.jsonl is not what sweep-upload has written")?;
    Ok(render(&results.report))
}

async fn link(found: &Found, key: &str, args: &Report) -> Result<(), Failure> {
    let config = PresigningConfig::expires_in(args.expires).context(|| "cannot sign for so long")?;
    let signed = found.s3().get_object().bucket(found.bucket()).key(key).presigned(config).await;
    let url = signed.context(|| format!("cannot sign a link to s3://{}/{key}", found.bucket()))?.uri().to_owned();
    let lasts = SignedDuration::try_from(args.expires).unwrap_or(SignedDuration::ZERO);
    let until = (Timestamp::now() + lasts).strftime("%Y-%m-%d %H:%M:%SZ").to_string();
    out::results(|to| match args.json {
        true => writeln!(to, "{}", json!({ "link": url, "expires": until })),
        false => writeln!(to, "{url}"),
    })?;
    out::note(format_args!("works until {until}, for everybody who has it"));
    Ok(())
}

/// The user's cache folder (<https://specifications.freedesktop.org/basedir-spec/latest/>).
fn cache() -> Result<PathBuf, Failure> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    folder("XDG_CACHE_HOME")
        .or_else(|| folder("HOME").map(|home| home.join(".cache")))
        .ok_or_else(|| Failure::usage("there is no home folder to put the report into: name a file with --output"))
}

/// Starts a browser, and does not wait for it.
async fn open(file: &Path) -> Result<(), Failure> {
    let system = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let browser = std::env::var("BROWSER").ok().filter(|browser| !browser.is_empty());
    let browser = browser.unwrap_or_else(|| system.to_owned());
    let started =
        Command::new(&browser).arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    started.map(drop).context(|| format!("cannot start {browser}; open {} yourself", file.display()))
}

/// Parses a time such as `90m`, `2h` or `1d`.
fn lasting(text: &str) -> Result<Duration, String> {
    let units = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)];
    let parsed = units.iter().find_map(|(unit, seconds)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        Some(Duration::from_secs(number.checked_mul(*seconds)?))
    });
    match parsed {
        Some(lasts) if !lasts.is_zero() && lasts <= LONGEST_LINK => Ok(lasts),
        Some(_) | None => Err("write a time such as 90m, 2h or 1d, at most 7d".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_last_for_a_while() {
        for (text, seconds) in [("90s", 90), ("90m", 5_400), ("24h", 86_400), ("7d", 604_800)] {
            assert_eq!(lasting(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "0h", "8d", "h", "1.5h", "-1s", "3", "99999999999999999999d"] {
            assert!(lasting(text).is_err(), "{text}");
        }
    }
}
