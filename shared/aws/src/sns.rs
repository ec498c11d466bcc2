//! SNS's calls over its SDK: it maps the fields of requests and answers.

use aws_config::SdkConfig;
use aws_sdk_sns::Client;
use spotsweep_control_plane::calls::{CallError, Publish, Sns};

use super::call_error::call_error;
use super::lazy::{Lazy, lazy};

/// The calls to SNS over its SDK.
#[derive(Debug)]
pub(super) struct SnsSdk(Lazy<Client>);

impl SnsSdk {
    pub(super) fn new(config: &SdkConfig) -> Self {
        Self(lazy(config, Client::new))
    }
}

impl Sns for SnsSdk {
    async fn publish(&self, wanted: Publish) -> Result<(), CallError> {
        let request = self.0.publish().topic_arn(wanted.topic).subject(wanted.subject).message(wanted.message);
        request.send().await.map_err(call_error)?;
        Ok(())
    }
}
