//! The patterns in the sweep file's `outputs`, and the paths that they match. The sweep file's validation checks
//! patterns here, and the runner compiles them.

mod filter;

use std::fmt;

use globset::{ErrorKind, Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use regex_automata::util::syntax;

use crate::expression;
pub use filter::Filter;

/// The most patterns in a list.
pub const MOST_PATTERNS: usize = 100;

/// The most bytes of a pattern. An S3 key has no more, so a longer pattern matches nothing.
pub const LONGEST_PATTERN: usize = 1024;

/// The most bytes of a compiled list: `globset`'s own limit.
const MOST_COMPILED_BYTES: usize = 10 << 20;

/// The paths that a list of patterns matches.
#[derive(Debug, Clone, Default)]
pub struct Paths(GlobSet);

impl Paths {
    /// Whether a path matches.
    pub fn have(&self, path: &str) -> bool {
        self.0.is_match(path)
    }
}

/// The reason why patterns cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Unusable {
    /// The index of the pattern in the list, from 0; absent if the whole list is too large.
    pub place: Option<usize>,
    /// The reason, as a clause.
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

/// Checks that [`compile`] accepts the patterns, for the sweep file's validation. The check builds one automaton, but
/// `globset` builds several. So a list of 100 patterns with hundreds of special characters each may compile although
/// the check refuses it.
///
/// # Errors
/// As [`compile`].
pub fn check(patterns: &[String]) -> Result<(), Unusable> {
    let globs = globs(patterns)?;
    let expressions: Vec<&str> = globs.iter().map(Glob::regex).collect();
    let syntax = syntax::Config::new().utf8(false).dot_matches_new_line(true);
    expression::compile(&expressions, syntax, MOST_COMPILED_BYTES).map(drop).map_err(whole)
}

/// Compiles patterns with the meaning that they have in `.gitignore`: a pattern with a slash begins at the storage
/// folder, and one without matches a name at any depth. `*` stops at a slash, `**` does not, and a folder's name
/// matches everything in it.
///
/// # Errors
/// Returns the first pattern that cannot be compiled, or refuses more patterns than a list may have.
pub fn compile(patterns: &[String]) -> Result<Paths, Unusable> {
    let mut set = GlobSetBuilder::new();
    for glob in globs(patterns)? {
        set.add(glob);
    }
    set.build().map(Paths).map_err(|error| whole(said(error.kind())))
}

fn globs(patterns: &[String]) -> Result<Vec<Glob>, Unusable> {
    if patterns.len() > MOST_PATTERNS {
        return Err(whole(format!("there are {}, and {MOST_PATTERNS} are the most", patterns.len())));
    }
    let mut globs = Vec::new();
    for (place, pattern) in patterns.iter().enumerate() {
        let unusable = |reason: String| Unusable { place: Some(place), reason };
        if pattern.len() > LONGEST_PATTERN {
            return Err(unusable(format!("it has {} bytes, and {LONGEST_PATTERN} are the most", pattern.len())));
        }
        let name = pattern.trim_start_matches("./").trim_matches('/');
        let base = if pattern.trim_end_matches('/').contains('/') { name.to_owned() } else { format!("**/{name}") };
        for form in [base.clone(), format!("{base}/**")] {
            let glob = GlobBuilder::new(&form).literal_separator(true).build();
            globs.push(glob.map_err(|error| unusable(said(error.kind())))?);
        }
    }
    Ok(globs)
}

/// Returns an error of the list as a whole.
fn whole(reason: String) -> Unusable {
    Unusable { place: None, reason }
}

/// Returns the library's text for an error. Errors of its engine show the expression, so only their first line is used.
fn said(kind: &ErrorKind) -> String {
    kind.to_string().lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    /// Parts of patterns: complete ones and halves.
    const PARTS: &[&str] = &[
        "a", "é", ".pt", "/", "*", "**", "**/", "?", "[", "]", "[!a-f]", "[z-a]", "{", "}", "{a,b/*}", ",", "\\", "./",
    ];

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
            let errors = (compile(&owned(patterns)).unwrap_err(), check(&owned(patterns)).unwrap_err());
            assert_eq!(errors.0, errors.1);
            assert!(errors.0.to_string().starts_with(expected), "{patterns:?}: {errors:?}");
        }
        assert_eq!(compile(&owned(&["a"; MOST_PATTERNS + 1])).unwrap_err().place, None);
        assert_eq!(compile(&["a".repeat(LONGEST_PATTERN + 1)]).unwrap_err().place, Some(0));
        assert!(compile(&["a".repeat(LONGEST_PATTERN)]).is_ok());
    }

    #[test]
    fn long_lists_compile_where_they_pass_the_check() {
        let passes = |pattern: &str| {
            let list = vec![pattern.repeat(LONGEST_PATTERN / pattern.len()); MOST_PATTERNS];
            let (checked, compiled) = (check(&list), compile(&list));
            assert!(checked.is_err() || compiled.is_ok(), "{pattern}: {compiled:?}");
            checked.is_ok()
        };
        let refused: Vec<&str> =
            ["a", "é", "?", "*", "[a-é]", "{a,b}"].into_iter().filter(|each| !passes(each)).collect();
        assert_eq!(refused, ["?", "*"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn what_passes_the_check_is_what_compiles(patterns in vec(vec(select(PARTS), 1..8), 1..4)) {
            let patterns: Vec<String> = patterns.iter().map(|parts| parts.concat()).collect();
            let (checked, compiled) = (check(&patterns), compile(&patterns).map(drop));
            prop_assert_eq!(checked, compiled, "{:?}", patterns);
        }
    }
}
