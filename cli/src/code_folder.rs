//! Packs the folder of a sweep's code, and sends it to the bucket.

use std::fs::File;
use std::io::{Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_sdk_s3::Client;
use aws_sdk_s3::error::ProvideErrorMetadata as _;
use aws_sdk_s3::primitives::ByteStream;
use spotsweep_code::{Listing, MOST_BYTES, Packed, Selection, list, pack, pattern, verify};
use spotsweep_protocol::claim::packed_key;
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::words::{counted, size};
use spotsweep_sweep_file::Folder;
use tokio::task::block_in_place;

use crate::consent::Loss;
use crate::{out, show};

/// A larger folder is sent only with consent: it probably has data in it.
const ASKED_BYTES: u64 = 100 << 20;
/// Files that are left out and shown, one by one.
const MOST_SHOWN: usize = 20;
/// A folder that was sent earlier is sent again. So the bucket's lifecycle rule, which counts from the last time,
/// keeps it for 90 days after the last sweep (`drop-unused-code` in infra/control-plane.yaml).
const SENT_AGAIN_AFTER: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// S3's answers if another command puts, or has put, the same archive.
const BEGUN_BY_ANOTHER: [&str; 2] = ["PreconditionFailed", "ConditionalRequestConflict"];

/// The files of a folder that would be sent.
pub(crate) struct Found {
    path: PathBuf,
    listing: Listing,
}

/// Looks which files of a sweep file's folder would be sent, and shows them.
pub(crate) fn look(sweep_file: &Path, folder: &Folder) -> Result<Found, Failure> {
    let path = below(sweep_file, &folder.folder);
    let path = path.canonicalize().map_err(|error| {
        Failure::usage(format!("cannot find the folder {:?} of `code`", folder.folder)).caused_by(error)
    })?;
    let mut exclude = folder.exclude.clone();
    // The trials do not read the sweep file, and each edit of it would be other code.
    exclude.extend(pattern_of(sweep_file, &path));
    let selection = Selection { include: folder.include.clone(), exclude };
    let listing = block_in_place(|| list(&path, &selection));
    let listing =
        listing.map_err(|error| Failure::usage(format!("cannot pack {}", path.display())).caused_by(error))?;
    if listing.files.is_empty() {
        return Err(Failure::usage(format!("{} has no file that would be sent", path.display())));
    }
    let found = Found { path, listing };
    found.show();
    Ok(found)
}

/// The pattern of the sweep file, if it is in the folder.
fn pattern_of(sweep_file: &Path, folder: &Path) -> Option<String> {
    let file = sweep_file.canonicalize().ok()?;
    Some(format!("/{}", pattern(file.strip_prefix(folder).ok()?.to_str()?)))
}

/// A sweep file's folder, from the file's own.
pub(crate) fn below(sweep_file: &Path, folder: &str) -> PathBuf {
    sweep_file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")).join(folder)
}

impl Found {
    fn show(&self) {
        let Self { path, listing } = self;
        let (files, bytes) = (counted(listing.files.len(), "file"), size(listing.bytes()));
        out::note(format_args!("code: {files}, {bytes}, of {}", path.display()));
        if listing.bytes() > ASKED_BYTES {
            for item in listing.largest() {
                out::note(format_args!("  {}  {}", size(item.content.bytes()), item.path));
            }
        }
        for finding in &listing.findings {
            out::note(format_args!("  {}", show::line(finding)));
        }
        let unexpected: Vec<_> = listing.left_out.iter().filter(|left_out| left_out.is_unexpected()).collect();
        for left_out in unexpected.iter().take(MOST_SHOWN) {
            out::note(format_args!("  {}", show::line(left_out)));
        }
        if let Some(more) = unexpected.len().checked_sub(MOST_SHOWN).filter(|more| *more > 0) {
            out::note(format_args!("  and {more} more are left out"));
        }
    }

    /// Packs the folder, and puts it into the bucket if it is not there. Returns its SHA-256.
    pub(crate) async fn send(&self, s3: &Client, bucket: &str, yes: bool) -> Result<String, Failure> {
        let bytes = self.listing.bytes();
        if bytes > MOST_BYTES {
            let (most, bytes) = (size(MOST_BYTES), size(bytes));
            return Err(Failure::usage(format!("the code has {bytes}, and {most} are the most: leave the data out")));
        }
        if bytes > ASKED_BYTES {
            let what = format!("send {} of code", size(bytes));
            Loss { what: &what, named: None, id: None }.agreed(yes).await?;
        }
        let mut archive = tempfile::tempfile().context(|| "cannot make a temporary file for the code")?;
        let sha256 = block_in_place(|| self.pack(&mut archive))?;
        let age = age(s3, bucket, &sha256).await?;
        if age.is_some_and(|age| age < SENT_AGAIN_AFTER) {
            out::note(format_args!("the bucket has it already: {sha256}"));
        } else {
            put(s3, bucket, &sha256, (archive, age.is_none())).await?;
        }
        Ok(sha256)
    }

    /// Packs the folder, and checks that the archive can be unpacked.
    fn pack(&self, archive: &mut File) -> Result<String, Failure> {
        let cannot = || format!("cannot pack {}", self.path.display());
        let Packed { sha256, bytes, .. } = pack(&self.path, &self.listing, &mut *archive).context(cannot)?;
        archive.seek(SeekFrom::Start(0)).context(cannot)?;
        verify(archive, &sha256, bytes).context(cannot)?;
        Ok(sha256)
    }
}

/// How long ago the archive was sent; `None` if the bucket does not have it.
async fn age(s3: &Client, bucket: &str, sha256: &str) -> Result<Option<Duration>, Failure> {
    let key = packed_key(sha256);
    match s3.head_object().bucket(bucket).key(&key).send().await {
        Ok(found) => {
            let put_at = found.last_modified.and_then(|at| u64::try_from(at.secs()).ok()).unwrap_or(0);
            let put_at = UNIX_EPOCH + Duration::from_secs(put_at);
            Ok(Some(SystemTime::now().duration_since(put_at).unwrap_or_default()))
        }
        Err(error) if error.as_service_error().is_some_and(|error| error.is_not_found()) => Ok(None),
        Err(error) => Err(Failure::new(format!("cannot look for s3://{bucket}/{key}")).caused_by(error)),
    }
}

/// Sends the archive. A new one is put only if no other command has put it meanwhile
/// (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html>).
async fn put(s3: &Client, bucket: &str, sha256: &str, (mut archive, is_new): (File, bool)) -> Result<(), Failure> {
    let key = packed_key(sha256);
    let cannot_read = || "cannot read the temporary file of the code";
    let bytes = archive.metadata().context(cannot_read)?.len();
    archive.seek(SeekFrom::Start(0)).context(cannot_read)?;
    out::note(format_args!("sending {} to s3://{bucket}/{key}", size(bytes)));
    let body = ByteStream::read_from().file(tokio::fs::File::from_std(archive)).build().await.context(cannot_read)?;
    let put = s3.put_object().bucket(bucket).key(&key).body(body).set_if_none_match(is_new.then(|| "*".to_owned()));
    match put.send().await {
        Err(error) if is_new && error.code().is_some_and(|code| BEGUN_BY_ANOTHER.contains(&code)) => Ok(()),
        put => put.map(drop).context(|| format!("cannot put s3://{bucket}/{key}")),
    }
}
