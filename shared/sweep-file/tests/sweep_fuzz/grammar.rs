//! Files by the grammar of sweep files: most parts are valid, and some have the right shape with a wrong value.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value, json};

/// There are few names, so that conditions, exclusions and duplicates often share one.
const NAMES: [&str; 8] = ["lr", "units", "optimizer", "group", "Ω", "a.b", "++lr", "a=b"];

type Json = BoxedStrategy<Value>;

/// Returns a whole file, in flow or block style.
pub(super) fn file() -> BoxedStrategy<Vec<u8>> {
    let whole = prop_oneof![6 => wandb(), 2 => wrapped_list(), 1 => list()];
    (whole, any::<bool>())
        .prop_map(|(value, is_block)| {
            let mut text = String::new();
            if is_block {
                block(&value, 0, &mut text);
            } else {
                text = value.to_string();
            }
            text.into_bytes()
        })
        .boxed()
}

/// Writes values in block style where several lines are possible, and otherwise in flow style.
fn block(value: &Value, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            for (key, value) in entries {
                text.push_str(&format!("{indent}{}:\n", Value::from(key.as_str())));
                block(value, depth + 1, text);
            }
        }
        Value::Array(values) if !values.is_empty() => {
            for value in values {
                text.push_str(&format!("{indent}-\n"));
                block(value, depth + 1, text);
            }
        }
        _ => text.push_str(&format!("{indent}{value}\n")),
    }
}

fn one_of(values: &'static [&'static str]) -> Json {
    select(values).prop_map(Value::from).boxed()
}

fn number() -> Json {
    prop_oneof![
        4 => (0_i64..10).prop_map(Value::from),
        2 => (-100_i64..1000).prop_map(Value::from),
        4 => (0.0..1.0).prop_map(|number: f64| json!(number)),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_filter("JSON has no others", |number| number.is_finite()).prop_map(|number| json!(number)),
    ]
    .boxed()
}

fn scalar() -> Json {
    prop_oneof![
        6 => number(),
        3 => one_of(&["adam", "sgd", "", "a b", "1", "true", "${args}", "é이", "--x=\"y\""]),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
    ]
    .boxed()
}

fn scalars() -> Json {
    prop::collection::vec(scalar(), 1..5).prop_map(Value::from).boxed()
}

