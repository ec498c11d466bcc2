//! Kills the real `sweep-upload` at each of its AWS calls, before the service gets the call or before the function gets
//! the answer. Functions that take over are killed too. Each dropped file is still submitted exactly once.
//!
//! By default every point is visited once. This visits more:
//! `KILL_RUNS=1000 cargo test --workspace --test stack kill:: -- --nocapture`

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use spotsweep_records::sweep::Stage;
use spotsweep_tests::local::{Account, Dropped, Kill, Moment, Outcome, Stack};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// The lease is short, so that a run need not wait long for its end. On a slow machine it is a multiple of the time of
/// an undisturbed submission, because otherwise it would end before another invocation comes and is refused.
const LEASE_SECONDS: u64 = 2;
const LEASE_SUBMISSIONS: u32 = 8;
/// Time in leases until a sweep runs that other functions must finish. Leases double with each redrive.
const PATIENCE: u32 = 30;
/// Number of runs at once. They mostly wait for leases to end.
const AT_ONCE: usize = 10;

/// Kinds of sweep: an array job, a plain job, and two array jobs (10 001 trials).
const KINDS: [(&str, u32, &str); 3] = [
    ("array", 1, "method: grid\nmetric: {name: loss}\nparameters: {lr: {values: [1, 2, 3]}}\n"),
    ("plain", 1, "- {lr: 0.1}\n"),
    ("parts", 2, "method: grid\nparameters: {seed: {distribution: int_uniform, min: 1, max: 10001}}\n"),
];

#[derive(Debug, Default)]
struct Figures {
    deaths: AtomicUsize,
    deaths_of_successors: AtomicUsize,
    refused_by_lease: AtomicUsize,
}

/// The test takes half a minute: 44 functions and their successors are killed, and leases of seconds end.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_function_neither_doubles_nor_loses_a_submission() {
    let stack = Stack::start("kill").await;
    let (points, leases) = points(&stack).await;
    let runs = std::env::var("KILL_RUNS").map_or(Ok(points.len()), |runs| runs.parse());
    let runs: usize = runs.expect("KILL_RUNS is a number");
    let (begun, figures) = (Instant::now(), Arc::new(Figures::default()));
    for first in (0..runs).step_by(points.len()) {
        // Batch keeps all jobs, so each round has a Batch of its own.
        let account = Arc::new(Account::open(&stack, &format!("from-{first}")).await);
        let places = Arc::new(Semaphore::new(AT_ONCE));
        let mut round = JoinSet::new();
        for (run, (kind, point)) in (first..runs).zip(points.clone()) {
            let (account, places, figures) = (account.clone(), places.clone(), figures.clone());
            round.spawn(async move {
                let _place = places.acquire().await.unwrap();
                die_and_recover(&account, run, (kind, point), leases[kind], &figures).await;
            });
        }
        while let Some(ended) = round.join_next().await {
            ended.unwrap();
        }
        Arc::into_inner(account).unwrap().close().await;
        println!(
            "{} of {runs} runs in {:.0} s: {figures:?}",
            runs.min(first + points.len()),
            begun.elapsed().as_secs_f64()
        );
    }
    stack.stop().await;
    assert_eq!(figures.deaths.load(Ordering::Relaxed), runs);
    assert!(figures.refused_by_lease.load(Ordering::Relaxed) >= runs / 10, "leases were hardly tried: {figures:?}");
}

/// All pairs of a kind of sweep and a point at which its function can be killed, and the lease of each kind on this
/// machine. Until they submit, the kinds do the same, so the points before that are visited for one kind only.
async fn points(stack: &Stack) -> (Vec<(usize, Kill)>, [Duration; KINDS.len()]) {
    let account = Account::open(stack, "undisturbed").await;
    let mut points = Vec::new();
    let mut leases = [Duration::from_secs(LEASE_SECONDS); KINDS.len()];
    for (kind, (name, parts, text)) in KINDS.into_iter().enumerate() {
        let begun = Instant::now();
        let calls = undisturbed(&account, name, parts, text).await;
        // The function accepts whole seconds only.
        leases[kind] = leases[kind].max(Duration::from_secs((begun.elapsed() * LEASE_SUBMISSIONS).as_secs()));
        let submits = calls.iter().position(|call| call.ends_with("submitjob")).expect("it submits");
        for call in if kind == 0 { 0 } else { submits }..calls.len() {
            points.extend([Moment::Before, Moment::After].map(|moment| (kind, Kill { call, moment })));
        }
    }
    account.close().await;
    (points, leases)
}

