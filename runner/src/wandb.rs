//! Gives a script what W&B's agent gives it: the parameters for `wandb.config`, and what makes the attempts of a trial
//! one run.

use std::path::Path;

use serde_json::{Map, Value};
use spotsweep_beneath::read_regular;
use spotsweep_protocol::claim::WandbPlace;

/// The largest netrc that is read. It has a few lines, but any file may be at its path.
const MOST_NETRC_BYTES: u64 = 64 * 1024;
const FILE: &str = "WANDB_SWEEP_PARAM_PATH";
const MODE: &str = "WANDB_MODE";
const RESUME: &str = "WANDB_RESUME";
/// Seconds between two writes of a run's file. With W&B's own 15, that much is lost whenever a training is killed
/// (wandb 0.31.0, `x_transaction_log_flush_interval`). A version without it ignores the variable.
const FLUSH: &str = "WANDB_X_TRANSACTION_LOG_FLUSH_INTERVAL";
/// Each of these variables is a key, or a choice of the job's own.
const KEYS: [&str; 3] = ["WANDB_API_KEY", "WANDB_IDENTITY_TOKEN_FILE", MODE];

/// The file that `wandb.init` reads in place of the script's own defaults, as W&B's agent writes it (wandb 0.31.0,
/// `wandb/agents/pyagent.py` and `wandb/sdk/lib/config_util.py`).
pub(crate) fn parameters_file(parameters: &Map<String, Value>) -> String {
    let line = |(name, value): (&String, &Value)| format!("{}: {{value: {}}}\n", quoted(name), yaml(value));
    format!("wandb_version: 1\n\n{}", parameters.iter().map(line).collect::<String>())
}

/// A trial's values, from which W&B's variables are made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) sweep: &'a str,
    pub(crate) index: u32,
    /// The file of the trial's parameters.
    pub(crate) parameters: &'a Path,
    /// The folder for W&B's files; it is collected.
    pub(crate) folder: &'a Path,
    /// The project and entity that the sweep file names.
    pub(crate) place: &'a WandbPlace,
}

/// The variables of a run; those that the job sets itself are not changed. Without a key, W&B would ask for one and
/// fail, so runs stay on this machine. With a key, all attempts of a trial are one run.
pub(crate) fn variables(
    run: Run<'_>,
    home: Option<&Path>,
    inherited: &dyn Fn(&str) -> Option<String>,
) -> Vec<(String, String)> {
    let is_set = |name: &&str| inherited(name).is_some_and(|value| !value.is_empty());
    // `wandb login` stores its key there.
    let netrc = home.and_then(|home| read_regular(&home.join(".netrc"), MOST_NETRC_BYTES).ok());
    let has_key =
        KEYS.iter().any(is_set) || netrc.is_some_and(|netrc| String::from_utf8_lossy(&netrc).contains("wandb"));
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let own = [
        ("WANDB_DIR", path(run.folder)),
        ("WANDB_RUN_GROUP", run.sweep.to_owned()),
        ("WANDB_RUN_ID", format!("{}-{}", run.sweep, run.index)),
        (FLUSH, "0.2".to_owned()),
        // Offline, W&B warns that it does not resume anything.
        if has_key { (RESUME, "allow".to_owned()) } else { (MODE, "offline".to_owned()) },
    ];
    let WandbPlace { project, entity } = run.place.clone();
    let place = [("WANDB_PROJECT", project), ("WANDB_ENTITY", entity)];
    let place = place.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let own = own.into_iter().chain(place).filter(|(name, _)| !is_set(name));
    let all = [(FILE, path(run.parameters))].into_iter().chain(own);
    all.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A value in YAML's flow style, as PyYAML reads it.
fn yaml(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) => value.to_string(),
        Value::Number(number) => with_point(&number.to_string()),
        Value::String(text) => quoted(text),
        Value::Array(values) => format!("[{}]", values.iter().map(yaml).collect::<Vec<_>>().join(", ")),
        Value::Object(entries) => {
            let entries: Vec<String> =
                entries.iter().map(|(name, value)| format!("{}: {}", quoted(name), yaml(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

/// Adds a point to a number with an exponent, and a sign to the exponent. PyYAML reads `1e-7` as a text.
fn with_point(number: &str) -> String {
    let Some((mantissa, exponent)) = number.split_once(['e', 'E']) else { return number.to_owned() };
    let point = if mantissa.contains('.') { "" } else { ".0" };
    let sign = if exponent.starts_with(['+', '-']) { "" } else { "+" };
    format!("{mantissa}{point}e{sign}{exponent}")
}

/// Quotes a text as JSON does, which YAML reads (YAML 1.1, section 5.6), and escapes what only JSON leaves as it is.
fn quoted(text: &str) -> String {
    let json = Value::from(text).to_string();
    json.chars().map(|c| if is_plain(c) { c.to_string() } else { escaped(c) }).collect()
}

/// Whether PyYAML's reader accepts a character (`Reader.NON_PRINTABLE`) and does not fold it as a line break.
fn is_plain(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}'
        | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..)
}

fn escaped(c: char) -> String {
    format!("\\U{:08x}", u32::from(c))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// `tests/wandb` gives the same file to wandb.
    #[test]
    fn the_file_is_the_one_that_wandb_reads() {
        let parameters = include_str!("../../tests/wandb/parameters.json");
        let parameters: Map<String, Value> = serde_json::from_str(parameters).unwrap();
        assert_eq!(parameters_file(&parameters), include_str!("../../tests/wandb/parameters.yaml"));
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "works in a temporary folder")]
    fn a_run_stays_on_this_machine_without_a_key_and_goes_on_with_one() {
        let home = tempfile::tempdir().unwrap();
        let of = |own: &[&str]| {
            let inherited = |wanted: &str| own.contains(&wanted).then(|| "x".to_owned());
            let place = WandbPlace { project: Some("p".to_owned()), entity: None };
            let (parameters, folder) = (Path::new("/p"), Path::new("/storage/7"));
            let run = Run { sweep: "s-1", index: 7, parameters, folder, place: &place };
            let found = variables(run, Some(home.path()), &inherited);
            found.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
        };
        let flush = "WANDB_X_TRANSACTION_LOG_FLUSH_INTERVAL=0.2";
        let always =
            ["WANDB_SWEEP_PARAM_PATH=/p", "WANDB_DIR=/storage/7", "WANDB_RUN_GROUP=s-1", "WANDB_RUN_ID=s-1-7", flush];
        let with = |last: &[&'static str]| [always.as_slice(), last, &["WANDB_PROJECT=p"]].concat();
        assert_eq!(of(&["HOME"]), with(&["WANDB_MODE=offline"]));
        assert_eq!(of(&["WANDB_API_KEY"]), with(&["WANDB_RESUME=allow"]));
        assert_eq!(of(&["WANDB_MODE"]), with(&["WANDB_RESUME=allow"]));
        let own =
            ["WANDB_RUN_ID", "WANDB_DIR", "WANDB_RUN_GROUP", "WANDB_RESUME", "WANDB_API_KEY", FLUSH, "WANDB_PROJECT"];
        assert_eq!(of(&own), always[..1]);
        std::fs::write(home.path().join(".netrc"), "machine api.wandb.ai\n  login user\n").unwrap();
        assert_eq!(of(&[]), with(&["WANDB_RESUME=allow"]));
    }
}
