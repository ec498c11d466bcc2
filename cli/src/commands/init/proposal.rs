//! Proposes a search for the options of a script. A person is to look at it: the ranges lie around the defaults.

use spotsweep_protocol::visible::escaped;

use super::help::{Script, ScriptOption};

/// Parts of the names of options that change how well a model learns. Others, such as epochs, workers and seeds, are
/// proposed as comments.
const SEARCHED: [&str; 26] = [
    "activation",
    "alpha",
    "batch",
    "beta",
    "channels",
    "clip",
    "decay",
    "depth",
    "dim",
    "dropout",
    "embed",
    "gamma",
    "heads",
    "hidden",
    "layers",
    "leaves",
    "lr",
    "margin",
    "momentum",
    "optim",
    "rank",
    "rate",
    "schedul",
    "smoothing",
    "temperature",
    "width",
];
/// Parts of the names of metrics for which less is better.
const LESS_IS_BETTER: [&str; 9] = ["err", "loss", "mae", "mse", "nll", "perplexity", "ppl", "rmse", "wer"];
/// Parts of the names of metrics of data that the training does not learn from.
const OF_OTHER_DATA: [&str; 4] = ["val", "eval", "test", "dev"];

/// A sweep file for a script.
#[derive(Debug)]
pub(super) struct Proposal {
    pub(super) text: String,
    /// The options that the script needs, and that have no value yet.
    pub(super) missing: Vec<String>,
}

/// Proposes a sweep file for the script that `command` runs, with a metric of those that `try` has found. `None` if no
/// option can be searched.
pub(super) fn propose(command: &[String], script: &Script, found: &[String]) -> Option<Proposal> {
    let (mut searched, mut left, mut missing) = (String::new(), String::new(), Vec::new());
    for option in &script.options {
        let comment = comment(option);
        match search(option) {
            Some(search) => searched += &format!("{comment}  {}: {search}\n", scalar(&option.name)),
            None => left += &format!("{comment}  # {}: {}\n", scalar(&option.name), constant(option)),
        }
        if option.is_required {
            missing.push(format!("--{}", option.name));
        }
    }
    if searched.is_empty() {
        return None;
    }
    let words: Vec<String> = command.iter().map(|word| scalar(word)).collect();
    let positional = match script.has_positional {
        true => "# The script also takes arguments without a name: write them before \"${args}\".\n",
        false => "",
    };
    let metric = match metric(found) {
        Some((name, goal)) => format!("metric: {{name: {}, goal: {goal}}}    # is that goal right?\n", scalar(name)),
        None => "# metric: {name: val_accuracy, goal: maximize}    # `spotsweep try` lists the metrics that it finds\n"
            .into(),
    };
    let text = format!(
        "# A search over the options of {}. Look at each range: it lies around the option's default.\n\
         # Reference: docs/sweep-file.md. Check: spotsweep validate.\n\
         method: random    # grid tries all values; bayes learns from earlier trials, and needs a metric\n\
         run_cap: 20    # the number of trials\n\
         {metric}\
         {positional}\
         spotsweep:\n  command: [{}, \"${{args}}\"]\n  \
         code: .    # `spotsweep submit` sends this folder\n  \
         # setup: pip install -r requirements.txt    # before the command, in each attempt\n\
         parameters:\n{searched}{}{left}",
        command.join(" "),
        words.join(", "),
        if left.is_empty() { "" } else { "  # The script's other options:\n" },
    );
    Some(Proposal { text, missing })
}

/// The metric to rank by, and its goal.
fn metric(found: &[String]) -> Option<(&String, &'static str)> {
    let has = |name: &str, parts: &[&str]| parts.iter().any(|part| name.to_lowercase().contains(part));
    let name = found.iter().find(|name| has(name, &OF_OTHER_DATA)).or(found.first())?;
    Some((name, if has(name, &LESS_IS_BETTER) { "minimize" } else { "maximize" }))
}

fn comment(option: &ScriptOption) -> String {
    let default = option.default.as_ref().map(|default| format!("default {default}"));
    let needed = option.is_required.then(|| "the script needs it".to_owned());
    let help = option.help.trim_end_matches('.').to_owned();
    let parts: Vec<String> = [Some(help), default, needed].into_iter().flatten().collect();
    let text = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
    if text.is_empty() { text } else { format!("  # {}\n", escaped(&text)) }
}

/// What to write for an option that is not searched.
fn constant(option: &ScriptOption) -> String {
    match (&option.default, option.is_flag) {
        (_, true) => "write the flag into `command`".to_owned(),
        (Some(default), false) => format!("{{value: {}}}", scalar(default)),
        (None, false) => "{value: …}".to_owned(),
    }
}

/// The search for an option: its choices, or a range around its default.
fn search(option: &ScriptOption) -> Option<String> {
    let name = option.name.to_lowercase();
    if option.is_flag || option.is_required || !SEARCHED.iter().any(|part| name.contains(part)) {
        return None;
    }
    if !option.choices.is_empty() {
        let choices: Vec<String> = option.choices.iter().map(|choice| scalar(choice)).collect();
        return Some(format!("{{values: [{}]}}", choices.join(", ")));
    }
    let default = option.default.as_deref()?;
    match (default.parse::<u64>(), default.parse::<f64>()) {
        (Ok(0), _) => None,
        (Ok(1), _) => Some("{values: [1, 2, 4]}".to_owned()),
        (Ok(count), _) => Some(format!("{{values: [{}, {count}, {}]}}", count / 2, count.saturating_mul(2))),
        (Err(_), Ok(number)) if number.is_finite() && number >= 0.0 => Some(range(&name, number)),
        _no_number => None,
    }
}

