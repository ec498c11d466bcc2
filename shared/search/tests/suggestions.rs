//! Suggestions in the order of a sweep.

use std::collections::BTreeSet;

use spotsweep_search::curve::Rung;
use spotsweep_search::space::{Condition, Dimension, Point, Space};
use spotsweep_search::suggest::{Basis, End, Suggestion, Trial, suggest};

const SEED: [u8; 32] = [7; 32];

fn reals(count: usize) -> Space {
    Space { dimensions: vec![Dimension::Real; count], conditions: Vec::new() }
}

fn steps(count: usize) -> Dimension {
    Dimension::Steps { positions: (0..count).map(|at| at as f64 / (count - 1) as f64).collect() }
}

fn trial(index: u32, point: Point, end: Option<End>) -> Trial {
    Trial { index, point, rungs: [].into(), end }
}

/// Runs one trial after the other.
fn sweep(space: &Space, seed: [u8; 32], count: u32, end: impl Fn(u32, &Point) -> End) -> Vec<(Trial, Basis)> {
    let mut trials: Vec<Trial> = Vec::new();
    let mut all = Vec::new();
    for index in 0..count {
        let Suggestion { point, basis } = suggest(space, &trials, seed, index);
        let end = end(index, &point);
        trials.push(trial(index, point, Some(end)));
        all.push((trials[index as usize].clone(), basis));
    }
    all
}

fn least(trials: &[(Trial, Basis)]) -> f64 {
    let costs = trials.iter().filter_map(|(trial, _)| match trial.end {
        Some(End::Finished(cost)) if cost.is_finite() => Some(cost),
        _ => None,
    });
    costs.fold(f64::INFINITY, f64::min)
}

/// Returns the cost on six lines, two of which hardly matter. The least cost is 0.
fn bowl(point: &Point) -> f64 {
    let at = |at: usize| point[at].expect("no condition");
    let far = (at(0) - 0.31).powi(2) + (at(1) - 0.77).powi(2) + (at(2) - at(3) - 0.1).powi(2) + (at(3) - 0.5).powi(2);
    far + 0.0001 * (at(4) + at(5))
}

fn finishes(cost: f64) -> End {
    End::Finished(cost)
}

#[test]
fn the_same_trials_in_any_order_give_the_same_suggestion() {
    let space = reals(3);
    let mut trials: Vec<Trial> = sweep(&space, SEED, 30, |_, point| finishes(point[0].unwrap_or_default()))
        .into_iter()
        .map(|(trial, _)| trial)
        .collect();
    trials[4].end = Some(End::Failed);
    trials[9].end = None;
    trials[11].end = Some(End::Stopped);
    for (at, trial) in trials.iter_mut().enumerate().filter(|(at, _)| at % 3 != 0) {
        trial.rungs = [(3, Rung { value: at as f64, best: at as f64, mean: at as f64 })].into();
    }
    let first = suggest(&space, &trials, SEED, 30);
    assert!(matches!(first.basis, Basis::Model { .. }));
    trials.reverse();
    assert_eq!(suggest(&space, &trials, SEED, 30), first);
    trials.rotate_left(13);
    assert_eq!(suggest(&space, &trials, SEED, 30), first);
    assert_ne!(suggest(&space, &trials, [8; 32], 30), first);
}

#[test]
fn a_smooth_optimum_is_found_far_sooner_than_at_random() {
    let space = reals(6);
    let mut reached = Vec::new();
    for seed in 0..5 {
        let ours = least(&sweep(&space, [seed; 32], 60, |_, point| finishes(bowl(point))));
        // Without a usable result all points are random or cover the space evenly.
        let blind = sweep(&space, [seed; 32], 600, |_, _| End::Failed);
        let blind = blind.iter().map(|(trial, _)| bowl(&trial.point)).fold(f64::INFINITY, f64::min);
        reached.push((ours, blind));
    }
    assert!(reached.iter().all(|(ours, blind)| 5.0 * ours < *blind), "{reached:?}");
}

#[test]
fn every_other_trial_looks_away_from_what_is_known() {
    let space = reals(6);
    for seed in 0..3 {
        let all = sweep(&space, [seed; 32], 60, |_, point| finishes(bowl(point)));
        let deviations = |parity: usize| -> f64 {
            let late = all.iter().enumerate().skip(30).filter(|(index, _)| index % 2 == parity);
            late.map(|(_, (_, basis))| match basis {
                Basis::Model { deviation, .. } => *deviation,
                Basis::Initial | Basis::Random => 0.0,
            })
            .sum()
        };
        let (far, near) = (deviations(0), deviations(1));
        assert!(far > 5.0 * near, "{seed}: {far} {near}");
    }
}

#[test]
fn no_point_comes_twice_before_all_have_come() {
    let condition = Condition { dimension: 1, parent: 0, levels: vec![2] };
    let space =
        Space { dimensions: vec![Dimension::Choices { count: 3 }, steps(20), steps(2)], conditions: vec![condition] };
    // There are 2 × 2 points without the steps, and 20 × 2 with them.
    let all = sweep(&space, SEED, 46, |index, point| match index % 7 {
        6 => End::Failed,
        _ => finishes(point[0].unwrap_or_default() - point[1].unwrap_or(9.0)),
    });
    let points: Vec<String> = all.iter().map(|(trial, _)| format!("{:?}", trial.point)).collect();
    assert_eq!(points[..44].iter().collect::<BTreeSet<_>>().len(), 44);
    assert!(points[44..].iter().all(|point| points[..44].contains(point)), "then they come again");
    for (trial, _) in &all {
        assert_eq!(trial.point[1].is_some(), trial.point[0] == Some(2.0), "{:?}", trial.point);
    }
}

