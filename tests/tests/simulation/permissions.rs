//! Least privilege: the template allows each function exactly what the simulation sees it do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use spotsweep_control_plane::settings::LEASE;
use spotsweep_protocol::functions::FUNCTIONS;
use spotsweep_protocol::stop::StopReason;
use spotsweep_records::trial::{INTERRUPTED_EXIT_CODE, MAX_FALSE_STARTS, Reason};
use spotsweep_simulation::calls::Call;
use spotsweep_simulation::harness::Harness;
use spotsweep_simulation::invocation::{InvocationFault, Invoked};
use spotsweep_simulation::permissions::{CONTROL_PLANE, Permissions, needed};
use spotsweep_simulation::run::{BY_HAND, Chaos, Mixture, Simulation};
use spotsweep_world::Trouble;

use crate::{gpus, kept};

/// Actions that functions need besides their calls in a simulation: the function (or any), the action, and why.
const BEYOND: [(&str, &str, &str); 9] = [
    ("", "logs:CreateLogStream", "Lambda writes the log"),
    ("", "logs:PutLogEvents", "Lambda writes the log"),
    ("", "sqs:SendMessage", "Lambda hands failed events to the queue"),
    ("", "s3:GetObjectVersion", "a versioned bucket's events name the version to read"),
    ("", "s3:ListBucket", "without it a missing file is a 403"),
    ("", "s3:AbortMultipartUpload", "large files go in parts"),
    ("reconcile", "ec2:DescribeInstances", "an attachment that others began, on an instance that goes: seldom"),
    ("sweep-settled", "ec2:DescribeInstances", "the same, of a trial whose state only Batch knows: seldom"),
    ("sweep-upload", "ec2:DescribeSnapshots", "a sweep file may name a snapshot to start from"),
];

type Actions = BTreeMap<String, BTreeSet<String>>;
type Used = BTreeMap<String, BTreeSet<Call>>;

fn look(simulation: &mut Simulation, used: &mut Used) {
    simulation.watch.used = Some(BTreeSet::new());
    simulation.keep_log();
    let outcome = simulation.run();
    let attempts = || simulation.log().iter().filter(|line| line.contains("of trial 0:")).cloned().collect::<Vec<_>>();
    assert_eq!(outcome, Ok(()), "{:#?}", attempts());
    for (function, call) in simulation.watch.used.take().unwrap() {
        used.entry(function).or_default().insert(call);
    }
}

/// Makes enough runs for every function to do all that it ever does.
fn used() -> Used {
    let mut used = Used::new();
    // The seeds from 700 on are those of `seeds.rs`.
    for seed in 0..700 {
        look(&mut Simulation::of_seed(seed), &mut used);
    }
    for seed in 0..40 {
        look(&mut worn_out(seed), &mut used);
        if seed < 8 {
            look(&mut adopting(seed), &mut used);
            look(&mut over_budget(seed), &mut used);
            look(&mut hanging(seed), &mut used);
        }
    }
    (0..200).for_each(|seed| look(&mut unanswered(seed), &mut used));
    (0..20).for_each(|seed| look(&mut refused_at_notice(seed), &mut used));
    withdrawn(&mut used);
    worn_out_last(&mut used);
    continued(&mut used);
    for (_, claim) in gpus::claims(&Trouble::default()) {
        add(&mut used, "trial-claim", &claim);
    }
    (0..6).for_each(|seed| never_starts(seed, &mut used));
    used
}

fn add(used: &mut Used, function: &str, invoked: &Invoked) {
    used.entry(function.to_owned()).or_default().extend(invoked.calls.iter().cloned());
}

