//! `early_terminate`: the rule for each form, and the problems of invalid ones.

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
        ("{type: interruption, max_iter: 9, min_iter: 1}", 18, "`max_iter` needs `s`"),
        ("{type: hyperband, max_iter: 0, min_iter: 1}", 46, "`max_iter` is out of range: 0"),
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
        let problems = parse("f", "v", file(text).as_bytes()).unwrap_err().problems;
        let message = format!("{text}: {problems:?}");
        assert!(problems.len() == 1 && problems[0].message.contains(expected), "{message}");
        assert_eq!((problems[0].line, problems[0].column), (2, column), "{message}");
        assert!(problems[0].help.len() > 5, "{message}");
    }
}

/// Returns the only warning of a file, if it has one: its line, column, message and help.
fn warning(file: &str) -> Option<(u32, u32, String, String)> {
    let mut warnings = parse("f", "v", file.as_bytes()).unwrap().warnings;
    assert!(warnings.len() < 2, "{file}: {warnings:?}");
    warnings.pop().map(|warning| (warning.0.line, warning.0.column, warning.0.message, warning.0.help))
}

#[test]
fn what_has_no_effect_has_a_warning_at_its_place() {
    let cases = [
        ("{type: hyperband, max_iter: 27, s: 2}", None),
        (
            "{type: hyperband, max_iter: 27, s: 2, min_iter: 3}",
            Some((66, "`min_iter` has no effect: `max_iter` and `s`")),
        ),
        ("{type: hyperband, min_iter: 3, s: 2}", Some((52, "`s` has no effect without `max_iter`"))),
        (
            "{type: hyperband, max_iter: 9, min_iter: 3}",
            Some((36, "`max_iter` needs `s`: without it no trial is stopped")),
        ),
        ("{type: hyperband, max_iter: 9}", Some((36, "`max_iter` needs `s`: without it no trial is stopped"))),
        ("{type: hyperband, max_iter: 9, s: 4}", Some((52, "`s` is 4, and there are 2 bands: 1, 3"))),
        ("{type: hyperband, max_iter: 4, s: 3, eta: 1.5}", Some((52, "`s` is 3, and there are 2 bands: 1, 2"))),
        ("{type: median, min_samples_required: 1}", None),
        (
            "{type: median, min_samples_required: 2}",
            Some((55, "`min_samples_required` is 2, and each of the 2 trials")),
        ),
        ("{type: median}", Some((1, "`min_samples_required` is 3, and each of the 2 trials"))),
    ];
    for (text, expected) in cases {
        let found = warning(&file(text));
        let place = found.as_ref().map(|(line, column, ..)| (*line, *column));
        assert_eq!(place, expected.map(|(column, _)| (2, column)), "{text}: {found:?}");
        assert!(found.as_ref().is_none_or(|(.., help)| help.len() > 5), "{found:?}");
        if let (Some((.., message, _)), Some((_, part))) = (&found, expected) {
            assert!(message.starts_with(part), "{found:?}");
        }
    }
}

#[test]
fn rungs_beyond_the_end_of_the_training_have_a_warning() {
    let config = |parameters: &str, early_terminate: &str| {
        format!(
            "metric: {{name: loss}}\nearly_terminate: {early_terminate}\nmethod: grid\nparameters: {{lr: {{value: 1}}, {parameters}}}\n"
        )
    };
    let (from, to) = ("{type: hyperband, min_iter: 27}", "{type: hyperband, max_iter: 81, s: 3}");
    let (at_first, at_last) = (
        "no trial is compared with others: the first rung is at 27, and `epochs` is 26 at most",
        "no trial reaches the rung at 27: `epochs` is 26 at most",
    );
    let cases = [
        ("epochs: {value: 26}", from, 46, Some(at_first)),
        ("epochs: {value: 27}", from, 46, None),
        ("epochs: {value: 26}", to, 46, Some(at_last)),
        ("epochs: {value: 8}", to, 46, Some("no trial reaches the rungs from 9 on: `epochs` is 8 at most")),
        ("epochs: {value: 27}", to, 46, None),
        // With `min_iter` the bands have no end, so no trial can reach all of them.
        ("epochs: {value: 26}", "{type: hyperband, min_iter: 3}", 46, None),
        ("epochs: {value: 100}", "{type: asha, grace_period: 200, max_t: 300}", 45, Some("no trial is compared")),
        ("epochs: {value: 10}", "{type: asha}", 1, None),
        (
            "epochs: {value: 2}",
            "{type: interruption}",
            1,
            Some("no trial is compared with others: the first rung is at 3"),
        ),
        ("epochs: {values: [2, 26, 9]}", from, 46, Some(at_first)),
        ("epochs: {min: 2, max: 26}", from, 46, Some(at_first)),
        ("epochs: {values: [2, all]}", from, 46, None),
        ("epochs: {value: 26, when: {lr: 1}}", from, 46, None),
        ("Num-Train-Epochs: {value: 26}", from, 46, Some("no trial is compared with others")),
        (
            "train: {parameters: {max_epochs: {value: 5}}}",
            from,
            46,
            Some("no trial is compared with others: the first rung is at 27, and `train.max_epochs` is 5 at most"),
        ),
        ("warmup_epochs: {value: 5}", from, 46, None),
        (
            "max_steps: {value: 26}",
            from,
            46,
            Some("no trial is compared with others: the first rung is at 27, and `max_steps` is 26 at most"),
        ),
        // The epochs decide, because `max_steps` may exceed the steps that the training takes.
        ("max_steps: {value: 26}, epochs: {value: 30}", from, 46, None),
    ];
    for (parameters, rule, column, expected) in cases {
        let found = warning(&config(parameters, rule));
        let place = found.as_ref().map(|(line, column, ..)| (*line, *column));
        assert_eq!(place, expected.map(|_| (2, column)), "{parameters} {rule}: {found:?}");
        if let (Some((.., message, _)), Some(expected)) = (&found, expected) {
            assert!(message.starts_with(expected), "{found:?}");
        }
    }
    let help = |parameters: &str, rule: &str| warning(&config(parameters, rule)).unwrap().3;
    assert_eq!(
        help("epochs: {value: 26}", to),
        "write `max_iter: 26`, or ignore this if the metric is reported more than once an epoch"
    );
    assert!(help("epochs: {value: 26}", from).starts_with("write a smaller `min_iter`, or"));
    assert_eq!(help("max_steps: {value: 26}", from), "write a smaller `min_iter`");
    // In a list, every trial may have the parameter.
    let listed = |trials: &str| {
        warning(&format!("metric: {{name: loss}}\nearly_terminate: {from}\ntrials: [{trials}]\n")).map(|found| found.2)
    };
    assert_eq!(listed("{epochs: 3}, {epochs: 26}").as_deref(), Some(at_first));
    assert_eq!(listed("{epochs: 3}, {epochs: 27}"), None);
    assert_eq!(listed("{epochs: 3}, {lr: 1}"), None);
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
    assert!(by("spotsweep: {rungs_by: steps}").unwrap_err().problems[0].help.contains("did you mean `step`"));
    assert!(by("spotsweep: {rungs_by: epoch}").unwrap_err().problems[0].help.contains("or else its epoch"));
    let without = parse("f", "v", b"spotsweep: {rungs_by: step}\ntrials: [{lr: 1}]\n").unwrap();
    assert!(without.warnings[0].0.message.contains("no effect without `early_terminate`"));
}
