//! Finds the argument that says how long a script trains, and changes it.

use serde_json::{Map, Value};

use super::one_trial::OneTrial;

/// Names of what trainings count.
const STEPS: [&str; 11] = [
    "epoch",
    "step",
    "iter",
    "iteration",
    "round",
    "trial",
    "episode",
    "update",
    "timestep",
    "generation",
    "estimator",
];
/// Words that such a name has besides, if it is the total number: `--num_train_epochs`, `--max-steps`, `n_iter`. Other
/// words make it another number: `--save_steps`, `--warmup-epochs`.
const HOW_MANY: [&str; 11] =
    ["n", "nb", "no", "num", "number", "max", "total", "train", "training", "boost", "boosting"];
/// Seconds that a training needs for all interruptions to happen at their moments.
const WANTED_SECONDS: f64 = 300.0;

/// An argument that says how long a script trains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Steps {
    /// Its name, without hyphens in front of it.
    pub(super) name: String,
    pub(super) value: u64,
    place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// It is a word of the command: `--epochs=3`, or the word after `--epochs`.
    Word(usize),
    /// It is a parameter of the trial.
    Parameter,
    /// It is a default in the script.
    Default,
}

impl Steps {
    /// Finds the argument of `trial`, whose scripts have the text `source`. If there are several, it is the one whose
    /// value is the `last` step that was seen, or the next step, because steps may count from 0.
    pub(super) fn of(trial: &OneTrial, source: &str, last: Option<f64>) -> Option<Self> {
        let found = in_command(&trial.command).chain(in_parameters(&trial.parameters)).chain(in_source(source));
        let found: Vec<Self> = found.filter(|steps| steps.value > 0 && is_how_many(&steps.name)).collect();
        let is_last = |steps: &&Self| last.is_some_and(|last| [last, last + 1.0].contains(&(steps.value as f64)));
        found.iter().find(is_last).or(found.first()).cloned()
    }

    /// So many steps that a training of `seconds` lasts long enough.
    pub(super) fn enough(&self, seconds: f64) -> u64 {
        let times = (WANTED_SECONDS / seconds.max(1.0)).ceil().max(2.0);
        self.value.saturating_mul(times as u64)
    }

    /// The trial with another number of steps.
    pub(super) fn set(&self, trial: &OneTrial, value: u64) -> OneTrial {
        let mut trial = trial.clone();
        match self.place {
            Place::Word(at) => {
                let word = &mut trial.command[at];
                *word = match word.split_once('=') {
                    Some((name, _)) => format!("{name}={value}"),
                    None => value.to_string(),
                };
            }
            Place::Parameter => {
                trial.parameters.insert(self.name.clone(), Value::from(value));
            }
            Place::Default => trial.command.extend([format!("--{}", self.name), value.to_string()]),
        }
        trial
    }

    /// Whether the argument is in the command itself.
    pub(super) fn is_in_command(&self) -> bool {
        self.place != Place::Parameter
    }
}

/// Finds `--epochs 3`, `--epochs=3`, and `epochs=3` as Hydra has it.
fn in_command(command: &[String]) -> impl Iterator<Item = Steps> {
    command.iter().enumerate().filter_map(|(at, word)| {
        let (name, value, at) = match word.split_once('=') {
            Some((name, value)) => (name, value, at),
            None => (word.strip_prefix("--")?, command.get(at + 1)?.as_str(), at + 1),
        };
        let name = name.trim_start_matches(['-', '+']).to_owned();
        Some(Steps { name, value: whole(value)?, place: Place::Word(at) })
    })
}

fn in_parameters(parameters: &Map<String, Value>) -> impl Iterator<Item = Steps> {
    parameters.iter().filter_map(|(name, value)| {
        Some(Steps { name: name.clone(), value: whole(&value.to_string())?, place: Place::Parameter })
    })
}

/// Finds `add_argument("--epochs", type=int, default=30)` and similar calls: a name in quotes, and `default=` in the
/// rest of the same call.
fn in_source(source: &str) -> impl Iterator<Item = Steps> {
    source.match_indices("--").filter_map(|(at, _)| {
        let quote = source[..at].chars().next_back().filter(|c| matches!(c, '"' | '\''))?;
        let (name, rest) = source[at + 2..].split_once(quote)?;
        let (_, default) = rest_of_call(rest).split_once("default=")?;
        let end = default.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '_')).unwrap_or(default.len());
        Some(Steps { name: name.to_owned(), value: whole(&default[..end])?, place: Place::Default })
    })
}