/// Returns a mapping with some of `keys`, each with one of its own values.
fn some_of(keys: Vec<(&'static str, Json)>) -> Json {
    let most = keys.len();
    subsequence(keys, 0..=most)
        .prop_flat_map(|keys| keys.into_iter().map(|(key, value)| (Just(key), value)).collect::<Vec<_>>())
        .prop_map(|entries| entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
        .prop_map(Value::Object)
        .boxed()
}

fn named(values: Json, names: std::ops::Range<usize>) -> Json {
    prop::collection::vec((prop_oneof![12 => select(&NAMES[..4]), 1 => select(NAMES.as_slice())], values), names)
        .prop_map(|entries| Value::Object(entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()))
        .boxed()
}

fn pattern() -> Json {
    let value = prop_oneof![one_of(&["adam", "sgd"]), (0_i64..10).prop_map(Value::from), scalars()];
    named(value.boxed(), 1..3)
}

fn with(key: &'static str, value: Json, to: Json) -> Json {
    (value, to)
        .prop_map(move |(value, mut to)| {
            to[key] = value;
            to
        })
        .boxed()
}

/// Returns one entry of `parameters`, in all its forms.
fn parameter() -> Json {
    let limits = (-20_i64..20, 1_i64..40).prop_map(|(min, more)| json!({"min": min, "max": min + more}));
    let real = (0.001..1.0, 0.001..100.0).prop_map(|(min, more): (f64, f64)| json!({"min": min, "max": min + more}));
    let curves = &[
        "uniform",
        "q_uniform",
        "log_uniform_values",
        "q_log_uniform_values",
        "inv_log_uniform_values",
        "log_uniform",
        "inv_log_uniform",
        "q_log_uniform",
    ];
    let bells = &["normal", "q_normal", "log_normal", "q_log_normal", "beta", "q_beta", "unifrm"];
    let shape = some_of(vec![("mu", number()), ("sigma", number()), ("q", number()), ("a", number()), ("b", number())]);
    let weights = prop::collection::vec(scalar(), 2..5).prop_map(|values| {
        let share = 1.0 / values.len() as f64;
        json!({"probabilities": vec![share; values.len()], "values": values})
    });
    let leaf = prop_oneof![
        3 => scalars().prop_map(|values| json!({"values": values})),
        2 => scalar().prop_map(|value| json!({"value": value})),
        3 => limits.clone(),
        2 => real.clone(),
        2 => with("q", number(), with("distribution", one_of(&["q_uniform"]), limits.boxed())),
        2 => with("distribution", one_of(curves), real.boxed()),
        2 => with("distribution", one_of(bells), shape),
        1 => weights,
        1 => some_of(vec![("min", scalar()), ("max", scalar()), ("values", scalar()), ("vlaue", scalar())]),
    ];
    let leaf = prop_oneof![5 => leaf.clone(), 1 => with("when", pattern(), leaf.boxed())].boxed();
    leaf.prop_recursive(3, 12, 3, |inner| {
        named(inner.boxed(), 1..3).prop_map(|parameters| json!({"parameters": parameters}))
    })
    .boxed()
}

fn data_set() -> Json {
    let right = one_of(&["s3://bucket", "s3://bucket/a b/", "s3://bucket/x.tar"]);
    let url =
        prop_oneof![6 => right, 1 => one_of(&["s3://bucket/*", "s3://ü/", "/data", "arn:aws:s3:::bucket/x"])].boxed();
    let unpack = any::<bool>().prop_map(Value::from).boxed();
    prop_oneof![2 => url.clone(), 1 => with("from", url, some_of(vec![("unpack", unpack)]))].boxed()
}

fn secret() -> Json {
    let right = one_of(&[
        "A",
        "a-b",
        "hf_",
        "2",
        "/a/b",
        "arn:aws:ssm:r:1:parameter/a/b",
        "/aws/reference/secretsmanager/a/b:k",
        "arn:aws:secretsmanager:r:1:secret:a-b-1a2B3c:k::",
    ]);
    let wrong = one_of(&[
        "/a/",
        "/aws/b",
        "/aws/reference/secretsmanager/a:",
        "arn:aws:ssm:r:1",
        "arn:aws:secretsmanager:r:1:secret:a",
        "a/b",
    ]);
    prop_oneof![6 => right, 1 => wrong].boxed()
}

fn own() -> Json {
    let patterns = prop::collection::vec(pattern(), 1..3).prop_map(Value::from).boxed();
    let workspace = some_of(vec![
        ("size", one_of(&["100GiB", "1", "99999TiB"])),
        ("snapshot", one_of(&["snap-0a", "vol-0a"])),
        ("volume", one_of(&["vol-0123456789abcdef0", "my data", ""])),
    ]);
    let pairs =
        |first: &'static str, second: &'static str, value: Json| some_of(vec![(first, value.clone()), (second, value)]);
    some_of(vec![
        ("trials", (1_i64..2_000).prop_map(Value::from).boxed()),
        ("seed", (0_i64..9).prop_map(Value::from).boxed()),
        ("order", one_of(&["sorted", "shuffled"])),
        ("repeats", some_of(vec![("parameter", one_of(&["seed", "lr"])), ("values", scalars())])),
        ("exclude", patterns.clone()),
        ("first", patterns),
        ("attempts", (1_i64..=100).prop_map(Value::from).boxed()),
        ("timeout", one_of(&["90m", "3600", "2h"])),
        ("stalled", one_of(&["30m", "3600", "off"])),
        ("fail_fast", one_of(&["on", "off", "false"])),
        ("queue", one_of(&["gpu"])),
        ("code", one_of(&[".", "../train"])),
        ("setup", one_of(&["pip install x", "make"])),
        ("env", named(scalar(), 0..3)),
        ("secrets", prop_oneof![secret().prop_map(|named| json!([named])), named(secret(), 0..3)].boxed()),
        ("data", named(data_set(), 0..3)),
        ("command", one_of(&["python", "${args}"]).prop_map(|element| json!([element])).boxed()),
        ("resources", pairs("vcpus", "gpus", (1_i64..9).prop_map(Value::from).boxed())),
        ("workspace", prop_oneof![Just(json!("off")), workspace].boxed()),
        ("outputs", pairs("include", "exclude", Just(json!(["*.pt"])).boxed())),
        ("budget", pairs("max_usd", "max_hours", number())),
        ("tags", named(scalar(), 0..3)),
    ])
}

/// Adds settings to half of the files, each of them valid or not.
fn with_own(to: Json) -> Json {
    prop_oneof![to.clone(), with("spotsweep", own(), to)].boxed()
}

fn wandb() -> Json {
    let cap = prop_oneof![4 => 1_i64..300, 1 => Just(1_000_000), 1 => any::<i64>()].prop_map(Value::from).boxed();
    let parameters = named(parameter(), 1..5);
    let method = prop_oneof![12 => one_of(&["grid", "random", "bayes"]), 1 => one_of(&["custom", "rnadom"])].boxed();
    let bare = with("parameters", parameters, with("method", method, Just(json!({})).boxed()));
    let capped = prop_oneof![1 => bare.clone(), 4 => with("run_cap", cap, bare)].boxed();
    let metric = Just(json!({"name": "loss", "goal": "minimize"})).boxed();
    let compared = with("metric", metric, capped.clone());
    let stopped = with("early_terminate", early_terminate(), compared.clone());
    with_own(prop_oneof![2 => capped, 3 => compared, 1 => stopped].boxed())
}

fn early_terminate() -> Json {
    let count = prop_oneof![4 => 1_i64..100, 1 => any::<i64>()].prop_map(Value::from).boxed();
    let factor = prop_oneof![4 => 1.1..9.0_f64, 1 => any::<f64>()].prop_map(Value::from).boxed();
    let keys = ["min_iter", "max_iter", "s", "grace_period", "max_t", "interval", "min_samples_required"];
    let mut fields: Vec<_> = keys.into_iter().map(|key| (key, count.clone())).collect();
    fields.extend([("eta", factor.clone()), ("reduction_factor", factor), ("strict", scalar())]);
    let kinds = &["hyperband", "asha", "median", "interruption", "hyperbnd"];
    with("type", one_of(kinds), some_of(fields))
}

fn list() -> Json {
    prop::collection::vec(named(scalar(), 0..4), 1..20).prop_map(Value::from).boxed()
}

fn wrapped_list() -> Json {
    with_own(with("trials", list(), Just(json!({})).boxed()))
}
