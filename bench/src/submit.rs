//! Measures the submission of an array job for a dropped file: from the start of a fresh process until the plan is
//! written next to the file. It uses the local stack's S3 and DynamoDB and an emulated Batch.
//!
//! Ours is the real `sweep-upload`, and the peer is `studies/peers/submit.py`, with the same file, in turns. "Warm"
//! begins when the function has its event, and when the script has imported its modules.

use std::time::Instant;

use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType, Select,
};
use spotsweep_tests::local::{Account, Call, DEFINITION, Observed, Outcome, QUEUE, Stack, Usage, service_time};
use tokio::process::Command;

use crate::row::{Row, Target};
use crate::setup::Setup;

/// The number of trials, how often ours and the peer are measured, and the values of the three parameters.
const SIZES: [(usize, usize, [usize; 3]); 3] =
    [(24, 7, [2, 3, 4]), (1000, 5, [10, 10, 10]), (10_000, 7, [10, 10, 100])];

const BUCKET: &str = "submit";

/// The lease of the deployed function.
const LEASE_SECONDS: u64 = 120;

struct Run {
    seconds: f64,
    warm_seconds: f64,
    service_seconds: f64,
    calls: f64,
    sent: f64,
    received: f64,
    cpu_ms: f64,
    rss_mib: f64,
}

pub(crate) async fn rows(setup: &Setup) -> Vec<Row> {
    let stack = Stack::start_in(&setup.scratch.join("submit"), &setup.binaries, &[]).await;
    let account = Account::open(&stack, BUCKET).await;
    let mut rows = Vec::new();
    for (trials, often, values) in SIZES {
        let (mut ours, mut peer) = (Vec::new(), Vec::new());
        for turn in 0..setup.repeats(often) {
            let name = format!("grid-{trials}-{turn}");
            let text = grid(values);
            ours.push(submit(&account, &name, &text).await);
            peer.push(submit_as_peer(setup, &stack, &account, &name, trials).await);
        }
        rows.extend(compare(trials, &ours, &peer));
    }
    account.close().await;
    stack.stop().await;
    rows
}

fn compare(trials: usize, ours: &[Run], peer: &[Run]) -> Vec<Row> {
    let versus = |what: &str, unit, of: fn(&Run) -> f64| {
        let (ours, peer): (Vec<f64>, Vec<f64>) = (ours.iter().map(of).collect(), peer.iter().map(of).collect());
        Row::versus(format!("submit/{trials}/{what}"), unit, &ours, &peer)
    };
    let is_largest = SIZES.iter().all(|(others, ..)| *others <= trials);
    let aims = |row: Row, at: Target| if is_largest { row.target(at) } else { row };
    let services: Vec<f64> = ours.iter().map(|run| run.service_seconds).collect();
    vec![
        aims(versus("seconds", "s", |run| run.seconds), Target::RatioAtLeast(20.0)),
        versus("seconds, warm", "s", |run| run.warm_seconds).limit(crate::row::median(&services)),
        aims(versus("AWS calls", "calls", |run| run.calls), Target::AtMost(12.0)),
        versus("sent", "KiB", |run| run.sent / 1024.0),
        versus("received", "KiB", |run| run.received / 1024.0),
        aims(versus("own CPU", "ms", |run| run.cpu_ms), Target::AtMost(300.0)),
        versus("memory", "MiB", |run| run.rss_mib),
    ]
}

/// Returns a grid with values as long as those that people write.
fn grid([rates, sizes, seeds]: [usize; 3]) -> String {
    let list = |values: Vec<String>| values.join(", ");
    let rates = list((1..=rates).map(|at| format!("{:.4}", at as f64 * 1e-4)).collect());
    let sizes = list((1..=sizes).map(|at| (16 * at).to_string()).collect());
    let seeds = list((0..seeds).map(|seed| seed.to_string()).collect());
    format!(
        "method: grid\nmetric: {{name: loss, goal: minimize}}\nparameters:\n  learning_rate: {{values: [{rates}]}}\n  \
         batch_size: {{values: [{sizes}]}}\n  seed: {{values: [{seeds}]}}\n  optimizer: {{value: adamw}}\n"
    )
}

async fn submit(account: &Account, name: &str, text: &str) -> Run {
    let dropped = account.drop_file(name, text).await;
    let mut process = account.function("sweep-upload", &dropped, LEASE_SECONDS).start(None).await;
    let done = process.invoke(&dropped.event).await;
    assert!(matches!(done.outcome, Outcome::Answered(_)), "{name}: {:?}", done.outcome);
    let run = Run::of(process.began, done.began, done.ended, &done.traffic, process.usage());
    process.stop().await;
    account.assert_submitted_once(&dropped, 1).await;
    run
}

async fn submit_as_peer(setup: &Setup, stack: &Stack, account: &Account, name: &str, trials: usize) -> Run {
    let table = format!("peer-{name}");
    create_table(stack, &table).await;
    let mut command = Command::new(&setup.python);
    command.arg(Setup::peer("submit.py")).args([BUCKET, &format!("sweeps/{name}.yaml"), &table, QUEUE, DEFINITION]);
    let mut process = Observed::start(command, &stack.endpoint, &account.batch()).await;
    assert_eq!(process.line().await.as_deref(), Some("ready"), "the peer starts");
    let ready = Instant::now();
    assert_eq!(process.line().await.as_deref(), Some("done"), "the peer submits {name}");
    let run = Run::of(process.began, ready, Instant::now(), &process.calls(), process.usage());
    process.kill().await;
    assert_eq!(count(stack, &table).await, trials, "the peer has written a row for each trial");
    run
}

impl Run {
    fn of(started: Instant, ready: Instant, done: Instant, calls: &[Call], usage: Usage) -> Self {
        Self {
            seconds: (done - started).as_secs_f64(),
            warm_seconds: (done - ready).as_secs_f64(),
            service_seconds: service_time(calls).as_secs_f64(),
            calls: calls.len() as f64,
            sent: calls.iter().map(|call| call.sent).sum::<u64>() as f64,
            received: calls.iter().map(|call| call.received).sum::<u64>() as f64,
            cpu_ms: usage.cpu.as_secs_f64() * 1000.0,
            rss_mib: usage.peak_rss_bytes as f64 / f64::from(1 << 20),
        }
    }
}

/// Creates the peer's table: a row for each trial under its sweep.
async fn create_table(stack: &Stack, name: &str) {
    let keys = [("sweep", KeyType::Hash, ScalarAttributeType::S), ("trial", KeyType::Range, ScalarAttributeType::N)];
    let mut create = aws_sdk_dynamodb::Client::new(&stack.config()).create_table().table_name(name);
    for (key, role, kind) in keys {
        let attribute = AttributeDefinition::builder().attribute_name(key).attribute_type(kind).build();
        let element = KeySchemaElement::builder().attribute_name(key).key_type(role).build();
        create = create.attribute_definitions(attribute.expect("a whole definition"));
        create = create.key_schema(element.expect("a whole element"));
    }
    create.billing_mode(BillingMode::PayPerRequest).send().await.expect("DynamoDB takes the table");
}

async fn count(stack: &Stack, table: &str) -> usize {
    let client = aws_sdk_dynamodb::Client::new(&stack.config());
    let mut pages = client.scan().table_name(table).select(Select::Count).into_paginator().send();
    let mut count = 0;
    while let Some(page) = pages.next().await {
        count += usize::try_from(page.expect("the table can be scanned").count()).unwrap_or(0);
    }
    count
}
