//! A stack whose host was killed: the next `local up` kills the processes and removes the devices that are left, and
//! reports it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use spotsweep_needs::{block_devices, met};
use spotsweep_tests::local::{Stack, eventually};

use super::by_hand::{run, settled, status, submit};

/// One long trial that starts programs in groups of their own. Two of them have none of its variables.
const LONG: &str = r#"
spotsweep:
  command: [sh, -c, 'setsid sleep SECONDS & env -i "$(command -v sleep)" SECONDS & setsid env -i "$(command -v sleep)" SECONDS & head -c 3000000 /dev/zero > "$SPOTSWEEP_OUTPUT/data"; sleep 3600']
trials: [{n: 1}]
"#;
const SHORT: &str = "spotsweep: {workspace: off, command: [\"true\"]}\ntrials: [{n: 1}]\n";

/// Processes of a run, by their variables, their program or their arguments.
fn processes(run: &Path) -> Vec<String> {
    let run = run.to_string_lossy();
    let has_to_do = |process: &PathBuf| {
        let text = |file: &str| fs::read(process.join(file)).unwrap_or_default();
        let texts = [text("environ"), text("cmdline")].map(|text| String::from_utf8_lossy(&text).contains(&*run));
        let program = fs::read_link(process.join("exe")).unwrap_or_default();
        texts.contains(&true) || program.to_string_lossy().contains(&*run)
    };
    let all = fs::read_dir("/proc").unwrap().filter_map(Result::ok).map(|process| process.path());
    all.filter(has_to_do).map(|process| process.display().to_string()).collect()
}

/// For how many seconds the sleepers of [`LONG`] sleep. No other process has this number while this one lives.
fn seconds() -> String {
    format!("36{:07}", std::process::id())
}

/// Number of the sleepers of [`LONG`] in this run of the test.
fn sleepers() -> usize {
    let end = format!("\0{}\0", seconds());
    let lines =
        fs::read_dir("/proc").unwrap().filter_map(|process| fs::read(process.ok()?.path().join("cmdline")).ok());
    lines.filter(|line| line.ends_with(end.as_bytes())).count()
}

/// Loop devices and mounts of a run.
fn devices(run: &Path) -> Vec<String> {
    let run = run.to_string_lossy().into_owned();
    let images = fs::read_dir("/sys/block").unwrap().filter_map(Result::ok);
    let images = images.filter_map(|device| fs::read_to_string(device.path().join("loop/backing_file")).ok());
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    images.chain(mounts.lines().map(str::to_owned)).filter(|line| line.contains(&run)).collect()
}

/// Freezes the workspace, if it is a device, as the host does for a snapshot. Nothing thaws it.
fn freeze(run: &Path) {
    let devices = fs::read_dir("/sys/block").unwrap().map(|device| device.unwrap().path());
    let is_own = |device: &PathBuf| {
        let image = fs::read_to_string(device.join("loop/backing_file")).unwrap_or_default();
        image.contains(&*run.to_string_lossy())
    };
    for number in devices.filter(is_own).map(|device| fs::read_to_string(device.join("dev")).unwrap()) {
        let pids = processes(run);
        let point = pids.iter().find_map(|process| {
            let mounts = fs::read_to_string(Path::new(process).join("mountinfo")).ok()?;
            let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some(number.trim()))?;
            Some(format!("{process}/root{}", mount.split(' ').nth(4)?))
        });
        let frozen = Command::new("fsfreeze").args(["--freeze", &point.unwrap()]).status().unwrap();
        assert!(frozen.success());
    }
}

/// Kills the runners too, as the kernel does if memory stays short. Then the processes of a training have no parent.
/// One of its sleepers has neither a variable of the run nor a group with a process that has one.
fn kill_runners(run: &Path) {
    let all = fs::read_dir("/proc").unwrap().filter_map(Result::ok).map(|process| process.path());
    let runners =
        all.filter(|process| fs::read_link(process.join("exe")).is_ok_and(|exe| exe == run.join("spotsweep-runner")));
    let mut killed = 0;
    for runner in runners {
        let pid = runner.file_name().unwrap().to_str().unwrap().parse().ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
        killed += 1;
    }
    assert!(killed > 0, "a runner lives");
}

fn only_run(stack: &Stack) -> PathBuf {
    let runs = fs::read_dir(stack.runs()).unwrap().map(|run| run.unwrap().path());
    runs.max().unwrap()
}

/// Starts a training, kills the host, and starts another one. Asserts that nothing is left of the first.
async fn killed_and_replaced(stack: &mut Stack, options: &[&str], are_runners_killed: bool) {
    let old = only_run(stack);
    let sweep = submit(stack, "long", &LONG.replace("SECONDS", &seconds())).await;
    let is_running = async || (status(stack, &sweep).await["running"] == json!(1) && sleepers() == 3).then_some(());
    eventually("the training runs", is_running).await;
    let again = run(stack, &["local", "up"]).await.said(0, "the local stack is running already");
    assert!(!again.notes.contains("was killed"), "{}", again.notes);

    freeze(&old);
    stack.kill().await;
    assert!(!processes(&old).is_empty(), "the runner and its training live on");
    if are_runners_killed {
        kill_runners(&old);
    }
    let said = stack.up(options).await;
    assert!(said.contains("an earlier local stack was killed: its sweeps are gone"), "{said}");
    assert!(said.contains("cleared what it had left: ") && said.contains("MiB"), "{said}");
    assert_eq!((processes(&old), sleepers(), devices(&old)), (vec![], 0, vec![]));
    for data in ["ministack", "functions", "jobs/attempts", "jobs/volumes", "jobs/instances"] {
        assert!(!old.join(data).exists(), "{data}");
    }
    assert!(old.join("jobs/logs").exists(), "its logs stay");
    run(stack, &["ls"]).await.said(0, "no sweeps yet");
    let sweep = submit(stack, "short", SHORT).await;
    assert_eq!(settled(stack, &sweep).await["succeeded"], 1, "the new stack works");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_stack_clears_what_a_killed_one_left() {
    let mut stack = Stack::start("killed").await;
    let has_devices = met(block_devices());
    let options: &[&str] = if has_devices { &["--block-devices"] } else { &[] };
    killed_and_replaced(&mut stack, options, false).await;
    killed_and_replaced(&mut stack, &[], true).await;
    stack.down().await;
}
