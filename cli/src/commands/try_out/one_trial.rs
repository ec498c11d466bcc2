//! The sweep of one trial that is tried.

use std::env;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use spotsweep_sweep_file::{Goal, SweepFile};

/// A sweep file with one trial: the first of `file`, or one without parameters. `command` goes before the file's own.
pub(super) fn text(file: Option<&SweepFile>, command: &[String]) -> String {
    let own = file.and_then(|file| file.settings.command.clone());
    let default = || ["python", "train.py", "${args}"].map(str::to_owned).to_vec();
    let command = if command.is_empty() { own.unwrap_or_else(default) } else { command.to_vec() };
    let mut sweep = json!({
        "spotsweep": {"attempts": 20, "command": in_own_environment(command, &|name| env::var(name).ok())},
        "trials": [file.and_then(|file| file.trials().next()).unwrap_or_default()],
    });
    if let Some(metric) = file.and_then(|file| file.metric.as_ref()) {
        let goal = if metric.goal == Goal::Maximize { "maximize" } else { "minimize" };
        sweep["metric"] = json!({"name": metric.name, "goal": goal});
    }
    if let Some(file) = file.filter(|file| !file.metrics.is_empty()) {
        sweep["metrics"] = json!(file.metrics);
    }
    if let Some(code) = file.and_then(|file| file.settings.code.as_ref()) {
        sweep["spotsweep"]["code"] = json!({"git": code.git, "ref": code.reference});
    }
    sweep.to_string()
}

/// The caller's programs and packages: the local stack's own Python comes first in the PATH of its jobs.
const OWN: [&str; 6] = ["PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH"];

/// The command in the caller's environment.
fn in_own_environment(command: Vec<String>, variable: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    // `$` would begin a macro.
    let own =
        OWN.iter().filter_map(|name| Some(format!("{name}={}", variable(name)?))).filter(|own| !own.contains('$'));
    ["/usr/bin/env".to_owned()].into_iter().chain(own).chain(command).collect()
}

/// Scripts that a command names, in the folder of the code.
pub(super) fn scripts(text: &str, folder: &Path) -> Vec<PathBuf> {
    let sweep: Value = serde_json::from_str(text).unwrap_or_default();
    let words = sweep["spotsweep"]["command"].as_array().cloned().unwrap_or_default();
    let scripts = words.iter().filter_map(Value::as_str).filter(|word| word.ends_with(".py"));
    scripts.map(|word| folder.join(word)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_sweep_has_its_first_trial_with_the_given_command() {
        let file = b"metric: {name: a b, goal: maximize}\nmetrics: [{name: x, regex: '(y)'}]\nprogram: p.py\nmethod: grid\nparameters: {lr: {values: [0.1, 0.2]}}\n";
        let file = spotsweep_sweep_file::parse("f.yaml", "", file).unwrap();
        let own: Value = serde_json::from_str(&text(Some(&file), &[])).unwrap();
        assert_eq!((&own["trials"], &own["metric"]["name"]), (&json!([{"lr": 0.1}]), &json!("a b")));
        assert_eq!(own["metrics"], json!([{"name": "x", "regex": "(y)"}]));
        let given = text(Some(&file), &["./run.sh".to_owned()]);
        assert!(given.contains("\"./run.sh\"]"), "{given}");
        assert!(spotsweep_sweep_file::parse("f.yaml", "", given.as_bytes()).is_ok());
        let none = text(None, &["sh".to_owned()]);
        assert!(spotsweep_sweep_file::parse("f.yaml", "", none.as_bytes()).is_ok(), "{none}");
    }

    #[test]
    fn a_command_has_the_callers_programs() {
        let variable = |name: &str| {
            (name != "CONDA_PREFIX").then(|| if name == "PATH" { "/venv/bin:/bin" } else { "$x" }.to_owned())
        };
        let words = in_own_environment(vec!["python".to_owned(), "train.py".to_owned()], &variable);
        assert_eq!(words, ["/usr/bin/env", "PATH=/venv/bin:/bin", "python", "train.py"]);
    }
}
