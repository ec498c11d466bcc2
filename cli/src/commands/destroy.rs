//! `spotsweep destroy`: removes a deployment, in the order of docs/teardown.md.

mod data;
mod remains;

use std::process::ExitCode;

use aws_sdk_cloudformation::Client;
use spotsweep_aws::Reader;
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::words::counted;
use spotsweep_records::sweep::{Stage, Sweep};

use self::remains::Remains;
use super::cloudformation::existing::Existing;
use super::cloudformation::progress::Progress;
use crate::consent::Loss;
use crate::out;
use crate::signals::unless_stopped;
use crate::target::{self, Target};

/// `spotsweep destroy`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Refuses while a sweep runs or a trial has a volume: end them with `spotsweep cancel SWEEP --delete`. Bucket and table \
outlive the stack, because they have your models and the record of what ran; --with-data deletes them too.

Examples:
  spotsweep destroy
  spotsweep destroy --with-data --yes

Exit codes: 0 the deployment is gone, 1 something of it is left, 2 wrong usage.")]
pub(crate) struct Destroy {
    /// Name of the CloudFormation stack
    #[arg(long, env = "SPOTSWEEP_STACK", value_name = "STACK", default_value = "spotsweep")]
    stack: String,
    /// Delete the bucket with all models, and the table, too
    #[arg(long)]
    with_data: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// Runs the command. CloudFormation finishes a deletion that was begun, also if the command is stopped.
pub(super) async fn run(args: Destroy) -> Result<ExitCode, Failure> {
    let config = target::sdk_config().await?;
    unless_stopped(destroy(&args, Target::of(config, args.stack.clone()))).await
}

async fn destroy(args: &Destroy, target: Target) -> Result<ExitCode, Failure> {
    let client = Client::new(&target.config);
    let existing = Existing::find(&client, &args.stack).await?;
    if let (Some(id), Some(status)) = (existing.id(), existing.failed()) {
        let what = format!("delete stack {}, which is {status}", target.described());
        Loss { what: &what, named: None, id: None }.agreed(args.yes).await?;
        remove(&client, id).await?;
        out::note(format_args!("what such a stack leaves: docs/deploy.md, \"If the first deployment fails\""));
        return Ok(ExitCode::SUCCESS);
    }
    let (Some(id), Some(bucket), Some(table)) = (existing.id(), existing.output("Bucket"), existing.output("Table"))
    else {
        return Err(Failure::new(format!("there is no deployment {} here", target.described())));
    };
    let sweeps = Reader::new(&target.config, table.to_owned()).sweeps().await;
    let sweeps = sweeps.context(|| format!("cannot read the table {table}"))?;
    none_open(&sweeps)?;
    let prefix = existing.parameter("NamePrefix").map_or("spotsweep-", String::as_str);
    let remains = Remains::of(&target, &sweeps, (prefix, bucket)).await?;
    let mut what = format!("delete stack {}{}", target.described(), remains.described());
    if args.with_data {
        what.push_str(&format!(", the bucket {bucket} with all models, and the table {table}"));
    }
    Loss { what: &what, named: None, id: None }.agreed(args.yes).await?;
    remains.delete().await?;
    remove(&client, id).await?;
    if args.with_data {
        data::delete(&target.config, bucket, table).await?;
    } else {
        out::note(format_args!(
            "the bucket {bucket} and the table {table} are still there (docs/teardown.md says how to delete them)"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

async fn remove(client: &Client, id: &str) -> Result<(), Failure> {
    let mut progress = Progress::of(client, id).await?;
    let begun = client.delete_stack().stack_name(id).send().await;
    begun.context(|| "cannot delete the stack (cloudformation:DeleteStack)")?;
    progress.follow().await
}

fn none_open(sweeps: &[Sweep]) -> Result<(), Failure> {
    let is_open = |sweep: &&Sweep| !matches!(sweep.stage, Stage::Settled | Stage::Rejected);
    let open: Vec<&str> = sweeps.iter().filter(is_open).map(|sweep| sweep.id.as_str()).collect();
    match open[..] {
        [] => Ok(()),
        [first, ..] => Err(Failure::new(format!(
            "{} not ended; end each first, as in `spotsweep cancel {first} --delete`",
            if open.len() == 1 { "a sweep has".to_owned() } else { format!("{} have", counted(open.len(), "sweep")) }
        ))),
    }
}
