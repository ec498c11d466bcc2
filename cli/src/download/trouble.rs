//! Why an object cannot be downloaded, and whether others can.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};

use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::get_object::GetObjectError;
use serde_json::{Value, json};
use spotsweep_protocol::cause::causes;
use spotsweep_protocol::failure::Failure;

use super::Object;

/// S3's error codes that every object would get: the caller is refused, or there is no bucket
/// (<https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>).
const OF_ALL: [&str; 9] = [
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidToken",
    "NoSuchBucket",
    "RequestTimeTooSkewed",
    "ServiceUnavailable",
    "SignatureDoesNotMatch",
    "SlowDown",
    "TokenRefreshRequired",
];

/// One object that cannot be downloaded.
#[derive(Debug)]
pub(crate) struct Trouble {
    key: String,
    why: String,
    cause: Option<Box<dyn Error + Send + Sync>>,
    /// Whether every other object would fail, too.
    is_of_all: bool,
}

impl Trouble {
    /// A failure of this object alone.
    pub(crate) fn of(key: &str, why: impl Into<String>) -> Self {
        Self { key: key.to_owned(), why: why.into(), cause: None, is_of_all: false }
    }

    /// Adds the error beneath.
    pub(super) fn caused_by(self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { cause: Some(cause.into()), ..self }
    }

    /// A file cannot be written. If the disk is full, other files cannot be written either.
    pub(super) fn writing(object: &Object, error: impl Into<io::Error>) -> Self {
        let error = error.into();
        let is_of_all =
            matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::ReadOnlyFilesystem);
        let why = format!("cannot write {}", object.path.display());
        Self { is_of_all, ..Self::of(&object.key, why) }.caused_by(error)
    }

    /// S3 does not return the object.
    pub(super) fn reading(bucket: &str, key: &str, error: SdkError<GetObjectError>) -> Self {
        let code = error.as_service_error().map(|error| error.code().unwrap_or_default());
        if code == Some("NoSuchKey") {
            return Self::of(key, "it was deleted after it was listed");
        }
        let is_of_all = code.is_none_or(|code| OF_ALL.contains(&code));
        Self { is_of_all, ..Self::of(key, format!("cannot read it from the bucket {bucket}")) }.caused_by(error)
    }

    /// Returns the trouble if others can go on, and otherwise the failure of the whole.
    pub(super) fn of_one(self) -> Result<Self, Failure> {
        if self.is_of_all { Err(self.into()) } else { Ok(self) }
    }

    /// The trouble as `--json` prints it.
    pub(crate) fn json(&self) -> Value {
        json!({ "key": self.key, "reason": self.reason() })
    }

    fn reason(&self) -> String {
        let beneath = self.cause.as_deref().map(|cause| causes(cause)).unwrap_or_default();
        std::iter::once(self.why.clone()).chain(beneath).collect::<Vec<_>>().join(": ")
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.key, self.reason())
    }
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        let failure = Self::new(format!("{}: {}", trouble.key, trouble.why));
        match trouble.cause {
            Some(cause) => failure.caused_by(cause),
            None => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn a_full_disk_ends_them_all_and_a_long_name_does_not() {
        let object = Object { key: "k".into(), path: PathBuf::from("p"), bytes: 0, put_at: SystemTime::UNIX_EPOCH };
        for (errno, is_of_all) in [
            (rustix::io::Errno::NOSPC, true),
            (rustix::io::Errno::DQUOT, true),
            (rustix::io::Errno::ROFS, true),
            (rustix::io::Errno::NAMETOOLONG, false),
            (rustix::io::Errno::NOTDIR, false),
            (rustix::io::Errno::ACCESS, false),
            (rustix::io::Errno::ILSEQ, false),
        ] {
            assert_eq!(Trouble::writing(&object, errno).of_one().is_err(), is_of_all, "{errno}");
        }
    }
}
