//! Replays windows made by hand, and compares every figure with one computed next to it.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod early_stop;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use clap::Parser;
use spotsweep_studies::replay::{Figures, Parameters, Plan, Policy, ReplayError, Report, Windows, read, replay};
use spotsweep_world::trace::Trace;

/// The seconds of a tick of these windows.
const TICK: u64 = 60;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    parameters: Parameters,
}

fn parameters(line: &str) -> Parameters {
    Line::try_parse_from(["replay"].into_iter().chain(line.split_whitespace())).unwrap().parameters
}

/// Returns a window of zones `us-east-1a`, `us-east-1b`, … at 1, 2, … USD an hour.
fn window(zones: &[&str]) -> Vec<(String, Trace)> {
    window_at(zones, |number| format!("[[0, {}]]", number + 1))
}

/// Returns a window of zones at these prices.
fn window_at(zones: &[&str], prices: impl Fn(usize) -> String) -> Vec<(String, Trace)> {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("window-00"), zones, prices);
    read(folder.path(), &Windows::default()).unwrap()
}

fn write(folder: &Path, zones: &[&str], prices: impl Fn(usize) -> String) {
    fs::create_dir(folder).unwrap();
    for (number, available) in zones.iter().enumerate() {
        let (zone, usd) = (name(number), prices(number));
        let text = format!(
            r#"{{"zone": "{zone}", "gap_seconds": {TICK}, "start_time": "t", "available": "{available}", "spot_price": {usd}}}"#
        );
        fs::write(folder.join(format!("{zone}.json")), text).unwrap();
    }
}

fn name(number: usize) -> String {
    ["us-east-1a", "us-east-1b", "us-east-1c"][number].to_owned()
}

fn plan(zones: usize, trials: u32, line: &str) -> Plan {
    Plan { zones: (0..zones).map(name).collect(), trials, hours: 1.0, parameters: parameters(line) }
}

fn open(ticks: usize) -> String {
    "1".repeat(ticks)
}

/// Returns a zone that is open for `open` ticks, and then closed for `closed` ticks.
fn closing(open: usize, closed: usize) -> String {
    "1".repeat(open) + &"0".repeat(closed)
}

fn near(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 1e-3, "{found} is not {wanted}");
}

fn within(found: f64, from: f64, until: f64) {
    assert!((from..=until).contains(&found), "{found} is not in {from}..={until}");
}

fn of(report: &Report, policy: Policy) -> Figures {
    report.of(policy).unwrap().clone()
}

/// The boot takes 100 s, 5 GiB of image come at 64 MiB/s, 10 GiB of dataset at 125 MiB/s, and checkpoints of 1 GiB
/// every 20 minutes.
const MODEL: &str = "--boot-seconds 100 --checkpoint-gib 1 --checkpoint-minutes 20";
const BOOT_AND_PULL: f64 = 100.0 + 80.0;
const DATASET: f64 = 10.0 * 1024.0 / 125.0;
const TO_VOLUME: f64 = 1024.0 / 125.0;
const TO_S3: f64 = 1024.0 / 298.0;
/// The time that an instance without jobs is kept.
const IDLE: f64 = 300.0;
/// The time from the end of an instance until Batch has its event.
const SHUTDOWN: f64 = 0.3;

#[test]
fn an_undisturbed_trial_takes_what_its_parts_take() {
    let report = replay(&plan(1, 1, MODEL), &window(&[&open(200)])).unwrap();
    let on_demand = of(&report, Policy::OnDemand);
    let makespan = BOOT_AND_PULL + DATASET + 3600.0 + 1.0;
    near(on_demand.makespan_hours * 3600.0, makespan);
    let paid = makespan + IDLE;
    let s3 = 10.0 * paid / (30.0 * 86_400.0) * 0.023 + 1280.0 * 0.0004 / 1000.0;
    near(on_demand.usd, paid * 3.06 / 3600.0 + s3);
    near(on_demand.useful_share.unwrap(), 3600.0 / paid);
    near(of(&report, Policy::Restart).usd_of[0].1, paid / 3600.0);

    // The file's event takes a second, and a claim is repeated after two.
    let spotsweep = of(&report, Policy::Spotsweep);
    let makespan = 1.0 + BOOT_AND_PULL + 3600.0 + 2.0 * TO_VOLUME + 1.0;
    within(spotsweep.makespan_hours * 3600.0, makespan, makespan + 4.0);
    let s3 = of(&report, Policy::S3Checkpoint);
    near(s3.makespan_hours * 3600.0, BOOT_AND_PULL + DATASET + 3600.0 + 2.0 * TO_S3 + 1.0);
    for figures in &report.policies {
        assert_eq!((figures.interruptions, figures.finished_trials, figures.finished_windows), (0, 1, 1));
        assert_eq!((figures.lost_seconds_per_interruption, figures.resume_delay_median_seconds), (None, None));
    }
}

