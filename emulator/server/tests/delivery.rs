//! Delivers events to Lambda, at an endpoint that answers as EventBridge and Lambda do.
#![allow(clippy::unwrap_used, clippy::panic, clippy::needless_pass_by_value, missing_docs)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use spotsweep_emulator::{Config, Emulator, Injection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The rules, the invocations with their events, and how many invocations still fail.
#[derive(Default)]
struct Endpoint {
    rules: Vec<Value>,
    failing: Mutex<usize>,
    invoked: Mutex<Vec<(String, Value)>>,
}

async fn answer(State(endpoint): State<Arc<Endpoint>>, request: Request) -> Response {
    let target = request.headers().get("x-amz-target").map(|name| name.to_str().unwrap().to_owned());
    let path = request.uri().path().to_owned();
    let kind = request.headers().get("x-amz-invocation-type").cloned();
    let body: Bytes = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let reply = match target.as_deref() {
        // Each page has one rule, so that paging has to be followed.
        Some("AWSEvents.ListRules") => {
            let at = body["NextToken"].as_str().map_or(0, |token| token.parse().unwrap());
            let next = (at + 1 < endpoint.rules.len()).then(|| (at + 1).to_string());
            json!({"Rules": [endpoint.rules[at]], "NextToken": next})
        }
        Some("AWSEvents.ListTargetsByRule") => {
            let name = body["Rule"].as_str().unwrap();
            let arn = format!("arn:aws:lambda:us-east-1:000000000000:function:{name}");
            let group = "arn:aws:logs:us-east-1:000000000000:log-group:/aws/events/recorded";
            let target = if name == "recorded" { group } else { &arn };
            json!({"Targets": [{"Id": "1", "Arn": target}, {"Id": "2", "Arn": "arn:aws:sqs:us-east-1:000000000000:q"}]})
        }
        Some("AWSEvents.TestEventPattern") => {
            let pattern: Value = serde_json::from_str(body["EventPattern"].as_str().unwrap()).unwrap();
            let event: Value = serde_json::from_str(body["Event"].as_str().unwrap()).unwrap();
            let hit = |name: &str| pattern[name].as_array().is_none_or(|any| any.contains(&event[name]));
            json!({"Result": hit("source") && hit("detail-type")})
        }
        Some(other) => panic!("unexpected call {other}"),
        None => {
            assert_eq!(kind.unwrap(), "Event");
            let mut failing = endpoint.failing.lock().unwrap();
            if *failing > 0 {
                *failing -= 1;
                return StatusCode::INTERNAL_SERVER_ERROR.into_response();
            }
            endpoint.invoked.lock().unwrap().push((path, body));
            return StatusCode::ACCEPTED.into_response();
        }
    };
    (StatusCode::OK, reply.to_string()).into_response()
}

fn rule(name: &str, state: &str, pattern: Value) -> Value {
    json!({"Name": name, "State": state, "EventPattern": pattern.to_string()})
}

fn event(source: &str, id: usize) -> Value {
    json!({"version": "0", "id": id.to_string(), "source": source, "detail-type": "Change",
        "account": "000000000000", "time": "2026-11-21T00:00:00Z", "region": "us-east-1",
        "resources": [], "detail": {"id": id}})
}

struct Rig {
    endpoint: Arc<Endpoint>,
    emulator: Emulator,
    server: tokio::task::JoinHandle<()>,
    _folder: tempfile::TempDir,
}

