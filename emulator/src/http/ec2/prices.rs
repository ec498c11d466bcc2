//! Spot prices in XML.

use super::super::xml::{list, text};
use super::{Form, next_token};
use crate::world::prices::spot_usd;
use crate::world::{ApiError, World};

const PRODUCT: &str = "Linux/UNIX";

/// One price for each type and zone, which holds since the beginning of what was asked for.
pub(super) fn describe(world: &mut World, form: &Form) -> Result<String, ApiError> {
    let products = form.list("ProductDescription");
    let is_wanted = products.is_empty() || products.iter().any(|product| product == PRODUCT);
    let since = form.get("StartTime").unwrap_or("1970-01-01T00:00:00Z");
    let zones = &world.settings().zones;
    let types = form.list("InstanceType");
    let pools = types.iter().flat_map(|name| (0..).zip(zones).map(move |pool| (name, pool)));
    let prices = pools.filter(|_| is_wanted).filter_map(|(name, (number, zone))| {
        Some(
            text("instanceType", name)
                + &text("productDescription", PRODUCT)
                + &text("spotPrice", format!("{:.6}", spot_usd(name, number)?))
                + &text("timestamp", since)
                + &text("availabilityZone", zone),
        )
    });
    Ok(list("spotPriceHistorySet", prices) + &next_token(None))
}
