//! AWS's clients of one invocation: they make calls on the World.

use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use spotsweep_control_plane::calls::{CallError, Wait};
use spotsweep_records::workspace::EC2_TRIES;
use spotsweep_world::{ApiError, Failure, Service, World};

use super::Cloud;
use crate::calls::Name;

/// The SDK's default number of tries of one call.
const TRIES: u32 = 3;

/// The clients of one invocation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Client<'a, W> {
    pub(super) cloud: &'a Cloud,
    time: &'a W,
}

impl<'a, W: Wait> Client<'a, W> {
    pub(super) fn new(cloud: &'a Cloud, time: &'a W) -> Self {
        Self { cloud, time }
    }

    /// Makes a call on EC2.
    pub(super) async fn ec2<T>(
        &self,
        action: &'static str,
        effect: impl FnMut(&mut World) -> Result<T, ApiError>,
    ) -> Result<T, CallError> {
        self.call(Service::Ec2, action, effect).await
    }

    /// Makes a call, and repeats it if it is throttled, as the SDK does.
    pub(super) async fn call<T>(
        &self,
        service: Service,
        action: &'static str,
        mut effect: impl FnMut(&mut World) -> Result<T, ApiError>,
    ) -> Result<T, CallError> {
        let tries = if service == Service::Ec2 { EC2_TRIES } else { TRIES };
        // The SDK waits 1, 2, 4, 8 s, each times a random factor. This is the mean of each wait.
        for pause in (0..tries - 1).map(|tried| Duration::from_millis(500 << tried)) {
            match self.once(service, action, &mut effect).await {
                Err(CallError::Throttled { .. }) if self.time.wait(pause).await => {}
                done => return done,
            }
        }
        self.once(service, action, effect).await
    }

    /// Makes a call on a service that the World does not have, with the S3 key or index that permissions name.
    pub(super) async fn on<T>(&self, name: Name, on: Option<&str>, effect: impl FnOnce() -> T) -> Result<T, CallError> {
        let answer = self.cloud.calls.call_on(name, on.map(str::to_owned), effect);
        answer.await.map_err(|error| CallError::unclear(error.to_string()))
    }

    /// Makes one try of a call, with a fault point before its effect and one after it.
    pub(super) async fn once<T>(
        &self,
        service: Service,
        action: &'static str,
        effect: impl FnOnce(&mut World) -> Result<T, ApiError>,
    ) -> Result<T, CallError> {
        let answer = self.cloud.calls.call((iam_name(service), action), || {
            let mut world = self.cloud.world();
            let now = world.now();
            world.call(service, action, now, effect)
        });
        match answer.await.map_err(|error| CallError::unclear(error.to_string()))? {
            Ok(found) => Ok(found),
            Err(Failure::Api(ApiError { status, code, message })) => {
                let error = CallError::answered(status, code.to_owned(), message);
                if matches!(error, CallError::Throttled { .. }) {
                    self.cloud.count_throttled(action);
                }
                Err(error)
            }
            Err(Failure::Dropped) => Err(CallError::unclear(format!("{action}: the connection was closed"))),
        }
    }
}

fn iam_name(service: Service) -> &'static str {
    match service {
        Service::Batch => "batch",
        Service::Ec2 => "ec2",
        Service::Ecs => "ecs",
        Service::Fis => "fis",
        Service::Quotas => "servicequotas",
    }
}

/// Parses a request into the World's type.
pub(super) fn request<T: DeserializeOwned>(request: Value) -> Result<T, CallError> {
    serde_json::from_value(request).map_err(|error| CallError::Unclear(error.into()))
}

/// Parses a member of an answer.
pub(super) fn answer<'a, T: Deserialize<'a>>(member: &'a Value) -> Result<T, CallError> {
    T::deserialize(member).map_err(|error| CallError::Unclear(error.into()))
}

/// A text member of an answer; empty if it is missing.
pub(super) fn text(answer: &Value, member: &str) -> String {
    answer[member].as_str().unwrap_or_default().to_owned()
}
