//! `spotsweep secret`: stores secrets for sweeps, lists and deletes them.

use std::io::{self, IsTerminal as _, Read as _};
use std::process::ExitCode;

use clap::Subcommand;
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::mask::LEAST_BYTES;
use spotsweep_sweep_file::secret_name_problem;

use crate::commands::code::Bucket;
use crate::consent::Loss;
use crate::secrets::{MOST_BYTES, Secrets};
use crate::{out, show, target};

/// `spotsweep secret`
#[derive(Debug, Subcommand)]
pub(crate) enum Secret {
    /// Store a secret, for `secrets: [NAME]` of a sweep file. Its value comes from standard input or from a prompt
    #[command(after_help = "\
Examples:
  spotsweep secret set WANDB_API_KEY
  spotsweep secret set GIT_KEY < ~/.ssh/deploy_key")]
    Set {
        /// The secret's name
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        bucket: Bucket,
    },
    /// List the secrets, without their values
    #[command(after_help = "Example:\n  spotsweep secret ls")]
    Ls {
        #[command(flatten)]
        bucket: Bucket,
    },
    /// Delete a secret: no later attempt of a sweep that names it can start
    #[command(after_help = "Example:\n  spotsweep secret rm WANDB_API_KEY")]
    Rm {
        /// The secret's name
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        bucket: Bucket,
        /// Delete it without asking
        #[arg(long)]
        yes: bool,
    },
}

/// Runs the command.
pub(crate) async fn run(command: Secret) -> Result<ExitCode, Failure> {
    match command {
        Secret::Set { name, bucket } => set(&name, bucket).await?,
        Secret::Ls { bucket } => ls(bucket).await?,
        Secret::Rm { name, bucket, yes } => rm(&name, bucket, yes).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn set(name: &str, bucket: Bucket) -> Result<(), Failure> {
    check(name)?;
    let target = target::bucket(bucket.bucket).await?;
    let value = value(name)?;
    let is_short = value.len() < LEAST_BYTES;
    let version = Secrets::of_bucket(&target.config, &target.name).set(name, value).await?;
    if is_short {
        out::note(format_args!("a value of fewer than {LEAST_BYTES} bytes is not hidden in what trainings print"));
    }
    out::note(format_args!(
        "stored {name}, version {version}, for {}: attempts read it at their start",
        target.described()
    ));
    Ok(())
}

/// Reads the value from standard input, or asks a person for it.
fn value(name: &str) -> Result<String, Failure> {
    let value = if io::stdin().is_terminal() {
        rpassword::prompt_password(format!("value of {name}: ")).context(|| "cannot read the value")?
    } else {
        let mut value = String::new();
        let most = u64::try_from(MOST_BYTES).unwrap_or(u64::MAX) + 2;
        let read = io::stdin().take(most).read_to_string(&mut value);
        read.context(|| "cannot read the value from standard input as UTF-8 text")?;
        value
    };
    // `echo` and editors add a line break at the end.
    let value = value.strip_suffix('\n').map_or(value.as_str(), |line| line.strip_suffix('\r').unwrap_or(line));
    match value {
        "" => Err(Failure::usage(format!("the value of {name} is empty: write it to standard input"))),
        value if value.len() > MOST_BYTES => Err(Failure::usage(format!(
            "the value of {name} has more than {MOST_BYTES} bytes: store a file in S3 instead"
        ))),
        value if value.contains('\0') => {
            Err(Failure::usage(format!("the value of {name} has a null character, which no variable may have")))
        }
        value => Ok(value.to_owned()),
    }
}

async fn ls(bucket: Bucket) -> Result<(), Failure> {
    let target = target::bucket(bucket.bucket).await?;
    let mut rows = vec![["NAME", "VERSION", "CHANGED"].map(String::from).to_vec()];
    let secrets = Secrets::of_bucket(&target.config, &target.name);
    rows.extend(secrets.all().await?.into_iter().map(|found| {
        let name = secrets.name(&found).unwrap_or_default().to_owned();
        let changed = found.last_modified_date().map(ToString::to_string).unwrap_or_default();
        vec![name, found.version().to_string(), changed]
    }));
    if rows.len() == 1 {
        out::note(format_args!("no secrets yet"));
        return Ok(());
    }
    out::results(|to| show::table(to, &rows))
}

async fn rm(name: &str, bucket: Bucket, yes: bool) -> Result<(), Failure> {
    check(name)?;
    let target = target::bucket(bucket.bucket).await?;
    let what = format!("delete the secret {name} of {}, which sweeps may still use", target.described());
    Loss { what: &what, named: None, id: None }.agreed(yes).await?;
    match Secrets::of_bucket(&target.config, &target.name).remove(name).await? {
        true => Ok(()),
        false => Err(Failure::new(format!("{} has no secret {name}", target.described()))),
    }
}

fn check(name: &str) -> Result<(), Failure> {
    match secret_name_problem(name) {
        Some((message, help)) => Err(Failure::usage(format!("{message}; {help}"))),
        None => Ok(()),
    }
}