/// Batch refuses the second part of a sweep, and the function that handles it dies at each of its calls.
fn withdrawn(used: &mut Used) {
    let file = "method: grid\nparameters: {seed: {distribution: q_uniform, min: 0, max: 10001, q: 1}}\n";
    for dies_at in (0..40).step_by(3) {
        let mut harness = Harness::new(1);
        harness.cloud.refuse(1);
        let put = harness.put("refused.yaml", file);
        let died = harness.invoke_with(&put, InvocationFault { dies_at: Some(dies_at), ..InvocationFault::default() });
        add(used, "sweep-upload", &died);
        for turn in 0..4 {
            harness.pass(LEASE * 8);
            // The next invocation is either by the schedule, or by the repeated event.
            match (dies_at + turn) % 2 {
                0 => add(used, "sweep-upload", &harness.invoke(&put)),
                _ => add(used, "reconcile", &harness.invoke(&harness.reconcile())),
            }
        }
    }
}

/// A trial has used up its job. The function that should submit the next one dies at each of its calls, and no other
/// one runs for a lease. Then the sweep's end is reported.
fn worn_out_last(used: &mut Used) {
    for dies_at in 0..16 {
        let mut harness = Harness::new(1);
        let put = harness.put("worn-out.yaml", "trials: [{a: 1}, {a: 2}]\nspotsweep: {attempts: 20}\n");
        add(used, "sweep-upload", &harness.invoke(&put));
        let is_second = |job: &str| job.ends_with(":1");
        let jobs = harness
            .run_jobs(|attempt| (60, if is_second(&attempt.job) { INTERRUPTED_EXIT_CODE } else { 0 }))
            .into_iter()
            .filter(|event| event["source"] == "aws.batch");
        for event in jobs {
            let detail = &event["detail"];
            let wears_out = detail["status"] == "FAILED" && detail["jobId"].as_str().is_some_and(is_second);
            let fault = InvocationFault { dies_at: wears_out.then_some(dies_at), ..InvocationFault::default() };
            add(used, "batch-job-state", &harness.invoke_with(&event, fault));
        }
        harness.pass(LEASE * 2);
        for event in harness.announced() {
            add(used, "sweep-settled", &harness.invoke(&event));
        }
    }
}

/// A sweep goes on from the kept workspace of another sweep's trial.
fn continued(used: &mut Used) {
    let mut simulation = kept::failed();
    simulation.watch.used = Some(BTreeSet::new());
    kept::go_on(&mut simulation);
    for (function, call) in simulation.watch.used.take().unwrap() {
        used.entry(function).or_default().insert(call);
    }
}

/// No container of a trial starts. Its job is ended long before Batch gives it up.
fn never_starts(seed: u64, used: &mut Used) {
    let mut mixture = Mixture { budget: None, failing_starts: 100, data: None, ..Mixture::of_seed(seed) };
    mixture.chaos.fails = None;
    let mut simulation = Simulation::mixed(seed, &mixture);
    simulation.watch.used = Some(BTreeSet::new());
    simulation.run().unwrap();
    for trial in simulation.harness.store.state().1 {
        assert!(matches!(trial.reason.as_ref().and_then(Reason::stopped), Some(StopReason::NeverStarts { .. })));
        assert!((MAX_FALSE_STARTS..=MAX_FALSE_STARTS + 2).contains(&trial.attempts.len()), "{:?}", trial.attempts);
    }
    for (function, call) in simulation.watch.used.take().unwrap() {
        used.entry(function).or_default().insert(call);
    }
}

/// A sweep whose volume was made by hand.
fn adopting(seed: u64) -> Simulation {
    let mut mixture = Mixture::of_seed(seed);
    // Otherwise the volume made by hand would be the one that fails.
    mixture.failing_volumes = 0;
    mixture.chaos.unusable_key = false;
    let file = format!("trials: [{{a: 1}}]\nspotsweep: {{workspace: {{volume: {BY_HAND}}}}}\n");
    let mut simulation = Simulation::mixed_with(seed, &mixture, &file);
    simulation.make_by_hand("us-east-1a");
    simulation
}

/// A sweep that has exceeded its budget before its last trial has begun.
fn over_budget(seed: u64) -> Simulation {
    let mixture =
        Mixture { budget: Some(("max_usd", 0.0001)), trials: 3, epochs: 30, data: None, ..Mixture::of_seed(seed) };
    Simulation::mixed(seed, &mixture)
}

