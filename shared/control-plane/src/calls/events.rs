//! Amazon EventBridge and SNS.

use std::fmt::Debug;
use std::future::Future;

use super::CallError;

/// An event for the account's default bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventEntry {
    /// The event's source.
    pub source: &'static str,
    /// The event's detail type.
    pub detail_type: &'static str,
    /// The event's detail as JSON.
    pub detail: String,
}

/// The calls to EventBridge that the control plane makes.
pub trait EventBridge: Debug + Send + Sync {
    /// Puts an event on the bus, and returns code and message of the error if EventBridge has not accepted it.
    fn put_events(&self, entry: EventEntry) -> impl Future<Output = Result<Vec<(String, String)>, CallError>> + Send;
}

/// The parameters of Publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publish {
    /// ARN of the topic.
    pub topic: String,
    /// The subject of an e-mail.
    pub subject: String,
    /// The text.
    pub message: String,
}

/// The calls to SNS that the control plane makes.
pub trait Sns: Debug + Send + Sync {
    /// Publishes a message to a topic.
    fn publish(&self, wanted: Publish) -> impl Future<Output = Result<(), CallError>> + Send;
}
