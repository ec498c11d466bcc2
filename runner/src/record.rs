//! Everything the command says while it runs: passed on, remembered, and turned into figures.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;
use spotsweep_protocol::number::to_json;
use tokio::process::{ChildStderr, ChildStdout};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::exit::Failure;
use crate::log::say;
use crate::metrics::{Figures, Line, parse};
use crate::metrics_file::MetricsFile;
use crate::output::{Pump, Splitter, Tail};
use crate::own_files::MAX_RECORD_BYTES;
use crate::workplace::Workplace;

/// Lines on their way from the readers to the recorder.
const LINES_IN_FLIGHT: usize = 1024;
/// How often the metrics file is looked at.
const METRICS_FILE_POLL: Duration = Duration::from_millis(500);
/// Pieces of the metrics file read at one look: a training that writes faster does not keep the runner busy.
const PIECES_AT_ONCE: u32 = 32;
/// A process that left the command's group may hold its output open; nobody waits for it longer.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);

/// The running readers.
pub(crate) struct Recording {
    tail: Arc<Mutex<Tail>>,
    pumps: [JoinHandle<()>; 2],
    file: JoinHandle<()>,
    stop_file: oneshot::Sender<()>,
    recorder: JoinHandle<()>,
    figures: watch::Receiver<Figures>,
    /// Bytes of output, and of the file of metrics, so far.
    pub(crate) heard: Arc<AtomicU64>,
}

/// What is left of the output when the command has ended.
pub(crate) struct Recorded {
    /// The end of stdout and stderr together.
    pub(crate) log: Vec<u8>,
    /// The final figures.
    pub(crate) figures: Figures,
}

impl Recording {
    /// Starts reading; the figures can be followed from now on.
    pub(crate) fn start(
        stdout: ChildStdout,
        stderr: ChildStderr,
        place: &Workplace,
        metric: Option<String>,
    ) -> Result<(Self, watch::Receiver<Figures>), Failure> {
        let before = place.own.log();
        let tail = Arc::new(Mutex::new(before.map(Tail::after).unwrap_or_default()));
        let (lines, received) = mpsc::channel(LINES_IN_FLIGHT);
        let (stop_file, stopped) = oneshot::channel();
        let (publisher, figures) = watch::channel(Figures::new(metric.clone()));
        let (record, record_bytes) =
            place.own.go_on().map_err(|source| Failure::Prepare { path: PathBuf::from("metrics.jsonl"), source })?;
        let heard = Arc::new(AtomicU64::new(0));
        let pump = |onward, lines| Pump { onward, tail: Arc::clone(&tail), lines, heard: Arc::clone(&heard) };
        let out = pump(own_stream(std::io::stdout())?, Some(lines.clone()));
        let err = pump(own_stream(std::io::stderr())?, None);
        let recording = Self {
            tail: Arc::clone(&tail),
            pumps: [tokio::spawn(out.run(stdout)), tokio::spawn(err.run(stderr))],
            file: tokio::spawn(follow(place.metrics(), lines, Arc::clone(&heard), stopped)),
            stop_file,
            recorder: tokio::spawn(Recorder::new(record, record_bytes, publisher, metric).run(received)),
            figures: figures.clone(),
            heard: Arc::clone(&heard),
        };
        Ok((recording, figures))
    }

    /// Reads what is left, after the command's end.
    pub(crate) async fn finish(self) -> Recorded {
        for mut pump in self.pumps {
            if timeout(DRAIN_LIMIT, &mut pump).await.is_err() {
                say("something outlived the command and holds its output open; no longer listening");
                pump.abort();
            }
        }
        // Each fails only where the other side has already ended.
        let _ = self.stop_file.send(());
        let mut file = self.file;
        if timeout(DRAIN_LIMIT, &mut file).await.is_err() {
            say("the file of metrics is too long: its end is not read");
            file.abort();
        }
        let _ = timeout(DRAIN_LIMIT, self.recorder).await;
        let log = self.tail.lock().unwrap_or_else(PoisonError::into_inner).bytes().to_vec();
        let figures = self.figures.borrow().clone();
        Recorded { log, figures }
    }
}

/// The runner's own stdout or stderr, to be written without blocking and unbuffered.
fn own_stream(stream: impl AsFd) -> Result<tokio::fs::File, Failure> {
    let descriptor = stream.as_fd().try_clone_to_owned();
    let file = descriptor.map(File::from).map_err(|source| Failure::System("use its output", source))?;
    Ok(tokio::fs::File::from_std(file))
}

/// Turns lines into figures and writes down every one that has metrics.
struct Recorder {
    record: File,
    record_bytes: u64,
    figures: watch::Sender<Figures>,
    /// The metric that the sweep file names.
    metric: Option<String>,
    complained: BTreeSet<&'static str>,
}

impl Recorder {
    fn new(record: File, record_bytes: u64, figures: watch::Sender<Figures>, metric: Option<String>) -> Self {
        Self { record, record_bytes, figures, metric, complained: BTreeSet::new() }
    }

    async fn run(mut self, mut lines: mpsc::Receiver<String>) {
        while let Some(line) = lines.recv().await {
            self.take(&parse(&line, self.metric.as_deref()));
        }
    }

    fn take(&mut self, line: &Line) {
        if let Some((name, value)) = line.values.iter().find(|(_, value)| !value.is_finite()) {
            self.complain("the training has printed a value that is not finite", &format!("{name}={value}"));
        }
        if line.values.is_empty() {
            return;
        }
        self.write_down(line);
        let mut left_out = None;
        self.figures.send_modify(|figures| {
            for (name, value) in &line.values {
                if !figures.add(name, line.step, *value) {
                    left_out = Some(name.clone());
                }
            }
        });
        if let Some(name) = left_out {
            self.complain("too many metrics, or too long a name: only the record has them all", &name);
        }
    }

    fn write_down(&mut self, line: &Line) {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let metrics: serde_json::Map<_, _> =
            line.values.iter().map(|(name, value)| (name.clone(), to_json(*value))).collect();
        let text = format!("{}\n", json!({"time": since_epoch.as_secs_f64(), "step": line.step, "metrics": metrics}));
        if self.record_bytes + text.len() as u64 > MAX_RECORD_BYTES {
            self.complain("metrics.jsonl is full; the figures go on", "64 MiB");
            return;
        }
        match self.record.write_all(text.as_bytes()) {
            Ok(()) => self.record_bytes += text.len() as u64,
            Err(error) => {
                // Half a line would spoil the next one. Fails where nothing can be written at all.
                let _ = self.record.set_len(self.record_bytes);
                self.complain("metrics.jsonl cannot be written; the figures go on", &error.to_string());
            }
        }
    }

    /// Each complaint once: a training that diverged would repeat it with every step.
    fn complain(&mut self, complaint: &'static str, detail: &str) {
        if self.complained.insert(complaint) {
            say(&format!("{complaint} ({detail})"));
        }
    }
}

/// Hands over the lines that the command appends to its metrics file, until `stop`.
async fn follow(
    mut metrics: MetricsFile,
    lines: mpsc::Sender<String>,
    heard: Arc<AtomicU64>,
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
        let Ok(next) = tokio::task::spawn_blocking(read).await else { return };
        (metrics, bytes) = next;
        pieces += 1;
        heard.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let end_of_file = bytes.is_empty();
        let (_, found) = if end_of_file && last_look { splitter.finish() } else { splitter.push(&bytes) };
        for line in found {
            let _ = lines.send(line).await;
        }
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
