//! The space of a search: points become parameters of their distributions, and the parameters become points again.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use spotsweep_search::space::{Dimension, Point, Space};
use spotsweep_sweep_file::{SearchSpace, parse};

const HEAD: &str = "method: bayes\nmetric: {name: loss}\nrun_cap: 9\n";

fn space(parameters: &str) -> SearchSpace {
    let file = parse("f", "v", format!("{HEAD}{parameters}").as_bytes());
    file.unwrap_or_else(|problems| unreachable!("{problems:?}")).search().unwrap().space.clone()
}

/// A space with all distributions, conditions on each kind of parent, and nested groups.
const EVERYTHING: &str = "
spotsweep: {exclude: {kind: adam, width: 256}, first: [{kind: sgd, layers: [3, 2]}, {width: 64}]}
parameters:
  constant: {value: {a: 1}}
  kind: {values: [sgd, adam, ~, true]}
  width: {values: [256, 64, 128]}
  one: {values: [7]}
  weighted: {values: [a, b, c, a], probabilities: [0.5, 0.0, 0.3, 0.2]}
  layers: {min: 1, max: 4}
  seed: {min: 0, max: 1000000}
  uniform: {min: 0.5, max: 2}
  log: {distribution: log_uniform_values, min: 1e-5, max: 0.1}
  normal: {distribution: normal, mu: 3, sigma: 2}
  log_normal: {distribution: log_normal, sigma: 0.5}
  beta: {distribution: beta, a: 2, b: 3}
  q_uniform: {distribution: q_uniform, min: 0.05, max: 0.75, q: 0.1}
  q_fine: {distribution: q_uniform, min: 0, max: 1, q: 0.0001}
  q_log: {distribution: q_log_uniform_values, min: 16, max: 512, q: 16}
  q_normal: {distribution: q_normal, sigma: 3}
  q_log_normal: {distribution: q_log_normal, q: 1}
  q_beta: {distribution: q_beta, q: 0.25}
  group:
    when: {kind: [sgd, adam]}
    parameters:
      momentum: {min: 0.0, max: 1.0, when: {layers: [1, 2]}}
      nesterov: {values: [true, false], when: {kind: sgd}}
      fixed: {value: 3, when: {kind: sgd}}
  below_fixed: {min: 0.0, max: 1.0, when: {group.fixed: 3}}
  by_seed: {min: 0.0, max: 1.0, when: {seed: [5, 6]}}
";

/// Whether the conditions of a dimension hold at a point.
fn holds(space: &Space, dimension: usize, point: &Point) -> bool {
    space.conditions.iter().filter(|condition| condition.dimension == dimension).all(|condition| {
        point[condition.parent].is_some_and(|level| condition.levels.contains(&(level as usize)))
            && holds(space, condition.parent, point)
    })
}

/// Returns a point such as a search suggests, from a number for each dimension.
fn suggested(space: &Space, numbers: &[f64]) -> Point {
    let value = |dimension: &Dimension, number: f64| match dimension {
        Dimension::Real => number,
        Dimension::Steps { positions } => (number * positions.len() as f64).floor().min(positions.len() as f64 - 1.0),
        Dimension::Choices { count } => (number * *count as f64).floor().min(*count as f64 - 1.0),
    };
    let mut point: Point =
        space.dimensions.iter().zip(numbers).map(|(dimension, number)| Some(value(dimension, *number))).collect();
    let absent: Vec<usize> = (0..point.len()).filter(|dimension| !holds(space, *dimension, &point)).collect();
    absent.into_iter().for_each(|dimension| point[dimension] = None);
    point
}

