//! The setup before the training, and the sweep file's variables.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use crate::send;
use crate::world::{Answer, INTERRUPTION, World, in_seconds, preparing, read, until};

#[tokio::test(flavor = "multi_thread")]
async fn the_command_has_what_the_setup_has_made_and_the_files_variables() {
    fn installs(request: &str, nth: usize) -> Answer {
        let install = "mkdir -p ~/.local/bin && printf '#!/bin/sh\necho installed' > ~/.local/bin/tool\n\
                       chmod +x ~/.local/bin/tool; echo score=99; echo installing >&2";
        let env = json!({"HF_HOME": "/data/hf", "HP_LR": "of the file", "WANDB_PROJECT": "mine"});
        preparing(
            json!({"setup": [install, "sleep 0.1 && echo $HF_HOME > $SPOTSWEEP_DATASETS/seen"], "env": env}),
            request,
            nth,
        )
    }
    let world = World::with_volume(installs).await;
    let home = world.path("home");
    fs::create_dir_all(&home).unwrap();
    let script = r#"tool; echo "$HF_HOME $HP_LR $WANDB_PROJECT $(cat $SPOTSWEEP_DATASETS/seen)"; echo score=0.5"#;
    let outcome = world.run(&[("HOME", home.to_str().unwrap())], &["sh", "-c", script]).await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let expected = "score=99\ninstalled\n/data/hf 0.1 mine /data/hf\nscore=0.5\n";
    assert_eq!(outcome.stdout, expected, "{}", outcome.stderr);
    let end = world.invocations("end").pop().unwrap();
    assert_eq!(end["metrics"]["score"]["max"], json!(0.5), "what the setup prints is no metric: {end}");
    assert!(outcome.stderr.contains("installing"), "{}", outcome.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setup_that_fails_ends_the_trial_with_its_reason() {
    fn fails(request: &str, nth: usize) -> Answer {
        let commands =
            ["true", "echo 'ERROR: No matching distribution found for torhc' >&2; exit 3", "touch $HOME/late"];
        preparing(json!({"setup": commands}), request, nth)
    }
    let world = World::with_volume(fails).await;
    let home = world.path("home");
    fs::create_dir_all(&home).unwrap();
    let outcome = world.run(&[("HOME", home.to_str().unwrap())], &["sh", "-c", "touch $HOME/late"]).await;
    assert_eq!(outcome.code, Some(3), "{}", outcome.stderr);
    let end = world.invocations("end").pop().unwrap();
    let error = end["error"].as_str().unwrap();
    assert!(error.starts_with("setup failed: ") && error.contains("No matching distribution"), "{end}");
    assert_eq!((&end["exit_code"], &end["seconds"]), (&json!(3), &json!(0.0)), "{end}");
    assert!(!home.join("late").exists(), "neither the next command nor the training runs");
    assert!(!world.path("dltraining").is_symlink(), "unmounted");
    assert!(world.invocations("release").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interruption_ends_the_setup_and_costs_the_trial_nothing() {
    fn hangs(request: &str, nth: usize) -> Answer {
        let command = "setsid sh -c 'trap \"\" TERM; touch $HOME/begun; sleep 600' & wait";
        preparing(json!({"setup": [command]}), request, nth)
    }
    for is_notice in [true, false] {
        let world = World::with_volume(hangs).await;
        let home = world.path("home");
        fs::create_dir_all(&home).unwrap();
        let runner = world.spawn(&[("HOME", home.to_str().unwrap())], &["sh", "-c", "touch $HOME/trained"]);
        until("the setup runs", || home.join("begun").exists()).await;
        if is_notice {
            world.announce(INTERRUPTION, &in_seconds(30));
        } else {
            send(&runner, Signal::TERM);
        }
        until("the trial is released", || !world.invocations("release").is_empty()).await;
        assert!(!world.path("dltraining").is_symlink(), "unmounted");
        assert!(world.invocations("end").is_empty() && !home.join("trained").exists());
        if is_notice {
            send(&runner, Signal::TERM);
        }
        let outcome = world.outcome(runner).await;
        assert_eq!(outcome.code, Some(75), "{}", outcome.stderr);
        assert_eq!(read(&home.join("begun")), "");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_without_a_shell_is_named() {
    fn needs_a_shell(request: &str, nth: usize) -> Answer {
        preparing(json!({"setup": ["make"]}), request, nth)
    }
    let world = World::with_volume(needs_a_shell).await;
    let empty = world.path("bin");
    fs::create_dir_all(&empty).unwrap();
    let outcome = world.run(&[("PATH", empty.to_str().unwrap())], &["/bin/true"]).await;
    assert_eq!(outcome.code, Some(127), "{}", outcome.stderr);
    let end = world.invocations("end").pop().unwrap();
    assert!(end["error"].as_str().unwrap().contains("cannot start `sh`"), "{end}");
}
