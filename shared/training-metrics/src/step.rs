//! Finds the step that a line states.

use std::sync::LazyLock;

use regex::Regex;

use crate::logged::Value;

/// Names that count steps and are never metrics. The first one in a line takes precedence.
const NAMES: [&str; 6] = ["step", "global_step", "epoch", "iteration", "iter", "training_iteration"];

/// Beginnings of words about earlier training: `resumed from epoch 3`, `Restoring weights from the best epoch: 3`.
const EARLIER: [&str; 4] = ["resum", "restor", "reload", "continu"];
/// Words for what is loaded when a training goes on.
const STATES: [&str; 5] = ["checkpoint", "ckpt", "model", "weights", "state"];

/// The bytes of the text before a name that are searched, because a line may have thousands of names.
const LOOKED_AT: usize = 512;

/// Words before the total number of steps.
const LIMITS: [&str; 6] = ["total", "max", "maximum", "num", "every", "warmup"];

/// Matches `Epoch 3/10`, `epoch: 3`, `Train Epoch: [3][10/391]`, `Step [100/600]`, `iter #5`.
static COUNTED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let word = r"(?i)(?:^|[^\w/])(global[ _]step|epoch|step|iteration|iter|episode)(s?)\b";
    let number = r"\s*(?:\[\s*|[:=#]\s*\[?\s*|\(\s*)?(\d+(?:\.\d+)?)(\s*(?:/|of)\s*\d+)?(?:$|[^\w.%]|\.(?:\D|$))";
    Regex::new(&format!("{word}{number}")).ok()
});

/// Matches `Steps:  10%|█         | 100/1000 [`, a progress bar that counts steps.
static BAR: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)(?:^|[^\w/])(?:epoch|step)s?:?\s*\d+%\|[^|]*\|\s*(\d+)/\d+ \[").ok());

/// Matches `Trial 41 finished with value: 0.9`, as Optuna counts trials. Other numbers of trials name the training
/// itself.
static TRIAL: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)(?:^|[^\w/])trial\s+#?(\d+)\s+(?:finish|complete|end|done)").ok());

/// Whether values with this name count steps.
pub(crate) fn is_name(name: &str) -> bool {
    NAMES.iter().any(|step| name.eq_ignore_ascii_case(step))
}

/// Whether the text before the name shows that a line counts earlier steps: those of a checkpoint, or of the best
/// epoch.
pub(crate) fn is_earlier(before: &str) -> bool {
    let before = &before[before.ceil_char_boundary(before.len().saturating_sub(LOOKED_AT))..];
    let clause = [". ", ", ", "; ", "| "].iter().filter_map(|mark| before.rfind(mark)).max();
    let clause = before[clause.map_or(0, |at| at + 1)..].to_ascii_lowercase();
    let words: Vec<&str> = clause.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let has = |wanted: &str| words.contains(&wanted);
    let is_loaded = || has("loaded") || has("loading") && STATES.iter().any(|state| clause.contains(state));
    // After a value, "best" means that value.
    let is_best = || words.iter().rev().take_while(|word| word.parse::<f64>().is_err()).any(|word| *word == "best");
    words.iter().any(|word| EARLIER.iter().any(|start| word.starts_with(start)))
        || words.last() == Some(&"from")
        || words.ends_with(&["starting", "at"])
        || is_loaded()
        || is_best()
}

/// Whether the text before the name shows that the number is a limit of the training's steps.
fn is_limit(before: &str) -> bool {
    let word = before.trim_end().rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    LIMITS.iter().any(|limit| word.eq_ignore_ascii_case(limit))
}

/// Removes the step from values that were found together, because steps are no metrics, and returns it.
pub(crate) fn take(values: &mut Vec<Value>) -> Option<f64> {
    let mut step = None;
    for name in NAMES {
        let is_step = |value: &Value| value.name.eq_ignore_ascii_case(name);
        let found = values.iter().rev().find(|value| is_step(value)).map(|value| value.value);
        step = step.or(found.filter(|step| step.is_finite()));
        values.retain(|value| !is_step(value));
    }
    step
}

/// Returns the step in a line for people. The epoch takes precedence over a step with a total, which starts again with
/// each epoch.
pub(crate) fn counted(line: &str) -> Option<f64> {
    let pattern = COUNTED.as_ref()?;
    let found = pattern.captures_iter(line).filter_map(|found| {
        let (name, has_total) = (found.get(1)?, found.get(4).is_some());
        let before = &line[..name.start()];
        // `Num epochs = 3` states a total.
        let is_total = !has_total && (!found[2].is_empty() || is_limit(before));
        if is_total || is_earlier(before) {
            return None;
        }
        let order = match (name.as_str().to_ascii_lowercase().as_str(), has_total) {
            ("global step" | "global_step", _) => 0,
            ("step" | "iteration" | "iter", false) => 1,
            ("epoch" | "episode", _) => 2,
            (_, _) => 3,
        };
        Some((order, found.get(3)?.as_str().parse::<f64>().ok()?))
    });
    let others = || [&BAR, &TRIAL].into_iter().find_map(|pattern| first_of(pattern.as_ref()?, line));
    found.min_by_key(|(order, _)| *order).map(|(_, step)| step).or_else(others).or_else(|| at_start(line))
}

