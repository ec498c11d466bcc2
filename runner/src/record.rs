//! Everything the command writes while it runs: it is passed on, kept, and turned into figures.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;
use spotsweep_protocol::number::to_json;
use spotsweep_protocol::rungs::Reached;
use spotsweep_training_metrics::{Figures, Logged};
use tokio::process::{ChildStderr, ChildStdout};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, timeout, timeout_at};

use crate::claim::Latest;
use crate::error_line::error_in;
use crate::exit::Failure;
use crate::log::{mask, say};
use crate::metrics_file::MetricsFile;
use crate::output::{Pump, Splitter, Tail, own_stream};
use crate::own_files::MAX_RECORD_BYTES;
use crate::prepare::Wanted;
use crate::reading::{Lines, Logs, read_lines};
use crate::rungs::Rungs;
use crate::unread::Unread;
use crate::user::User;
use crate::workplace::Workplace;

/// How many metrics may wait in the channel from the readers to the recorder.
const IN_FLIGHT: usize = 1024;
/// How often the runner looks at the metrics file.
const METRICS_FILE_POLL: Duration = Duration::from_millis(500);
/// Pieces of the metrics file read at one look, so that a training that writes faster does not keep the runner busy.
const PIECES_AT_ONCE: u32 = 32;
/// The longest wait for the output's end: a process that left the command's group may hold it open.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);
/// The readers may be slow if other trainings keep the instance busy, and a result without its last value is wrong.
/// What is left to read is limited, because the command has ended.
const READ_LIMIT: Duration = Duration::from_secs(60);

/// The running readers.
pub(crate) struct Recording {
    tail: Arc<Mutex<Tail>>,
    pumps: [JoinHandle<()>; 2],
    /// The reader of the metrics file.
    file: (JoinHandle<()>, oneshot::Sender<()>),
    /// The readers of lines and of the libraries' files, each with the flag that ends it. `stop_logs` makes the second
    /// one look for the last time.
    readers: [(JoinHandle<()>, Arc<AtomicBool>); 2],
    unread: Unread,
    stop_logs: std::sync::mpsc::Sender<()>,
    recorder: JoinHandle<()>,
    figures: watch::Receiver<Figures>,
    rungs: watch::Receiver<Vec<Reached>>,
    /// Bytes of output and of the metrics file so far.
    pub(crate) output_bytes: Arc<AtomicU64>,
}

/// What the runner has of the output when the command has ended.
pub(crate) struct Recorded {
    /// The end of stdout and stderr together, which follows the logs of earlier attempts.
    pub(crate) log: Vec<u8>,
    /// How many bytes of the log are of this attempt.
    own_bytes: usize,
    /// The final figures of the trial.
    pub(crate) figures: Figures,
    /// All rungs that the trial has reached.
    pub(crate) rungs: Vec<Reached>,
    /// What the readers have not searched for metrics.
    pub(crate) unread: Vec<String>,
}

impl Recorded {
    /// What this attempt has written, without the logs (and errors) of earlier attempts.
    pub(crate) fn own_log(&self) -> &[u8] {
        &self.log[self.log.len().saturating_sub(self.own_bytes)..]
    }

    /// The line that says why the command has failed.
    pub(crate) fn error(&self) -> Option<String> {
        error_in(self.own_log())
    }

    /// The figures and rungs as the last report sends them.
    pub(crate) fn latest(&self) -> Latest {
        Latest { metrics: self.figures.metrics(), rungs: self.rungs.clone() }
    }
}

