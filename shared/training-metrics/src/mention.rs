//! Finds the named metric in files of kinds that are not read.

use std::path::Path;

use crate::names::is_same;

/// Endings of files into which training scripts write values.
const ENDINGS: [&str; 6] = ["csv", "tsv", "json", "jsonl", "txt", "log"];
/// The bytes of such a file that are searched.
pub const MENTION_BYTES: u64 = 4096;

/// Whether a file may have values of metrics, by its name.
pub fn may_have_metrics(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

/// Whether the beginning of a file has this metric's name, as the name of a column or of a member.
pub fn mentions(beginning: &[u8], named: &str) -> bool {
    let text = String::from_utf8_lossy(beginning);
    let mut words = text.split(['\n', '\r', '\t', ',', ';', ':', '=', '"', '\'', '{', '}']).map(str::trim);
    words.any(|word| is_same(word, named))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_mentions_a_metric_by_its_whole_name() {
        for text in ["epoch,val_acc\n1,0.5", "{\"a\": 1, \"Val Acc\": 0.5}", "epoch;val-acc", "val_acc = 0.5"] {
            assert!(mentions(text.as_bytes(), "val_acc"), "{text}");
        }
        for text in ["", "best_val_acc,x", "the val_acc of it"] {
            assert!(!mentions(text.as_bytes(), "val_acc"), "{text}");
        }
        assert!(may_have_metrics(Path::new("a/scores.CSV")) && !may_have_metrics(Path::new("model.pt")));
    }
}
