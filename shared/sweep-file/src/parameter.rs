//! One entry of `parameters`: which distribution it means, as W&B infers it.

use serde_json::Value;
use spotsweep_protocol::python::display;
use spotsweep_protocol::words::counted;

use super::distribution::{Curve, Distribution, SMALLEST_PROBABILITY, Step};
use super::fields::{Fields, mismatch};
use super::node::{to_wandb_json, warn_about_list, warn_about_value};
use super::problem::{Report, nearest};
use super::scalar::Scalar;
use super::tree::{Entry, Kind, Node};

/// A named distribution with its keys: those that it needs, then those that it may have.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    pub(crate) name: &'static str,
    pub(crate) needs: &'static [&'static str],
    pub(crate) may_have: &'static [&'static str],
    /// Whether the keys alone imply the distribution, so that `distribution` may be left out.
    pub(crate) is_inferred: bool,
    pub(crate) doc: &'static str,
}

const fn form(
    name: &'static str,
    needs: &'static [&'static str],
    may_have: &'static [&'static str],
    doc: &'static str,
) -> Form {
    Form { name, needs, may_have, is_inferred: false, doc }
}

const fn inferred(form: Form) -> Form {
    Form { is_inferred: true, ..form }
}

/// Every distribution. Parsing, messages and the JSON Schema all read this table.
pub(crate) const FORMS: [Form; 18] = [
    inferred(form("constant", &["value"], &[], "One value for all trials.")),
    inferred(form("categorical", &["values"], &[], "One of the values, each as likely as the others.")),
    inferred(form(
        "categorical_w_probabilities",
        &["values", "probabilities"],
        &[],
        "One of the values, by probabilities that add up to 1.",
    )),
    inferred(form("int_uniform", &["min", "max"], &[], "A whole number from min to max.")),
    inferred(form("uniform", &["min", "max"], &[], "A real number from min to max; inferred if one of them is.")),
    form(
        "q_uniform",
        &["min", "max"],
        &["q"],
        "A multiple of q (default 1) from min to max; in a grid min, min + q, … below max.",
    ),
    form("log_uniform_values", &["min", "max"], &[], "A real number whose logarithm is uniform."),
    form("inv_log_uniform_values", &["min", "max"], &[], "A real number whose inverse has a uniform logarithm."),
    form(
        "q_log_uniform_values",
        &["min", "max"],
        &["q"],
        "As log_uniform_values, rounded to multiples of q (default 1).",
    ),
    form("log_uniform", &["min", "max"], &[], "Deprecated: as log_uniform_values, with exponents of e as min and max."),
    form("inv_log_uniform", &["min", "max"], &[], "Deprecated: as log_uniform, from e^-max to e^-min."),
    form(
        "q_log_uniform",
        &["min", "max"],
        &["q"],
        "Deprecated: as log_uniform, rounded to multiples of q (default 1).",
    ),
    form("normal", &[], &["mu", "sigma"], "Normal with mean mu (default 0) and standard deviation sigma (default 1)."),
    form("q_normal", &[], &["mu", "sigma", "q"], "As normal, rounded to multiples of q (default 1)."),
    form("log_normal", &[], &["mu", "sigma"], "The logarithm is normal with mu (default 0) and sigma (default 1)."),
    form("q_log_normal", &[], &["mu", "sigma", "q"], "As log_normal, rounded to multiples of q (default 1)."),
    form("beta", &[], &["a", "b"], "Beta distribution with a and b (default 1)."),
    form("q_beta", &[], &["a", "b", "q"], "As beta, rounded to multiples of q (default 1)."),
];

/// All keys that a parameter may have, whatever its distribution.
const KEYS: [&str; 13] = [
    "distribution",
    "value",
    "values",
    "probabilities",
    "min",
    "max",
    "q",
    "mu",
    "sigma",
    "a",
    "b",
    "parameters",
    "when",
];

/// How far the sum of probabilities may be from 1: W&B's `numpy.isclose`, which accepts 0.33333 three times.
const SUM_TOLERANCE: f64 = 1.001e-5;

