#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use spotsweep_protocol::claim::Reply;
use spotsweep_protocol::ids::JobId;
use spotsweep_protocol::metric::{Metric, Source};
use spotsweep_protocol::rungs::Rung;
use spotsweep_protocol::secret::Secret;
use spotsweep_protocol::stop::StopReason;
use spotsweep_search::suggest::{Basis, End};
use spotsweep_sweep_file::parse;

use crate::command::Command;
use crate::decide::decide;
use crate::decide::scene::NOUNS;
use crate::event::{Ask, Event, TrialRequest};
use crate::input::Input;
use crate::outcome::Outcome;
use crate::settings::Settings;
use crate::store::{History, Record, Reservation, Versioned, View};
use spotsweep_ranking::peer::Peer;
use spotsweep_ranking::suggestion::observed;
use spotsweep_records::sweep::{Plan, Stage, Sweep};
use spotsweep_records::trial::{Comparison, EarlyStop, JobStatus, Trial};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// A sweep with suggested parameters, and the records of its trials.
struct Scene {
    sweep: Sweep,
    search: Arc<spotsweep_sweep_file::Search>,
    settings: Settings,
    trials: BTreeMap<u32, Trial>,
    reserved: Vec<Reservation>,
}

fn held<T>(record: T) -> Option<Versioned<T>> {
    Some(Versioned { record, version: 1, due: None, recent: History::new() })
}

impl Scene {
    fn new(parameters: &str, more: &str) -> Self {
        let text = format!(
            "method: bayes\nrun_cap: 8\nmetric: {{name: loss, goal: minimize}}\nparameters: {parameters}\nspotsweep: {{{more}}}\n"
        );
        let file = parse("bayes.yaml", "1", text.as_bytes()).unwrap();
        let upload = json!({ "bucket": "b", "key": "sweeps/s.yaml", "fingerprint": "v", "uploaded_at": NOW });
        let plan = json!({ "trials": 8, "queue": "q", "definition": "d:1", "attempts": 50, "suggests": true,
            "metric": { "name": "loss", "maximize": false, "over": "last" },
            "parts": [{ "trials": 8, "job": "j" }] });
        let mut sweep = Sweep::new(serde_json::from_value(upload).unwrap());
        sweep.stage = Stage::Running;
        sweep.claim_token = Some(Secret::of([7; 16]));
        let plan = Plan { repeats: file.repeats().cloned(), ..serde_json::from_value(plan).unwrap() };
        sweep.plan = Some(plan);
        let names = ["SPOTSWEEP_BUCKET", "SPOTSWEEP_CLAIM_FUNCTION", "SPOTSWEEP_TRIAL_ROLE", "SPOTSWEEP_PARAMETERS"];
        let settings = Settings::from_variables(|name| names.contains(&name).then(|| "x".into())).unwrap();
        let search = Arc::new(file.search().unwrap().clone());
        Self { sweep, search, settings, trials: BTreeMap::new(), reserved: Vec::new() }
    }

    fn view(&self, index: u32, has_peers: bool) -> View {
        let plan = self.sweep.plan.as_ref();
        let peer = |(index, trial): (&u32, &Trial)| Some((*index, Peer::of(trial, plan)?));
        View {
            sweep: held(self.sweep.clone()),
            trial: self.trials.get(&index).cloned().and_then(held),
            peers: has_peers.then(|| self.trials.iter().filter_map(peer).collect()),
            ..View::default()
        }
    }

    /// Claims an attempt, and returns the trial's parameters, or the reason of the refusal.
    fn claim(&mut self, index: u32, attempt: u32) -> Result<Map<String, Value>, StopReason> {
        let (job, secret) = (JobId { parent: "j".into(), child: Some(index) }, Some(Secret::of([1; 16])));
        let (sweep, token) = (self.sweep.id.clone(), self.sweep.claim_token.clone());
        let request = TrialRequest { sweep, index, job, attempt, token, secret, ask: Ask::Claim(Default::default()) };
        let mut input: Input = Event::TrialRequested(request).into();
        loop {
            let view = self.view(index, !matches!(input, Input::Event(_)));
            let mut decision = decide(NOUNS, &view, &input, &self.settings, NOW);
            if let Some(Reply::Refused { reason }) = decision.reply.take() {
                return Err(reason);
            }
            if let Some(change) = decision.change {
                self.reserved.extend(change.reserved);
                let Record::Trial(trial) = change.record else { unreachable!() };
                self.trials.insert(index, *trial);
            }
            input = match (decision.commands.pop(), decision.next.pop()) {
                (Some(Command::ReadSpace { request, .. }), None) => {
                    Outcome::SpaceRead { request, search: Arc::clone(&self.search) }.into()
                }
                (None, Some(followup)) => Input::Followup(followup),
                (Some(Command::FindLine { .. }), None) => return Ok(self.given(index)),
                other => unreachable!("{other:?}"),
            };
        }
    }

