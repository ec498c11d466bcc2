//! Attacks by a training, by an invocation by hand and by a sweep file: late and forged requests, an upload to another
//! bucket, credentials in a URL, cells that are formulas. They run on one local stack, with the deployed functions.

use serde_json::{Value, json};
use spotsweep_aws::Reader;
use spotsweep_protocol::claim::Reply;
use spotsweep_protocol::ids::SweepId;
use spotsweep_protocol::stop::StopReason;
use spotsweep_records::trial::Trial;
use spotsweep_tests::local::{Stack, s3};

use super::by_hand::{run, settled, submit};
use super::deployed::invoke;

/// Ends at once, with a score, a metric whose name is a formula, and one whose name would turn a terminal's text red.
const SCORE: &str = r#"
metric: {name: score, goal: maximize}
spotsweep:
  workspace: off
  command:
    - sh
    - -c
    - 'printf "%s\n" "{\"score\": 1, \"=HYPERLINK(\\\"http://evil.example\\\",\\\"x\\\")\": 2, \"a\u001b[31mb\": 4}"'
trials:
  - {v: "=HYPERLINK(\"http://evil.example\",\"x\")"}
  - {v: -0.5}
"#;

/// URLs with a password: name, the URL in the file, and the URL that the page shows.
const CREDENTIALS: [(&str, &str, &str); 4] = [
    ("secret", r#""http://user:s3cr3tpw@127.0.0.1:9/x.git""#, r#"\"http://***@127.0.0.1:9/x.git\""#),
    ("quoted", r#""http://user:s3c'r \x23tpw@127.0.0.1:9/x.git""#, "{git: ***, ref: main}"),
    ("scp", "user:s3cr3tpw@127.0.0.1:x.git", "{git: ***@127.0.0.1:x.git, ref: main}"),
    ("token", "http://127.0.0.1:9/x.git?private_token=s3cr3tpw", "9/x.git?private_token=***, ref: main}"),
];

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_is_tried_against_others_succeeds() {
    let stack = Stack::start("hostile").await;
    let scored = submit(&stack, "scored", SCORE).await;
    let mut secret = Vec::new();
    for (name, url, shown) in CREDENTIALS {
        let settings =
            format!("attempts: 1, workspace: off, command: [sh, -c, exit 1], env: {{git: {url}, ref: main}}");
        let file = format!("spotsweep: {{{settings}}}\ntrials: [{{lr: 0.1}}]\n");
        secret.push((submit(&stack, name, &file).await, shown));
    }
    settled(&stack, &scored).await;
    late_requests(&stack, &scored).await;
    foreign_bucket(&stack).await;
    formulas(&stack, &scored).await;
    for (sweep, shown) in &secret {
        settled(&stack, sweep).await;
        credentials(&stack, sweep, shown).await;
    }
    stored_credentials(&stack).await;
    // The new file's credentials must work.
    let retried = run(&stack, &["retry", &secret[0].0, "0", "--dry-run"]).await.said(0, "").out;
    assert!(retried.contains("http://user:s3cr3tpw@127.0.0.1:9/x.git"), "{retried}");
    stack.stop().await;
}

/// The record of a settled trial stays as it is, whoever sends which request.
async fn late_requests(stack: &Stack, sweep: &str) {
    let reader = Reader::new(&stack.config(), stack.table.clone());
    let id = SweepId::parse(sweep).unwrap();
    let record = async || -> Trial { reader.trial(&id, 0).await.unwrap().unwrap() };
    let (before, board) = (record().await, run(stack, &["export", sweep, "--format", "csv"]).await.said(0, "").out);
    let history = run(stack, &["explain", sweep, "0", "--verbose"]).await.said(0, "").out;
    let metrics = json!({ "score": { "last": 9999, "step": null, "min": 1, "max": 9999 } });
    let outputs = json!({ "files": 7, "bytes": 7 });
    let asks = [
        json!({ "request": "report", "sequence": 500, "metrics": metrics }),
        json!({ "request": "release", "sequence": 501, "metrics": {}, "seal": null }),
        json!({ "request": "end", "sequence": 502, "exit_code": 1, "metrics": {}, "outputs": outputs, "seconds": 1 }),
        json!({ "request": "mounted", "volume": "vol-1", "found": {}, "seconds": 1 }),
        json!({ "request": "notice", "kind": "interruption" }),
        json!({ "request": "access" }),
        json!({ "request": "claim", "instance": "i-00000000000000001", "zone": "us-east-1a" }),
    ];
    let token = json!(reader.sweep(&id).await.unwrap().unwrap().claim_token);
    let (secret, wrong) = (json!(before.secret), json!("f".repeat(32)));
    // The last requests are those that a training of another sweep can send.
    for (attempt, token, secret, expected) in [
        (1, &token, &secret, StopReason::AttemptEnded { attempt: 1 }),
        (1, &token, &wrong, StopReason::AttemptEnded { attempt: 1 }),
        (77, &token, &secret, StopReason::TrialEnded),
        (1, &token, &Value::Null, StopReason::NoSecret),
        (1, &Value::Null, &secret, StopReason::NoSecret),
        (1, &wrong, &secret, StopReason::Unproven),
        (77, &wrong, &wrong, StopReason::Unproven),
    ] {
        for ask in &asks {
            for (sweep, job) in [(sweep, json!(before.job)), ("no-such-000000000000", json!("0:0"))] {
                let mut request = ask.clone();
                (request["sweep"], request["index"], request["job"]) = (json!(sweep), json!(0), job);
                (request["attempt"], request["token"], request["secret"]) =
                    (json!(attempt), token.clone(), secret.clone());
                let answer = invoke(stack, "trial-claim", &request).await.unwrap();
                let is_own = id.as_str() == sweep;
                let reason = if is_own || expected == StopReason::NoSecret { &expected } else { &StopReason::Unproven };
                let reply: Reply = serde_json::from_str(&answer).unwrap();
                assert_eq!(reply, Reply::Refused { reason: reason.clone() }, "{request}");
            }
        }
    }
    assert_eq!(record().await, before);
    assert_eq!(run(stack, &["export", sweep, "--format", "csv"]).await.said(0, "").out, board);
    assert_eq!(run(stack, &["explain", sweep, "0", "--verbose"]).await.said(0, "").out, history);
}

/// Sends the event of an upload to another bucket, which no rule passes on.
async fn foreign_bucket(stack: &Stack) {
    let reader = Reader::new(&stack.config(), stack.table.clone());
    let before = reader.sweeps().await.unwrap().len();
    let object = json!({ "key": "sweeps/foreign.yaml", "size": 9, "etag": "e", "sequencer": "0055AED6" });
    let event = json!({
        "version": "0", "id": "forged", "detail-type": "Object Created", "source": "aws.s3", "account": "000000000000",
        "time": "2026-11-21T12:00:00Z", "region": "us-east-1", "resources": [],
        "detail": { "bucket": { "name": "of-somebody-else" }, "object": object },
    });
    let answer = invoke(stack, "sweep-upload", &event).await.unwrap();
    assert!(answer.contains("of-somebody-else") && answer.contains("not this deployment's"), "{answer}");
    assert_eq!(reader.sweeps().await.unwrap().len(), before, "nothing is stored");
}

/// No spreadsheet takes a cell of these files for a formula, and no terminal takes a name for an instruction.
async fn formulas(stack: &Stack, sweep: &str) {
    let csv = run(stack, &["export", sweep, "--format", "csv"]).await.said(0, "").out;
    let header = csv.lines().next().unwrap();
    let name = r#""'=HYPERLINK(""http://evil.example"",""x"")""#;
    assert!(header.starts_with(&format!("rank,index,status,score,{name},a\\u{{1b}}[31mb,parameters.v,")), "{header}");
    assert!(csv.lines().any(|line| line.contains(&format!(",{name},1,"))), "{csv}");
    assert!(csv.lines().any(|line| line.contains(",-0.5,1,")), "a number stays one: {csv}");
    assert!(!csv.contains('\u{1b}'), "{csv:?}");
    let file = stack.subfolder("files").join("scored.yaml");
    let expanded = run(stack, &["expand", file.to_str().unwrap(), "--format", "csv"]).await.said(0, "").out;
    assert_eq!(expanded, format!("index,v\n0,{name}\n1,-0.5\n"));
}

/// The password is in the sweep file, and in nothing else that a person, a page or a program gets.
async fn credentials(stack: &Stack, sweep: &str, shown: &str) {
    let page = stack.subfolder("files").join("report.html");
    let page = page.to_str().unwrap();
    let commands: [&[&str]; 8] = [
        &["report", sweep, "--output", page],
        &["status", sweep],
        &["status", sweep, "--json"],
        &["explain", sweep, "0"],
        &["explain", sweep, "0", "--json"],
        &["logs", sweep, "0"],
        &["export", sweep, "--format", "csv"],
        &["export", sweep, "--format", "json"],
    ];
    for arguments in commands {
        let done = run(stack, arguments).await.said(0, "");
        assert!(!tells(&done.out) && !tells(&done.notes), "{arguments:?}: {}", done.out);
    }
    let text = std::fs::read_to_string(page).unwrap();
    assert!(!tells(&text) && text.contains(shown), "the page has the file, without the credentials: {shown}");
}

/// Whether a text contains a part of the password, with its special characters in any escaped form.
fn tells(text: &str) -> bool {
    ["s3c", "3tpw"].iter().any(|part| text.contains(part))
}

async fn stored_credentials(stack: &Stack) {
    let (client, bucket) = (s3(&stack.config()), &stack.bucket);
    let listed = client.list_objects_v2().bucket(bucket).send().await.unwrap();
    for key in listed.contents().iter().filter_map(|object| object.key()) {
        let object = client.get_object().bucket(bucket).key(key).send().await.unwrap();
        let bytes = object.body.collect().await.unwrap().to_vec();
        let is_file = CREDENTIALS.iter().any(|(name, ..)| key == format!("sweeps/{name}.yaml"));
        assert_eq!(tells(&String::from_utf8_lossy(&bytes)), is_file, "{key}");
    }
    assert!(!tells(&std::fs::read_to_string(&stack.functions_log).unwrap()), "logs of the functions");
}
