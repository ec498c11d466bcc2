//! Prices: EC2's spot price history, and the price list for on-demand ones.

use std::collections::{BTreeMap, BTreeSet};

use aws_config::SdkConfig;
use aws_sdk_ec2::primitives::DateTime;
use aws_sdk_ec2::types::InstanceType;
use aws_sdk_pricing::config::Region;
use aws_sdk_pricing::types::{Filter, FilterType};
use jiff::Timestamp;
use serde_json::Value;

use super::BoxError;
use super::ec2;
use spotsweep_control_plane::results::cost::{Pool, Prices, SpotPrice};
use spotsweep_protocol::cause::chain;

/// The price list is served in few regions; this one has the prices of all
/// (<https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/using-price-list-query-api.html>).
const PRICE_LIST_REGION: &str = "us-east-1";

/// Pages of spot prices: 1 000 prices each; three months of a pool are some hundred.
const MAX_PAGES: usize = 20;

/// Who is asked.
#[derive(Debug, Clone)]
pub(super) struct Clients {
    ec2: aws_sdk_ec2::Client,
    list: aws_sdk_pricing::Client,
    region: String,
}

impl Clients {
    pub(super) fn new(config: &SdkConfig) -> Self {
        let own = aws_sdk_pricing::config::Builder::from(config).region(Region::new(PRICE_LIST_REGION)).build();
        let region = config.region().map(|region| region.to_string()).unwrap_or_default();
        Self { ec2: ec2::client(config), list: aws_sdk_pricing::Client::from_conf(own), region }
    }
}

/// The prices of these pools, as far as they are told: a report without prices is better than none.
pub(super) async fn read(clients: &Clients, pools: &BTreeSet<Pool>, since: Option<Timestamp>) -> Prices {
    let types: BTreeSet<&str> = pools.iter().map(|pool| pool.instance_type.as_str()).collect();
    let spot = match since.filter(|_| !pools.is_empty()) {
        None => Vec::new(),
        Some(since) => spot(&clients.ec2, &types, since).await.unwrap_or_else(|error| {
            tracing::warn!(error = %chain(&*error), "no spot prices");
            Vec::new()
        }),
    };
    let mut on_demand = BTreeMap::new();
    for name in types {
        match on_demand_price(clients, name).await {
            Ok(usd) => on_demand.extend(usd.map(|usd| (name.to_owned(), usd))),
            Err(error) => tracing::warn!(name, error = %chain(&*error), "no on-demand price"),
        }
    }
    Prices::new(spot, on_demand)
}

async fn spot(ec2: &aws_sdk_ec2::Client, types: &BTreeSet<&str>, since: Timestamp) -> Result<Vec<SpotPrice>, BoxError> {
    let request = ec2
        .describe_spot_price_history()
        .set_instance_types(Some(types.iter().map(|name| InstanceType::from(*name)).collect()))
        .product_descriptions("Linux/UNIX")
        .start_time(DateTime::from_secs(since.as_second()));
    let mut pages = request.into_paginator().send();
    let mut prices = Vec::new();
    for _ in 0..MAX_PAGES {
        let Some(page) = pages.next().await else { break };
        prices.extend(page?.spot_price_history().iter().filter_map(|price| {
            let pool = Pool {
                instance_type: price.instance_type()?.as_str().to_owned(),
                zone: price.availability_zone()?.to_owned(),
            };
            let from = Timestamp::from_second(price.timestamp()?.secs()).ok()?;
            Some(SpotPrice { pool, from, usd: price.spot_price()?.parse().ok()? })
        }));
    }
    Ok(prices)
}

/// Linux on shared hardware, without prepaid capacity or licences: what an ordinary instance costs.
async fn on_demand_price(clients: &Clients, name: &str) -> Result<Option<f64>, BoxError> {
    let filters = [
        ("regionCode", clients.region.as_str()),
        ("instanceType", name),
        ("operatingSystem", "Linux"),
        ("tenancy", "Shared"),
        ("preInstalledSw", "NA"),
        ("capacitystatus", "Used"),
    ];
    let mut request = clients.list.get_products().service_code("AmazonEC2");
    for (field, value) in filters {
        let filter = Filter::builder().r#type(FilterType::TermMatch).field(field).value(value).build()?;
        request = request.filters(filter);
    }
    let answer = request.send().await?;
    Ok(answer.price_list().iter().find_map(|product| usd_an_hour(product)))
}

/// The one price above zero among a product's on-demand terms.
fn usd_an_hour(product: &str) -> Option<f64> {
    let product: Value = serde_json::from_str(product).ok()?;
    let terms = product["terms"]["OnDemand"].as_object()?;
    let dimensions = terms.values().filter_map(|term| term["priceDimensions"].as_object()).flat_map(|all| all.values());
    dimensions.filter_map(|one| one["pricePerUnit"]["USD"].as_str()?.parse().ok()).find(|usd: &f64| *usd > 0.0)
}
