//! Runs `spotsweep try`: trainings that go on from every interruption, and trainings that do not. `spotsweep init` makes a
//! sweep file from what was tried.

use std::fs;
use std::path::Path;
use std::process::Command;

use spotsweep_tests::local::Binaries;

/// Evaluates and saves in each epoch, and saves at the signal. Its first argument says what is wrong with it.
const SCRIPT: &str = r#"
import os, pickle, signal, sys, time
way, stopped = sys.argv[1], False
# Of this one, an attempt has to come further than its first step, however busy the machine is.
pace = 0.2 if way == "forgetful" else 1
path = os.path.join(os.environ["SPOTSWEEP_CHECKPOINTS"], "state.pkl")
def stop(*_):
    global stopped
    stopped = True
signal.signal(signal.SIGTERM, stop)
def save(epoch):
    if way == "unsaved":
        return
    with open(path + ".tmp", "wb") as file:
        pickle.dump(epoch, file)
        time.sleep(0.2)
    os.replace(path + ".tmp", path)
epoch = 0
if os.path.exists(path) and way != "forgetful":
    epoch = pickle.load(open(path, "rb"))
    if way == "broken":
        raise KeyError("optimizer")
os.makedirs("runs", exist_ok=True)
open(os.path.join(os.environ["SPOTSWEEP_OUTPUT"], "notes.txt"), "w").write("12345")
while epoch < 200:
    time.sleep(0.8 * pace)
    epoch += 1
    print("Evaluating", flush=True)
    time.sleep(0.6 * pace)
    open("runs/log.txt", "a").write("x")
    if way == "unsaved":
        open("model.pt", "w").write("weights")
    step = "" if way == "silent" else f"Epoch {epoch}/200: "
    print(f"{step}val_acc: {1 - 1 / (epoch + 1):.3f}", flush=True)
    save(epoch)
    time.sleep(0.8 * pace)
    if stopped:
        sys.exit(1)
"#;

/// Ends after two seconds, and does not load what it saves.
const SHORT: &str = r#"
import argparse, os, time
parser = argparse.ArgumentParser()
parser.add_argument("way")
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--lr", type=float, default=0.01, help="learning rate (default: 0.01)")
for epoch in range(1, parser.parse_args().epochs + 1):
    time.sleep(0.5)
    print(f"epoch={epoch} val_acc={1 - 1 / (epoch + 1):.3f}", flush=True)
    open(os.path.join(os.environ["SPOTSWEEP_CHECKPOINTS"], f"epoch_{epoch}.pt"), "w").write("weights")
"#;

/// Tries the script in one `way`. Returns the exit code and the output.
fn tried(way: &str, options: &[&str]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("train.py"), if way == "short" { SHORT } else { SCRIPT }).unwrap();
    let settings = if way == "short" { "spotsweep: {outputs: {checkpoints: none}}\n" } else { "" };
    let sweep = format!("{settings}metric: {{name: val_acc, goal: maximize}}\ntrials: [{{lr: 0.1}}]\n");
    fs::write(folder.path().join("sweep.yaml"), sweep).unwrap();
    let output = Command::new(Binaries::build().get("spotsweep"))
        .args(["try", "sweep.yaml", "--notice", "20", "--binaries"])
        .arg(Binaries::build().folder())
        .args(options)
        .args(["--", "python3", "train.py", way])
        .current_dir(folder.path())
        .env("SPOTSWEEP_LOCAL", folder.path().join("local"))
        .env("XDG_CACHE_HOME", folder.path().join("cache"))
        .output()
        .unwrap();
    if way == "short" {
        makes_a_sweep_file(folder.path());
    }
    let said = format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let left = fs::read_dir(folder.path().join("local/runs")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "nothing is left: {}", folder.path().display());
    assert!(!Path::new("spotsweep-results").exists());
    (output.status.code(), said)
}

/// The file has the script's options, and ranks by the metric that was found.
fn makes_a_sweep_file(folder: &Path) {
    let run = |arguments: &[&str]| {
        let mut command = Command::new(Binaries::build().get("spotsweep"));
        let output = command.args(arguments).current_dir(folder).env("XDG_CACHE_HOME", folder.join("cache")).output();
        let output = output.unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let init = ["init", "--output", "made.yaml", "--", "python3", "train.py"];
    let (code, said) = run(&init);
    assert_eq!(code, Some(0), "{said}");
    let made = fs::read_to_string(folder.join("made.yaml")).unwrap();
    assert!(made.contains("metric: {name: val_acc, goal: maximize}") && made.contains("\n  lr: {"), "{made}");
    assert_eq!(run(&["validate", "made.yaml"]).0, Some(0), "{made}");
    let (code, said) = run(&init);
    assert!(code == Some(2) && said.contains("made.yaml exists"), "{said}");
}

/// The test takes a minute, because each of five interruptions waits for its moment between checkpoints.
#[test]
fn a_training_that_goes_on_has_no_problem_and_others_have_theirs() {
    let results = std::thread::scope(|scope| {
        let ways = ["sound", "forgetful", "unsaved", "broken", "short", "silent"];
        // Without a checkpoint, the moments between two of them come only after half a minute each.
        let tries = ways
            .map(|way| scope.spawn(move || (way, tried(way, &["--limit", if way == "sound" { "300" } else { "60" }]))));
        tries.map(|tried| tried.join().unwrap())
    });
    let of = |way: &str| results.iter().find(|(found, _)| *found == way).unwrap().1.clone();
    let (code, said) = of("sound");
    assert_eq!(code, Some(0), "{said}");
    for moment in ["in the first seconds", "between two checkpoints", "while it saves", "in evaluation"] {
        assert!(said.contains(moment), "{moment}: {said}");
    }
    assert!(said.contains("  runs/ (1 file, "), "{said}");
    let collected = "if the training ended now: 1 file of $SPOTSWEEP_OUTPUT (5 bytes), and the newest complete checkpoint, \
                     state.pkl (";
    assert!(said.contains(collected), "{said}");
    assert!(said.contains("val_acc = 0.") && said.contains("proven: ") && !said.contains("not proven"), "{said}");
    let (code, said) = of("silent");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("not proven: ") && said.contains("expected on Spot: not known"), "{said}");
    for (way, words) in [
        // If other tests slow it down, it may not get past its first step. The output says that, too.
        ("forgetful", "starts from its beginning"),
        ("short", "starts from its beginning"),
        ("short", "it is tried again with epochs"),
        ("short", "the bucket has no model: it got no file of $SPOTSWEEP_OUTPUT, and no checkpoint"),
        ("short", "or delete `checkpoints: none`"),
        ("unsaved", "no checkpoint was saved"),
        ("unsaved", "lost with the container: model.pt"),
        ("broken", "KeyError: 'optimizer'"),
    ] {
        let (code, said) = of(way);
        assert_eq!(code, Some(1), "{way}: {said}");
        assert!(said.contains(words) && said.contains("→"), "{way}: {said}");
    }
}
