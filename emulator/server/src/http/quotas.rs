//! Service Quotas' wire: JSON 1.1, of which GetServiceQuota is known, for vCPUs of Spot instances.

use std::sync::Arc;

use axum::body::Bytes;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;

use super::{Answer, answer};
use crate::driver::Core;

pub(super) const GET_SERVICE_QUOTA: &str = "ServiceQuotasV20190624.GetServiceQuota";

const JSON: &str = "application/x-amz-json-1.1";
/// Quotas of Spot instances by kind of instance. One number holds for each of them here.
const SPOT: [(&str, &str); 3] = [
    ("L-34B43A08", "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests"),
    ("L-3819A6DF", "All G and VT Spot Instance Requests"),
    ("L-7212CCBC", "All P4, P3 and P2 Spot Instance Requests"),
];
/// Where nothing limits them.
const PLENTY: u32 = 100_000;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct GetServiceQuota {
    service_code: String,
    quota_code: String,
}

pub(super) fn call(core: &Arc<Core>, body: &Bytes) -> Answer {
    let GetServiceQuota { service_code, quota_code } = match serde_json::from_slice(body) {
        Ok(request) => request,
        Err(error) => return Ok(refused("IllegalArgumentException", &error.to_string())),
    };
    let Some((code, name)) = SPOT.iter().find(|(code, _)| service_code == "ec2" && quota_code == *code) else {
        let message = format!("The quota {quota_code} of {service_code} is not emulated by spotsweep-emulator.");
        return Ok(refused("NoSuchResourceException", &message));
    };
    let (vcpus, region, account) = core.with(|world, _now| {
        let settings = world.settings();
        (world.trouble().spot_vcpus.unwrap_or(PLENTY), settings.region.clone(), settings.account.clone())
    });
    let quota = json!({ "Quota": { "ServiceCode": "ec2", "ServiceName": "Amazon Elastic Compute Cloud (Amazon EC2)",
        "QuotaArn": format!("arn:aws:servicequotas:{region}:{account}:ec2/{code}"), "QuotaCode": code,
        "QuotaName": name, "Value": f64::from(vcpus), "Unit": "None", "Adjustable": true, "GlobalQuota": false } });
    Ok(answer(200, JSON, quota.to_string()))
}

fn refused(code: &str, message: &str) -> Response {
    answer(400, JSON, json!({ "__type": code, "Message": message }).to_string())
}
