//! What commands do, made of calls on AWS ([`crate::calls`]): which calls, in which order, and what follows from an
//! answer or a refusal. It is the same over the SDKs and over the emulator's World.
//!
//! A function is built with the services whose commands it executes, so no other client gets into its binary.

mod access;
mod batch;
mod drain;
mod ebs;
mod ecs;
mod events;
mod gather;
mod lines;
mod multipart;
mod objects;
mod pages;
mod prices;
mod results;
mod silence;
mod target;
mod uploads;

use std::error::Error;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use crate::calls::{CallError, Page};
use crate::command::Command;
use crate::handle::{ExecuteError, Executor};
use crate::outcome::Outcome;

pub use access::access;
pub use batch::batch;
pub use drain::drains;
pub use ebs::ebs;
pub use ecs::{ecs, tasks};
pub use events::{bus, bus_and_topics};
pub use lines::lines;
pub use results::{ReportPage, results};
pub use silence::hosts;
pub use target::targets;
pub use uploads::uploads;

type BoxError = Box<dyn Error + Send + Sync>;

/// What came of a command.
pub type Executed = Result<Vec<Outcome>, BoxError>;

/// A command under way.
pub type Execution<'a> = Pin<Box<dyn Future<Output = Executed> + Send + 'a>>;

/// A command under way, or handed back: it is another service's.
pub type Taken<'a> = Result<Execution<'a>, Box<Command>>;

/// Executes some of the commands.
pub trait Service: Debug + Send + Sync {
    /// Executes a command, or hands it back.
    fn take(&self, command: Box<Command>) -> Taken<'_>;
}

/// The services that a function reaches beside its table.
#[derive(Debug, Default)]
pub struct Services<'a>(Vec<Box<dyn Service + 'a>>);

impl<'a> Services<'a> {
    /// Reaches one more.
    #[must_use]
    pub fn reaching(mut self, service: impl Service + 'a) -> Self {
        self.0.push(Box::new(service));
        self
    }

    async fn run(&self, command: Command) -> Executed {
        let mut command = Box::new(command);
        for service in &self.0 {
            match service.take(command) {
                Ok(execution) => return execution.await,
                Err(another) => command = another,
            }
        }
        Err("this function does not reach the service that it needs: see its main.rs".into())
    }
}

/// Everything on all pages of a list.
async fn all_pages<T, F>(mut page: impl FnMut(Option<String>) -> F) -> Result<Vec<T>, CallError>
where
    F: Future<Output = Result<Page<T>, CallError>>,
{
    let mut found = Vec::new();
    let mut token = None;
    loop {
        let next = page(token).await?;
        found.extend(next.items);
        token = next.next_token;
        if token.is_none() {
            return Ok(found);
        }
    }
}

impl Executor for Services<'_> {
    async fn execute(&self, command: Command) -> Result<Vec<Outcome>, ExecuteError> {
        let name = command.name();
        self.run(command).await.map_err(|source| ExecuteError { command: name, source })
    }
}