#[test]
fn a_reclaim_that_moves_a_trial_costs_each_policy_what_it_must() {
    // Zone a closes at 1800 s: the notice comes then, and the end at 1920 s. Zone b is open all the time, and is the
    // second choice.
    let report = replay(&plan(2, 1, MODEL), &window(&[&closing(30, 170), &open(200)])).unwrap();
    let checked = |policy, lost: f64, delay: f64| {
        let figures = of(&report, policy);
        assert_eq!((figures.interruptions, figures.finished_trials), (1, 1), "{policy:?}");
        near(figures.lost_seconds_per_interruption.unwrap(), lost);
        near(figures.resume_delay_median_seconds.unwrap(), delay);
    };
    let again = SHUTDOWN + BOOT_AND_PULL;
    let began = BOOT_AND_PULL + DATASET;
    checked(Policy::S3Checkpoint, 1920.0 - began - 1200.0 - TO_S3, again + DATASET + TO_S3);
    checked(Policy::Restart, 1920.0 - began, again + DATASET);
    // These are three commands, polls every 15 s until 45 s and 1 GiB at 60 MiB/s are over (the fifth, at 63 s), two
    // commands, polls until 5 s are over (the second), one command, 10 s of sleep, and 1 GiB at 20 MiB/s.
    let script = 63.0 + 2.0 + 15.0 + 1.0 + 10.0 + 1024.0 / 20.0;
    // At first the volume is in its zone: three commands, one more, and the sleep.
    let began = BOOT_AND_PULL + 3.0 + 1.0 + 10.0 - 1.0;
    checked(Policy::SeedScript, 1920.0 - began - 1200.0 - TO_VOLUME, again + script);

    // The checkpoint is saved at the notice, and the copy is made while the next instance boots.
    let spotsweep = of(&report, Policy::Spotsweep);
    assert_eq!((spotsweep.interruptions, spotsweep.finished_trials), (1, 1));
    near(spotsweep.lost_seconds_per_interruption.unwrap(), 0.0);
    let delay = TO_VOLUME + 1024.0 / 400.0 + 1.0 + BOOT_AND_PULL + TO_VOLUME;
    within(spotsweep.resume_delay_median_seconds.unwrap(), delay, delay + 4.0);

    let on_demand = of(&report, Policy::OnDemand);
    assert_eq!(on_demand.interruptions, 0);
    near(on_demand.makespan_hours * 3600.0, BOOT_AND_PULL + DATASET + 3600.0 + 1.0);
}

#[test]
fn what_ec2_takes_within_its_first_hour_is_free_and_the_rest_costs_its_zones_price() {
    let report = replay(&plan(2, 1, MODEL), &window(&[&closing(30, 170), &open(200)])).unwrap();
    let s3 = of(&report, Policy::S3Checkpoint);
    let launched = 1920.0 + SHUTDOWN;
    let done = launched + BOOT_AND_PULL + DATASET + TO_S3 + 2400.0 + TO_S3 + 1.0;
    near(s3.makespan_hours * 3600.0, done);
    near(s3.usd_of[0].1, (done + IDLE - launched) * 2.0 / 3600.0);
    // Two checkpoints of 128 parts are uploaded and one is downloaded; the dataset's 1280 parts are downloaded twice.
    let requests = 256.0 * 0.005 / 1000.0 + (128.0 + 2560.0) * 0.0004 / 1000.0;
    let saved = BOOT_AND_PULL + DATASET + 1200.0 + TO_S3;
    let stored = (10.0 * (done + IDLE) + (done - saved)) / (30.0 * 86_400.0) * 0.023;
    near(s3.usd_of[3].1, requests + stored);
    assert_eq!(s3.aws_calls, 1 + 256 + 128 + 2560, "one job, and the parts");
}

