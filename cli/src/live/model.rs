//! Derives what is shown of a sweep from one look after another.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};
use spotsweep_ranking::{ranked_value, ranking};
use spotsweep_records::sweep::Ranking;
use spotsweep_records::trial::Trial;
use spotsweep_report::warnings::{About, Warned, current, texts};

use super::grid::{Standing, standings};
use super::look::Look;
use super::losses::Losses;
use super::watch_event::{WatchEvent, What, between};
use super::zone::{Zone, zones};
use super::{blockers, eta};
use crate::progress::{Best, Figures};

/// Number of events to which a person can scroll back.
const MOST_EVENTS: usize = 5_000;

/// Everything that is shown.
#[derive(Debug)]
pub(crate) struct Model {
    /// The newest look.
    pub(crate) look: Look,
    /// Counts by state, and the best trial.
    pub(crate) figures: Figures,
    /// State of each trial, by index.
    pub(crate) standings: Vec<Standing>,
    /// What runs in each zone.
    pub(crate) zones: BTreeMap<String, Zone>,
    /// Events so far, newest last.
    pub(crate) events: Vec<WatchEvent>,
    /// The best value over time.
    pub(crate) best: Vec<(Timestamp, f64)>,
    /// Attempts, interruptions and lost time so far.
    pub(crate) losses: Losses,
    /// What the sweep waits for.
    pub(crate) blockers: Vec<String>,
    /// Warnings about the sweep, a sentence each.
    pub(crate) warnings: Vec<String>,
    /// Seconds until the last trial has ended.
    pub(crate) seconds_left: Option<f64>,
    /// Cost so far, and that of the same time on demand, in USD.
    pub(crate) cost: Option<(f64, f64)>,
    /// The best value of the trials that have succeeded.
    leading: Option<f64>,
}

impl Model {
    /// The model of the first look, and all events before it.
    pub(crate) fn new(look: Look) -> (Self, Vec<WatchEvent>) {
        let mut model = Self {
            figures: Figures::default(),
            standings: Vec::new(),
            zones: BTreeMap::new(),
            events: Vec::new(),
            best: Vec::new(),
            losses: Losses::default(),
            blockers: Vec::new(),
            warnings: Vec::new(),
            seconds_left: None,
            cost: None,
            leading: None,
            look,
        };
        let news = news(None, &model.look);
        let news = model.tell(news);
        model.work_out();
        (model, news)
    }

    /// Takes the next look, and returns the events since the last one, oldest first.
    pub(crate) fn take(&mut self, look: Look) -> Vec<WatchEvent> {
        let news = news(Some(&self.look), &look);
        self.look = look;
        let news = self.tell(news);
        self.work_out();
        news
    }

    /// How trials are ranked, if they are.
    fn ranking(&self) -> Option<Ranking> {
        self.look.sweep.plan.as_ref().and_then(|plan| ranking(plan, &self.look.trials))
    }

    /// Adds to the events what only the whole sweep shows: which trial is the best.
    fn tell(&mut self, mut news: Vec<WatchEvent>) -> Vec<WatchEvent> {
        let has_repeats = self.look.sweep.plan.as_ref().is_some_and(|plan| plan.repeats.is_some());
        if let Some(by) = self.ranking() {
            for WatchEvent { at, trial, what } in &mut news {
                if let What::Succeeded { metric, value, best, .. } = what {
                    *value = trial.and_then(|index| value_of(&self.look.trials, index, &by));
                    *metric = value.map(|_| by.name.clone());
                    let leads = |value| self.leading.is_none_or(|leading| is_better(&by, value, leading));
                    // If parameter sets are repeated, no single trial is the best.
                    *best = !has_repeats && value.is_some_and(leads);
                    self.leading = if *best { *value } else { self.leading };
                    self.best.extend((*best).then_some(()).and(*value).map(|value| (*at, value)));
                }
            }
        }
        self.events.extend(news.iter().cloned());
        let surplus = self.events.len().saturating_sub(MOST_EVENTS);
        self.events.drain(..surplus);
        news
    }

