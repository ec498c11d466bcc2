//! `spotsweep doctor`: checks everything that a deployment needs, and says for each problem what to do.

mod account;
mod batch;
mod before;
mod concurrency;
mod control_plane;
pub(super) mod finding;
mod gpu_image;
mod launch_template;
pub(super) mod quotas;
mod runner;
pub(super) mod stack;
mod storage;

#[cfg(feature = "local")]
use std::collections::BTreeMap;
use std::process::ExitCode;

#[cfg(feature = "local")]
use aws_config::SdkConfig;
use serde_json::json;

use self::finding::{Finding, State};
use self::stack::Deployment;
use crate::signals::unless_stopped;
use crate::target::{self, Target};
use crate::{out, show};
use spotsweep_protocol::failure::{FAILED, Failure};
use spotsweep_protocol::words::counted;

/// `spotsweep doctor`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Only reads. \"look\" is what fails nothing, or what AWS does not tell this command, with the command that tells it. With \
--before-deploy no stack is needed: it checks the instance types, zones and quotas of the region that AWS_REGION or the \
profile names, and says which parameter of the template to set.

Examples:
  spotsweep doctor --stack spotsweep
  spotsweep doctor --before-deploy
  spotsweep doctor --before-deploy --instance-types g5.xlarge,g5.2xlarge --max-vcpus 64
  spotsweep doctor --stack spotsweep --json | jq 'select(.state == \"problem\")'

Exit codes: 0 nothing is wrong, 1 there is a problem, 2 wrong usage.")]
pub(crate) struct Doctor {
    /// The deployment's CloudFormation stack; without it the local stack is used where one is running
    #[arg(long, env = "SPOTSWEEP_STACK", value_name = "STACK")]
    stack: Option<String>,
    /// One line of JSON per finding
    #[arg(long)]
    json: bool,
    /// Check what a first deployment meets in this account and region, and no stack
    #[arg(long)]
    before_deploy: bool,
    #[command(flatten)]
    parameters: before::Parameters,
}

/// Runs the command. The exit code is 1 if there is a problem.
pub(super) async fn run(args: Doctor) -> Result<ExitCode, Failure> {
    let (findings, what) = if args.before_deploy {
        let config = target::sdk_config().await?;
        let findings = unless_stopped(async { Ok(before::examine(&config, &args.parameters).await) }).await?;
        (findings, "a deployment here".to_owned())
    } else {
        let target = target::stack(args.stack).await?;
        let findings = unless_stopped(async { Ok(examine(&target, &[]).await) }).await?;
        (findings, format!("stack {}", target.name))
    };
    if args.json {
        out::results(|to| findings.iter().try_for_each(|finding| writeln!(to, "{}", line(finding))))?;
    } else {
        out::results(|to| findings.iter().try_for_each(|finding| finding.write(to)))?;
    }
    match findings.iter().filter(|finding| finding.state == State::Problem).count() {
        0 => out::note(format_args!("nothing is wrong with {what}")),
        count => out::note(format_args!("{} with {what}", counted(count, "problem"))),
    }
    Ok(exit_code(&findings))
}

/// 1 if there is a problem.
pub(super) fn exit_code(findings: &[Finding]) -> ExitCode {
    let has_problem = findings.iter().any(|finding| finding.state == State::Problem);
    if has_problem { ExitCode::from(FAILED) } else { ExitCode::SUCCESS }
}

/// What a deployment is like.
#[cfg(feature = "local")]
pub(super) async fn findings(target: &Target) -> Vec<Finding> {
    examine(target, &[]).await
}

/// What a first deployment meets, with these values of the template's parameters.
#[cfg(feature = "local")]
pub(super) async fn before_deploy(config: &SdkConfig, values: &BTreeMap<String, String>) -> Vec<Finding> {
    before::examine(config, &before::Parameters::of(values)).await
}

/// The problems of a deployment whose sweeps use this queue and this job definition.
pub(super) async fn problems(target: &Target, queue: &str, definition: &str) -> Vec<Finding> {
    let named = [("SPOTSWEEP_QUEUE", queue), ("SPOTSWEEP_JOB_DEFINITION", definition)];
    let findings = examine(target, &named).await.into_iter();
    findings.filter(|finding| finding.state == State::Problem).collect()
}

/// Checks everything, in an order in which each thing needs only earlier ones. What cannot be read is a problem, too.
/// `named` replaces variables of the functions.
async fn examine(target: &Target, named: &[(&str, &str)]) -> Vec<Finding> {
    let mut findings = account::look(&target.config).await;
    if findings.iter().any(|finding| finding.state == State::Problem) {
        // Without credentials, everything else would fail with the same message.
        return findings;
    }
    let deployment = match Deployment::find(target).await {
        Ok((deployment, found)) => {
            findings.extend(found);
            deployment
        }
        Err(problem) => {
            findings.push(*problem);
            return findings;
        }
    };
    let (found, mut variables) = control_plane::functions(target, &deployment).await;
    variables.extend(named.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    findings.extend(found);
    findings.extend(control_plane::rules(target, &deployment).await);
    findings.extend(storage::bucket(target, &deployment).await);
    findings.extend(storage::table(target, &deployment).await);
    findings.extend(storage::queues(target, &deployment).await);
    findings.extend(batch::look(target, &deployment, &variables).await);
    findings
}

fn line(finding: &Finding) -> serde_json::Value {
    let Finding { about, state, said, fix } = finding;
    json!({ "about": about, "state": state.name(), "said": said, "do": fix })
}

impl Finding {
    pub(super) fn write(&self, to: &mut dyn std::io::Write) -> std::io::Result<()> {
        let Self { about, state, said, fix } = self;
        show::row(to, &[7, 20, 0], [state.name(), about.as_str(), said.as_str()].iter())?;
        fix.iter().try_for_each(|fix| show::row(to, &[7, 20, 0], ["", "", &format!("→ {fix}")].iter()))
    }
}
