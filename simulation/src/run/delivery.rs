//! Delivers events and requests to a function, with retries and concurrent invocations, and records the results.

use serde_json::Value;
use spotsweep_protocol::cause::chain;
use spotsweep_protocol::claim::Reply;

use super::agent::Agent;
use super::{Habits, Simulation};
use crate::invocation::Invoked;
use crate::kernel::Delivery;

impl Simulation {
    pub(super) fn deliver(&mut self, delivery: Delivery) {
        let (_, answer) = self.invoke(delivery.event.clone());
        if answer.is_none() {
            self.retry(delivery);
        }
    }

    /// Repeats a failed asynchronous invocation as Lambda does. After the last retry the event is in the dead-letter
    /// queue. A dropped file exists nowhere else then: an alarm goes off, and a user redrives it after the faults end.
    /// What is already on record needs no redrive.
    fn retry(&mut self, failed: Delivery) {
        let now = self.harness.now;
        if let Err(event) = self.kernel.retry(now, failed)
            && event["source"] == "aws.s3"
        {
            let wait = self.chaos.ends_after.saturating_sub(self.elapsed());
            self.kernel.deliver(now + wait, event);
        }
    }

    /// One invocation, perhaps with a concurrent one. Returns the event, and the reply if the function answered.
    pub(super) fn invoke(&mut self, event: Value) -> (Value, Option<Option<Reply>>) {
        let mut together = vec![(event, self.fault())];
        let companion = self.companion();
        if let Some(other) = &companion {
            together.push((other.event.clone(), self.fault()));
        }
        let Self { harness, rng, .. } = self;
        let mut invoked = harness.invoke_all(&together, |among| rng.choose(among));
        if let Some((other, last)) = companion.and_then(|other| Some((other, invoked.pop()?)))
            && self.came_to(&other.event, last).is_none()
        {
            self.retry(other);
        }
        let (event, _) = together.swap_remove(0);
        let reply = invoked.pop().and_then(|first| self.came_to(&event, first));
        (event, reply)
    }

    /// Records the result of an invocation. Returns the reply if the function answered.
    fn came_to(&mut self, event: &Value, invoked: Invoked) -> Option<Option<Reply>> {
        // The fault point at which the invocation died also counts, because the run has passed it.
        self.passed += invoked.passed + usize::from(invoked.answer.is_none());
        self.watch.invoked(&self.harness, event, &invoked);
        if let Some(inputs) = &mut self.inputs {
            let now = self.harness.now;
            inputs.extend(self.harness.store.decision_log.take().into_iter().map(|event| (now, event)));
        }
        if let Some(log) = &mut self.log {
            let what = event["detail-type"].as_str().or(event["request"].as_str()).unwrap_or("?");
            let of = event["index"].as_u64().or(event["detail"]["arrayProperties"]["index"].as_u64());
            let of = of.map(|index| format!(" of trial {index}")).unwrap_or_default();
            let outcome = match &invoked.answer {
                None => format!("died at fault point {}", invoked.passed),
                Some(Ok(report)) => report.steps.join("; "),
                Some(Err(error)) => format!("failed: {}", chain(error)),
            };
            log.push(format!("{:.3} {what}{of}: {outcome}", self.harness.now));
        }
        Some(invoked.answer?.ok()?.reply)
    }

    /// Logs a line about an attempt. The line is built only if a log is kept.
    pub(super) fn note(&mut self, agent: &Agent, what: impl FnOnce(&Habits) -> String) {
        let Some(log) = &mut self.log else { return };
        let (attempt, index, what) = (agent.container.attempt, agent.container.trial.index, what(&self.chaos.habits));
        log.push(format!("{:.3} attempt {attempt} of trial {index}: {what}", self.harness.now));
    }
}
