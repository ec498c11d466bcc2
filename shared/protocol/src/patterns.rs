//! The sweep file's `outputs`: which paths a list of patterns fits. The sweep file's validation and the runner compile
//! patterns here, so what is valid compiles on the instance.

use std::fmt;

use globset::{ErrorKind, GlobBuilder, GlobSet, GlobSetBuilder};

/// Patterns in a list.
pub const MOST_PATTERNS: usize = 100;

/// Bytes of a pattern: a key of S3 has no more, so a longer pattern fits nothing.
pub const LONGEST_PATTERN: usize = 1024;

/// The paths that a list of patterns fits.
#[derive(Debug, Clone, Default)]
pub struct Paths(GlobSet);

impl Paths {
    /// Whether a path is one of them.
    pub fn have(&self, path: &str) -> bool {
        self.0.is_match(path)
    }
}

/// Why patterns cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Unusable {
    /// The place of the pattern in the list, from 0; absent where the list as a whole is too much.
    pub place: Option<usize>,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for Unusable {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some(place) => write!(to, "pattern {} is not usable: {}", place + 1, self.reason),
            None => write!(to, "the patterns are not usable: {}", self.reason),
        }
    }
}

/// As `.gitignore` reads them: a pattern with a slash begins at the storage folder, one without fits a name at any depth;
/// `*` stops at a slash, `**` does not, and a folder's name stands for everything in it.
///
/// # Errors
/// The first pattern that cannot be compiled, or more patterns than a list may have.
pub fn compile(patterns: &[String]) -> Result<Paths, Unusable> {
    let whole = |reason: String| Unusable { place: None, reason };
    if patterns.len() > MOST_PATTERNS {
        return Err(whole(format!("there are {}, and {MOST_PATTERNS} are the most", patterns.len())));
    }
    let mut set = GlobSetBuilder::new();
    for (place, pattern) in patterns.iter().enumerate() {
        let unusable = |reason: String| Unusable { place: Some(place), reason };
        if pattern.len() > LONGEST_PATTERN {
            return Err(unusable(format!("it has {} bytes, and {LONGEST_PATTERN} are the most", pattern.len())));
        }
        let name = pattern.trim_start_matches("./").trim_matches('/');
        let base = if pattern.trim_end_matches('/').contains('/') { name.to_owned() } else { format!("**/{name}") };
        for form in [base.clone(), format!("{base}/**")] {
            let glob = GlobBuilder::new(&form).literal_separator(true).build();
            set.add(glob.map_err(|error| unusable(said(error.kind())))?);
        }
    }
    set.build().map(Paths).map_err(|error| whole(said(error.kind())))
}

/// The library's words for a pattern; for its engine's own errors the first line, since these show the expression.
fn said(kind: &ErrorKind) -> String {
    kind.to_string().lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn owned(patterns: &[&str]) -> Vec<String> {
        patterns.iter().map(|pattern| (*pattern).to_owned()).collect()
    }

    #[test]
    fn patterns_fit_as_in_gitignore() {
        let cases: [(&[&str], &str); 7] = [
            (&["*.pt"], "b/model/x.pt"),
            (&["/a"], "a"),
            (&["b/*"], "b/model/x.pt"),
            (&["b/*.pt"], ""),
            (&["model/", "log"], "b/model/x.pt log"),
            (&["**/*.pt", "a"], "a b/model/x.pt"),
            (&["*"], "a b/model/x.pt log"),
        ];
        for (patterns, expected) in cases {
            let set = compile(&owned(patterns)).unwrap();
            let fitting: Vec<_> = ["a", "b/model/x.pt", "log"].into_iter().filter(|path| set.have(path)).collect();
            assert_eq!(fitting.join(" "), expected, "{patterns:?}");
        }
    }

    #[test]
    fn what_does_not_compile_is_named() {
        let cases: [(&[&str], &str); 5] = [
            (&["a", "[z-a]"], "pattern 2 is not usable: invalid range"),
            (&["[a"], "pattern 1 is not usable: unclosed character class"),
            (&["*", "*.pt", "{{{{a"], "pattern 3 is not usable: unclosed alternate group"),
            (&["a}"], "pattern 1 is not usable: unopened alternate group"),
            (&["a\\"], "pattern 1 is not usable: dangling '\\'"),
        ];
        for (patterns, expected) in cases {
            let error = compile(&owned(patterns)).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{patterns:?}: {error}");
        }
        assert_eq!(compile(&owned(&["a"; MOST_PATTERNS + 1])).unwrap_err().place, None);
        assert_eq!(compile(&["a".repeat(LONGEST_PATTERN + 1)]).unwrap_err().place, Some(0));
        assert!(compile(&["a".repeat(LONGEST_PATTERN)]).is_ok());
    }
}
