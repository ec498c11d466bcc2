#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::*;
use spotsweep_protocol::claim::Seal;
use spotsweep_protocol::ids::{JobId, SweepId};
use spotsweep_records::trial::JobStatus;
use spotsweep_records::workspace::{Fact, Keep, Origin, Place, Stage, Surroundings, Workspace, WorkspacePlan};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn plan(gib: Option<u32>) -> Plan {
    let text = r#"{"trials": 2, "queue": "q", "definition": "d:1", "attempts": 10, "parts": []}"#;
    let mut plan: Plan = serde_json::from_str(text).unwrap();
    plan.workspace = gib.map(|size_gib| WorkspacePlan {
        size_gib,
        origin: Origin::Blank,
        keep: Keep::default(),
        initialization_rate: None,
    });
    plan
}

/// Makes a trial from its attempts: instance, zone, start, end.
fn trial(index: u32, status: JobStatus, attempts: &[(&str, &str, i64, Option<i64>)]) -> Trial {
    let mut trial = Trial::new(SweepId::derive("b", "k", "v"), index, JobId::from(format!("job:{index}")));
    trial.status = status;
    for (number, (instance, zone, from, until)) in (1..).zip(attempts) {
        let attempt = trial.attempt(number);
        attempt.started_at = Some(at(*from));
        attempt.stopped_at = until.map(at);
        attempt.instance = Some((*instance).to_owned());
        attempt.zone = Some((*zone).to_owned());
        attempt.instance_type = Some("g5.xlarge".to_owned());
        attempt.market = Some(Market::Spot);
        trial.ended += u32::from(until.is_some());
    }
    trial
}

fn prices() -> Prices {
    let price = |zone: &str, from, usd| SpotPrice {
        pool: Pool { instance_type: "g5.xlarge".into(), zone: zone.into() },
        from: at(from),
        usd,
    };
    let spot = vec![price("a", 3600, 0.72), price("a", 0, 0.36), price("b", 0, 0.18)];
    Prices::new(spot, BTreeMap::from([("g5.xlarge".to_owned(), 1.006)]))
}

fn assert_near(found: f64, wanted: f64, what: &str) {
    assert!((found - wanted).abs() < 1e-9, "{what}: {found}, not {wanted}");
}

/// The trial runs one hour at 0.36 and half an hour at 0.72 in zone a, is reclaimed, and runs an hour at 0.18 in zone
/// b.
#[test]
fn each_attempt_pays_the_price_of_its_zone_and_time() {
    let trials = [trial(0, JobStatus::Succeeded, &[("i-1", "a", 0, Some(5400)), ("i-2", "b", 6000, Some(9600))])];
    let cost = costs(&plan(Some(73)), &trials, &prices(), at(20_000))[&0];
    assert_near(cost.instance_usd, 0.36 + 0.36 + 0.18, "spot");
    assert_near(cost.on_demand_usd, 2.5 * 1.006, "on demand");
    assert_near(cost.storage_usd, 73.0 * 0.08 / 730.0 * (9600.0 / 3600.0), "gp3");
    assert_near(cost.unpriced_seconds, 0.0, "all priced");
}

/// The trial has sealed 2 GiB. It is interrupted after half an hour, and then runs for an hour.
#[test]
fn what_was_sealed_is_kept_in_snapshots_from_the_first_interruption_on() {
    let mut trial = trial(0, JobStatus::Succeeded, &[("i-1", "b", 0, Some(1800)), ("i-2", "b", 2400, Some(5400))]);
    trial.attempt(1).exit_code = Some(spotsweep_records::trial::INTERRUPTED_EXIT_CODE);
    let place = Place { attempt: 2, zone: "b".into(), instance: "i-2".into() };
    let mut workspace = Workspace::new(Origin::Blank, place, at(0));
    workspace.seal = Some(Seal { files: 1, bytes: 2 << 30, newest: None });
    trial.workspace = Some(workspace);
    let cost = costs(&plan(Some(10)), &[trial], &prices(), at(9999))[&0];
    assert_near(cost.storage_usd, 10.0 * 0.08 / 730.0 * 1.5 + 2.0 * 0.05 / 730.0, "an hour and a half, and an hour");
}

/// The trial has sealed 2 GiB. It fails after half an hour, and is kept for three days.
#[test]
fn what_is_kept_is_counted_for_the_whole_time_once_the_trial_has_ended() {
    let mut trial = trial(0, JobStatus::Failed, &[("i-1", "b", 0, Some(1800))]);
    let place = Place { attempt: 1, zone: "b".into(), instance: "i-1".into() };
    let mut workspace = Workspace::new(Origin::Blank, place, at(0));
    workspace.seal = Some(Seal { files: 1, bytes: 2 << 30, newest: None });
    workspace.stage = Stage::Kept { since: at(1830), until: at(1800 + 72 * 3600) };
    trial.workspace = Some(workspace);
    let costs = costs(&plan(Some(10)), &[trial.clone()], &prices(), at(2000));
    let kept = 2.0 * 0.05 / 730.0 * 72.0;
    assert_near(costs[&0].kept_usd, kept, "three days");
    assert_near(costs[&0].storage_usd, 10.0 * 0.08 / 730.0 * 0.5 + kept, "and half an hour before");
    assert_near(spent(&[trial], &costs).kept_usd, kept, "the sweep's");
    assert_near(most_kept_usd(10, 72 * 3600), 10.0 * 0.05 / 730.0 * 72.0, "the whole volume");
}

