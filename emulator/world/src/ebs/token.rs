//! The client tokens of CreateVolume (fact 26; EC2 API reference, "Ensuring idempotency").

use std::time::Duration;

use jiff::Timestamp;

use super::{CreateVolume, VolumeState};
use crate::{ApiError, World};

/// How long the token of a volume that does not exist any more stays used up, about (fact 26).
const BURNED: Duration = Duration::from_secs(12 * 3600);

/// A token that has created a volume.
#[derive(Debug)]
pub(super) struct Token {
    request: CreateVolume,
    volume: String,
    made_at: Timestamp,
}

/// The meaning of a request's token.
pub(super) enum Verdict {
    /// The request has no token, or a new one.
    New,
    /// The token has created this volume.
    Known(String),
}

impl World {
    pub(super) fn token_verdict(&mut self, request: &CreateVolume) -> Result<Verdict, ApiError> {
        let now = self.now;
        let volumes = &self.ebs.volumes;
        let alive = |token: &Token| {
            let volume = volumes.get(&token.volume);
            volume.is_some_and(|v| !matches!(v.state, VolumeState::Deleting | VolumeState::Error))
        };
        self.ebs.tokens.retain(|_, token| alive(token) || now.duration_since(token.made_at).unsigned_abs() < BURNED);
        let token = request.client_token.as_ref().and_then(|token| self.ebs.tokens.get(token));
        match token {
            None => Ok(Verdict::New),
            Some(token) if token.request != *request => {
                let message = "Parameters on this idempotent request are inconsistent with parameters used in previous request(s)";
                Err(ApiError::ec2("IdempotentParameterMismatch", message))
            }
            Some(token) if !alive(token) => Err(resource_deleted()),
            Some(token) => Ok(Verdict::Known(token.volume.clone())),
        }
    }

    pub(super) fn remember_token(&mut self, token: String, request: CreateVolume, volume: &str) {
        let made_at = self.now;
        self.ebs.tokens.insert(token, Token { request, volume: volume.to_owned(), made_at });
    }
}

/// Returns AWS's error, with the message that aws-ebs-csi-driver issue 1951 quotes.
pub(super) fn resource_deleted() -> ApiError {
    let message = "The client token you have provided is associated with a resource that is already deleted. \
                   Please use a different client token.";
    ApiError::ec2("IdempotentParameterMismatch", message)
}
