//! Values that stand after their names without a sign between: `step 250: train loss 1.96, val loss 2.05`.

use crate::number::leading;

/// The last word of such a name, in small letters. Without a sign, any other word may stand before a number.
const METRICS: [&str; 30] = [
    "acc",
    "accuracy",
    "auc",
    "auroc",
    "bleu",
    "cer",
    "dice",
    "err",
    "error",
    "f1",
    "fid",
    "iou",
    "loss",
    "mae",
    "map",
    "miou",
    "mse",
    "perplexity",
    "ppl",
    "precision",
    "psnr",
    "r2",
    "recall",
    "return",
    "reward",
    "rmse",
    "score",
    "ssim",
    "wer",
    "acc1",
];

/// Each name with what is before it, and its value. A part ends at a comma, a bar or a semicolon, and begins after a
/// colon.
pub(crate) fn values(line: &str) -> impl Iterator<Item = (&str, &str, f64)> {
    line.split([',', '|', ';']).filter_map(|part| {
        let part = part.rsplit(": ").next()?.trim();
        let (named, number) = part.rsplit_once(' ')?;
        let value = leading(number).filter(|value| !value.is_whole && is_number(number))?.value;
        let named = named.trim_end();
        let start = named.rfind(' ').map_or(0, |space| space + 1);
        let (before, name) = named.split_at(start);
        METRICS.contains(&name.to_ascii_lowercase().as_str()).then_some((before, name, value))
    })
}

/// Nothing follows it: the end of a sentence may.
fn is_number(text: &str) -> bool {
    text.trim_end_matches(['.', '%']).parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_signs_have_values() {
        let found =
            |line| values(line).map(|(before, name, value)| (before.trim_end(), name, value)).collect::<Vec<_>>();
        assert_eq!(found("step 250: train loss 1.96, val loss 2.05"), [("train", "loss", 1.96), ("val", "loss", 2.05)]);
        assert_eq!(found("Epoch 3 | train loss 0.25 | val acc 87.5%"), [("train", "loss", 0.25), ("val", "acc", 87.5)]);
        assert_eq!(found("iter 10: loss 1.5, time 45.2ms, mfu 3.2%"), [("", "loss", 1.5)]);
        for none in ["version 2.15.0, accuracy 5", "an error 404.2x", "score of 0.5", "loss nan things 1.5 s", ""] {
            assert_eq!(found(none), [], "{none}");
        }
    }
}
