//! Metrics in lines of text.
//!
//! `name=value` follows Katib's collector (white space around `=` allowed; its default filter in kubeflow/katib
//! `pkg/metricscollector/v1beta1/common/const.go`). Unlike Katib, nobody lists the metrics beforehand, so things that
//! only begin like a number and command-line flags (`--lr=0.1`) are left alone.

use std::collections::HashSet;

use anstream::adapter::strip_str;
use spotsweep_protocol::metric::Source;

use crate::data_set::{self, Sets, fold};
use crate::definitions::Definitions;
use crate::logged::{Logged, Value};
use crate::number::leading;
use crate::table::{Table, is_rule};
use crate::{json_line, python_dict, step, worded};

/// Lightning's number of a version is no metric.
const VERSION: &str = "v_num";
/// Between a name and its value in a sentence.
const VERBS: [&str; 3] = ["is ", "was ", "of "];
/// A line that begins with so many spaces is the rest of a progress bar that was too wide (rich, as Lightning uses it).
const OF_A_BAR: usize = 20;

/// Reads one stream of lines.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    definitions: Definitions,
    /// The metric that the sweep file names.
    named: Option<String>,
    /// The step that a line has last said, for lines that say none.
    step: Option<f64>,
    table: Table,
}

impl Lines {
    /// A stream at its beginning. `named` is the metric that the sweep file names: it is looked for as it is.
    pub fn new(named: Option<String>, definitions: Definitions) -> Self {
        Self { definitions, named, step: None, table: Table::default() }
    }

    /// What one line says; no values for most lines.
    pub fn read(&mut self, line: &str) -> Logged {
        let line = strip_str(line).to_string();
        let defined = self.definitions.find(&line);
        if let Some(found) = json_line::parse(&line, Source::Stated) {
            return with(defined, found);
        }
        let found = match python_dict::parse(&line).filter(|found| !found.values.is_empty()) {
            Some(found) => found,
            None => self.table.read(&line).unwrap_or_else(|| self.text(&line)),
        };
        let mut found = with(defined, found);
        found.step = found.step.or_else(|| step::counted(&line));
        self.step = found.step.or(self.step);
        found.step = self.step;
        found
    }

    fn text(&self, line: &str) -> Logged {
        let mut found = Logged::default();
        // W&B repeats the last values for people.
        if line.starts_with("wandb: ") {
            return found;
        }
        let (is_bar, sets) = (is_progress_bar(line), Sets::of(line));
        for (at, mark) in line.match_indices(['=', ':']) {
            let (left, right) = (&line[..at], &line[at + 1..]);
            let named = self.named.as_deref().and_then(|name| Some((name, before_name(left, name)?)));
            let (name, before) = match named.or_else(|| name_before(left)) {
                Some(found) => found,
                None => continue,
            };
            if step::is_name(name) && step::is_earlier(before) {
                continue;
            }
            let Some(number) = leading(right).filter(|_| !is_share(right)) else { continue };
            // Counts, ports, and numbers of parameters or lines are whole.
            if mark == ":" && named.is_none() && (number.is_whole || !number.value.is_finite()) {
                continue;
            }
            if named.is_none() && number.is_whole && is_argument(before) {
                continue;
            }
            let source = match (is_bar, mark) {
                (true, _) => Source::ProgressBar,
                (false, "=") => Source::Stated,
                (false, _) => Source::Text,
            };
            // `epoch=3/10` is the third.
            let counted = right.split('/').next().filter(|_| step::is_name(name)).and_then(leading);
            self.add(&mut found, &sets, (before, name, counted.unwrap_or(number).value), source);
        }
        let with_sign: HashSet<String> = found.values.iter().map(|value| value.name.clone()).collect();
        for (before, name, value) in worded::values(line) {
            if !with_sign.contains(name) {
                let source = if is_bar { Source::ProgressBar } else { Source::Text };
                self.add(&mut found, &sets, (before, name, value), source);
            }
        }
        self.add_named(line, is_bar, &sets, &mut found);
        found.values.retain(|value| value.name != VERSION && !data_set::LEVELS.contains(&value.name.as_str()));
        found.step = step::take(&mut found.values);
        found
    }

