//! One dropped file version becomes exactly one submission, at whichever point a function is killed.

use std::time::Duration;

use serde_json::{Value, json};
use spotsweep_control_plane::settings::LEASE;
use spotsweep_protocol::ids::SweepId;
use spotsweep_records::sweep::Stage;
use spotsweep_simulation::harness::{Account, Harness, QUEUE};
use spotsweep_simulation::invocation::InvocationFault;
use spotsweep_sweep_file::trials;
use spotsweep_world::{Fault, FaultKind, FaultWhen};

fn grid(trials: u32) -> String {
    let values: Vec<String> = (0..trials).map(|value| value.to_string()).collect();
    format!("method: grid\nmetric: {{name: loss}}\nparameters:\n  lr: {{values: [{}]}}\n", values.join(", "))
}

/// Asserts that each part of the sweep is submitted exactly once, and that no trial is missing.
fn assert_submitted_once(harness: &Harness, parts: u32, context: &str) -> SweepId {
    let (sweeps, _) = harness.store.state();
    assert_eq!(sweeps.len(), 1, "{context}");
    let sweep = &sweeps[0];
    assert_eq!(sweep.stage, Stage::Running, "{context}");
    let plan = sweep.plan.as_ref().expect("a running sweep has a plan");
    assert_eq!(plan.parts.len(), parts as usize, "{context}");
    for (number, part) in (0..).zip(&plan.parts) {
        let jobs = harness.cloud.jobs_named(&sweep.job_name(number), QUEUE);
        assert_eq!(Some(jobs), part.job.clone().map(|job| vec![job]), "{context}: part {number}");
    }
    let answer: Value =
        serde_json::from_slice(&harness.cloud.get(&sweep.upload.plan_key()).expect("plan.json")).unwrap();
    assert_eq!(answer["sweep"], sweep.id.as_str(), "{context}");
    assert_eq!(answer["trials"], plan.trials, "{context}");
    let lines = harness.cloud.get(&trials::lines_key(&sweep.id)).expect("trials.jsonl");
    assert_eq!(lines.iter().filter(|byte| **byte == b'\n').count(), plan.trials as usize, "{context}");
    sweep.id.clone()
}

#[tokio::test]
async fn ten_thousand_trials_take_at_most_twelve_calls() {
    let harness = Harness::new(1);
    let put = harness.put("big.yaml", &grid(10_000));
    let invoked = harness.invoke(&put);
    invoked.answer.unwrap().unwrap();
    let calls: Vec<&str> = invoked.calls.iter().map(|call| call.action).collect();
    assert_submitted_once(&harness, 1, "10 000 trials");
    assert!(calls.len() <= 12, "{} calls: {calls:?}", calls.len());
    assert_eq!(calls.iter().filter(|call| **call == "SubmitJob").count(), 1);
}

#[tokio::test]
async fn a_plan_says_what_the_trials_are_expected_to_be_billed() {
    let plan = async |workspace_gib: u32, settings: &str| {
        let harness = Harness::with(1, &Account { workspace_gib, ..Account::default() });
        let put = harness.put("billed.yaml", &format!("spotsweep: {{{settings}}}\ntrials: [{{lr: 1}}, {{lr: 2}}]\n"));
        harness.deliver(&put).await.unwrap();
        let (sweeps, _) = harness.store.state();
        let plan: Value = serde_json::from_slice(&harness.cloud.get(&sweeps[0].upload.plan_key()).unwrap()).unwrap();
        plan
    };
    let usual = plan(20, "").await;
    let hours: Vec<_> = usual["expected"].as_array().unwrap().iter().map(|row| &row["trial_hours"]).collect();
    assert_eq!(hours, [1.0, 4.0, 10.0]);
    let with_checkpoints = usual["expected"][2]["billed_hours_with_checkpoints"].as_f64().unwrap();
    assert!((20.0..30.0).contains(&with_checkpoints), "{usual}");
    assert_eq!(usual["warnings"], json!([]));
    // The deployment has no workspaces, which the file alone does not show.
    let without = plan(0, "timeout: 10h").await;
    assert_eq!(without["expected"].as_array().unwrap().len(), 1);
    assert!(without["expected"][0]["billed_hours_without_checkpoints"].as_f64().unwrap() > 40.0, "{without}");
    assert_eq!(without["expected"][0].get("billed_hours_with_checkpoints"), None);
    assert!(without["warnings"][0]["message"].as_str().unwrap().contains("starts from its beginning"), "{without}");
}