impl Rig {
    async fn new(injection: Injection, failing: usize) -> Rig {
        let endpoint = Arc::new(Endpoint {
            rules: vec![
                rule("batch", "ENABLED", json!({"source": ["aws.batch"], "detail-type": ["Change"]})),
                rule("off", "DISABLED", json!({"source": ["aws.batch"]})),
                rule("other-type", "ENABLED", json!({"source": ["aws.batch"], "detail-type": ["Other"]})),
                rule("all", "ENABLED", json!({"detail-type": ["Change"]})),
                rule("recorded", "ENABLED", json!({"source": ["aws.ec2"], "detail-type": ["Change"]})),
            ],
            failing: Mutex::new(failing),
            ..Endpoint::default()
        });
        let router = Router::new().fallback(answer).with_state(endpoint.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let folder = tempfile::tempdir().unwrap();
        let config = Config { injection, ..Config::new(folder.path().to_owned()) };
        let emulator = Emulator::serve(config).await.unwrap();
        emulator.deliver_to(&format!("http://{address}"));
        Rig { endpoint, emulator, server, _folder: folder }
    }

    /// Returns the functions and event ids, sorted, and the emulator's own counts.
    async fn finish(self) -> (Vec<String>, Value) {
        self.emulator.drained().await;
        let counts = self.emulator.snapshot()["events"].clone();
        self.emulator.shutdown().await;
        self.server.abort();
        let invoked = self.endpoint.invoked.lock().unwrap();
        let name = |path: &str| path.split('/').nth(3).unwrap().rsplit("%3A").next().unwrap().to_owned();
        let mut found: Vec<_> =
            invoked.iter().map(|(path, body)| format!("{} {}", name(path), body["id"].as_str().unwrap())).collect();
        found.sort();
        (found, counts)
    }
}

#[tokio::test]
async fn events_reach_the_functions_of_matching_enabled_rules_whole() {
    let rig = Rig::new(Injection::default(), 0).await;
    rig.emulator.deliver(event("aws.batch", 1)).await;
    assert_eq!(rig.endpoint.invoked.lock().unwrap()[0].1, event("aws.batch", 1));
    rig.emulator.deliver(event("aws.ec2", 2)).await;
    let (found, counts) = rig.finish().await;
    assert_eq!(found, ["all 1", "all 2", "batch 1"]);
    assert_eq!((&counts["invoked"], &counts["failed"], &counts["outstanding"]), (&json!(3), &json!(0), &json!(0)));
}

#[tokio::test]
async fn failures_are_retried_a_bounded_number_of_times() {
    let rig = Rig::new(Injection::default(), 3).await;
    rig.emulator.deliver(event("aws.ec2", 1)).await;
    let (found, counts) = rig.finish().await;
    assert_eq!((found, &counts["failed"]), (vec!["all 1".to_owned()], &json!(0)));

    let rig = Rig::new(Injection::default(), usize::MAX).await;
    rig.emulator.deliver(event("aws.ec2", 1)).await;
    let tried = usize::MAX - *rig.endpoint.failing.lock().unwrap();
    assert_eq!(tried, 6);
    let (found, counts) = rig.finish().await;
    assert_eq!((found.len(), &counts["failed"]), (0, &json!(1)));
}

#[tokio::test]
async fn injected_trouble_is_real_and_never_loses_what_aws_promises() {
    let injection = Injection {
        duplicate: 1.0,
        delay: (Duration::from_millis(1), Duration::from_millis(20)),
        reorder: 0.1,
        lose_best_effort: 1.0,
        seed: 3,
    };
    let rig = Rig::new(injection, 0).await;
    let all = (0..10).map(|id| event(if id < 5 { "aws.batch" } else { "aws.ec2" }, id));
    for event in all {
        rig.emulator.deliver(event).await;
    }
    let (found, counts) = rig.finish().await;
    let wanted: Vec<_> = (0..20).map(|n| format!("{} {}", if n < 10 { "all" } else { "batch" }, n % 10 / 2)).collect();
    assert_eq!(found, wanted);
    assert_eq!((&counts["lost"], &counts["emitted"]), (&json!(5), &json!(10)));
}

#[tokio::test]
async fn a_rule_records_events_in_its_log_group() {
    let rig = Rig::new(Injection::default(), 0).await;
    let read = async |body: Value| -> (u16, Value) {
        let url = rig.emulator.endpoint();
        let request = format!(
            "POST / HTTP/1.1\r\nhost: {host}\r\nx-amz-target: Logs_20140328.FilterLogEvents\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{body}",
            body.to_string().len(),
            host = url.trim_start_matches("http://")
        );
        let mut stream = tokio::net::TcpStream::connect(url.trim_start_matches("http://")).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap())
    };
    let group = |more: Value| {
        let mut body = json!({"logGroupName": "/aws/events/recorded"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    assert_eq!(read(group(json!({}))).await.1["__type"], "ResourceNotFoundException");
    for (source, id) in [("aws.ec2", 1), ("aws.batch", 2), ("aws.ec2", 3)] {
        rig.emulator.deliver(event(source, id)).await;
    }
    let (_, first) = read(group(json!({"limit": 1}))).await;
    let (_, second) = read(group(json!({"limit": 5, "nextToken": first["nextToken"]}))).await;
    assert_eq!(second["nextToken"], Value::Null);
    let messages = [&first, &second].map(|page| page["events"][0]["message"].as_str().unwrap().to_owned());
    assert_eq!(messages, [event("aws.ec2", 1), event("aws.ec2", 3)].map(|event| event.to_string()));
    assert!(first["events"][0]["ingestionTime"].as_i64().unwrap() > 1_700_000_000_000);
    let later =
        read(group(json!({"startTime": first["events"][0]["ingestionTime"].as_i64().unwrap() + 60_000}))).await.1;
    assert_eq!(later["events"], json!([]));
    for mistake in [json!({"limit": 0}), json!({"nextToken": "x"}), json!({"filterPattern": "x"})] {
        assert_eq!(read(group(mistake.clone())).await.0, 400, "{mistake}");
    }
    rig.finish().await;
}
