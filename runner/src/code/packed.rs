//! A packed folder of code: fetched by the runner, and unpacked by a child that has the rights of the training.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_sdk_s3::Client;
use aws_sdk_s3::primitives::{ByteStream, ByteStreamError};
use serde::{Deserialize, Serialize};
use spotsweep_beneath::Folder;
use spotsweep_code::{MOST_BYTES, unpack};
use spotsweep_protocol::cause::chain;
use spotsweep_protocol::claim::packed_key;
use spotsweep_seal::OWN;
use tokio::process::Command;
use tokio::task::block_in_place;
use tokio::time::sleep;

use super::git::{Said, change, led_elsewhere, run};
use super::{CodeError, FOLDER, Place, make, put_aside, read_pin, write_pin};
use crate::exit::Failure;
use crate::launch::Launcher;
use crate::log::say;

/// First argument of the runner's own child that unpacks an archive. The archive, its SHA-256 and the folder follow.
pub(crate) const UNPACK: &str = "--unpack";
/// The archive in the attempt's temporary folder.
const ARCHIVE: &str = "code.tar.zst";
/// The limit for unpacking: five gigabytes onto a slow volume.
const LIMIT: Duration = Duration::from_secs(900);
/// Downloads that break off are repeated after these pauses.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

/// What an earlier attempt has written to `code.json`.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Pin {
    sha256: String,
}

/// Puts the folder on the workspace, and returns its path. Files that the archive does not have stay there.
pub(crate) async fn fetch(
    (s3, bucket): (&Client, &str),
    sha256: &str,
    place: &Place<'_>,
    launcher: &Launcher,
) -> Result<PathBuf, Failure> {
    let folder = place.workspace.join(OWN).join(FOLDER);
    let failed = |source| CodeError::Folder(folder.clone(), source);
    let archive = place.scratch.join(ARCHIVE);
    download((s3, bucket), sha256, place.scratch).await?;
    let own = place.own().map_err(failed)?;
    let pin = Pin { sha256: sha256.to_owned() };
    if own.status(FOLDER.as_ref()).is_ok() && read_pin(&own).as_ref() != Some(&pin) {
        put_aside(&own).map_err(failed)?;
    }
    make(&own, FOLDER, launcher).and_then(|()| write_pin(&own, &pin)).map_err(failed)?;
    unpacked(&archive, sha256, (&folder, place), launcher).await?;
    say(&format!("code: the packed folder {sha256}"));
    Ok(folder)
}

/// Downloads the archive into the folder `scratch`. An answer that may differ at the next attempt is an interruption.
async fn download((s3, bucket): (&Client, &str), sha256: &str, scratch: &Path) -> Result<(), Failure> {
    let key = packed_key(sha256);
    let mut pauses = PAUSES.into_iter();
    loop {
        let object = match s3.get_object().bucket(bucket).key(&key).send().await {
            Ok(object) => object,
            Err(error) if error.raw_response().is_some_and(|answer| answer.status().is_client_error()) => {
                return Err(CodeError::Get { bucket: bucket.to_owned(), key, source: Box::new(error) }.into());
            }
            Err(error) => return Err(interrupted(bucket, &key, &error)),
        };
        // The SDK repeats the request, and not the reading of its answer.
        match (write(object.body, scratch).await?, pauses.next()) {
            (Ok(()), _) => return Ok(()),
            (Err(broken), None) => return Err(interrupted(bucket, &key, &broken)),
            (Err(broken), Some(pause)) => {
                say(&format!("{}; trying again in {pause:?}", interrupted(bucket, &key, &broken)));
                sleep(pause).await;
            }
        }
    }
}

fn interrupted(bucket: &str, key: &str, error: &dyn std::error::Error) -> Failure {
    Failure::Interrupted(format!("the code s3://{bucket}/{key} did not arrive: {}", chain(error)))
}

/// Writes the archive to disk; the inner error is one of the network.
async fn write(mut body: ByteStream, scratch: &Path) -> Result<Result<(), ByteStreamError>, CodeError> {
    let failed = |source| CodeError::Folder(scratch.join(ARCHIVE), source);
    let scratch = Folder::trusted(scratch).map_err(failed)?;
    let mut file = block_in_place(|| scratch.create(ARCHIVE.as_ref())).map_err(failed)?;
    while let Some(piece) = body.next().await {
        match piece {
            Ok(piece) => block_in_place(|| file.write_all(&piece)).map_err(failed)?,
            Err(broken) => return Ok(Err(broken)),
        }
    }
    Ok(Ok(()))
}

/// Starts the child that unpacks.
async fn unpacked(
    archive: &Path,
    sha256: &str,
    (folder, place): (&Path, &Place<'_>),
    launcher: &Launcher,
) -> Result<(), CodeError> {
    let failed = |source| CodeError::Folder(folder.to_owned(), source);
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let runner = std::env::current_exe().map_err(failed)?;
    let words = [path(&runner), UNPACK.to_owned(), path(archive), sha256.to_owned(), path(folder)];
    let mut command = Command::from(launcher.command(&words).map_err(failed)?);
    change(&mut command, &led_elsewhere(std::env::vars_os(), &[place.workspace, place.storage]));
    let Some(Said { status, stderr, .. }) = run(command, LIMIT).await.map_err(failed)? else {
        return Err(CodeError::Unpack(format!("it had no end after {} s", LIMIT.as_secs())));
    };
    if status.success() {
        return Ok(());
    }
    Err(CodeError::Unpack(String::from_utf8_lossy(&stderr).trim().to_owned()))
}

/// Runs in the child. It writes with the rights of the training, as git does.
#[expect(clippy::disallowed_methods, reason = "the archive is in a folder of the runner's own")]
pub(crate) fn unpack_here(arguments: &[String]) -> Result<u8, Failure> {
    let [archive, sha256, folder] = arguments else { return Err(Failure::NoCommand) };
    let opened = std::fs::File::open(archive).map_err(|source| CodeError::Folder(archive.into(), source))?;
    let unpacked = unpack(opened, sha256, Path::new(folder), MOST_BYTES);
    let unpacked = unpacked.map_err(|error| CodeError::Unpack(chain(&error)))?;
    for (from, to) in unpacked.moved {
        say(&format!("code: {from} was in the way of a file, and is now {to}"));
    }
    Ok(0)
}
