//! What an error of EC2's means for the call that got it.

use std::error::Error;

use aws_sdk_ec2::config::http::HttpResponse;
use aws_sdk_ec2::error::{ProvideErrorMetadata, SdkError};

use spotsweep_control_plane::throttle::Limit;

/// A call that was not carried out, or not for certain.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// EC2 has looked at the call and will not carry it out: another try in the same moment changes nothing.
    #[error("refused as {code}: {message}")]
    Refused { code: String, message: String },
    /// Too many calls. It has had no effect.
    #[error("throttled as {code}: {message}")]
    Throttled { limit: Limit, code: String, message: String },
    /// It may have had its effect or not.
    #[error("no clear answer")]
    Unclear(#[source] Box<dyn Error + Send + Sync>),
}

impl Failure {
    pub(super) fn unclear(what: impl Into<String>) -> Self {
        Self::Unclear(what.into().into())
    }
}

impl<E> From<SdkError<E, HttpResponse>> for Failure
where
    E: Error + ProvideErrorMetadata + Send + Sync + 'static,
{
    fn from(error: SdkError<E, HttpResponse>) -> Self {
        let code = error.code().unwrap_or_default().to_owned();
        let message = error.message().unwrap_or("no reason given").to_owned();
        match error.raw_response().map(|response| verdict(&code, response.status().as_u16())) {
            Some(Verdict::Refused) => Self::Refused { code, message },
            Some(Verdict::Throttled(limit)) => Self::Throttled { limit, code, message },
            Some(Verdict::Unclear) | None => Self::Unclear(error.into()),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Refused,
    Throttled(Limit),
    Unclear,
}

/// EC2 has hundreds of codes and gets new ones, so the HTTP status decides. The exceptions by name: throttles come as
/// 503 and as 400, and a zone without capacity is listed among the server errors though it is a clear no. What
/// concerns the caller's credentials says nothing of the request: they expire and are renewed.
fn verdict(code: &str, status: u16) -> Verdict {
    let is_about_credentials = ["RequestExpired", "ExpiredToken", "ExpiredTokenException"].contains(&code);
    if let Some(limit) = Limit::of(code).or((status == 429).then_some(Limit::Account)) {
        Verdict::Throttled(limit)
    } else if code.starts_with("Insufficient") {
        Verdict::Refused
    } else if status >= 500 || code.is_empty() || is_about_credentials {
        Verdict::Unclear
    } else {
        Verdict::Refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_no_is_a_refusal() {
        let expected = [
            ("VolumeLimitExceeded", 400, Verdict::Refused),
            ("InsufficientVolumeCapacity", 500, Verdict::Refused),
            ("InsufficientVolumeCapacity", 400, Verdict::Refused),
            ("MaxIOPSLimitExceeded", 400, Verdict::Refused),
            ("InvalidSnapshot.NotFound", 400, Verdict::Refused),
            ("IdempotentParameterMismatch", 400, Verdict::Refused),
            ("ConcurrentSnapshotLimitExceeded", 400, Verdict::Refused),
            ("UnauthorizedOperation", 403, Verdict::Refused),
            ("ACodeOfNextYear", 400, Verdict::Refused),
            ("RequestLimitExceeded", 503, Verdict::Throttled(Limit::Account)),
            ("RequestLimitExceeded", 400, Verdict::Throttled(Limit::Account)),
            ("Throttling", 400, Verdict::Throttled(Limit::Account)),
            ("SnapshotCreationPerVolumeRateExceeded", 400, Verdict::Throttled(Limit::Volume)),
            ("", 429, Verdict::Throttled(Limit::Account)),
            ("InternalError", 500, Verdict::Unclear),
            ("Unavailable", 503, Verdict::Unclear),
            ("RequestExpired", 400, Verdict::Unclear),
            ("", 400, Verdict::Unclear),
        ];
        for (code, status, verdict_of) in expected {
            assert_eq!(verdict(code, status), verdict_of, "{code} {status}");
        }
    }
}
