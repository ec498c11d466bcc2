//! A dead-letter queue: found by its stack, read once through.

use std::collections::{BTreeSet, VecDeque};

use aws_sdk_sqs::types::Message;

use crate::target::Target;
use spotsweep_protocol::failure::{Context, Failure};

/// How long what is read stays out of others' sight: ten functions take a minute each at most. Then a command that was
/// killed has lost nothing.
const HIDDEN_SECONDS: i32 = 900;
/// Asks all of SQS's servers; without a wait some are left out, and a queue looks empty that is not.
const WAIT_SECONDS: i32 = 1;
/// Most that SQS gives at a time.
const BATCH: i32 = 10;

/// The two queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Events that a function failed on.
    Failed,
    /// Events that no function could be given.
    Undelivered,
}

impl Kind {
    /// Its name in answers.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Undelivered => "undelivered",
        }
    }

    /// The stack's output with its URL.
    fn output(self) -> &'static str {
        match self {
            Self::Failed => "FailedEvents",
            Self::Undelivered => "UndeliveredEvents",
        }
    }
}

/// A queue.
#[derive(Debug)]
pub(super) struct Queue {
    client: aws_sdk_sqs::Client,
    url: String,
}

impl Queue {
    /// Looks it up in the stack's outputs.
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

    /// Begins to read it.
    pub(super) fn read(&self) -> Reading<'_> {
        Reading { queue: self, batch: VecDeque::new(), seen: BTreeSet::new(), kept: Vec::new() }
    }
}

/// One way through a queue: each message once, though SQS may give one twice.
#[derive(Debug)]
pub(super) struct Reading<'a> {
    queue: &'a Queue,
    batch: VecDeque<Message>,
    seen: BTreeSet<String>,
    /// Receipts of what has not been deleted.
    kept: Vec<String>,
}

impl Reading<'_> {
    /// The next message; `None` when there is no other.
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

    /// Takes a message out of the queue for good.
    pub(super) async fn delete(&mut self, message: &Message) -> Result<(), Failure> {
        let Queue { client, url } = self.queue;
        let receipt = message.receipt_handle().unwrap_or_default();
        let call = client.delete_message().queue_url(url).receipt_handle(receipt);
        call.send().await.context(|| format!("an event was redriven, and cannot be deleted from {url}"))?;
        self.kept.retain(|kept| kept != receipt);
        Ok(())
    }

    /// Lets others see again what has not been deleted: the next run, and the alarm.
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
