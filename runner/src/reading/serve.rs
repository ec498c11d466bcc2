//! The code that runs in the reading process.

use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use rustix::process::{Resource, Rlimit, setrlimit};
use spotsweep_beneath::Folder;
use spotsweep_checkpoint_formats::{Content, completeness_by, may_mix_versions};
use spotsweep_training_metrics::{Definitions, Lines, Logged};

use super::log_files::LogFiles;
use super::{Answer, Request, Task};
use crate::exit::Failure;
use crate::privileges;
use crate::user::User;

/// First argument of a reading process; the user that it runs as follows.
pub(crate) const READ: &str = "--read";
/// Memory limit of a process that reads metrics. The memory it needs does not grow with the files.
const METRICS_BYTES: u64 = 256 << 20;
/// Memory limit of a process that judges checkpoints: decoders hold a window of up to 128 MiB, and as much again.
const FORMATS_BYTES: u64 = 512 << 20;

/// Answers until the runner has no more requests.
pub(crate) fn serve(arguments: &[String]) -> Result<u8, Failure> {
    let user = arguments.first().map(String::as_str).unwrap_or_default();
    let user =
        if user.is_empty() { Ok(None) } else { User::from_words(user).map(Some).ok_or(io::ErrorKind::InvalidInput) };
    let dropped = user.map_err(io::Error::from).and_then(|user| privileges::drop(user.as_ref()));
    dropped.map_err(Failure::Privileges)?;
    answer().map_err(|source| Failure::System("answer the runner", source))?;
    Ok(0)
}

fn answer() -> io::Result<()> {
    let mut requests = BufReader::new(io::stdin().lock()).lines();
    let mut to = BufWriter::new(io::stdout().lock());
    let Some(task) = requests.next() else { return Ok(()) };
    let task: Task = serde_json::from_str(&task?)?;
    bound(match task {
        Task::Lines { .. } | Task::Logs { .. } => METRICS_BYTES,
        Task::Formats => FORMATS_BYTES,
    })?;
    let mut reader = Reader::new(task)?;
    tell(&mut to, &Answer::Done)?;
    for request in requests {
        reader.answer(serde_json::from_str(&request?)?, &mut to)?;
        tell(&mut to, &Answer::Done)?;
    }
    Ok(())
}

/// Limits the memory of this process. It writes no file, so there is no core dump when it ends.
fn bound(bytes: u64) -> io::Result<()> {
    for (resource, most) in [(Resource::As, bytes), (Resource::Core, 0), (Resource::Fsize, 0)] {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}

pub(super) fn tell(to: &mut impl Write, answer: &Answer) -> io::Result<()> {
    serde_json::to_writer(&mut *to, answer)?;
    to.write_all(b"\n")?;
    // There are many rows, and another answer always follows them.
    if matches!(answer, Answer::Logged(_)) { Ok(()) } else { to.flush() }
}

/// The reader of each task.
enum Reader {
    /// The state that a new stream starts from, and the streams.
    Lines(Box<Lines>, Vec<Lines>),
    Logs(Box<LogFiles>),
    Formats,
}

impl Reader {
    fn new(task: Task) -> io::Result<Self> {
        Ok(match task {
            Task::Lines { named, patterns } => {
                let definitions = Definitions::new(&patterns).map_err(io::Error::other)?;
                Self::Lines(Box::new(Lines::new(named, definitions)), Vec::new())
            }
            Task::Logs { roots, since, named, skipped } => {
                Self::Logs(Box::new(LogFiles::new(roots, (since, named), skipped)))
            }
            Task::Formats => Self::Formats,
        })
    }

    fn answer(&mut self, request: Request, to: &mut impl Write) -> io::Result<()> {
        match (self, request) {
            (Self::Lines(new, streams), Request::Lines(stream, lines)) => {
                if streams.len() <= stream {
                    streams.resize(stream + 1, Lines::clone(new));
                }
                let logged = lines.iter().flat_map(|line| streams[stream].read(line));
                let (origin, mut logged) = (stream as u64, logged.filter(|logged| !logged.values.is_empty()));
                logged.try_for_each(|found| tell(to, &Answer::Logged(Logged { origin, ..found })))
            }
            (Self::Logs(files), Request::Look(when)) => files.look(when, &mut |answer| tell(to, &answer)),
            (Self::Formats, Request::Completeness(root, file)) => {
                let found = completeness_by(&file, &|path| open(&root, path));
                tell(to, &found.map_or_else(|error| Answer::Failed(error.into()), Answer::Completeness))
            }
            (Self::Formats, Request::MayMix(root, file)) => {
                let found = may_mix_versions(&file, &|path| open(&root, path));
                tell(to, &found.map_or_else(|error| Answer::Failed(error.into()), Answer::MayMix))
            }
            (_, _) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }
}

fn open(root: &Path, path: &Path) -> io::Result<Box<dyn Content>> {
    Ok(Box::new(Folder::trusted(root)?.open(path)?))
}
