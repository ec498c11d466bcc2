//! Deploys a release with `spotsweep deploy` to the local stack's CloudFormation, next to the stack's own control plane. The
//! root is the real control plane with a nested stack. There are no compute environments, because CloudFormation has none
//! of AWS Batch's resources here.

use std::fs;
use std::path::{Path, PathBuf};

use spotsweep_protocol::functions::FUNCTIONS;
use spotsweep_tests::local::{Binaries, Stack, eventually};

use super::by_hand::{Run, run, settled, status, submit};

/// Parameters and a resource that the root has besides the control plane.
const PARAMETERS: &str = "\nParameters:
  Broken: { Type: String, Default: 'no' }
  RunnerX86: { Type: String, Default: '' }
";
const NESTED: &str = "\nResources:
  Topics:
    Type: AWS::Serverless::Application
    Properties:
      Location: topics.yaml
      Parameters: { Broken: !Ref Broken }
";
const TOPICS: &str = "
Parameters:
  Broken: { Type: String }
Conditions:
  IsBroken: !Equals [!Ref Broken, 'yes']
Resources:
  Topic: { Type: AWS::SNS::Topic }
  Unknown:
    Type: AWS::Batch::ComputeEnvironment
    Condition: IsBroken
    Properties: { Type: MANAGED }
";

/// The stack of the local control plane.
const STACK: &str = "spotsweep-local";

/// A function of the deployment.
const FUNCTION: &str = "deployed-sweep-upload";

/// Trials that train until the update is over.
const SWEEP: &str = "
spotsweep:
  command: [sh, -c, 'echo val_accuracy=0.5; sleep 8']
trials: [{n: 1}, {n: 2}]
";

