#![allow(clippy::unwrap_used)]

use spotsweep_protocol::claim::Outputs;
use spotsweep_protocol::ids::{JobId, SweepId};
use spotsweep_protocol::metric::{Metric, Source};
use spotsweep_protocol::stop::StopReason;
use spotsweep_search::suggest::Basis;

use super::*;
use spotsweep_records::sweep::Over;
use spotsweep_records::trial::{AgentState, End, InstanceStatus, JobStatus, Silence};

fn trials(losses: &[Option<f64>]) -> Vec<Trial> {
    let trial = |(index, loss): (u32, &Option<f64>)| {
        let mut trial = Trial::new(SweepId::derive("b", "k", "v"), index, JobId::from(format!("j:{index}")));
        trial.status = JobStatus::Succeeded;
        trial.metrics.extend(loss.map(|loss| ("val_loss".to_owned(), Metric::of(loss, None, Source::Stated))));
        trial
    };
    (0..).zip(losses).map(trial).collect()
}

fn plan(metric: Option<&str>) -> Plan {
    let metric = metric.map(|name| Ranking { name: name.to_owned(), maximize: false, over: Over::Last });
    let plan = serde_json::json!({ "trials": 2, "queue": "q", "definition": "d:1", "attempts": 10, "parts": [] });
    Plan { metric, ..serde_json::from_value(plan).unwrap() }
}

#[test]
fn a_value_that_lies_apart_is_said() {
    let plan = |target: Option<f64>| Plan { target, ..plan(Some("val_loss")) };
    let found = |plan: &Plan, losses: &[Option<f64>]| -> Vec<About> {
        warnings(plan, &trials(losses), &BTreeMap::new(), Timestamp::UNIX_EPOCH)
            .into_iter()
            .map(|of| of.about)
            .collect()
    };
    let odd = [Some(0.5), Some(0.6), Some(-9e124)];
    assert_eq!(found(&plan(Some(0.05)), &odd), [About::Odd]);
    assert_eq!(found(&plan(Some(0.05)), &odd[..2]), []);
    assert_eq!(found(&plan(None), &odd), [], "it decides nothing about others");
}

#[test]
fn two_values_for_one_step_are_both_shown() {
    let (plan, mut trials) = (plan(Some("val_loss")), trials(&[Some(0.5), Some(0.25)]));
    let found = |trials: &[Trial]| warnings(&plan, trials, &BTreeMap::new(), Timestamp::UNIX_EPOCH);
    assert_eq!(found(&trials), []);
    let metric = Metric { other: Some(9.0), ..Metric::of(0.25, Some(3.0), Source::Stated) };
    trials[1].metrics.insert("val_loss".to_owned(), metric);
    let warned = found(&trials);
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert!(warned[0].about == About::Doubtful && warned[0].text.contains("trial 1 (0.25, and not 9)"), "{warned:?}");
    assert_eq!(trials[1].notes(), ["val_loss was logged as 0.25 and as 9 for step 3: 0.25 counts"]);
}

#[test]
fn what_was_not_searched_for_the_metric_is_said() {
    let mut trials = trials(&[None, None]);
    let outputs = Outputs { unread: vec!["scores.csv has `val_loss`".to_owned()], ..Outputs::default() };
    trials[1].end = Some(End { attempt: 1, exit_code: 0, outputs, seconds: 1.0, error: None });
    let warned = warnings(&plan(Some("val_loss")), &trials, &BTreeMap::new(), Timestamp::UNIX_EPOCH);
    assert!(warned[0].text.contains("in trial 1: scores.csv has `val_loss`"), "{warned:?}");
    assert_eq!(trials[1].notes(), ["not searched for metrics: scores.csv has `val_loss`"]);
}

#[test]
fn a_success_without_a_model_is_noted() {
    let mut trial = trials(&[Some(0.5)]).remove(0);
    let outputs = Outputs { without_files: true, ..Outputs::default() };
    trial.end = Some(End { attempt: 1, exit_code: 0, outputs, seconds: 1.0, error: None });
    assert_eq!(trial.notes().len(), 1, "{:?}", trial.notes());
    trial.status = JobStatus::Failed;
    assert_eq!(trial.notes(), Vec::<String>::new(), "its failure says more");
}

