//! The instance metadata service, version 2, of each instance under `/imds/<instance>/latest/…`
//! (fact 32; EC2 user guide, "Use the Instance Metadata Service").

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::response::Response;
use jiff::Timestamp;
use serde_json::json;

use super::{Answer, answer};
use crate::driver::Core;
use spotsweep_world::{Instance, World, whole_seconds};

const TOKEN: &str = "x-aws-ec2-metadata-token";
const TTL: &str = "x-aws-ec2-metadata-token-ttl-seconds";
const TTL_SECONDS: std::ops::RangeInclusive<i64> = 1..=21_600;

pub(super) async fn call(
    State(core): State<Arc<Core>>,
    Path((id, path)): Path<(String, String)>,
    method: Method,
    headers: HeaderMap,
) -> Answer {
    Ok(core.with(|world, now| match world.instance(&id) {
        // The service works only while its instance lives.
        Some(instance) if instance.state.is_live() => {
            reply(world, instance, &method, path.trim_end_matches('/'), &headers, now)
        }
        Some(_) | None => plain(404, "Not Found"),
    }))
}

fn reply(
    world: &World,
    instance: &Instance,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
    now: Timestamp,
) -> Response {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if path == "latest/api/token" {
        return match header(TTL).and_then(|ttl| ttl.parse::<i64>().ok()) {
            _ if method != Method::PUT => plain(405, "Method Not Allowed"),
            Some(ttl) if TTL_SECONDS.contains(&ttl) => token(&instance.id, ttl, now),
            Some(_) | None => plain(400, "Bad Request"),
        };
    }
    if method != Method::GET {
        return plain(405, "Method Not Allowed");
    }
    if !header(TOKEN).is_some_and(|token| is_valid(token, &instance.id, now)) {
        return plain(401, "Unauthorized");
    }
    match path.strip_prefix("latest/meta-data/").and_then(|name| metadata(world, instance, name)) {
        Some(text) => plain(200, &text),
        None => plain(404, "Not Found"),
    }
}

fn metadata(world: &World, instance: &Instance, name: &str) -> Option<String> {
    match name {
        "instance-id" => Some(instance.id.clone()),
        "instance-type" => Some(instance.instance_type.clone()),
        "instance-life-cycle" => Some(if instance.spot { "spot" } else { "on-demand" }.to_owned()),
        "placement/availability-zone" => Some(instance.zone.clone()),
        "placement/region" => Some(world.settings().region.clone()),
        "spot/instance-action" => {
            instance.interruption.map(|at| json!({"action": "terminate", "time": whole_seconds(at)}).to_string())
        }
        "spot/termination-time" => instance.interruption.map(whole_seconds),
        "events/recommendations/rebalance" => {
            instance.rebalance.map(|at| json!({"noticeTime": whole_seconds(at)}).to_string())
        }
        _unknown => None,
    }
}

/// Returns a token. Tokens need no storage, because they contain their instance and their expiry. They need not be
/// secret, because anyone who reaches this port may do anything.
fn token(instance: &str, ttl_seconds: i64, now: Timestamp) -> Response {
    let until = now.as_second() + ttl_seconds;
    let mut response = plain(200, &format!("{instance}.{until}"));
    response.headers_mut().insert(TTL, HeaderValue::from(ttl_seconds));
    response
}

fn is_valid(token: &str, instance: &str, now: Timestamp) -> bool {
    let Some((of, until)) = token.split_once('.') else { return false };
    of == instance && until.parse::<i64>().is_ok_and(|until| until > now.as_second())
}

fn plain(status: u16, text: &str) -> Response {
    answer(status, "text/plain", text.to_owned())
}
