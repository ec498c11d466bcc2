//! Sweep files as data: each `tests/sweeps/good/*.yaml` with its trials and warnings next to it, and each `bad/*.yaml`
//! with its problems.
//!
//! `UPDATE_EXPECTED=1 cargo test --workspace --test sweep_file` rewrites the expected files. Read the difference.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "the cases are files")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use spotsweep_protocol::command_line::expand;
use spotsweep_protocol::words::counted;
use spotsweep_sweep_file::{Defaults, MAX_FILE_BYTES, MAX_TRIALS, Problem, Rejected, SweepFile, parse, parse_with};

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sweeps").join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    assert!(!files.is_empty());
    files
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// Compares `actual` with the file next to `path`.
fn check(path: &Path, extension: &str, actual: &str) {
    let beside = path.with_extension(extension);
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(&beside, actual).unwrap();
    }
    let expected = std::fs::read_to_string(&beside).unwrap_or_default();
    assert_eq!(actual, expected, "{}", beside.display());
}

/// The fields of a debug text that have a value.
fn stated(debug: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    for word in debug.split(' ') {
        let is_absent = ["None", "{}", "[]"].contains(&word.trim_end_matches(','));
        match words.last() {
            Some(field) if is_absent && field.ends_with(':') => drop(words.pop()),
            Some(_) | None => words.push(word),
        }
    }
    words.join(" ")
}

#[test]
fn good_files_have_their_trials_and_settings() {
    for path in files("good") {
        let file = parse(&name(&path), "version-1", &std::fs::read(&path).unwrap())
            .unwrap_or_else(|problems| unreachable!("{}: {problems:#?}", path.display()));
        let settings = stated(&format!("{:?}", file.settings));
        let mut actual = format!("{settings}\n{:?}\n{} trials\n", file.metric, file.trial_count());
        if let Some(rule) = &file.early_terminate {
            writeln!(actual, "{rule:?} by {:?}", file.rungs_by).unwrap();
        }
        if !file.wandb.is_default() {
            writeln!(actual, "{:?}", file.wandb).unwrap();
        }
        for trial in file.trials() {
            writeln!(actual, "{}", serde_json::to_string(&trial).unwrap()).unwrap();
        }
        if let Some(arguments) = first_command(&file) {
            writeln!(actual, "{arguments}").unwrap();
        }
        assert_eq!(file.trials().count() as u64, file.trial_count(), "{}", path.display());
        check(&path, "trials", &actual);
        let warnings: String = file.warnings.iter().map(|warning| format!("{warning}\n\n")).collect();
        if warnings.is_empty() {
            assert!(!path.with_extension("warnings").exists(), "{} has no warnings", path.display());
        } else {
            check(&path, "warnings", &warnings);
        }
    }
}

/// Returns the command of the first trial as JSON, with a value for every variable.
fn first_command(file: &SweepFile) -> Option<String> {
    let (template, parameters) = (file.settings.command.as_ref()?, file.trials().next()?);
    let command = expand(template, &parameters, &|name| Some(format!("<{name}>")), "<parameters.json>").unwrap();
    Some(serde_json::to_string(&command).unwrap())
}

/// JSON texts are compared, because maps would be equal in any order of keys, and the order matters for arguments.
#[test]
fn mappings_have_their_keys_in_wandbs_order() {
    let of = |text: &str| serde_json::to_string(&parse("f", "v", text.as_bytes()).unwrap().trials().next()).unwrap();
    let expected = r#"{"b":{"a":2,"z":[{"x":1,"y":2}]}}"#;
    assert_eq!(of("method: grid\nparameters: {b: {value: {z: [{y: 2, x: 1}], a: 2}}}\n"), expected);
    assert_eq!(of("method: grid\nparameters: {b: {values: [{z: [{y: 2, x: 1}], a: 2}]}}\n"), expected);
}

#[test]
fn a_random_search_without_a_number_has_the_deployments() {
    let text = b"method: random\nparameters: {lr: {min: 0.0, max: 1.0}}\n";
    let file = |trials| parse_with("f", "v", text, &Defaults { trials, ..Defaults::default() }).unwrap();
    assert_eq!(parse("f", "v", text).unwrap().trial_count(), 30);
    for (trials, expected) in [(7, 7), (0, 1), (u64::MAX, MAX_TRIALS)] {
        let file = file(trials);
        assert_eq!(file.trial_count(), expected);
        assert!(
            file.warnings[0].to_string().contains(&format!("{}, the deployment's default", counted(expected, "trial")))
        );
    }
    assert!(file(7).trials().zip(file(9).trials()).all(|(short, long)| short == long));
    let capped = b"method: random\nrun_cap: 3\nparameters: {lr: {min: 0.0, max: 1.0}}\n";
    let capped = parse_with("f", "v", capped, &Defaults { trials: 7, ..Defaults::default() }).unwrap();
    assert_eq!((capped.trial_count(), capped.warnings.len()), (3, 0));
}

#[test]
fn a_number_from_outside_goes_before_the_files_own() {
    let count = |text: &str, run_cap| {
        let defaults = Defaults { run_cap: Some(run_cap), ..Defaults::default() };
        let file = parse_with("f", "v", text.as_bytes(), &defaults).unwrap();
        assert_eq!(file.warnings, []);
        file.trial_count()
    };
    let random = "method: random\nparameters: {lr: {min: 0.0, max: 1.0}}\n";
    assert_eq!(count(random, 4), 4);
    assert_eq!(count(&format!("run_cap: 9\n{random}"), 4), 4);
    assert_eq!(count(&format!("run_cap: 2\n{random}"), 4), 4);
    let grid = "method: grid\nparameters: {lr: {values: [1, 2, 3]}}\n";
    assert_eq!((count(grid, 2), count(grid, 7)), (2, 3));
    assert_eq!(count("- {lr: 1}\n- {lr: 2}\n", 1), 2, "a list has no such limit");
}