/// Checks that each value belongs to its distribution, and that each parameter exists when its conditions hold.
fn check(trial: &Map<String, Value>) {
    let number = |name: &str| trial[name].as_f64().unwrap();
    let multiple = |name: &str, q: f64| (number(name) / q - (number(name) / q).round()).abs() < 1e-9;
    let is_within = |name: &str, min: f64, max: f64| (min..=max).contains(&number(name));
    assert_eq!((&trial["constant"], &trial["one"]), (&json!({"a": 1}), &json!(7)));
    assert!([json!("sgd"), json!("adam"), json!(null), json!(true)].contains(&trial["kind"]));
    assert!([64, 128, 256].contains(&trial["width"].as_u64().unwrap()));
    assert!(["a", "c"].contains(&trial["weighted"].as_str().unwrap()), "b has the probability 0");
    assert!((1..=4).contains(&trial["layers"].as_i64().unwrap()));
    assert!((0..=1_000_000).contains(&trial["seed"].as_i64().unwrap()));
    assert!(is_within("uniform", 0.5, 2.0) && is_within("log", 1e-5, 0.1) && is_within("beta", 0.0, 1.0));
    assert!(is_within("normal", 3.0 - 6.2, 3.0 + 6.2) && is_within("log_normal", 0.2, 4.7));
    assert!(is_within("q_uniform", 0.05, 0.75) && multiple("q_uniform", 0.1));
    assert!(is_within("q_fine", 0.0, 1.0) && multiple("q_fine", 0.0001));
    assert!(is_within("q_log", 16.0, 512.0) && trial["q_log"].as_i64().unwrap() % 16 == 0);
    assert!(is_within("q_normal", -9.0, 9.0) && multiple("q_normal", 1.0));
    assert!(is_within("q_log_normal", 0.0, 22.0) && trial["q_log_normal"].is_i64());
    assert!(is_within("q_beta", 0.0, 1.0) && multiple("q_beta", 0.25));
    let (sgd, adam) = (trial["kind"] == "sgd", trial["kind"] == "adam");
    let in_group = |name: &str| trial.get("group").is_some_and(|group| group.get(name).is_some());
    assert_eq!(in_group("momentum"), (sgd || adam) && number("layers") < 3.0);
    assert_eq!((in_group("nesterov"), in_group("fixed"), trial.contains_key("below_fixed")), (sgd, sgd, sgd));
    assert_eq!(trial.contains_key("by_seed"), [5.0, 6.0].contains(&number("seed")));
    assert!(!(adam && number("width") == 256.0), "excluded");
}

/// Whether two values are equal, except for the rounding of a quantile and its inverse.
fn is_close(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len() && one.iter().all(|(name, value)| is_close(value, &other[name]))
        }
        (Value::Number(one), Value::Number(other)) if one.is_f64() => {
            (one.as_f64().unwrap() - other.as_f64().unwrap()).abs() < 1e-8
        }
        _ => one == other,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn points_become_parameters_and_points_again(numbers in prop::collection::vec(prop_oneof![8 => 0.0..1.0, 1 => Just(0.0), 1 => Just(1.0)], 40)) {
        let searched = space(EVERYTHING);
        let cube = searched.space();
        let point = suggested(&cube, &numbers);
        let stored: SearchSpace = serde_json::from_str(&serde_json::to_string(&searched).unwrap()).unwrap();
        prop_assert_eq!(&stored, &searched);
        let Some(trial) = stored.parameters(&point) else {
            let sgd = SearchSpace::pinned(&stored, 0, &point);
            prop_assert!(stored.parameters(&sgd).is_some(), "only adam is excluded");
            return Ok(());
        };
        check(&trial);
        let again = stored.point(&trial);
        prop_assert!(is_close(&Value::from(stored.parameters(&again).unwrap()), &Value::from(trial)));
        for (dimension, (one, other)) in cube.dimensions.iter().zip(point.iter().zip(&again)) {
            prop_assert_eq!(one.is_some(), other.is_some());
            let (one, other) = (one.unwrap_or(0.0), other.unwrap_or(0.0));
            let is_same = match dimension {
                // Rounding to a multiple or a whole number, or moving out of a tail, changes the position slightly.
                Dimension::Real => (one - other).abs() < 0.002 || other == 0.5,
                Dimension::Steps { .. } | Dimension::Choices { .. } => one == other,
            };
            prop_assert!(is_same, "{:?}: {} {}", dimension, one, other);
        }
    }
}