/// The costs that `spotsweep cost` computes for a replayed sweep have to agree with this table.
///
/// | attempt | zone | from | until | USD an hour |
/// |---|---|---|---|---|
/// | 1 | a | 1 s after the drop, boot and pull | 1800 s, no notice | 1, from tick 20 (1200 s) on 1.50 |
/// | 2 | b | the end of the first, shutdown, boot and pull | loading, 2400 s of training, a checkpoint, 1 s | 2 |
#[test]
fn the_product_computes_what_the_attempts_of_a_replayed_sweep_cost() {
    let prices = |zone: usize| ["[[0, 1.0], [20, 1.5]]", "[[0, 2.0]]"][zone].to_owned();
    let window = window_at(&[&closing(30, 170), &open(200)], prices);
    let report = replay(&plan(2, 1, &format!("{MODEL} --notice-seconds 0.001")), &window).unwrap();
    let recorded = of(&report, Policy::Spotsweep).recorded.expect("the sweep has settled");

    let (first, reclaimed) = (1.0 + BOOT_AND_PULL, 1800.0);
    let second = reclaimed + SHUTDOWN + BOOT_AND_PULL;
    let done = second + TO_VOLUME + 2400.0 + TO_VOLUME + 1.0;
    let in_a = (1200.0 - first) * 1.0 + (reclaimed - 1200.0) * 1.5;
    let in_b = (done - second) * 2.0;
    // A claim is repeated every two seconds, and an end is reported a second later.
    let slack = 8.0 / 3600.0;
    let instances = recorded.usd - recorded.storage_usd - recorded.control_plane_usd;
    within(instances, (in_a + in_b) / 3600.0 - slack, (in_a + in_b) / 3600.0 + slack);
    let on_demand = (reclaimed - first + done - second) * 3.06 / 3600.0;
    within(recorded.on_demand_usd, on_demand - slack, on_demand + slack);
    // The volume has 14 GiB: 10 GiB of dataset, twice a checkpoint of 1 GiB, and room. A GiB costs 0.08 for a month of
    // 730 hours. The snapshots of this World have bytes that stand for MiB, so they cost next to nothing.
    let volume = 14.0 * 0.08 / 730.0 * (done - first) / 3600.0;
    within(recorded.storage_usd, volume * 0.99, volume * 1.01);
    near(recorded.unpriced_seconds, 0.0);

    // The bill also counts boot and idle time, and EC2 charges nothing for a first hour that it cuts short.
    let billed = of(&report, Policy::Spotsweep).usd_of[0].1;
    let paid = (BOOT_AND_PULL + done - second + IDLE) * 2.0 / 3600.0;
    within(billed, paid - slack, paid + slack);
    for other in [Policy::SeedScript, Policy::S3Checkpoint, Policy::S3OnNotice, Policy::Restart, Policy::OnDemand] {
        assert_eq!(of(&report, other).recorded, None, "{other:?} has no record of its costs");
    }
}

/// The files once had the opposite meaning, because 0 means available in their source. The shares are those of the
/// public record, skypilot-org/spot-traces, over 45 days; these windows cover 43 of them.
#[test]
fn one_means_available_as_in_the_public_record() {
    let shares = [
        ("us-east-1a", 0.167),
        ("us-east-1c", 0.467),
        ("us-east-1d", 0.447),
        ("us-east-1f", 0.591),
        ("us-east-2a", 0.759),
        ("us-east-2b", 0.682),
        ("us-west-2a", 0.883),
        ("us-west-2b", 0.905),
        ("us-west-2c", 0.891),
    ];
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/spot-traces/availability.txt");
    let text = fs::read_to_string(data).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let window = folder.path().join("window-00");
    fs::create_dir(&window).unwrap();
    let mut looks = 0;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (zone, runs) = line.split_once(' ').unwrap();
        let (first, runs) = runs.split_once(' ').unwrap();
        let mut value = first.parse::<u8>().unwrap();
        let mut available = String::new();
        for length in runs.split(' ') {
            available.push_str(&value.to_string().repeat(length.parse().unwrap()));
            value = 1 - value;
        }
        looks = available.len();
        let text = format!(
            r#"{{"zone": "{zone}", "gap_seconds": 195, "start_time": "t", "available": "{available}", "spot_price": [[0, 1]]}}"#
        );
        fs::write(window.join(format!("{zone}.json")), text).unwrap();
    }
    let (_, trace) = read(folder.path(), &Windows::default()).unwrap().remove(0);
    for (zone, share) in shares {
        let at = |look: usize| Duration::from_secs(195 * look as u64);
        let open = (0..looks).filter(|look| trace.is_available(zone, at(*look)) == Some(true)).count();
        within(open as f64 / looks as f64, share - 0.02, share + 0.02);
    }
}