/// Warnings are stored with the plan, so their number is bounded however long the file is.
#[test]
fn warnings_are_counted_beyond_the_first_twenty() {
    let file = parse("f", "v", "- {x: yes}\n".repeat(100).as_bytes()).unwrap();
    assert_eq!(file.warnings.len(), 21);
    assert_eq!(file.warnings[20].0.message, "80 more warnings not shown");
    let json = serde_json::to_string(&file.warnings[0]).unwrap();
    assert!(json.starts_with(r#"{"file":"f","line":1,"column":7,"#), "{json}");
}

/// Text that does not fit into the quote must also be cut if credentials are removed from the line before.
#[test]
fn a_line_without_its_credentials_is_no_longer_than_others() {
    let url = "https://ana:s3cr3tpw@host/";
    for filler in 0..200 {
        let text = format!("a: \"{url}\" {}\nb: 1\n", "x".repeat(filler));
        let problem = &parse("f", "v", text.as_bytes()).unwrap_err().problems[0];
        assert!(problem.text.chars().count() <= 162, "{problem}");
        let shown = problem.to_string();
        let marked: Vec<&str> = shown.lines().skip(3).take(2).collect();
        let at = marked[1].find('^').unwrap();
        assert!(filler == 0 || marked[0][at..].starts_with('x'), "{problem}");
    }
}

fn render(problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("{problem}\n\n")).collect()
}

#[test]
fn bad_files_have_all_their_problems_with_place_and_remedy() {
    for path in files("bad") {
        let rejected = parse(&name(&path), "version-1", &std::fs::read(&path).unwrap()).unwrap_err();
        let Rejected { problems, warnings } = rejected;
        for problem in &problems {
            assert!(problem.line > 0 && problem.column > 0 && problem.width > 0, "{problem:?}");
            assert!(!problem.message.is_empty() && !problem.help.is_empty(), "{problem:?}");
            assert!(problem.text.chars().count() <= 162, "{problem:?}");
        }
        // Problems hide no warnings.
        let warnings: String = warnings.iter().map(|warning| format!("{warning}\n\n")).collect();
        check(&path, "problems", &(render(&problems) + &warnings));
    }
}

#[test]
fn sizes_are_bounded_exactly() {
    let too_large = vec![b' '; usize::try_from(MAX_FILE_BYTES).unwrap() + 1];
    let problems = parse("big.yaml", "v", &too_large).unwrap_err().problems;
    assert_eq!(problems.len(), 1);
    assert!(problems[0].message.contains("8 MiB is the most"), "{}", problems[0]);

    let grid = |max: u64| format!("method: grid\nparameters: {{seed: {{min: 1, max: {max}}}}}\n");
    assert_eq!(parse("f", "v", grid(MAX_TRIALS).as_bytes()).unwrap().trial_count(), MAX_TRIALS);
    assert!(
        parse("f", "v", grid(MAX_TRIALS + 1).as_bytes()).unwrap_err().problems[0].message.contains("100001 trials")
    );

    let listed = format!("[{}]", "{},".repeat(1_000_001));
    let problems = parse("list.yaml", "v", listed.as_bytes()).unwrap_err().problems;
    assert!(problems[0].message.contains("more than 1000000 values"), "{}", problems[0]);
}

/// Problems with one cause must not hide the others, and the report must stay small.
#[test]
fn problems_are_counted_beyond_the_first_hundred() {
    let text = "- x\n".repeat(5_000);
    let problems = parse("f", "v", text.as_bytes()).unwrap_err().problems;
    assert_eq!(problems.len(), 101);
    assert_eq!(problems[100].message, "4900 more problems not shown");
}

#[test]
fn problems_found_later_point_at_their_setting() {
    let file = parse("f.yaml", "v", b"trials: [{lr: 1}]\nspotsweep:\n  queue: gpu\n").unwrap();
    assert_eq!(
        file.problem_at("queue", "there is no such queue", "make it").to_string(),
        "error: there is no such queue\n --> f.yaml:3:10\n  |\n3 |   queue: gpu\n  |          ^^^\n  = help: make it"
    );
    assert_eq!(file.problem_at("job_definition", "none", "name one").line, 1);
}

#[test]
fn a_name_is_the_text_that_is_written() {
    let cases = [("2024", Some("2024")), ("1.10", Some("1.10")), ("010", Some("010")), ("12:30", Some("12:30"))];
    let words = [("true", Some("true")), ("yes", Some("yes")), ("~", None), ("''", None), ("", None)];
    for (written, expected) in cases.into_iter().chain(words) {
        let text = format!("name: {written}\ntrials: [{{lr: 1}}]\n");
        assert_eq!(parse("f", "v", text.as_bytes()).unwrap().name.as_deref(), expected, "{written}");
    }
}

/// Every YAML example of the page is a valid file with the number of trials that its first line states.
#[test]
fn the_documentations_examples_hold() {
    let page = include_str!("../../../docs/sweep-file.md");
    let mut examples = 0;
    for block in page.split("```yaml\n").skip(1) {
        let (example, _) = block.split_once("```").unwrap();
        let stated = example.lines().next().unwrap().trim_start_matches("# ").split(' ').next().unwrap();
        let file = parse("docs/sweep-file.md", "v", example.as_bytes())
            .unwrap_or_else(|problems| unreachable!("{problems:#?}"));
        assert_eq!(file.trial_count().to_string(), stated, "{example}");
        assert_eq!(file.trials().count().to_string(), stated, "{example}");
        examples += 1;
    }
    assert!(examples >= 7, "{examples}");
}
