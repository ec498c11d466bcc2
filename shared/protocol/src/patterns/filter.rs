//! The sweep file's `outputs`: the files that are collected.

use super::{Paths, Unusable, compile};
use crate::claim::{Checkpoints, Patterns};

/// A filter of files. Without patterns it admits all files.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// The patterns of files to collect; `None` admits all files.
    include: Option<Paths>,
    exclude: Paths,
    /// The checkpoints of a successful trial that are collected.
    pub checkpoints: Checkpoints,
}

impl Filter {
    /// Compiles a sweep's patterns.
    ///
    /// # Errors
    /// Returns the first pattern that cannot be compiled, or refuses more patterns than a list may have.
    pub fn new(patterns: &Patterns) -> Result<Self, Unusable> {
        let include = if patterns.include.is_empty() { None } else { Some(compile(&patterns.include)?) };
        Ok(Self { include, exclude: compile(&patterns.exclude)?, checkpoints: patterns.checkpoints })
    }

    /// Whether the file at this path below the storage folder is collected.
    pub fn admits(&self, path: &str) -> bool {
        self.include.as_ref().is_none_or(|include| include.have(path)) && !self.exclude.have(path)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_included_and_not_excluded_is_collected() {
        let cases: [(&[&str], &[&str], &str); 4] = [
            (&[], &[], "a b/model/x.pt log"),
            (&["*.pt"], &[], "b/model/x.pt"),
            (&[], &["**/*.pt", "a"], "log"),
            (&["*"], &["model"], "a log"),
        ];
        for (include, exclude, expected) in cases {
            let owned = |patterns: &[&str]| patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
            let patterns = Patterns { include: owned(include), exclude: owned(exclude), ..Patterns::default() };
            let filter = Filter::new(&patterns).unwrap();
            let admitted: Vec<_> =
                ["a", "b/model/x.pt", "log"].into_iter().filter(|path| filter.admits(path)).collect();
            assert_eq!(admitted.join(" "), expected, "{include:?} {exclude:?}");
        }
        let broken = Patterns { include: vec!["[a".into()], ..Patterns::default() };
        assert!(Filter::new(&broken).is_err());
    }
}