    fn given(&self, index: u32) -> Map<String, Value> {
        self.trials[&index].suggested.as_ref().unwrap().parameters()
    }

    fn basis(&self, index: u32) -> Option<Basis> {
        self.trials[&index].suggested.as_ref().unwrap().basis
    }

    fn ends(&mut self, index: u32, loss: Option<f64>) {
        let trial = self.trials.get_mut(&index).unwrap();
        trial.status = if loss.is_some() { JobStatus::Succeeded } else { JobStatus::Failed };
        trial.metrics.extend(loss.map(|loss| ("loss".to_owned(), Metric::of(loss, None, Source::Stated))));
    }
}

#[test]
fn a_trial_keeps_the_parameters_of_its_first_claim() {
    let mut scene = Scene::new("{lr: {min: 0.0, max: 1.0}, n: {value: 3}}", "seed: 1");
    let first = scene.claim(0, 1).unwrap();
    assert!(first["lr"].as_f64().is_some_and(|lr| (0.0..=1.0).contains(&lr)) && first["n"] == 3, "{first:?}");
    assert_ne!(scene.claim(1, 1).unwrap(), first);
    for attempt in [1, 2, 3] {
        assert_eq!(scene.claim(0, attempt).unwrap(), first, "attempt {attempt}");
    }
    assert!(scene.reserved.is_empty(), "real numbers do not meet");
}

#[test]
fn the_same_results_give_the_same_suggestions_and_lead_to_the_minimum() {
    let results = |scene: &mut Scene| {
        let mut given = Vec::new();
        for index in 0..8 {
            let lr = scene.claim(index, 1).unwrap()["lr"].as_f64().unwrap();
            scene.ends(index, Some((lr - 0.3).powi(2)));
            given.push(lr);
        }
        given
    };
    let scene = || Scene::new("{lr: {min: 0.0, max: 1.0}}", "seed: 1");
    let (mut one, mut two) = (scene(), scene());
    let given = results(&mut one);
    assert_eq!(given, results(&mut two));
    assert!(matches!(one.basis(7), Some(Basis::Model { .. })), "{:?}", one.basis(7));
    // The model finds the minimum at 0.3, and then tries other values too.
    assert!(given[6..].iter().any(|lr| (lr - 0.3).abs() < 0.1), "{given:?}");
}

#[test]
fn a_sweep_of_failures_goes_on_at_random() {
    let mut scene = Scene::new("{lr: {min: 0.0, max: 1.0}}", "seed: 1");
    for index in 0..8 {
        scene.claim(index, 1).unwrap();
        scene.ends(index, None);
    }
    assert!(!matches!(scene.basis(7), Some(Basis::Model { .. })), "{:?}", scene.basis(7));
}

#[test]
fn trials_of_a_set_have_its_parameters_and_values_of_their_own() {
    let more = "seed: 1, repeats: {parameter: run, values: [1, 2]}";
    let mut scene = Scene::new("{lr: {min: 0.0, max: 1.0}}", more);
    let all: Vec<Map<String, Value>> = (0..8).map(|index| scene.claim(index, 1).unwrap()).collect();
    for set in 0..4 {
        assert_eq!(all[set]["lr"], all[set + 4]["lr"]);
        assert_eq!((&all[set]["run"], &all[set + 4]["run"]), (&json!(1), &json!(2)));
    }
    // The trial that chooses for its set reserves that. A trial that finds the choice reserves nothing.
    assert_eq!(scene.reserved.len(), 4);
    assert!(scene.basis(0).is_some() && scene.basis(4).is_none());
}

#[test]
fn countable_points_are_reserved_and_come_once() {
    let mut scene = Scene::new("{a: {values: [w, x, y, z]}, b: {values: [1, 2]}}", "seed: 1");
    let all: Vec<String> = (0..8).map(|index| Value::Object(scene.claim(index, 1).unwrap()).to_string()).collect();
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!((distinct.len(), scene.reserved.len()), (8, 8), "{all:?}");
}

