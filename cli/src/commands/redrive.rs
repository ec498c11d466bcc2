//! `spotsweep redrive`: delivers events from the dead-letter queues to their functions again.

mod letter;
mod queue;

use std::fmt;
use std::process::ExitCode;

use aws_sdk_lambda::primitives::Blob;
use serde_json::{Value, json};

use self::letter::Letter;
use self::queue::{Kind, Queue};
use crate::show::line;
use crate::target::Target;
use crate::{out, target};
use spotsweep_protocol::failure::{Context, FAILED, Failure};

/// `spotsweep redrive`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each event is handed to its function, and leaves the queue when the function has done its work. One that fails again
stays where it is, and its reason is shown. Safe at any time: functions know what they have seen.

Examples:
  spotsweep redrive --stack spotsweep --dry-run     what lies in the queues, and why
  spotsweep redrive --stack spotsweep

Exit codes: 0 nothing is left, 1 an event stays in its queue, 2 wrong usage.")]
pub(crate) struct Redrive {
    /// Only events that a function failed on
    #[arg(long, conflicts_with = "undelivered")]
    failed: bool,
    /// Only events that EventBridge could not hand to a function
    #[arg(long)]
    undelivered: bool,
    /// Tell what lies in the queues, and leave it there
    #[arg(long)]
    dry_run: bool,
    /// One line of JSON per event
    #[arg(long)]
    json: bool,
    /// The control plane's CloudFormation stack; without it the local stack is used where one is running
    #[arg(long, env = "SPOTSWEEP_STACK", value_name = "STACK")]
    stack: Option<String>,
}

/// Result for an event.
#[derive(Debug)]
enum Outcome {
    /// Its function has handled it.
    Redriven,
    /// With `--dry-run` it was only found.
    Found,
    /// It stays in its queue, for this reason.
    Stays(String),
}

/// Runs the command. It fails if an event stays in its queue.
pub(crate) async fn run(args: Redrive) -> Result<ExitCode, Failure> {
    let target = target::stack(args.stack).await?;
    let kinds = match (args.failed, args.undelivered) {
        (true, _) => vec![Kind::Failed],
        (false, true) => vec![Kind::Undelivered],
        (false, false) => vec![Kind::Failed, Kind::Undelivered],
    };
    let functions = aws_sdk_lambda::Client::new(&target.config);
    let (mut events, mut stay) = (0, 0);
    for kind in kinds {
        let queue = Queue::find(&target, kind).await?;
        let mut reading = queue.read();
        while let Some(message) = reading.next().await? {
            let letter = Letter::read(kind, &message);
            let outcome = match &letter {
                Err(reason) => Outcome::Stays(reason.clone()),
                Ok(_) if args.dry_run => Outcome::Found,
                Ok(letter) => invoke(&functions, letter).await?,
            };
            events += 1;
            stay += u32::from(matches!(outcome, Outcome::Stays(_)));
            match &outcome {
                Outcome::Redriven => reading.delete(&message).await?,
                Outcome::Found | Outcome::Stays(_) => {}
            }
            tell(args.json, kind, &letter.unwrap_or_default(), &outcome)?;
        }
        reading.put_back().await?;
    }
    out::note(format_args!("{}", summary(events, stay, args.dry_run, &target)));
    Ok(if stay == 0 { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// Waits for the function's answer. An event is deleted only when it is known to be handled.
async fn invoke(functions: &aws_sdk_lambda::Client, letter: &Letter) -> Result<Outcome, Failure> {
    let call = functions.invoke().function_name(&letter.function).payload(Blob::new(letter.event.to_string()));
    let answer = call.send().await.context(|| format!("cannot invoke {}; nothing was lost", letter.function))?;
    if answer.function_error().is_none() {
        return Ok(Outcome::Redriven);
    }
    let error = answer.payload().and_then(|payload| serde_json::from_slice(payload.as_ref()).ok());
    Ok(Outcome::Stays(format!("it failed again: {}", letter::message(&error.unwrap_or(Value::Null)))))
}

fn tell(is_json: bool, kind: Kind, letter: &Letter, outcome: &Outcome) -> Result<(), Failure> {
    let (name, reason) = match outcome {
        Outcome::Redriven => ("redriven", None),
        Outcome::Found => ("found", None),
        Outcome::Stays(reason) => ("stays", Some(reason)),
    };
    out::results(|to| {
        if is_json {
            let line = json!({ "queue": kind.name(), "outcome": name, "reason": reason, "function": letter.function,
                "error": letter.error, "event": letter.event });
            return writeln!(to, "{line}");
        }
        writeln!(to, "{name}: {letter}")?;
        reason.map_or(Ok(()), |reason| writeln!(to, "  {}", line(reason)))
    })
}

impl fmt::Display for Letter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { function, error, .. } = self;
        match function.is_empty() {
            true => formatter.write_str("a message that is no event of ours"),
            false => write!(formatter, "{function}, {}\n  it is here because: {}", line(self.about()), line(error)),
        }
    }
}

fn summary(events: u32, stay: u32, dry_run: bool, target: &Target) -> String {
    match (events, stay) {
        (0, _) => format!("nothing to redrive in stack {}", target.name),
        (_, 0) if dry_run => format!("{events} to redrive in stack {}; run it without --dry-run", target.name),
        (_, 0) => format!("{events} redriven"),
        _ => format!("{stay} of {events} stay in their queue: docs/operations.md tells what to do about them"),
    }
}
