//! The wire protocol of Service Quotas, JSON 1.1. Only GetServiceQuota of EC2 is emulated.

use std::sync::Arc;

use axum::body::Bytes;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;

use super::{Answer, answer, dropped};
use crate::driver::Core;
use spotsweep_world::{ApiError, Failure, Service};

pub(super) const GET: &str = "ServiceQuotasV20190624.GetServiceQuota";

const JSON: &str = "application/x-amz-json-1.1";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct GetServiceQuota {
    service_code: String,
    quota_code: String,
}

pub(super) fn call(core: &Arc<Core>, body: &Bytes) -> Answer {
    let outcome = core.with(|world, now| {
        world.call(Service::Quotas, "GetServiceQuota", now, |world| {
            let request: GetServiceQuota = serde_json::from_slice(body).map_err(|error| illegal(error.to_string()))?;
            if request.service_code != "ec2" {
                let message = format!("The service {} is not emulated by spotsweep-emulator.", request.service_code);
                return Err(illegal(message));
            }
            let (name, value) = world.service_quota(&request.quota_code)?;
            Ok(json!({"Quota": {
                "ServiceCode": request.service_code,
                "QuotaCode": request.quota_code,
                "QuotaName": name,
                "Value": value,
                "Unit": "None",
                "Adjustable": true,
                "GlobalQuota": false,
            }}))
        })
    });
    Ok(match outcome {
        Ok(quota) => answer(200, JSON, quota.to_string()),
        Err(Failure::Api(refusal)) => error(&refusal),
        Err(Failure::Dropped) => dropped(),
    })
}

fn illegal(message: String) -> ApiError {
    ApiError { code: "IllegalArgumentException", status: 400, message }
}

fn error(error: &ApiError) -> Response {
    answer(error.status, JSON, json!({"__type": error.code, "message": error.message}).to_string())
}
