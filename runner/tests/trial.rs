//! The real binary with real children, against a server that emulates Lambda, S3 and IMDS.
#![allow(clippy::disallowed_methods, reason = "the tests lay files out")]
#![allow(clippy::unwrap_used, clippy::panic)]

mod attempts;
mod code;
mod collected;
mod data;
mod disk;
mod habits;
mod harm;
mod instance;
mod metrics;
mod mlflow;
mod packages;
mod packed;
mod privileges;
mod restored;
mod rollback;
mod secrets;
mod setup;
mod stalls;
mod stops;
mod trees;
mod workspace;
mod world;

use axum::http::{Method, StatusCode};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};
use tokio::process::Child;
use world::{Answer, TOKEN, World, kind, read, until, well};

fn send(runner: &Child, signal: Signal) {
    let pid = i32::try_from(runner.id().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

const TRAINING: &str = r#"
    echo "arguments: $*"
    echo "environment $HP_LR|$HP_NAME|$AWS_BATCH_JOB_ARRAY_INDEX|$SPOTSWEEP_TRIAL_INDEX|$PYTHONUNBUFFERED|${SPOTSWEEP_CLAIM_TOKEN-no token}"
    echo "epoch=1 acc=0.9 loss=nan"
    echo "epoch=2 acc=0.5"
    echo "note" >&2
    echo '{"step": 3, "val/loss": 0.25}' >> "$SPOTSWEEP_METRICS"
    cp "$SPOTSWEEP_PARAMS" "$SPOTSWEEP_OUTPUT/parameters.json"
    mkdir -p "$SPOTSWEEP_STORAGE/7/model" "$SPOTSWEEP_CHECKPOINTS/e" "$SPOTSWEEP_DATASETS/d"
    head -c 20000000 /dev/urandom > "$SPOTSWEEP_OUTPUT/model/big file.bin"
    ln -s /etc/passwd "$SPOTSWEEP_OUTPUT/leak"
    until [ -e "$SPOTSWEEP_STORAGE/reported" ]; do sleep 0.05; done
    printf 'no newline at the end'
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_trial_is_claimed_trained_and_collected() {
    fn stumbling(request: &str, nth: usize) -> Answer {
        match (request, nth) {
            ("claim", 0) => Answer::FunctionError(json!({"errorMessage": "cold feet"})),
            ("end", 0) => Answer::Status(503),
            (request, nth) => kind(request, nth),
        }
    }
    let world = World::start(stumbling, well).await;
    let runner = world.spawn(&[], &["sh", "-c", TRAINING, "train", "${args}"]);
    let laid_out = world.path("storage/7/model");
    until("a report", || laid_out.exists() && !world.invocations("report").is_empty()).await;
    std::fs::write(world.path("storage/reported"), "").unwrap();
    let outcome = world.outcome(runner).await;

    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let stdout = "arguments: --lr=0.1 --name=a b\nenvironment 0.1|a b|7|7|1|no token\nepoch=1 acc=0.9 loss=nan\n\
                  epoch=2 acc=0.5\nno newline at the end";
    assert_eq!(outcome.stdout, stdout);
    assert!(outcome.stderr.contains("cold feet") && outcome.stderr.contains("\nnote\n"), "{}", outcome.stderr);

    let mut claims = world.invocations("claim");
    let secrets: Vec<_> = claims.iter_mut().map(|claim| claim.as_object_mut().unwrap().remove("secret")).collect();
    assert_eq!(secrets[0].as_ref().and_then(Value::as_str).map(str::len), Some(32));
    assert_eq!(
        secrets,
        [secrets[0].clone(), world.invocations("end")[0].get("secret").cloned()],
        "one for the attempt"
    );
    let claim = json!({"request": "claim", "sweep": "s-1", "index": 7, "job": "0f:1", "attempt": 2, "token": TOKEN,
                       "instance": "i-0abc", "zone": "us-east-1a"});
    assert_eq!(claims, [claim.clone(), claim]);

    assert_eq!(world.output("parameters.json").unwrap(), br#"{"lr":0.1,"name":"a b"}"#);
    let big = std::fs::read(world.path("storage/7/model/big file.bin")).unwrap();
    assert!(world.output("model/big%20file.bin").unwrap() == big, "the large file differs");
    assert_eq!(world.output("leak"), None);
    let log = String::from_utf8(world.output("train.log").unwrap()).unwrap();
    assert!(log.contains("epoch=2 acc=0.5\n") && log.contains("note\n"), "{log}");
    let record = String::from_utf8(world.output("metrics.jsonl").unwrap()).unwrap();
    let mut lines: Vec<Value> = record.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.sort_by(|one, other| one["step"].as_f64().partial_cmp(&other["step"].as_f64()).unwrap());
    for line in &mut lines {
        assert!(line.as_object_mut().unwrap().remove("time").is_some_and(|time| time.as_f64() > Some(1.7e9)));
    }
    let expected = [
        json!({"step": 1.0, "metrics": {"acc": 0.9, "loss": "NaN"}}),
        json!({"step": 2.0, "metrics": {"acc": 0.5}}),
        json!({"step": 3.0, "metrics": {"val/loss": 0.25}}),
    ];
    assert_eq!(lines, expected);

    let ends = world.invocations("end");
    let end = ends.last().unwrap();
    assert_eq!(ends.len(), 2, "the lost end was repeated");
    let metrics = json!({"acc": {"last": 0.5, "step": 2.0, "min": 0.5, "max": 0.9},
                         "loss": {"last": "NaN", "step": 1.0, "min": "NaN", "max": "NaN"},
                         "val/loss": {"last": 0.25, "step": 3.0, "min": 0.25, "max": 0.25}});
    assert_eq!((&end["exit_code"], &end["metrics"]), (&json!(0), &metrics));
    let bytes: usize = world.seen(|seen| seen.objects.values().map(Vec::len).sum());
    assert_eq!(end["outputs"], json!({"files": 4, "bytes": bytes}));
    assert!(end["seconds"].as_f64().unwrap() > 0.0);
    let sequences: Vec<_> = world.invocations("report").iter().map(|report| report["sequence"].as_u64()).collect();
    assert!(sequences.iter().all(|sequence| *sequence < end["sequence"].as_u64()));

    assert_eq!(std::fs::read_dir(world.path("tmp")).unwrap().count(), 0, "temporary files are left");
}

/// Extra variables, the command, the exit code, and the message in the log.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str], i32, &'a str);

#[tokio::test(flavor = "multi_thread")]
async fn the_command_ends_the_job_with_its_own_code() {
    let world = World::start(kind, well).await;
    let by_hand: &[(&str, &str)] = &[("SPOTSWEEP_SWEEP", "")];
    let cases: [Case; 11] = [
        (&[], &["sh", "-c", "exit 3"], 3, "ended with code 3"),
        // With the code of an interruption, Batch would start the failed command again.
        (&[], &["sh", "-c", "exit 75"], 1, "ended with code 75"),
        (&[], &["sh", "-c", "kill -KILL $$"], 137, "ended with code 137"),
        (&[], &["no-such-command"], 127, "cannot start `no-such-command`"),
        (&[], &["/etc/passwd"], 126, "cannot start `/etc/passwd`"),
        (&[], &[], 78, "no command to run"),
        (&[], &["echo", "${envvar:NOWHERE}"], 78, "NOWHERE"),
        (&[("AWS_BATCH_JOB_ID", "")], &["true"], 78, "AWS_BATCH_JOB_ID is missing (AWS Batch"),
        (&[("SPOTSWEEP_FIRST_INDEX", "5")], &["true"], 76, "trial 7, not 6"),
        (by_hand, &["sh", "-c", "exit 4"], 4, "the command runs as it is"),
        (by_hand, &["no-such-command"], 127, "cannot start"),
    ];
    for (extra, command, code, message) in cases {
        let outcome = world.run(extra, command).await;
        assert_eq!(outcome.code, Some(code), "{command:?} {}", outcome.stderr);
        assert!(outcome.stderr.contains(message), "{command:?} {}", outcome.stderr);
    }
    let reported: Vec<_> = world.invocations("end").iter().map(|end| end["exit_code"].clone()).collect();
    assert_eq!(reported, [3, 1, 137, 127, 126]);
    assert!(String::from_utf8(world.output("train.log").unwrap()).unwrap().contains("Permission denied"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_sees_the_gpus_that_ecs_has_given_to_it() {
    let world = World::start(kind, well).await;
    let (given, chosen) = (|gpus| ("NVIDIA_VISIBLE_DEVICES", gpus), |gpus| ("CUDA_VISIBLE_DEVICES", gpus));
    let cases: [(&[(&str, &str)], &str); 7] = [
        (&[given("GPU-5a2c,GPU-77f0")], "GPU-5a2c,GPU-77f0"),
        (&[given("GPU-5a2c"), chosen("1")], "1"),
        // CUDA takes this for no GPU.
        (&[given("GPU-5a2c"), chosen("")], ""),
        (&[given("all")], "unset"),
        (&[given("void")], "unset"),
        (&[given("0,1")], "unset"),
        (&[], "unset"),
    ];
    for (extra, sees) in cases {
        let outcome = world.run(extra, &["sh", "-c", "echo ${CUDA_VISIBLE_DEVICES-unset}"]).await;
        assert_eq!(outcome.stdout.trim(), sees, "{extra:?} {}", outcome.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_grant_nothing_is_started() {
    fn refused(_: &str, _: usize) -> Answer {
        Answer::Json(json!({"refused": {"reason": {"stop": "fenced", "attempt": 1}}}))
    }
    fn unknown(_: &str, _: usize) -> Answer {
        Answer::Status(404)
    }
    fn down(_: &str, _: usize) -> Answer {
        Answer::Status(500)
    }
    fn strange(_: &str, _: usize) -> Answer {
        Answer::Json(json!({"accepted": {}}))
    }
    // How trial-claim answers, the exit code, the least and most calls, and the message in the log.
    let cases: [(world::Invoke, i32, usize, usize, &str); 4] = [
        (refused, 77, 1, 1, "a later one has the trial"),
        (unknown, 76, 1, 1, "trial-claim"),
        // The trial is not the cause: the next attempt may get an answer.
        (down, 75, 2, 20, "trying again"),
        (strange, 76, 1, 1, "does not fit"),
    ];
    for (invoke, code, least, most, message) in cases {
        let world = World::start(invoke, well).await;
        let outcome = world.run(&[], &["touch", world.path("started").to_str().unwrap()]).await;
        assert_eq!(outcome.code, Some(code), "{}", outcome.stderr);
        assert!(outcome.stderr.contains(message), "{}", outcome.stderr);
        assert!((least..=most).contains(&world.invocations("claim").len()), "{}", outcome.stderr);
        assert!(!world.path("started").exists());
    }
}

/// Another runner has claimed the trial, and reports for it. The job must not end as a success with its figures.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_end_is_no_success() {
    fn refused(request: &str, nth: usize) -> Answer {
        match request {
            "end" => Answer::Json(json!({"refused": {"reason": {"stop": "fenced", "attempt": 1}}})),
            _ => kind(request, nth),
        }
    }
    let world = World::start(refused, well).await;
    let outcome = world.run(&[], &["true"]).await;
    assert_eq!(outcome.code, Some(77), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("a later one has the trial"), "{}", outcome.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_reports_do_no_harm_and_a_refused_one_stops_the_training() {
    fn fenced(request: &str, nth: usize) -> Answer {
        match (request, nth) {
            ("claim" | "access", nth) => kind(request, nth),
            ("report", 0) => Answer::FunctionError(json!("hiccup")),
            _ => Answer::Json(json!({"refused": {"reason": {"stop": "fenced", "attempt": 1}}})),
        }
    }
    let world = World::start(fenced, well).await;
    let script = r#"echo acc=1; touch "$SPOTSWEEP_OUTPUT/model"; trap 'exit 0' TERM; while :; do sleep 0.1; done"#;
    let outcome = world.run(&[("SPOTSWEEP_UPLOAD_SECONDS", "60")], &["sh", "-c", script]).await;

    assert_eq!(outcome.code, Some(77), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("hiccup") && outcome.stderr.contains("a later one has the trial"),
        "{}",
        outcome.stderr
    );
    let reports = world.invocations("report");
    assert_eq!(reports[0]["metrics"], reports[1]["metrics"], "the lost figures were sent again");
    assert_eq!(world.invocations("end"), [] as [Value; 0]);
    assert!(world.seen(|seen| seen.objects.is_empty()), "the folder is the newer attempt's");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_not_collected_is_not_a_success() {
    fn broken(method: &Method, key: &str) -> StatusCode {
        match *method {
            Method::PUT if key.ends_with("model") => StatusCode::FORBIDDEN,
            _ => StatusCode::OK,
        }
    }
    let small = "echo fine; cd $SPOTSWEEP_OUTPUT; echo 1 > model; echo 2 > other";
    let large = "echo fine; cd $SPOTSWEEP_OUTPUT; head -c 20000000 /dev/zero > model; echo 2 > other";
    for (script, exit, expected) in [(small, 0, 74), (large, 0, 74), (small, 9, 9)] {
        let world = World::start(kind, broken).await;
        let script = format!("{script}; exit {exit}");
        let outcome = world.run(&[("SPOTSWEEP_UPLOAD_SECONDS", "60")], &["sh", "-c", &script]).await;
        assert_eq!(outcome.code, Some(expected), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("trials/7/model failed"), "{}", outcome.stderr);
        assert_eq!(world.invocations("end")[0]["exit_code"], expected);
        assert_eq!(world.output("model"), None);
        assert_eq!(world.output("other").unwrap(), b"2\n", "the rest is collected");
        assert_eq!(world.output("train.log").unwrap(), b"fine\n");
        let count = |start: &str| world.seen(|seen| seen.requests.iter().filter(|r| r.starts_with(start)).count());
        assert_eq!(count("POST"), count("DELETE"), "every multipart upload is given up");
        assert_eq!(count("POST") > 0, script.contains("head"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_go_up_while_the_command_runs() {
    let world = World::start(kind, well).await;
    let script = format!(
        "cd $SPOTSWEEP_OUTPUT; echo 1 > model; while ! test -e {}; do sleep 0.05; done; echo 22 > model",
        world.path("go").display()
    );
    let runner = world.spawn(&[], &["sh", "-c", &script]);
    until("the first upload", || world.output("model").is_some()).await;
    assert_eq!(world.output("model").unwrap(), b"1\n");
    std::fs::write(world.path("go"), "").unwrap();
    let outcome = world.outcome(runner).await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(world.output("model").unwrap(), b"22\n");
    let puts = world.seen(|seen| seen.requests.iter().filter(|request| request.contains("/model?")).count());
    assert_eq!(puts, 2, "an unchanged file is sent once");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_stop_signal_no_exit_code_is_an_end() {
    let saves = r#"trap 'echo saved > "$SPOTSWEEP_OUTPUT/model"; exit CODE' TERM INT"#;
    let finishes = saves.replace("exit", r#"touch "$SPOTSWEEP_FINISHED"; exit"#);
    // The reaction, the signal, the job's exit code, and the code that the end is reported with.
    for (reaction, signal, expected, ended) in [
        (saves.replace("CODE", "0"), Signal::TERM, 75, None),
        (saves.replace("CODE", "5"), Signal::INT, 75, None),
        ("echo kept > $SPOTSWEEP_OUTPUT/model".to_owned(), Signal::TERM, 75, None),
        ("trap '' TERM; echo kept > $SPOTSWEEP_OUTPUT/model".to_owned(), Signal::TERM, 75, None),
        (finishes.replace("CODE", "5"), Signal::TERM, 75, None),
        (finishes.replace("CODE", "0").replace("touch", "mkdir"), Signal::TERM, 75, None),
        (finishes.replace("CODE", "0").replace("touch", "ln -s /etc/passwd"), Signal::TERM, 75, None),
        (finishes.replace("CODE", "0"), Signal::TERM, 0, Some(0)),
    ] {
        let world = World::start(kind, well).await;
        let script = format!("{reaction}; touch {}; while :; do sleep 0.1; done", world.path("ready").display());
        let runner = world.spawn(&[("SPOTSWEEP_GRACE_SECONDS", "1")], &["sh", "-c", &script]);
        until("the command runs", || world.path("ready").exists()).await;
        send(&runner, signal);
        let outcome = world.outcome(runner).await;
        assert_eq!(outcome.code, Some(expected), "{reaction} {}", outcome.stderr);
        assert!(world.output("model").is_some(), "{reaction}");
        let ends: Vec<_> = world.invocations("end").iter().map(|end| end["exit_code"].as_i64()).collect();
        assert_eq!(ends, ended.map(Some).into_iter().collect::<Vec<_>>(), "{reaction}");
        assert_eq!(world.invocations("release").len(), usize::from(ended.is_none()), "{reaction}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_metadata_service_that_misses_answers_fails_no_attempt() {
    let world = World::start(kind, well).await;
    world.miss(6);
    // ECS sets no region in the container.
    let script = r#"echo "$AWS_REGION $AWS_DEFAULT_REGION""#;
    let outcome = world.run(&[("AWS_REGION", "")], &["sh", "-c", script]).await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(outcome.stdout, "us-west-2 us-west-2\n");
    let claim = &world.invocations("claim")[0];
    assert_eq!((&claim["instance"], &claim["zone"]), (&json!("i-0abc"), &json!("us-east-1a")), "{claim}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_outlives_the_runner() {
    let world = World::start(kind, well).await;
    let gone = |name: &str| {
        let pid = read(&world.path(name)).trim().parse().ok().and_then(Pid::from_raw);
        pid.is_some_and(|pid| test_kill_process(pid).is_err())
    };
    // A helper of the command that keeps its output open.
    let script = format!("sleep 600 & echo $! > {}", world.path("helper").display());
    let outcome = world.run(&[], &["sh", "-c", &script]).await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    until("the helper is gone", || gone("helper")).await;

    // The runner is killed, as on an instance that fails.
    let script = format!("echo $$ > {}; exec sleep 600", world.path("command").display());
    let mut runner = world.spawn(&[], &["sh", "-c", &script]);
    until("the command runs", || read(&world.path("command")).ends_with('\n')).await;
    runner.kill().await.unwrap();
    until("the command is gone", || gone("command")).await;
}
