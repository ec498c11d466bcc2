//! Reads values that follow their names without a sign: `step 250: train loss 1.96, val loss 2.05`.

use crate::number::leading;

/// The last words of such names, in lower case. Without a sign, other words before a number are no names.
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

/// Returns each name, with the text before it in the line, and its value. A part ends at a comma, a bar, a semicolon or
/// a dash, and begins after a colon.
pub(crate) fn values(line: &str) -> impl Iterator<Item = (&str, &str, f64)> {
    let parts = line.split([',', '|', ';']).flat_map(|part| part.split(" - "));
    parts.filter_map(move |part| {
        let part = part.rsplit(": ").next()?.trim();
        let (named, number) = part.rsplit_once(' ')?;
        let value = leading(number).filter(|value| !value.is_whole && is_number(number))?.value;
        let named = named.trim_end();
        let name = named.rsplit(' ').next()?;
        // The name is a part of the line, so the difference of their addresses is its position.
        let before = &line[..name.as_ptr().addr() - line.as_ptr().addr()];
        METRICS.contains(&name.to_ascii_lowercase().as_str()).then_some((before, name, value))
    })
}

/// Whether a text is a number and nothing else. It may end a sentence.
fn is_number(text: &str) -> bool {
    text.trim_end_matches(['.', '%']).parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_signs_have_values() {
        let found = |line| values(line).collect::<Vec<_>>();
        let line = "step 250: train loss 1.96, val loss 2.05";
        assert_eq!(found(line), [(&line[..16], "loss", 1.96), (&line[..31], "loss", 2.05)]);
        let line = "Epoch 3 | train loss 0.25 | val acc 87.5%";
        assert_eq!(found(line), [(&line[..16], "loss", 0.25), (&line[..32], "acc", 87.5)]);
        assert_eq!(found("iter 10: loss 1.5, time 45.2ms, mfu 3.2%"), [("iter 10: ", "loss", 1.5)]);
        assert_eq!(found("DEV : loss 0.5 - time (sec): 3.21"), [("DEV : ", "loss", 0.5)]);
        for none in ["version 2.15.0, accuracy 5", "an error 404.2x", "score of 0.5", "loss nan things 1.5 s", ""] {
            assert_eq!(found(none), [], "{none}");
        }
    }
}
