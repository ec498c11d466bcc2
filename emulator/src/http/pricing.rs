//! The price list's wire: JSON 1.1, of which GetProducts is known, for one instance type.

use axum::body::Bytes;
use serde::Deserialize;
use serde_json::json;

use super::{Answer, answer};
use crate::world::prices::on_demand_usd;

pub(super) const GET_PRODUCTS: &str = "AWSPriceListService.GetProducts";

const JSON: &str = "application/x-amz-json-1.1";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GetProducts {
    #[serde(default)]
    filters: Vec<Filter>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Filter {
    field: String,
    value: String,
}

pub(super) fn call(body: &Bytes) -> Answer {
    Ok(match serde_json::from_slice::<GetProducts>(body) {
        Ok(request) => answer(200, JSON, products(&request)),
        Err(error) => {
            let body = json!({"__type": "InvalidParameterException", "message": error.to_string()});
            answer(400, JSON, body.to_string())
        }
    })
}

/// Each product is a text of JSON of its own, as on AWS.
fn products(request: &GetProducts) -> String {
    let name = request.filters.iter().find(|filter| filter.field == "instanceType").map(|filter| &filter.value);
    let product = name.and_then(|name| Some((name, on_demand_usd(name)?))).map(|(name, usd)| {
        let dimension = json!({ "unit": "Hrs", "pricePerUnit": { "USD": format!("{usd:.10}") } });
        let term = json!({ "priceDimensions": { "SKU.JRTCKXETXF.6YS6EN2CT7": dimension } });
        json!({
            "product": { "productFamily": "Compute Instance", "attributes": { "instanceType": name } },
            "terms": { "OnDemand": { "SKU.JRTCKXETXF": term } },
        })
        .to_string()
    });
    json!({ "FormatVersion": "aws_v1", "PriceList": product.into_iter().collect::<Vec<_>>() }).to_string()
}
