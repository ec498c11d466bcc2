//! `early_terminate`: when a trial is stopped before its end.
//!
//! What W&B refuses is refused here, and what it ignores gets a warning: `tests/recorded_hyperband.rs` compares both.

use serde_json::{Map, Value, json};
use spotsweep_protocol::rungs::Unit;
use spotsweep_protocol::words::counted;
use spotsweep_search::stop::{MOST_RUNGS, RUNG_LIMIT, Rule, asha, hyperband, median};

use super::fields::{Fields, boolean};
use super::problem::{Report, near_miss, nearest};
use super::scalar::Scalar;
use super::tree::{Entry, Kind, Node};

pub(crate) mod reach;

/// The values of `type`, one for each rule.
pub(crate) const TYPES: [&str; 4] = ["hyperband", "asha", "median", "interruption"];

/// The keys of each rule other than `type`. Ray's and W&B's names are both valid where they have the same meaning.
pub(crate) const HYPERBAND_KEYS: [&str; 5] = ["min_iter", "max_iter", "s", "eta", "strict"];
pub(crate) const ASHA_KEYS: [&str; 7] =
    ["grace_period", "max_t", "reduction_factor", "brackets", "min_iter", "max_iter", "eta"];
pub(crate) const MEDIAN_KEYS: [&str; 4] = ["grace_period", "min_iter", "interval", "min_samples_required"];
pub(crate) const INTERRUPTION_KEYS: [&str; 4] = ["min_iter", "max_iter", "s", "eta"];

/// The values of `rungs_by`.
pub(crate) const UNITS: [&str; 2] = ["reports", "step"];

/// W&B's default for `eta`.
const ETA: f64 = 3.0;

/// The first rung of the rule that judges interrupted trials. The study of the rule used this value.
const INTERRUPTION_FROM: i64 = 3;

/// Ray's defaults.
const ASHA_FROM: i64 = 1;
const ASHA_TO: i64 = 100;
const ASHA_ETA: f64 = 4.0;
const MEDIAN_LEAST: i64 = 3;

/// Katib's first step for the median rule. Ray's default is one minute, and its unit is seconds.
const MEDIAN_FROM: i64 = 4;

/// The largest step.
const LAST: i64 = RUNG_LIMIT as i64 - 1;

/// Reads the rule, if its keys are valid.
pub(crate) fn read(entry: &Entry, has_metric: bool, report: &mut Report<'_>) -> Option<Rule> {
    let fields = Fields::any(&entry.value, "`early_terminate`", report)?;
    if !has_metric {
        let help = "add what the trials are compared by, for example `metric: {name: val_loss, goal: minimize}`";
        report.add(entry.key_place, "`early_terminate` needs a `metric`, and the file has none", help);
    }
    if !fields.has("type") {
        let help = "add for example `type: hyperband`, W&B's rule";
        report.add(fields.place(), "`early_terminate` has no `type`", help);
        return None;
    }
    match fields.text("type", report)? {
        "hyperband" => {
            unknown_keys(fields, report);
            if let (Some(last), false) = (fields.entry("max_iter"), fields.has("s")) {
                stops_nothing(fields, last, report);
                return None;
            }
            let (bands, strict) = (bands(fields, None, report), strict(fields, report));
            let (bands, eta) = bands?;
            Some(Rule::Hyperband { bands, eta, strict: strict? })
        }
        "interruption" => {
            only(&entry.value, "`interruption`", &INTERRUPTION_KEYS, report)?;
            let (bands, eta) = bands(fields, Some(INTERRUPTION_FROM), report)?;
            Some(Rule::Interruption { bands, eta })
        }
        "asha" => read_asha(only(&entry.value, "`asha`", &ASHA_KEYS, report)?, report),
        "median" => read_median(only(&entry.value, "`median`", &MEDIAN_KEYS, report)?, report),
        other => {
            let help = match nearest(other, TYPES) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("choose one of {}", TYPES.join(", ")),
            };
            let place = fields.get("type").map_or(fields.place(), |node| node.place);
            report.add(place, format!("there is no early termination `{other}`"), help);
            None
        }
    }
}