    fn work_out(&mut self) {
        let Look { at, sweep, trials, .. } = &self.look;
        let total = self.look.total();
        self.standings = standings(total, trials);
        self.zones = zones(trials);
        let instances = |(zone, found): (&String, &Zone)| {
            (zone.clone(), BTreeMap::from([("running".to_owned(), found.instances.len() as u64)]))
        };
        self.figures = Figures {
            instances: self.zones.iter().map(instances).collect(),
            ..Figures::of(sweep.plan.as_ref(), trials)
        };
        let newest = self.figures.best.as_ref().map(Best::ranked_by);
        if newest.is_some() && newest != self.best.last().map(|(_, value)| *value) {
            self.best.extend(newest.map(|value| (self.ended_at().unwrap_or(*at), value)));
        }
        self.losses = Losses::of(trials, *at);
        self.blockers = blockers::blockers(&self.look);
        self.warnings = texts(sweep, trials, *at);
        self.seconds_left = if self.look.is_over() { None } else { eta::seconds_left(total, trials, *at) };
        // Without prices, as on the local stack, no cost is shown.
        let spent = sweep.spent.filter(|spent| spent.usd > 0.0 || spent.on_demand_usd > 0.0);
        self.cost = spent.map(|spent| (spent.usd, spent.on_demand_usd));
    }

    /// When the last container of an ended sweep ended.
    pub(crate) fn ended_at(&self) -> Option<Timestamp> {
        let ended = self.look.trials.iter().filter_map(Trial::stopped_at).max();
        ended.filter(|_| self.look.is_over())
    }

    /// Seconds from the upload to a time. For an ended sweep it is at most the time to its end.
    pub(crate) fn elapsed(&self, at: Timestamp) -> f64 {
        self.look.sweep.seconds_until(self.ended_at().map_or(at, |ended| ended.min(at))).max(0.0)
    }

    /// Whether every trial of an ended sweep has succeeded.
    pub(crate) fn is_good(&self) -> bool {
        self.look.is_over() && self.figures.trials > 0 && self.figures.succeeded == self.figures.trials
    }

    /// One frame as JSON.
    pub(crate) fn json(&self) -> Value {
        let Figures { trials, waiting, starting, running, succeeded, failed, cancelled, best, leader, .. } =
            &self.figures;
        let best = best.as_ref().map(|best| best.json("trial"));
        let leader = leader.as_ref().map(|leader| leader.json("trial"));
        let zone = |(name, zone): (&String, &Zone)| {
            let Zone { running, starting, instances } = zone;
            (name.clone(), json!({ "running": running, "starting": starting, "instances": instances }))
        };
        let Losses { attempts, interruptions, zone_moves, seconds_lost } = self.losses;
        json!({
            "at": self.look.at.to_string(),
            "sweep": self.look.sweep.id.as_str(),
            "stage": self.look.sweep.stage.name(),
            "file": self.look.sweep.upload.key,
            "elapsed_seconds": self.elapsed(self.look.at),
            "seconds_left": self.seconds_left,
            "trials": trials,
            "waiting": waiting,
            "starting": starting,
            "running": running,
            "succeeded": succeeded,
            "failed": failed,
            "cancelled": cancelled,
            "stopped_early": self.figures.stopped,
            "zones": self.zones.iter().map(zone).collect::<serde_json::Map<_, _>>(),
            "best": best,
            "leader": leader,
            "attempts": attempts,
            "interruptions": interruptions,
            "zone_moves": zone_moves,
            "seconds_lost": seconds_lost,
            "cost": self.cost.map(|(usd, on_demand)| json!({ "usd": usd, "on_demand_usd": on_demand })),
            "waits_for": self.blockers,
            "warnings": self.warnings,
        })
    }
}

