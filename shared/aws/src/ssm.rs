//! Parameter Store's calls over its SDK: it maps the fields of requests and answers.

use aws_config::SdkConfig;
use aws_sdk_ssm::Client;
use aws_sdk_ssm::types::{ParameterMetadata, ParameterStringFilter, ParameterType};
use spotsweep_control_plane::calls::{CallError, DescribeParameters, Page, Parameter, Ssm};

use super::call_error::call_error;
use super::lazy::{Lazy, lazy};

/// The calls to Parameter Store over its SDK.
#[derive(Debug)]
pub(super) struct SsmSdk(Lazy<Client>);

impl SsmSdk {
    pub(super) fn new(config: &SdkConfig) -> Self {
        Self(lazy(config, Client::new))
    }
}

impl Ssm for SsmSdk {
    async fn describe_parameters(&self, wanted: DescribeParameters) -> Result<Page<Parameter>, CallError> {
        // Without an option the filter is `Equals`.
        let named = ParameterStringFilter::builder().key("Name").set_values(Some(wanted.names)).build();
        let named = named.map_err(|error| CallError::Unclear(error.into()))?;
        let request = self.0.describe_parameters().parameter_filters(named).set_next_token(wanted.next_token);
        let found = request.send().await.map_err(call_error)?;
        let items = found.parameters.unwrap_or_default().into_iter().filter_map(parameter);
        Ok(Page { items: items.collect(), next_token: found.next_token.filter(|token| !token.is_empty()) })
    }
}

fn parameter(found: ParameterMetadata) -> Option<Parameter> {
    let is_encrypted = found.r#type == Some(ParameterType::SecureString);
    Some(Parameter { name: found.name?, is_encrypted })
}
