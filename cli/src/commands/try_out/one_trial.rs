//! Makes the sweep with the one trial that is tried.

use std::path::Path;
use std::{env, fs};

use serde_json::{Map, Value, json};
use spotsweep_protocol::claim::{Patterns, data_variable};
use spotsweep_sweep_file::{Goal, SecretSource, Settings, SweepFile};

use super::super::retry::code_value;

/// The trial that is tried.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OneTrial {
    /// The command of the file or of the caller.
    pub(super) command: Vec<String>,
    pub(super) parameters: Map<String, Value>,
    /// Which of its files are collected.
    pub(super) outputs: Patterns,
    /// The variables with the folders of its data sets.
    pub(super) data: Vec<String>,
    /// The rest of its sweep file.
    pub(super) rest: Value,
}

impl OneTrial {
    /// The first trial of `file`, or one without parameters. `command` goes before the file's own.
    pub(super) fn new(file: Option<&SweepFile>, command: &[String]) -> Self {
        let own = file.and_then(|file| file.settings.command.clone());
        let default = || ["python", "train.py", "${args}"].map(str::to_owned).to_vec();
        let command = if command.is_empty() { own.unwrap_or_else(default) } else { command.to_vec() };
        let mut rest = json!({"spotsweep": {"attempts": 20}});
        if let Some(metric) = file.and_then(|file| file.metric.as_ref()) {
            let goal = if metric.goal == Goal::Maximize { "maximize" } else { "minimize" };
            rest["metric"] = json!({"name": metric.name, "goal": goal});
        }
        if let Some(file) = file.filter(|file| !file.metrics.is_empty()) {
            rest["metrics"] = json!(file.metrics);
        }
        if let Some(Settings { code, setup, env, secrets, .. }) = file.map(|file| &file.settings) {
            // A folder is the one in which the command runs.
            if let Some(code) = code.as_ref().filter(|code| code.folder().is_none()) {
                rest["spotsweep"]["code"] = code_value(code);
                if let Some(token) = code.token() {
                    rest["spotsweep"]["code"]["token"] = json!(SecretSource::of(token).anywhere());
                }
            }
            // The local stack has another account.
            let secrets = secrets.iter().map(|(variable, text)| (variable.as_str(), SecretSource::of(text).anywhere()));
            rest["spotsweep"]["setup"] = json!(setup);
            rest["spotsweep"]["env"] = json!(env);
            rest["spotsweep"]["secrets"] = secrets.collect();
        }
        let sources = file.into_iter().flat_map(|file| file.settings.data.keys());
        let data = sources.map(|name| data_variable(name)).collect();
        let outputs = file.and_then(|file| file.settings.outputs.clone()).map(Patterns::from).unwrap_or_default();
        rest["spotsweep"]["outputs"] = json!(outputs);
        let parameters = file.and_then(|file| file.trials().next()).unwrap_or_default();
        Self { command, parameters, outputs, data, rest }
    }

    /// A sweep file with this trial alone, in the caller's environment.
    pub(super) fn text(&self) -> String {
        let mut sweep = self.rest.clone();
        sweep["spotsweep"]["command"] = json!(self.in_own_environment(&|name| env::var(name).ok()));
        sweep["trials"] = json!([self.parameters]);
        sweep.to_string()
    }

    /// The command in the caller's environment, and with the caller's folders of data.
    fn in_own_environment(&self, variable: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
        let names = OWN.into_iter().chain(self.data.iter().map(String::as_str));
        // A `$` would begin a macro.
        let own = names.filter_map(|name| Some(format!("{name}={}", variable(name)?))).filter(|own| !own.contains('$'));
        ["/usr/bin/env".to_owned()].into_iter().chain(own).chain(self.command.clone()).collect()
    }

    /// The data sets' variables that the caller has not set.
    pub(super) fn lacks_data(&self) -> impl Iterator<Item = &String> {
        self.data.iter().filter(|name| env::var_os(name).is_none())
    }

    /// The text of the scripts that the command names, in the folder of the code.
    pub(super) fn source(&self, folder: &Path) -> String {
        let scripts = self.command.iter().filter(|word| word.ends_with(".py"));
        scripts.filter_map(|word| fs::read_to_string(folder.join(word)).ok()).collect()
    }
}

/// Variables that lead to the caller's programs and packages. Without them the local stack's own Python would come
/// first in the PATH of its jobs.
const OWN: [&str; 6] = ["PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH"];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_sweep_has_its_first_trial_with_the_given_command() {
        let file = b"metric: {name: a b, goal: maximize}\nmetrics: [{name: x, regex: '(y)'}]\nprogram: p.py\nmethod: grid\nparameters: {lr: {values: [0.1, 0.2]}}\nspotsweep: {outputs: {exclude: [a], checkpoints: all}, code: {git: 'https://h/x', token: GIT}, secrets: {A: a, B: 'arn:aws:ssm:eu-west-1:1:parameter/t/b', C: 'arn:aws:secretsmanager:eu-west-1:1:secret:t/c-1a2B3c:k::'}}\n";
        let file = spotsweep_sweep_file::parse("f.yaml", "", file).unwrap();
        let text = |file, command: &[String]| OneTrial::new(file, command).text();
        let own: Value = serde_json::from_str(&text(Some(&file), &[])).unwrap();
        assert_eq!((&own["trials"], &own["metric"]["name"]), (&json!([{"lr": 0.1}]), &json!("a b")));
        assert_eq!(own["metrics"], json!([{"name": "x", "regex": "(y)"}]));
        assert_eq!(own["spotsweep"]["outputs"], json!({"include": [], "exclude": ["a"], "checkpoints": "all"}));
        assert_eq!(own["spotsweep"]["code"], json!({"git": "https://h/x", "token": "GIT"}));
        assert_eq!(
            own["spotsweep"]["secrets"],
            json!({"A": "a", "B": "/t/b", "C": "/aws/reference/secretsmanager/t/c:k"})
        );
        let given = text(Some(&file), &["./run.sh".to_owned()]);
        assert!(given.contains("\"./run.sh\"]"), "{given}");
        assert!(spotsweep_sweep_file::parse("f.yaml", "", given.as_bytes()).is_ok());
        let none = text(None, &["sh".to_owned()]);
        assert!(spotsweep_sweep_file::parse("f.yaml", "", none.as_bytes()).is_ok(), "{none}");
    }

    #[test]
    fn a_command_has_the_callers_programs() {
        let variable = |name: &str| {
            let known = [("PATH", "/venv/bin:/bin"), ("SPOTSWEEP_DATA_A_B", "/some")];
            let known = known.into_iter().find(|(of, _)| *of == name).map_or("$x", |(_, value)| value);
            (name != "CONDA_PREFIX").then(|| known.to_owned())
        };
        let file = b"trials: [{a: 1}]\nspotsweep: {data: {a-b: s3://bucket/x/}}\n";
        let file = spotsweep_sweep_file::parse("f.yaml", "", file).unwrap();
        let words = OneTrial::new(Some(&file), &["python".to_owned()]).in_own_environment(&variable);
        assert_eq!(words, ["/usr/bin/env", "PATH=/venv/bin:/bin", "SPOTSWEEP_DATA_A_B=/some", "python"]);
    }
}
