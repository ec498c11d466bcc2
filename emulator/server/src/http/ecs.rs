//! ECS's wire: JSON 1.1. The action stands in `X-Amz-Target`, errors in `__type`.

use std::sync::Arc;

use axum::body::Bytes;
use axum::response::Response;
use serde_json::json;

use super::{Answer, answer, dropped};
use crate::driver::Core;
use spotsweep_world::ecs::DescribeContainerInstances;
use spotsweep_world::{ApiError, Failure, Service, World};

const VERSION: &str = "AmazonEC2ContainerServiceV20141113.";
const DESCRIBE: &str = "DescribeContainerInstances";

pub(super) fn call(core: &Arc<Core>, target: &str, body: &Bytes) -> Answer {
    if target.strip_prefix(VERSION) != Some(DESCRIBE) {
        let message = format!("{target} is not known to spotsweep-emulator: it has {VERSION}{DESCRIBE}.");
        return Ok(error(&ApiError::ecs("UnknownOperationException", message)));
    }
    let describe = |world: &mut World| {
        let request: DescribeContainerInstances =
            serde_json::from_slice(body).map_err(|error| ApiError::ecs("SerializationException", error.to_string()))?;
        world.describe_container_instances(&request)
    };
    Ok(match core.with(|world, now| world.call(Service::Ecs, DESCRIBE, now, describe)) {
        Ok(value) => answer(200, "application/x-amz-json-1.1", value.to_string()),
        Err(Failure::Api(refusal)) => error(&refusal),
        Err(Failure::Dropped) => dropped(),
    })
}

fn error(error: &ApiError) -> Response {
    let body = json!({"__type": error.code, "message": error.message}).to_string();
    answer(error.status, "application/x-amz-json-1.1", body)
}
