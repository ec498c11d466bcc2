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
    let world = world(grants, &[("/spotsweep/b/team-key", KEY), ("/team/other", "another")]).await;
    let script = r#"
        test "$KEY" = "$0" && echo "as stored, $PLAIN, W&B ${WANDB_MODE-online} $WANDB_RESUME"
        echo "score=0.5 $KEY end"
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
        outcome.stdout.contains("score=0.5 *** end") && outcome.stdout.contains("setup has ***"),
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
