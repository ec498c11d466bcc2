//! ECS's wire: JSON 1.1. The action stands in `X-Amz-Target`, errors in `__type`.

use std::sync::Arc;

use axum::body::Bytes;
use axum::response::Response;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{Answer, answer, dropped};
use crate::driver::Core;
use spotsweep_world::{ApiError, Failure, Service};

const VERSION: &str = "AmazonEC2ContainerServiceV20141113.";
const DESCRIBE: &str = "DescribeContainerInstances";
const UPDATE: &str = "UpdateContainerInstancesState";

pub(super) fn call(core: &Arc<Core>, target: &str, body: &Bytes) -> Answer {
    let answered = match target.strip_prefix(VERSION) {
        Some(DESCRIBE) => core.with(|world, now| {
            world.call(Service::Ecs, DESCRIBE, now, |world| world.describe_container_instances(&read(body)?))
        }),
        Some(UPDATE) => core.with(|world, now| {
            world.call(Service::Ecs, UPDATE, now, |world| world.update_container_instances_state(&read(body)?))
        }),
        Some(_) | None => {
            let message =
                format!("{target} is not known to spotsweep-emulator: it has {VERSION}{DESCRIBE} and {UPDATE}.");
            Err(Failure::Api(ApiError::ecs("UnknownOperationException", message)))
        }
    };
    Ok(match answered {
        Ok(value) => answer(200, "application/x-amz-json-1.1", value.to_string()),
        Err(Failure::Api(refusal)) => error(&refusal),
        Err(Failure::Dropped) => dropped(),
    })
}

fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, ApiError> {
    serde_json::from_slice(body).map_err(|error| ApiError::ecs("SerializationException", error.to_string()))
}

fn error(error: &ApiError) -> Response {
    let body = json!({"__type": error.code, "message": error.message}).to_string();
    answer(error.status, "application/x-amz-json-1.1", body)
}