    /// Adds a value that stands after `before` and its name. It may have a second name, by which the sweep file ranks.
    fn add(&self, found: &mut Logged, sets: &Sets, (before, name, value): (&str, &str, f64), source: Source) {
        let set = sets.before(before.len()).filter(|set| !data_set::is_in(name, set));
        let is_less_reliable = set.is_some_and(data_set::is_less_reliable);
        found.add(name, value, if is_less_reliable { Source::OfTraining } else { source });
        let is_named = |named: &&str| set.is_some_and(|set| data_set::is_of(set, name, named));
        if let Some(named) = self.named.as_deref().filter(is_named) {
            found.add(named, value, source);
        }
    }

    /// The named metric may stand before its value without a mark: `val_acc 0.9`, `| val_acc | 0.9 |`, `accuracy is 90%`.
    fn add_named(&self, line: &str, is_bar: bool, sets: &Sets, found: &mut Logged) {
        let Some(name) = self.named.as_deref().filter(|name| found.values.iter().all(|value| value.name != **name))
        else {
            return;
        };
        let is_gap = |c: char| c.is_whitespace() || is_rule(c);
        let is_percent = line.trim_end().ends_with('%');
        let ends = line.char_indices().filter(|(_, c)| is_gap(*c)).map(|(end, _)| end);
        for (left, right) in ends.map(|end| line.split_at(end)) {
            // Where a gap goes on, its beginning was looked at.
            let Some(before) = (!left.ends_with(is_gap)).then(|| before_name(left, name)).flatten() else { continue };
            let after = right.trim_start_matches(is_gap);
            let is_cell = right[..right.len() - after.len()].contains(is_rule);
            let after = VERBS.iter().find_map(|verb| after.strip_prefix(verb)).unwrap_or(after);
            let number = leading(after).filter(|number| is_cell || !number.is_whole || is_percent);
            if let Some(number) = number {
                let source = if is_bar { Source::ProgressBar } else { Source::Text };
                self.add(found, sets, (before, name, number.value), source);
            }
        }
    }
}

/// What the sweep file's own patterns find goes before everything else of that name.
fn with(defined: Vec<Value>, mut found: Logged) -> Logged {
    found.values.retain(|value| defined.iter().all(|defined| defined.name != value.name));
    found.values.extend(defined);
    found
}

/// What is before `name`, where a text ends with exactly this name, or with the same words in capitals or with other
/// marks between them (`Test accuracy` for `test_accuracy`), and it is not a part of a longer word.
fn before_name<'a>(left: &'a str, name: &str) -> Option<&'a str> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '.');
    let left = left.trim_end();
    let mut rest = left.chars();
    let mut is_next = |wanted: char| rest.next_back().is_some_and(|found| fold(found) == fold(wanted));
    if !name.chars().rev().all(&mut is_next) {
        return None;
    }
    let before = rest.as_str();
    (!(name.starts_with(is_part) && before.ends_with(is_part))).then_some(before)
}

/// Whether a name is that of an argument: `Trainer(log_every_n_steps=50)`, and "`max_epochs=200` reached".
fn is_argument(before: &str) -> bool {
    let called = before.strip_suffix('(').is_some_and(|call| call.ends_with(|c: char| c.is_alphanumeric() || c == '_'));
    called || before.ends_with('`')
}

/// The word that a text ends with, and what is before it.
fn name_before(left: &str) -> Option<(&str, &str)> {
    let left = left.trim_end();
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/' | '.');
    let before = left.trim_end_matches(inner);
    let word = &left[before.len()..];
    if word.starts_with('-') {
        return None;
    }
    let name = word.trim_start_matches(|c: char| !c.is_ascii_alphabetic() && c != '_');
    (!name.is_empty()).then(|| (name, &left[..left.len() - name.len()]))
}

/// Whether a progress bar's own share follows its description: `Writing shards: 100%|███|`.
fn is_share(right: &str) -> bool {
    right.trim_start().trim_start_matches(|c: char| c.is_ascii_digit()).starts_with("%|")
}

