//! The emulator's own API: what goes on inside, and trouble on demand.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Answer, answer};
use crate::driver::Core;
use crate::world::Fault;

fn json_answer(status: u16, value: &Value) -> Answer {
    Ok(answer(status, "application/json", value.to_string()))
}

/// `GET /_emulator/state`
pub(super) async fn state(State(core): State<Arc<Core>>) -> Answer {
    json_answer(200, &core.snapshot())
}

/// `GET /_emulator/calls`: counts by action, and the latest calls in order.
pub(super) async fn calls(State(core): State<Arc<Core>>) -> Answer {
    let answer =
        core.with(|world, _now| json!({"counts": world.call_counts(), "log": world.call_log().collect::<Vec<_>>()}));
    json_answer(200, &answer)
}

/// `POST /_emulator/faults {"action", "when", "times", "kind"}`
pub(super) async fn plant_fault(State(core): State<Arc<Core>>, body: Bytes) -> Answer {
    match parse::<Fault>(&body) {
        Ok(fault) => {
            core.with(|world, _now| world.fault(fault));
            json_answer(200, &json!({}))
        }
        Err(problem) => json_answer(400, &problem),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reclaim {
    instance: String,
    /// None: the instance dies without notice.
    notice_seconds: Option<f64>,
}

/// `POST /_emulator/reclaim {"instance", "notice_seconds"}`
pub(super) async fn reclaim(State(core): State<Arc<Core>>, body: Bytes) -> Answer {
    let Reclaim { instance, notice_seconds } = match parse(&body) {
        Ok(reclaim) => reclaim,
        Err(problem) => return json_answer(400, &problem),
    };
    let Ok(notice) = notice_seconds.map(Duration::try_from_secs_f64).transpose() else {
        return json_answer(400, &json!({"message": "notice_seconds must not be negative"}));
    };
    match core.with(|world, now| world.reclaim(&instance, notice, now)) {
        Ok(()) => json_answer(200, &json!({})),
        Err(error) => json_answer(error.status, &json!({"message": error.message})),
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Value> {
    serde_json::from_slice(body).map_err(|error| json!({"message": error.to_string()}))
}