#[test]
fn the_cube_has_what_can_vary() {
    let cube = space(EVERYTHING).space();
    let of = |text: &str| space(&format!("parameters: {{p: {text}}}")).space().dimensions;
    let steps = |positions: &[f64]| vec![Dimension::Steps { positions: positions.to_vec() }];
    assert_eq!(of("{values: [3, 1, 2, 1]}"), steps(&[1.0 / 6.0, 0.5, 5.0 / 6.0]), "numbers have an order");
    assert_eq!(of("{values: [3, 1]}"), [Dimension::Choices { count: 2 }]);
    assert_eq!(of("{values: [3, 1, a]}"), [Dimension::Choices { count: 3 }]);
    assert_eq!(of("{min: 1, max: 2}"), steps(&[0.25, 0.75]));
    assert_eq!(of("{min: 1, max: 1001}"), [Dimension::Real]);
    assert_eq!(of("{distribution: q_uniform, min: 0, max: 4, q: 2}"), steps(&[0.125, 0.5, 0.875]));
    assert_eq!(of("{value: 3}"), []);
    for dimension in &cube.dimensions {
        if let Dimension::Steps { positions } = dimension {
            assert!(positions.is_sorted_by(|first, next| first < next), "{positions:?}");
            assert!(positions[0] > 0.0 && positions[positions.len() - 1] < 1.0, "{positions:?}");
        }
    }
    // `group` and `momentum` have one condition each, `nesterov` two, and `below_fixed` those of `fixed`. No condition
    // can name `seed`.
    assert_eq!(cube.conditions.len(), 2 + 2 + 2);
    assert!(cube.conditions.iter().all(|condition| !matches!(cube.dimensions[condition.parent], Dimension::Real)));
}

#[test]
fn what_is_not_a_point_still_becomes_parameters() {
    let searched = space(EVERYTHING);
    check(&searched.parameters(&Vec::new()).unwrap());
    let count = searched.space().dimensions.len();
    for number in [f64::NAN, f64::INFINITY, -3.0, 0.4] {
        check(&searched.parameters(&vec![Some(number); count]).unwrap());
    }
    assert_eq!(searched.point(&Map::new()).iter().flatten().count(), count - 3, "conditional ones are absent");
    assert_eq!(searched.constants(), *json!({"constant": {"a": 1}, "one": 7}).as_object().unwrap());
}

#[test]
fn the_first_trials_have_the_values_of_first() {
    let searched = space(EVERYTHING);
    let middle = searched.point(&Map::new());
    let trial = |index: u64| searched.parameters(&searched.pinned(index, &middle)).unwrap();
    assert_eq!((&trial(0)["kind"], &trial(0)["layers"]), (&json!("sgd"), &json!(2)));
    assert_eq!(trial(1)["width"], 64);
    assert_eq!(searched.pinned(2, &middle), middle);
}

#[test]
fn a_space_of_another_version_or_size_is_refused() {
    let json = serde_json::to_string(&space("parameters: {p: {min: 0.0, max: 1.0}}")).unwrap();
    let expected = r#"{"version":1,"space":{"dimensions":[{"path":["p"],"values":{"real":{"real":{"curve":{"uniform":{"min":0.0,"max":1.0}}}}}}]}}"#;
    assert_eq!(json, expected, "a sweep that runs has the form of its submission");
    let other = serde_json::from_str::<SearchSpace>(&json.replace("\"version\":1", "\"version\":2"));
    assert!(other.unwrap_err().to_string().contains("version 2"));
    let broken = json.replace("\"values\":", r#""when":[{"dimension":1,"indexes":[0]}],"values":"#);
    let broken = serde_json::from_str::<SearchSpace>(&broken).unwrap_err();
    assert!(broken.to_string().contains("no parameter 1"), "{broken}");
    let values: String = (0..100_000).map(|index| format!("\"value {index}\", ")).collect();
    let problems =
        parse("f", "v", format!("{HEAD}parameters: {{p: {{values: [{values}]}}}}").as_bytes()).unwrap_err().problems;
    assert!(problems[0].message.contains("1048576 is the most"), "{problems:?}");
}

#[test]
fn the_size_is_the_cap_or_the_points() {
    let count = |parameters: &str| {
        let file = parse("f", "v", format!("{HEAD}{parameters}").as_bytes()).unwrap();
        assert_eq!(file.trials().count() as u64, file.trial_count());
        (file.trial_count(), file.warnings.len())
    };
    assert_eq!(count("parameters: {p: {min: 0.0, max: 1.0}}"), (9, 0));
    assert_eq!(count("parameters: {p: {min: 1, max: 3}, q: {values: [a, b, c]}}"), (9, 0));
    assert_eq!(count("parameters: {p: {min: 1, max: 2}, q: {values: [a, b, a]}}"), (4, 1));
    assert_eq!(count("parameters: {p: {value: 1}}"), (1, 1));
    assert_eq!(count("parameters: {p: {min: 1, max: 2}, q: {min: 1, max: 4, when: {p: 2}}}"), (5, 1));
    assert_eq!(count("parameters: {p: {min: 1, max: 4}}\nspotsweep: {exclude: {p: [1, 2]}}"), (2, 1));
}
