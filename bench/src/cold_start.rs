//! Measures cold starts: the time from the start of a function's process until its first answer is at the Runtime API.
//!
//! Each of the seven functions gets an event for which it makes clients for every service that it may reach, reads
//! DynamoDB (one to eight calls, `function.rs`), and answers. AWS is a server on the same machine, so the network takes
//! no time and only the process is measured. The peer is Python 3.11 with boto3 and Lambda's own runtime client. Its
//! modules are compiled beforehand, and it has clients for the same services and makes the same calls
//! (`studies/peers/cold_start.py`).
//!
//! Starts are measured over TLS, over plain HTTP, and over TLS with the CPU share of a 128 MB function (Lambda gives a
//! whole CPU until the first event is asked for). One unmeasured start of each comes first, so that files are in the
//! page cache. Then each start of the peer follows a few of ours. Memory is the high-water mark of RAM.

mod cpu_share;
mod fake_aws;
mod function;
mod program;
mod size;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use spotsweep_tests::tls::Identity;
use tokio::process::Command;

use crate::row::{Row, Target};
use crate::setup::Setup;
use cpu_share::CpuShare;
use fake_aws::FakeAws;
use function::Function;
use program::{Kind, Program, SMALLEST_MB, Started};

pub(crate) const SIZE: &str = "MB";

/// The number of the peer's starts of a kind, and of ours before each.
const TURNS: (usize, usize) = (5, 3);
/// The same numbers for starts that take seconds.
const SLOW_TURNS: (usize, usize) = (2, 3);

/// The state that all starts of this run share.
struct Stage<'a> {
    binaries: &'a Path,
    python: &'a Path,
    /// The folder of the peer's script.
    script: PathBuf,
    roots: &'a Path,
    log: PathBuf,
}

pub(crate) async fn rows(setup: &Setup) -> Vec<Row> {
    let identity = Identity::make(&setup.scratch, &["127.0.0.1"]);
    let (https, http) = (FakeAws::serve(Some(&identity)).await, FakeAws::serve(None).await);
    let stage = Stage {
        binaries: &setup.binaries,
        python: &setup.python,
        script: compiled_script(setup).await,
        roots: &identity.roots,
        log: setup.scratch.join("cold-start.log"),
    };
    let share = CpuShare::of_memory(SMALLEST_MB);
    if let Err(error) = &share {
        eprintln!("cold-start: nothing is measured with a 128 MB function's share of the processor: {error}");
    }
    let turns = |(peers, ours)| (setup.repeats(peers), ours);
    let cell = |aws, share| Cell { aws, share, clients: None, turns: turns(TURNS) };
    let full = cell(&https, None);
    let mut rows = Vec::new();
    for function in &Function::all() {
        let name = |of: &str| format!("cold-start/{}/{of}", function.name);
        let pair = stage.measure(function, full).await;
        rows.push(pair.row(name("tls"), "ms", |start| start.answer_ms).target(Target::RatioAtLeast(40.0)));
        rows.push(pair.row(name("tls, until it asks"), "ms", |start| start.init_ms));
        rows.push(pair.row(name("memory"), SIZE, |start| start.rss_mb).target(Target::AtMost(12.0)));
        // This is the least that a peer can do. Our functions make clients when they need them; scripts make all of
        // them first.
        let pair = stage.measure(function, Cell { clients: Some("dynamodb"), ..full }).await;
        rows.push(pair.row(name("tls, peer with one client"), "ms", |start| start.answer_ms));
        let pair = stage.measure(function, cell(&http, None)).await;
        rows.push(pair.row(name("http"), "ms", |start| start.answer_ms));
        if let Ok(share) = &share {
            let pair = stage.measure(function, Cell { turns: turns(SLOW_TURNS), ..cell(&https, Some(share)) }).await;
            rows.push(pair.row(name("tls, 128 MB"), "ms", |start| start.answer_ms));
        }
        let (binary, zip) = size::of(&setup.binaries.join(function.name)).expect("the binary can be read");
        rows.push(Row::new(name("binary"), SIZE, &[binary / 1e6]));
        rows.push(Row::new(name("zip"), SIZE, &[zip / 1e6]).target(Target::AtMost(5.2)));
    }
    rows
}

/// The conditions of one measurement.
#[derive(Clone, Copy)]
struct Cell<'a> {
    aws: &'a FakeAws,
    share: Option<&'a CpuShare>,
    /// The services for which the peer makes clients, if not for all that the function may reach.
    clients: Option<&'a str>,
    turns: (usize, usize),
}

/// Starts of ours and of the peer, in turns.
#[derive(Default)]
struct Pair {
    ours: Vec<Started>,
    peer: Vec<Started>,
}

impl Pair {
    fn row(&self, name: String, unit: &'static str, of: impl Fn(&Started) -> f64) -> Row {
        let values = |starts: &[Started]| starts.iter().map(&of).collect::<Vec<_>>();
        Row::versus(name, unit, &values(&self.ours), &values(&self.peer))
    }
}

impl Stage<'_> {
    async fn measure(&self, function: &Function, cell: Cell<'_>) -> Pair {
        let Cell { aws, share, clients, turns: (turns, ours_per_turn) } = cell;
        let (roots, endpoint, log) = (self.roots, aws.endpoint.as_str(), self.log.as_path());
        let program = |kind| Program { function, kind, endpoint, roots, share, log };
        let ours = program(Kind::Ours(self.binaries));
        let peer = program(Kind::Peer { python: self.python, folder: &self.script, clients });
        aws.store(function.stored.clone());
        for program in [ours, peer] {
            // This start is not measured and needs no share.
            let started = Program { share: None, ..program }.start().await;
            // Our calls may be made side by side, so their order does not count.
            let mut calls = aws.calls();
            calls.sort();
            assert_eq!(calls, function.calls, "{program} answered {}", started.answer);
        }
        let mut pair = Pair::default();
        for _ in 0..turns {
            for _ in 0..ours_per_turn {
                pair.ours.push(ours.start().await);
            }
            pair.peer.push(peer.start().await);
        }
        // These calls must not count as the next function's.
        aws.calls();
        pair
    }
}

/// Copies the peer's script into a folder of its own, and compiles it as in a deployed image.
async fn compiled_script(setup: &Setup) -> PathBuf {
    let folder = setup.scratch.join("cold-start-peer");
    fs::create_dir_all(&folder).expect("the target folder is writable");
    fs::copy(Setup::peer("cold_start.py"), folder.join("cold_start.py")).expect("the checkout is whole");
    let mut compile = Command::new(&setup.python);
    compile.args(["-m", "compileall", "-q"]).arg(&folder).stdin(Stdio::null());
    let compiled = compile.status().await.expect("Python can be started");
    assert!(compiled.success(), "the peer's script is not Python");
    folder
}