/// Reads `rungs_by` under `spotsweep:`.
pub(crate) fn unit(own: Fields<'_>, has_rule: bool, report: &mut Report<'_>) -> Unit {
    let Some(entry) = own.entry("rungs_by") else { return Unit::default() };
    if !has_rule {
        let help = "delete it, or add `early_terminate:` at the top level";
        report.warn(entry.key_place, "`rungs_by` has no effect without `early_terminate`", help);
    }
    match own.text("rungs_by", report) {
        Some("reports") | None => Unit::Reports,
        Some("step") => Unit::Step,
        Some(other) => {
            let help = match nearest(other, UNITS) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "write reports, the number of values, or step, a report's step or else its epoch".to_owned(),
            };
            report.add(entry.value.place, format!("rungs cannot be counted by `{other}`"), help);
            Unit::Reports
        }
    }
}

/// Reports unknown keys. W&B deletes keys that it does not know, but a slip in a key that it knows would change which
/// trials stop.
fn unknown_keys(fields: Fields<'_>, report: &mut Report<'_>) {
    let is_unknown = |entry: &&Entry| entry.key != "type" && !HYPERBAND_KEYS.contains(&entry.key.as_str());
    for entry in fields.entries().iter().filter(is_unknown) {
        let message = format!("unknown key `{}` in `early_terminate`", entry.key);
        match near_miss(&entry.key, HYPERBAND_KEYS) {
            Some(near) => report.add(entry.key_place, message, format!("did you mean `{near}`?")),
            None => {
                let help = format!("the keys of hyperband are: {}", HYPERBAND_KEYS.join(", "));
                report.warn(entry.key_place, format!("{message}: ignored, as by W&B"), help);
            }
        }
    }
}

/// Warns about `max_iter` without `s`. W&B accepts the file and runs the sweep but stops no run, because its deciding
/// function raises `KeyError` (`hyperband_stop_runs` in `sweeps` 0.3.0; the schema demands `min_iter` or both of the
/// others).
fn stops_nothing(fields: Fields<'_>, last: &Entry, report: &mut Report<'_>) {
    let length = fields.integer("max_iter", 1..=LAST, report);
    let first = if fields.has("min_iter") { fields.integer("min_iter", 1..=LAST, report) } else { None };
    eta(fields, "eta", ETA, report);
    strict(fields, report);
    let add = format!("add `s:`, the number of bands below {}", length.unwrap_or(LAST));
    let help = match first {
        Some(first) => format!("delete it to compare trials from `min_iter: {first}` on, or {add}"),
        None => format!("{add}, or write `min_iter:`, the first band, in its place"),
    };
    let message = "`max_iter` needs `s`: without it no trial is stopped early, as by W&B";
    report.warn(last.key_place, message, help);
}

fn only<'n>(node: &'n Node, what: &str, keys: &[&str], report: &mut Report<'_>) -> Option<Fields<'n>> {
    Fields::known(node, what, &[&["type"], keys].concat(), report)
}

/// Reads the bands and eta of hyperband. `default` is the first band if the file names none.
fn bands(fields: Fields<'_>, default: Option<i64>, report: &mut Report<'_>) -> Option<(Vec<u64>, f64)> {
    let eta = eta(fields, "eta", ETA, report);
    let first = fields.has("min_iter").then(|| fields.integer("min_iter", 1..=LAST, report));
    let last = fields.has("max_iter").then(|| fields.integer("max_iter", 1..=LAST, report));
    let brackets = fields.has("s").then(|| brackets(fields, report));
    let bands = match (last, brackets, first.or(default.map(Some))) {
        (Some(last), Some(brackets), _) => {
            if let Some(node) = fields.get("min_iter") {
                let message = "`min_iter` has no effect: `max_iter` and `s` set the bands";
                report.warn(node.place, message, "delete it, or the other two");
            }
            bands_to(fields, last?, brackets?, eta?, report)
        }
        (Some(_), None, _) => {
            let help = "add `s:`, the number of bands down from it, or write `min_iter:` instead";
            report.add(fields.place(), "`max_iter` needs `s`", help);
            None
        }
        (None, brackets, Some(first)) => {
            if let (Some(_), Some(node)) = (brackets, fields.get("s")) {
                report.warn(node.place, "`s` has no effect without `max_iter`", "delete it, or add `max_iter:`");
            }
            bands_from(fields, first?, eta?, report)
        }
        (None, _, None) => {
            let help = "add for example `min_iter: 3`, the first report after which trials are compared";
            report.add(fields.place(), "`early_terminate` has neither `min_iter` nor `max_iter` and `s`", help);
            None
        }
    };
    Some((bands?, eta?))
}