#[test]
fn what_results_cannot_be_trusted_for_is_said() {
    let log = |line: &str| BTreeMap::from([(0, vec!["Loading data".to_owned(), line.to_owned(), "done".to_owned()])]);
    /// A case has the file's metric, the trials' values, a line of a log, and parts of the warning.
    type Case = (Option<&'static str>, &'static [Option<f64>], &'static str, &'static [&'static str]);
    let cases: [Case; 9] = [
        (Some("val_loss"), &[Some(0.5), Some(0.25)], "", &[]),
        (Some("val_loss"), &[], "", &[]),
        (
            Some("val_loss"),
            &[None, None],
            "Epoch 3: val_loss: 0.23",
            &["no trial printed `val_loss=…`", "`Epoch 3: val_loss: 0.23`"],
        ),
        (
            Some("score"),
            &[Some(0.5), Some(0.25)],
            "x",
            &["no trial printed `score=…`", "val_loss", "metric: {name: …}"],
        ),
        (Some("val_loss"), &[Some(0.5), None], "", &["1 of 2 trials that succeeded never printed val_loss", "trial 1"]),
        (Some("val_loss"), &[Some(0.5), Some(f64::NAN)], "", &["1 of 2 trials diverged", "trial 1"]),
        (Some("val_loss"), &[Some(0.5), Some(0.5)], "", &["all 2 trials ended with val_loss = 0.5"]),
        (None, &[None, None], "train loss 0.31", &["no trial printed a metric", "`train loss 0.31`"]),
        (Some("val_loss"), &[Some(0.5)], "", &[]),
    ];
    for (metric, losses, line, parts) in cases {
        let found = warnings(&plan(metric), &trials(losses), &log(line), Timestamp::UNIX_EPOCH);
        assert_eq!(found.len(), usize::from(!parts.is_empty()), "{found:?}");
        for part in parts {
            assert!(found[0].text.contains(part), "{found:?} lacks {part}");
        }
    }
}

/// Returns a plan of 24 trials that are ranked by val_loss.
fn adaptive(rule: Option<serde_json::Value>, suggests: bool) -> Plan {
    let early_stopping = rule.map(|rule| serde_json::from_value(rule).unwrap());
    Plan { trials: 24, early_stopping, suggests, ..plan(Some("val_loss")) }
}

fn hyperband() -> serde_json::Value {
    serde_json::json!({ "rule": { "type": "hyperband", "bands": [3, 9, 27], "eta": 3.0, "strict": true } })
}

/// Returns a trial that has run since second 0 and has sent so many reports with these metrics.
fn running(index: u32, reports: u64, metrics: &[(&str, Source)]) -> Trial {
    let mut trial = Trial::new(SweepId::derive("b", "k", "v"), index, JobId::from(format!("j:{index}")));
    trial.status = JobStatus::Running;
    *trial.attempt(1) = Attempt {
        started_at: Some(Timestamp::UNIX_EPOCH),
        sequence: (reports > 0).then_some(reports),
        ..Attempt::default()
    };
    let metric = |(name, source): &(&str, Source)| ((*name).to_owned(), Metric::of(0.5, None, *source));
    trial.metrics = metrics.iter().map(metric).collect();
    trial
}

fn ended(mut trial: Trial, status: JobStatus, exit_code: i32) -> Trial {
    (trial.status, trial.ended) = (status, 1);
    let attempt = trial.attempt(1);
    (attempt.stopped_at, attempt.exit_code) = (Some(minutes(10)), Some(exit_code));
    trial
}

fn minutes(count: i64) -> Timestamp {
    Timestamp::from_second(count * 60).unwrap()
}

/// Returns the warnings after so many minutes.
fn said(plan: &Plan, trials: &[Trial], after: i64) -> Vec<(About, String)> {
    let warned = warnings(plan, trials, &BTreeMap::new(), minutes(after));
    warned.into_iter().map(|warned| (warned.about, warned.text)).collect()
}

#[test]
fn a_metric_that_never_appears_is_named_within_two_reports() {
    let other = |reports| running(3, reports, &[("train_loss", Source::Stated), ("lr", Source::Stated)]);
    let both = adaptive(Some(hyperband()), true);
    assert_eq!(said(&both, &[running(0, 0, &[]), other(1)], 1), [], "one report may come before the metric");
    let expected = "no trial has reported `val_loss` yet, in 2 reports of trial 3: without it no trial is stopped early, \
        and the search learns nothing; metrics that trials printed: train_loss, lr, one of which can be named as \
        `metric: {name: …}`";
    assert_eq!(said(&both, &[running(0, 0, &[]), other(2)], 1), [(About::Metric, expected.to_owned())]);
    for (plan, part) in [
        (adaptive(Some(hyperband()), false), "without it no trial is stopped early; "),
        (adaptive(None, true), "without it the search learns nothing; "),
        (adaptive(None, false), "without it no trial has a rank; "),
    ] {
        assert!(said(&plan, &[other(2)], 1)[0].1.contains(part));
    }
    // These are the reports of two attempts, and those of a trial that has failed since.
    let mut twice = other(1);
    *twice.attempt(2) = twice.attempts[&1].clone();
    assert_eq!(said(&both, &[twice], 1).len(), 1);
    assert_eq!(said(&both, &[ended(other(2), JobStatus::Failed, 1)], 1).len(), 1);
    // At least one trial has reported the metric, or the file names none.
    let seen = running(1, 1, &[("val_loss", Source::Stated)]);
    assert_eq!(said(&both, &[other(9), seen], 1), []);
    assert_eq!(said(&plan(None), &[other(9)], 1), []);
    // Seals are reports without metrics. Only a long time without a metric leads to a warning then, and it is worded
    // carefully.
    assert_eq!(said(&both, &[running(0, 9, &[]), other(1)], 29), []);
    let silent = said(&both, &[running(0, 9, &[])], 34);
    assert!(silent[0].1.starts_with("no trial has reported a metric yet, and trial 0 has trained for 34 min: "));
    assert!(silent[0].1.contains("if it is not still to come, print it as `val_loss=…`"), "{silent:?}");
}

#[test]
fn a_metric_that_no_rung_counts_is_named() {
    let bar = |reports| running(0, reports, &[("val_loss", Source::ProgressBar)]);
    let by_reports = adaptive(Some(hyperband()), false);
    assert_eq!(said(&by_reports, &[bar(1)], 1), []);
    let expected = "`val_loss` was found only in progress bars, which repeat values, and no rung counts these: without \
        it no trial is stopped early; print it as `val_loss=…`";
    assert_eq!(said(&by_reports, &[bar(2)], 1), [(About::Metric, expected.to_owned())]);
    assert_eq!(said(&adaptive(None, true), &[bar(2)], 1), [], "a search takes any source");
    let stated = running(1, 2, &[("val_loss", Source::Stated)]);
    assert_eq!(said(&by_reports, &[bar(2), stated.clone()], 1), []);

    let mut rule = hyperband();
    rule["unit"] = "step".into();
    let by_step = adaptive(Some(rule), false);
    let found = said(&by_step, std::slice::from_ref(&stated), 1);
    assert!(found[0].1.starts_with("`val_loss` is reported without a step, and `rungs_by: step` counts steps"));
    let mut with_step = stated;
    with_step.metrics.insert("val_loss".to_owned(), Metric::of(0.5, Some(1.0), Source::Stated));
    assert_eq!(said(&by_step, &[with_step], 1), []);
}

#[test]
fn trials_that_all_fail_are_named() {
    let failed = |index| ended(running(index, 1, &[]), JobStatus::Failed, 3);
    let diverged = |index| {
        let mut trial = ended(running(index, 1, &[]), JobStatus::Succeeded, 0);
        trial.metrics.insert("val_loss".to_owned(), Metric::of(f64::NAN, None, Source::Stated));
        trial
    };
    let about_failures = |plan: &Plan, trials: &[Trial]| -> Option<String> {
        said(plan, trials, 9).into_iter().find(|(about, _)| *about == About::Failures).map(|(_, text)| text)
    };
    let (bayes, grid) = (adaptive(None, true), adaptive(None, false));
    for plan in [&bayes, &grid] {
        assert_eq!(about_failures(plan, &[failed(0), running(1, 1, &[])]), None, "one may be chance");
    }
    assert_eq!(
        about_failures(&bayes, &[failed(0), diverged(1), running(2, 1, &[])]).unwrap(),
        "none of the 2 trials that have ended has a usable val_loss, 1 failed: the search has nothing to learn from and \
         covers the space evenly, and then goes on at random; trial 0: exit code 3"
    );
    let mut random = failed(1);
    random.suggested = Some(spotsweep_records::trial::Suggested::new(&serde_json::Map::new(), Some(Basis::Random)));
    let text = about_failures(&bayes, &[failed(0), random.clone()]).unwrap();
    assert!(text.contains("2 failed: the search has nothing to learn from and chooses at random; trial 0"), "{text}");
    // The search learns from a value at a rung, and from one result.
    let mut at_rung = running(2, 1, &[]);
    let rung = spotsweep_protocol::rungs::Rung { value: 0.5, best: 0.5, mean: 0.5 };
    at_rung.rungs.insert(3, rung);
    assert_eq!(about_failures(&bayes, &[failed(0), random.clone(), at_rung]), None);
    let good = ended(running(2, 1, &[("val_loss", Source::Stated)]), JobStatus::Succeeded, 0);
    assert_eq!(about_failures(&bayes, &[failed(0), random, good]), None);

    assert_eq!(
        about_failures(&grid, &[failed(0), failed(1), running(2, 0, &[])]).unwrap(),
        "all 2 trials that have ended failed; `spotsweep cancel` ends those that are to come; trial 0: exit code 3"
    );
    // A trial that trains may succeed, and a cancellation says nothing. At the end the counts show the failures.
    let trains = running(2, 1, &[("val_loss", Source::Stated)]);
    assert_eq!(about_failures(&grid, &[failed(0), failed(1), trains]), None);
    let cancelled = Trial { reason: Some("spotsweep: cancelled by jo".into()), ..failed(1) };
    assert_eq!(about_failures(&grid, &[failed(0), cancelled]), None);
    assert_eq!(about_failures(&Plan { trials: 2, ..grid }, &[failed(0), failed(1)]), None);
}

#[test]
fn rungs_that_no_trial_reaches_are_named() {
    let finished = |index, rungs: &[u64]| {
        let mut trial = ended(running(index, 9, &[("val_loss", Source::Stated)]), JobStatus::Succeeded, 0);
        trial.metrics.insert("val_loss".to_owned(), Metric::of(f64::from(index), Some(2.0), Source::Stated));
        let rung = spotsweep_protocol::rungs::Rung { value: 0.5, best: 0.5, mean: 0.5 };
        trial.rungs = rungs.iter().map(|step| (*step, rung)).collect();
        trial
    };
    let (from, mut to) = (hyperband(), hyperband());
    to["length"] = 81.into();
    let (from, to) = (adaptive(Some(from), false), adaptive(Some(to), false));
    assert_eq!(said(&from, &[finished(0, &[])], 9), [], "one may have ended early");
    assert_eq!(
        said(&from, &[finished(0, &[]), finished(1, &[])], 9),
        [(
            About::Rungs,
            "none of the 2 trials that have finished reached the first rung, 3: none reported so many values of \
             val_loss, and no trial is stopped early; write smaller numbers in `early_terminate`"
                .to_owned()
        )]
    );
    let short = [finished(0, &[3, 9]), finished(1, &[3])];
    assert_eq!(said(&from, &short, 9), [], "bands without an end");
    assert_eq!(
        said(&to, &short, 9),
        [(
            About::Rungs,
            "none of the 2 trials that have finished reached the rung at 27, of `max_iter: 81`: the last one that any \
             trial reached is 9; set `max_iter` to the length of a full training"
                .to_owned()
        )]
    );
    assert_eq!(said(&to, &[finished(0, &[3]), finished(1, &[3, 9, 27])], 9), []);
    assert_eq!(said(&adaptive(None, true), &[finished(0, &[]), finished(1, &[])], 9), []);
}

#[test]
fn a_running_sweep_has_the_warnings_of_its_newest_records() {
    let upload = serde_json::json!({ "bucket": "b", "key": "sweeps/s.yaml", "fingerprint": "v",
        "uploaded_at": Timestamp::UNIX_EPOCH });
    let mut sweep = Sweep::new(serde_json::from_value(upload).unwrap());
    sweep.plan = Some(plan(Some("val_loss")));
    sweep.enter(Stage::Running);
    let late = trials(&[None]);
    let text = warnings(&plan(Some("val_loss")), &late, &BTreeMap::new(), minutes(1)).remove(0).text;
    let quoted = format!("{text}; lines that look like metrics: `loss: 1`; print them as name=value");
    sweep.warnings = vec!["as it was".to_owned(), quoted.clone()];
    assert_eq!(texts(&sweep, &late, minutes(1)), std::slice::from_ref(&quoted));
    assert_eq!(texts(&sweep, &trials(&[Some(0.5)]), minutes(1)), Vec::<String>::new(), "it has come");
    sweep.enter(Stage::Settled);
    assert_eq!(texts(&sweep, &[], minutes(1)), ["as it was".to_owned(), quoted]);
    let lacking = running(0, 2, &[("loss", Source::Stated)]);
    assert_eq!(lacks("val_loss", &lacking), Some(vec!["loss".to_owned()]));
    assert_eq!((lacks("loss", &lacking), lacks("val_loss", &running(0, 1, &[]))), (None, None));
}

#[test]
fn instances_that_cannot_train_are_named() {
    let mut left = running(0, 0, &[]);
    let unfit = |cause: &str| Attempt {
        instance: Some("i-1".to_owned()),
        reason: Some(StopReason::UnfitInstance { cause: cause.to_owned() }.into()),
        ..Attempt::default()
    };
    left.attempts.insert(1, unfit("0 of 1 GPUs answer"));
    let about = |trials: &[Trial]| {
        let found = said(&adaptive(None, false), trials, 1).into_iter();
        found.filter(|(about, _)| *about == About::Instances).map(|(_, text)| text).next()
    };
    assert_eq!(
        about(&[left.clone(), running(1, 1, &[])]).unwrap(),
        "nothing can be trained on 1 instance, which 1 attempt left again: i-1: 0 of 1 GPUs answer"
    );
    left.attempts.insert(2, Attempt { instance: None, ..unfit("full") });
    let text = about(&[left]).unwrap();
    assert!(text.contains("2 instances, which 2 attempts left") && text.contains("unknown id: full"), "{text}");
    assert_eq!(about(&[running(0, 0, &[])]), None);
}

#[test]
fn attempts_without_reports_are_named() {
    let mut quiet = running(0, 3, &[]);
    let (agent, status) = (AgentState::Disconnected, InstanceStatus::Impaired);
    quiet.silence = Some(Silence { attempt: 1, since: minutes(1), agent, status, refusal: None });
    let about = |trials: &[Trial]| {
        let found = said(&adaptive(None, false), trials, 1).into_iter();
        found.filter(|(about, _)| *about == About::Silence).map(|(_, text)| text).next()
    };
    let text = about(&[quiet.clone(), running(1, 1, &[])]).unwrap();
    let expected = "1 trial did not report while AWS Batch showed them as running: trial 0, attempt 1: no report since \
        1970-01-01 00:01 UTC; ECS: the agent is not connected; EC2: the instance is impaired; spotsweep ends the instance";
    assert_eq!(text, expected);
    quiet.silence.as_mut().unwrap().refusal = Some("UnauthorizedOperation: no".to_owned());
    assert!(about(&[quiet]).unwrap().ends_with("EC2 does not end it: UnauthorizedOperation: no"));
    assert_eq!(about(&[running(0, 0, &[])]), None);
}