#[tokio::test]
async fn repeated_deliveries_submit_nothing_more() {
    let mut harness = Harness::new(2);
    let put = harness.put("again.yaml", &grid(3));
    for _ in 0..3 {
        harness.deliver(&put).await.unwrap();
        assert_submitted_once(&harness, 1, "delivered again");
    }
    // This is long after the lease: `reconcile` handles a running sweep, with a role that this function does not have.
    harness.pass(LEASE * 1_000);
    let late = harness.invoke(&put);
    late.answer.unwrap().unwrap();
    assert!(late.calls.iter().all(|call| call.action == "GetItem"), "it only looks: {:?}", late.calls);
}

#[tokio::test]
async fn deliveries_at_the_same_moment_submit_once() {
    for seed in 0..50 {
        let harness = Harness::new(seed);
        let put = harness.put("twice.yaml", &grid(3));
        let (first, second, third) = tokio::join!(harness.deliver(&put), harness.deliver(&put), harness.deliver(&put));
        for report in [first, second, third] {
            report.unwrap();
        }
        assert_submitted_once(&harness, 1, "three at once");
    }
}

/// The function is killed at every fault point, and the event is delivered again at once. Then `reconcile` finds the
/// sweep, and may be killed too. In 1 000 runs nothing is submitted twice, and nothing is lost.
#[tokio::test]
async fn a_killed_function_neither_doubles_nor_loses_a_submission() {
    let mut deaths = 0;
    for run in 0_u64..1_000 {
        // Some runs have two array jobs. The fault points at which the function is killed change from run to run.
        let (trials, parts, points) = if run % 100 == 99 { (10_001, 2, 28) } else { (24, 1, 24) };
        let mut harness = Harness::new(run);
        let put = harness.put("killed.yaml", &if trials > 24 { list(trials) } else { grid(trials) });
        let first = usize::try_from((run + run / 100) % points).unwrap_or(0);
        deaths += u32::from(die(&harness, &put, first));
        // The event is delivered again while the dead invocation's lease still holds, so this must not submit.
        let _ = harness.deliver(&put).await;
        for again in 0..3 {
            harness.pass(LEASE * (1 << again) + Duration::from_secs(1));
            let tick = if run % 2 == 0 { harness.reconcile() } else { put.clone() };
            let point = usize::try_from((run / 7 + again) % 31).unwrap_or(0);
            deaths += u32::from(die(&harness, &tick, point));
        }
        for _ in 0..8 {
            harness.pass(LEASE * 64);
            harness.deliver(&harness.reconcile()).await.unwrap();
        }
        assert_submitted_once(&harness, parts, &format!("run {run}, died first at {first}"));
    }
    assert!(deaths > 1_000, "only {deaths} invocations died");
}

/// Runs an invocation that is killed at a fault point. Returns whether it got that far.
fn die(harness: &Harness, event: &Value, at: usize) -> bool {
    harness.invoke_with(event, InvocationFault { dies_at: Some(at), ..InvocationFault::default() }).answer.is_none()
}

/// A sweep is never submitted in part: if a part is refused, the running ones are ended, and the answer says why.
#[tokio::test]
async fn a_refused_part_takes_back_the_parts_before_it() {
    for part in [0, 1] {
        let mut harness = Harness::new(4);
        let put = harness.put("refused.yaml", &list(10_001));
        harness.cloud.refuse(part);
        harness.deliver(&put).await.unwrap();
        let (sweeps, _) = harness.store.state();
        assert_eq!(sweeps[0].stage, Stage::Rejected);
        let answer = harness.cloud.get("sweeps/refused.yaml.rejected.json").expect("an answer");
        assert!(String::from_utf8(answer).unwrap().contains("JobDefinition is inactive"));
        harness.run_jobs(|_| (1, 0));
        let jobs = harness.cloud.jobs_named(&sweeps[0].job_name(0), QUEUE);
        assert_eq!(jobs.len(), part as usize);
        for job in jobs {
            let request = serde_json::from_value(serde_json::json!({ "jobs": [job] })).unwrap();
            assert_eq!(harness.cloud.world().describe_jobs(&request).unwrap()["jobs"][0]["status"], "FAILED");
        }
    }
}

/// If the dropped file no longer exists, the control plane answers at once.
#[tokio::test]
async fn a_file_that_is_deleted_before_it_is_read_is_answered() {
    let harness = Harness::new(3);
    let put = harness.put("deleted.yaml", "- {lr: 1}\n");
    harness.cloud.take("sweeps/deleted.yaml");
    harness.deliver(&put).await.unwrap();
    assert_eq!(harness.store.state().0[0].stage, Stage::Rejected);
    let answer = harness.cloud.get("sweeps/deleted.yaml.rejected.json").expect("an answer");
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.contains("the file was deleted before it could be read"), "{answer}");
}

