//! One call on AWS as a client sees it.

use spotsweep_control_plane::throttle::Limit;
use spotsweep_world::{ApiError, Failure, Service, World};

use super::Cloud;
use crate::calls::Unanswered;

/// An answer, or a refusal that the service means.
pub(crate) type Answer<T> = Result<Result<T, ApiError>, NoAnswer>;

/// Why a call has neither an answer nor a refusal.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoAnswer {
    /// It was throttled: it has had no effect.
    #[error("{action}: {code}: {message}")]
    Throttled { action: &'static str, limit: Limit, code: &'static str, message: String },
    /// It may have had its effect or not.
    #[error("{0}")]
    Unclear(String),
}

impl From<ApiError> for NoAnswer {
    fn from(error: ApiError) -> Self {
        Self::Unclear(error.to_string())
    }
}

impl From<Unanswered> for NoAnswer {
    fn from(error: Unanswered) -> Self {
        Self::Unclear(error.to_string())
    }
}

impl Cloud {
    /// One call on Batch.
    pub(super) async fn batch<T>(
        &self,
        action: &'static str,
        effect: impl FnOnce(&mut World) -> Result<T, ApiError>,
    ) -> Answer<T> {
        self.aws(Service::Batch, action, effect).await
    }

    /// One call on EC2.
    pub(super) async fn ec2<T>(
        &self,
        action: &'static str,
        effect: impl FnOnce(&mut World) -> Result<T, ApiError>,
    ) -> Answer<T> {
        self.aws(Service::Ec2, action, effect).await
    }

    /// One call, with a fault point before its effect and one after it.
    pub(super) async fn aws<T>(
        &self,
        service: Service,
        action: &'static str,
        effect: impl FnOnce(&mut World) -> Result<T, ApiError>,
    ) -> Answer<T> {
        let answer = self.calls.call(action, || {
            let mut world = self.world();
            let now = world.now();
            world.call(service, action, now, effect)
        });
        match answer.await? {
            Ok(found) => Ok(Ok(found)),
            Err(Failure::Api(error)) => match Limit::of(error.code) {
                Some(limit) => Err(NoAnswer::Throttled { action, limit, code: error.code, message: error.message }),
                None if error.status < 500 => Ok(Err(error)),
                None => Err(error.into()),
            },
            Err(failure) => Err(NoAnswer::Unclear(format!("{action}: {failure:?}"))),
        }
    }
}
