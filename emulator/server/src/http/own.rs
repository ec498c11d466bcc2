//! The emulator's own API: its state, and faults on demand.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Answer, answer};
use crate::driver::Core;
use spotsweep_world::{ApiError, Fault, Trouble};

fn json_answer(status: u16, value: &Value) -> Answer {
    Ok(answer(status, "application/json", value.to_string()))
}

/// Handles `GET /_emulator/state`.
pub(super) async fn state(State(core): State<Arc<Core>>) -> Answer {
    json_answer(200, &core.snapshot())
}

/// Handles `GET /_emulator/calls`: the counts by action, and the latest calls in order.
pub(super) async fn calls(State(core): State<Arc<Core>>) -> Answer {
    let answer =
        core.with(|world, _now| json!({"counts": world.call_counts(), "log": world.call_log().collect::<Vec<_>>()}));
    json_answer(200, &answer)
}

/// Handles `POST /_emulator/faults {"action", "when", "times", "kind"}`.
pub(super) async fn plant_fault(State(core): State<Arc<Core>>, body: Bytes) -> Answer {
    act::<Fault>(&body, |fault| {
        core.with(|world, _now| world.fault(fault));
        Ok(json!({}))
    })
}

/// Handles `POST /_emulator/trouble` with any fields of [`Trouble`]. The others keep their values, and the answer has
/// all of them.
pub(super) async fn set_trouble(State(core): State<Arc<Core>>, body: Bytes) -> Answer {
    act::<serde_json::Map<String, Value>>(&body, |changes| {
        core.with(|world, _now| {
            let mut all = json!(world.trouble());
            if let Some(all) = all.as_object_mut() {
                all.extend(changes);
            }
            let trouble: Trouble = serde_json::from_value(all).map_err(|error| bad_request(error.to_string()))?;
            world.check_trouble(&trouble)?;
            *world.trouble_mut() = trouble;
            Ok(json!(world.trouble()))
        })
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reclaim {
    instance: String,
    /// The notice; `None` if the instance ends without one.
    notice_seconds: Option<f64>,
}

/// Handles `POST /_emulator/reclaim {"instance", "notice_seconds"}`.
pub(super) async fn reclaim(State(core): State<Arc<Core>>, body: Bytes) -> Answer {
    act::<Reclaim>(&body, |Reclaim { instance, notice_seconds }| {
        let notice = notice(notice_seconds)?;
        core.with(|world, now| world.reclaim(&instance, notice, now))?;
        Ok(json!({}))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReclaimZone {
    zone: String,
    /// The notice; `None` if the instances end without one.
    notice_seconds: Option<f64>,
}

/// Handles `POST /_emulator/reclaim-zone {"zone", "notice_seconds"}`. The zone then has no capacity until zone-capacity
/// gives it some.
pub(super) async fn reclaim_zone(State(core): State<Arc<Core>>, body: Bytes) -> Answer {
    act::<ReclaimZone>(&body, |ReclaimZone { zone, notice_seconds }| {
        let notice = notice(notice_seconds)?;
        let instances = core.with(|world, now| world.reclaim_zone(&zone, notice, now))?;
        Ok(json!({"instances": instances}))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rebalance {
    instance: String,
}

/// Handles `POST /_emulator/rebalance {"instance"}`.
pub(super) async fn rebalance(State(core): State<Arc<Core>>, body: Bytes) -> Answer {
    act::<Rebalance>(&body, |Rebalance { instance }| {
        core.with(|world, now| world.recommend_rebalance(&instance, now))?;
        Ok(json!({}))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ZoneCapacity {
    zone: String,
    /// The limit; `None` if there is none.
    instances: Option<u32>,
}

/// Handles `POST /_emulator/zone-capacity {"zone", "instances"}`.
pub(super) async fn zone_capacity(State(core): State<Arc<Core>>, body: Bytes) -> Answer {
    act::<ZoneCapacity>(&body, |ZoneCapacity { zone, instances }| {
        core.with(|world, now| {
            world.check_zone(&zone)?;
            world.set_zone_capacity(&zone, instances, now);
            Ok(json!({}))
        })
    })
}

fn act<T: DeserializeOwned>(body: &[u8], what: impl FnOnce(T) -> Result<Value, ApiError>) -> Answer {
    let parsed = serde_json::from_slice(body).map_err(|error| bad_request(error.to_string()));
    match parsed.and_then(what) {
        Ok(value) => json_answer(200, &value),
        Err(error) => json_answer(error.status, &json!({"message": error.message})),
    }
}

fn bad_request(message: String) -> ApiError {
    ApiError::ec2("InvalidRequest", message)
}

fn notice(seconds: Option<f64>) -> Result<Option<Duration>, ApiError> {
    let notice = seconds.map(Duration::try_from_secs_f64).transpose();
    notice.map_err(|_| bad_request("notice_seconds must not be negative".into()))
}