/// Reads the distribution of one parameter, which is not a group of nested ones.
pub(crate) fn read(entry: &Entry, report: &mut Report<'_>) -> Option<Distribution> {
    let name = &entry.key;
    if !matches!(entry.value.kind, Kind::Mapping(_)) {
        not_a_mapping(entry, report);
        return None;
    }
    let fields = Fields::known(&entry.value, &format!("parameter `{name}`"), &KEYS, report)?;
    let form = form_of(name, fields, report)?;
    let allowed = |key: &str| {
        ["distribution", "when"].contains(&key) || form.needs.contains(&key) || form.may_have.contains(&key)
    };
    for stray in fields.entries().iter().filter(|entry| KEYS.contains(&entry.key.as_str()) && !allowed(&entry.key)) {
        let takes: Vec<&str> = form.needs.iter().chain(form.may_have).copied().collect();
        let message = format!("`{}` does not go with the {} distribution of `{name}`", stray.key, form.name);
        report.add(
            stray.key_place,
            message,
            format!("it takes {}; delete the line or change `distribution`", takes.join(", ")),
        );
    }
    for missing in form.needs.iter().filter(|key| !fields.has(key)) {
        let message = format!("parameter `{name}` has no `{missing}`, and {} needs it", form.name);
        report.add(entry.key_place, message, format!("add `{missing}:`"));
    }
    let distribution = build(form.name, name, fields, report)?;
    check_reach(&distribution, entry, report);
    Some(distribution)
}

fn not_a_mapping(entry: &Entry, report: &mut Report<'_>) {
    let Entry { key: name, value: node, .. } = entry;
    let help = match (node.with_space(), &node.kind) {
        (Some(meant), _) => format!("write `{name}: {{{meant}}}`, with a space after the colon"),
        (None, Kind::List(_)) => format!("to try each of these, write `{name}: {{values: [...]}}`"),
        (None, Kind::Scalar(_) | Kind::Mapping(_)) => format!("to pass one value on, write `{name}: {{value: ...}}`"),
    };
    report.add(node.place, format!("parameter `{name}` must be a mapping, and this is {}", node.describe()), help);
}

/// Returns the form with the name in `distribution`, or else the one that the keys imply.
fn form_of(name: &str, fields: Fields<'_>, report: &mut Report<'_>) -> Option<&'static Form> {
    if let Some(node) = fields.get("distribution") {
        let written = fields.text("distribution", report)?;
        let found = FORMS.iter().find(|form| form.name == written);
        if found.is_none() {
            unknown_form(name, written, node, report);
        }
        return found;
    }
    let number = |key: &str| match &fields.get(key)?.kind {
        Kind::Scalar(Scalar::Number(number)) => Some(number.is_f64()),
        Kind::Scalar(_) | Kind::List(_) | Kind::Mapping(_) => None,
    };
    let inferred = if fields.has("value") {
        "constant"
    } else if fields.has("probabilities") {
        "categorical_w_probabilities"
    } else if fields.has("values") {
        "categorical"
    } else if number("min") == Some(true) || number("max") == Some(true) {
        "uniform"
    } else if fields.has("min") || fields.has("max") {
        "int_uniform"
    } else {
        // A misspelt key is the reason, and it has been reported already.
        if fields.entries().iter().any(|entry| !KEYS.contains(&entry.key.as_str())) {
            return None;
        }
        let help = "add `value`, `values`, `min` and `max`, or a `distribution`";
        report.add(fields.place(), format!("parameter `{name}` says nothing about its values"), help);
        return None;
    };
    FORMS.iter().find(|form| form.name == inferred)
}

fn unknown_form(name: &str, written: &str, node: &Node, report: &mut Report<'_>) {
    let help = match nearest(written, FORMS.iter().map(|form| form.name)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("choose one of {}", FORMS.map(|form| form.name).join(", ")),
    };
    report.add(node.place, format!("parameter `{name}` has the unknown distribution `{written}`"), help);
}

