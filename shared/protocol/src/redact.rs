//! No page, record or message shows the credentials that a URL may carry, such as `code.git` of a sweep file. Only what
//! fetches from the URL has them: the grant of an attempt, and the sweep file itself.

use std::borrow::Cow;

/// Stands for user name and password.
const HIDDEN: &str = "***";

/// The text without the credentials of URLs in it: `https://ana:secret@host/` becomes `https://***@host/`. The slashes
/// may be escaped, as JSON and YAML allow it.
pub fn redacted(text: &str) -> Cow<'_, str> {
    let mut clean = String::new();
    let mut rest = text;
    while let Some(at) = authority(rest) {
        let (before, after) = rest.split_at(at);
        let end = after.find(ends_authority).unwrap_or(after.len());
        clean.push_str(before);
        rest = match after[..end].rfind('@') {
            Some(credentials) => {
                clean.push_str(HIDDEN);
                &after[credentials..]
            }
            None => after,
        };
    }
    if clean.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(clean + rest) }
}

/// Where the first authority of a URL begins, which is where a user name would.
fn authority(text: &str) -> Option<usize> {
    text.match_indices(':').find_map(|(at, _)| {
        let slash = |text: &'_ str| text.strip_prefix('\\').unwrap_or(text).strip_prefix('/').map(str::len);
        let rest = &text[at + 1..];
        let rest = &rest[rest.len() - slash(rest)?..];
        Some(text.len() - slash(rest)?)
    })
}

/// A path, a text or a line ends the authority. An `@` in a path is none of credentials.
fn ends_authority(letter: char) -> bool {
    matches!(letter, '/' | '\\' | '\'' | '"') || letter.is_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_not_shown() {
        let cases = [
            ("https://ana:secret@git.example/a.git", "https://***@git.example/a.git"),
            ("https://token@git.example", "https://***@git.example"),
            ("fatal: 'https://a:b@x/y' and ssh://c@d/e@f", "fatal: 'https://***@x/y' and ssh://***@d/e@f"),
            ("https://p@ss:w@x/y", "https://***@x/y"),
            (
                "code: {git: \"http:\\/\\/a:b@x\\/y.git\", ref: v1}",
                "code: {git: \"http:\\/\\/***@x\\/y.git\", ref: v1}",
            ),
            ("- http://a:b@x\n- {lr: 1, mail: c@d}", "- http://***@x\n- {lr: 1, mail: c@d}"),
            ("git@git.example:a/b.git", "git@git.example:a/b.git"),
            ("file:///a@b", "file:///a@b"),
            ("a: b:/ ://", "a: b:/ ://"),
            ("", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(redacted(text), expected);
            assert_eq!(redacted(expected), expected, "once is enough");
        }
    }
}
