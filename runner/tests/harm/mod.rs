//! Trainings whose files are hard to read: at most, the runner loses their metrics.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::process::Child;

use crate::attempts::{End, trial};
use crate::world::{Outcome, World, kind, read, until, well};

/// A Python script, with the functions that all of these need. `wait` waits for the test.
fn python(script: &str) -> String {
    let start = "
import ctypes, fcntl, json, os, signal, sys, time
output, checkpoints = os.environ['SPOTSWEEP_OUTPUT'], os.environ['SPOTSWEEP_CHECKPOINTS']
def wait(name):
    while not os.path.exists(os.environ['GATE'] + name): time.sleep(0.02)
def save(*_):
    open(checkpoints + '/saved', 'w').write('saved' * 1000)
    print('saved', flush=True)
    os._exit(0)
";
    format!("{start}{script}")
}

impl World {
    fn start_python(&self, script: &str) -> Child {
        let gate = self.path("gate");
        self.spawn(&[("GATE", gate.to_str().unwrap())], &["python3", "-c", &python(script)])
    }

    fn open(&self, name: &str) {
        fs::write(self.path(&format!("gate{name}")), "").unwrap();
    }

    fn last(&self, name: &str) -> Option<f64> {
        self.invocations("report").last()?["metrics"][name]["last"].as_f64()
    }

    fn seal(&self) -> Value {
        serde_json::from_str(&read(&self.path("volume/.spotsweep/seal.json"))).unwrap_or_default()
    }
}