impl Recording {
    /// Starts reading; from now on the figures can be followed.
    pub(crate) fn start(
        (stdout, stderr): (ChildStdout, ChildStderr),
        place: &Workplace,
        metrics: &Wanted,
        user: Option<User>,
        logs: Logs,
        rungs: Option<Rungs>,
    ) -> Result<Self, Failure> {
        let before = place.own.log();
        let tail = Arc::new(Mutex::new(before.map(Tail::after).unwrap_or_default()));
        let (sender, received) = mpsc::channel(IN_FLIGHT);
        let (publisher, figures) = watch::channel(Figures::new(metrics.named.clone()));
        let known = rungs.as_ref().map(|rungs| rungs.reached().to_vec()).unwrap_or_default();
        let (publish_rungs, reached) = watch::channel(known);
        let (record, record_bytes) =
            place.own.go_on().map_err(|source| Failure::Prepare { path: PathBuf::from("metrics.jsonl"), source })?;
        let output_bytes = Arc::new(AtomicU64::new(0));
        let unread = logs.unread.clone();
        let wanted = (metrics.named.clone(), metrics.patterns.clone());
        let given_up = Arc::new(AtomicBool::new(false));
        let ([out, err, of_file], reading) = read_lines(wanted, user, sender.clone(), &unread, Arc::clone(&given_up));
        let pump = |onward, lines| {
            let (tail, unread, output_bytes) = (Arc::clone(&tail), unread.clone(), Arc::clone(&output_bytes));
            Pump { onward, mask: mask().stream(), tail, lines, unread, output_bytes }
        };
        let (out, err) = (pump(own_stream(std::io::stdout())?, out), pump(own_stream(std::io::stderr())?, err));
        let (stop_file, file_stopped) = oneshot::channel();
        let (stop_logs, logs_stopped) = std::sync::mpsc::channel();
        let file =
            tokio::spawn(follow(place.metrics(), of_file, (Arc::clone(&output_bytes), unread.clone()), file_stopped));
        let logs = logs.follow(sender, logs_stopped);
        let recorder = Recorder {
            record,
            record_bytes,
            figures: publisher,
            named: metrics.named.clone(),
            rungs: rungs.map(|rungs| (rungs, publish_rungs)),
            complained: BTreeSet::new(),
        };
        Ok(Self {
            tail: Arc::clone(&tail),
            pumps: [tokio::spawn(out.run(stdout)), tokio::spawn(err.run(stderr))],
            file: (file, stop_file),
            readers: [(reading, given_up), logs],
            unread,
            stop_logs,
            // Writing the values to the volume may block.
            recorder: spawn_blocking(move || recorder.run(received)),
            figures,
            rungs: reached,
            output_bytes: Arc::clone(&output_bytes),
        })
    }

    /// The figures and the rungs, to be followed.
    pub(crate) fn published(&self) -> (watch::Receiver<Figures>, watch::Receiver<Vec<Reached>>) {
        (self.figures.clone(), self.rungs.clone())
    }

    /// Reads what is left after the command's end. Most of the time until the `deadline` is kept for the seal.
    pub(crate) async fn finish(self, deadline: Option<Instant>) -> Recorded {
        let left = deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(Instant::now()));
        let limit = DRAIN_LIMIT.min(left / 4);
        for mut pump in self.pumps {
            if timeout(limit, &mut pump).await.is_err() {
                say("something outlived the command and holds its output open; no longer listening");
                pump.abort();
            }
        }
        let (mut file, stop_file) = self.file;
        // Each fails only if the other side has already ended.
        let _ = stop_file.send(());
        let _ = self.stop_logs.send(());
        if timeout(limit, &mut file).await.is_err() {
            self.unread.add("the end of the file of metrics, which is too long".to_owned());
            file.abort();
        }
        let until = Instant::now() + READ_LIMIT.min(left / 4);
        for (mut reader, given_up) in self.readers {
            if timeout_at(until, &mut reader).await.is_err() {
                given_up.store(true, Ordering::Relaxed);
                // The second attempt goes on from a checkpoint of epoch 4 and repeats epoch 5; the third from one of
                // epoch 7.
                let _ = timeout(limit, reader).await;
            }
        }
        let _ = timeout(limit, self.recorder).await;
        let (log, own_bytes) = {
            let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
            (tail.bytes().to_vec(), tail.pushed())
        };
        let (figures, rungs) = (self.figures.borrow().clone(), self.rungs.borrow().clone());
        let unread = self.unread.all(figures.has_named());
        Recorded { log, own_bytes, figures, rungs, unread }
    }
}

/// Turns values into figures, and records those that count.
struct Recorder {
    record: File,
    record_bytes: u64,
    figures: watch::Sender<Figures>,
    /// The name of the metric that ranks the trials.
    named: Option<String>,
    /// Absent if trials are not compared.
    rungs: Option<(Rungs, watch::Sender<Vec<Reached>>)>,
    complained: BTreeSet<&'static str>,
}

