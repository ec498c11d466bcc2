//! Reads Spot prices from EC2's price history, and on-demand prices from the price list.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use crate::calls::{CallError, DescribeSpotPrices, Ec2, GetProducts, Pricing};
use spotsweep_protocol::cause::chain;
use spotsweep_report::cost::{Pool, Prices, SpotPrice};

/// Most pages of Spot prices. A page has 1 000 prices, and three months of a pool have some hundred.
const MAX_PAGES: usize = 20;

/// The sources of prices, and the region.
#[derive(Debug)]
pub(super) struct PriceSources<C, P> {
    pub(super) ec2: C,
    pub(super) list: P,
    pub(super) region: String,
}

/// Returns the known prices of these pools. Errors are only logged, because a report without prices is better than
/// none.
pub(super) async fn read(
    sources: &PriceSources<impl Ec2, impl Pricing>,
    pools: &BTreeSet<Pool>,
    since: Option<Timestamp>,
) -> Prices {
    let types: BTreeSet<&str> = pools.iter().map(|pool| pool.instance_type.as_str()).collect();
    let spot = match since.filter(|_| !pools.is_empty()) {
        None => Vec::new(),
        Some(since) => spot(&sources.ec2, &types, since).await.unwrap_or_else(|error| {
            tracing::warn!(error = %chain(&error), "no spot prices");
            Vec::new()
        }),
    };
    let mut on_demand = BTreeMap::new();
    for name in types {
        match on_demand_price(sources, name).await {
            Ok(usd) => on_demand.extend(usd.map(|usd| (name.to_owned(), usd))),
            Err(error) => tracing::warn!(name, error = %chain(&error), "no on-demand price"),
        }
    }
    Prices::new(spot, on_demand)
}

async fn spot(ec2: &impl Ec2, types: &BTreeSet<&str>, since: Timestamp) -> Result<Vec<SpotPrice>, CallError> {
    let mut wanted = DescribeSpotPrices {
        instance_types: types.iter().map(|name| (*name).to_owned()).collect(),
        product: "Linux/UNIX",
        since,
        next_token: None,
    };
    let mut prices = Vec::new();
    for _ in 0..MAX_PAGES {
        let page = ec2.describe_spot_price_history(wanted.clone()).await?;
        prices.extend(page.items.into_iter().filter_map(|price| {
            let pool = Pool { instance_type: price.instance_type, zone: price.zone };
            Some(SpotPrice { pool, from: price.from, usd: price.usd.parse().ok()? })
        }));
        wanted.next_token = page.next_token;
        if wanted.next_token.is_none() {
            break;
        }
    }
    Ok(prices)
}

/// Returns the price of an ordinary instance: Linux on shared hardware, without prepaid capacity or licences.
async fn on_demand_price(sources: &PriceSources<impl Ec2, impl Pricing>, name: &str) -> Result<Option<f64>, CallError> {
    let filters = [
        ("regionCode", sources.region.as_str()),
        ("instanceType", name),
        ("operatingSystem", "Linux"),
        ("tenancy", "Shared"),
        ("preInstalledSw", "NA"),
        ("capacitystatus", "Used"),
    ];
    let filters = filters.map(|(field, value)| (field, value.to_owned())).into();
    let products = sources.list.get_products(GetProducts { service: "AmazonEC2", filters }).await?;
    Ok(products.iter().find_map(|product| usd_an_hour(product)))
}

/// Returns the one price above zero in a product's on-demand terms, in USD per hour.
fn usd_an_hour(product: &str) -> Option<f64> {
    let product: Value = serde_json::from_str(product).ok()?;
    let terms = product["terms"]["OnDemand"].as_object()?;
    let dimensions = terms.values().filter_map(|term| term["priceDimensions"].as_object()).flat_map(|all| all.values());
    dimensions.filter_map(|one| one["pricePerUnit"]["USD"].as_str()?.parse().ok()).find(|usd: &f64| *usd > 0.0)
}
