//! Amazon EventBridge and SNS.

use std::fmt::Debug;
use std::future::Future;

use super::CallError;

/// An event for the account's default bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventEntry {
    /// Source.
    pub source: &'static str,
    /// Detail type.
    pub detail_type: &'static str,
    /// JSON.
    pub detail: String,
}

/// EventBridge, as the control plane uses it.
pub trait EventBridge: Debug + Send + Sync {
    /// Puts an event on the bus: where it has not taken it, the code and the message of the error.
    fn put_events(&self, entry: EventEntry) -> impl Future<Output = Result<Vec<(String, String)>, CallError>> + Send;
}

/// Publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publish {
    /// ARN of the topic.
    pub topic: String,
    /// Of an e-mail.
    pub subject: String,
    /// Message.
    pub message: String,
}

/// SNS, as the control plane uses it.
pub trait Sns: Debug + Send + Sync {
    /// Tells a topic.
    fn publish(&self, wanted: Publish) -> impl Future<Output = Result<(), CallError>> + Send;
}
