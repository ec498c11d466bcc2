//! The seven functions, each with an event for which it only reads DynamoDB and answers.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use spotsweep_control_plane::event::{self, Event};
use spotsweep_records::sweep::{Stage, Sweep};

use super::fake_aws::attribute;

/// A function, with the event of its start.
#[derive(Debug)]
pub(super) struct Function {
    /// The name of the function and of its binary.
    pub(super) name: &'static str,
    pub(super) event: Value,
    /// The answer of DynamoDB to GetItem.
    pub(super) stored: Option<Value>,
    /// Its calls to DynamoDB, in both implementations; sorted.
    pub(super) calls: &'static [&'static str],
}

impl Function {
    /// Returns all functions. Nothing is stored about the events, except for that of `sweep-upload`, whose sweep
    /// already runs.
    pub(super) fn all() -> [Self; 7] {
        let function = |name, file, calls| Self { name, event: read(file), stored: None, calls };
        let mut all = [
            function("sweep-upload", "s3-object-created", &["GetItem"]),
            function("batch-job-state", "batch-job-state-change", &["GetItem", "GetItem"]),
            function("spot-interruption", "ec2-spot-interruption-warning", &["Query"]),
            function("ebs-state", "ebs-snapshot-succeeded", &["Query"]),
            function("trial-claim", "trial-claim", &["GetItem", "GetItem"]),
            function("sweep-settled", "sweep-settling", &["GetItem"]),
            function("reconcile", "reconcile", &["Query"; 8]),
        ];
        for function in &mut all {
            function.stored = running_sweep(&function.event);
        }
        all
    }
}

/// Returns the row of the sweep in an upload's event.
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

/// Reads an event of the tests.
fn read(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/events").join(format!("{name}.json"));
    let text = fs::read(path).expect("the checkout is whole");
    serde_json::from_slice(&text).expect("the tests' events are JSON")
}