/// All events between two looks, oldest first.
fn news(before: Option<&Look>, after: &Look) -> Vec<WatchEvent> {
    let held: BTreeMap<u32, &Trial> =
        before.into_iter().flat_map(|look| &look.trials).map(|trial| (trial.index, trial)).collect();
    let of_trials = after.trials.iter().flat_map(|trial| between(held.get(&trial.index).copied(), trial, after.at));
    let mut news: Vec<WatchEvent> = of_trials.collect();
    let of_sweep = |what| WatchEvent { at: after.at, trial: None, what };
    if before.is_none_or(|before| before.sweep.stage.name() != after.sweep.stage.name()) {
        news.push(of_sweep(What::Stage { stage: after.sweep.stage.name() }));
    }
    let stopped = after.sweep.stopped.as_ref().filter(|_| before.is_none_or(|before| before.sweep.stopped.is_none()));
    news.extend(stopped.map(|reason| of_sweep(What::Stopped { reason: reason.to_string() })));
    let known: Vec<About> = before.map(warned).unwrap_or_default().into_iter().map(|warned| warned.about).collect();
    let new = warned(after).into_iter().filter(|warned| !known.contains(&warned.about));
    news.extend(new.map(|warned| of_sweep(What::Warned { warning: warned.text })));
    news.sort_by_key(|news| news.at);
    news
}

fn warned(look: &Look) -> Vec<Warned> {
    current(&look.sweep, &look.trials, look.at)
}

fn value_of(trials: &[Trial], index: u32, by: &Ranking) -> Option<f64> {
    let place = trials.binary_search_by_key(&index, |trial| trial.index).ok()?;
    ranked_value(by, trials.get(place)?)
}

fn is_better(by: &Ranking, value: f64, than: f64) -> bool {
    if by.maximize { value > than } else { value < than }
}

#[cfg(test)]
mod tests {
    use spotsweep_records::sweep::Stage;
    use spotsweep_records::trial::JobStatus;

    use super::*;
    use crate::live::samples::{at, interrupted, look, running, succeeded, trial};

    fn texts(news: &[WatchEvent]) -> Vec<String> {
        news.iter().map(WatchEvent::text).collect()
    }

    #[test]
    fn looks_become_figures_and_events() {
        let (mut model, news) = Model::new(look(5, 4, vec![]));
        assert_eq!(texts(&news), ["the sweep is running"]);
        assert_eq!((model.figures.waiting, model.seconds_left, model.ended_at()), (4, None, None));

        let news = model.take(look(30, 4, vec![succeeded(0, 5, 25, 0.5), running(1, "us-east-1c", 10)]));
        assert_eq!(
            texts(&news),
            [
                "trial 0 runs in us-east-1a on i-us-east-1a",
                "trial 1 runs in us-east-1c on i-us-east-1c",
                "trial 0 succeeded after 20 s, accuracy 0.5000, the best so far",
            ]
        );
        let zone = &model.zones["us-east-1c"];
        assert_eq!((zone.running, zone.instances.len(), model.zones.len()), (1, 1, 1));
        assert_eq!(model.seconds_left, Some(25.0), "two more, with 1.6 at once");

        let mut reclaimed = running(1, "us-east-1c", 10);
        *reclaimed.attempt(1) = interrupted("us-east-1c", 10, 40);
        (reclaimed.ended, reclaimed.status) = (1, JobStatus::Runnable);
        let news = model.take(look(50, 4, vec![succeeded(0, 5, 25, 0.5), reclaimed.clone()]));
        assert_eq!(news.len(), 1, "{news:?}");
        assert_eq!(model.losses, Losses { attempts: 2, interruptions: 1, zone_moves: 0, seconds_lost: 10.0 });
        assert_eq!(model.standings[1], Standing::Interrupted);

        (reclaimed.status, *reclaimed.attempt(2)) =
            (JobStatus::Running, running(1, "us-east-1a", 60).attempts[&1].clone());
        model.take(look(70, 4, vec![succeeded(0, 5, 25, 0.5), reclaimed, succeeded(2, 50, 66, 0.25)]));
        assert_eq!(model.losses, Losses { attempts: 4, interruptions: 1, zone_moves: 1, seconds_lost: 20.0 });
        assert_eq!(model.best, [(at(25), 0.5)], "0.25 is no best");
        let last = model.events.last().map(WatchEvent::text);
        assert_eq!(last.as_deref(), Some("trial 2 succeeded after 16 s, accuracy 0.2500"));

        let all = || vec![succeeded(0, 5, 25, 0.5), succeeded(1, 5, 80, 0.75)];
        let mut over = look(95, 2, all());
        over.sweep.stage = Stage::Settled;
        let news = model.take(over);
        assert_eq!(news.last().map(|news| &news.what), Some(&What::Stage { stage: "settled" }));
        assert!(model.is_good() && model.seconds_left.is_none() && model.blockers.is_empty());
        assert_eq!(model.elapsed(at(1000)), 80.0, "the clock stands");
    }

