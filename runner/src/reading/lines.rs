//! Metrics in lines of output, and of the file of metrics.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use spotsweep_protocol::metric::MetricPattern;
use spotsweep_training_metrics::Logged;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};

use super::asked::{Asked, Broken, SILENCE};
use super::{Answer, Request, Task};
use crate::log::say;
use crate::unread::Unread;
use crate::user::User;

/// Batches of lines that wait, together some megabytes. If there are more, the training has to wait.
const IN_FLIGHT: usize = 32;
/// How many processes are started. A bug of this program ends a process, and the next line may cause it again.
const MOST_STARTS: u32 = 8;

/// Takes the lines of one stream.
#[derive(Debug, Clone)]
pub(crate) struct Lines {
    stream: usize,
    to: mpsc::Sender<(usize, Vec<String>)>,
}

impl Lines {
    /// Hands lines over to the reading process.
    pub(crate) async fn read(&self, lines: Vec<String>) {
        if !lines.is_empty() {
            // Fails only if the reader has already ended.
            let _ = self.to.send((self.stream, lines)).await;
        }
    }
}

/// Reads `STREAMS` streams until all of them have ended, and hands over each metric to `found`.
pub(crate) fn read_lines<const STREAMS: usize>(
    (named, patterns): (Option<String>, Vec<MetricPattern>),
    user: Option<User>,
    found: mpsc::Sender<Logged>,
    unread: &Unread,
    given_up: Arc<AtomicBool>,
) -> ([Lines; STREAMS], JoinHandle<()>) {
    let (to, mut lines) = mpsc::channel(IN_FLIGHT);
    let streams = std::array::from_fn(|stream| Lines { stream, to: to.clone() });
    let task = Task::Lines { named, patterns };
    let unread = unread.clone();
    let reading = spawn_blocking(move || {
        let mut take = |answer: Answer| {
            if let Answer::Logged(logged) = answer {
                // Fails only if the recorder has already ended.
                let _ = found.blocking_send(logged);
            }
        };
        let mut asked = None;
        let mut left = MOST_STARTS;
        while let Some((stream, lines)) = lines.blocking_recv() {
            while asked.is_none() && left > 0 {
                left -= 1;
                asked = started(&task, user.as_ref());
            }
            let Some(reader) = &mut asked else { continue };
            if let Err(broken) = reader.ask(&Request::Lines(stream, lines), SILENCE, &given_up, &mut take) {
                asked = None;
                if broken == Broken::GivenUp {
                    return;
                }
                let end = if left == 0 { ", and in all that follow" } else { "" };
                unread.add(format!("some lines of output{end}: {broken}"));
            }
        }
    });
    (streams, reading)
}

/// Starts a process for the task; `None` if the system refuses one.
pub(super) fn started(task: &Task, user: Option<&User>) -> Option<Asked> {
    let started = Asked::start(task, user);
    started.map_err(|error| say(&format!("metrics are not read: {error}"))).ok()
}