/// A range around a number. Small ones are searched by orders of magnitude, and so are learning rates.
fn range(name: &str, default: f64) -> String {
    let is_rate = ["lr", "learning", "decay"].iter().any(|part| name.contains(part));
    match default {
        0.0 if is_rate => "{values: [0.0, 0.0001, 0.01]}".to_owned(),
        0.0 => "{min: 0.0, max: 0.3}".to_owned(),
        small if small < 0.1 || (is_rate && small < 0.5) => {
            format!(
                "{{distribution: log_uniform_values, min: {}, max: {}}}",
                figure(small / 10.0),
                figure(small * 10.0)
            )
        }
        share if share < 0.5 => format!("{{min: {}, max: {}}}", figure(share / 2.0), figure(share * 2.0)),
        near_one if near_one < 1.0 => {
            let rest = 1.0 - near_one;
            format!("{{min: {}, max: {}}}", figure((1.0 - rest * 5.0).max(0.0)), figure(1.0 - rest / 5.0))
        }
        large => format!("{{min: {}, max: {}}}", figure(large / 2.0), figure(large * 2.0)),
    }
}

/// A number with three significant digits, without an exponent, which PyYAML would take for a text.
fn figure(number: f64) -> String {
    let rounded: f64 = format!("{number:.2e}").parse().unwrap_or(number);
    let text = rounded.to_string();
    if text.contains('.') { text } else { text + ".0" }
}

/// A text as YAML reads it back.
fn scalar(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let is_word = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/') && text.chars().all(is_plain);
    let is_other =
        ["true", "false", "yes", "no", "on", "off", "null", "y", "n"].contains(&text.to_lowercase().as_str());
    let is_number = text.parse::<f64>().is_ok() && text.starts_with(|c: char| c.is_ascii_digit());
    if (is_word && !is_other) || is_number { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use spotsweep_sweep_file::{Defaults, parse_with};

    use super::*;
    use crate::commands::init::help::read;

    fn proposed(help: &str, found: &[&str]) -> Proposal {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        propose(&words(&["python", "train.py"]), &read(help), &words(found)).unwrap()
    }

    #[test]
    fn what_is_proposed_is_a_sweep_file() {
        for help in [
            include_str!("help/argparse.txt"),
            include_str!("help/transformers.txt"),
            include_str!("help/click.txt"),
            include_str!("help/typer.txt"),
            include_str!("help/jsonargparse.txt"),
        ] {
            let proposal = proposed(help, &["train/loss", "val/loss"]);
            let parsed = parse_with("sweep.yaml", "v", proposal.text.as_bytes(), &Defaults::default());
            let file = parsed.unwrap_or_else(|rejected| panic!("{}{:?}", proposal.text, rejected.problems));
            assert_eq!(file.trial_count(), 20, "{}", proposal.text);
            assert_eq!(file.warnings.len(), 0, "{:?}", file.warnings);
            let metric = file.metric.unwrap();
            assert_eq!((&*metric.name, metric.goal), ("val/loss", spotsweep_sweep_file::Goal::Minimize));
        }
    }

    #[test]
    fn ranges_lie_around_the_defaults() {
        for (name, default, expected) in [
            ("lr", 0.2, "{distribution: log_uniform_values, min: 0.02, max: 2.0}"),
            ("weight_decay", 0.0, "{values: [0.0, 0.0001, 0.01]}"),
            ("alpha", 0.001, "{distribution: log_uniform_values, min: 0.0001, max: 0.01}"),
            ("alpha", 5e-6, "{distribution: log_uniform_values, min: 0.0000005, max: 0.00005}"),
            ("alpha", 0.0, "{min: 0.0, max: 0.3}"),
            ("alpha", 0.1, "{min: 0.05, max: 0.2}"),
            ("alpha", 0.9, "{min: 0.5, max: 0.98}"),
            ("alpha", 0.5, "{min: 0.0, max: 0.9}"),
            ("alpha", 2.5, "{min: 1.25, max: 5.0}"),
        ] {
            assert_eq!(range(name, default), expected, "{name} {default}");
        }
    }

    #[test]
    fn what_a_person_must_add_is_named() {
        let argparse = proposed(include_str!("help/argparse.txt"), &[]);
        assert_eq!(argparse.missing, ["--out"]);
        assert!(argparse.text.contains("arguments without a name"), "{}", argparse.text);
        assert!(propose(&[], &read("options:\n  --seed N  (default: 1)\n"), &[]).is_none());
    }

    #[test]
    fn texts_that_yaml_would_read_otherwise_are_quoted() {
        for (text, expected) in
            [("sgd", "sgd"), ("no", "\"no\""), ("0.5", "0.5"), ("a: b", "\"a: b\""), ("-x", "\"-x\""), ("nan", "nan")]
        {
            assert_eq!(scalar(text), expected);
        }
    }
}