fn bands_to(fields: Fields<'_>, last: i64, brackets: u64, eta: f64, report: &mut Report<'_>) -> Option<Vec<u64>> {
    let bands = hyperband::bands_to(last as f64, brackets, eta);
    let Some(bands) = bands else {
        let help = "give a larger `eta`, such as 3, or a smaller `s`";
        report.add(fields.place(), format!("`early_terminate` has more than {MOST_RUNGS} bands"), help);
        return None;
    };
    if bands.is_empty() {
        let message = format!("`early_terminate` has no band: {last} / {eta} is less than 1");
        report.add(fields.place(), message, "give a larger `max_iter` or a smaller `eta`");
        return None;
    }
    if let (true, Some(node)) = ((bands.len() as u64) < brackets, fields.get("s")) {
        let all: Vec<String> = bands.iter().map(u64::to_string).collect();
        let message = format!("`s` is {brackets}, and there are {}: {}", counted(bands.len(), "band"), all.join(", "));
        report.warn(node.place, message, format!("write `s: {}`, or a larger `max_iter`", bands.len()));
    }
    Some(bands)
}

fn bands_from(fields: Fields<'_>, first: i64, eta: f64, report: &mut Report<'_>) -> Option<Vec<u64>> {
    // W&B computes 100 bands. With real numbers the last ones may be infinite, which it cannot round.
    let is_real = ["min_iter", "eta"].iter().any(|key| match fields.get(key).map(|node| &node.kind) {
        Some(Kind::Scalar(Scalar::Number(number))) => number.is_f64(),
        Some(Kind::Scalar(_) | Kind::List(_) | Kind::Mapping(_)) | None => false,
    });
    let last = (0..99).fold(first as f64, |band, _| band * eta);
    if is_real && !last.is_finite() {
        let place = fields.get("eta").map_or(fields.place(), |node| node.place);
        report.add(place, format!("`eta` is too large: {eta}"), "write a smaller number, for example 3");
        return None;
    }
    Some(hyperband::bands_from(first.unsigned_abs(), eta))
}

/// Reads `s` as Python's `range` takes it: written as a whole number. Below 1 there is no band.
fn brackets(fields: Fields<'_>, report: &mut Report<'_>) -> Option<u64> {
    let brackets = fields.plain_integer("s", report)?;
    if let (true, Some(node)) = (brackets < 1, fields.get("s")) {
        report.add(node.place, format!("`s` is out of range: {brackets}"), "write the number of bands, 1 or more");
    }
    u64::try_from(brackets).ok().filter(|brackets| *brackets > 0)
}

fn eta(fields: Fields<'_>, key: &str, default: f64, report: &mut Report<'_>) -> Option<f64> {
    let Some(node) = fields.get(key) else { return Some(default) };
    let eta = fields.figure(key, report)?;
    if eta <= 1.0 {
        let help = "write a number above 1: of that many trials one goes on";
        report.add(node.place, format!("`{key}` is out of range: {eta}"), help);
        return None;
    }
    Some(eta)
}

fn strict(fields: Fields<'_>, report: &mut Report<'_>) -> Option<bool> {
    fields.get("strict").map_or(Some(true), |node| boolean(node, "strict", report))
}

/// Returns which of two names with the same meaning the file uses.
fn either(fields: Fields<'_>, names: [&'static str; 2], report: &mut Report<'_>) -> &'static str {
    let [name, other] = names;
    if let (true, Some(entry)) = (fields.has(name), fields.entry(other)) {
        report.add(entry.key_place, format!("`{other}` means the same as `{name}`"), "keep one of the two");
    }
    if fields.has(other) { other } else { name }
}

fn whole(
    fields: Fields<'_>,
    key: &str,
    default: i64,
    range: std::ops::RangeInclusive<i64>,
    report: &mut Report<'_>,
) -> Option<u64> {
    let value = if fields.has(key) { fields.integer(key, range, report)? } else { default };
    u64::try_from(value).ok()
}

