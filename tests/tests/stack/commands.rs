//! The commands for a running or an ended sweep, on one local stack: `logs`, `pull`, `export`, `report`, `retry`,
//! `cancel` and `doctor`. They run as their users run them, with mistakes too.

mod doctor;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use spotsweep_tests::local::{Stack, eventually, s3};

use super::by_hand::{leftovers, run, settled, status, submit};
use crate::before_deploy;

const MISSING: &str = "missing-0123456789ab";

/// Two good trials, of which the second is better, and one that fails. None reaches the first rung.
const WORK: &str = r#"
name: "three: of a kind"
metric: {name: val_accuracy, goal: maximize}
early_terminate: {type: interruption, min_iter: 3}
spotsweep:
  workspace: off
  attempts: 3
  timeout: 1h
  command:
    - sh
    - -c
    - 'echo "to stderr" >&2; echo "lr is $HP_LR"; echo "epoch=1 val_accuracy=0.1 loss=3"; sleep 1; echo "epoch=2 val_accuracy=$HP_LR loss=2.5"; mkdir -p $SPOTSWEEP_STORAGE/$AWS_BATCH_JOB_ARRAY_INDEX/model; echo "weights of $HP_LR" > $SPOTSWEEP_STORAGE/$AWS_BATCH_JOB_ARRAY_INDEX/model/m.txt; exit $HP_CODE'
trials:
  - {lr: 0.25, code: 0, note.a: "x: [1]"}
  - {lr: 0.75, code: 0}
  - {lr: 0.5, code: 3}
"#;

/// More trials than run at once. They have volumes and never end by themselves. Their metric has another name.
const SLEEP: &str = r#"
metric: {name: score}
spotsweep: {command: [sh, -c, 'for epoch in $(seq 200); do echo "epoch=$epoch val_score=$epoch"; sleep 3; done']}
method: grid
parameters: {n: {min: 1, max: 70}}
"#;

/// The test takes half a minute, for a hundred commands one after another on one stack.
#[tokio::test(flavor = "multi_thread")]
async fn commands_do_what_they_say() {
    let stack = Stack::start("commands").await;
    mistakes(&stack).await;
    doctor::of_a_sound_stack(&stack).await;
    before_deploy::doctor(&stack).await;

    let sweep = submit(&stack, "work", WORK).await;
    follow(&stack, &sweep).await;
    let status = settled(&stack, &sweep).await;
    assert_eq!((&status["succeeded"], &status["failed"]), (&json!(2), &json!(1)), "{status}");
    let unreached = "none of the 2 trials that have finished reached the first rung, 3: ";
    assert!(status["warnings"][0].as_str().unwrap().starts_with(unreached), "{}", status["warnings"]);
    quote(&stack, &sweep).await;
    logs(&stack, &sweep).await;
    pull(&stack, &sweep).await;
    export(&stack, &sweep).await;
    report(&stack, &sweep).await;
    retry(&stack, &sweep).await;
    run(&stack, &["cancel", &sweep]).await.said(0, "nothing to cancel");

    cancel(&stack, &sweep).await;
    doctor::of_a_broken_stack(&stack).await;
    stack.stop().await;
}

async fn mistakes(stack: &Stack) {
    let commands: [&[&str]; 8] = [
        &["logs", "SWEEP", "0"],
        &["pull", "SWEEP"],
        &["export", "SWEEP", "--format", "json"],
        &["report", "SWEEP"],
        &["retry", "SWEEP"],
        &["cancel", "SWEEP"],
        &["status", "SWEEP"],
        &["pull", "SWEEP", "--best"],
    ];
    for command in commands {
        let of = |sweep| command.iter().map(|word| if *word == "SWEEP" { sweep } else { *word }).collect::<Vec<&str>>();
        run(stack, &of(MISSING)).await.said(1, "no sweep named `missing-0123456789ab`");
        run(stack, &of("Missing")).await.said(2, "no sweep named `Missing`");
    }
    run(stack, &["export", MISSING, "--format", "xml"]).await.said(2, "csv, json, mlflow");
    run(stack, &["report", MISSING, "--link", "--expires", "8d"]).await.said(2, "at most 7d");
}

