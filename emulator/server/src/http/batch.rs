//! The wire protocol of AWS Batch, restJson1: one POST path per action, and errors in `x-amzn-errortype`.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::HeaderValue;
use axum::response::Response;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Answer, answer, dropped};
use crate::driver::Core;
use spotsweep_world::batch::{LARGEST_DEFINITION, LARGEST_PAYLOAD};
use spotsweep_world::{ApiError, Failure, Service, World};

type Action = fn(&mut World, &[u8]) -> Result<Value, ApiError>;

/// The actions by their paths, which are their names in lower case.
const ACTIONS: [(&str, Action); 14] = [
    ("SubmitJob", |world, body| {
        check_size(body, LARGEST_PAYLOAD)?;
        world.submit_job(parse(body)?)
    }),
    ("DescribeJobs", |world, body| world.describe_jobs(&parse(body)?)),
    ("ListJobs", |world, body| world.list_jobs(&parse(body)?)),
    ("CancelJob", |world, body| world.cancel_job(&parse(body)?)),
    ("TerminateJob", |world, body| world.terminate_job(&parse(body)?)),
    ("CancelJobs", |world, body| world.cancel_jobs(&parse(body)?)),
    ("TerminateJobs", |world, body| world.terminate_jobs(&parse(body)?)),
    ("RegisterJobDefinition", |world, body| {
        check_size(body, LARGEST_DEFINITION)?;
        world.register_job_definition(parse(body)?)
    }),
    ("DeregisterJobDefinition", |world, body| {
        world.deregister_job_definition(&parse::<JobDefinition>(body)?.job_definition)
    }),
    ("DescribeJobDefinitions", |world, body| world.describe_job_definitions(&parse(body)?)),
    ("CreateComputeEnvironment", |world, body| world.create_compute_environment(parse(body)?)),
    ("DescribeComputeEnvironments", |world, body| world.describe_compute_environments(&parse(body)?)),
    ("CreateJobQueue", |world, body| world.create_job_queue(parse(body)?)),
    ("DescribeJobQueues", |world, body| world.describe_job_queues(&parse(body)?)),
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct JobDefinition {
    #[serde(default)]
    job_definition: String,
}

fn check_size(body: &[u8], limit: usize) -> Result<(), ApiError> {
    if body.len() <= limit {
        return Ok(());
    }
    let message = format!("The request of {} bytes exceeds the limit of {limit} bytes", body.len());
    Err(ApiError::client(message))
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    let body = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(body).map_err(|error| match error.to_string() {
        // AWS accepts or ignores the field. Here it would have no effect, so it is refused.
        unknown if unknown.starts_with("unknown field") => ApiError::not_emulated(&unknown),
        message => ApiError { code: "SerializationException", status: 400, message },
    })
}

pub(super) async fn call(State(core): State<Arc<Core>>, Path(path): Path<String>, body: Bytes) -> Answer {
    let Some((name, action)) = ACTIONS.iter().find(|(name, _)| name.eq_ignore_ascii_case(&path)) else {
        return Ok(error(&ApiError {
            code: "UnknownOperationException",
            status: 404,
            message: format!("/v1/{path} is no Batch action known to spotsweep-emulator."),
        }));
    };
    let outcome = core.with(|world, now| world.call(Service::Batch, name, now, |world| action(world, &body)));
    Ok(match outcome {
        Ok(value) => answer(200, "application/json", value.to_string()),
        Err(Failure::Api(refusal)) => error(&refusal),
        Err(Failure::Dropped) => dropped(),
    })
}

/// Returns an error in restJson1's form.
pub(super) fn error(error: &ApiError) -> Response {
    let body = serde_json::json!({"message": error.message}).to_string();
    let mut response = answer(error.status, "application/json", body);
    response.headers_mut().insert("x-amzn-errortype", HeaderValue::from_static(error.code));
    response
}
