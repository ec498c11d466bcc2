//! Secrets: read for each attempt, given to the command, and hidden in everything that leaves the runner.

use std::collections::BTreeMap;

use serde_json::json;

use crate::world::{Answer, World, preparing, read};

const KEY: &str = "s3cr3t/Käy+\"of' a long,value";

async fn world(invoke: fn(&str, usize) -> Answer, secrets: &[(&str, &str)]) -> World {
    let world = World::with_volume(invoke).await;
    let owned = secrets.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    world.keep(owned.collect::<BTreeMap<_, _>>());
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_reaches_the_command_and_nothing_else() {
    fn grants(request: &str, nth: usize) -> Answer {
        let setup = r#"echo "setup has $KEY"; echo "$KEY" >&2"#;
        let env = json!({"PLAIN": "text", "KEY": {"secret": "/spotsweep/b/team-key"}, "WANDB_API_KEY": {"secret": "/team/other"}});
        preparing(json!({"setup": [setup], "env": env}), request, nth)
    }
    let world = world(grants, &[("/spotsweep/b/team-key", KEY), ("/team/other", r#"{"key": "another one"}"#)]).await;
    let script = r#"
        test "$KEY" = "$0" && echo "as stored, $PLAIN, W&B ${WANDB_MODE-online} $WANDB_RESUME"
        echo "score=0.5 $KEY end"
        echo "the key of W&B is another one"
        python3 - <<'EOF'
import base64, json, os, sys, time, urllib.parse
key = os.environ["KEY"]
for text in (key, json.dumps(key), repr(key), urllib.parse.quote(key, safe=""), urllib.parse.quote_plus(key)):
    print("in other forms:", text)
for before in ("", "u", "us"):
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        whole = encode((before + key).encode()).decode()
        print("base64:", whole, file=open(os.environ["SPOTSWEEP_CHECKPOINTS"] + "/forms", "a"))
        print("base64:", encode((before + key + ":x").encode()).decode())
for place in range(1, len(key.encode())):
    sys.stdout.buffer.write(b"cut: " + key.encode()[:place])
    sys.stdout.buffer.flush()
    sys.stdout.buffer.write(key.encode()[place:] + b"\n")
    sys.stdout.buffer.flush()
raise ValueError("bad key " + key)
EOF
    "#;
    let outcome = world.run(&[], &["sh", "-c", script, KEY]).await;
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("as stored, text, W&B online allow"), "{} {}", outcome.stdout, outcome.stderr);
    assert!(
        outcome.stdout.contains("score=0.5 *** end\nthe key of W&B is ***\n")
            && outcome.stdout.contains("setup has ***"),
        "{}",
        outcome.stdout
    );
    let log = String::from_utf8(world.output("train.log").unwrap()).unwrap();
    let reported = world.seen(|seen| json!(seen.invocations).to_string());
    assert!(reported.contains("ValueError: bad key ***"), "{reported}");
    // Files of the training's own are not changed: here they say what must be nowhere else.
    let base64 = read(&world.path("volume/checkpoints/forms"));
    let base64: Vec<&str> = base64.lines().map(|line| &line["base64: ".len()..][4..24]).collect();
    assert_eq!(base64.len(), 6);
    for text in [&outcome.stdout, &outcome.stderr, &log, &reported] {
        for part in [KEY, "Käy", "K%C3%A4y", "K\\u00e4y", "of' a"].iter().chain(&base64) {
            assert!(!text.contains(part), "{part} is in {text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_secret_a_trial_fails_and_trains_nothing() {
    fn own(request: &str, nth: usize) -> Answer {
        preparing(json!({"env": {"KEY": {"secret": "/spotsweep/b/gone"}}}), request, nth)
    }
    fn of_team(request: &str, nth: usize) -> Answer {
        preparing(json!({"env": {"KEY": {"secret": "/spotsweep/c/gone"}}}), request, nth)
    }
    for (is_own, why) in [(true, "no secret gone any more"), (false, "no parameter /spotsweep/c/gone any more")] {
        let world = world(if is_own { own } else { of_team }, &[]).await;
        let outcome = world.run(&[], &["touch", world.path("trained").to_str().unwrap()]).await;
        assert_eq!(outcome.code, Some(76), "{}", outcome.stderr);
        assert!(!world.path("trained").exists());
        let end = world.invocations("end").pop().unwrap();
        assert!(outcome.stderr.contains(why), "{}", outcome.stderr);
        assert!(end["error"].as_str().unwrap().contains(why), "{end}");
    }
}

/// The variables of a training: both values of one secret, and all of another.
fn managed(request: &str, nth: usize) -> Answer {
    let secret = |text: &str| json!({"secret": format!("/aws/reference/secretsmanager/{text}")});
    let env =
        json!({"ALL": secret("team/all"), "PASSWORD": secret("team/db:password"), "PORT": secret("team/db:port")});
    preparing(json!({"env": env}), request, nth)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_of_a_json_object_is_a_secret_and_a_whole_object_has_several() {
    let world = world(managed, &[]).await;
    let object = r#"{"token": "tok-s3cr3t-1", "more": {"key": "tok-s3cr3t-2"}, "short": "abc"}"#;
    world.manage("team/all", json!({"SecretString": object}));
    world.manage(
        "team/db",
        json!({"SecretString": r#"{"password": "p\u00e4ss-s3cr3t", "port": 5432, "host": "db.example"}"#}),
    );
    let script = r#"
        test "$ALL" = "$0" && echo "as stored, on db.example:$PORT with $PASSWORD"
        echo "all: $ALL" && echo "one is tok-s3cr3t-1, two is tok-s3cr3t-2, three is abc"
        test "$PASSWORD" = päss-s3cr3t
    "#;
    let outcome = world.run(&[], &["sh", "-c", script, object]).await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("as stored, on db.example:*** with ***\nall: ***\n"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("one is ***, two is ***, three is abc"), "{}", outcome.stdout);
    let log = String::from_utf8(world.output("train.log").unwrap()).unwrap();
    let reported = world.seen(|seen| json!(seen.invocations).to_string());
    for text in [&outcome.stdout, &outcome.stderr, &log, &reported] {
        assert!(!text.contains("s3cr3t"), "{text}");
    }
    let asked = world.seen(|seen| seen.requests.iter().filter(|call| call.contains("team/db")).count());
    assert_eq!(asked, 1, "both values are of one version");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_of_secrets_manager_that_cannot_be_read_ends_the_trial() {
    let object = |text: &str| json!({"SecretString": text});
    let error = |code: &str| json!({"__type": code, "Message": "because of a test."});
    for (answer, code, why) in [
        (json!({"__type": "ResourceNotFoundException"}), 76, "no value of the secret team/db any more"),
        (error("InvalidRequestException"), 76, "restore-secret --secret-id team/db"),
        (error("AccessDeniedException"), 76, "may not read it: because of a test."),
        (error("DecryptionFailure"), 76, "may not read the secret team/db: because of a test."),
        (error("InternalServiceError"), 75, "the secret team/db could not be read"),
        (json!({"SecretBinary": "czNjcjN0"}), 76, "is binary"),
        (object("s3cr3t"), 76, "no JSON object, so it has no key password"),
        (object(r#"{"passwort": "s3cr3t"}"#), 76, "has no key password"),
        (object(r#"{"password": {"s3cr3t": 1}}"#), 76, "the key password of the secret team/db"),
        (object(&json!({"password": "s3cr3t".repeat(2000), "port": 1}).to_string()), 76, "more than 8192 bytes"),
    ] {
        let world = world(managed, &[]).await;
        world.manage("team/all", json!({"SecretString": "all of it"}));
        world.manage("team/db", answer);
        let outcome = world.run(&[], &["touch", world.path("trained").to_str().unwrap()]).await;
        assert_eq!(outcome.code, Some(code), "{why}: {}", outcome.stderr);
        assert!(!world.path("trained").exists(), "{why}");
        assert!(outcome.stderr.contains(why) && !outcome.stderr.contains("s3cr3t"), "{why}: {}", outcome.stderr);
        let said = json!(world.invocations("end")).to_string() + &json!(world.invocations("release")).to_string();
        assert!(!said.contains("s3cr3t"), "{said}");
    }
}