#[test]
fn a_grace_too_short_loses_what_a_longer_one_saves() {
    // 10 GiB take 82 s to write: more than 20 s, and less than the 108 s of a notice that the runner gives.
    let lost = |line: &str| {
        let report = replay(&plan(2, 1, line), &window(&[&closing(30, 270), &open(300)])).unwrap();
        of(&report, Policy::Spotsweep).lost_seconds_per_interruption.unwrap()
    };
    let began = 1.0 + 90.0 + 80.0;
    let noticed = 1800.0 - began - 1200.0 - 10.0 * TO_VOLUME;
    // The notice is found at most one poll of the metadata service later, after one or two claims.
    within(lost("--checkpoint-gib 10 --checkpoint-minutes 20 --grace-seconds 20"), noticed - 4.0, noticed + 5.0);
    near(lost("--checkpoint-gib 10 --checkpoint-minutes 20"), 0.0);
    let line = "--checkpoint-gib 10 --checkpoint-minutes 20";
    let report = replay(&plan(2, 1, line), &window(&[&closing(30, 270), &open(300)])).unwrap();
    let s3 = |policy: Policy| of(&report, policy).lost_seconds_per_interruption.unwrap();
    assert!(s3(Policy::S3Checkpoint) > 300.0);
    near(s3(Policy::S3OnNotice), 0.0);
}

#[test]
fn without_a_handler_the_next_checkpoint_is_completed_if_the_notice_is_long_enough() {
    let report = |line: &str| replay(&plan(2, 1, line), &window(&[&closing(30, 270), &open(300)])).unwrap();
    let lost = |line: &str, policy| of(&report(line), policy).lost_seconds_per_interruption.unwrap();
    let line = "--checkpoint-gib 1 --no-handler --checkpoint-minutes";
    near(lost(&format!("{line} 1"), Policy::Spotsweep), 0.0);
    assert!(lost(&format!("{line} 1"), Policy::SeedScript) > 10.0, "it ignores the notice");
    // A checkpoint comes every 1208 s from second 171 on, so the next one would be complete long after the notice.
    // Training until then is lost.
    let ignored = lost(&format!("{line} 20"), Policy::SeedScript);
    assert!(lost(&format!("{line} 20"), Policy::Spotsweep) > 300.0, "{ignored}");
    near(lost("--checkpoint-gib 1 --checkpoint-minutes 20", Policy::Spotsweep), 0.0);
}

#[test]
fn trials_that_the_window_cuts_off_are_reported_as_such() {
    let report = replay(&plan(1, 3, MODEL), &window(&[&closing(40, 20)])).unwrap();
    for figures in &report.policies {
        assert_eq!((figures.finished_trials, figures.finished_windows), (0, 0), "{:?}", figures.policy);
        near(figures.makespan_hours, 60.0 * TICK as f64 / 3600.0);
    }
    // Of 40 minutes without the start, one checkpoint counts, or what the notice left time for.
    let useful = |policy: Policy| of(&report, policy).useful_share.unwrap();
    assert!(useful(Policy::Spotsweep) > useful(Policy::S3Checkpoint));
    near(useful(Policy::Restart), 0.0);
    assert!(of(&report, Policy::Restart).usd_per_useful_hour.is_none());
}

