//! Secrets of AWS Secrets Manager: one value of a JSON object and a whole object, rotated while a trial runs, and found
//! nowhere else.

use std::fs;

use aws_sdk_secretsmanager::Client;
use serde_json::json;
use spotsweep_tests::local::Stack;

use super::by_hand::run;
use super::secrets::{FIRST, SECOND, file, trained_while_rotated};

const SECRETS: &str = "secrets: {API_KEY: '/aws/reference/secretsmanager/team/db:password', ALL: {all}}";
const SETUP: &str = r#"setup: 'echo "setup has $ALL, its token is $(printf %s "$ALL" | cut -d \" -f 4)"'"#;
/// All of a secret: its text, with a value in it.
const OBJECT: &str = r#"{"token": "wandb_first/of the object", "retries": 3}"#;

fn text(all: &str) -> String {
    let setup = r#"setup: 'echo "setup has $API_KEY"'"#;
    let text = file();
    assert!(text.contains("secrets: {API_KEY: team-key}") && text.contains(setup));
    text.replace("secrets: {API_KEY: team-key}", &SECRETS.replace("{all}", all)).replace(setup, SETUP)
}

fn database(password: &str) -> String {
    json!({"username": "admin", "password": password}).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_of_secrets_manager_is_where_it_is_used_and_nowhere_else() {
    let stack = Stack::start_with("managed-secrets", &["--max-vcpus", "1"]).await;
    let manager = Client::new(&stack.config());
    let sent = stack.subfolder("files").join("managed.yaml");
    let sent = sent.to_str().unwrap();
    let by_name = text("/aws/reference/secretsmanager/team/keys");
    fs::write(sent, by_name.replace("team/db", "others/db")).unwrap();
    run(&stack, &["submit", sent]).await.said(1, "AllowedSecrets=/team/*,team/*,others/db");
    fs::write(sent, &by_name).unwrap();
    run(&stack, &["submit", sent]).await.said(1, "no secret team/db in this account");
    manager.create_secret().name("team/db").secret_string(database(FIRST)).send().await.unwrap();
    let keys = manager.create_secret().name("team/keys").secret_string(OBJECT).send().await.unwrap();
    // A name that begins with another one, and ends as an ARN does.
    manager.create_secret().name("team/db-a1b2c3").secret_string("wandb_first/of a neighbour").send().await.unwrap();

    let rotate =
        async || manager.put_secret_value().secret_id("team/db").secret_string(database(SECOND)).send().await.unwrap();
    let managed = text(keys.arn().unwrap());
    let (sweep, log) = trained_while_rotated(&stack, ("managed", &managed), rotate).await;
    assert!(log.contains("key=***; basic ") && log.contains("setup has ***, its token is ***"), "{log}");

    manager.delete_secret().secret_id("team/db").recovery_window_in_days(7).send().await.unwrap();
    run(&stack, &["retry", &sweep, "0"]).await.said(1, "team/db of Secrets Manager is scheduled for deletion");
    stack.stop().await;
}
