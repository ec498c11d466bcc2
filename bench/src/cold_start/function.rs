//! The seven functions, each with an event that makes it read DynamoDB and answer, and nothing else.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use spotsweep_control_plane::event::{self, Event};
use spotsweep_records::sweep::{Stage, Sweep};

use super::fake_aws::attribute;

/// A function, and what it does when it is started.
#[derive(Debug)]
pub(super) struct Function {
    /// Its name, and its binary's.
    pub(super) name: &'static str,
    /// What it is started for.
    pub(super) event: Value,
    /// What DynamoDB answers to GetItem.
    pub(super) stored: Option<Value>,
    /// What it asks DynamoDB, whoever has written it; sorted.
    pub(super) calls: &'static [&'static str],
}

impl Function {
    /// All of them. Nothing is stored about the events but for `sweep-upload`'s, whose sweep already runs.
    pub(super) fn all() -> [Self; 7] {
        let function = |name, file, calls| Self { name, event: read(file), stored: None, calls };
        let mut all = [
            function("sweep-upload", "s3-object-created", &["GetItem"]),
            function("batch-job-state", "batch-job-state-change", &["GetItem", "GetItem"]),
            function("spot-interruption", "ec2-spot-interruption-warning", &["Query"]),
            function("ebs-state", "ebs-snapshot-succeeded", &["Query"]),
            function("trial-claim", "trial-claim", &["GetItem", "GetItem"]),
            function("sweep-settled", "sweep-settling", &["GetItem", "Query"]),
            function("reconcile", "reconcile", &["Query"; 8]),
        ];
        for function in &mut all {
            function.stored = running_sweep(&function.event);
        }
        all
    }
}

/// The row of the sweep that an upload's event is about.
fn running_sweep(event: &Value) -> Option<Value> {
    let Ok(Event::SweepUploaded(upload)) = event::parse(event.clone()) else {
        return None;
    };
    let mut sweep = Sweep::new(upload);
    sweep.enter(Stage::Running);
    Some(json!({
        "pk": { "S": format!("SWEEP#{}", sweep.id) },
        "sk": { "S": "META" },
        "version": { "N": "7" },
        "record": attribute(&json!(sweep)),
    }))
}

/// An event as the tests have it.
fn read(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/events").join(format!("{name}.json"));
    let text = fs::read(path).expect("the checkout is whole");
    serde_json::from_slice(&text).expect("the tests' events are JSON")
}
