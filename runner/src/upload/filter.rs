//! The sweep file's `outputs`: which files of the storage folder are collected.

use globset::{Error, GlobBuilder, GlobSet, GlobSetBuilder};
use spotsweep_protocol::claim::Patterns;

/// Lets everything through unless patterns say otherwise.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filter {
    /// `None`: everything.
    include: Option<GlobSet>,
    exclude: GlobSet,
}

impl Filter {
    /// As `.gitignore` reads them: a pattern with a slash begins at the storage folder, one without
    /// fits a name at any depth; `*` stops at a slash, `**` does not, and a folder's name stands for
    /// everything in it.
    pub(crate) fn new(patterns: &Patterns) -> Result<Self, Error> {
        let include = if patterns.include.is_empty() { None } else { Some(set(&patterns.include)?) };
        Ok(Self { include, exclude: set(&patterns.exclude)? })
    }

    /// Whether the file at this path below the storage folder is collected.
    pub(super) fn admits(&self, path: &str) -> bool {
        self.include.as_ref().is_none_or(|include| include.is_match(path)) && !self.exclude.is_match(path)
    }
}

fn set(patterns: &[String]) -> Result<GlobSet, Error> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let name = pattern.trim_start_matches("./").trim_matches('/');
        let base = if pattern.trim_end_matches('/').contains('/') { name.to_owned() } else { format!("**/{name}") };
        for form in [base.clone(), format!("{base}/**")] {
            set.add(GlobBuilder::new(&form).literal_separator(true).build()?);
        }
    }
    set.build()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn patterns_fit_as_in_gitignore() {
        let cases: [(&[&str], &[&str], &str); 8] = [
            (&[], &[], "a b/model/x.pt log"),
            (&["*.pt"], &[], "b/model/x.pt"),
            (&["/a"], &[], "a"),
            (&["b/*"], &[], "b/model/x.pt"),
            (&["b/*.pt"], &[], ""),
            (&["model/", "log"], &[], "b/model/x.pt log"),
            (&[], &["**/*.pt", "a"], "log"),
            (&["*"], &["model"], "a log"),
        ];
        for (include, exclude, expected) in cases {
            let owned = |patterns: &[&str]| patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
            let filter = Filter::new(&Patterns { include: owned(include), exclude: owned(exclude) }).unwrap();
            let admitted: Vec<_> =
                ["a", "b/model/x.pt", "log"].into_iter().filter(|path| filter.admits(path)).collect();
            assert_eq!(admitted.join(" "), expected, "{include:?} {exclude:?}");
        }
        let broken = Patterns { include: vec!["[a".into()], exclude: Vec::new() };
        assert!(Filter::new(&broken).unwrap_err().to_string().contains("[a"));
    }
}
