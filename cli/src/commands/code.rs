//! `spotsweep code`: sends folders of code without a sweep, lists and deletes them.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use spotsweep_protocol::claim::{PACKED_PREFIX, packed_key};
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::words::size;
use spotsweep_sweep_file::{Code as Named, Folder};

use crate::consent::Loss;
use crate::download::pages_below;
use crate::{code_folder, out, show, target};

/// The bucket of the folders, whose name the secrets of its deployment have too.
#[derive(Debug, clap::Args)]
pub(crate) struct Bucket {
    /// The control plane's bucket
    #[arg(long, env = "SPOTSWEEP_BUCKET", value_name = "BUCKET")]
    pub(super) bucket: Option<String>,
}

/// `spotsweep code`
#[derive(Debug, Subcommand)]
pub(crate) enum Code {
    /// Pack a folder and send it; prints its SHA-256, for `code: {sha256: …}` of a sweep file
    #[command(after_help = "Example:\n  spotsweep code push ../train")]
    Push {
        /// The folder
        #[arg(value_name = "FOLDER", default_value = ".")]
        folder: PathBuf,
        #[command(flatten)]
        bucket: Bucket,
        /// Send more than 100 MiB without asking
        #[arg(long)]
        yes: bool,
    },
    /// List the folders that were sent
    #[command(after_help = "Example:\n  spotsweep code ls")]
    Ls {
        #[command(flatten)]
        bucket: Bucket,
    },
    /// Delete a folder that was sent: no later attempt of a sweep that names it can start
    #[command(after_help = "Example:\n  spotsweep code rm 2f1a…")]
    Rm {
        /// The SHA-256 of the folder
        #[arg(value_name = "SHA256")]
        sha256: String,
        #[command(flatten)]
        bucket: Bucket,
        /// Delete it without asking
        #[arg(long)]
        yes: bool,
    },
}

/// Runs the command.
pub(crate) async fn run(command: Code) -> Result<ExitCode, Failure> {
    match command {
        Code::Push { folder, bucket, yes } => push(folder, bucket, yes).await?,
        Code::Ls { bucket } => ls(bucket).await?,
        Code::Rm { sha256, bucket, yes } => rm(&sha256, bucket, yes).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn push(folder: PathBuf, bucket: Bucket, yes: bool) -> Result<(), Failure> {
    let all = Folder { folder: folder.display().to_string(), include: Vec::new(), exclude: Vec::new() };
    let found = code_folder::look("sweep.yaml".as_ref(), &all)?;
    let target = target::bucket(bucket.bucket).await?;
    let s3 = spotsweep_aws::path_style_s3(&target.config);
    let sha256 = found.send(&s3, &target.name, yes).await?;
    out::results(|to| writeln!(to, "{sha256}"))
}

async fn ls(bucket: Bucket) -> Result<(), Failure> {
    let target = target::bucket(bucket.bucket).await?;
    let s3 = spotsweep_aws::path_style_s3(&target.config);
    let mut rows = vec![["SENT", "SIZE", "SHA256"].map(String::from).to_vec()];
    pages_below(&s3, &target.name, PACKED_PREFIX, |page| {
        rows.extend(page.into_iter().filter_map(|(key, object)| {
            let sha256 = key.strip_prefix(PACKED_PREFIX)?.strip_suffix(".tar.zst")?.to_owned();
            let bytes = object.size.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0);
            let sent = object.last_modified.map(|at| at.to_string()).unwrap_or_default();
            Some(vec![sent, size(bytes), sha256])
        }));
        Ok(())
    })
    .await?;
    if rows.len() == 1 {
        out::note(format_args!("no folders yet"));
        return Ok(());
    }
    out::results(|to| show::table(to, &rows))
}

async fn rm(sha256: &str, bucket: Bucket, yes: bool) -> Result<(), Failure> {
    if Named::packed(sha256).is_none() {
        return Err(Failure::usage(format!("{sha256} is no SHA-256: write the 64 characters that `code ls` shows")));
    }
    let target = target::bucket(bucket.bucket).await?;
    let key = packed_key(sha256);
    let what = format!("delete the code s3://{}/{key}, which sweeps may still use", target.name);
    Loss { what: &what, named: None, id: None }.agreed(yes).await?;
    let s3 = spotsweep_aws::path_style_s3(&target.config);
    let deleted = s3.delete_object().bucket(&target.name).key(&key).send().await;
    deleted.map(drop).context(|| format!("cannot delete s3://{}/{key}", target.name))
}
