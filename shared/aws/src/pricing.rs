//! The price list's calls over its SDK: it maps the fields of requests and answers.

use aws_config::SdkConfig;
use aws_sdk_pricing::Client;
use aws_sdk_pricing::config::{Builder, Region};
use aws_sdk_pricing::types::{Filter, FilterType};
use spotsweep_control_plane::calls::{CallError, GetProducts, Pricing};

use super::call_error::call_error;
use super::lazy::{Lazy, lazy};

/// The region of the price list's endpoint. There are few, and this one has the prices of all regions
/// (<https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/using-price-list-query-api.html>).
const PRICE_LIST_REGION: &str = "us-east-1";

/// The calls to the price list over its SDK.
#[derive(Debug)]
pub(super) struct PricingSdk(Lazy<Client>);

impl PricingSdk {
    pub(super) fn new(config: &SdkConfig) -> Self {
        let make = |config: &SdkConfig| {
            Client::from_conf(Builder::from(config).region(Region::new(PRICE_LIST_REGION)).build())
        };
        Self(lazy(config, make))
    }
}

impl Pricing for PricingSdk {
    async fn get_products(&self, wanted: GetProducts) -> Result<Vec<String>, CallError> {
        let filter = |(field, value)| Filter::builder().r#type(FilterType::TermMatch).field(field).value(value).build();
        let filters = wanted.filters.into_iter().map(filter).collect::<Result<_, _>>();
        let filters = filters.map_err(|error| CallError::Unclear(error.into()))?;
        let request = self.0.get_products().service_code(wanted.service).set_filters(Some(filters));
        Ok(request.send().await.map_err(call_error)?.price_list.unwrap_or_default())
    }
}
