//! What the deployed functions write: log lines that name sweep, trial and attempt, and metrics for CloudWatch. A
//! metric is written once even if its event comes twice. The real binaries run, with the log format that
//! `infra/control-plane.yaml` sets.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};
use spotsweep_tests::local::{Account, Dropped, Outcome, Stack};

const LEASE_SECONDS: u64 = 60;
const FILE: &str = "spotsweep:\n  workspace: off\ntrials:\n- lr: 0.1\n- lr: 0.2\n";
/// Start of the first attempt, in Batch's milliseconds.
const STARTED_MS: i64 = 1_795_262_459_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_trials_life_is_logged_and_counted_once() {
    let stack = Stack::start("telemetry").await;
    let account = Account::open(&stack, "telemetry").await;
    let dropped = account.drop_file("two", FILE).await;
    invoke(&account, &dropped, "sweep-upload", &dropped.event).await;
    let sweep = account.sweep(&dropped).await.unwrap();
    let job = format!("{}:1", sweep.plan.as_ref().unwrap().parts[0].job.as_ref().unwrap());
    let job = Job { id: job, name: sweep.job_name(0).to_string() };

    invoke(
        &account,
        &dropped,
        "trial-claim",
        &json!({ "request": "claim", "sweep": sweep.id, "index": 1,
        "job": job.id, "attempt": 1, "token": sweep.claim_token, "secret": "0".repeat(32), "instance": "i-0c1f2e3d4b5a69788", "zone": "us-east-1a" }),
    )
    .await;
    let reclaimed = attempt(0, 20, &json!({}), "Host EC2 (instance i-0c1f2e3d4b5a69788) terminated.");
    let good = attempt(35, 50, &json!({ "exitCode": 0 }), "Essential container in task exited");
    for _ in 0..2 {
        invoke(&account, &dropped, "batch-job-state", &job.event("RUNNABLE", &[&reclaimed])).await;
    }
    for _ in 0..2 {
        invoke(&account, &dropped, "batch-job-state", &job.event("SUCCEEDED", &[&reclaimed, &good])).await;
    }
    let tick = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/events/reconcile.json")).unwrap();
    invoke(&account, &dropped, "reconcile", &serde_json::from_str(&tick).unwrap()).await;

    let log = fs::read_to_string(account.log(&dropped)).unwrap();
    let (figures, lines): (Vec<Value>, Vec<Value>) = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .partition(|line: &Value| line.get("_aws").is_some());
    assert_counted(&figures, &dropped, &json!(sweep.id));
    let mut steps = BTreeMap::new();
    for line in lines.iter().filter(|line| line["span"]["name"] == "step") {
        let Value::Object(span) = &line["span"] else { unreachable!("a span is an object: {line}") };
        *steps.entry(span["event"].as_str().unwrap()).or_insert(0) += 1;
        let is_tick = span["event"] == "reconcile-due";
        assert_eq!(span.get("sweep"), (!is_tick).then_some(&json!(sweep.id)), "{line}");
        assert!(line["fields"]["message"].is_string() && line["level"].is_string(), "{line}");
        // The time must be as in RFC 3339, because Lambda takes the level for INFO otherwise.
        assert!(line["timestamp"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{line}");
    }
    // The first claim on an instance takes two steps: the instance is noted, and then the claim is decided.
    assert_eq!((steps["reconcile-due"], steps["trial-job-changed"], steps["trial-claimed"]), (1, 4, 2), "{steps:?}");
    let attempts = |event: &str| -> Vec<(Value, Value)> {
        let of_event = lines.iter().filter(|line| line["span"]["event"] == event);
        of_event.map(|line| (line["span"]["trial"].clone(), line["span"]["attempt"].clone())).collect()
    };
    assert_eq!(attempts("trial-claimed"), [1, 1].map(|attempt| (json!(1), json!(attempt))));
    assert_eq!(attempts("trial-job-changed"), [1, 1, 2, 2].map(|attempt| (json!(1), json!(attempt))));
    failures_name_their_cause(&account, &dropped, &tick).await;
    account.close().await;
    stack.stop().await;
}

/// AWS's error is in the function's answer, which the queue of failed events keeps, and in its log. For `trial-claim`
/// it is only in the log, because the caller of that function may be a training.
async fn failures_name_their_cause(account: &Account, dropped: &Dropped, tick: &str) {
    let mut function = account.function("reconcile", dropped, LEASE_SECONDS);
    let table = function.variables.iter_mut().find(|(name, _)| name == "SPOTSWEEP_TABLE").unwrap();
    table.1 = "no-such-table".to_owned();
    let invocation = function.invoke(&serde_json::from_str(tick).unwrap(), None).await;
    let Outcome::Failed(error) = invocation.outcome else { unreachable!("there is no such table: {invocation:?}") };
    let log = fs::read_to_string(account.log(dropped)).unwrap();
    for said in [error["errorMessage"].as_str().unwrap(), log.lines().last().unwrap()] {
        assert!(said.contains("load failed") && said.contains("ResourceNotFoundException"), "{said}");
    }
    let mut function = account.function("trial-claim", dropped, LEASE_SECONDS);
    let table = function.variables.iter_mut().find(|(name, _)| name == "SPOTSWEEP_TABLE").unwrap();
    table.1 = "no-such-table".to_owned();
    let request = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/events/trial-claim.json")).unwrap();
    let invocation = function.invoke(&serde_json::from_str(&request).unwrap(), None).await;
    let Outcome::Failed(error) = invocation.outcome else { unreachable!("there is no such table: {invocation:?}") };
    assert_eq!(error["errorMessage"], "a record could not be read: the function's log has the cause");
    assert!(fs::read_to_string(account.log(dropped)).unwrap().contains("ResourceNotFoundException"));
}

/// Each metric is declared as CloudWatch requires, and their sums are those of what has happened.
fn assert_counted(documents: &[Value], dropped: &Dropped, sweep: &Value) {
    let mut sums = BTreeMap::<String, f64>::new();
    for document in documents {
        let [directive] = document["_aws"]["CloudWatchMetrics"].as_array().unwrap().as_slice() else {
            unreachable!("one directive: {document}");
        };
        assert_eq!((&directive["Namespace"], &directive["Dimensions"]), (&json!("spotsweep"), &json!([["Table"]])));
        assert_eq!(document["Table"], json!(dropped.table()));
        assert!(document["_aws"]["Timestamp"].as_i64().unwrap() > STARTED_MS, "milliseconds: {document}");
        for metric in directive["Metrics"].as_array().unwrap() {
            let name = metric["Name"].as_str().unwrap();
            assert_eq!(metric["Unit"], if name.contains("Seconds") { "Seconds" } else { "Count" });
            *sums.entry(name.to_owned()).or_default() += document[name].as_f64().unwrap();
            assert_eq!(document.get("sweep").is_some_and(|found| found == sweep), name != "OldestOpenSeconds");
        }
    }
    let expected =
        [("Interruptions", 1.0), ("OldestOpenSeconds", 0.0), ("SecondsLost", 15.0), ("TrialsSucceeded", 1.0)];
    assert_eq!(sums, expected.map(|(name, sum)| (name.to_owned(), sum)).into());
}

async fn invoke(account: &Account, dropped: &Dropped, name: &str, event: &Value) {
    let mut function = account.function(name, dropped, LEASE_SECONDS);
    function.variables.push(("AWS_LAMBDA_LOG_FORMAT".to_owned(), "JSON".to_owned()));
    let invocation = function.invoke(event, None).await;
    assert!(matches!(invocation.outcome, Outcome::Answered(_)), "{name}: {invocation:?}");
}

/// A child of the array job.
struct Job {
    id: String,
    name: String,
}

impl Job {
    fn event(&self, status: &str, attempts: &[&Value]) -> Value {
        json!({ "version": "0", "id": "1", "detail-type": "Batch Job State Change", "source": "aws.batch",
            "account": "000000000000", "time": "2026-11-21T12:01:04Z", "region": "us-east-1", "resources": [],
            "detail": { "jobId": self.id, "jobName": self.name, "status": status, "attempts": attempts,
                "arrayProperties": { "index": 1, "statusSummary": {} } } })
    }
}

/// An ended attempt. The times are in seconds after the start of the first one.
fn attempt(from: i64, to: i64, container: &Value, reason: &str) -> Value {
    json!({ "container": container, "startedAt": STARTED_MS + from * 1000, "stoppedAt": STARTED_MS + to * 1000,
        "statusReason": reason })
}
