//! Checks whether the rule can stop a trial at all. Rungs may lie beyond the end of the training, if the file says how
//! long that is (`epochs: {value: 10}`). The rule may also need more trials to compare with than the sweep has.

use spotsweep_protocol::words::counted;
use spotsweep_search::stop::Rule;

use super::super::fields::Fields;
use super::super::plan::Plan;
use super::super::problem::Report;
use super::super::scalar::Scalar;
use super::super::tree::{Entry, Kind, Node};

/// Parameters that hold the length of a training, in lower case and without signs. The first list takes precedence.
const EPOCHS: [&str; 12] = [
    "epochs",
    "epoch",
    "nepochs",
    "nepoch",
    "nbepochs",
    "numepochs",
    "numepoch",
    "maxepochs",
    "maxepoch",
    "numtrainepochs",
    "trainepochs",
    "totalepochs",
];
const STEPS: [&str; 7] =
    ["maxsteps", "totalsteps", "numtrainsteps", "trainsteps", "maxiters", "totaliters", "totaltimesteps"];

/// Distributions whose `max` is a value, not an exponent.
const PLAIN: [&str; 6] =
    ["int_uniform", "uniform", "q_uniform", "log_uniform_values", "inv_log_uniform_values", "q_log_uniform_values"];

/// The greatest length of a training, by one of its parameters.
struct Length {
    name: String,
    most: f64,
    is_in_epochs: bool,
}

/// Warns about rungs that no trial reaches, and about a comparison that needs more trials than the sweep has.
pub(crate) fn check(fields: Fields<'_>, rule: &Rule, plan: &Plan, report: &mut Report<'_>) {
    let Some(entry) = fields.entry("early_terminate") else { return };
    let Some(own) = Fields::any(&entry.value, "`early_terminate`", report) else { return };
    let place = |keys: &[&str]| keys.iter().find_map(|key| own.entry(key));
    if let Rule::Median { least, .. } = rule {
        let trials = plan.trial_count();
        if trials <= *least as u64 {
            let others = counted(trials.saturating_sub(1), "other");
            let message = format!(
                "`min_samples_required` is {least}, and each of the {} has {others}: none is stopped",
                counted(trials, "trial")
            );
            let place = place(&["min_samples_required"]).map_or(entry.key_place, |entry| entry.value.place);
            report.warn(place, message, "write a smaller number, or run more trials");
        }
    }
    let (Some(length), Some(first)) = (length(fields), rule.rungs().first()) else { return };
    let Length { name, most, is_in_epochs } = &length;
    let or_ignore =
        if *is_in_epochs { ", or ignore this if the metric is reported more than once an epoch" } else { "" };
    let end = own.entry("max_iter").filter(|_| own.has("s"));
    if *first as f64 > *most {
        let message =
            format!("no trial is compared with others: the first rung is at {first}, and `{name}` is {most} at most");
        let (at, key) = match end.or(place(&["min_iter", "grace_period"])) {
            Some(key) => (key.value.place, format!("`{}`", key.key)),
            None => (entry.key_place, "first rung".to_owned()),
        };
        report.warn(at, message, format!("write a smaller {key}{or_ignore}"));
    } else if let (Some(end), Some((rung, is_last))) = (end, beyond(rule.rungs(), *most)) {
        let rungs = if is_last { format!("rung at {rung}") } else { format!("rungs from {rung} on") };
        let message = format!("no trial reaches the {rungs}: `{name}` is {most} at most");
        report.warn(end.value.place, message, format!("write `max_iter: {most}`{or_ignore}"));
    }
}

/// Returns the first rung beyond `most`, and whether it is the last one.
fn beyond(rungs: &[u64], most: f64) -> Option<(u64, bool)> {
    let at = rungs.iter().position(|rung| *rung as f64 > most)?;
    Some((*rungs.get(at)?, at + 1 == rungs.len()))
}

/// Returns the length of the trials, if all have it in a parameter with a usual name.
fn length(fields: Fields<'_>) -> Option<Length> {
    let mut found = Vec::new();
    match (fields.get("parameters").map(|node| &node.kind), fields.get("trials").map(|node| &node.kind)) {
        (Some(Kind::Mapping(entries)), _) => collect(entries, "", &mut found),
        (_, Some(Kind::List(trials))) => {
            let Some(Kind::Mapping(entries)) = trials.first().map(|trial| &trial.kind) else { return None };
            for Entry { key, .. } in entries.iter().filter(|entry| is_length(&entry.key).is_some()) {
                let of_trial = |trial: &Node| number(entry(trial, key)?);
                let all: Option<Vec<f64>> = trials.iter().map(of_trial).collect();
                found.extend(all.and_then(greatest).map(|most| (key.clone(), most)));
            }
        }
        (_, _) => {}
    }
    let with = |is_in_epochs: bool| {
        let of_kind = |(name, _): &&(String, f64)| is_length(name.rsplit('.').next()?).filter(|is| *is == is_in_epochs);
        let (name, most) = found.iter().find(|found| of_kind(found).is_some())?;
        Some(Length { name: name.clone(), most: *most, is_in_epochs })
    };
    with(true).or_else(|| with(false))
}

/// Whether a name means a length in epochs, or else in steps; `None` for another name.
fn is_length(name: &str) -> Option<bool> {
    let name: String = name.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
    let is_in = |names: &[&str]| names.contains(&name.as_str());
    if is_in(&EPOCHS) { Some(true) } else { is_in(&STEPS).then_some(false) }
}

/// Collects the lengths among parameters as W&B writes them, each with its greatest value.
fn collect(entries: &[Entry], group: &str, found: &mut Vec<(String, f64)>) {
    for Entry { key, value, .. } in entries {
        let name = format!("{group}{key}");
        if let Some(Kind::Mapping(inner)) = entry(value, "parameters").map(|node| &node.kind) {
            collect(inner, &format!("{name}."), found);
        } else if is_length(key).is_some() {
            found.extend(most(value).map(|most| (name, most)));
        }
    }
}

/// Returns the greatest value of a parameter, if every trial has the parameter.
fn most(parameter: &Node) -> Option<f64> {
    if entry(parameter, "when").is_some() {
        return None;
    }
    let is_plain = match entry(parameter, "distribution").map(|node| &node.kind) {
        None => true,
        Some(Kind::Scalar(Scalar::Text { text, .. })) => PLAIN.contains(&text.as_str()),
        Some(Kind::Scalar(_) | Kind::List(_) | Kind::Mapping(_)) => false,
    };
    if let Some(Kind::List(values)) = entry(parameter, "values").map(|node| &node.kind) {
        return greatest(values.iter().map(number).collect::<Option<Vec<f64>>>()?);
    }
    let most = entry(parameter, "value").or_else(|| entry(parameter, "max").filter(|_| is_plain))?;
    number(most)
}

fn entry<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    match &node.kind {
        Kind::Mapping(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value),
        Kind::Scalar(_) | Kind::List(_) => None,
    }
}

fn number(node: &Node) -> Option<f64> {
    match &node.kind {
        Kind::Scalar(Scalar::Number(number)) => number.as_f64(),
        Kind::Scalar(_) | Kind::List(_) | Kind::Mapping(_) => None,
    }
}

fn greatest(values: Vec<f64>) -> Option<f64> {
    values.into_iter().reduce(f64::max)
}
