//! The requests of a runner to the control plane: claims, mounts, reports and seals, release and end.

use std::collections::BTreeMap;
use std::time::Duration;

use spotsweep_protocol::claim::{Found, NoticeKind, Outputs, Reply, Request, Seal};
use spotsweep_protocol::metric::{Metric, Source};
use spotsweep_records::trial::INTERRUPTED_EXIT_CODE;

use super::agent::{Agent, Doing};
use super::stage::Stage;

/// The time from the stop signal until everything is saved and unmounted.
const SAVING: Duration = Duration::from_secs(8);

/// The pause after a call that failed.
const PAUSE: Duration = Duration::from_secs(2);

/// The time between two checkpoints.
const CHECKPOINT: Duration = Duration::from_secs(60);

/// The bounds of a runner's pause after a report, which is a twentieth of the attempt's time (runner/src/reports.rs).
const SHORTEST: Duration = Duration::from_secs(15);
const LONGEST: Duration = Duration::from_secs(60);

impl Stage {
    pub(super) async fn take_step(&mut self, agent: Agent) {
        match agent.doing {
            Doing::Claiming => self.claim(agent).await,
            Doing::Mounting => self.mount(agent).await,
            Doing::Training => self.train(agent).await,
            Doing::Leaving => self.leave(agent).await,
            Doing::Ending => self.end(agent).await,
        }
    }

    async fn claim(&mut self, mut agent: Agent) {
        match self.ask(&agent, Request::Claim(agent.container.place())).await {
            None => self.go_on_after(agent, PAUSE),
            Some(Reply::Waiting { retry_after_ms, .. }) => {
                self.go_on_after(agent, Duration::from_millis(retry_after_ms.max(1)));
            }
            Some(Reply::Granted(grant)) => {
                // Without an answer it claims again, and gets the same grant.
                if self.ask(&agent, Request::Access).await.is_none() {
                    return self.go_on_after(agent, PAUSE);
                }
                let volume = grant.workspace.expect("the trial has a workspace").volume;
                self.harness.cloud.world().set_mounted(&volume, true);
                (agent.volume, agent.doing) = (Some(volume), Doing::Mounting);
                self.go_on_after(agent, Duration::from_secs(1));
            }
            Some(Reply::Unavailable { .. }) => self.exit(&agent, INTERRUPTED_EXIT_CODE),
            Some(reply @ (Reply::Refused { .. } | Reply::Access(_) | Reply::Accepted {} | Reply::Stop { .. })) => {
                unreachable!(
                    "trial {}: attempt {} got the reply {reply:?}",
                    agent.container.trial.index, agent.container.attempt
                )
            }
        }
    }

    async fn mount(&mut self, mut agent: Agent) {
        let volume = agent.volume.clone().expect("a mount of a volume");
        let newest = self.seal(&agent).newest;
        let found = Found { formatted: newest.is_none(), newest, ..Found::default() };
        match self.ask(&agent, Request::Mounted { volume, found, seconds: 1.0 }).await {
            None => self.go_on_after(agent, PAUSE),
            Some(Reply::Accepted {}) => {
                agent.doing = Doing::Training;
                self.training_begins();
                self.train_on(agent);
            }
            Some(reply) => unreachable!(
                "trial {}: attempt {} got the reply {reply:?}",
                agent.container.trial.index, agent.container.attempt
            ),
        }
    }

    /// Trains until the next line of figures after the pause.
    fn train_on(&mut self, mut agent: Agent) {
        let pause = (agent.trained / 20).clamp(SHORTEST, LONGEST);
        let mut wait = self.plan.line;
        while wait < pause {
            wait += self.plan.line;
        }
        agent.next = agent.trained + wait;
        self.go_on_after(agent, wait);
    }

    /// Reports the training since the last report.
    async fn train(&mut self, mut agent: Agent) {
        let saved = &mut self.saved[agent.container.trial.index as usize];
        *saved += agent.next - agent.trained;
        agent.trained = agent.next;
        if *saved >= self.plan.training {
            agent.doing = Doing::Ending;
            self.unmount(&agent);
            return self.go_on_after(agent, Duration::from_secs(1));
        }
        let sequence = agent.next_sequence();
        let is_new = agent.trained - agent.sealed >= CHECKPOINT;
        let seal = is_new.then(|| self.seal(&agent));
        agent.sealed = if is_new { agent.trained } else { agent.sealed };
        let metrics = self.metrics(&agent);
        // The next report replaces a lost one.
        let (stalled_seconds, rungs) = (None, Vec::new());
        self.ask(&agent, Request::Report { sequence, metrics, seal, stalled_seconds, rungs }).await;
        self.train_on(agent);
    }

    /// Stops the training at the notice, which then saves.
    pub(super) async fn stop_training(&mut self, mut agent: Agent) {
        if agent.trains() {
            self.ask(&agent, Request::Notice { kind: NoticeKind::Interruption }).await;
            agent.doing = Doing::Leaving;
            self.go_on_after(agent, SAVING);
        } else {
            // It goes on until its instance ends.
            self.go_on_after(agent, PAUSE);
        }
    }

    async fn leave(&mut self, mut agent: Agent) {
        self.unmount(&agent);
        let (sequence, metrics, seal) = (agent.next_sequence(), self.metrics(&agent), Some(self.seal(&agent)));
        let (rollback, stalled_seconds, rungs) = (None, None, Vec::new());
        let request = Request::Release { sequence, metrics, seal, rollback, stalled_seconds, rungs };
        match self.ask(&agent, request).await {
            None => self.go_on_after(agent, PAUSE),
            Some(_) => self.exit(&agent, INTERRUPTED_EXIT_CODE),
        }
    }

    async fn end(&mut self, mut agent: Agent) {
        let (sequence, metrics) = (agent.next_sequence(), self.metrics(&agent));
        let (outputs, seconds) = (Outputs::default(), self.plan.training.as_secs_f64());
        let (error, stalled_seconds, rungs) = (None, None, Vec::new());
        let request = Request::End { sequence, exit_code: 0, metrics, outputs, seconds, error, stalled_seconds, rungs };
        match self.ask(&agent, request).await {
            None => self.go_on_after(agent, PAUSE),
            Some(_) => self.exit(&agent, 0),
        }
    }

    fn exit(&mut self, agent: &Agent, code: i32) {
        let now = self.harness.now;
        self.harness.cloud.world().job_exited(&agent.container.key, code, now);
    }

    fn unmount(&mut self, agent: &Agent) {
        if let Some(volume) = &agent.volume {
            self.harness.cloud.world().set_mounted(volume, false);
        }
    }

    async fn ask(&mut self, agent: &Agent, request: Request) -> Option<Reply> {
        self.invoke(&agent.container.request(request)).await?
    }

    /// Returns two figures, as training scripts print them.
    fn metrics(&self, agent: &Agent) -> BTreeMap<String, Metric> {
        let step = self.saved[agent.container.trial.index as usize].as_secs_f64() / self.plan.line.as_secs_f64();
        let figure =
            |value: f64| Metric { min: value / 2.0, max: value * 2.0, ..Metric::of(value, Some(step), Source::Stated) };
        [("loss", 2.345_678 / (1.0 + step)), ("accuracy", step / (1.0 + step))]
            .map(|(name, value)| (name.to_owned(), figure(value)))
            .into()
    }

    fn seal(&self, agent: &Agent) -> Seal {
        let saved = self.saved[agent.container.trial.index as usize].as_secs();
        let newest = (saved > 0).then(|| format!("epoch-{saved:06}.pt"));
        Seal { files: u64::from(saved > 0), bytes: saved << 20, newest }
    }
}
