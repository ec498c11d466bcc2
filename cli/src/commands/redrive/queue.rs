//! Finds a dead-letter queue by its stack, and reads each of its messages once.

use std::collections::{BTreeSet, VecDeque};

use aws_sdk_sqs::types::Message;

use crate::target::Target;
use spotsweep_protocol::failure::{Context, Failure};

/// For how many seconds a message that was read is hidden from other readers: ten functions take a minute each at most.
/// After that time, a killed command has lost nothing.
const HIDDEN_SECONDS: i32 = 900;
/// With a wait SQS asks all its servers. Without one it skips some, and a queue may look empty.
const WAIT_SECONDS: i32 = 1;
/// Most messages in one answer of SQS.
const BATCH: i32 = 10;

/// The two queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Events on which a function has failed.
    Failed,
    /// Events that could not be delivered to a function.
    Undelivered,
}

impl Kind {
    /// The queue's name in answers.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Undelivered => "undelivered",
        }
    }

    /// Name of the stack's output with the queue's URL.
    fn output(self) -> &'static str {
        match self {
            Self::Failed => "FailedEvents",
            Self::Undelivered => "UndeliveredEvents",
        }
    }
}

#[derive(Debug)]
pub(super) struct Queue {
    client: aws_sdk_sqs::Client,
    url: String,
}

impl Queue {
    /// Finds the queue's URL in the stack's outputs.
    pub(super) async fn find(target: &Target, kind: Kind) -> Result<Self, Failure> {
        let stacks = aws_sdk_cloudformation::Client::new(&target.config);
        let found = stacks.describe_stacks().stack_name(&target.name).send().await;
        let found = found.context(|| format!("cannot look stack {} up; is that its name and region?", target.name))?;
        let outputs = found.stacks().first().map(|stack| stack.outputs()).unwrap_or_default();
        let output = outputs.iter().find(|output| output.output_key() == Some(kind.output()));
        let url = output.and_then(|output| output.output_value()).ok_or_else(|| {
            Failure::usage(format!(
                "stack {} has no output {}: name the stack that infra/spotsweep.yaml or infra/control-plane.yaml made",
                target.name,
                kind.output()
            ))
        })?;
        Ok(Self { client: aws_sdk_sqs::Client::new(&target.config), url: url.to_owned() })
    }

    /// Begins to read the queue.
    pub(super) fn read(&self) -> Reading<'_> {
        Reading { queue: self, batch: VecDeque::new(), seen: BTreeSet::new(), kept: Vec::new() }
    }
}

/// One pass over a queue. It returns each message once, although SQS may deliver one twice.
#[derive(Debug)]
pub(super) struct Reading<'a> {
    queue: &'a Queue,
    batch: VecDeque<Message>,
    seen: BTreeSet<String>,
    /// Receipts of the messages that were not deleted.
    kept: Vec<String>,
}

impl Reading<'_> {
    /// The next message, or `None` if there is no other one.
    pub(super) async fn next(&mut self) -> Result<Option<Message>, Failure> {
        if self.batch.is_empty() {
            let Queue { client, url } = self.queue;
            let call = client
                .receive_message()
                .queue_url(url)
                .max_number_of_messages(BATCH)
                .wait_time_seconds(WAIT_SECONDS)
                .visibility_timeout(HIDDEN_SECONDS)
                .message_attribute_names("All");
            let answer = call.send().await.context(|| format!("cannot read the queue {url}"))?;
            self.kept.extend(answer.messages().iter().filter_map(|message| message.receipt_handle.clone()));
            let id = |message: &Message| message.message_id.clone().unwrap_or_default();
            self.batch = answer.messages.unwrap_or_default().into();
            self.batch.retain(|message| self.seen.insert(id(message)));
        }
        Ok(self.batch.pop_front())
    }

    /// Deletes a message from the queue.
    pub(super) async fn delete(&mut self, message: &Message) -> Result<(), Failure> {
        let Queue { client, url } = self.queue;
        let receipt = message.receipt_handle().unwrap_or_default();
        let call = client.delete_message().queue_url(url).receipt_handle(receipt);
        call.send().await.context(|| format!("an event was redriven, and cannot be deleted from {url}"))?;
        self.kept.retain(|kept| kept != receipt);
        Ok(())
    }

    /// Makes the messages that were not deleted visible again, for the next run and the alarm.
    pub(super) async fn put_back(self) -> Result<(), Failure> {
        let Queue { client, url } = self.queue;
        for receipt in self.kept {
            let call = client.change_message_visibility().queue_url(url).receipt_handle(receipt).visibility_timeout(0);
            call.send()
                .await
                .context(|| format!("cannot put an event back into {url}; it is there again in 15 minutes"))?;
        }
        Ok(())
    }
}
