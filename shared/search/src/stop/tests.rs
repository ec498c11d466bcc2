use proptest::prelude::*;

use super::hyperband::{bands_from, bands_to};
use super::*;

/// Returns a curve with each rung's value. The best and the mean follow from these values alone.
fn curve(values: &[(u64, f64)]) -> Curve {
    let mut curve = Curve::new();
    for (index, (rung, value)) in values.iter().enumerate() {
        let so_far = || values[..=index].iter().map(|(_, value)| *value);
        let best = so_far().fold(f64::INFINITY, f64::min);
        curve.insert(*rung, Rung { value: *value, best, mean: so_far().sum::<f64>() / (index + 1) as f64 });
    }
    curve
}

/// Returns curves of several trials with a value at one rung each.
fn at_one(values: &[f64]) -> Vec<Curve> {
    values.iter().map(|value| curve(&[(1, *value)])).collect()
}

fn hyperband(eta: f64, strict: bool) -> Rule {
    Rule::Hyperband { bands: bands_from(1, eta), eta, strict }
}

fn rules() -> [Rule; 5] {
    [
        hyperband(3.0, true),
        hyperband(3.0, false),
        Rule::Asha { rungs: asha(1, 27, 3.0).unwrap(), eta: 3.0 },
        Rule::Median { rungs: median(1, None), least: 3 },
        Rule::Interruption { bands: bands_from(1, 3.0), eta: 3.0 },
    ]
}

/// Returns which trials stop if all of them are judged from the same facts.
fn stopped(rule: &Rule, curves: &[Curve]) -> Vec<bool> {
    let others = |index: usize| curves.iter().enumerate().filter(move |(other, _)| *other != index);
    let judge = |(index, own): (usize, &Curve)| rule.judge(own, None, others(index).map(|(_, curve)| curve));
    curves.iter().enumerate().map(|trial| judge(trial).is_some_and(|verdict| verdict.stops)).collect()
}

#[test]
fn bands_and_rungs_are_those_of_the_originals() {
    assert_eq!(bands_from(3, 3.0)[..5], [3, 9, 27, 81, 243]);
    assert_eq!(bands_from(1, 1.5)[..6], [1, 2, 3, 5, 7, 11]);
    assert_eq!(bands_to(81.0, 3, 3.0).unwrap(), [3, 9, 27]);
    assert_eq!(bands_to(100.0, 100, 1.5).unwrap(), [1, 2, 3, 5, 8, 13, 19, 29, 44, 66]);
    assert_eq!(bands_to(2.0, 3, 3.0).unwrap(), [0; 0]);
    assert_eq!(bands_to(1e9, u64::MAX, 1.001), None);
    assert_eq!(asha(1, 100, 4.0).unwrap(), [1, 4, 16, 64]);
    // In floats, log(1000)/log(10) is 3 - 4e-16, which Ray rounds down.
    assert_eq!(asha(1, 1000, 10.0).unwrap(), [1, 10, 100]);
    assert_eq!(asha(2, 10, 1.5).unwrap(), [2, 3, 5, 7]);
    assert_eq!(median(4, None)[..5], [4, 6, 9, 14, 21]);
    assert_eq!(median(4, Some(2))[..3], [4, 6, 8]);
    assert!(median(1, Some(1)).len() == MOST_RUNGS && bands_from(2, 1e6).last() == Some(&2_000_000_000_000));
}

#[test]
fn a_trial_is_judged_at_its_newest_rung() {
    let peers = [curve(&[(1, 0.1), (3, 0.5)]), curve(&[(1, 0.2)])];
    let own = curve(&[(1, 0.4), (3, 0.7)]);
    let verdict = hyperband(3.0, true).judge(&own, None, &peers).unwrap();
    assert_eq!(verdict, Verdict { rung: 3, value: 0.7, cut: Some(0.5), of: 2, stops: true });
    // The lenient form compares the best value so far, even one after the rung.
    let lax = hyperband(3.0, false);
    assert_eq!(lax.judge(&own, None, &peers).unwrap(), Verdict { value: 0.4, stops: false, ..verdict });
    assert_eq!(lax.judge(&own, Some(0.3), &peers).unwrap().value, 0.3);
    assert_eq!(lax.judge(&Curve::new(), None, &peers), None);
}

