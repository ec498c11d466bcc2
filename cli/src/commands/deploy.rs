//! `spotsweep deploy`: creates or updates a deployment from the templates and programs of a release, without a compiler.

mod change;
mod release;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use aws_sdk_cloudformation::Client;
use spotsweep_local_stack::installation::Installation;
use spotsweep_protocol::failure::Failure;

use self::change::Change;
use self::release::{Artifacts, Release};
use super::cloudformation::existing::Existing;
use super::doctor;
use crate::consent::Loss;
use crate::signals::unless_stopped;
use crate::target::{self, Target};
use crate::{out, show};

/// `spotsweep deploy`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Uploads the functions and the templates to a bucket of the account, shows what CloudFormation would change, asks, and \
follows the change. A parameter that is not given keeps its value, or has the template's default. At the end doctor \
checks the deployment. Sweeps that run go on: a trial keeps the job definition with which its sweep began.

Examples:
  spotsweep deploy
  spotsweep deploy --parameter AlarmMail=me@example.com --parameter MaxVcpus=64
  spotsweep deploy --dry-run

Exit codes: 0 the deployment is as it should be, 1 it failed and was rolled back, or doctor finds a problem, 2 wrong \
usage.")]
pub(crate) struct Deploy {
    /// Name of the CloudFormation stack
    #[arg(long, env = "SPOTSWEEP_STACK", value_name = "STACK", default_value = "spotsweep")]
    stack: String,
    /// A parameter of the template (docs/deploy.md), as NAME=VALUE; may be given several times
    #[arg(long = "parameter", value_name = "NAME=VALUE", value_parser = named_value)]
    parameters: Vec<(String, String)>,
    /// The folder of a release, with infra/, arm64/ and x86_64/; without it that of the installed package
    #[arg(long, value_name = "FOLDER")]
    from: Option<PathBuf>,
    /// Show what would change, and do not change it
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

fn named_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Runs the command. CloudFormation finishes a change that was begun, also if the command is stopped.
pub(super) async fn run(args: Deploy) -> Result<ExitCode, Failure> {
    let config = target::sdk_config().await?;
    let release = match args.from.clone() {
        Some(folder) => Release::open(folder)?,
        None => Release::open(Installation::locate()?.release().ok_or_else(|| {
            Failure::usage(
                "this command was built from a checkout, which has no functions for AWS: install the package, name a \
                 release with --from, or use `sam deploy` (docs/deploy.md)",
            )
        })?)?,
    };
    unless_stopped(deploy(&args, &release, Target::of(config, args.stack.clone()))).await
}

async fn deploy(args: &Deploy, release: &Release, target: Target) -> Result<ExitCode, Failure> {
    let client = Client::new(&target.config);
    let existing = Existing::find(&client, &args.stack).await?;
    if let Some(status) = existing.failed() {
        let removed = "`spotsweep destroy` removes it (docs/deploy.md, \"If the first deployment fails\")";
        return Err(Failure::new(format!("stack {} is {status}, and takes no change: {removed}", args.stack)));
    }
    let mut given: BTreeMap<_, _> = args.parameters.iter().cloned().collect();
    let known = change::parameters(&client, &release.root()?).await?;
    if let Some(unknown) = given.keys().find(|name| !known.contains_key(*name)) {
        let names: Vec<&str> = known.keys().map(String::as_str).collect();
        return Err(Failure::usage(format!("the template has no parameter {unknown:?}; it has {}", names.join(", "))));
    }
    let runners = release.runners()?;
    for runner in &runners {
        if known.contains_key(runner.parameter) {
            given.entry(runner.parameter.to_owned()).or_insert_with(|| runner.sha256.clone());
        }
    }
    if !existing.is_there() {
        show_findings(&doctor::before_deploy(&target.config, &merged(&known, &given)).await)?;
    }
    let architectures = [given.get("Architecture"), existing.parameter("Architecture"), known.get("Architecture")];
    let architecture = architectures.into_iter().flatten().next().map_or("", String::as_str);
    let artifacts = Artifacts::open(&target.config).await?;
    let template = release.upload(&artifacts, architecture).await?;
    let Some(change) = Change::prepare(&client, &existing, &template, (&known, &given)).await? else {
        out::note(format_args!("stack {} is as this release has it: nothing to change", args.stack));
        return Ok(ExitCode::SUCCESS);
    };
    change.show()?;
    if args.dry_run {
        change.discard().await?;
        return Ok(ExitCode::SUCCESS);
    }
    let what = format!("{} stack {}", if existing.is_there() { "update" } else { "create" }, target.described());
    if let Err(refused) = (Loss { what: &what, named: None, id: None }).agreed(args.yes).await {
        change.discard().await?;
        return Err(refused);
    }
    // Instances fetch the runner when they boot. The first ones boot for the first sweep.
    if let Some(bucket) = existing.output("Bucket") {
        artifacts.put_runners(bucket, &runners).await?;
    }
    change.execute().await?;
    let deployed = Existing::find(&client, &args.stack).await?;
    if let (None, Some(bucket)) = (existing.output("Bucket"), deployed.output("Bucket")) {
        artifacts.put_runners(bucket, &runners).await?;
    }
    for (variable, output) in [("SPOTSWEEP_BUCKET", "Bucket"), ("SPOTSWEEP_TABLE", "Table")] {
        let value = deployed.output(output).unwrap_or_default();
        out::results(|to| writeln!(to, "export {variable}={}", show::line(value)))?;
    }
    let findings = doctor::findings(&target).await;
    show_findings(&findings)?;
    Ok(doctor::exit_code(&findings))
}

/// The template's defaults, with what is given in their places.
fn merged(known: &BTreeMap<String, String>, given: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    known.iter().chain(given).map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn show_findings(findings: &[doctor::finding::Finding]) -> Result<(), Failure> {
    out::results(|to| findings.iter().try_for_each(|finding| finding.write(to)))
}
