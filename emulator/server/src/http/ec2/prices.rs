//! Spot prices in XML (DescribeSpotPriceHistory in the EC2 API reference).

use jiff::Timestamp;

use super::super::xml::{list, text};
use super::{Form, next_token};
use spotsweep_world::prices::spot_usd;
use spotsweep_world::{ApiError, World};

const PRODUCT: &str = "Linux/UNIX";
/// The most prices of one answer.
const PAGE: usize = 1000;

/// Describes one price for each type and zone. It never changes, so it applies since the start of the requested time.
pub(super) fn describe(world: &mut World, form: &Form) -> Result<String, ApiError> {
    let products = form.list("ProductDescription");
    let is_wanted = products.is_empty() || products.iter().any(|product| product == PRODUCT);
    let since: Timestamp = form.number("StartTime")?.unwrap_or(Timestamp::UNIX_EPOCH);
    let until: Option<Timestamp> = form.number("EndTime")?;
    if let Some(until) = until.filter(|until| since > *until) {
        let message = format!("StartTime {since} lies after EndTime {until}.");
        return Err(ApiError::ec2("InvalidParameterCombination", message));
    }
    let only = form.get("AvailabilityZone");
    if let Some(zone) = only {
        world.check_zone(zone)?;
    }
    let zones = || (0..).zip(&world.settings().zones).filter(|(_, zone)| only.is_none_or(|only| only == *zone));
    let types = form.list("InstanceType");
    let prices: Vec<String> = types
        .iter()
        .filter(|_| is_wanted)
        .flat_map(|name| zones().map(move |(number, zone)| (name, zone, spot_usd(name, number))))
        .filter_map(|(name, zone, usd)| {
            Some(
                text("instanceType", name)
                    + &text("productDescription", PRODUCT)
                    + &text("spotPrice", format!("{:.6}", usd?))
                    + &text("timestamp", since.to_string())
                    + &text("availabilityZone", zone),
            )
        })
        .collect();
    let size = form.number("MaxResults")?.unwrap_or(PAGE);
    if !(1..=PAGE).contains(&size) {
        let message = format!("Value ( {size} ) for parameter maxResults is invalid.");
        return Err(ApiError::ec2("InvalidParameterValue", message));
    }
    let start = form.get("NextToken").filter(|token| !token.is_empty()).map(position).transpose()?.unwrap_or(0);
    let next = start.saturating_add(size);
    let token = (next < prices.len()).then(|| format!("{TOKEN}{next}"));
    // EC2 ends the pages of this action with an empty token, not with an absent one.
    let page = prices.into_iter().skip(start).take(size);
    Ok(list("spotPriceHistorySet", page) + &next_token(Some(token.unwrap_or_default())))
}

const TOKEN: &str = "price-";

fn position(token: &str) -> Result<usize, ApiError> {
    let invalid = || ApiError::ec2("InvalidNextToken", format!("The token '{token}' is invalid."));
    token.strip_prefix(TOKEN).and_then(|at| at.parse().ok()).ok_or_else(invalid)
}
