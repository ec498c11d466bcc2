//! The wire protocol of the price list, JSON 1.1. Only GetProducts of one instance type is emulated.

use std::sync::Arc;

use axum::body::Bytes;
use serde::Deserialize;
use serde_json::json;

use super::{Answer, answer};
use crate::driver::Core;
use spotsweep_world::prices::on_demand_usd;

pub(super) const GET_PRODUCTS: &str = "AWSPriceListService.GetProducts";

const JSON: &str = "application/x-amz-json-1.1";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct GetProducts {
    service_code: String,
    #[serde(default)]
    filters: Vec<Filter>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Filter {
    #[serde(rename = "Type")]
    kind: String,
    field: String,
    value: String,
}

/// The attributes of an ordinary instance, the only product of a type here. A filter for another is refused.
const ORDINARY: [(&str, &str); 4] =
    [("operatingSystem", "Linux"), ("tenancy", "Shared"), ("preInstalledSw", "NA"), ("capacitystatus", "Used")];

pub(super) fn call(core: &Arc<Core>, body: &Bytes) -> Answer {
    let request = serde_json::from_slice::<GetProducts>(body).map_err(|error| error.to_string());
    let region = core.with(|world, _now| world.settings().region.clone());
    Ok(match request.and_then(|request| check(request, &region)) {
        Ok(request) => answer(200, JSON, products(&request)),
        Err(message) => {
            let body = json!({"__type": "InvalidParameterException", "message": message});
            answer(400, JSON, body.to_string())
        }
    })
}

fn check(request: GetProducts, region: &str) -> Result<GetProducts, String> {
    if request.service_code != "AmazonEC2" {
        return Err(format!("The service {} is not emulated by spotsweep-emulator.", request.service_code));
    }
    for Filter { kind, field, value } in &request.filters {
        let known = match field.as_str() {
            "instanceType" => true,
            "regionCode" => value == region,
            _other => ORDINARY.contains(&(field, value)),
        };
        if kind != "TERM_MATCH" || !known {
            return Err(format!("The filter {field} {kind} {value} is not emulated by spotsweep-emulator."));
        }
    }
    Ok(request)
}

/// Returns the products, each as a text of JSON, as on AWS.
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