#[test]
fn ashas_cut_is_a_percentile_of_the_others() {
    let rule = Rule::Asha { rungs: vec![1], eta: 2.0 };
    // This is the example of Ray's documentation with negated signs: rewards 2 and 4 give the cut 3.
    let peers = at_one(&[-2.0, -4.0]);
    assert_eq!(rule.cut(1, &peers), Some(-3.0));
    let verdict = rule.judge(&peers[0], None, &peers[1..]).unwrap();
    assert_eq!((verdict.cut, verdict.of, verdict.stops), (Some(-4.0), 2, true));
    assert_eq!(rule.judge(&peers[0], None, []).unwrap().cut, None);
}

#[test]
fn the_median_is_of_enough_running_means() {
    let rule = Rule::Median { rungs: vec![2], least: 3 };
    let with_mean = |value: f64, mean: f64| Curve::from([(2, Rung { value, best: value, mean })]);
    let peers = [with_mean(0.1, 0.4), with_mean(0.2, 0.6), with_mean(0.3, 0.9)];
    let verdict = rule.judge(&with_mean(0.7, 0.7), None, &peers).unwrap();
    assert_eq!(verdict, Verdict { rung: 2, value: 0.7, cut: Some(0.6), of: 4, stops: true });
    assert!(!rule.judge(&with_mean(0.6, 9.0), None, &peers).unwrap().stops);
    assert_eq!(rule.judge(&with_mean(0.7, 0.7), None, &peers[1..]).unwrap().cut, None);
}

#[test]
fn figures_that_are_not_finite_are_as_good_as_absent() {
    for rule in rules() {
        let mut diverged = curve(&[(1, 0.2)]);
        diverged.insert(3, Rung { value: f64::NAN, best: 0.2, mean: f64::NAN });
        let peers = [diverged.clone(), curve(&[(1, 0.3), (3, 0.1)]), curve(&[(1, 0.4), (3, f64::INFINITY)])];
        assert_eq!(rule.judge(&diverged, Some(f64::NAN), &peers[1..]).unwrap().rung, 1);
        assert_eq!(rule.judge(&peers[1], None, [&peers[0], &peers[2]]).unwrap().of, 1);
    }
}