/// A sweep whose trainings hang in every attempt.
fn hanging(seed: u64) -> Simulation {
    let mut mixture = Mixture { budget: None, trials: 2, epochs: 5, data: None, ..Mixture::of_seed(seed) };
    mixture.chaos.hangs = 1.0;
    Simulation::mixed(seed, &mixture)
}

/// A sweep whose trials end at once, and whose calls often get no answer. So EBS reports the deletion of a volume
/// before the function that has requested it does.
fn unanswered(seed: u64) -> Simulation {
    let mut mixture = Mixture { budget: None, trials: 2, epochs: 1, data: None, ..Mixture::of_seed(seed) };
    mixture.chaos = Chaos { failed: 0.2, killed: 0.1, delay: Duration::from_secs(60), ..Chaos::none() };
    Simulation::mixed(seed, &mixture)
}

/// A sweep whose instances are often reclaimed with a notice, and that may make no snapshots for a while. EC2 gives the
/// same answer if a volume is gone, so `spot-interruption` looks it up.
fn refused_at_notice(seed: u64) -> Simulation {
    let mut mixture = Mixture { budget: None, trials: 2, epochs: 20, data: None, ..Mixture::of_seed(seed) };
    let (reclaim_every, denied) = (Some(Duration::from_secs(120)), Some(("CreateSnapshot", None)));
    mixture.chaos = Chaos { reclaim_every, denied, most_reclaims: 8, ..Chaos::none() };
    mixture.chaos.ends_after = Duration::from_secs(2_000);
    Simulation::mixed(seed, &mixture)
}

/// A trial that needs more attempts than Batch makes of one job.
fn worn_out(seed: u64) -> Simulation {
    let mut mixture = Mixture::of_seed(seed);
    mixture.trials = 1;
    mixture.epochs = 30;
    mixture.chaos.most_reclaims = 25;
    mixture.chaos.reclaim_every = Some(Duration::from_secs(90));
    mixture.chaos.ends_after = Duration::from_secs(20_000);
    // A permanent denial would use up all attempts.
    (mixture.chaos.denied, mixture.chaos.unusable_key, mixture.chaos.silent) = (None, false, 0.0);
    Simulation::mixed(seed, &mixture)
}

fn allowed() -> Actions {
    let permissions = Permissions::of_template(CONTROL_PLANE).unwrap();
    let functions = permissions.functions.into_iter();
    functions.map(|(name, function)| (name, function.permissions.into_keys().collect())).collect()
}

fn is_beyond(function: &str, action: &str) -> bool {
    BEYOND.iter().any(|(of, beyond, _)| (of.is_empty() || *of == function) && *beyond == action)
}

/// States for each kind of call and each function whether the function's role allows it. `tests/iam` checks the same
/// with another evaluator. Calls on objects of the same name are one kind.
fn verdicts(used: &Used) -> serde_json::Value {
    let permissions = Permissions::of_template(CONTROL_PLANE).unwrap();
    let name = |call: &Call| call.on.as_deref().and_then(|on| on.rsplit('/').next()).map(str::to_owned);
    let kinds: BTreeMap<_, &Call> = used.values().flatten().map(|call| ((call.action, name(call)), call)).collect();
    let verdict = |function: &String, call: &Call| {
        let is_allowed = permissions.lacks(function, call).is_none();
        serde_json::json!({ "function": function, "service": call.service, "action": call.action, "on": call.on, "allowed": is_allowed })
    };
    permissions.functions.keys().flat_map(|function| kinds.values().map(move |call| verdict(function, call))).collect()
}

