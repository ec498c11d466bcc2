//! AWS as the clients of one invocation reach it: calls on the World.

use std::time::Duration;

use spotsweep_control_plane::calls::{CallError, Wait};
use spotsweep_control_plane::workspace::EC2_TRIES;
use spotsweep_world::{ApiError, Failure, Service, World};

use super::Cloud;

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

    /// One call on EC2. Where it is throttled it is made again, as the SDK does.
    pub(super) async fn ec2<T>(
        &self,
        action: &'static str,
        mut effect: impl FnMut(&mut World) -> Result<T, ApiError>,
    ) -> Result<T, CallError> {
        // The SDK waits 1, 2, 4, 8 s, each times a random share, of which this is the mean.
        for pause in (0..EC2_TRIES - 1).map(|tried| Duration::from_millis(500 << tried)) {
            match self.once(Service::Ec2, action, &mut effect).await {
                Err(CallError::Throttled { .. }) if self.time.wait(pause).await => {}
                done => return done,
            }
        }
        self.once(Service::Ec2, action, effect).await
    }

    /// One try of a call, with a fault point before its effect and one after it.
    pub(super) async fn once<T>(
        &self,
        service: Service,
        action: &'static str,
        effect: impl FnOnce(&mut World) -> Result<T, ApiError>,
    ) -> Result<T, CallError> {
        let answer = self.cloud.calls.call(action, || {
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