/// `logs --follow` shows a trial from before its start to its end.
async fn follow(stack: &Stack, sweep: &str) {
    let followed = run(stack, &["logs", sweep, "1", "--follow"]).await.said(0, "trial 1 attempt 1:");
    let is_of_stdout = |line: &&str| !line.contains("spotsweep-runner") && *line != "to stderr";
    let lines: Vec<&str> = followed.out.lines().filter(is_of_stdout).collect();
    let expected = ["lr is 0.75", "epoch=1 val_accuracy=0.1 loss=3", "epoch=2 val_accuracy=0.75 loss=2.5"];
    assert_eq!(lines[lines.len() - 3..], expected, "{}", followed.out);
    let ended = status(stack, sweep).await;
    let trial = ended["each"].as_array().unwrap().iter().find(|trial| trial["index"] == 1).unwrap();
    assert_eq!(trial["status"], "succeeded", "following ends with the trial, not before");
}

/// For a file that gives no length of its trials, `validate` takes that of the last sweep with the same command.
async fn quote(stack: &Stack, sweep: &str) {
    let file = |name: &str, text: &str| {
        let path = stack.subfolder("files").join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let same = file("same.yaml", &WORK.replace("  timeout: 1h\n", ""));
    let found = run(stack, &["validate", &same, "--quote"]).await.said(0, "");
    for part in [
        format!(
            " s, the mean of 2 succeeded trials of sweep {sweep}, which has the same command, code and job definition ("
        ),
        format!(" a trial in sweep {sweep}, so "),
    ] {
        assert!(found.out.contains(&part), "no {part:?}: {} {}", found.out, found.notes);
    }
    let found = run(stack, &["validate", &same, "--quote", "--json"]).await.said(0, "").json();
    assert_eq!((&found["hours"]["sweep"], &found["hours"]["succeeded"]), (&json!(sweep), &json!(2)), "{found}");
    let other = file("other.yaml", &WORK.replace("  timeout: 1h\n", "").replace("to stderr", "of another command"));
    let found = run(stack, &["validate", &other, "--quote"]).await.said(0, "").out;
    assert!(found.contains("not known, as none of the newest 20 sweeps has this command"), "{found}");
    assert!(found.contains("$0.023 a month in S3 for each GiB, so $1.38 at most for 3 trials"), "{found}");
}

async fn logs(stack: &Stack, sweep: &str) {
    let log = run(stack, &["logs", sweep, "2", "--attempt", "1"]).await.said(0, "").out;
    assert!(log.contains("lr is 0.5\n") && log.contains("to stderr\n"), "{log}");
    let lines: Vec<&str> = log.lines().collect();
    for tail in [1, 3, lines.len(), lines.len() + 9] {
        let end = run(stack, &["logs", sweep, "2", "--tail", &tail.to_string()]).await.said(0, "").out;
        assert_eq!(end.lines().collect::<Vec<_>>(), lines[lines.len().saturating_sub(tail)..], "--tail {tail}");
    }
    let followed = run(stack, &["logs", sweep, "2", "--tail", "2", "--follow"]).await.said(0, "attempt 1:").out;
    assert_eq!(followed.lines().collect::<Vec<_>>(), lines[lines.len() - 2..]);
    run(stack, &["logs", sweep, "2", "--tail", "0"]).await.said(2, "0 is not in 1..");
    run(stack, &["logs", sweep, "3"]).await.said(2, "it has 3 trials, counted from 0");
    run(stack, &["logs", sweep, "2", "--attempt", "2"]).await.said(2, "no attempt 2: it ended after 1 attempt");
    run(stack, &["logs", sweep, "2", "--attempt", "0"]).await.said(2, "0 is not in 1..");

    // CloudWatch has deleted the log. The file next to the outputs still exists.
    let document = run(stack, &["export", sweep, "--format", "json"]).await.json();
    let stream = document["trials"][0]["attempts"][0]["log_stream"].as_str().unwrap();
    let state: Value =
        serde_json::from_slice(&fs::read(stack.subfolder("..").join("commands/state.json")).unwrap()).unwrap();
    fs::remove_file(Path::new(state["jobs_logs"].as_str().unwrap()).join(stream)).unwrap();
    let end = run(stack, &["logs", sweep, "0"]).await.said(0, "CloudWatch has no log of it").out;
    assert!(end.contains("lr is 0.25\n"), "{end}");
    let last = run(stack, &["logs", sweep, "0", "--tail", "1"]).await.said(0, "CloudWatch has no log of it").out;
    assert!(last.lines().count() == 1 && end.ends_with(&last), "{last}");
    s3(&stack.config())
        .delete_object()
        .bucket(&stack.bucket)
        .key(format!("results/{sweep}/trials/0/train.log"))
        .send()
        .await
        .unwrap();
    run(stack, &["logs", sweep, "0"]).await.said(1, "has no stream");
}

async fn pull(stack: &Stack, sweep: &str) {
    let folder = stack.subfolder("pulled");
    let to = folder.to_str().unwrap();
    let best = run(stack, &["pull", sweep, "--best", "--to", to, "--json"]).await.said(0, "trial 1 is the best").json();
    assert_eq!(files(&folder), ["trials/1/metrics.jsonl", "trials/1/model/m.txt", "trials/1/train.log"]);
    assert_eq!((&best["fetched"], &best["present"]), (&json!(3), &json!(0)));
    let model = folder.join("trials/1/model/m.txt");
    assert_eq!(fs::read_to_string(&model).unwrap(), "weights of 0.75\n");

    // Files that are incomplete, or older than the object, are downloaded again. The others are not.
    fs::write(&model, "weights").unwrap();
    let log = fs::File::options().write(true).open(folder.join("trials/1/train.log")).unwrap();
    log.set_modified(std::time::UNIX_EPOCH).unwrap();
    put(stack, &format!("results/{sweep}/trials/1/../../evil"), "evil").await;
    let again = run(stack, &["pull", sweep, "1", "--to", to, "--json"]).await.said(1, "1 there already");
    assert!(again.notes.contains("not fetched: ") && again.notes.contains("/evil"), "{}", again.notes);
    let tally = again.json();
    assert_eq!((&tally["fetched"], &tally["present"]), (&json!(2), &json!(1)));
    assert_eq!(tally["failed"].as_array().map(Vec::len), Some(1), "{tally}");
    assert_eq!(fs::read_to_string(&model).unwrap(), "weights of 0.75\n");
    assert_eq!(files(&folder).len(), 3, "{:?}", files(&folder));

    let all = run(stack, &["pull", sweep, "--to", to, "--json"]).await.said(1, "3 there already").json();
    assert_eq!(files(&folder).len() as u64, 3 + all["fetched"].as_u64().unwrap());
    assert_eq!(fs::read_to_string(folder.join("trials/2/model/m.txt")).unwrap(), "weights of 0.5\n");
    run(stack, &["pull", sweep, "7", "--to", to]).await.said(2, "has no trial 7");
}

async fn export(stack: &Stack, sweep: &str) {
    let csv = run(stack, &["export", sweep, "--format", "csv"]).await.said(0, "").out;
    assert_eq!(csv.as_bytes(), object(stack, &format!("results/{sweep}/leaderboard.csv")).await);
    assert!(csv.starts_with("rank,index,status,val_accuracy,loss,") && csv.contains("\n1,1,succeeded,0.75,"), "{csv}");

    let path = stack.subfolder("files").join("out.json");
    run(stack, &["export", sweep, "--format", "json", "--to", path.to_str().unwrap()]).await.said(0, "written to");
    let document: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert_eq!((&document["sweep"], &document["stage"]), (&json!(sweep), &json!("settled")));
    assert_eq!(document["ranking"], json!({ "metric": "val_accuracy", "goal": "maximize" }));
    let trials = document["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 3);
    assert_eq!(trials[0]["parameters"], json!({ "lr": 0.25, "code": 0, "note.a": "x: [1]" }));
    assert_eq!(
        (&trials[1]["metrics"]["loss"]["last"], &trials[1]["metrics"]["loss"]["max"]),
        (&json!(2.5), &json!(3.0))
    );
    assert_eq!((&trials[2]["status"], &trials[2]["attempts"][0]["exit_code"]), (&json!("failed"), &json!(3)));

    let folder = stack.subfolder("files").join("mlruns");
    let arguments = ["export", sweep, "--format", "mlflow", "--to", folder.to_str().unwrap()];
    let experiment = PathBuf::from(run(stack, &arguments).await.said(0, "mlflow ui --backend-store-uri").out.trim());
    let read = |path: &str| fs::read_to_string(experiment.join(path)).unwrap();
    assert!(read("meta.yaml").contains(&format!("name: \"{sweep}\"\n")));
    let hash = sweep.rsplit('-').next().unwrap();
    let file = |index: u32, path: &str| read(&format!("{hash}{index:020}/{path}"));
    assert_eq!((file(0, "params/lr"), file(0, "params/note.a")), ("0.25".into(), "x: [1]".into()));
    let points: Vec<String> = file(1, "metrics/val_accuracy").lines().map(str::to_owned).collect();
    let values: Vec<&str> = points.iter().map(|point| point.split_once(' ').unwrap().1).collect();
    assert_eq!(values, ["0.1 1", "0.75 2"]);
    let meta = file(2, "meta.yaml");
    for line in ["status: 4\n", "lifecycle_stage: \"active\"\n", &format!("run_id: \"{hash}{:020}\"\n", 2)] {
        assert!(meta.contains(line), "{meta}");
    }
    assert_eq!((file(1, "tags/spotsweep.rank"), file(2, "tags/spotsweep.status")), ("1".into(), "failed".into()));
    run(stack, &arguments).await.said(1, "has been exported to");
}

async fn report(stack: &Stack, sweep: &str) {
    let key = format!("results/{sweep}/report.html");
    s3(&stack.config()).delete_object().bucket(&stack.bucket).key(&key).send().await.unwrap();
    run(stack, &["report", sweep, "--link"]).await.said(1, "no report yet");
    // A report that does not exist any more is drawn again.
    let again = stack.subfolder("files").join("again.html");
    run(stack, &["report", sweep, "--output", again.to_str().unwrap()]).await.said(0, "");
    let counts = &data_of(&again)["counts"];
    assert_eq!((&counts["succeeded"], &counts["failed"]), (&json!(2), &json!(1)));
    put(stack, &key, "<!doctype html><title>report</title>").await;
    let file = stack.subfolder("files").join("deep/report.html");
    let path = run(stack, &["report", sweep, "--output", file.to_str().unwrap()]).await.said(0, "").out;
    assert_eq!(Path::new(path.trim()), file);
    assert_eq!(fs::read_to_string(&file).unwrap(), "<!doctype html><title>report</title>");
    let link = run(stack, &["report", sweep, "--link", "--expires", "2h"]).await.said(0, "works until").out;
    assert!(link.contains(&key) && link.contains("X-Amz-Expires=7200") && link.contains("X-Amz-Signature="), "{link}");
    run(stack, &["report", sweep, "--link", "--open"]).await.said(2, "cannot be used with");
    let cost = run(stack, &["cost", sweep]).await.said(0, "").out;
    assert!(
        cost.starts_with(&format!("{sweep}, as of ")) && cost.lines().any(|line| line.starts_with("on demand ")),
        "{cost}"
    );
}

async fn retry(stack: &Stack, sweep: &str) {
    let text = run(stack, &["retry", sweep, "--dry-run"]).await.said(0, "").out;
    assert!(text.contains("{\"lr\":0.5,\"code\":3}  # trial 2\n") && !text.contains("0.25"), "{text}");
    assert!(text.contains("early_terminate: {\"type\":\"interruption\",\"min_iter\":3}\n"), "{text}");
    let plan = run(stack, &["retry", sweep, "--json"]).await.said(0, "1 trial of").json();
    assert_eq!((&plan["trials"], &plan["file"]), (&json!(1), &json!("sweeps/work-retry-1.yaml")), "{plan}");
    let again = plan["sweep"].as_str().unwrap().to_owned();
    let named = run(stack, &["retry", sweep, "1", "0", "--failed", "--json"]).await.said(0, "3 trials of").json();
    assert_eq!((&named["trials"], &named["file"]), (&json!(3), &json!("sweeps/work-retry-2.yaml")), "{named}");

    // The retry runs as the original sweep did, with the same command, the same metric and the same end.
    let ended = settled(stack, &again).await;
    assert_eq!(
        (&ended["failed"], &ended["each"][0]["metrics"]["val_accuracy"]["last"]),
        (&json!(1), &json!(0.5)),
        "{ended}"
    );
    let [original, copy] = [sweep, again.as_str()]
        .map(|sweep| async move { run(stack, &["export", sweep, "--format", "json"]).await.json() });
    let (original, copy) = (original.await, copy.await);
    for field in ["ranking", "job_definition", "queue"] {
        assert_eq!(original[field], copy[field], "{field}");
    }
    run(stack, &["retry", sweep, "9"]).await.said(2, "has no trial 9");
    let gone = s3(&stack.config()).delete_object().bucket(&stack.bucket).key("sweeps/work.yaml");
    gone.send().await.unwrap();
    run(stack, &["retry", sweep]).await.said(1, "is gone, and with it the settings");
    let all = settled(stack, named["sweep"].as_str().unwrap()).await;
    assert_eq!(all["succeeded"], 2, "{all}");
}

/// Without a terminal, `cancel` needs the whole id of a sweep.
async fn refused_in_a_script(stack: &Stack, sweep: &str) {
    run(stack, &["cancel", "latest", "--yes"]).await.said(2, sweep);
    run(stack, &["cancel", &sweep[..sweep.len() - 2], "68"]).await.said(2, "give the whole id");
}

async fn cancel(stack: &Stack, other: &str) {
    let sweep = submit(stack, "sleep", SLEEP).await;
    let running = async || {
        let status = status(stack, &sweep).await;
        let each = status["each"].as_array().unwrap().clone();
        let index = |trial: &Value| (trial["status"] == "running").then(|| trial["index"].as_u64()).flatten();
        each.iter().find_map(index)
    };
    let running = eventually("a trial runs", running).await.to_string();
    let warned = async || status(stack, &sweep).await["warnings"][0].as_str().map(str::to_owned);
    let warning = eventually("a metric that never appears is missed", warned).await;
    let (missed, instead) = ("no trial has reported `score` yet, in ", "metrics that trials printed: val_score, ");
    assert!(warning.starts_with(missed) && warning.contains(instead), "{warning}");
    let text = run(stack, &["status", &sweep]).await.said(0, "").out;
    assert!(text.contains(&format!("\nwarning: {missed}")), "{text}");
    run(stack, &["pull", &sweep]).await.said(1, "no results yet");
    run(stack, &["report", &sweep, "--link"]).await.said(1, "no report yet");
    run(stack, &["cost", &sweep]).await.said(1, "no costs yet: updated every ");
    let page = stack.subfolder("files").join("running.html");
    run(stack, &["report", &sweep, "--output", page.to_str().unwrap()]).await.said(0, "");
    let data = data_of(&page);
    assert_eq!(
        (&data["stage"], &data["partial"], &data["counts"]["trials"]),
        (&json!("running"), &json!(true), &json!(70))
    );
    let list = run(stack, &["ls", "--json"]).await.said(0, "").out;
    let own = list
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find(|line| line["sweep"] == sweep.as_str());
    assert!(own.unwrap()["progress"]["running"].as_u64().unwrap() > 0, "{list}");
    assert!(run(stack, &["ls"]).await.said(0, "").out.contains("0 of 70"));
    let both = run(stack, &["report", &sweep, "work"]).await.said(2, "begin with `work`");
    assert_eq!(both.out, "");
    let both = run(stack, &["report", "latest", other]).await.said(0, &format!("sweep {sweep}")).out;
    assert!(both.contains("val_accuracy 0.75000 (trial 1)") && both.contains("none"), "{both}");
    run(stack, &["export", &sweep, "--format", "csv"]).await.said(1, "no leaderboard yet");
    run(stack, &["logs", &sweep, "69"]).await.said(1, "has not started yet");
    run(stack, &["retry", &sweep]).await.said(1, "is failed: name trials by their index");
    let volumes = async || leftovers(stack).await["volumes"].as_array().unwrap().len();
    assert!(volumes().await > 0, "a running trial has a volume");

    // One of the trials runs and one waits. The others go on.
    run(stack, &["cancel", &sweep, "70"]).await.said(2, "has no trial 70");
    refused_in_a_script(stack, &sweep).await;
    let two = run(stack, &["cancel", &sweep, &running, "68", "--delete", "--wait", "--json"])
        .await
        .said(0, "nothing is left of them")
        .json();
    assert_eq!(two["ended"].as_array().unwrap().len(), 2, "{two}");
    let document = run(stack, &["export", &sweep, "--format", "json"]).await.json();
    for index in [running.parse::<usize>().unwrap(), 68] {
        let trial = &document["trials"][index];
        assert_eq!(trial["status"], "cancelled", "{trial}");
        assert!(trial["reason"].as_str().unwrap().starts_with("cancelled, with its checkpoints, by "), "{trial}");
    }
    assert_eq!(status(stack, &sweep).await["stage"], "running");
    let again = run(stack, &["cancel", &sweep, &running]).await.said(0, "").out;
    assert_eq!(again, format!("trial {running} has ended already: cancelled\n"));

    let whole = run(stack, &["cancel", &sweep, "--delete", "--wait"]).await.said(0, "nothing is left of them").out;
    assert!(whole.starts_with("cancelled trials 0 to 69: job "), "{whole}");
    let ended = status(stack, &sweep).await;
    assert_eq!(
        (&ended["stage"], &ended["cancelled"], &ended["failed"]),
        (&json!("settled"), &json!(70), &json!(0)),
        "{ended}"
    );
    let left = leftovers(stack).await;
    for what in ["volumes", "snapshots", "attachments"] {
        assert_eq!(left[what], json!([]), "{what}");
    }
}

/// The data of a report page.
fn data_of(page: &Path) -> Value {
    let page = fs::read_to_string(page).unwrap();
    let data = page.split(r#"<script type="application/json" id="data">"#).nth(1).unwrap();
    serde_json::from_str(data.split("</script>").next().unwrap()).unwrap()
}

async fn put(stack: &Stack, key: &str, text: &str) {
    let put = s3(&stack.config()).put_object().bucket(&stack.bucket).key(key).body(text.as_bytes().to_vec().into());
    put.send().await.unwrap();
}

async fn object(stack: &Stack, key: &str) -> Vec<u8> {
    let object = s3(&stack.config()).get_object().bucket(&stack.bucket).key(key).send().await.unwrap();
    object.body.collect().await.unwrap().to_vec()
}

/// Paths of the files in a folder, relative to it.
fn files(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    files.sort();
    files
}