fn build(form: &str, name: &str, fields: Fields<'_>, report: &mut Report<'_>) -> Option<Distribution> {
    match form {
        "constant" => {
            let node = fields.get("value")?;
            warn_about_value(node, report);
            warn_about_list(name, node, report);
            return Some(Distribution::Constant(to_wandb_json(node)));
        }
        "categorical" => return Some(Distribution::Choice { values: values(fields, report)?, cumulated: None }),
        "categorical_w_probabilities" => return weighted(name, fields, report),
        "int_uniform" => {
            let (min, max) = (fields.plain_integer("min", report), fields.plain_integer("max", report));
            return ordered(name, min?, max?, fields, report).map(|(min, max)| Distribution::Integers { min, max });
        }
        _ => {}
    }
    let (smooth, step) = match form.strip_prefix("q_") {
        Some(smooth) => (smooth, Some(step(fields, report))),
        None => (form, None),
    };
    let curve = match smooth {
        "uniform" => uniform(name, fields, report),
        "log_uniform_values" | "inv_log_uniform_values" => log_uniform(name, fields, report),
        "log_uniform" | "inv_log_uniform" => exponential(form, name, fields, report),
        "normal" => bell(fields, report).map(|(mu, sigma)| Curve::Normal { mu, sigma }),
        "log_normal" => bell(fields, report).map(|(mu, sigma)| Curve::LogNormal { mu, sigma }),
        "beta" => beta(fields, report),
        // Not in the table of forms.
        _ => None,
    };
    let step = match step {
        Some(step) => Some(step?),
        None => None,
    };
    Some(Distribution::Real { curve: curve?, step })
}

fn values(fields: Fields<'_>, report: &mut Report<'_>) -> Option<Vec<Value>> {
    let node = fields.get("values")?;
    match &node.kind {
        Kind::List(nodes) if !nodes.is_empty() => {
            warn_about_value(node, report);
            Some(nodes.iter().map(to_wandb_json).collect())
        }
        Kind::List(_) => {
            report.add(node.place, "`values` is empty", "list at least one value");
            None
        }
        Kind::Scalar(_) | Kind::Mapping(_) => {
            mismatch(node, "values", "a list", report);
            None
        }
    }
}

fn weighted(name: &str, fields: Fields<'_>, report: &mut Report<'_>) -> Option<Distribution> {
    let values = values(fields, report);
    let node = fields.get("probabilities")?;
    let Kind::List(nodes) = &node.kind else {
        mismatch(node, "probabilities", "a list of numbers", report);
        return None;
    };
    let mut cumulated = Vec::new();
    let mut sum = 0.0;
    for node in nodes {
        match &node.kind {
            Kind::Scalar(Scalar::Number(number)) if number.as_f64().is_some_and(|value| value >= 0.0) => {
                sum += number.as_f64().unwrap_or(0.0);
                cumulated.push(sum);
            }
            Kind::Scalar(_) | Kind::List(_) | Kind::Mapping(_) => {
                mismatch(node, "probabilities", "numbers of 0 or more", report);
                return None;
            }
        }
    }
    let values = values?;
    if values.len() != cumulated.len() {
        let message = format!(
            "parameter `{name}` has {} and {}",
            counted(values.len(), "value"),
            counted(cumulated.len(), "probability")
        );
        report.add(node.place, message, "give one probability for each value");
        return None;
    }
    if (sum - 1.0).abs() > SUM_TOLERANCE {
        report.add(node.place, format!("the probabilities of `{name}` add up to {sum}"), "make them add up to 1");
        return None;
    }
    Some(Distribution::Choice { values, cumulated: Some(cumulated) })
}

/// Returns both limits, if the first is below the second.
fn ordered<N: PartialOrd + std::fmt::Display>(
    name: &str,
    min: N,
    max: N,
    fields: Fields<'_>,
    report: &mut Report<'_>,
) -> Option<(N, N)> {
    if min < max {
        return Some((min, max));
    }
    let place = fields.entry("min").map_or(fields.place(), |entry| entry.value.place);
    let help = if min == max { "make min smaller than max, or write `value:` for a constant" } else { "swap them" };
    report.add(place, format!("parameter `{name}`: min {min} is not less than max {max}"), help);
    None
}

fn limits(name: &str, fields: Fields<'_>, report: &mut Report<'_>) -> Option<(f64, f64)> {
    let (min, max) = (fields.number("min", report), fields.number("max", report));
    ordered(name, min?, max?, fields, report)
}

fn uniform(name: &str, fields: Fields<'_>, report: &mut Report<'_>) -> Option<Curve> {
    let (min, max) = limits(name, fields, report)?;
    if !(max - min).is_finite() {
        report.add(
            fields.place(),
            format!("parameter `{name}`: max - min is too large for a number"),
            "narrow the range",
        );
        return None;
    }
    Some(Curve::Uniform { min, max })
}

fn log_uniform(name: &str, fields: Fields<'_>, report: &mut Report<'_>) -> Option<Curve> {
    let (min, max) = limits(name, fields, report)?;
    if let (false, Some(node)) = (min > 0.0, fields.get("min")) {
        let help = "write the smallest value itself, not its exponent: for example 1e-4";
        report.add(node.place, format!("parameter `{name}`: min must be more than 0 on a logarithmic scale"), help);
        return None;
    }
    Some(Curve::LogUniform { min, max })
}

