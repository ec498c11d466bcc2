//! Unknown keys at the top level of a sweep file.

use super::choice::{LIST_KEYS, SAMPLING_KEYS, WANDB_KEYS};
use super::fields::Fields;
use super::problem::{Report, near_miss};
use super::scalar::Scalar;
use super::tree::{Entry, Kind};
use super::{MAX_TRIALS, settings};

/// Settings of spotsweep that files for other programs may have at the top level with another meaning.
const OTHERS_KEYS: [&str; 3] = ["tags", "seed", "data"];

/// Words that limit the trials in the keys of other programs: `max_runs`, `n_trials`, `trial_count`.
const AMOUNTS: [&str; 10] = ["max", "maximum", "num", "n", "number", "numberof", "total", "count", "limit", "budget"];
const TRIALS: [&str; 6] = ["run", "runs", "trial", "trials", "experiment", "experiments"];

/// The most unknown keys at the top level that are looked at. A file with more has another format.
const MAX_UNKNOWN: usize = 100;

/// The number of unknown keys up to which each has a warning of its own.
const FEW_UNKNOWN: usize = 3;

/// Reports or warns about unknown keys. W&B ignores keys of other programs with a warning, but a slip in a key of the
/// file's own would cost GPU hours.
pub(crate) fn check(fields: Fields<'_>, keys: &[&str], report: &mut Report<'_>) {
    let is_unknown = |entry: &&Entry| !keys.contains(&entry.key.as_str());
    let mut ignored = Vec::new();
    let all_keys = || WANDB_KEYS.into_iter().chain(LIST_KEYS);
    for (number, entry) in fields.entries().iter().filter(is_unknown).enumerate() {
        let (key, place) = (entry.key.as_str(), entry.key_place);
        let message = format!("unknown key `{key}`");
        if number >= MAX_UNKNOWN {
            let help = "a sweep file is a list of trials or a W&B sweep config";
            report.add(place, format!("the sweep file has more than {MAX_UNKNOWN} unknown keys"), help);
            return;
        }
        let is_setting = settings::KEYS.iter().chain(&SAMPLING_KEYS).any(|known| *known == key);
        if let Some(near) = near_miss(key, all_keys()) {
            let help = if near == key {
                format!("the keys here are: {}", keys.join(", "))
            } else {
                format!("did you mean `{near}`?")
            };
            report.add(place, message, help);
        } else if is_setting && !is_of_others(entry) {
            report.add(place, message, moved(entry));
        } else if let Some(help) = limit_help(fields, entry) {
            report.warn(place, format!("{message}: ignored, as by W&B"), help);
        } else {
            ignored.push(entry);
        }
    }
    warn_of_ignored(&ignored, report);
}

/// Whether another program may have this setting. `data` with a URL of S3 is meant for spotsweep.
fn is_of_others(entry: &Entry) -> bool {
    let is_ours = || entry.key == "data" && entry.value.to_json().to_string().contains("s3://");
    OTHERS_KEYS.contains(&entry.key.as_str()) && !is_ours()
}

/// Warns about ignored keys. A few keys get a warning each. Many keys are another program's configuration and get one
/// warning together.
fn warn_of_ignored(ignored: &[&Entry], report: &mut Report<'_>) {
    let help = "delete the line, or put `#` before it";
    if let [first, others @ ..] = ignored
        && others.len() >= FEW_UNKNOWN
    {
        let listed: Vec<String> = ignored.iter().take(FEW_UNKNOWN).map(|entry| format!("`{}`", entry.key)).collect();
        let (count, listed) = (ignored.len(), listed.join(", "));
        let message = format!("{count} unknown keys: {listed}, … are ignored, as by W&B");
        report.warn(first.key_place, message, "delete these lines, or put `#` before them");
        return;
    }
    for entry in ignored {
        report.warn(entry.key_place, format!("unknown key `{}`: ignored, as by W&B", entry.key), help);
    }
}

/// Returns where one of spotsweep's own settings belongs. In other programs' files `budget` is a number.
fn moved(entry: &Entry) -> String {
    match &entry.value.kind {
        Kind::Scalar(Scalar::Number(number)) if entry.key == "budget" => format!(
            "to limit the cost in dollars write `spotsweep: {{budget: {{max_usd: {number}}}}}`, to limit the number of trials `spotsweep: {{trials: …}}`; or delete it"
        ),
        Kind::Scalar(_) | Kind::List(_) | Kind::Mapping(_) => "move it under `spotsweep:`, or delete it".to_owned(),
    }
}

/// Returns the help for a key that looks like a limit of the trials, if the file has no limit: ignoring the key would
/// cost money.
fn limit_help(fields: Fields<'_>, entry: &Entry) -> Option<String> {
    let is_capped = match fields.get("spotsweep").map(|node| &node.kind) {
        Some(Kind::Mapping(own)) => own.iter().any(|entry| entry.key == "trials"),
        Some(Kind::Scalar(_) | Kind::List(_)) | None => false,
    };
    if !is_like_a_limit(&entry.key) || is_capped || fields.has("run_cap") {
        return None;
    }
    let limit = match &entry.value.kind {
        Kind::Scalar(Scalar::Number(number)) => number.as_f64(),
        Kind::Scalar(_) | Kind::List(_) | Kind::Mapping(_) => None,
    };
    let limit = limit.filter(|limit| limit.fract() == 0.0 && (1.0..=MAX_TRIALS as f64).contains(limit));
    let written = match (limit, fields.has("trials")) {
        (Some(limit), true) => format!("`spotsweep: {{trials: {limit}}}`"),
        (Some(limit), false) => format!("`run_cap: {limit}`"),
        (None, true) => "`spotsweep: {trials: …}` with a number".to_owned(),
        (None, false) => "`run_cap:` and a number".to_owned(),
    };
    Some(format!(
        "W&B and spotsweep have no such key: to limit the number of trials write {written}, else delete the line"
    ))
}

/// Whether other programs limit their runs with this key: `max_runs`, `count`.
fn is_like_a_limit(key: &str) -> bool {
    let key: String = key.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
    let is_amount = |word: &str| AMOUNTS.contains(&word);
    let is_of_trials =
        |word: &&str| key.strip_prefix(word).is_some_and(is_amount) || key.strip_suffix(word).is_some_and(is_amount);
    ["count", "runs"].contains(&key.as_str()) || TRIALS.iter().any(is_of_trials)
}