#[test]
fn every_function_may_do_what_it_does_and_no_more() {
    let (used, allowed) = (used(), allowed());
    if let Some(folder) = std::env::var_os("SPOTSWEEP_RECORD") {
        fs::create_dir_all(&folder).unwrap();
        fs::write(Path::new(&folder).join("permissions.json"), verdicts(&used).to_string()).unwrap();
    }
    let actions_of = |calls: &BTreeSet<Call>| calls.iter().flat_map(needed).collect();
    let mut wrong = Vec::new();
    for (function, allowed) in &allowed {
        let used: BTreeSet<String> = used.get(function).map(actions_of).unwrap_or_default();
        let unused = allowed.difference(&used).filter(|action| !is_beyond(function, action));
        wrong.extend(unused.map(|action| format!("{function} may {action} and never does")));
        wrong.extend(used.difference(allowed).map(|action| format!("{function} does {action} and may not")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The services of `spotsweep_aws`, and how to see whether a role needs them. If a needed service is missing, the
/// function fails at the first command for it. If there is one too many, its binary has a client that it never uses.
type Wanted = fn(&BTreeMap<String, BTreeSet<String>>) -> bool;
const SERVICES: [(&str, Wanted); 13] = [
    ("uploads", |role| role.contains_key("s3:AbortMultipartUpload")),
    ("targets", |role| role.contains_key("batch:DescribeJobDefinitions")),
    ("lines", |role| {
        role.get("s3:GetObject").is_some_and(|on| on.iter().any(|resource| resource.ends_with("trials.idx")))
    }),
    ("access", |role| role.contains_key("sts:AssumeRole")),
    ("batch", |role| role.contains_key("batch:SubmitJob")),
    ("ecs", |role| role.contains_key("ecs:DescribeContainerInstances")),
    ("drains", |role| role.contains_key("ecs:UpdateContainerInstancesState")),
    ("hosts", |role| role.contains_key("ec2:TerminateInstances")),
    ("tasks", |role| role.contains_key("ecs:DescribeTasks")),
    ("ebs", |role| role.contains_key("ec2:CreateSnapshot")),
    ("bus", |role| role.contains_key("events:PutEvents") && !role.contains_key("sns:Publish")),
    ("bus_and_topics", |role| role.contains_key("events:PutEvents") && role.contains_key("sns:Publish")),
    ("results", |role| role.contains_key("pricing:GetProducts")),
];

#[test]
fn every_function_has_a_folder_and_a_place_in_the_template() {
    let expected = BTreeSet::from(FUNCTIONS.map(str::to_owned));
    let template = Permissions::of_template(CONTROL_PLANE).unwrap().functions;
    assert_eq!(template.into_keys().collect::<BTreeSet<_>>(), expected, "infra/control-plane.yaml");
    let folders = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../functions")).unwrap();
    let folders = folders.map(|folder| folder.unwrap().file_name().into_string().unwrap());
    assert_eq!(folders.collect::<BTreeSet<_>>(), expected, "functions/");
}

#[test]
fn every_function_opens_the_services_that_its_role_allows() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../functions");
    let mut wrong = Vec::new();
    for (function, role) in Permissions::of_template(CONTROL_PLANE).unwrap().functions {
        let main = fs::read_to_string(folder.join(&function).join("src/main.rs")).unwrap();
        let imported = main.lines().find(|line| line.starts_with("use spotsweep_aws::")).unwrap();
        let opened: BTreeSet<&str> = imported.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        for (service, wanted) in SERVICES {
            if opened.contains(service) != wanted(&role.permissions) {
                wrong.push(format!("{function} and {service}: opened {}", opened.contains(service)));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// `reconcile` also has files read again. Another noun's code would be in a binary that never reaches it.
#[test]
fn every_function_is_built_with_its_noun() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../functions");
    for function in FUNCTIONS {
        let main = fs::read_to_string(folder.join(function).join("src/main.rs")).unwrap();
        let words = function.split('-').map(|word| format!("{}{}", word[..1].to_uppercase(), &word[1..]));
        let again = if function == "reconcile" { ", &SweepUpload" } else { "" };
        let expected = format!("from_env(&[&{}{again}])", words.collect::<String>());
        assert!(main.contains(&expected), "{function} without {expected}");
    }
}