impl Recorder {
    fn run(mut self, mut found: mpsc::Receiver<Logged>) {
        while let Some(logged) = found.blocking_recv() {
            self.take(logged);
        }
    }

    fn take(&mut self, mut logged: Logged) {
        let mut left_out = None;
        self.figures.send_if_modified(|figures| {
            let before = figures.is_doubtful();
            left_out = figures.take(&mut logged);
            !logged.values.is_empty() || figures.is_doubtful() != before
        });
        if let Some(odd) = logged.values.iter().find(|value| !value.value.is_finite()) {
            let said = format!("{}={}", odd.name, odd.value);
            self.complain("the training has printed a value that is not finite", &said);
        }
        if !logged.values.is_empty() {
            let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
            let time = logged.time.unwrap_or_else(now);
            self.compare(&logged, time);
            self.write_down(&logged, time);
        }
        if let Some(name) = left_out {
            self.complain("too many metrics, or too long a name: only the record has them all", &name);
        }
    }

    /// Counts the metric that ranks the trials. A rung is published with the figures that reach it.
    fn compare(&mut self, logged: &Logged, time: f64) {
        let Some((rungs, publish)) = &mut self.rungs else { return };
        let is_named = |name: &String| Some(name) == self.named.as_ref();
        let mut failed = None;
        for value in logged.values.iter().filter(|value| is_named(&value.name)) {
            match rungs.take(time, logged.step, value.value, value.source) {
                Ok(true) => drop(publish.send_replace(rungs.reached().to_vec())),
                Ok(false) => {}
                Err(error) => failed = Some(error.to_string()),
            }
        }
        if let Some(error) = failed {
            self.complain("the metric's series cannot be written: after an interruption it counts from less", &error);
        }
    }

    fn write_down(&mut self, logged: &Logged, time: f64) {
        let metrics: serde_json::Map<_, _> =
            logged.values.iter().map(|value| (value.name.clone(), to_json(value.value))).collect();
        let text = format!("{}\n", json!({"time": time, "step": logged.step, "metrics": metrics}));
        if self.record_bytes + text.len() as u64 > MAX_RECORD_BYTES {
            self.complain("metrics.jsonl is full; the figures go on", "64 MiB");
            return;
        }
        match self.record.write_all(text.as_bytes()) {
            Ok(()) => self.record_bytes += text.len() as u64,
            Err(error) => {
                // Half a line would make the next one unreadable. Fails only if nothing can be written at all.
                let _ = self.record.set_len(self.record_bytes);
                self.complain("metrics.jsonl cannot be written; the figures go on", &error.to_string());
            }
        }
    }

    /// Logs each complaint once, because a training that diverged would repeat it with every step.
    fn complain(&mut self, complaint: &'static str, detail: &str) {
        if self.complained.insert(complaint) {
            say(&format!("{complaint} ({detail})"));
        }
    }
}

/// Hands over the metrics that the command appends to its metrics file, until `stop`.
async fn follow(
    mut metrics: MetricsFile,
    lines: Lines,
    (output_bytes, unread): (Arc<AtomicU64>, Unread),
    mut stop: oneshot::Receiver<()>,
) {
    let mut splitter = Splitter::default();
    let mut last_look = false;
    let mut pieces = 0;
    loop {
        let read = move || {
            let bytes = metrics.read();
            (metrics, bytes)
        };
        let bytes;
        let Ok(next) = spawn_blocking(read).await else { return };
        (metrics, bytes) = next;
        pieces += 1;
        output_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let end_of_file = bytes.is_empty();
        let (_, found) = if end_of_file && last_look { splitter.finish() } else { splitter.push(&bytes) };
        lines.read(found).await;
        splitter.tell(&unread);
        if end_of_file && last_look {
            return;
        }
        if end_of_file || (pieces >= PIECES_AT_ONCE && !last_look) {
            pieces = 0;
            tokio::select! {
                _ = &mut stop => last_look = true,
                () = tokio::time::sleep(METRICS_FILE_POLL) => {}
            }
        }
    }
}
