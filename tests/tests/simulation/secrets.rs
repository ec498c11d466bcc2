//! Sweeps that name secrets.

use serde_json::{Value, json};
use spotsweep_protocol::claim::secret_parameter;
use spotsweep_records::sweep::Stage;
use spotsweep_simulation::harness::{BUCKET, Harness};

/// The harness allows `/team/*`.
const FILE: &str = "trials: [{lr: 1}]
spotsweep:
  code: {git: 'https://git.example/me/train.git', token: GIT_TOKEN}
  secrets: {KEY: team-key, HF_TOKEN: HF_TOKEN, WANDB_API_KEY: /team/wandb}
";

fn store(harness: &Harness, names: &[&str]) {
    names.iter().for_each(|name| harness.cloud.add_parameter(&secret_parameter(BUCKET, name), true));
}

/// The problems of a rejected file, each with its line.
async fn problems(harness: &Harness, name: &str, text: &str) -> Vec<(Value, String)> {
    harness.deliver(&harness.put(name, text)).await.unwrap();
    assert_eq!(harness.store.state().0[0].stage, Stage::Rejected);
    let answer = harness.cloud.get(&format!("sweeps/{name}.rejected.json")).unwrap();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    let problem = |problem: &Value| (problem["line"].clone(), format!("{} {}", problem["message"], problem["help"]));
    answer["problems"].as_array().unwrap().iter().map(problem).collect()
}

#[tokio::test]
async fn each_secret_that_is_missing_is_answered_at_its_line() {
    let harness = Harness::new(1);
    store(&harness, &["HF_TOKEN"]);
    harness.cloud.add_parameter(&secret_parameter("other", "team-key"), true);
    harness.cloud.add_parameter("/team/wandb", false);
    let problems = problems(&harness, "missing.yaml", FILE).await;
    let expected = [(3, "secret set GIT_TOKEN"), (4, "/team/wandb is a String"), (4, "secret set team-key")];
    assert_eq!(problems.len(), expected.len(), "{problems:?}");
    for ((line, part), (at, text)) in expected.into_iter().zip(&problems) {
        assert!(*at == json!(line) && text.contains(part), "{part}: {problems:?}");
    }
}

#[tokio::test]
async fn a_path_that_the_deployment_does_not_allow_is_refused_before_it_is_looked_up() {
    let harness = Harness::new(3);
    harness.cloud.add_parameter("/team-2/wandb", true);
    let text = FILE.replace("/team/wandb", "/team-2/wandb");
    let problems = problems(&harness, "neighbour.yaml", &text).await;
    let [(line, text)] = &problems[..] else { panic!("{problems:?}") };
    assert!(*line == json!(4) && text.contains("AllowedSecrets=/team/*,team/*,/team-2/wandb"), "{text}");
}

const MANAGED: &str = "trials: [{lr: 1}]
spotsweep:
  code: {git: 'https://git.example/me/train.git', token: '/aws/reference/secretsmanager/team/git:token'}
  secrets:
    PASSWORD: 'arn:aws:secretsmanager:us-east-1:000000000000:secret:team/db-a1B2c3:password::'
    USER_NAME: /aws/reference/secretsmanager/team/db:username
    ALL: /aws/reference/secretsmanager/team/all
";

#[tokio::test]
async fn a_secret_of_secrets_manager_is_there_or_the_file_is_refused() {
    let harness = Harness::new(4);
    harness.cloud.add_managed_secret("team/db", true);
    harness.cloud.add_managed_secret("team/all", false);
    let problems = problems(&harness, "managed.yaml", MANAGED).await;
    let expected = [(3, "no secret team/git "), (5, "team/db of Secrets Manager is scheduled for deletion")];
    for (line, part) in expected {
        assert!(problems.iter().any(|(at, text)| *at == json!(line) && text.contains(part)), "{part}: {problems:?}");
    }
    assert_eq!(problems.len(), expected.len(), "one for both values of a secret: {problems:?}");

    let harness = Harness::new(5);
    for name in ["team/git", "team/db", "team/all"] {
        harness.cloud.add_managed_secret(name, false);
    }
    harness.deliver(&harness.put("managed.yaml", MANAGED)).await.unwrap();
    let sweep = &harness.store.state().0[0];
    assert_eq!(sweep.stage, Stage::Running);
    let secret = |text: &str| json!(format!("/aws/reference/secretsmanager/team/{text}"));
    let expected = json!({
        "code": {"private": {"git": "https://git.example/me/train.git"}, "token": secret("git:token")},
        "env": {
            "ALL": {"secret": secret("all")},
            "PASSWORD": {"secret": secret("db:password")},
            "USER_NAME": {"secret": secret("db:username")},
        },
    });
    assert_eq!(json!(sweep.plan.as_ref().unwrap())["code"], expected);
}

#[tokio::test]
async fn the_plan_has_paths_and_no_values() {
    let harness = Harness::new(2);
    store(&harness, &["GIT_TOKEN", "HF_TOKEN", "team-key"]);
    harness.cloud.add_parameter("/team/wandb", true);
    harness.deliver(&harness.put("sent.yaml", FILE)).await.unwrap();
    let sweep = &harness.store.state().0[0];
    assert_eq!(sweep.stage, Stage::Running);
    let parameter = |name: &str| secret_parameter(BUCKET, name);
    let preparation = json!(sweep.plan.as_ref().unwrap())["code"].clone();
    let expected = json!({
        "code": {"private": {"git": "https://git.example/me/train.git"}, "token": parameter("GIT_TOKEN")},
        "env": {
            "HF_TOKEN": {"secret": parameter("HF_TOKEN")},
            "KEY": {"secret": parameter("team-key")},
            "WANDB_API_KEY": {"secret": "/team/wandb"},
        },
    });
    assert_eq!(preparation, expected);
}
