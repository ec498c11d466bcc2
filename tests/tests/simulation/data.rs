//! Sweeps that name data sets.

use serde_json::{Value, json};
use spotsweep_protocol::claim::DataObject;
use spotsweep_records::sweep::Stage;
use spotsweep_simulation::harness::Harness;

/// A sweep file with these data sets.
fn file(data: &str) -> String {
    format!("trials: [{{lr: 1}}]\nspotsweep:\n  data: {data}\n")
}

/// Drops the file into a bucket with these objects.
async fn dropped(data: &str, keys: &[&str]) -> Harness {
    let harness = Harness::new(1);
    keys.iter().for_each(|key| harness.cloud.put(key, key.as_bytes()));
    harness.deliver(&harness.put("s.yaml", &file(data))).await.unwrap();
    harness
}

fn listed(harness: &Harness, name: &str) -> Vec<String> {
    let sweep = &harness.store.state().0[0];
    let text = harness.cloud.get(&format!("results/{}/data/{name}.jsonl", sweep.id)).unwrap();
    let text = String::from_utf8(text).unwrap();
    text.lines().map(|line| serde_json::from_str::<DataObject>(line).unwrap().key).collect()
}

fn pinned(harness: &Harness) -> Value {
    let sweep = &harness.store.state().0[0];
    assert_eq!(sweep.stage, Stage::Running, "{:?}", harness.cloud.get("sweeps/s.yaml.rejected.json"));
    json!(sweep.plan.as_ref().unwrap())["code"]["data"].clone()
}

/// A page of the simulated S3 has three keys.
#[tokio::test]
async fn all_objects_below_a_prefix_are_pinned_once() {
    let many: Vec<String> = (0..30).map(|n| format!("data/set/{}/{}/{n:02}", n % 5, n % 2)).collect();
    let mut keys: Vec<&str> = many.iter().map(String::as_str).collect();
    keys.extend(["data/set/labels.csv", "data/set-of-others/x", "data/set/flat/1", "data/set/flat/2", "data/other"]);
    let harness =
        dropped("{a: s3://sweeps/data/set/, b: s3://sweeps/data/set, c: s3://sweeps/data/set/labels.csv}", &keys).await;
    let plan = pinned(&harness);
    let mut expected: Vec<&str> = keys.iter().filter_map(|key| key.strip_prefix("data/set/")).collect();
    expected.sort_unstable();
    let mut found = listed(&harness, "a");
    found.sort_unstable();
    assert_eq!(found, expected);
    let bytes: usize = expected.iter().map(|key| key.len() + "data/set/".len()).sum();
    assert_eq!((plan[0]["objects"].clone(), plan[0]["bytes"].clone()), (json!(expected.len()), json!(bytes)));
    let same = |key: &str| plan[0][key] == plan[1][key];
    assert!(["bucket", "prefix", "sha256", "objects"].into_iter().all(same), "{plan}");
    assert_eq!(
        (plan[2]["prefix"].clone(), listed(&harness, "c")),
        (json!("data/set/labels.csv"), vec!["labels.csv".to_owned()])
    );

    let again = dropped("{a: s3://sweeps/data/set/}", &keys).await;
    assert_eq!(pinned(&again)[0]["sha256"], plan[0]["sha256"], "the same objects have the same listing");
    again.cloud.put("data/set/labels.csv", "others");
    again.deliver(&again.put("t.yaml", &file("{a: s3://sweeps/data/set/}"))).await.unwrap();
    let sweeps = again.store.state().0;
    let hashes: Vec<Value> =
        sweeps.iter().map(|sweep| json!(sweep.plan.as_ref().unwrap())["code"]["data"][0]["sha256"].clone()).collect();
    assert_ne!(hashes[0], hashes[1], "another content has another listing");
}

