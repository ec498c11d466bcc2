//! The runner looks for signs of progress of the command.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use spotsweep_attempt::Event;
use spotsweep_attempt::stall::{Files, Gpu, Signs, Stall, Step};
use spotsweep_protocol::claim::Request;
use spotsweep_protocol::stall::StallRule;
use spotsweep_seal::CHECKPOINTS;
use spotsweep_seal::disk::Stamp;

use super::{Agent, Doing, Next, Run};
use crate::run::Simulation;
use crate::run::training::Training;

/// The looks at a training so far.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    /// `None` if the sweep has no limit: its trainings do not hang.
    stall: Option<Stall>,
    began: Timestamp,
    is_last: bool,
    /// Whether a stall, or its end, has yet to be reported.
    has_news: bool,
}

impl Progress {
    pub(super) fn new(rule: StallRule, now: Timestamp) -> Self {
        let signs = Signs { bytes: 0, files: None };
        let stall = Stall::new(rule, signs, Duration::ZERO).filter(|_| rule.end_seconds.is_some());
        Self { stall, began: now, is_last: rule.is_last, has_news: false }
    }

    /// Returns when the runner looks next, if only a look at that time can find anything. A training that computes shows
    /// a sign at any look.
    pub(super) fn look_at(&self, training: &Training, now: Timestamp) -> Option<Timestamp> {
        let stall = self.stall.as_ref().filter(|_| training.hangs());
        stall.map(|stall| now + stall.tick())
    }
}

impl Simulation {
    /// Looks at the training, and reports if it has stalled or goes on. Returns what follows if the runner has to end the
    /// attempt, or to wait for an answer.
    pub(super) fn look(&mut self, agent: &mut Agent, run: &mut Run) -> Result<Option<Next>, String> {
        if run.progress.stall.is_none() {
            return Ok(None);
        }
        let found = self.with_disk(agent, &run.volume, |disk| disk.files(Path::new(CHECKPOINTS)))?;
        let sizes = |found: BTreeMap<String, Stamp>| {
            Files::default().with(found.values().map(|file| (file.bytes, file.modified_ns)))
        };
        let signs = Signs { bytes: run.training.step.into(), files: found.ok().map(sizes) };
        let elapsed = Duration::try_from(self.harness.now.duration_since(run.progress.began)).unwrap_or_default();
        let Some(stall) = &mut run.progress.stall else { return Ok(None) };
        let step = stall.look(elapsed, signs, Gpu::Absent);
        let seconds = stall.silent().as_secs();
        match step {
            Step::Nothing => {}
            Step::Warn | Step::GoesOn => run.progress.has_news = true,
            Step::End => {
                agent.doing = Doing::Training(Box::new(run.clone()));
                return self.on(agent, Event::Stalled { seconds, is_last: run.progress.is_last }).map(Some);
            }
        }
        if run.progress.has_news
            && !self.has_reported(agent, run, (seconds > 0).then_some(seconds))
            && let Some(pause) = self.again(agent)
        {
            agent.doing = Doing::Training(Box::new(run.clone()));
            return Ok(Some(Next::After(pause)));
        }
        run.progress.has_news = false;
        Ok(None)
    }

    /// Reports whether the training is stalled. The next report gets the answer to this one and stops the training.
    fn has_reported(&mut self, agent: &mut Agent, run: &Run, stalled_seconds: Option<u64>) -> bool {
        let (step, seal) = (run.training.step, run.sealer.summary());
        let (sequence, metrics, rungs) = (agent.next_sequence(), super::metrics(step), agent.reached(step));
        self.ask(agent, Request::Report { sequence, metrics, seal, stalled_seconds, rungs }).is_some()
    }
}