/// Reads W&B's older forms: min and max are exponents of e, and the inverse form negates them.
fn exponential(form: &str, name: &str, fields: Fields<'_>, report: &mut Report<'_>) -> Option<Curve> {
    let (min, max) = limits(name, fields, report)?;
    let (first, last) = if form == "inv_log_uniform" { (-max, -min) } else { (min, max) };
    let (least, greatest) = (first.exp(), last.exp());
    let place = fields.get("distribution").map_or(fields.place(), |node| node.place);
    let new = format!("{form}_values");
    if !(least.is_normal() && greatest.is_finite()) {
        let message =
            format!("parameter `{name}`: the limits of {form} are e^{first} and e^{last}, beyond all numbers");
        report.add(place, message, format!("write {new}, and the limits themselves as min and max"));
        return None;
    }
    let short = |value: f64| display(&format!("{value:.5e}").parse::<f64>().unwrap_or(value).into());
    let message = format!(
        "{form} takes exponents of e, and W&B has deprecated it: `{name}` is drawn from {} to {}",
        short(least),
        short(greatest)
    );
    report.warn(place, message, format!("write {new}, and the limits themselves as min and max"));
    Some(Curve::LogUniform { min: least, max: greatest })
}

fn bell(fields: Fields<'_>, report: &mut Report<'_>) -> Option<(f64, f64)> {
    let mu = optional(fields, "mu", 0.0, report);
    Some((mu?, positive(fields, "sigma", report)?))
}

fn beta(fields: Fields<'_>, report: &mut Report<'_>) -> Option<Curve> {
    let (a, b) = (positive(fields, "a", report), positive(fields, "b", report));
    let (a, b) = (a?, b?);
    // The incomplete beta function is computed in bounded time, which is exact enough in this range only.
    let range = 1e-3..=1e4;
    for (key, value) in [("a", a), ("b", b)] {
        if let (false, Some(node)) = (range.contains(&value), fields.get(key)) {
            report.add(node.place, format!("`{key}` is out of range: {value}"), "write 0.001 to 10000");
            return None;
        }
    }
    Some(Curve::Beta { a, b })
}

fn optional(fields: Fields<'_>, key: &str, default: f64, report: &mut Report<'_>) -> Option<f64> {
    if fields.has(key) { fields.number(key, report) } else { Some(default) }
}

/// Reads a number above 0 with default 1: sigma, q, a or b.
fn positive(fields: Fields<'_>, key: &str, report: &mut Report<'_>) -> Option<f64> {
    let value = optional(fields, key, 1.0, report)?;
    if let (false, Some(node)) = (value > 0.0, fields.get(key)) {
        let help = if key == "sigma" {
            "write a positive number, or `value:` for a constant"
        } else {
            "write a positive number"
        };
        report.add(node.place, format!("`{key}` must be more than 0"), help);
        return None;
    }
    Some(value)
}

fn step(fields: Fields<'_>, report: &mut Report<'_>) -> Option<Step> {
    let size = positive(fields, "q", report)?;
    // W&B's default is 1.0, a real number, which makes the values real numbers too.
    let whole = |key| matches!(fields.get(key), Some(Node { kind: Kind::Scalar(Scalar::Number(number)), .. }) if !number.is_f64());
    Some(Step { size, whole: whole("q"), whole_grid: whole("q") && whole("min") && whole("max") })
}

/// Checks that every value that can be drawn is finite, and whole where whole numbers are promised.
fn check_reach(distribution: &Distribution, entry: &Entry, report: &mut Report<'_>) {
    let Distribution::Real { curve, step } = distribution else { return };
    let ends = [SMALLEST_PROBABILITY, 1.0 - SMALLEST_PROBABILITY].map(|probability| curve.quantile(probability));
    let limit = if step.is_some_and(|step| step.whole) { (1_u64 << 53) as f64 } else { f64::MAX };
    let steps = ends.map(|end| step.map_or(0.0, |step| end / step.size));
    if ends.iter().chain(&steps).any(|end| !end.is_finite() || end.abs() > limit) {
        let message = format!("parameter `{}` can take values too large for a number", entry.key);
        report.add(entry.key_place, message, "narrow its range: smaller mu, sigma, min or max");
    }
}