#[test]
fn rules_are_kept_as_json() {
    for rule in rules() {
        let json = serde_json::to_string(&rule).unwrap();
        assert_eq!(serde_json::from_str::<Rule>(&json).unwrap(), rule, "{json}");
    }
    let json = serde_json::to_string(&Rule::Asha { rungs: vec![1, 3], eta: 3.0 }).unwrap();
    assert_eq!(json, r#"{"type":"asha","rungs":[1,3],"eta":3.0}"#);
}

/// Returns whether the last of these costs stops, with all peers and without an outlier.
fn odd(rule: &Rule, costs: &[f64]) -> (bool, bool) {
    let mut curves = at_one(costs);
    let own = curves.pop().unwrap();
    let stops = |verdict: Option<Verdict>| verdict.unwrap().stops;
    (stops(rule.judge(&own, None, &curves)), stops(rule.judge_without_outlier(&own, &curves)))
}

#[test]
fn one_odd_figure_stops_no_trial() {
    let strict = hyperband(3.0, true);
    let median = |least| Rule::Median { rungs: vec![1], least };
    let asha = Rule::Asha { rungs: vec![1], eta: 3.0 };
    for rule in [strict.clone(), asha.clone(), median(1)] {
        for odd_one in [-9e124, -1e9, -9999.0, -52.0] {
            assert_eq!(odd(&rule, &[odd_one, -0.527]), (true, false), "{rule:?} {odd_one}");
            // A diverged trial in addition does not hide the outlier.
            assert!(!odd(&rule, &[odd_one, 1e125, -0.527]).1, "{rule:?} {odd_one}");
        }
        // A value that others have too is no outlier. Neither is a much better trial, or a loss close to zero.
        for costs in [&[-9999.0, -9000.0, -0.5][..], &[-0.95, -0.1], &[1e-9, 0.7], &[0.0, 250.0], &[-3.0, -2.0]] {
            assert_eq!(odd(&rule, costs), (true, true), "{rule:?} {costs:?}");
        }
    }
    // The others are judged as if the outlier did not exist.
    let costs = [-9e124, -0.6, -0.7, -0.8, -0.9, -0.5];
    for rule in [strict, asha, median(3)] {
        let mut curves = at_one(&costs);
        let own = curves.pop().unwrap();
        let verdict = rule.judge_without_outlier(&own, &curves);
        assert_eq!(verdict, rule.judge(&own, None, &curves[1..]), "{rule:?}");
    }
    let two = at_one(&[-9e124, -0.6, -0.7]);
    assert_eq!(median(3).judge_without_outlier(&at_one(&[-0.5])[0], &two).unwrap().cut, None, "too few are left");
}

fn any_curves() -> impl Strategy<Value = Vec<Curve>> {
    let value = prop_oneof![4 => (0..6_i32).prop_map(f64::from), 2 => -9.0..9.0, 1 => Just(f64::NAN)];
    let values = prop::collection::vec(value, 0..5);
    let with_rungs = |values: Vec<f64>| curve(&[1_u64, 2, 3, 9, 27].into_iter().zip(values).collect::<Vec<_>>());
    prop::collection::vec(values.prop_map(with_rungs), 0..12)
}

proptest! {
    /// These invariants hold for every rule, and a sweep relies on them.
    #[test]
    fn the_best_goes_on_and_order_changes_nothing(curves in any_curves(), turn in 0..12_usize) {
        for rule in rules() {
            let stops = stopped(&rule, &curves);
            let mut turned = curves.clone();
            turned.rotate_left(turn % curves.len().max(1));
            turned.reverse();
            let mut expected = stops.clone();
            expected.rotate_left(turn % curves.len().max(1));
            expected.reverse();
            prop_assert_eq!(&stopped(&rule, &turned), &expected);
            for rung in rule.rungs() {
                let newest = |curve: &Curve| rule.judge(curve, None, []).is_some_and(|verdict| verdict.rung == *rung);
                let value = |curve: &Curve| rule.judge(curve, None, []).map_or(f64::INFINITY, |verdict| verdict.value);
                let there: Vec<usize> = (0..curves.len()).filter(|index| reached(&curves[*index], *rung).is_some()).collect();
                let best = there.iter().map(|index| curves[*index][rung].best).fold(f64::INFINITY, f64::min);
                for index in there.iter().filter(|index| newest(&curves[**index])) {
                    prop_assert!(!stops[*index] || value(&curves[*index]) > best);
                }
                if !there.is_empty() && there.iter().all(|index| newest(&curves[*index])) {
                    prop_assert!(there.iter().any(|index| !stops[*index]));
                }
            }
        }
    }

    /// Equal trials all go on, for any number of trials and any eta.
    #[test]
    fn equal_trials_go_on(count in 1..60_usize, value in -9.0..9.0_f64, eta in 1.000_001..100.0_f64) {
        let curves = at_one(&vec![value; count]);
        let rules = [hyperband(eta, true), Rule::Asha { rungs: vec![1], eta }, Rule::Median { rungs: vec![1], least: 1 }];
        for rule in rules {
            prop_assert!(stopped(&rule, &curves).iter().all(|stops| !stops));
        }
    }
}