async fn undisturbed(account: &Account, name: &str, parts: u32, text: &str) -> Vec<String> {
    let dropped = account.drop_file(name, text).await;
    let invocation = account.function("sweep-upload", &dropped, LEASE_SECONDS).invoke(&dropped.event, None).await;
    assert!(matches!(invocation.outcome, Outcome::Answered(_)), "{invocation:?}");
    account.assert_submitted_once(&dropped, parts).await;
    invocation.calls
}

async fn die_and_recover(
    account: &Account,
    run: usize,
    (kind, point): (usize, Kill),
    lease: Duration,
    figures: &Figures,
) {
    let (name, parts, text) = KINDS[kind];
    let Kill { call, moment } = point;
    let dropped = account.drop_file(&format!("{name}-{run}-dies-{moment:?}-{call}"), text).await;
    let context = format!("see {}", account.log(&dropped).display());
    let upload = account.function("sweep-upload", &dropped, lease.as_secs());

    let begun = Instant::now();
    let killed = upload.invoke(&dropped.event, Some(point)).await;
    assert!(matches!(killed.outcome, Outcome::Killed(_)), "{context}: {killed:?}");
    figures.deaths.fetch_add(1, Ordering::Relaxed);

    let before = account.sweep(&dropped).await;
    let again = upload.invoke(&dropped.event, None).await;
    assert!(matches!(again.outcome, Outcome::Answered(_)), "{context}: delivered again: {again:?}");
    if before.is_some() && begun.elapsed() < lease {
        assert_eq!(again.calls, ["DynamoDB_20120810.GetItem"], "{context}: the lease holds");
        assert_eq!(account.sweep(&dropped).await, before, "{context}: the lease holds");
        figures.refused_by_lease.fetch_add(1, Ordering::Relaxed);
    }

    recover(account, &dropped, run, lease, figures, &context).await;
    account.assert_submitted_once(&dropped, parts).await;
}

/// Lets `reconcile` (or, every third time, the repeated event) take over until the sweep runs. Three of four times the
/// first one is killed too, some time after its first read of the table.
async fn recover(account: &Account, dropped: &Dropped, run: usize, lease: Duration, figures: &Figures, context: &str) {
    let tick = reconcile_tick();
    let (name, event) = if run % 3 == 2 { ("sweep-upload", &dropped.event) } else { ("reconcile", &tick) };
    let successor = account.function(name, dropped, lease.as_secs());
    // `reconcile` reads eight shards of the index and the sweep, and the event only the sweep.
    let first = if run % 3 == 2 { 1 } else { 9 };
    let moment = if (run / 7).is_multiple_of(2) { Moment::Before } else { Moment::After };
    let mut kill = (run % 4 != 3).then_some(Kill { call: first + run / 4 % 12, moment });
    let begun = Instant::now();
    while account.sweep(dropped).await.is_none_or(|sweep| sweep.stage != Stage::Running) {
        assert!(begun.elapsed() < lease * PATIENCE, "{context}: not submitted in time");
        sleep(Duration::from_millis(250)).await;
        let invocation = successor.invoke(event, kill).await;
        match invocation.outcome {
            Outcome::Killed(_) => {
                figures.deaths_of_successors.fetch_add(1, Ordering::Relaxed);
                kill = None;
            }
            Outcome::Answered(_) => {}
            Outcome::Failed(error) => unreachable!("{context}: {name} failed: {error}"),
        }
    }
}

fn reconcile_tick() -> Value {
    serde_json::from_str(include_str!("../../events/reconcile.json")).expect("a recorded event is JSON")
}