/// If every read fails, the control plane repeats it with growing waits, and answers in the end.
#[tokio::test]
async fn a_file_that_cannot_be_read_is_given_up_and_says_so() {
    let mut harness = Harness::new(3);
    let put = harness.put("unreadable.yaml", "- {lr: 1}\n");
    harness.cloud.deny_reads();
    assert!(harness.deliver(&put).await.is_err(), "a failing effect fails the invocation");
    let mut failures = 0;
    for _ in 0..500 {
        harness.pass(Duration::from_secs(300));
        failures += u32::from(harness.deliver(&harness.reconcile()).await.is_err());
    }
    assert_eq!(harness.store.state().0[0].stage, Stage::Rejected);
    assert!((3..=40).contains(&failures), "{failures} tries");
    let answer = harness.cloud.get("sweeps/unreadable.yaml.rejected.json").expect("an answer");
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.contains("read-upload failed: refused as AccessDenied"), "it says what failed: {answer}");
}

/// A throttled `SubmitJob` has had no effect and is no refusal, so it is repeated. If that takes too long, the sweep is
/// submitted once, later.
#[tokio::test]
async fn a_throttled_submission_is_no_refusal() {
    for (times, is_soon) in [(1, true), (4, false)] {
        let mut harness = Harness::new(4);
        let put = harness.put("throttled.yaml", "- {lr: 1}\n");
        let (when, kind) = (FaultWhen::Before, FaultKind::Throttle);
        harness.cloud.world().fault(Fault { action: "SubmitJob".into(), when, times, kind });
        assert_eq!(harness.deliver(&put).await.is_ok(), is_soon, "a failing effect fails the invocation");
        harness.pass(LEASE * 2);
        harness.deliver(&harness.reconcile()).await.unwrap();
        assert_submitted_once(&harness, 1, "throttled");
    }
}

/// Everything that the file names is looked up before anything is submitted.
#[tokio::test]
async fn a_sweep_that_cannot_run_is_rejected_with_what_is_missing() {
    let cases = [
        ("queue: none", "no job queue \"none\""),
        ("job_definition: none", "no active job definition \"none\""),
        ("job_definition: 'trial:9'", "no active job definition \"trial:9\""),
        ("workspace: {snapshot: snap-0}", "no snapshot snap-0"),
        ("workspace: {volume: data}", "no volume with the Name tag \"data\""),
    ];
    for (at, (setting, why)) in cases.into_iter().enumerate() {
        let harness = Harness::new(4);
        let name = format!("case-{at}.yaml");
        let put = harness.put(&name, &format!("trials: [{{lr: 1}}]\nspotsweep: {{{setting}}}\n"));
        harness.deliver(&put).await.unwrap();
        assert_eq!(harness.store.state().0[0].stage, Stage::Rejected, "{setting}");
        let answer = harness.cloud.get(&format!("sweeps/{name}.rejected.json")).expect("an answer");
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let message = answer["problems"][0]["message"].as_str().unwrap_or_default();
        assert!(message.contains(why), "{setting}: {answer}");
    }
}

/// If every submission is denied, the control plane repeats it with growing waits, and answers in the end.
#[tokio::test]
async fn a_part_that_cannot_be_submitted_is_given_up_and_says_so() {
    let mut harness = Harness::new(4);
    let put = harness.put("denied.yaml", "- {lr: 1}\n");
    harness.cloud.world().trouble_mut().denied.insert("SubmitJob".into(), None);
    assert!(harness.deliver(&put).await.is_err(), "a failing effect fails the invocation");
    for _ in 0..500 {
        harness.pass(Duration::from_secs(300));
        // The invocation fails while it repeats the submission.
        let _ = harness.deliver(&harness.reconcile()).await;
    }
    assert_eq!(harness.store.state().0[0].stage, Stage::Rejected);
    let answer = harness.cloud.get("sweeps/denied.yaml.rejected.json").expect("an answer");
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.contains("AccessDeniedException"), "it says what failed: {answer}");
}

/// A short file with many trials.
fn list(trials: u32) -> String {
    format!("method: grid\nparameters:\n  seed: {{distribution: q_uniform, min: 0, max: {trials}, q: 1}}\n")
}
