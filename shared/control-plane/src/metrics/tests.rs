#![allow(clippy::unwrap_used)]

use super::*;
use crate::event::Event;
use crate::input::Followup;
use crate::store::{History, Versioned};
use spotsweep_protocol::ids::{JobId, SweepId};
use spotsweep_records::trial::JobStatus;
use spotsweep_records::trial::{HOST_GONE, INTERRUPTED_EXIT_CODE, Observation};
use spotsweep_records::workspace::{Origin, Place, Volume, VolumeState};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + second).unwrap()
}

fn blank() -> Trial {
    Trial::new(SweepId::derive("b", "k", "v"), 4, JobId::from("job:4".to_owned()))
}

/// Returns the metrics of a commit, which are the same for any event.
fn counted(before: &Trial, after: &Trial) -> Vec<(Name, f64)> {
    let view = View {
        trial: Some(Versioned { record: before.clone(), version: 1, due: None, recent: History::new() }),
        ..View::default()
    };
    let about = Input::Followup(Followup::SweepOverdue(before.sweep.clone())).about();
    let change =
        Change { record: Record::Trial(Box::new(after.clone())), due: None, figures_only: false, reserved: Vec::new() };
    let figures = |change| measure(&view, &about, change, at(0));
    assert_eq!(figures(None), [], "nothing was committed");
    figures(Some(&change)).into_iter().map(|metric| (metric.name, metric.value)).collect()
}

/// Returns Batch's observations of a trial with two reclaims, one without a notice and one with, and its end.
fn history(end: JobStatus) -> Vec<Observation> {
    let attempt = |from, to| Attempt { started_at: Some(at(from)), stopped_at: Some(at(to)), ..Attempt::default() };
    let ended = [
        Attempt { reason: Some(format!("{HOST_GONE} (instance i-1) terminated.").into()), ..attempt(10, 20) },
        Attempt { exit_code: Some(INTERRUPTED_EXIT_CODE), ..attempt(35, 50) },
        Attempt { exit_code: Some(i32::from(end != JobStatus::Succeeded)), ..attempt(57, 90) },
    ];
    let said = |status, over: usize, runs: bool| {
        let current = Attempt { started_at: ended[over.min(2)].started_at, ..Attempt::default() };
        let current = if runs { current } else { Attempt::default() };
        Observation {
            job: blank().job,
            status,
            reason: None,
            ended: ended[..over].to_vec(),
            current,
            container_instance: None,
            was_stopped: false,
        }
    };
    let mut history = Vec::new();
    for over in 0..3 {
        history.extend([said(JobStatus::Runnable, over, false), said(JobStatus::Running, over, true)]);
    }
    history.push(said(end, 3, false));
    history
}

#[test]
fn whatever_comes_twice_late_or_not_at_all_counts_once() {
    for (end, ended) in [(JobStatus::Succeeded, Name::TrialsSucceeded), (JobStatus::Failed, Name::TrialsFailed)] {
        let history = history(end);
        // 15 s pass from the first reclaim to the second attempt, and 7 s from the second one to the third.
        let expected = vec![(Name::Interruptions, 2.0), (Name::SecondsLost, 22.0), (ended, 1.0)];
        let places = 0..history.len();
        let rotated = places.clone().map(|first| (0..history.len()).cycle().skip(first).take(history.len()).collect());
        let orders: Vec<Vec<usize>> =
            rotated.chain([places.rev().collect(), vec![6], vec![1, 6], vec![6, 2]]).collect();
        for order in orders {
            let (mut trial, mut sums) = (blank(), Vec::<(Name, f64)>::new());
            for place in order.iter().flat_map(|place| [*place, *place, order[0]]) {
                let before = trial.clone();
                trial.observe(0, &history[place]);
                for (name, value) in counted(&before, &trial) {
                    match sums.iter_mut().find(|(known, _)| *known == name) {
                        Some((_, sum)) => *sum += value,
                        None => sums.push((name, value)),
                    }
                }
            }
            sums.sort_by_key(|(name, _)| name.as_str());
            assert_eq!(sums, expected, "{end:?} in the order {order:?}");
        }
    }
}

/// Returns a trial whose volume was copied from the zone `from` to `b` and is attached to its second attempt.
fn copied(from: &str) -> Trial {
    let place = Place { attempt: 2, instance: "i-2".into(), zone: "b".into() };
    let mut workspace = Workspace::new(Origin::Blank, place.clone(), at(0));
    let snapshot = Origin::Snapshot { snapshot: "snap-1".into() };
    let source = Volume { id: Some("vol-1".into()), zone: from.into(), ..workspace.volume.clone() };
    workspace.volume = Volume {
        id: Some("vol-2".into()),
        origin: snapshot,
        state: VolumeState::InUse { instance: "i-2".into(), steady: true },
        ..workspace.volume
    };
    workspace.source = Some(source);
    workspace.stage = Stage::Attached { to: place, device: 0, mounted: false };
    Trial { workspace: Some(workspace), ..blank() }
}

#[test]
fn a_migration_is_a_copy_in_another_zone_that_was_mounted() {
    fn mounts(trial: &mut Trial) {
        let workspace = trial.workspace.as_mut().unwrap();
        let Stage::Attached { mounted, .. } = &mut workspace.stage else { unreachable!("it is attached") };
        (*mounted, workspace.source) = (true, None);
    }
    fn gives_up(trial: &mut Trial) {
        let workspace = trial.workspace.as_mut().unwrap();
        (workspace.stage, workspace.source) = (Stage::Detached, None);
    }
    type Case = (&'static str, fn(&mut Trial), &'static [(Name, f64)]);
    let cases: [Case; 3] = [("a", mounts, &[(Name::Migrations, 1.0)]), ("b", mounts, &[]), ("a", gives_up, &[])];
    for (from, happens, expected) in cases {
        let before = copied(from);
        let mut after = before.clone();
        happens(&mut after);
        assert_eq!(counted(&before, &after), expected, "from {from}");
        assert_eq!(counted(&after, &after), [], "said again");
    }
}

#[test]
fn reconcile_tells_the_oldest_due_time() {
    for (due, expected) in [(None, 0.0), (Some(at(-90)), 90.0), (Some(at(5)), 0.0)] {
        let view = View { oldest_due: due, ..View::default() };
        let metric = Metric { name: Name::OldestOpenSeconds, value: expected };
        assert_eq!(measure(&view, &Input::from(Event::ReconcileDue).about(), None, at(0)), [metric]);
    }
}
