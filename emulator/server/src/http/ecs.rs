//! The wire protocol of ECS, JSON 1.1, with the action in `X-Amz-Target` and errors in `__type`; and the ECS agent's
//! endpoint for containers.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::Response;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Answer, answer, dropped};
use crate::driver::Core;
use spotsweep_world::{ApiError, Failure, Service, World};

const VERSION: &str = "AmazonEC2ContainerServiceV20141113.";
const INSTANCES: &str = "DescribeContainerInstances";
const UPDATE: &str = "UpdateContainerInstancesState";
const TASKS: &str = "DescribeTasks";

pub(super) fn call(core: &Arc<Core>, target: &str, body: &Bytes) -> Answer {
    Ok(match target.strip_prefix(VERSION) {
        Some(INSTANCES) => carry_out(core, INSTANCES, |world| world.describe_container_instances(&read(body)?)),
        Some(UPDATE) => carry_out(core, UPDATE, |world| world.update_container_instances_state(&read(body)?)),
        Some(TASKS) => carry_out(core, TASKS, |world| world.describe_tasks(&read(body)?)),
        Some(_) | None => {
            let message = format!(
                "{target} is not known to spotsweep-emulator: it has {VERSION}{INSTANCES}, {UPDATE} and {TASKS}."
            );
            error(&ApiError::ecs("UnknownOperationException", message))
        }
    })
}

/// Returns the agent's description of a container, by the cluster and id of its task.
pub(super) async fn container(State(core): State<Arc<Core>>, Path((cluster, id)): Path<(String, String)>) -> Answer {
    let found = core.with(|world, _now| world.container_metadata(&format!("{cluster}/{id}")));
    Ok(match found {
        Some(found) => answer(200, "application/json", found.to_string()),
        None => answer(404, "application/json", json!("not found").to_string()),
    })
}

fn carry_out(core: &Arc<Core>, action: &'static str, act: impl Fn(&mut World) -> Result<Value, ApiError>) -> Response {
    match core.with(|world, now| world.call(Service::Ecs, action, now, |world: &mut World| act(world))) {
        Ok(value) => answer(200, "application/x-amz-json-1.1", value.to_string()),
        Err(Failure::Api(refusal)) => error(&refusal),
        Err(Failure::Dropped) => dropped(),
    }
}

fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, ApiError> {
    serde_json::from_slice(body).map_err(|error| ApiError::ecs("SerializationException", error.to_string()))
}

fn error(error: &ApiError) -> Response {
    let body = json!({"__type": error.code, "message": error.message}).to_string();
    answer(error.status, "application/x-amz-json-1.1", body)
}
