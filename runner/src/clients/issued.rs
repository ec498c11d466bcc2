//! The trial's own credentials: borrowed before the first request to the bucket, and again before they expire.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{self, ProvideCredentials, future};
use spotsweep_protocol::claim::Access;

use crate::claim::Claims;
use crate::exit::Failure;

/// Borrows credentials from `trial-claim`. The SDK caches them until shortly before they expire.
#[derive(Debug)]
pub(super) struct Issued {
    claims: Arc<Claims>,
    /// The first credentials, until the SDK takes them.
    first: Mutex<Option<Access>>,
}

impl Issued {
    /// Borrows for the first time. An attempt that has lost its trial meanwhile fails here, and not with an error of
    /// S3.
    pub(super) async fn borrow(claims: &Arc<Claims>) -> Result<Self, Failure> {
        let first = Mutex::new(Some(claims.access().await?));
        Ok(Self { claims: Arc::clone(claims), first })
    }

    async fn provide(&self) -> provider::Result {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        let access = match first {
            Some(access) => access,
            None => self.claims.access().await.map_err(CredentialsError::provider_error)?,
        };
        let Access { access_key_id, secret_access_key, session_token, expires_at } = access;
        let expires_at = SystemTime::from(expires_at);
        Ok(Credentials::new(access_key_id, secret_access_key, Some(session_token), Some(expires_at), "trial-claim"))
    }
}

impl ProvideCredentials for Issued {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::new(self.provide())
    }
}