/// Two copies have 2 GiB together, at half of the fastest rate. A repeated answer is billed once.
#[test]
fn an_initialization_rate_costs_what_it_has_loaded_in_proportion_to_the_rate() {
    let mut trial = trial(0, JobStatus::Succeeded, &[("i-1", "a", 0, Some(3600)), ("i-2", "b", 3600, Some(7200))]);
    let place = Place { attempt: 2, zone: "b".into(), instance: "i-2".into() };
    let mut plan = plan(Some(73));
    plan.workspace.as_mut().unwrap().initialization_rate = Some(150);
    let without = costs(&plan, std::slice::from_ref(&trial), &prices(), at(9999))[&0];
    let wanted = plan.workspace.as_ref().unwrap();
    let mut workspace = Workspace::new(Origin::Blank, place, at(0));
    let (now, lease_ended) = (at(0), at(0));
    let around = Surroundings {
        index: 0,
        snapshot: None,
        plan: wanted,
        ended: 0,
        is_over: false,
        keeps_until: None,
        is_due: false,
        now,
        lease_ended,
    };
    for (operation, bytes) in [(1, 3 << 29), (3, 1 << 29), (3, 1 << 29)] {
        workspace.apply(&Fact::RateTaken { operation, bytes }, around);
    }
    trial.workspace = Some(workspace);
    let trials = [trial];
    let costs = costs(&plan, &trials, &prices(), at(9999));
    assert_near(costs[&0].initialization_usd, 0.0036, "the rate");
    assert_near(costs[&0].storage_usd, without.storage_usd + 0.0036, "and with the volume");
    let spent = spent(&trials, &costs);
    assert_near(spent.initialization_usd, 0.0036, "the sweep's");
    assert_near(spent.usd, 0.36 + 0.18 + spent.storage_usd + spent.control_plane_usd, "what the budget counts");
}

/// Two trials run on one instance: one alone for 1 000 s, both for 2 600 s, the other alone for 1 000 s.
#[test]
fn trials_on_one_instance_share_it() {
    let trials = [
        trial(0, JobStatus::Succeeded, &[("i-1", "b", 0, Some(3600))]),
        trial(1, JobStatus::Running, &[("i-1", "b", 1000, None)]),
    ];
    let costs = costs(&plan(None), &trials, &prices(), at(4600));
    let second = 0.18 / 3600.0;
    assert_near(costs[&0].instance_usd, (1000.0 + 1300.0) * second, "the first");
    assert_near(costs[&1].instance_usd, (1300.0 + 1000.0) * second, "the second, which still runs");
    assert_near(costs[&0].instance_usd + costs[&1].instance_usd, 4600.0 * second, "together, the instance");
    assert_near(costs[&0].storage_usd, 0.0, "no workspace");
}

#[test]
fn a_price_in_yuan_is_no_price() {
    let pool = Pool { instance_type: "g5.xlarge".into(), zone: "cn-north-1a".into() };
    let prices = Prices::new(vec![SpotPrice { pool: pool.clone(), from: at(0), usd: 3.0 }], BTreeMap::new());
    assert_eq!(prices.usd(&pool, Market::Spot, at(0), at(3600)), None);
}

#[test]
fn what_has_no_price_is_said_and_not_guessed() {
    let mut unknown = trial(0, JobStatus::Failed, &[("i-1", "c", 0, Some(100)), ("i-2", "b", 200, Some(300))]);
    unknown.attempt(2).market = Some(Market::OnDemand);
    let mut silent = trial(1, JobStatus::Failed, &[("i-3", "b", 0, Some(50))]);
    silent.attempt(1).instance_type = None;
    let costs = costs(&plan(None), &[unknown, silent], &prices(), at(1000));
    assert_near(costs[&0].instance_usd, 100.0 * 1.006 / 3600.0, "an on-demand instance at its price");
    assert_near(costs[&0].on_demand_usd, costs[&0].instance_usd, "compared with the same seconds");
    assert_near(costs[&0].unpriced_seconds, 100.0, "a zone without prices");
    assert_near(costs[&1].unpriced_seconds, 50.0, "an attempt without a known type");
}

#[test]
fn a_sweep_is_the_sum_with_the_control_plane() {
    let trials = [
        trial(0, JobStatus::Succeeded, &[("i-1", "b", 0, Some(3600))]),
        trial(1, JobStatus::Succeeded, &[("i-2", "b", 0, Some(3600))]),
    ];
    let costs = costs(&plan(None), &trials, &prices(), at(9999));
    let spent = spent(&trials, &costs);
    assert_near(spent.control_plane_usd, 2.0 * 0.000_05 + 120.0 * 0.000_002, "2 attempts, 120 reports");
    assert_near(spent.usd, 0.36 + spent.control_plane_usd, "paid");
    assert_near(spent.saving().unwrap(), 1.0 - spent.usd / (2.0 * 1.006), "saved");
}
