//! What an error of a service means for the call that got it.

use std::error::Error;

use crate::throttle::Limit;

/// A call that was not carried out, or not for certain.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The service has looked at the call and will not carry it out: another try in the same moment changes nothing.
    #[error("refused as {code}: {message}")]
    Refused {
        /// The error's code.
        code: String,
        /// The service's words.
        message: String,
    },
    /// Too many calls. It has had no effect.
    #[error("throttled as {code}: {message}")]
    Throttled {
        /// The limit that it has met.
        limit: Limit,
        /// The error's code.
        code: String,
        /// The service's words.
        message: String,
    },
    /// It may have had its effect or not.
    #[error("no clear answer")]
    Unclear(#[source] Box<dyn Error + Send + Sync>),
}

impl CallError {
    /// An answer that lacks something, or an unexpected one.
    pub fn unclear(what: impl Into<String>) -> Self {
        Self::Unclear(what.into().into())
    }

    /// What an error with this code and this HTTP status says.
    ///
    /// EC2 has hundreds of codes and gets new ones, so the status decides. The exceptions by name: throttles come as 503
    /// and as 400, and a zone without capacity is listed among the server errors though it is a clear no. What concerns
    /// the caller's credentials says nothing of the request: they expire and are renewed.
    pub fn answered(status: u16, code: String, message: String) -> Self {
        let is_about_credentials = ["RequestExpired", "ExpiredToken", "ExpiredTokenException"].contains(&code.as_str());
        if let Some(limit) = Limit::of(&code).or((status == 429).then_some(Limit::Account)) {
            Self::Throttled { limit, code, message }
        } else if code.starts_with("Insufficient") {
            Self::Refused { code, message }
        } else if status >= 500 || code.is_empty() || is_about_credentials {
            Self::unclear(format!("{code}: {message}"))
        } else {
            Self::Refused { code, message }
        }
    }

    /// The code of a refusal.
    pub fn refusal(&self) -> Option<&str> {
        match self {
            Self::Refused { code, .. } => Some(code),
            Self::Throttled { .. } | Self::Unclear(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_no_is_a_refusal() {
        let expected = [
            ("VolumeLimitExceeded", 400, "refused"),
            ("InsufficientVolumeCapacity", 500, "refused"),
            ("InsufficientVolumeCapacity", 400, "refused"),
            ("MaxIOPSLimitExceeded", 400, "refused"),
            ("InvalidSnapshot.NotFound", 400, "refused"),
            ("IdempotentParameterMismatch", 400, "refused"),
            ("ConcurrentSnapshotLimitExceeded", 400, "refused"),
            ("UnauthorizedOperation", 403, "refused"),
            ("ACodeOfNextYear", 400, "refused"),
            ("RequestLimitExceeded", 503, "limit of the account"),
            ("RequestLimitExceeded", 400, "limit of the account"),
            ("Throttling", 400, "limit of the account"),
            ("SnapshotCreationPerVolumeRateExceeded", 400, "limit of a volume"),
            ("", 429, "limit of the account"),
            ("InternalError", 500, "unclear"),
            ("Unavailable", 503, "unclear"),
            ("RequestExpired", 400, "unclear"),
            ("", 400, "unclear"),
        ];
        for (code, status, meaning) in expected {
            let found = match CallError::answered(status, code.to_owned(), String::new()) {
                CallError::Refused { .. } => "refused",
                CallError::Throttled { limit: Limit::Account, .. } => "limit of the account",
                CallError::Throttled { limit: Limit::Volume, .. } => "limit of a volume",
                CallError::Unclear(_) => "unclear",
            };
            assert_eq!(found, meaning, "{code} {status}");
        }
    }
}