#[test]
fn the_branch_with_the_better_parameters_is_found() {
    // Only the second choice has a further parameter, whose right value gives the best cost.
    let conditions = vec![Condition { dimension: 2, parent: 0, levels: vec![1] }];
    let space =
        Space { dimensions: vec![Dimension::Choices { count: 4 }, Dimension::Real, Dimension::Real], conditions };
    let cost = |point: &Point| match (point[0], point[1], point[2]) {
        (_, Some(shared), Some(own)) => 3.0 * (own - 0.83).abs() + (shared - 0.4).abs(),
        (choice, Some(shared), None) => 1.0 + choice.unwrap_or_default() + (shared - 0.4).abs(),
        _ => f64::NAN,
    };
    let all = sweep(&space, SEED, 50, |_, point| finishes(cost(point)));
    assert!(least(&all) < 0.05, "{}", least(&all));
}

#[test]
fn without_a_usable_result_points_are_random_and_within_the_space() {
    let space =
        Space { dimensions: vec![Dimension::Real, steps(7), Dimension::Choices { count: 3 }], conditions: vec![] };
    let ends = [End::Failed, finishes(f64::NAN), finishes(f64::INFINITY), End::Stopped];
    let all = sweep(&space, SEED, 40, |index, _| ends[index as usize % 4]);
    assert_eq!(all.last().map(|(_, basis)| *basis), Some(Basis::Random));
    for (trial, basis) in &all {
        assert!(!matches!(basis, Basis::Model { .. }));
        let [real, step, choice] = [0, 1, 2].map(|at| trial.point[at].expect("no condition"));
        assert!((0.0..=1.0).contains(&real) && step < 7.0 && choice < 3.0, "{:?}", trial.point);
    }
}

#[test]
fn constant_and_extreme_costs_are_no_trouble() {
    let constant = sweep(&reals(2), SEED, 25, |_, _| finishes(4.0));
    assert!(matches!(constant.last(), Some((_, Basis::Model { mean, .. })) if (mean - 4.0).abs() < 0.2));
    let far: BTreeSet<u64> =
        constant.iter().map(|(trial, _)| (trial.point[0].unwrap_or_default() * 8.0) as u64).collect();
    assert!(far.len() >= 7, "where nothing matters, all is looked at: {far:?}");
    let extreme = sweep(&reals(1), SEED, 30, |_, point| match point[0].unwrap_or_default() {
        place if place < 0.1 => finishes(f64::NAN),
        place if place < 0.3 => finishes(f64::INFINITY),
        place if place > 0.8 => finishes(1e300 * place),
        place => finishes((place - 0.6).abs()),
    });
    assert!(least(&extreme) < 0.02, "{}", least(&extreme));
}

#[test]
fn failures_are_avoided() {
    let all = sweep(&reals(2), SEED, 60, |_, point| match point[0] {
        Some(place) if place > 0.5 => End::Failed,
        place => finishes(1.0 - place.unwrap_or_default()),
    });
    let late = &all[30..];
    let failed = late.iter().filter(|(trial, _)| trial.end == Some(End::Failed)).count();
    assert!(failed < late.len() / 2, "{failed} of {}", late.len());
    assert!(least(&all) < 0.51, "{}", least(&all));
}

#[test]
fn stopped_trials_teach_without_being_the_worst() {
    // The first rung has twice the final cost, and a trial above 0.2 there is stopped.
    let curve = |index: u32, point: &Point| {
        let at = 2.0 * bowl(point);
        let end = if index.is_multiple_of(4) || at < 0.2 { finishes(at / 2.0) } else { End::Stopped };
        ([(3, Rung { value: at, best: at, mean: at })], end)
    };
    let space = reals(6);
    let mut trials = Vec::new();
    for index in 0..60 {
        let point = suggest(&space, &trials, SEED, index).point;
        let (rungs, end) = curve(index, &point);
        trials.push(Trial { rungs: rungs.into(), ..trial(index, point, Some(end)) });
    }
    let stopped = trials.iter().filter(|trial| trial.end == Some(End::Stopped)).count();
    let best = trials.iter().map(|trial| bowl(&trial.point)).fold(f64::INFINITY, f64::min);
    assert!(stopped > 5 && best < 0.01, "{stopped} {best}");
}

#[test]
fn claims_at_the_same_time_get_different_points() {
    let space = reals(4);
    let trials: Vec<Trial> = sweep(&space, SEED, 20, |_, point| finishes(point[0].unwrap_or_default()))
        .into_iter()
        .map(|(trial, _)| trial)
        .collect();
    let alone: Vec<Point> = (20..24).map(|index| suggest(&space, &trials, SEED, index).point).collect();
    for (at, left) in alone.iter().enumerate() {
        for right in &alone[at + 1..] {
            let distance: f64 = left
                .iter()
                .zip(right)
                .map(|(left, right)| (left.unwrap_or_default() - right.unwrap_or_default()).abs())
                .sum();
            assert!(distance > 0.01, "{alone:?}");
        }
    }
    // The second trial gets the same point as if the claim of the first one had been known.
    let mut seen = trials;
    seen.push(trial(20, alone[0].clone(), None));
    assert_eq!(suggest(&space, &seen, SEED, 21).point, alone[1]);
}

#[test]
fn a_space_without_parameters_has_one_point() {
    assert_eq!(suggest(&Space::default(), &[], SEED, 3).point, Point::new());
}
