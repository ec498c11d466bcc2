//! Commands to SDK calls, by service. A function opens the services that it reaches, and has no other client in its
//! binary: what it does not need costs it neither size nor start.

use std::fmt::Debug;

use futures_util::future::BoxFuture;

use spotsweep_control_plane::command::Command;
use spotsweep_control_plane::handle::{ExecuteError, Executor};
use spotsweep_control_plane::outcome::Outcome;

pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What came of a command.
pub type Executed = Result<Vec<Outcome>, BoxError>;

/// A command under way, or handed back: it is another service's.
pub type Taken<'a> = Result<BoxFuture<'a, Executed>, Box<Command>>;

/// An AWS service behind the commands that are its.
pub trait Service: Debug + Send + Sync {
    /// Carries a command out. Makes no choices.
    fn take(&self, command: Box<Command>) -> Taken<'_>;
}

/// The services that a function reaches beside its table.
#[derive(Debug, Default)]
pub struct AwsExecutor {
    services: Vec<Box<dyn Service>>,
}

impl AwsExecutor {
    /// Reaches one more.
    #[must_use]
    pub fn reaching(mut self, service: impl Service + 'static) -> Self {
        self.services.push(Box::new(service));
        self
    }

    async fn run(&self, command: Command) -> Executed {
        let mut command = Box::new(command);
        for service in &self.services {
            match service.take(command) {
                Ok(outcome) => return outcome.await,
                Err(another) => command = another,
            }
        }
        Err("this function does not reach the service that it needs: see its main.rs".into())
    }
}

impl Executor for AwsExecutor {
    async fn execute(&self, command: Command) -> Result<Vec<Outcome>, ExecuteError> {
        let name = command.name();
        self.run(command).await.map_err(|source| ExecuteError { command: name, source })
    }
}
