//! Names of metrics and parameters as files. MLflow takes letters, digits, `_`, `-`, `.`, `:`, blanks and `/`, the last
//! as a folder (`validate_param_and_metric_name` in mlflow/utils/validation.py); other names are made to fit.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// Longest name of a file. It leaves some room for what distinguishes two names.
const LONGEST: usize = 200;

/// A file for each name. All are different, and none is outside the folder.
pub(super) fn files<'a>(names: impl Iterator<Item = &'a str>) -> Vec<PathBuf> {
    let fitted: Vec<String> = names.map(fit).collect();
    let folders: BTreeSet<String> = fitted.iter().flat_map(|name| above(name)).collect();
    let mut taken = BTreeSet::new();
    let mut different = |name: &String| {
        let mut file = if folders.contains(name) || above(name).any(|folder| fitted.contains(&folder)) {
            // One of two names would be the folder of the other one.
            name.replace('/', "_")
        } else {
            name.clone()
        };
        while folders.contains(&file) || !taken.insert(file.clone()) {
            file.push('_');
        }
        PathBuf::from(file)
    };
    fitted.iter().map(&mut different).collect()
}

/// The folders that contain the file of a name.
fn above(name: &str) -> impl Iterator<Item = String> {
    name.match_indices('/').map(|(at, _)| name[..at].to_owned())
}

fn fit(name: &str) -> String {
    let allowed = |letter: char| if letter.is_alphanumeric() || "_-.: ".contains(letter) { letter } else { '_' };
    let part = |part: &str| -> String {
        let mut fitted: String = part.chars().map(allowed).collect();
        let end = (0..=fitted.len().min(LONGEST)).rev().find(|end| fitted.is_char_boundary(*end)).unwrap_or(0);
        fitted.truncate(end);
        if fitted.chars().all(|letter| letter == '.') { format!("_{fitted}") } else { fitted }
    };
    name.split('/').map(part).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use std::path::Component;

    use super::*;

    #[test]
    fn every_name_has_a_file_of_its_own_in_the_folder() {
        let long = "x".repeat(300);
        let cases: [(&[&str], &[&str]); 8] = [
            (&["lr", "val/acc", "a b:c.d-e_f", "정확도"], &["lr", "val/acc", "a b:c.d-e_f", "정확도"]),
            (&["../../etc/passwd", "a/../b", "."], &["_../_../etc/passwd", "a/_../b", "_."]),
            (&["/abs", ".."], &["_/abs", "_.."]),
            (&[""], &["_"]),
            (&["val", "val/acc", "val_acc"], &["val_", "val_acc", "val_acc_"]),
            (&["a?b", "a*b", "a\0b"], &["a_b", "a_b_", "a_b__"]),
            (&["a", "a/b", "a/b/c"], &["a_", "a_b", "a_b_c"]),
            (&[&long], &[&long[..LONGEST]]),
        ];
        for (names, expected) in cases {
            let files = files(names.iter().copied());
            assert_eq!(files, expected.iter().map(PathBuf::from).collect::<Vec<_>>(), "{names:?}");
            for file in &files {
                assert!(file.components().all(|part| matches!(part, Component::Normal(_))), "{file:?}");
            }
        }
    }
}
