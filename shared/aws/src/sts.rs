//! STS's calls over its SDK: it maps the fields of requests and answers.

use aws_config::SdkConfig;
use aws_sdk_sts::Client;
use aws_sdk_sts::types::Tag;
use jiff::Timestamp;
use spotsweep_control_plane::calls::{AssumeRole, CallError, Sts};
use spotsweep_protocol::claim::Access;

use super::call_error::call_error;
use super::lazy::{Lazy, lazy};

/// The calls to STS over its SDK.
#[derive(Debug)]
pub(super) struct StsSdk(Lazy<Client>);

impl StsSdk {
    pub(super) fn new(config: &SdkConfig) -> Self {
        Self(lazy(config, Client::new))
    }
}

impl Sts for StsSdk {
    async fn assume_role(&self, wanted: AssumeRole) -> Result<Access, CallError> {
        let tags = wanted.tags.into_iter().map(|(key, value)| Tag::builder().key(key).value(value).build());
        let tags = tags.collect::<Result<_, _>>().map_err(|error| CallError::Unclear(error.into()))?;
        let request = self.0.assume_role().role_arn(wanted.role).role_session_name(wanted.session);
        let answer = request.set_tags(Some(tags)).send().await.map_err(call_error)?;
        let issued = answer.credentials.ok_or_else(|| CallError::unclear("AssumeRole answers without credentials"))?;
        let expires_at = Timestamp::from_second(issued.expiration.secs());
        Ok(Access {
            access_key_id: issued.access_key_id,
            secret_access_key: issued.secret_access_key,
            session_token: issued.session_token,
            expires_at: expires_at.map_err(|error| CallError::Unclear(error.into()))?,
        })
    }
}