/// The characters of the keys divide it.
#[tokio::test]
async fn a_flat_folder_is_listed_in_parts() {
    let number = |n: u32| format!("{:012}.jpg", n * n * 7919);
    let last = char::MAX;
    let cases: [Vec<String>; 4] = [
        (0..40).map(number).collect(),
        (0..40).map(number).chain(["0".to_owned(), "000".to_owned(), "é".to_owned(), "日本".to_owned()]).collect(),
        ["a", "aa", "aaa", "aaaa", "aaaaa", "aaaaab"].map(str::to_owned).into(),
        vec!["a".to_owned(), format!("a{last}"), format!("a{last}a"), format!("a{last}b"), "b".to_owned()],
    ];
    for names in cases {
        let keys: Vec<String> = names.iter().map(|name| format!("data/set/{name}")).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let harness = dropped("{s: s3://sweeps/data/set/}", &keys).await;
        pinned(&harness);
        let mut expected = names;
        expected.sort_unstable();
        assert_eq!(listed(&harness, "s"), expected, "in the order of S3");
    }
}

#[tokio::test]
async fn a_folder_with_names_of_many_first_characters_takes_few_requests() {
    let names: Vec<String> = ('\u{4e00}'..'\u{4f00}').map(String::from).collect();
    let keys: Vec<String> = names.iter().map(|name| format!("data/set/{name}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let harness = dropped("{s: s3://sweeps/data/set/}", &keys).await;
    assert_eq!(listed(&harness, "s"), names);
    let calls = harness.calls.take();
    let requests = calls.iter().filter(|call| call.action == "ListObjectsV2").count();
    assert!(requests < 250, "{requests} requests");
}

#[tokio::test]
async fn data_that_cannot_be_read_is_answered_at_its_line() {
    let keys = ["data/a", "data/a/b", "data/set/x", "results/other/trials/0/model.pt", "data/up/../x"];
    let cases = [
        ("{s: s3://sweeps/data/none/}", "nothing is at s3://sweeps/data/none/"),
        ("{s: s3://sweeps/data/}", "cannot become a file"),
        ("{s: s3://sweeps/data/up/}", "cannot become a file"),
        ("{s: s3://other-bucket/x/}", "may not list"),
        ("{s: s3://no-such-bucket/x/}", "does not exist"),
        ("{s: s3://far-away/x/}", "is in another region"),
        ("{s: s3://sweeps/data/cold/}", "must be restored"),
        ("{s: s3://sweeps/results/other/}", "is not below data/"),
        ("{s: s3://sweeps/}", "is not below data/"),
    ];
    for (data, expected) in cases {
        let harness = Harness::new(1);
        keys.iter().for_each(|key| harness.cloud.put(key, key.as_bytes()));
        if data.contains("cold") {
            harness.cloud.put("data/cold/x", b"x");
            harness.cloud.set_class("data/cold/x", "DEEP_ARCHIVE");
        }
        harness.deliver(&harness.put("s.yaml", &file(data))).await.unwrap();
        assert_eq!(harness.store.state().0[0].stage, Stage::Rejected, "{data}");
        let answer = harness.cloud.get("sweeps/s.yaml.rejected.json").unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let problem = &answer["problems"][0];
        let message = problem["message"].as_str().unwrap_or_default();
        assert!(problem["line"] == json!(3) && message.contains(expected), "{data}: {answer}");
    }
}

#[tokio::test]
async fn a_job_definition_without_a_folder_for_data_is_refused() {
    for (variables, stage) in [(json!([]), Stage::Rejected), (json!(["SPOTSWEEP_DATA"]), Stage::Running)] {
        let harness = Harness::new(1);
        let variables: Vec<Value> = variables.as_array().unwrap().iter().map(|name| json!({ "name": name })).collect();
        let needs = json!([{ "type": "VCPU", "value": "1" }, { "type": "MEMORY", "value": "1024" }]);
        let container = json!({ "image": "own:1", "environment": variables, "resourceRequirements": needs });
        let own = json!({ "jobDefinitionName": "own", "type": "container", "containerProperties": container });
        harness.cloud.world().register_job_definition(serde_json::from_value(own).unwrap()).unwrap();
        harness.cloud.put("data/set/x", b"x");
        let text = format!("{}  job_definition: own\n", file("{s: s3://sweeps/data/set/}"));
        harness.deliver(&harness.put("s.yaml", &text)).await.unwrap();
        assert_eq!(harness.store.state().0[0].stage, stage);
        if let Some(answer) = harness.cloud.get("sweeps/s.yaml.rejected.json") {
            let problem = serde_json::from_slice::<Value>(&answer).unwrap()["problems"][0].clone();
            assert!(problem["line"] == json!(3) && problem["message"].as_str().unwrap().contains("SPOTSWEEP_DATA"));
        }
    }
}