#[test]
fn excluded_points_are_not_suggested_and_the_first_ones_are_those_of_the_file() {
    let more = "seed: 1, first: [{a: y}, {a: z, b: 2}], exclude: [{a: w}, {a: x, b: 1}]";
    let mut scene = Scene::new("{a: {values: [w, x, y, z]}, b: {values: [1, 2]}}", more);
    let all: Vec<Map<String, Value>> = (0..5).map(|index| scene.claim(index, 1).unwrap()).collect();
    assert_eq!(all[0]["a"], "y");
    assert_eq!((&all[1]["a"], &all[1]["b"]), (&json!("z"), &json!(2)));
    assert!(all.iter().all(|given| given["a"] != "w" && (given["a"] != "x" || given["b"] != 1)), "{all:?}");
}

/// A trial of a set: its status, its loss, its losses at two rungs, and whether it was stopped early.
type OfSet = (JobStatus, Option<f64>, Option<[f64; 2]>, bool);

/// Returns a set of these trials as the search gets it. The first trial has the set's parameters.
fn seen(repeats: &str, trials: &[OfSet]) -> spotsweep_search::suggest::Trial {
    let mut scene = Scene::new("{lr: {min: 0.0, max: 1.0}}", repeats);
    for (index, (status, loss, rungs, is_stopped)) in (0_u32..).step_by(2).zip(trials) {
        scene.claim(index, 1).unwrap();
        let trial = scene.trials.get_mut(&index).unwrap();
        trial.status = *status;
        trial.metrics.extend(loss.map(|loss| ("loss".to_owned(), Metric::of(loss, None, Source::Stated))));
        let rung = |value| Rung { value, best: value, mean: value };
        let reached = rungs.iter().flatten().filter(|value| value.is_finite());
        trial.rungs = [3, 9].into_iter().zip(reached.map(|value| rung(*value))).collect();
        let by = Comparison { value: 1.0, cut: Some(0.5), of: 4 };
        trial.stopped = is_stopped.then_some(EarlyStop { rung: 3, by, at_interruption: false });
    }
    let view = scene.view(1, true);
    let plan = scene.sweep.plan.as_ref().unwrap();
    let mut observed = observed(plan, plan.metric.as_ref().unwrap(), &scene.search, &view.peers.unwrap());
    assert_eq!(observed.len(), 1, "one observation for a set");
    observed.remove(0)
}

#[test]
fn a_set_is_one_observation_with_the_mean_of_its_repeats() {
    use JobStatus::{Failed, Running, Succeeded};
    let of = |trials: &[OfSet]| {
        let seen = seen("seed: 1, repeats: {parameter: run, values: [1, 2, 3, 4]}", trials);
        (seen.end, seen.rungs.iter().map(|(step, rung)| (*step, rung.best)).collect::<Vec<_>>())
    };
    let (ok, run) = (Succeeded, Running);
    let nan = f64::NAN;
    let all = of(&[(ok, Some(0.25), Some([0.5, 0.25]), false), (ok, Some(0.75), Some([1.0, 0.75]), false)]);
    assert_eq!(all, (Some(End::Finished(0.5)), vec![(3, 0.75), (9, 0.5)]));
    // While others run, the trials that have finished count.
    let half = of(&[(ok, Some(0.25), Some([0.5, 0.25]), false), (run, Some(9.0), Some([9.0, nan]), false)]);
    assert_eq!(half, (Some(End::Finished(0.25)), vec![(3, 0.5), (9, 0.25)]));
    let pending = of(&[(run, Some(0.5), Some([0.5, 0.25]), false), (run, Some(1.0), Some([1.0, nan]), false)]);
    assert_eq!(pending, (None, vec![(3, 0.75)]), "only rungs that each of them has reached");
    // A set without a rank is not a good result, even if one repeat of it went well.
    let stopped = of(&[(ok, Some(0.25), Some([0.5, 0.25]), false), (ok, Some(1.0), Some([1.0, nan]), true)]);
    assert_eq!(stopped, (Some(End::Stopped), vec![(3, 0.75)]));
    let failed = of(&[(ok, Some(0.25), Some([0.5, 0.25]), false), (Failed, None, None, false)]);
    assert_eq!(failed.0, Some(End::Failed));
    let diverged = of(&[(ok, Some(0.25), None, false), (ok, Some(nan), None, false)]);
    assert!(matches!(diverged.0, Some(End::Finished(cost)) if cost.is_nan()), "{diverged:?}");
}
