//! The error of a call, and what it means for the caller.

use std::error::Error;

use crate::throttle::Limit;

/// The error of a call that had no effect, or perhaps none.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The service has rejected the call. An immediate retry would give the same answer.
    #[error("refused as {code}: {message}")]
    Refused {
        /// The error's code.
        code: String,
        /// The service's message.
        message: String,
    },
    /// There were too many calls. This one had no effect.
    #[error("throttled as {code}: {message}")]
    Throttled {
        /// The limit that was exceeded.
        limit: Limit,
        /// The error's code.
        code: String,
        /// The service's message.
        message: String,
    },
    /// It is not known whether the call had an effect.
    #[error("no clear answer")]
    Unclear(#[source] Box<dyn Error + Send + Sync>),
}

impl CallError {
    /// Makes the error for an incomplete or unexpected answer.
    pub fn unclear(what: impl Into<String>) -> Self {
        Self::Unclear(what.into().into())
    }

    /// Makes the error for an answer with this HTTP status and error code.
    ///
    /// EC2 has hundreds of codes and adds new ones, so the status decides. Some codes are exceptions. Throttling comes
    /// with status 503 or 400. A zone without capacity is listed among the server errors, although it is a refusal.
    /// Errors about the caller's credentials do not mean that the request is wrong, because credentials expire and are
    /// renewed.
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

    /// Returns the code if the call was refused.
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
