//! MLflow: the attempts of a trial are one run if the job names a server.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use serde_json::{Value, json};

use crate::world::{Outcome, World, generous, well};

/// A server with MLflow's REST API: one run in one of two experiments, once `runs` contains it.
struct Server {
    runs: Value,
    seen: Mutex<Vec<(String, Value, HeaderMap)>>,
}

async fn answer(State(server): State<Arc<Server>>, request: Request) -> String {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let path = head.uri.path().to_owned();
    let answer = match path.as_str() {
        "/at/api/2.0/mlflow/experiments/search" => {
            json!({"experiments": [{"experiment_id": "0"}, {"experiment_id": "12"}]})
        }
        "/at/api/2.0/mlflow/runs/search" => json!({"runs": server.runs}),
        _ => panic!("{path}"),
    };
    server.seen.lock().unwrap().push((path, serde_json::from_slice(&body).unwrap(), head.headers));
    answer.to_string()
}

async fn serve(runs: Value) -> (Arc<Server>, String) {
    let server = Arc::new(Server { runs, seen: Mutex::default() });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/at/", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer).with_state(Arc::clone(&server));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (server, url)
}

fn run(id: &str, parent: Option<&str>) -> Value {
    let tags: Vec<Value> =
        parent.map(|parent| json!({"key": "mlflow.parentRunId", "value": parent})).into_iter().collect();
    json!({"info": {"run_id": id, "experiment_id": "12"}, "data": {"tags": tags}})
}

/// Prints which run it gets, saves a checkpoint, and ends as `$END` says.
const TRAINING: &str = r#"
    echo "run: ${MLFLOW_RUN_ID-none}, tags: ${MLFLOW_RUN_CONTEXT-none}"
    if [ -e "$SPOTSWEEP_CHECKPOINTS/epoch_1" ]; then
        [ -n "$MLFLOW_RUN_ID" ] && eval "$END"
        exit 0
    fi
    head -c 100 /dev/zero > "$SPOTSWEEP_CHECKPOINTS/epoch_1"
    exit 9
"#;

async fn attempt(world: &World, number: &str, url: &str, end: &str) -> Outcome {
    let root = world.path(&format!("root-{number}"));
    let extra = [
        ("SPOTSWEEP_ROOT", root.to_str().unwrap()),
        ("AWS_BATCH_JOB_ATTEMPT", number),
        ("MLFLOW_TRACKING_URI", url),
        ("MLFLOW_TRACKING_TOKEN", "s3cr3t"),
        ("END", end),
    ];
    world.run(&extra, &["sh", "-c", TRAINING]).await
}

async fn world() -> World {
    let world = World::start(generous, well).await;
    std::fs::create_dir_all(world.path("volume")).unwrap();
    world.attach(&world.path("volume"));
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_attempt_goes_on_with_the_trial_s_run() {
    let (server, url) = serve(json!([run("child", Some("r1")), run("r1", None)])).await;
    let world = world().await;
    let first = attempt(&world, "1", &url, "true").await;
    let tags = r#"{"spotsweep.sweep":"s-1","spotsweep.trial":"s-1-7"}"#;
    assert!(first.stdout.contains(&format!("run: none, tags: {tags}")), "{}", first.stdout);
    assert!(server.seen.lock().unwrap().is_empty(), "a first attempt has no run to go on with");

    let second = attempt(&world, "2", &url, "true").await;
    assert_eq!(second.code, Some(0), "{}", second.stderr);
    assert!(second.stdout.contains("run: r1, ") && second.stderr.contains("goes on with run r1"), "{second:?}");
    assert!(!second.stderr.contains("s3cr3t"), "{}", second.stderr);
    let seen = server.seen.lock().unwrap();
    let (_, search, headers) = seen.last().unwrap();
    assert_eq!(search["experiment_ids"], json!(["0", "12"]));
    assert_eq!(search["filter"], "tags.`spotsweep.trial` = 's-1-7'");
    assert_eq!(headers["authorization"], "Bearer s3cr3t");
}

/// A script may log a parameter that differs between attempts, such as its host. This does not make its checkpoint bad.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_mlflow_refuses_costs_one_attempt_and_no_checkpoint() {
    let (_server, url) = serve(json!([run("r1", None)])).await;
    let world = world().await;
    attempt(&world, "1", &url, "true").await;
    let refused = "echo 'MlflowException: Changing param values is not allowed. Param with key=x' >&2; exit 1";
    let second = attempt(&world, "2", &url, refused).await;
    assert_eq!(second.code, Some(75), "{}", second.stderr);
    assert!(second.stderr.contains("the next attempt makes a new one"), "{}", second.stderr);
    let third = attempt(&world, "3", &url, refused).await;
    assert_eq!(third.code, Some(0), "{}", third.stderr);
    assert!(third.stdout.contains("run: none, "), "{}", third.stdout);
    assert!(world.path("volume/checkpoints/epoch_1").exists());
    assert!(world.invocations("release").iter().all(|release| release["rollback"].is_null()));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_one_run_the_training_makes_its_own() {
    let (_server, url) = serve(json!([run("r1", None), run("r2", None)])).await;
    let world = world().await;
    attempt(&world, "1", &url, "true").await;
    let several = attempt(&world, "2", &url, "true").await;
    assert!(several.stdout.contains("run: none, "), "it is not known which one: {}", several.stdout);
    let gone = attempt(&world, "3", "http://127.0.0.1:9", "true").await;
    assert_eq!(gone.code, Some(0), "{}", gone.stderr);
    assert!(gone.stderr.contains("MLflow's run of an earlier attempt is not known"), "{}", gone.stderr);
}
