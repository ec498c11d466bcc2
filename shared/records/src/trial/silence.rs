//! An attempt whose runner does not report, while AWS Batch shows it as running.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{JobStatus, Trial};
use spotsweep_protocol::silence::SILENT_AFTER;

/// Requests of a runner that come within this time after a noted one are not noted: a runner that waits for its workspace
/// asks every few seconds, and each note is a write.
const NOTED_EVERY: SignedDuration = SignedDuration::from_secs(60);

/// What ECS says of the agent on an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentState {
    /// It is connected.
    Connected,
    /// It is not.
    Disconnected,
    /// ECS does not know the container instance (any more).
    Unknown,
}

/// What EC2 says of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstanceStatus {
    /// It runs, and no status check has failed.
    NotImpaired,
    /// It runs, and a status check has failed.
    Impaired,
    /// It is stopped, or about to be.
    Stopped,
    /// It is terminated, or about to be, or EC2 does not know it (any more).
    Gone,
    /// Which instance it is, is not known.
    Unknown,
}

/// The instance of an attempt, by what ECS and EC2 say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// `i-…`, by ECS; by the attempt's record where ECS does not know the container instance.
    pub instance: Option<String>,
    /// Of the ECS agent.
    pub agent: AgentState,
    /// Of the instance.
    pub status: InstanceStatus,
}

/// A silence that people have been notified of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    /// The attempt.
    pub attempt: u32,
    /// Its last report.
    pub since: Timestamp,
    /// Of the ECS agent on its instance.
    pub agent: AgentState,
    /// Of its instance.
    pub status: InstanceStatus,
    /// Why EC2 does not end the instance, where it was to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
}

/// Whether nothing can run there, as ECS and EC2 both say. ECS alone proves nothing: its agents disconnect and connect
/// again several times an hour.
pub fn is_dead(agent: AgentState, status: InstanceStatus) -> bool {
    let is_disconnected = matches!(agent, AgentState::Disconnected | AgentState::Unknown);
    let is_down = matches!(status, InstanceStatus::Impaired | InstanceStatus::Stopped | InstanceStatus::Gone);
    is_disconnected && is_down
}

impl Host {
    /// The instance that is to be ended: one that is dead, and still there.
    pub fn to_end(&self) -> Option<&str> {
        let is_there = self.status != InstanceStatus::Gone;
        self.instance.as_deref().filter(|_| is_there && is_dead(self.agent, self.status))
    }
}

impl Trial {
    /// Whether an attempt has reported. It claims and mounts before that, so a claim that comes later is a late copy.
    pub fn has_begun(&self, attempt: u32) -> bool {
        self.attempts.get(&attempt).is_some_and(|attempt| attempt.sequence.is_some())
    }

    /// A runner that has the trial asks or reports.
    pub fn has_reported(&mut self, attempt: u32, now: Timestamp) {
        self.silence = self.silence.take().filter(|silence| silence.attempt != attempt);
        if self.reported_at.is_none_or(|noted| now.duration_since(noted) >= NOTED_EVERY) {
            // Without parts of a second: they are a third of its bytes.
            self.reported_at = Timestamp::from_second(now.as_second()).ok();
        }
    }

    /// Since when the attempt that Batch shows as running has not reported, from the moment on at which AWS is asked.
    pub fn silent_since(&self, now: Timestamp) -> Option<Timestamp> {
        self.reported_at.filter(|_| self.asked_after().is_some_and(|at| at <= now))
    }

    /// When AWS is asked about the instance, if no report comes before; absent where no claimed attempt runs.
    pub fn asked_after(&self) -> Option<Timestamp> {
        let is_claimed = self.claimed_by == Some(self.ended.saturating_add(1));
        let runs = self.status == JobStatus::Running && is_claimed;
        self.reported_at.filter(|_| runs)?.checked_add(SILENT_AFTER).ok()
    }

    /// The silence of an attempt, where people have been notified of it.
    pub fn known_silence(&self, attempt: u32) -> Option<&Silence> {
        self.silence.as_ref().filter(|silence| silence.attempt == attempt)
    }

    /// What people read of a silence, also after its attempt has ended with its instance.
    pub(super) fn silence_note(&self) -> Option<String> {
        self.silence.as_ref().map(ToString::to_string)
    }
}

impl fmt::Display for AgentState {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Connected => "ECS: the agent is connected",
            Self::Disconnected => "ECS: the agent is not connected",
            Self::Unknown => "ECS does not know the instance",
        })
    }
}

impl fmt::Display for InstanceStatus {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::NotImpaired => "EC2: the instance runs, and no status check has failed",
            Self::Impaired => "EC2: the instance is impaired",
            Self::Stopped => "EC2: the instance is stopped",
            Self::Gone => "EC2: the instance is gone",
            Self::Unknown => "EC2: not asked, as the instance is not known",
        })
    }
}

impl fmt::Display for Silence {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { attempt, since, agent, status, refusal } = self;
        write!(to, "attempt {attempt}: no report since {}; {agent}; {status}", since.strftime("%F %H:%M UTC"))?;
        match refusal {
            Some(refusal) => write!(to, "; EC2 does not end it: {refusal}"),
            None if *status == InstanceStatus::Gone || !is_dead(*agent, *status) => Ok(()),
            None => to.write_str("; spotsweep ends the instance"),
        }
    }
}