/// The reading processes of the runner.
fn readers(runner: &Child) -> Vec<Pid> {
    let tasks = format!("/proc/{}/task", runner.id().unwrap());
    let tasks = fs::read_dir(tasks).unwrap().flatten();
    let children = tasks.flat_map(|task| {
        let children = read(&task.path().join("children"));
        children.split_whitespace().map(|pid| pid.parse::<i32>().unwrap()).collect::<Vec<_>>()
    });
    let is_reader = |pid: &i32| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| has(&line, b"\0--read\0"));
    children.filter(is_reader).map(|pid| Pid::from_raw(pid).unwrap()).collect()
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn ended(outcome: &Outcome, code: i32) {
    assert_eq!(outcome.code, Some(code), "{} {}", outcome.stdout, outcome.stderr);
    assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_file_of_metrics_costs_its_own_metrics() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join(
        "../shared/training-metrics/tests/recorded/tensorboard_writer/runs/events.out.tfevents.1795668261.vm.2799.0",
    );
    // The record's length is 2^64 - 8, and its checksum is right.
    let script = format!(
        "
os.makedirs(output + '/tb')
print('early=0.25', flush=True)
open(output + '/tb/a.tfevents', 'wb').write(bytes.fromhex('f8ffffffffffffff544f0a40'))
time.sleep(0.3)
data = open('{}', 'rb').read()
open(output + '/tb/b.tfevents', 'wb').write(data)
print('acc=0.9', flush=True)
",
        recorded.display()
    );
    let world = World::start(kind, well).await;
    let outcome = world.outcome(world.start_python(&script)).await;
    ended(&outcome, 0);
    let metrics = world.invocations("end").pop().unwrap()["metrics"].clone();
    assert_eq!((&metrics["acc"]["last"], &metrics["early"]["last"]), (&json!(0.9), &json!(0.25)), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_ends_or_stops_costs_metrics_and_nothing_else() {
    let world = trial().await;
    let runner = world.start_python(
        "
signal.signal(signal.SIGTERM, save)
open(checkpoints + '/ck-1.pt', 'w').write('good' * 1000)
print('score=1', flush=True)
wait('1')
for step in range(50): print('lost=1', flush=True); print('score=2', flush=True); time.sleep(0.05)
print('ready', flush=True)
while True: time.sleep(0.05)
",
    );
    until("a score", || world.last("score") == Some(1.0)).await;
    // The readers end in the same way if the kernel refuses memory or their code panics.
    let first = readers(&runner);
    assert!(first.len() >= 2, "{first:?}");
    first.iter().for_each(|pid| kill_process(*pid, Signal::ABORT).unwrap());
    world.open("1");
    until("a score by another reader", || world.last("score") == Some(2.0)).await;
    until("a seal", || world.seal()["files"]["ck-1.pt"].is_object()).await;
    // A training that runs as the same user can stop the readers.
    readers(&runner).iter().for_each(|pid| kill_process(*pid, Signal::STOP).unwrap());
    let outcome = world.interrupt(runner, End::Notice(40)).await;
    ended(&outcome, 75);
    assert!(outcome.stdout.contains("saved"), "{}", outcome.stderr);
    assert_eq!(world.seal()["final"], true, "{}", outcome.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_lines_delay_no_stop_signal() {
    let world = trial().await;
    let runner = world.start_python(
        "
line = (b'step: step=' * 5900)[:64000] + b'\\n'
print('score=1', flush=True)
if os.fork() == 0:
    while True: os.write(2, line)
signal.signal(signal.SIGTERM, save)
while True: os.write(1, line)
",
    );
    until("a score", || world.last("score") == Some(1.0)).await;
    let outcome = world.interrupt(runner, End::Notice(40)).await;
    ended(&outcome, 75);
    let is_sealed = world.seal()["files"]["saved"].is_object();
    assert!(is_sealed && world.seal()["final"] == true, "{}", world.seal());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runner_holds_no_files_of_metrics_in_memory() {
    let world = trial().await;
    let runner = world.start_python(
        "
signal.signal(signal.SIGTERM, save)
for file in range(4):
    with open(output + '/metrics%d.jsonl' % file, 'w') as to: to.write('{\"a\": 1}\\n' * 400_000)
print('score=1', flush=True)
while True: time.sleep(0.05)
",
    );
    until("a score", || world.last("score") == Some(1.0)).await;
    let peak = || {
        let status = read(&PathBuf::from(format!("/proc/{}/status", runner.id().unwrap_or_default())));
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).map(|line| line.trim().to_owned());
        line.and_then(|line| line.split(' ').next()?.parse::<u64>().ok()).unwrap_or_default()
    };
    let before = peak();
    tokio::time::sleep(Duration::from_secs(7)).await;
    let after = peak();
    let outcome = world.interrupt(runner, End::Notice(30)).await;
    ended(&outcome, 75);
    assert!(after < before + 16 * 1024, "{before} KiB, then {after} KiB");
    assert_eq!(world.seal()["final"], true, "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("a process outside"), "{}", outcome.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_read_keeps_no_other_from_being_sealed() {
    let world = trial().await;
    let runner = world.start_python(
        "
signal.signal(signal.SIGTERM, save)
signal.signal(signal.SIGIO, lambda *_: None)
for name in ('a.pt', 'leased.pt', 'z.pt'): open(checkpoints + '/' + name, 'w').write(name * 1000)
# Longer than any volume.
open(checkpoints + '/sparse.bin', 'w').truncate(8 << 40)
lease = os.open(checkpoints + '/leased.pt', os.O_RDONLY)
fcntl.fcntl(lease, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print('score=1', flush=True)
while True: time.sleep(0.05)
",
    );
    until("the other files are sealed", || {
        let files = world.seal()["files"].clone();
        files["a.pt"].is_object() && files["z.pt"].is_object()
    })
    .await;
    assert!(world.seal()["files"]["leased.pt"].is_null());
    let outcome = world.interrupt(runner, End::Notice(30)).await;
    ended(&outcome, 75);
    let seal = world.seal();
    assert!(seal["files"]["leased.pt"].is_object() && seal["files"]["sparse.bin"].is_null(), "{seal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_whose_name_is_no_text_is_signalled_and_killed() {
    let world = trial().await;
    let runner = world.start_python(
        "
def name(name): ctypes.CDLL(None).prctl(15, ctypes.c_char_p(name), 0, 0, 0)
signal.signal(signal.SIGTERM, save)
if os.fork() == 0:
    os.setsid()
    if os.fork() > 0: os._exit(0)
    name(b'\\xff\\xfeevil')
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True: open(checkpoints + '/alive.txt', 'w').write(str(time.time())); time.sleep(0.02)
# The kernel cuts it after 15 bytes, within a letter.
name('éééééééé'.encode())
print('score=1', flush=True)
while True: time.sleep(0.05)
",
    );
    until("a score", || world.last("score") == Some(1.0)).await;
    let outcome = world.interrupt(runner, End::Notice(30)).await;
    ended(&outcome, 75);
    assert!(outcome.stdout.contains("saved"), "{}", outcome.stderr);
    assert_eq!(world.seal()["final"], true, "{}", outcome.stderr);
    let alive = read(&world.path("volume/checkpoints/alive.txt"));
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(read(&world.path("volume/checkpoints/alive.txt")), alive, "the daemon lives");
}

/// A few bytes of a compressed file may unpack to far more than can be read in time.
#[tokio::test(flavor = "multi_thread")]
async fn files_that_unpack_to_terabytes_delay_no_attempt() {
    let world = trial().await;
    let script = "
import bz2
# 45 MB of zeros in some 40 bytes, so often that it makes a terabyte.
open(checkpoints + '/bomb.bz2', 'wb').write(bz2.compress(bytes(45_000_000)) * 25_000)
print('score=1', flush=True)
signal.signal(signal.SIGTERM, save)
while True: time.sleep(0.05)
";
    let runner = world.spawn(&[("SPOTSWEEP_SEAL_SECONDS", "600")], &["python3", "-c", &python(script)]);
    until("a score", || world.last("score") == Some(1.0)).await;
    // A lost instance ends without a seal.
    let outcome = world.interrupt(runner, End::Lost).await;
    assert_eq!(outcome.code, None);
    let began = std::time::Instant::now();
    let second = world.next(3, &[], &["sh", "-c", "ls \"$SPOTSWEEP_CHECKPOINTS\""]).await;
    ended(&second, 0);
    assert_eq!(second.stdout, "bomb.bz2\n", "{}", second.stderr);
    assert!(began.elapsed() < Duration::from_secs(100), "{:?}", began.elapsed());
}
