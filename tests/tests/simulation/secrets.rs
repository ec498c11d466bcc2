//! Sweeps that name secrets.

use serde_json::{Value, json};
use spotsweep_protocol::claim::secret_parameter;
use spotsweep_records::sweep::Stage;
use spotsweep_simulation::harness::{BUCKET, Harness};

const FILE: &str = "trials: [{lr: 1}]
spotsweep:
  code: {git: 'https://git.example/me/train.git', token: GIT_TOKEN}
  secrets: {KEY: team-key, HF_TOKEN: HF_TOKEN}
";

fn store(harness: &Harness, names: &[&str]) {
    names.iter().for_each(|name| harness.cloud.add_parameter(&secret_parameter(BUCKET, name)));
}

#[tokio::test]
async fn each_secret_that_is_missing_is_answered_at_its_line() {
    let harness = Harness::new(1);
    store(&harness, &["HF_TOKEN"]);
    harness.cloud.add_parameter(&secret_parameter("other", "team-key"));
    harness.deliver(&harness.put("missing.yaml", FILE)).await.unwrap();
    assert_eq!(harness.store.state().0[0].stage, Stage::Rejected);
    let answer = harness.cloud.get("sweeps/missing.yaml.rejected.json").unwrap();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    let problem = |number: usize| {
        let problem = &answer["problems"][number];
        (problem["line"].clone(), problem["message"].as_str().unwrap_or_default().to_owned())
    };
    for (number, line, name) in [(0, 3, "GIT_TOKEN"), (1, 4, "team-key")] {
        let (at, message) = problem(number);
        assert!(at == json!(line) && message.contains(name), "{answer}");
    }
    assert_eq!(answer["problems"].as_array().unwrap().len(), 2, "{answer}");
}

#[tokio::test]
async fn the_plan_has_names_and_no_values() {
    let harness = Harness::new(2);
    store(&harness, &["GIT_TOKEN", "HF_TOKEN", "team-key"]);
    harness.deliver(&harness.put("sent.yaml", FILE)).await.unwrap();
    let sweep = &harness.store.state().0[0];
    assert_eq!(sweep.stage, Stage::Running);
    let parameter = |name: &str| secret_parameter(BUCKET, name);
    let preparation = json!(sweep.plan.as_ref().unwrap())["code"].clone();
    let expected = json!({
        "code": {"private": {"git": "https://git.example/me/train.git"}, "token": parameter("GIT_TOKEN")},
        "env": {"HF_TOKEN": {"secret": parameter("HF_TOKEN")}, "KEY": {"secret": parameter("team-key")}},
    });
    assert_eq!(preparation, expected);
}
