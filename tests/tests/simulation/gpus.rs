//! Trials that share an instance with two GPUs: each is granted those that ECS has assigned to its container.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use spotsweep_protocol::claim::{ClaimRequest, Machine, Reply, Request, Task};
use spotsweep_protocol::secret::{Secret, TOKEN_VARIABLE};
use spotsweep_simulation::harness::{Account, Harness};
use spotsweep_simulation::invocation::Invoked;
use spotsweep_world::ecs::CONTAINER;
use spotsweep_world::{Effect, Start, Trouble};

/// Type of an instance with 64 vCPUs and two GPUs. There is one at a time.
const INSTANCE: (&str, u32) = ("g5g.16xlarge", 64);
const FILE: &str = "trials: [{a: 1}, {a: 2}]\nspotsweep: {workspace: off, resources: {gpus: 1}}\n";

/// Lets both trials claim with the ECS tasks of their containers. Returns the start and the claim of each.
pub(crate) fn claims(trouble: &Trouble) -> Vec<(Start, Invoked)> {
    let account = Account { instance_type: INSTANCE.0, max_vcpus: INSTANCE.1, ..Account::default() };
    let mut harness = Harness::with(1, &account);
    harness.cloud.world().trouble_mut().clone_from(trouble);
    harness.invoke(&harness.put("gpus.yaml", FILE));
    let mut starts = Vec::new();
    for _ in 0..600 {
        harness.pass(Duration::from_secs(1));
        let effects = harness.cloud.world().take_effects();
        starts.extend(effects.into_iter().filter_map(|effect| match effect {
            Effect::Start(start) => Some(start),
            Effect::Emit(_) | Effect::Kill(_) | Effect::Stop { .. } => None,
        }));
    }
    let claim = |start: Start| {
        let task = Some(Task { arn: start.task.clone(), container: CONTAINER.to_owned() });
        let machine = Machine { instance: Some(start.instance.clone()), task, ..Machine::default() };
        let (sweep, index) =
            (start.variable("SPOTSWEEP_SWEEP").unwrap().to_owned(), start.number("AWS_BATCH_JOB_ARRAY_INDEX"));
        let request = ClaimRequest {
            sweep,
            index: index.unwrap(),
            job: start.attempt.job.clone(),
            attempt: 1,
            token: start.variable(TOKEN_VARIABLE).map(|token| token.parse().unwrap()),
            secret: Some(Secret::of([1; 16])),
            request: Request::Claim(machine),
        };
        let invoked = harness.invoke(&json!(request));
        (start, invoked)
    };
    starts.into_iter().map(claim).collect()
}

fn granted(invoked: Invoked) -> Option<Vec<String>> {
    match invoked.answer.unwrap().unwrap().reply {
        Some(Reply::Granted(grant)) => grant.gpus,
        other => panic!("{other:?}"),
    }
}

#[test]
fn no_gpu_is_granted_to_two_trials() {
    for legacy_nvidia_runtime in [false, true] {
        let claims = claims(&Trouble { legacy_nvidia_runtime, ..Trouble::default() });
        let instances: BTreeSet<String> = claims.iter().map(|(start, _)| start.instance.clone()).collect();
        assert_eq!((claims.len(), instances.len()), (2, 1), "both are on one instance");
        let mut all = BTreeSet::new();
        for (start, invoked) in claims {
            let gpus = granted(invoked).unwrap();
            assert_eq!(gpus.len(), 1, "{gpus:?}");
            let in_container = if legacy_nvidia_runtime { gpus[0].as_str() } else { "void" };
            assert_eq!(start.variable("NVIDIA_VISIBLE_DEVICES"), Some(in_container));
            all.extend(gpus);
        }
        assert_eq!(all.len(), 2, "{all:?}");
    }
    let unnamed = claims(&Trouble { unnamed_gpus: true, ..Trouble::default() });
    assert!(unnamed.into_iter().all(|(_, invoked)| granted(invoked) == Some(Vec::new())), "ECS names none");
}