/// Writes the folder of a release, whose functions start those that were built.
fn release(stack: &Stack) -> PathBuf {
    let folder = stack.subfolder("release");
    let infra = Path::new(env!("CARGO_MANIFEST_DIR")).join("../infra");
    for name in ["infra", "x86_64"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    let root = fs::read_to_string(infra.join("control-plane.yaml")).unwrap();
    // A release's own root is smaller: GetTemplateSummary takes 51 200 bytes.
    let root: String = root.split_inclusive('\n').filter(|line| !line.trim_start().starts_with('#')).collect();
    let root = root.replacen("\nParameters:\n", PARAMETERS, 1).replacen("\nResources:\n", NESTED, 1);
    fs::write(folder.join("infra/spotsweep.yaml"), root).unwrap();
    fs::write(folder.join("infra/topics.yaml"), TOPICS).unwrap();
    fs::write(folder.join("x86_64/spotsweep-runner"), "a runner").unwrap();
    for name in FUNCTIONS {
        let (program, built) = (folder.join("x86_64").join(name), Binaries::build().get(name));
        fs::write(&program, format!("#!/bin/sh\nexec '{}'\n", built.display())).unwrap();
    }
    folder
}

/// The default number of trials in the environment of a deployed function.
async fn default_trials(stack: &Stack, function: &str) -> Option<String> {
    let client = aws_sdk_lambda::Client::new(&stack.config());
    let found = client.get_function_configuration().function_name(function).send().await.ok()?;
    found.environment()?.variables()?.get("SPOTSWEEP_DEFAULT_TRIALS").cloned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_is_deployed_changed_and_rolled_back() {
    let stack = Stack::start("deploy").await;
    let folder = release(&stack);
    let deploy = async |more: &[&str]| {
        let own = ["deploy", "--stack", "deployed", "--from", folder.to_str().unwrap(), "--parameter"];
        let own = [&own[..], &["NamePrefix=deployed-", "--parameter", "Architecture=x86_64"]].concat();
        run(&stack, &[&own, more].concat()).await
    };
    run(&stack, &["deploy", "--stack", "deployed"]).await.said(2, "built from a checkout");
    run(&stack, &["deploy", "--stack", "deployed", "--from", "/"]).await.said(2, "/ is no release");
    deploy(&["--parameter", "Trials=4"]).await.said(2, "no parameter \"Trials\"");
    deploy(&[]).await.said(2, "give --yes");
    let shown = deploy(&["--dry-run"]).await.said(0, "");
    assert!(shown.out.contains("AWS::DynamoDB::Table"), "{}", shown.out);
    assert_eq!(default_trials(&stack, FUNCTION).await, None, "nothing is deployed yet");

    let destroy = async |more: &[&str]| run(&stack, &[&["destroy", "--stack", "deployed"], more].concat()).await;
    deploy(&["--yes", "--parameter", "Broken=yes"]).await.said(1, "ROLLBACK_COMPLETE").said(1, "Unsupported resource");
    deploy(&["--yes"]).await.said(1, "`spotsweep destroy` removes it");
    destroy(&[]).await.said(2, "which is ROLLBACK_COMPLETE");
    destroy(&["--yes"]).await.said(0, "what such a stack leaves");

    let deployed = deploy(&["--yes"]).await;
    let bucket = deployed.out.lines().find_map(|line| line.strip_prefix("export SPOTSWEEP_BUCKET="));
    let bucket = bucket.unwrap_or_else(|| panic!("{} {}", deployed.out, deployed.notes)).to_owned();
    assert!(deployed.out.contains("Topics/Topic"), "each resource is shown: {}", deployed.out);
    assert_eq!(default_trials(&stack, FUNCTION).await.as_deref(), Some("30"));
    let s3 = spotsweep_aws::path_style_s3(&stack.config());
    let runners = s3.list_objects_v2().bucket(&bucket).prefix("runner/").send().await.unwrap();
    assert_eq!(runners.contents().len(), 1, "instances fetch the runner there: {runners:?}");

    deploy(&["--yes"]).await.said(0, "nothing to change");
    deploy(&["--yes", "--parameter", "DefaultTrials=40"]).await;
    assert_eq!(default_trials(&stack, FUNCTION).await.as_deref(), Some("40"));
    deploy(&["--yes"]).await.said(0, "nothing to change");
    let broken = ["--yes", "--parameter", "DefaultTrials=50", "--parameter", "Broken=yes"];
    deploy(&broken).await.said(1, "UPDATE_ROLLBACK_COMPLETE").said(1, "Unsupported resource type");
    assert_eq!(default_trials(&stack, FUNCTION).await.as_deref(), Some("40"));

    destroy(&[]).await.said(2, "give --yes");
    destroy(&["--yes"]).await.said(0, &format!("the bucket {bucket} and the table"));
    assert_eq!(default_trials(&stack, FUNCTION).await, None);
    destroy(&["--yes"]).await.said(1, "there is no deployment deployed");
    assert!(s3.head_bucket().bucket(&bucket).send().await.is_ok(), "it has the models");

    let variable = |deployed: &Run, name: &str| {
        let line =
            deployed.out.lines().find_map(|line| line.strip_prefix(&format!("export {name}=")).map(str::to_owned));
        line.unwrap_or_else(|| panic!("{} {}", deployed.out, deployed.notes))
    };
    let again = deploy(&["--yes"]).await;
    let (other, table) = (variable(&again, "SPOTSWEEP_BUCKET"), variable(&again, "SPOTSWEEP_TABLE"));
    assert_ne!(other, bucket);
    destroy(&["--yes", "--with-data"]).await.said(0, "");
    assert!(s3.head_bucket().bucket(&other).send().await.is_err());
    let tables = aws_sdk_dynamodb::Client::new(&stack.config());
    assert!(tables.describe_table().table_name(table).send().await.is_err());
    stack.stop().await;
}

/// The update also changes the template of the stack that has the functions.
#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_goes_on_while_its_deployment_is_updated() {
    let stack = Stack::start_with("updated", &["--max-vcpus", "2"]).await;
    let folder = release(&stack);
    let sweep = submit(&stack, "running", SWEEP).await;
    let both = async || (status(&stack, &sweep).await["running"] == 2).then_some(());
    eventually("both trials run", both).await;
    run(&stack, &["destroy", "--stack", STACK, "--yes"]).await.said(1, "a sweep has not ended");
    let release = ["deploy", "--stack", STACK, "--from", folder.to_str().unwrap(), "--yes"];
    let updated = run(&stack, &[&release[..], &["--parameter", "DefaultTrials=41"]].concat()).await;
    assert!(updated.out.contains("UPDATE_COMPLETE"), "{} {}", updated.out, updated.notes);
    assert_eq!(default_trials(&stack, "sweep-upload").await.as_deref(), Some("41"));
    assert_eq!(status(&stack, &sweep).await["stage"], "running", "the update was during the sweep");
    let ended = settled(&stack, &sweep).await;
    assert_eq!((&ended["succeeded"], &ended["interrupted"]), (&2.into(), &serde_json::Value::Null), "{ended}");
    stack.stop().await;
}
