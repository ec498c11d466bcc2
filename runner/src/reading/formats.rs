//! Whether checkpoints are complete by their formats.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use spotsweep_checkpoint_formats::Completeness;
use spotsweep_seal::disk::{Formats, Judged, stopped};

use super::asked::{Asked, Broken};
use super::{Answer, Request, Task};
use crate::log::say;
use crate::user::User;

/// How many bytes of a file are judged in a second at least: less than a volume delivers, and than any decoder reads.
const SPEED: u64 = 50 << 20;
/// The extra time that all files have together. It is refilled as time passes.
const ALLOWANCE: Duration = Duration::from_secs(60);
/// One part in this many of the time that has passed is added to the allowance.
const SHARE: u32 = 10;
/// The time that is taken from the allowance when a process ends.
const RESTART: Duration = Duration::from_secs(5);

/// Judges files in a separate process. A file that takes more than its share of time or memory is not judged: it counts
/// neither as torn nor as proven.
pub(crate) struct FormatReader {
    user: Option<User>,
    state: Mutex<State>,
}

struct State {
    asked: Option<Asked>,
    allowance: Duration,
    /// When the allowance was last computed.
    at: Instant,
    /// After this moment, no file is judged.
    until: Option<Instant>,
}

impl FormatReader {
    /// Makes a reader for files of a training that runs as `user`.
    pub(crate) fn new(user: Option<User>) -> Self {
        let state = State { asked: None, allowance: ALLOWANCE, at: Instant::now(), until: None };
        Self { user, state: Mutex::new(state) }
    }

    /// Sets the moment after which no file is judged.
    pub(crate) fn hurry(&self, until: Instant) {
        self.lock().until = Some(until);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the answer, or `None` if there is none within the limits.
    fn ask(&self, judged: Judged<'_>, request: fn(&Judged<'_>) -> Request) -> io::Result<Option<Answer>> {
        let mut state = self.lock();
        let (now, free) = (Instant::now(), Duration::from_secs(judged.allocated / SPEED));
        let back = now.saturating_duration_since(state.at) / SHARE;
        (state.allowance, state.at) = (ALLOWANCE.min(state.allowance + back), now);
        let left = state.until.map_or(Duration::MAX, |until| until.saturating_duration_since(now));
        let limit = left.min(state.allowance + free);
        if state.allowance.is_zero() || left.is_zero() {
            return Ok(None);
        }
        let asked = match state.asked.take() {
            Some(asked) => Ok(asked),
            None => Asked::start(&Task::Formats, self.user.as_ref()),
        };
        let mut asked = match asked {
            Ok(asked) => asked,
            Err(error) => {
                say(&format!("formats of checkpoints are not judged: {error}"));
                state.allowance = state.allowance.saturating_sub(RESTART);
                return Ok(None);
            }
        };
        let mut found = None;
        let answered = asked.ask(&request(&judged), limit, judged.stopped, &mut |answer| found = Some(answer));
        let mut taken = now.elapsed().saturating_sub(free);
        match answered {
            Ok(()) => state.asked = Some(asked),
            Err(Broken::GivenUp) => return Err(stopped()),
            Err(broken) => {
                say(&format!("checkpoint file {} is not judged by its format: {broken}", judged.file.display()));
                taken += RESTART;
                found = None;
            }
        }
        state.allowance = state.allowance.saturating_sub(taken);
        Ok(found)
    }
}

impl Formats for FormatReader {
    fn completeness(&self, judged: Judged<'_>) -> io::Result<Completeness> {
        match self.ask(judged, |judged| Request::Completeness(judged.root.to_owned(), judged.file.to_owned()))? {
            Some(Answer::Completeness(found)) => Ok(found),
            Some(Answer::Failed(failed)) if failed.is_missing => Err(missing(judged.file, &failed.text)),
            _ => Ok(Completeness::Unjudged),
        }
    }

    fn may_mix(&self, judged: Judged<'_>) -> io::Result<bool> {
        match self.ask(judged, |judged| Request::MayMix(judged.root.to_owned(), judged.file.to_owned()))? {
            Some(Answer::MayMix(may)) => Ok(may),
            Some(Answer::Failed(failed)) if failed.is_missing => Err(missing(judged.file, &failed.text)),
            _ => Ok(false),
        }
    }
}

fn missing(file: &Path, text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{}: {text}", file.display()))
}

impl fmt::Debug for FormatReader {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("FormatReader")
    }
}