    #[test]
    fn an_attempt_that_never_ran_only_makes_the_loss_longer() {
        let mut reclaimed = trial(0, JobStatus::Runnable);
        reclaimed.ended = 2;
        *reclaimed.attempt(1) = interrupted("us-east-1a", 10, 20);
        *reclaimed.attempt(2) = interrupted("us-east-1a", 22, 25);
        (reclaimed.attempt(2).started_at, reclaimed.attempt(2).zone) = (None, None);
        let (mut model, _) = Model::new(look(30, 1, vec![reclaimed.clone()]));
        assert_eq!(model.losses, Losses { attempts: 1, interruptions: 2, zone_moves: 0, seconds_lost: 10.0 });
        (reclaimed.status, *reclaimed.attempt(3)) =
            (JobStatus::Running, running(0, "us-east-1c", 32).attempts[&1].clone());
        let news = model.take(look(40, 1, vec![reclaimed]));
        assert_eq!(model.losses, Losses { attempts: 2, interruptions: 2, zone_moves: 1, seconds_lost: 12.0 });
        assert_eq!(
            texts(&news),
            ["trial 0 runs again in us-east-1c on i-us-east-1c: attempt 3, before in us-east-1a, 12 s lost"]
        );
    }

    #[test]
    fn a_trial_is_the_best_once_it_has_succeeded() {
        let mut trial = running(0, "a", 1);
        trial.metrics = succeeded(0, 0, 1, 0.75).metrics;
        let (mut model, _) = Model::new(look(5, 1, vec![trial]));
        assert_eq!((model.best.as_slice(), &model.json()["best"]), (&[] as &[_], &Value::Null));
        model.take(look(12, 1, vec![succeeded(0, 1, 12, 0.5)]));
        assert_eq!(model.best, [(at(12), 0.5)]);
        assert_eq!(model.json()["best"]["value"], 0.5);
    }

    #[test]
    fn a_set_is_the_best_by_its_mean_once_each_repeat_has_succeeded() {
        let repeated = |second, trials| {
            let mut look = look(second, 4, trials);
            let repeats = json!({ "parameter": "seed", "values": [1, 2], "sets": 2 });
            look.sweep.plan.iter_mut().for_each(|plan| plan.repeats = serde_json::from_value(repeats.clone()).ok());
            look
        };
        let (one, two) = (succeeded(0, 0, 10, 1.0), succeeded(2, 20, 30, 0.5));
        let (mut model, news) = Model::new(repeated(15, vec![one.clone()]));
        assert_eq!(texts(&news)[1], "trial 0 succeeded after 10 s, accuracy 1.0000", "no trial is the best by itself");
        assert_eq!(model.best, []);
        model.take(repeated(35, vec![one, two]));
        assert_eq!(model.best.iter().map(|(_, value)| *value).collect::<Vec<_>>(), [0.75]);
        let best = &model.json()["best"];
        assert_eq!((&best["trial"], &best["set"]["mean"]), (&json!(0), &json!(0.75)));
    }

    #[test]
    fn failures_and_rejections_are_not_good() {
        let mut failed = look(9, 1, vec![trial(0, JobStatus::Failed)]);
        failed.sweep.stage = Stage::Settled;
        let mut rejected = look(9, 1, vec![]);
        (rejected.sweep.stage, rejected.sweep.plan) = (Stage::Rejected, None);
        for look in [failed, rejected] {
            let (model, _) = Model::new(look);
            assert!(model.look.is_over() && !model.is_good());
        }
    }
}
