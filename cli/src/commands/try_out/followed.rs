//! The one counter of steps that is followed through all attempts.

use std::collections::BTreeSet;

use super::attempt::Attempt;
use super::steps::{Counter, Series};

/// Has all attempts show the steps of one counter: the one that the most attempts have. Of several, it
/// is that of the sweep file's `metric`, or else the one with the most steps, or a printed one.
pub(super) fn follow_one(attempts: &mut [Attempt], metric: Option<&str>) {
    let Some(counter) = most_common(attempts, metric) else { return };
    for attempt in attempts {
        let series = attempt.steps.get(&counter);
        // A training that has ended by itself may have printed its only step then.
        let end = attempt.said.code.map_or(attempt.stopped, |_| Some(f64::NEG_INFINITY));
        attempt.said.steps = series.and_then(Series::ends);
        attempt.said.may_lack_first = series.is_some_and(|series| series.is_only_of_the_end(end));
        for save in &mut attempt.saves {
            save.step = series.and_then(|series| series.until(save.at));
        }
    }
}

fn most_common(attempts: &[Attempt], metric: Option<&str>) -> Option<Counter> {
    let all: BTreeSet<&Counter> = attempts.iter().flat_map(|attempt| attempt.steps.keys()).collect();
    let is_printed = all.iter().any(|counter| matches!(counter, Counter::Printed(_)));
    let is_usable = |counter: &&Counter| match counter {
        // A line without a step of its own has that of the line before.
        Counter::Lines => !is_printed,
        // A value in the record may also be the printed one.
        Counter::Recorded(name) => !all.contains(&Counter::Printed(name.clone())),
        Counter::Printed(_) => true,
    };
    let series =
        |counter: &Counter| attempts.iter().filter_map(|attempt| attempt.steps.get(counter)).collect::<Vec<_>>();
    let is_one = |counter: &&Counter| series(counter).iter().all(|series| series.ends().is_some());
    let is_of_metric = |counter: &Counter| match counter {
        Counter::Printed(name) | Counter::Recorded(name) => Some(name.as_str()) == metric,
        Counter::Lines => false,
    };
    // Of equals, `max_by_key` returns the last.
    let usable = all.iter().rev().copied().filter(is_usable).filter(is_one);
    let steps = |counter| series(counter).iter().map(|series| series.count()).sum::<usize>();
    usable.max_by_key(|counter| (series(counter).len(), is_of_metric(counter), steps(counter))).cloned()
}

#[cfg(test)]
mod tests {
    use super::super::attempt::{Said, Save};
    use super::*;

    fn series(steps: &[f64]) -> Series {
        let mut series = Series::default();
        (0..).zip(steps).for_each(|(at, step)| series.add(f64::from(at), *step));
        series
    }

    fn attempt(counters: &[(Counter, &[f64])]) -> Attempt {
        let steps = counters.iter().map(|(counter, steps)| (counter.clone(), series(steps))).collect();
        Attempt { steps, ..Attempt::default() }
    }

    fn printed(name: &str) -> Counter {
        Counter::Printed(name.to_owned())
    }

    fn recorded(name: &str) -> Counter {
        Counter::Recorded(name.to_owned())
    }

    fn followed(mut attempts: Vec<Attempt>) -> Vec<Option<(f64, f64)>> {
        follow_one(&mut attempts, Some("val"));
        attempts.into_iter().map(|attempt| attempt.said.steps).collect()
    }

    #[test]
    fn one_counter_is_followed_through_all_attempts() {
        let (epochs, batches) = (recorded("Accuracy/val"), recorded("Loss/train"));
        // TensorBoard's writer: one metric is written in each epoch, and the other one for each batch.
        let tensorboard = vec![
            attempt(&[(epochs.clone(), &[1.0, 28.0]), (batches.clone(), &[0.0, 705.0])]),
            attempt(&[(batches.clone(), &[706.0, 953.0])]),
            attempt(&[(epochs, &[39.0, 40.0]), (batches, &[954.0, 983.0])]),
        ];
        assert_eq!(followed(tensorboard), [Some((0.0, 705.0)), Some((706.0, 953.0)), Some((954.0, 983.0))]);
        // Lightning's progress bar has the epoch, and its file has the batch.
        let bar = attempt(&[(printed("train_loss"), &[0.0])]);
        let file = attempt(&[(recorded("train_loss"), &[49.0, 99.0])]);
        assert_eq!(followed(vec![bar, file]), [Some((0.0, 0.0)), None]);
        // Of equals, that of the sweep file's metric is taken.
        let both = || attempt(&[(printed("loss"), &[5.0, 10.0]), (printed("val"), &[1.0, 2.0])]);
        assert_eq!(followed(vec![both(), both()]), [Some((1.0, 2.0)); 2]);
        // Ignite prints the loss in an epoch, and the accuracy after it.
        let ignite = || attempt(&[(printed("accuracy"), &[1.0]), (printed("loss"), &[1.0, 2.0])]);
        assert_eq!(followed(vec![ignite()]), [Some((1.0, 2.0))]);
        let lines = |steps| attempt(&[(Counter::Lines, steps)]);
        assert_eq!(followed(vec![lines(&[1.0, 2.0]), lines(&[2.0, 3.0])]), [Some((1.0, 2.0)), Some((2.0, 3.0))]);
        assert_eq!(followed(vec![lines(&[1.0, 200.0, 2.0])]), [None], "they are of two counters");
    }

    #[test]
    fn a_save_has_the_step_of_its_time() {
        let mut one = attempt(&[(recorded("loss"), &[5.0, 6.0, 7.0])]);
        one.saves = [-1.0, 1.5, 9.0].map(|at| Save { at, ..Save::default() }).to_vec();
        let mut attempts = [one];
        follow_one(&mut attempts, None);
        let steps: Vec<_> = attempts[0].saves.iter().map(|save| save.step).collect();
        assert_eq!(steps, [None, Some(6.0), Some(7.0)]);
    }

    #[test]
    fn the_only_step_of_an_ending_training_may_not_be_its_first() {
        for (steps, stopped, code, expected) in [
            (&[3.0][..], None, None, false),
            (&[3.0], Some(0.0), None, true),
            (&[3.0], None, Some(0), true),
            (&[3.0], Some(0.5), None, false),
            (&[3.0, 4.0], Some(0.0), Some(0), false),
        ] {
            let said = Said { code, ..Said::default() };
            let mut attempts = [Attempt { stopped, said, ..attempt(&[(printed("loss"), steps)]) }];
            follow_one(&mut attempts, None);
            assert_eq!(attempts[0].said.may_lack_first, expected, "{steps:?} {stopped:?} {code:?}");
        }
    }
}
