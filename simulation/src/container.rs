//! A container of a trial, and the requests that its runner makes.

use serde_json::{Value, json};
use spotsweep_protocol::claim::{ClaimRequest, Machine, Market, Request};
use spotsweep_protocol::ids::SweepId;
use spotsweep_protocol::secret::{Secret, TOKEN_VARIABLE};
use spotsweep_records::workspace::TrialRef;
use spotsweep_world::{AttemptKey, Start, World};

/// The container of one attempt of a trial, as its variables describe it.
#[derive(Debug, Clone)]
pub struct Container {
    /// The attempt by the names of AWS Batch.
    pub key: AttemptKey,
    /// The trial.
    pub trial: TrialRef,
    /// The attempt's number among all attempts of the trial.
    pub attempt: u32,
    /// The EC2 instance on which it runs.
    pub instance: String,
    /// The instance's type.
    pub instance_type: String,
    /// The instance's availability zone.
    pub zone: String,
    /// How the instance is paid for.
    pub market: Market,
    /// The ARN of its ECS task.
    pub task: String,
    token: Option<Secret>,
}

impl Container {
    /// Reads the variables of a container that starts; `None` if it belongs to no trial.
    pub fn of(start: &Start, world: &World) -> Option<Self> {
        let number = |name: &str| start.number(name).unwrap_or(0);
        let instance = world.instance(&start.instance)?;
        let sweep = SweepId::parse(start.variable("SPOTSWEEP_SWEEP")?)?;
        let index = number("SPOTSWEEP_FIRST_INDEX") + number("AWS_BATCH_JOB_ARRAY_INDEX");
        Some(Self {
            key: start.attempt.clone(),
            trial: TrialRef { sweep, index },
            attempt: number("SPOTSWEEP_FIRST_ATTEMPT") + start.attempt.attempt,
            instance: start.instance.clone(),
            instance_type: instance.instance_type.clone(),
            zone: instance.zone.clone(),
            market: if instance.spot { Market::Spot } else { Market::OnDemand },
            task: start.task.clone(),
            token: start.variable(TOKEN_VARIABLE).and_then(|token| token.parse().ok()),
        })
    }

    /// Returns the place of the container, as its runner describes it in a claim.
    pub fn place(&self) -> Machine {
        Machine {
            instance: Some(self.instance.clone()),
            zone: Some(self.zone.clone()),
            instance_type: Some(self.instance_type.clone()),
            market: Some(self.market),
            defect: None,
            task: None,
        }
    }

    /// Returns the event of a request of its runner. Each attempt has its own secret.
    pub fn request(&self, request: Request) -> Value {
        let (sweep, index, job) = (self.trial.sweep.to_string(), self.trial.index, self.key.job.clone());
        let secret = Some(Secret::of(u128::from(self.attempt).to_be_bytes()));
        json!(ClaimRequest { sweep, index, job, attempt: self.attempt, token: self.token.clone(), secret, request })
    }
}
