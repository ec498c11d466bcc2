//! The wire protocol of FIS, restJson1, with a method and a path for each action.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::batch::error;
use super::{Answer, answer, dropped};
use crate::driver::Core;
use spotsweep_world::fis::invalid;
use spotsweep_world::{ApiError, Failure, Service, World};

/// `POST /experimentTemplates`
pub(super) async fn create_template(State(core): State<Arc<Core>>, body: Bytes) -> Answer {
    call(&core, "CreateExperimentTemplate", |world| world.create_experiment_template(parse(&body)?))
}

/// `DELETE /experimentTemplates/{id}`
pub(super) async fn delete_template(State(core): State<Arc<Core>>, Path(id): Path<String>) -> Answer {
    call(&core, "DeleteExperimentTemplate", |world| world.delete_experiment_template(&id))
}

/// `POST /experiments`
pub(super) async fn start(State(core): State<Arc<Core>>, body: Bytes) -> Answer {
    call(&core, "StartExperiment", |world| world.start_experiment(&parse(&body)?))
}

/// `GET /experiments/{id}`
pub(super) async fn show(State(core): State<Arc<Core>>, Path(id): Path<String>) -> Answer {
    call(&core, "GetExperiment", |world| world.experiment(&id))
}

/// `DELETE /experiments/{id}`
pub(super) async fn stop(State(core): State<Arc<Core>>, Path(id): Path<String>) -> Answer {
    call(&core, "StopExperiment", |world| world.stop_experiment(&id))
}

/// `GET /actions/{id}`
pub(super) async fn action(State(core): State<Arc<Core>>, Path(id): Path<String>) -> Answer {
    call(&core, "GetAction", |world| world.fis_action(&id))
}

fn call(core: &Core, action: &str, act: impl FnOnce(&mut World) -> Result<Value, ApiError>) -> Answer {
    let outcome = core.with(|world, now| world.call(Service::Fis, action, now, act));
    Ok(match outcome {
        Ok(value) => answer(200, "application/json", value.to_string()),
        Err(Failure::Api(refusal)) => error(&refusal),
        Err(Failure::Dropped) => dropped(),
    })
}

/// Parses a body. Unknown members would have no effect, so they are refused.
fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(body)
        .map_err(|error| invalid(format!("spotsweep-emulator cannot take this request: {error}")))
}
