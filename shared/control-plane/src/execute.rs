//! The execution of commands by calls to AWS ([`crate::calls`]): which calls are made in which order, and which outcome
//! follows from an answer or a refusal. It is the same over the SDKs and over the emulator's World.
//!
//! A function is built with the services whose commands it executes, so its binary contains no other client.

mod access;
mod batch;
mod disks;
mod drain;
mod ebs;
mod ecs;
mod events;
mod gather;
mod image;
mod lines;
mod listing;
mod multipart;
mod objects;
mod pages;
mod prices;
mod results;
mod secrets;
mod silence;
mod target;
mod uploads;

use std::error::Error;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use crate::calls::{Batch, CallError, DescribeJobDefinitions, JobDefinition, Page};
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
pub use listing::measure;
pub use results::results;
pub use silence::hosts;
pub use target::targets;
pub use uploads::uploads;

type BoxError = Box<dyn Error + Send + Sync>;

/// The result of a command.
pub type Executed = Result<Vec<Outcome>, BoxError>;

/// The execution of a command.
pub type Execution<'a> = Pin<Box<dyn Future<Output = Executed> + Send + 'a>>;

/// The execution of a command, or the command itself if another service executes it.
pub type Taken<'a> = Result<Execution<'a>, Box<Command>>;

/// A service, which executes some of the commands.
pub trait Service: Debug + Send + Sync {
    /// Executes a command, or returns it if another service does.
    fn take(&self, command: Box<Command>) -> Taken<'_>;
}

/// The services that a function uses besides its table.
#[derive(Debug, Default)]
pub struct Services<'a>(Vec<Box<dyn Service + 'a>>);

impl<'a> Services<'a> {
    /// Adds a service.
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

/// Returns the items of all pages of a list.
async fn all_pages<T, F>(mut page: impl FnMut(Option<String>) -> F) -> Result<Vec<T>, CallError>
where
    F: Future<Output = Result<Page<T>, CallError>>,
{
    let mut found = Vec::new();
    let mut token = None;
    loop {
        let next = page(token.clone()).await?;
        found.extend(next.items);
        token = another(token.as_deref(), next.next_token);
        if token.is_none() {
            return Ok(found);
        }
    }
}

/// Returns the described job definitions of all pages.
async fn described<B: Batch>(
    batch: &B,
    wanted: DescribeJobDefinitions,
) -> Result<Vec<JobDefinition<B::Properties>>, CallError> {
    all_pages(|next_token| batch.describe_job_definitions(DescribeJobDefinitions { next_token, ..wanted.clone() }))
        .await
}

/// Returns the token of the next page. A repeated token ends the list, because otherwise the list would never end.
fn another(before: Option<&str>, next: Option<String>) -> Option<String> {
    next.filter(|next| before != Some(next))
}

impl Executor for Services<'_> {
    async fn execute(&self, command: Command) -> Result<Vec<Outcome>, ExecuteError> {
        let name = command.name();
        self.run(command).await.map_err(|source| ExecuteError { command: name, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_list_has_all_of_its_pages() {
        type Answer = (&'static [u8], Option<&'static str>);
        let cases: [(&[Answer], &[u8]); 4] = [
            (&[(&[1, 2], None)], &[1, 2]),
            (&[(&[1], Some("a")), (&[2], Some("b")), (&[3], None)], &[1, 2, 3]),
            (&[(&[], Some("a")), (&[3], None)], &[3]),
            (&[(&[1], Some("a")), (&[2], Some("a")), (&[3], None)], &[1, 2]),
        ];
        for (pages, expected) in cases {
            let (mut tokens, mut left) = (Vec::new(), pages.iter());
            let found = all_pages(|token| {
                tokens.push(token);
                let (items, next) = left.next().expect("no page after the last one");
                let next_token = next.map(str::to_owned);
                async move { Ok(Page { items: items.to_vec(), next_token }) }
            });
            assert_eq!(found.await.unwrap(), expected);
            let asked: Vec<_> = tokens.iter().skip(1).map(Option::as_deref).collect();
            let given: Vec<_> = pages.iter().take(tokens.len() - 1).map(|(_, next)| *next).collect();
            assert_eq!(asked, given, "{pages:?}");
        }
    }
}
