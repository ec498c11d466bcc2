//! Sweeps whose code is a packed folder.

use serde_json::{Value, json};
use spotsweep_protocol::claim::packed_key;
use spotsweep_records::sweep::Stage;
use spotsweep_simulation::harness::Harness;

const FOLDER: &str = "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a";

fn file() -> String {
    format!("trials: [{{lr: 1}}]\nspotsweep: {{code: {{sha256: {FOLDER}}}, setup: make, env: {{A: b}}}}\n")
}

#[tokio::test]
async fn a_folder_that_is_not_in_the_bucket_is_answered_at_its_line() {
    let harness = Harness::new(1);
    harness.deliver(&harness.put("missing.yaml", &file())).await.unwrap();
    assert_eq!(harness.store.state().0[0].stage, Stage::Rejected);
    let answer = harness.cloud.get("sweeps/missing.yaml.rejected.json").unwrap();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    let problem = &answer["problems"][0];
    assert_eq!((&problem["line"], &problem["column"]), (&json!(2), &json!(19)), "{problem}");
    assert!(problem["message"].as_str().unwrap().contains(FOLDER), "{problem}");
    assert!(harness.cloud.get("sweeps/missing.yaml.plan.json").is_none());
}

#[tokio::test]
async fn the_plan_pins_what_was_sent() {
    let harness = Harness::new(2);
    harness.cloud.put(&packed_key(FOLDER), "a folder");
    harness.deliver(&harness.put("sent.yaml", &file())).await.unwrap();
    let sweep = &harness.store.state().0[0];
    assert_eq!(sweep.stage, Stage::Running);
    let answer = harness.cloud.get("sweeps/sent.yaml.plan.json").unwrap();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer["code"]["sha256"], FOLDER);
    let preparation = json!(sweep.plan.as_ref().unwrap())["code"].clone();
    assert_eq!(preparation, json!({ "code": { "sha256": FOLDER }, "setup": ["make"], "env": { "A": "b" } }));
}
