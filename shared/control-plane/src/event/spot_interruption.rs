//! `EC2 Spot Instance Interruption Warning` and `EC2 Instance Rebalance Recommendation`, both best effort (fact 2).

use serde::Deserialize;

use super::{Envelope, Event, ParseError, detail};
use spotsweep_protocol::claim::NoticeKind;

/// EventBridge detail type of the interruption notice.
pub(super) const WARNING: &str = "EC2 Spot Instance Interruption Warning";

/// EventBridge detail type of the rebalance recommendation.
pub(super) const REBALANCE: &str = "EC2 Instance Rebalance Recommendation";

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Detail {
    instance_id: String,
}

pub(super) fn parse(envelope: Envelope) -> Result<Event, ParseError> {
    let (kind, name) = match envelope.detail_type.as_str() {
        REBALANCE => (NoticeKind::Rebalance, REBALANCE),
        _warning => (NoticeKind::Interruption, WARNING),
    };
    let Detail { instance_id } = detail(name, envelope)?;
    if !super::is_resource(&instance_id, "i-") {
        let problem = format!("{instance_id:?} is not an instance id");
        return Err(ParseError::Value { kind: name, problem });
    }
    Ok(Event::InstanceNoticed { instance: instance_id, kind })
}