/// tqdm, Keras, rich and Lightning.
fn is_progress_bar(line: &str) -> bool {
    let has_rate = ["it/s", "s/it", "s/step", "s/epoch"].iter().any(|rate| line.contains(rate));
    let has_bar = line.contains("%|") || line.contains('━') || line.contains("[====");
    let is_rest = line.len() - line.trim_start_matches(' ').len() >= OF_A_BAR;
    has_rate || has_bar || is_rest
}

#[cfg(test)]
mod tests {
    use spotsweep_protocol::metric::MetricPattern;

    use super::*;

    /// One line of text, its step, its values.
    type Case = (&'static str, Option<f64>, &'static [(&'static str, f64)]);

    const CASES: &[Case] = &[
        ("epoch=3 val_accuracy=0.9611 val_loss=1.2e-3", Some(3.0), &[("val_accuracy", 0.9611), ("val_loss", 0.0012)]),
        ("2024-03-04T17:55:08Z INFO accuracy = .8078, loss=+5.", None, &[("accuracy", 0.8078), ("loss", 5.0)]),
        ("step=40 epoch=2 val/top-1=97.3%", Some(40.0), &[("val/top-1", 97.3)]),
        ("Epoch=3/10... loss=-0.5;acc=1", Some(3.0), &[("loss", -0.5), ("acc", 1.0)]),
        ("loss=0.5 loss=0.4", None, &[("loss", 0.5), ("loss", 0.4)]),
        ("Epoch 1...loss=0.25 |acc=0.5|", Some(1.0), &[("loss", 0.25), ("acc", 0.5)]),
        ("손실=1 정확도 acc=0.5정확", None, &[("acc", 0.5)]),
        (
            "loss=nan acc=0.5 lr=-inf big=1e999 huge=1e200",
            None,
            &[("loss", f64::NAN), ("acc", 0.5), ("lr", -f64::INFINITY), ("big", f64::INFINITY), ("huge", 1e200)],
        ),
        ("step=nan loss=1", None, &[("loss", 1.0)]),
        ("python train.py --lr=0.1 -x=2", None, &[]),
        ("ip=10.0.0.1 day=2024-03-04 at=12:30:01 took=12s id=0x1f n=1_000", None, &[]),
        ("a == 1, b != 2, c <= 3, d=[4], e=, f='5', =7, 8=9", None, &[]),
        ("`Trainer.fit` stopped: `max_epochs=200` reached, see Trainer(log_every_n_steps=50).", None, &[]),
        ("Result(accuracy=0.9, count=5)", None, &[("accuracy", 0.9), ("count", 5.0)]),
        ("accuracy: 0.9", None, &[("accuracy", 0.9)]),
        ("step 250: train loss 1.96, val loss 2.05", Some(250.0), &[("loss", 1.96), ("loss", 2.05)]),
        ("Trainable params: 1.2 K", None, &[]),
        ("[7]\ttrain-auc:0.95\tvalid-auc:0.9", Some(7.0), &[("train-auc", 0.95), ("valid-auc", 0.9)]),
        (
            "9:\tlearn: 0.25\ttest: 0.3\tbest: 0.3 (9)\ttotal: 50ms",
            None,
            &[("learn", 0.25), ("test", 0.3), ("best", 0.3)],
        ),
        ("loss:0.25 took: 0.44s eta: 0:00:05 rate: 5.2 it/s", None, &[("loss", 0.25)]),
        ("resuming at step=500, loss=0.5", None, &[("loss", 0.5)]),
        ("Total params: 610, seed: 42, http://host:8080, line 5: 3", None, &[]),
        ("loss: tensor(0.25, grad_fn=<NllLossBackward0>)", None, &[("loss", 0.25)]),
        ("Test set: Average loss: 2.2524, Accuracy: 82/512 (16%)", None, &[("loss", 2.2524), ("Accuracy", 0.16015625)]),
        ("", None, &[]),
        (
            r#"{"global_step": "7", "loss": "0.22", "acc": 1, "timestamp": 1638422847.28, "ok": true, "path": "x"}"#,
            Some(7.0),
            &[("loss", 0.22), ("acc", 1.0)],
        ),
        (
            r#"{"epoch": 1, "loss": NaN, "x": -Infinity, "y": null, "z": 1e309, "NaN \"b": Infinity}"#,
            Some(1.0),
            &[("loss", f64::NAN), ("x", -f64::INFINITY), ("z", f64::INFINITY), ("NaN \"b", f64::INFINITY)],
        ),
        (r#"{"a": {"loss": 1}} loss=2"#, None, &[("loss", 2.0)]),
        (r#"{"nested": {"loss": 1}}"#, None, &[]),
        (
            r#"{"": 1, "a\u001b[31mb": 2, "a\tb": 3, "=SUM(1)": 4, "\u0085": 5}"#,
            None,
            &[("a\\u{1b}[31mb", 2.0), ("a\\tb", 3.0), ("=SUM(1)", 4.0), ("\\u{85}", 5.0)],
        ),
        ("{metricName=1}", None, &[("metricName", 1.0)]),
    ];

    fn values(found: &Logged) -> Vec<(&str, f64)> {
        found.values.iter().map(|value| (value.name.as_str(), value.value)).collect()
    }

    #[test]
    fn lines_say_so_much_and_no_more() {
        for (line, step, expected) in CASES {
            let found = Lines::default().read(line);
            // NaN is not equal to itself.
            assert_eq!(format!("{:?}", (found.step, values(&found))), format!("{:?}", (step, expected)), "{line}");
        }
    }

    #[test]
    fn the_name_that_the_file_declares_is_looked_for_as_it_is() {
        type Named = (&'static str, &'static str, &'static [(&'static str, f64)]);
        let cases: [Named; 23] = [
            (
                "Performance/Test accuracy",
                "epoch=1 Performance/Test accuracy=0.5",
                &[("Performance/Test accuracy", 0.5)],
            ),
            ("test/F1@5", "test/F1@5 = 0.5, loss=1", &[("test/F1@5", 0.5), ("loss", 1.0)]),
            ("metrics/mAP50(B)", "metrics/mAP50(B)=nan", &[("metrics/mAP50(B)", f64::NAN)]),
            ("정확도", "검증 정확도=0.5", &[("정확도", 0.5)]),
            ("acc", "val_acc=0.5 acc=0.25", &[("val_acc", 0.5), ("acc", 0.25)]),
            ("acc", "--acc=0.5", &[]),
            ("(x)", "f(x)=2", &[("(x)", 2.0)]),
            ("val_acc", "\u{1b}[33mval_acc\u{1b}[0m=\u{1b}[1;36m0.5\u{1b}[0m", &[("val_acc", 0.5)]),
            (
                "x",
                "\u{1b}[36m10:00:00\u{1b}[0m | \u{1b}]8;;https://a=1\u{7}link\u{1b}]8;;\u{7} loss=0.5",
                &[("loss", 0.5)],
            ),
            ("test_accuracy", "Test Accuracy: 0.5", &[("test_accuracy", 0.5)]),
            ("reward", "Episode reward: 200", &[("reward", 200.0)]),
            ("Acc@1", " *   Acc@1 43.2 Acc@5 69.9", &[("Acc@1", 43.2)]),
            (
                "test_acc",
                "│         test_acc          │    0.9166666865348816     │",
                &[("test_acc", 0.9166666865348816)],
            ),
            ("accuracy", "accuracy                           0.95       360", &[("accuracy", 0.95)]),
            ("accuracy", "accuracy 5 times", &[]),
            ("test_acc", "│ test_acc │ 1 │", &[("test_acc", 1.0)]),
            ("accuracy", "Epoch 3 finished, accuracy is 91%", &[("accuracy", 91.0)]),
            ("accuracy", "accuracy of 5 models", &[]),
            ("eval_accuracy", "eval epoch: 1, accuracy: 98.02", &[("accuracy", 98.02), ("eval_accuracy", 98.02)]),
            ("eval_accuracy", "train epoch: 1, accuracy: 91.8", &[("accuracy", 91.8)]),
            ("val_acc", "Validation Acc: 93.25%", &[("Acc", 93.25), ("val_acc", 93.25)]),
            ("best_val_acc", "Best val acc: 0.5", &[("best_val_acc", 0.5)]),
            ("val_loss", "wandb: val_loss 0.5", &[]),
        ];
        for (named, line, expected) in cases {
            let found = Lines::new(Some(named.to_owned()), Definitions::default()).read(line);
            assert_eq!(format!("{:?}", values(&found)), format!("{expected:?}"), "{named}: {line}");
        }
    }

    #[test]
    fn a_value_has_its_source() {
        for (line, source) in [
            ("acc=0.5", Source::Stated),
            (r#"{"acc": 0.5}"#, Source::Stated),
            ("Test acc: 0.5", Source::Text),
            ("{'acc': 0.5}", Source::Text),
            ("Train acc: 0.5", Source::OfTraining),
            ("training_acc 0.1 train acc = 0.5", Source::OfTraining),
            ("Train Epoch: 1 [640/60000 (1%)]\tacc: 0.5", Source::OfTraining),
            ("train: loss=0.5, acc=0.5", Source::OfTraining),
            ("train: loss=0.5, acc=0.25; val: loss=0.5, acc=0.5", Source::Stated),
            ("Best val acc: 0.5", Source::OfTraining),
            ("train loss 0.25, acc 0.5", Source::OfTraining),
            ("100%|███| 48/48 [00:00<00:00, 92.27it/s, acc=0.5]", Source::ProgressBar),
            ("acc: 50%|███| 1/2 [00:00<00:00, 92.27it/s, acc=0.5]", Source::ProgressBar),
            ("26/26 ━━━━ 1s 5ms/step - acc: 0.5", Source::ProgressBar),
            ("                                     acc: 0.500", Source::ProgressBar),
        ] {
            let found = Lines::new(Some("acc".to_owned()), Definitions::default()).read(line);
            let value = found.values.iter().rfind(|value| value.name == "acc").map(|value| (value.value, value.source));
            assert_eq!(value, Some((0.5, source)), "{line}");
        }
    }

    #[test]
    fn a_name_with_its_data_set_has_the_source_of_that() {
        for (name, line, source) in [
            ("Val", "Epoch: 001, Loss: 1.9, Train: 0.25, Val: 0.5, Test: 0.5", Source::Text),
            ("val_acc", "Epoch 3 train loss 0.25, val_acc 0.5", Source::Text),
            ("val_acc", "Best val_acc: 0.5 at epoch 2", Source::OfTraining),
            ("best_val_acc", "Best val acc: 0.5", Source::Text),
        ] {
            let found = Lines::new(Some(name.to_owned()), Definitions::default()).read(line);
            let value = found.values.iter().rfind(|value| value.name == name).map(|value| (value.value, value.source));
            assert_eq!(value, Some((0.5, source)), "{line}");
        }
    }

    #[test]
    fn a_line_without_a_step_has_the_one_before() {
        let mut lines = Lines::default();
        let steps =
            ["Epoch 3/10", "loss=0.5", r#"{"loss": 1}"#, "step=7 acc=1", "loss=0.4"].map(|line| lines.read(line).step);
        assert_eq!(steps, [Some(3.0), Some(3.0), None, Some(7.0), Some(7.0)]);
    }

    #[test]
    fn a_definition_finds_its_group() {
        let definition = |name: &str, regex: &str| MetricPattern { name: name.into(), regex: regex.into() };
        let compiled =
            Definitions::new(&[definition("ganloss", "ganloss=(.*?);"), definition("acc", r"Accuracy \((\S+)\)")]);
        let mut lines = Lines::new(None, compiled.ok().unwrap_or_default());
        assert_eq!(values(&lines.read("epoch=2 ganloss=0.25; loss=3")), [("loss", 3.0), ("ganloss", 0.25)]);
        assert_eq!(values(&lines.read("Accuracy (0.5)")), [("acc", 0.5)]);
        for regex in ["loss=.*", "loss=(", r"(?=x)(y)"] {
            assert!(Definitions::new(&[definition("b", regex)]).is_err(), "{regex}");
        }
    }
}
