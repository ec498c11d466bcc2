//! `early_terminate`: the rule that each form means, and what is wrong with the others.

#![allow(clippy::unwrap_used)]

use spotsweep_protocol::rungs::Unit;
use spotsweep_search::stop::Rule;
use spotsweep_sweep_file::parse;

fn file(early_terminate: &str) -> String {
    format!("metric: {{name: loss}}\nearly_terminate: {early_terminate}\ntrials: [{{lr: 1}}, {{lr: 2}}]\n")
}

#[test]
fn rules_have_the_rungs_of_their_origins() {
    let rule = |text: &str| parse("f", "v", file(text).as_bytes()).unwrap().early_terminate.unwrap();
    let rungs = |text: &str| rule(text).rungs()[..3].to_vec();
    let cases = [
        ("{type: hyperband, min_iter: 3}", [3, 9, 27]),
        ("{type: hyperband, min_iter: 4.0, eta: 1.5}", [4, 6, 9]),
        ("{type: hyperband, max_iter: 81, s: 3, min_iter: 1}", [3, 9, 27]),
        ("{type: asha}", [1, 4, 16]),
        ("{type: asha, grace_period: 3, max_t: 27, reduction_factor: 3, brackets: 1}", [3, 9, 27]),
        ("{type: asha, min_iter: 3, max_iter: 27, eta: 3}", [3, 9, 27]),
        ("{type: median}", [4, 6, 9]),
        ("{type: median, grace_period: 2, interval: 5}", [2, 7, 12]),
        ("{type: interruption}", [3, 9, 27]),
        ("{type: interruption, max_iter: 64, s: 3, eta: 2}", [8, 16, 32]),
    ];
    for (text, expected) in cases {
        assert_eq!(rungs(text), expected, "{text}");
    }
    let is_strict = |text: &str| matches!(rule(text), Rule::Hyperband { strict: true, .. });
    let written = ["", ", strict: true", ", strict: on", ", strict: false", ", strict: no"];
    let strict = written.map(|written| is_strict(&format!("{{type: hyperband, min_iter: 3{written}}}")));
    assert_eq!(strict, [true, true, true, false, false]);
    assert!(matches!(rule("{type: median, min_samples_required: 7}"), Rule::Median { least: 7, .. }));
    assert!(matches!(rule("{type: asha, eta: 2}"), Rule::Asha { eta: 2.0, .. }));
}

#[test]
fn what_is_impossible_has_a_problem_at_its_place() {
    let cases = [
        ("hyperband", 18, "must be a mapping"),
        ("{min_iter: 3}", 18, "has no `type`"),
        ("{type: hyperbnad, min_iter: 3}", 25, "there is no early termination `hyperbnad`"),
        ("{type: hyperband}", 18, "neither `min_iter` nor `max_iter` and `s`"),
        ("{type: hyperband, s: 2}", 18, "neither `min_iter` nor"),
        ("{type: hyperband, max_iter: 9, min_iter: 1}", 18, "`max_iter` needs `s`"),
        ("{type: hyperband, max_iter: 2, s: 2}", 18, "has no band: 2 / 3 is less than 1"),
        ("{type: hyperband, max_iter: 9, s: 0}", 52, "`s` is out of range: 0"),
        ("{type: hyperband, max_iter: 9, s: 1.5}", 52, "`s` must be a whole number"),
        ("{type: hyperband, max_iter: 9, s: yes}", 52, "`s` must be a whole number"),
        ("{type: hyperband, min_iter: 0}", 46, "`min_iter` is out of range: 0"),
        ("{type: hyperband, min_iter: ~}", 46, "`min_iter` must be a whole number"),
        ("{type: hyperband, min_iter: 1, eta: 1.0}", 54, "`eta` is out of range: 1"),
        ("{type: hyperband, min_iter: 1, eta: 5000.5}", 54, "`eta` is too large"),
        ("{type: hyperband, max_iter: 1000000000, s: 9999, eta: 1.0001}", 18, "more than 1000 bands"),
        ("{type: hyperband, min_iter: 1, stric: true}", 49, "unknown key `stric`"),
        ("{type: asha, patience: 3}", 31, "unknown key `patience` in `asha`"),
        ("{type: asha, brackets: 3}", 41, "`brackets` is out of range: 3"),
        ("{type: asha, eta: 3, reduction_factor: 3}", 31, "`eta` means the same as `reduction_factor`"),
        ("{type: asha, grace_period: 200}", 45, "`grace_period` 200 is more than `max_t` 100"),
        ("{type: asha, max_t: 1000000000, eta: 1.0001}", 18, "more than 1000 rungs"),
        ("{type: median, interval: 0}", 43, "`interval` is out of range: 0"),
        ("{type: interruption, strict: true}", 39, "unknown key `strict` in `interruption`"),
    ];
    for (text, column, expected) in cases {
        let problems = parse("f", "v", file(text).as_bytes()).unwrap_err();
        let message = format!("{text}: {problems:?}");
        assert!(problems.len() == 1 && problems[0].message.contains(expected), "{message}");
        assert_eq!((problems[0].line, problems[0].column), (2, column), "{message}");
    }
}

#[test]
fn a_target_is_reached_from_the_worse_side() {
    let metric = |text: &str| {
        let text = format!("metric: {{name: loss, {text}}}\ntrials: [{{lr: 1}}]\n");
        parse("f", "v", text.as_bytes()).unwrap().metric.unwrap()
    };
    let reached = |text: &str| [0.4, 0.5, 0.6, f64::NAN].map(|value| metric(text).is_reached_by(value));
    assert_eq!(reached("target: 0.5"), [true, true, false, false]);
    assert_eq!(reached("goal: maximize, target: 0.5"), [false, true, true, false]);
    assert_eq!(reached("target: ~"), [false; 4]);
}

#[test]
fn rungs_count_what_the_file_says() {
    let rule = "metric: {name: loss}\nearly_terminate: {type: asha}\ntrials: [{lr: 1}]\n";
    let by = |own: &str| parse("f", "v", format!("{rule}{own}").as_bytes()).map(|file| file.rungs_by);
    assert_eq!(by(""), Ok(Unit::Reports));
    assert_eq!(by("spotsweep: {rungs_by: step}"), Ok(Unit::Step));
    assert!(by("spotsweep: {rungs_by: steps}").unwrap_err()[0].help.contains("did you mean `step`"));
    assert!(by("spotsweep: {rungs_by: epoch}").unwrap_err()[0].help.contains("or else its epoch"));
    let without = parse("f", "v", b"spotsweep: {rungs_by: step}\ntrials: [{lr: 1}]\n").unwrap();
    assert!(without.warnings[0].0.message.contains("no effect without `early_terminate`"));
}
