//! An attempt whose runner does not report, although AWS Batch shows it as running.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{JobStatus, Trial};
use spotsweep_protocol::silence::SILENT_AFTER;

/// A runner's request is not noted within this time after a noted one. A runner that waits for its workspace asks every
/// few seconds, and each note is a write.
const NOTED_EVERY: SignedDuration = SignedDuration::from_secs(60);

/// ECS's report about the agent of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentState {
    /// The agent is connected.
    Connected,
    /// The agent is not connected.
    Disconnected,
    /// ECS does not know the container instance, or does not know it any more.
    Unknown,
}

/// EC2's report about an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstanceStatus {
    /// The instance runs, and no status check has failed.
    NotImpaired,
    /// The instance runs, and a status check has failed.
    Impaired,
    /// The instance is stopped, or about to be.
    Stopped,
    /// The instance is terminated or about to be, or EC2 does not know it.
    Gone,
    /// It is not known which instance it is.
    Unknown,
}

/// The instance of an attempt, as ECS and EC2 report it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// `i-…` from ECS, or from the attempt's record where ECS does not know the container instance.
    pub instance: Option<String>,
    /// The state of the ECS agent.
    pub agent: AgentState,
    /// The state of the instance.
    pub status: InstanceStatus,
}

/// A silence of which people were notified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    /// The silent attempt's number.
    pub attempt: u32,
    /// The time of its last report.
    pub since: Timestamp,
    /// The state of the ECS agent on its instance.
    pub agent: AgentState,
    /// The state of its instance.
    pub status: InstanceStatus,
    /// Why EC2 refused to terminate the instance, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
}

/// Whether nothing can run on the instance, as ECS and EC2 both report. ECS alone proves nothing, because its agents
/// disconnect and connect again several times an hour.
pub fn is_dead(agent: AgentState, status: InstanceStatus) -> bool {
    let is_disconnected = matches!(agent, AgentState::Disconnected | AgentState::Unknown);
    let is_down = matches!(status, InstanceStatus::Impaired | InstanceStatus::Stopped | InstanceStatus::Gone);
    is_disconnected && is_down
}

impl Host {
    /// Returns the instance to terminate: one that is dead and still exists.
    pub fn to_end(&self) -> Option<&str> {
        let is_there = self.status != InstanceStatus::Gone;
        self.instance.as_deref().filter(|_| is_there && is_dead(self.agent, self.status))
    }
}

impl Trial {
    /// Whether the attempt has reported. It claims and mounts before its first report, so a claim or mount that arrives
    /// afterwards is a late copy.
    pub fn has_begun(&self, attempt: u32) -> bool {
        self.attempts.get(&attempt).is_some_and(|attempt| attempt.sequence.is_some())
    }

    /// Notes the time of a request from the runner that holds the trial, which also ends its silence.
    pub fn has_reported(&mut self, attempt: u32, now: Timestamp) {
        self.silence = self.silence.take().filter(|silence| silence.attempt != attempt);
        if self.reported_at.is_none_or(|noted| now.duration_since(noted) >= NOTED_EVERY) {
            // Fractions of a second are left out, because they would take a third of the stored bytes.
            self.reported_at = Timestamp::from_second(now.as_second()).ok();
        }
    }

    /// Returns the last report of the running attempt, if it is so old that AWS has to be asked about the instance.
    pub fn silent_since(&self, now: Timestamp) -> Option<Timestamp> {
        self.reported_at.filter(|_| self.asked_after().is_some_and(|at| at <= now))
    }

    /// Returns when AWS has to be asked about the instance, if no report comes before; `None` if no claimed attempt
    /// runs.
    pub fn asked_after(&self) -> Option<Timestamp> {
        let is_claimed = self.claimed_by == Some(self.ended.saturating_add(1));
        let runs = self.status == JobStatus::Running && is_claimed;
        self.reported_at.filter(|_| runs)?.checked_add(SILENT_AFTER).ok()
    }

    /// Returns the silence of an attempt, if people were notified of it.
    pub fn known_silence(&self, attempt: u32) -> Option<&Silence> {
        self.silence.as_ref().filter(|silence| silence.attempt == attempt)
    }

    /// Returns the note about a silence, also after its attempt has ended with its instance.
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