/// The text before the bracket that ends a call.
fn rest_of_call(text: &str) -> &str {
    let mut depth = 0;
    let end = text.char_indices().find(|(_, c)| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth < 0
    });
    &text[..end.map_or(text.len(), |(end, _)| end)]
}

/// Parses `3`, `1_000` or `3.0`.
fn whole(text: &str) -> Option<u64> {
    let text = text.replace('_', "");
    text.strip_suffix(".0").unwrap_or(&text).parse().ok()
}

/// Whether a name is of a total number of steps: `epochs`, `max_steps`, `numEpochs`, `trainer.max_epochs`.
fn is_how_many(name: &str) -> bool {
    let own = name.rsplit('.').next().unwrap_or(name);
    let mut words = String::new();
    for letter in own.chars() {
        if letter.is_ascii_uppercase() {
            words.push('_');
        }
        words.push(letter.to_ascii_lowercase());
    }
    let words: Vec<&str> = words.split(['_', '-']).filter(|word| !word.is_empty()).collect();
    let is_step = |word: &str| {
        let one = word.strip_suffix('s').unwrap_or(word);
        STEPS.contains(&one) || one.strip_prefix('n').is_some_and(|one| STEPS.contains(&one))
    };
    let (steps, others): (Vec<&str>, Vec<&str>) = words.into_iter().partition(|word| is_step(word));
    steps.len() == 1 && others.iter().all(|word| HOW_MANY.contains(word))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn trial(command: &str, parameters: Value) -> OneTrial {
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        let Value::Object(parameters) = parameters else { unreachable!() };
        OneTrial { parameters, ..OneTrial::new(None, &words) }
    }

    #[test]
    fn names_say_how_many_steps_there_are_to_be() {
        for name in [
            "epochs",
            "max_steps",
            "max-iters",
            "num_train_epochs",
            "nEpochs",
            "n_iter",
            "trainer.max_epochs",
            "num_boost_round",
            "iterations",
            "n-trials",
            "total_timesteps",
            "nepochs",
        ] {
            assert!(is_how_many(name), "{name}");
        }
        for name in ["save_steps", "warmup-epochs", "epoch_length", "steps_per_epoch", "batch_size", "n", "max", ""] {
            assert!(!is_how_many(name), "{name}");
        }
    }

    #[test]
    fn the_argument_is_found_and_set() {
        let script =
            "p.add_argument('--epochs', type=int, help=\"(all)\",\n  default=30)\np.add_argument('--lr', default=1)";
        for (command, parameters, source, last, expected) in [
            ("python t.py --epochs 3", json!({}), "", None, Some("python t.py --epochs 9 {}")),
            (
                "python t.py --epochs=3 --save_steps=5",
                json!({}),
                "",
                None,
                Some("python t.py --epochs=9 --save_steps=5 {}"),
            ),
            ("python t.py +trainer.max_epochs=3.0", json!({}), "", None, Some("python t.py +trainer.max_epochs=9 {}")),
            (
                "python t.py --max_steps 3 --epochs 7",
                json!({}),
                "",
                Some(6.0),
                Some("python t.py --max_steps 3 --epochs 9 {}"),
            ),
            (
                "python t.py --max_steps -1 --epochs 7",
                json!({}),
                "",
                None,
                Some("python t.py --max_steps -1 --epochs 9 {}"),
            ),
            (
                "python t.py ${args}",
                json!({"epochs": 5, "lr": 3}),
                script,
                None,
                Some("python t.py ${args} {\"epochs\":9,\"lr\":3}"),
            ),
            ("python t.py", json!({}), script, None, Some("python t.py --epochs 9 {}")),
            ("python t.py --lr 3", json!({}), "p.add_argument('--epochs', type=int)\np.f(default=3)", None, None),
            ("python t.py --epochs", json!({}), "", None, None),
        ] {
            let trial = trial(command, parameters);
            let set = Steps::of(&trial, source, last).map(|steps| steps.set(&trial, 9));
            let shown = set.map(|set| format!("{} {}", set.command.join(" "), Value::Object(set.parameters)));
            assert_eq!(shown.as_deref(), expected, "{command}");
        }
    }

    #[test]
    fn a_training_is_made_long_enough() {
        let steps = |value| Steps { name: "epochs".to_owned(), value, place: Place::Default };
        assert_eq!((steps(30).enough(60.0), steps(3).enough(0.2), steps(30).enough(500.0)), (150, 900, 60));
    }
}