#[test]
fn the_document_is_the_same_every_time_and_holds_all_figures() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("window-00"), &[&closing(30, 170), &open(200)], |_| "[[0, 1]]".into());
    write(&folder.path().join("window-02"), &[&open(200), &closing(50, 150)], |_| "[[0, 1]]".into());
    let both = read(folder.path(), &Windows::default()).unwrap();
    let plan = plan(2, 3, MODEL);
    let document = replay(&plan, &both).unwrap().json();
    assert_eq!(document.to_string(), replay(&plan, &both).unwrap().json().to_string());
    assert_eq!(document["windows"], serde_json::json!(["window-00", "window-02"]));
    assert_eq!(document["zones"], serde_json::json!(["us-east-1a", "us-east-1b"]));
    assert_eq!(document["parameters"]["boot_seconds"], 100.0);
    let policies = document["policies"].as_array().unwrap();
    let names: Vec<&str> = policies.iter().map(|policy| policy["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["spotsweep", "seed-script", "s3-checkpoint", "s3-on-notice", "restart", "on-demand"]);
    let figures = [
        "makespan_hours",
        "usd",
        "usd_per_useful_hour",
        "useful_share",
        "interruptions",
        "aws_calls",
        "control_plane_usd",
        "finished_trials",
    ];
    for policy in policies {
        assert!(figures.iter().all(|name| policy[*name].is_number()), "{policy}");
        let parts: f64 = policy["usd_of"].as_object().unwrap().values().map(|usd| usd.as_f64().unwrap()).sum();
        near(parts, policy["usd"].as_f64().unwrap());
        for name in ["lost_seconds_per_interruption", "resume_delay_median_seconds", "resume_delay_p95_seconds"] {
            assert_eq!(policy[name].is_number(), policy["interruptions"].as_u64().unwrap() > 0, "{name}: {policy}");
        }
    }
    let one = read(folder.path(), &"2".parse().unwrap()).unwrap();
    assert_eq!(one.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["window-02"]);
}

#[test]
fn a_wrong_request_is_answered_with_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let empty = tempfile::tempdir().unwrap();
    write(&folder.path().join("window-00"), &[&open(3), &open(3)], |_| "[[0, 1]]".into());
    let windows = read(folder.path(), &Windows::default()).unwrap();
    let message = |error: ReplayError| error.to_string();
    let refused = |plan: Plan| message(replay(&plan, &windows).unwrap_err());
    let hours = |hours| Plan { hours, ..plan(1, 1, "") };
    let zones = |zones: &[&str]| Plan { zones: zones.iter().map(ToString::to_string).collect(), ..plan(1, 1, "") };
    let cases = [
        (refused(plan(1, 0, "")), "--trials is 0"),
        (refused(plan(1, 501, "")), "give 1 to 500"),
        (refused(hours(0.0)), "--hours is 0"),
        (refused(hours(f64::NAN)), "--hours is NaN"),
        (refused(plan(1, 1, "--checkpoint-gib 40000")), "gp3 has 65536 at most"),
        (refused(plan(3, 1, "")), "window-00 has no zone us-east-1c; there are us-east-1a, us-east-1b"),
        (refused(zones(&[])), "--zones must name at least one"),
        (refused(zones(&["us-east-1a", "us-east-1a"])), "each once"),
        (refused(zones(&["us-east-1a", "us-west-2a"])), "us-east-1a and us-west-2a are not of one region"),
        (message(replay(&plan(1, 1, ""), &[]).unwrap_err()), "no window is left"),
        (message(read(folder.path(), &"0,7".parse().unwrap()).unwrap_err()), "no window 7; there are window-00"),
        (message(read(empty.path(), &Windows::default()).unwrap_err()), "holds no windows"),
        (message(read(Path::new("no/such"), &Windows::default()).unwrap_err()), "cannot read no/such"),
        (message(read(&folder.path().join("window-00"), &Windows::default()).unwrap_err()), "holds no windows"),
    ];
    for (message, wanted) in cases {
        assert!(message.contains(wanted), "{message} does not say {wanted}");
    }
    assert!(Line::try_parse_from(["replay", "--snapshot-mib", "0"]).is_err());
    assert!(Line::try_parse_from(["replay", "--dataset-gib", "nan"]).is_err());
    assert!(Line::try_parse_from(["replay", "--boot-seconds", "1e7"]).is_err());
}

#[test]
fn recorded_windows_keep_the_order_that_no_model_changes() {
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/spot-traces/unpack.py");
    let unpacked = Command::new("python3").arg(script).arg(folder.path()).status().expect("python3 is needed");
    assert!(unpacked.success(), "{unpacked}");
    let windows = read(folder.path(), &"0,14".parse().unwrap()).unwrap();
    let zones = ["us-east-1a", "us-east-1c", "us-east-1d"].map(String::from).into();
    let plan = Plan { zones, trials: 4, hours: 8.0, parameters: parameters("--checkpoint-gib 1") };
    let report = replay(&plan, &windows).unwrap();
    let [spotsweep, script, s3, _on_notice, restart, on_demand] = Policy::ALL.map(|policy| of(&report, policy));
    assert_eq!(on_demand.interruptions, 0);
    assert!(spotsweep.interruptions > 0 && spotsweep.finished_windows == 2, "{spotsweep:?}");
    near(spotsweep.lost_seconds_per_interruption.unwrap(), 0.0);
    for other in [script, s3] {
        assert!(spotsweep.makespan_hours < other.makespan_hours, "{spotsweep:?} {other:?}");
        assert!(other.makespan_hours < restart.makespan_hours, "{other:?} {restart:?}");
    }
}