fn read_asha(fields: Fields<'_>, report: &mut Report<'_>) -> Option<Rule> {
    let (first, last) =
        (either(fields, ["grace_period", "min_iter"], report), either(fields, ["max_t", "max_iter"], report));
    let key = either(fields, ["reduction_factor", "eta"], report);
    let eta = eta(fields, key, ASHA_ETA, report);
    fields.integer("brackets", 1..=1, report);
    let from = whole(fields, first, ASHA_FROM, 1..=LAST, report);
    let to = whole(fields, last, ASHA_TO, 1..=LAST, report);
    let (from, to, eta) = (from?, to?, eta?);
    if from > to {
        let place = fields.get(first).map_or(fields.place(), |node| node.place);
        let message = format!("`{first}` {from} is more than `{last}` {to}: there is no rung");
        report.add(place, message, format!("write a larger `{last}`"));
        return None;
    }
    let rungs = asha(from, to, eta);
    if rungs.is_none() {
        let help = format!("give a larger `{key}`, such as 4");
        report.add(fields.place(), format!("`early_terminate` has more than {MOST_RUNGS} rungs"), help);
    }
    Some(Rule::Asha { rungs: rungs?, eta })
}

fn read_median(fields: Fields<'_>, report: &mut Report<'_>) -> Option<Rule> {
    let key = either(fields, ["grace_period", "min_iter"], report);
    let first = whole(fields, key, MEDIAN_FROM, 1..=LAST, report);
    let interval = fields.has("interval").then(|| whole(fields, "interval", 1, 1..=LAST, report));
    let least = whole(fields, "min_samples_required", MEDIAN_LEAST, 1..=1_000_000, report);
    let interval = match interval {
        Some(interval) => Some(interval?),
        None => None,
    };
    Some(Rule::Median { rungs: median(first?, interval), least: usize::try_from(least?).ok()? })
}

pub(crate) fn schema() -> Value {
    let choice = |name: &str, keys: &[&str], needs: Value, description: &str| {
        let properties: Map<String, Value> =
            keys.iter().map(|key| ((*key).to_owned(), key_schema(key, name))).collect();
        let mut schema = json!({
            "type": "object",
            "description": description,
            "required": ["type"],
            "properties": properties,
            "additionalProperties": name == "hyperband",
        });
        schema["properties"]["type"] = json!({"const": name});
        schema["anyOf"] = needs;
        schema
    };
    let bands = json!([{"required": ["min_iter"]}, {"required": ["max_iter"]}]);
    let any = json!([{}]);
    json!({
        "description": "When a trial is stopped before its end.",
        "anyOf": [
            {"type": "null"},
            choice("hyperband", &HYPERBAND_KEYS, bands, "W&B's rule: the best 1/eta of the trials at a band go on."),
            choice("asha", &ASHA_KEYS, any.clone(), "Ray's asynchronous successive halving."),
            choice("median", &MEDIAN_KEYS, any.clone(), "The best value so far against the median of the others' running means."),
            choice("interruption", &INTERRUPTION_KEYS, any, "As hyperband, but only trials that are interrupted are judged."),
        ],
    })
}

fn key_schema(key: &str, name: &str) -> Value {
    let count = |description: &str| json!({"type": "integer", "minimum": 1, "description": description});
    let first = "The first rung, in reports unless `rungs_by` says otherwise.";
    match key {
        "min_iter" | "grace_period" => count(first),
        "max_iter" if name == "asha" => count("No rung is beyond it."),
        "max_t" => count("No rung is beyond it."),
        "max_iter" => count("Bands are at max_iter / eta, max_iter / eta², …"),
        "s" => count("How many bands there are below max_iter."),
        "strict" => json!({
            "type": "boolean",
            "default": true,
            "description": "Compares the value at the band instead of the best value so far.",
        }),
        "brackets" => json!({"const": 1}),
        "interval" => count("Reports between two rungs. Without it each rung is 1.5 times the one before."),
        "min_samples_required" => count("The fewest other trials that must have reached a rung. 3 unless you say so."),
        _ => {
            json!({"type": "number", "exclusiveMinimum": 1, "description": "One of so many trials goes on at each rung."})
        }
    }
}