fn first_of(pattern: &Regex, line: &str) -> Option<f64> {
    pattern.captures(line)?[1].parse().ok()
}

/// Returns the step at the start of a line: `[7]\tvalid-auc:0.9` of XGBoost and LightGBM, `7:\ttest: 0.9` of CatBoost,
/// and epoch and batch in `[3,  2000] loss: 1.302` of PyTorch's tutorial.
fn at_start(line: &str) -> Option<f64> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some((number, _)) = line.split_once(":\t").filter(|(number, _)| is_number(number)) {
        return number.parse().ok();
    }
    let (inner, rest) = line.strip_prefix('[')?.split_once(']')?;
    let number = match inner.split_once(',') {
        Some((epoch, batch)) => Some(epoch).filter(|_| is_number(batch.trim()) && rest.starts_with(' ')),
        None => Some(inner).filter(|_| rest.starts_with('\t')),
    };
    number.filter(|number| is_number(number))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_counted_in_many_ways() {
        for (line, expected) in [
            ("Epoch 3/10", Some(3.0)),
            ("Epoch 1/2:  58%|#####     | 28/48 [00:00<00:00, 129.51it/s, loss=0.4]", Some(1.0)),
            ("Epoch [2/2]: [45/48]  94%", Some(2.0)),
            ("Train Epoch: 1 [640/1536 (42%)]\tLoss: 2.2", Some(1.0)),
            ("Epoch: [3][ 10/391]\tTime  0.512", Some(3.0)),
            ("Epoch [1/10], Step [100/600], Loss: 0.5", Some(1.0)),
            ("[main][INFO] - epoch 0: loss 0.2086", Some(0.0)),
            ("step 100 | loss 3.2", Some(100.0)),
            ("iter #5: 0.1", Some(5.0)),
            ("epoch=2.5 loss=1", Some(2.5)),
            ("Epoch 1...loss=0.25", Some(1.0)),
            ("Epoch 3.", Some(3.0)),
            ("epoch 2 of 10", Some(2.0)),
            ("[12]\ttrain-auc:0.9\tvalid-auc:0.8", Some(12.0)),
            ("[12] files", None),
            ("[3,  2000] loss: 1.302", Some(3.0)),
            ("[3, 4, 5] shape", None),
            ("Episode 12\tLast reward: 10.00", Some(12.0)),
            ("Steps:  10%|█         | 100/1000 [00:10<01:30, 10.0it/s, lr=1e-5]", Some(100.0)),
            ("Epoch:  33%|###       | 1/3 [00:10<00:20]", Some(1.0)),
            ("Iteration:  10%|#         | 10/100 [00:01<00:09, 10.0it/s]", None),
            ("26/26 - 1s - 5ms/step - loss: 0.6", None),
            ("Epoch time: 3.2", None),
            ("10 epochs", None),
            ("5 epochs, 0.3 better", None),
            ("epoch-3.pt", None),
            ("epoch 3s", None),
            ("Steps: 3/10", Some(3.0)),
            ("  Num Epochs = 3", None),
            ("  Total optimization steps = 300", None),
            ("Total step: 300", None),
            ("epochs: 3, batch size: 8", None),
            ("logging every step: 3", None),
            ("resumed from epoch 3", None),
            ("=> loaded checkpoint 'runs/model_best.pth.tar' (epoch 3)", None),
            ("Loading checkpoint shards of step 3", None),
            ("Restoring model weights from the end of the best epoch: 3.", None),
            ("Training starts from epoch 3", None),
            ("Starting at epoch 3", None),
            ("Best epoch: 3", None),
            ("Best model so far: epoch 3", None),
            ("Resuming, Epoch 3/10", Some(3.0)),
            ("Starting epoch 3", Some(3.0)),
            ("Loading data for epoch 3", Some(3.0)),
            ("Epoch 3: best val_acc 0.9 at epoch 2", Some(3.0)),
            ("best 0.9 epoch 3", Some(3.0)),
            ("checkpoint saved at epoch 3", Some(3.0)),
            ("490:\ttest: 0.99\tbest: 0.99 (490)\ttotal: 2s\tremaining: 38s", Some(490.0)),
            ("12: started", None),
            ("[I 2026-01-01 10:00:00,000] Trial 41 finished with value: 0.9 and parameters: ", Some(41.0)),
            ("Trial 5 Complete [00h 00m 02s]", Some(5.0)),
            ("trial 7: started", None),
        ] {
            assert_eq!(counted(line), expected, "{line}");
        }
    }
}
