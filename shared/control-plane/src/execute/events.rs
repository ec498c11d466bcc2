//! EventBridge: spotsweep's own events on the account's default bus. SNS: notifications, if a sweep file names a topic.

use super::{BoxError, Executed, Service, Taken};
use crate::calls::{EventBridge, EventEntry, Publish, Sns};
use crate::command::Command;
use crate::outcome::Outcome;
use spotsweep_protocol::cause::chain;
use spotsweep_records::sweep::notification::{Notification, SOURCE};

/// Returns the service that puts events on the bus.
pub fn bus(bus: impl EventBridge) -> impl Service {
    Bus(bus)
}

/// Returns the service that puts events on the bus and publishes notifications to the sweep's own topic.
pub fn bus_and_topics(bus: impl EventBridge, topics: impl Sns) -> impl Service {
    BusAndTopics { bus, topics }
}

#[derive(Debug)]
struct Bus<B>(B);

#[derive(Debug)]
struct BusAndTopics<B, T> {
    bus: B,
    topics: T,
}

impl<B: EventBridge> Service for Bus<B> {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        match *command {
            Command::Notify(said) => Ok(Box::pin(async {
                say(&self.0, &said).await?;
                Ok(vec![Outcome::Notified(said)])
            })),
            other => Err(Box::new(other)),
        }
    }
}

impl<B: EventBridge, T: Sns> Service for BusAndTopics<B, T> {
    fn take(&self, command: Box<Command>) -> Taken<'_> {
        match *command {
            Command::Notify(said) => Ok(Box::pin(self.announce(said))),
            other => Err(Box::new(other)),
        }
    }
}

impl<B: EventBridge, T: Sns> BusAndTopics<B, T> {
    async fn announce(&self, said: Notification) -> Executed {
        say(&self.bus, &said).await?;
        if let Some(topic) = said.topic.clone() {
            let publish = Publish { topic: topic.clone(), subject: said.subject(), message: said.message.clone() };
            // A topic that is deleted or refuses the message must not keep a sweep from settling.
            if let Err(error) = self.topics.publish(publish).await {
                tracing::warn!(topic, error = %chain(&error), "the topic got no message");
            }
        }
        Ok(vec![Outcome::Notified(said)])
    }
}

async fn say(bus: &impl EventBridge, said: &Notification) -> Result<(), BoxError> {
    let detail_type = said.kind.detail_type();
    let entry = EventEntry { source: SOURCE, detail_type, detail: said.detail().to_string() };
    // PutEvents answers with status 200 even if it has rejected the event.
    match bus.put_events(entry).await?.first() {
        Some((code, message)) => Err(format!("{code}: {message}").into()),
        None => Ok(()),
    }
}
