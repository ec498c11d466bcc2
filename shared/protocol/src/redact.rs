//! Removes the credentials that a URL may carry, such as `code.git` of a sweep file, from pages, records and messages.
//! Only the grant of an attempt, which fetches from the URL, and the sweep file itself have them.
//!
//! A text that was parsed is a URL as a whole: [`credentials`] finds the secrets in it, whatever characters it has, and
//! [`Secrets`] hides them in any other text. In an unknown text, such as a line of a log, [`redacted`] finds URLs by
//! their form.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

/// The text in place of credentials.
pub const HIDDEN: &str = "***";
/// The shortest password, in bytes, that is hidden wherever it occurs. A shorter one is hidden only in its URL.
const LEAST_PASSWORD: usize = 4;
/// The same limit for a user name, which may be a token, and for a value in a query. Shorter ones are words.
const LEAST_TOKEN: usize = 8;

/// Returns the places of the credentials in a text that is one URL, or an address as ssh takes it (`user@host:path`):
/// user name and password, and the values of a query. If several `@` may end a password, the last one does.
pub fn credentials(text: &str) -> Vec<Range<usize>> {
    let (last, first) = (text.rfind('@'), text.find("://"));
    let is_of_scheme = |letter: char| letter.is_ascii_alphanumeric();
    let head = first.map_or(text, |scheme| text[..scheme].trim_end_matches(is_of_scheme));
    let mut found = Vec::new();
    found.extend(head.rfind('@').filter(|at| head[..*at].contains(':')).map(|at| 0..at));
    // A mirror's URL has another URL in its path.
    let mut next = first;
    while let Some(scheme) = next {
        let start = scheme + "://".len();
        let rest = &text[start..];
        let authority = &rest[..rest.find('/').unwrap_or(rest.len())];
        let user = if authority.contains(':') { last } else { authority.rfind('@').map(|at| start + at) };
        let user = user.filter(|at| *at > start);
        found.extend(user.map(|at| start..at));
        let from = user.unwrap_or(start);
        next = text[from..].find("://").map(|at| from + at);
        if next.is_none() {
            found.extend(query(text, from));
        }
    }
    found
}

/// Returns the values of a query or a fragment that begins after `after` bytes.
fn query(text: &str, after: usize) -> Vec<Range<usize>> {
    let Some(first) = text[after..].find(['?', '#']) else { return Vec::new() };
    let mut at = after + first + 1;
    let mut values = Vec::new();
    for piece in text[at..].split(['&', ';', '?', '#']) {
        let value = at + piece.find('=').map_or(0, |equals| equals + 1);
        values.extend((value < at + piece.len()).then(|| value..at + piece.len()));
        at += piece.len() + 1;
    }
    values
}

/// Returns a text that is one URL without its credentials: `https://***@host/`.
pub fn shown(url: &str) -> String {
    let mut clean = String::new();
    let mut from = 0;
    for range in credentials(url) {
        clean.push_str(&url[from..range.start]);
        clean.push_str(HIDDEN);
        from = range.end;
    }
    clean + &url[from..]
}

/// The credentials of URLs, to hide them in any text that may repeat them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Secrets(Vec<String>);

impl Secrets {
    /// Returns the credentials of a text that is one URL.
    pub fn of(url: &str) -> Self {
        let mut secrets = Self::default();
        secrets.add(url);
        secrets
    }

    /// Adds the credentials of another URL.
    pub fn add(&mut self, url: &str) {
        let mut found: BTreeSet<String> = BTreeSet::new();
        for range in credentials(url) {
            let whole = &url[range.clone()];
            let is_user = url[range.end..].starts_with('@');
            let (name, password) = if is_user { whole.split_once(':').unwrap_or((whole, "")) } else { (whole, "") };
            // Git may take a part of an odd password for a host or a path, and print that.
            let pieces = password.split(['@', '/', '?', '#', ':']).map(|piece| (piece, LEAST_PASSWORD));
            let parts = [(whole, LEAST_TOKEN), (name, LEAST_TOKEN), (password, LEAST_PASSWORD)];
            for (part, _) in parts.into_iter().chain(pieces).filter(|(part, least)| part.len() >= *least) {
                let decoded = percent_decoded(part);
                found.extend([
                    part.to_owned(),
                    part.escape_debug().to_string(),
                    decoded.escape_debug().to_string(),
                    decoded,
                ]);
            }
        }
        self.extend(found.into_iter().filter(|secret| secret.len() >= LEAST_PASSWORD));
    }

    /// Adds a text that is secret as a whole.
    pub fn add_all(&mut self, text: &str) {
        let found = [text.to_owned(), text.escape_debug().to_string()];
        self.extend(found.into_iter().filter(|secret| secret.len() >= LEAST_TOKEN));
    }

    fn extend(&mut self, found: impl Iterator<Item = String>) {
        self.0.extend(found);
        // Longer secrets come first, because one may be a part of another.
        self.0.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        self.0.dedup();
    }

    /// Returns the text without these credentials, and without the credentials of other URLs in it.
    pub fn hide(&self, text: &str) -> String {
        let mut clean = text.to_owned();
        for secret in &self.0 {
            if clean.contains(secret) {
                clean = clean.replace(secret, HIDDEN);
            }
        }
        redacted(&clean).into_owned()
    }
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        (rest, _) = match (first, code) {
            (b'%', Some(code)) => (&after[2..], bytes.push(code)),
            (other, _) => (after, bytes.push(*other)),
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the text without the credentials of URLs in it: `https://ana:secret@host/` becomes `https://***@host/`. The
/// slashes may be escaped, as JSON and YAML allow.
pub fn redacted(text: &str) -> Cow<'_, str> {
    let mut clean = String::new();
    let mut rest = text;
    while let Some(at) = authority(rest) {
        let (before, after) = rest.split_at(at);
        clean.push_str(before);
        rest = match after[..ends_authority(after)].rfind('@') {
            Some(credentials) => {
                clean.push_str(HIDDEN);
                &after[credentials..]
            }
            None => after,
        };
    }
    if clean.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(without_queries(&(clean + rest))) }
}

/// Returns the text without the values of queries, such as `token=…`, in its URLs.
fn without_queries(text: &str) -> String {
    let mut clean = String::new();
    for word in text.split_inclusive(|letter: char| letter.is_whitespace() || "'\"`<>".contains(letter)) {
        let url = word.trim_end_matches(|letter: char| letter.is_whitespace() || "'\"`<>".contains(letter));
        let values = authority(url).map(|at| query(url, at)).unwrap_or_default();
        let mut from = 0;
        let is_open =
            |value: &Range<usize>| url[..value.start].ends_with('=') && !url[value.start..].starts_with(HIDDEN);
        for value in values.into_iter().filter(is_open) {
            clean.push_str(&word[from..value.start]);
            clean.push_str(HIDDEN);
            from = value.end;
        }
        clean.push_str(&word[from..]);
    }
    clean
}

/// Returns where the first authority of a URL begins, which is where a user name would be.
fn authority(text: &str) -> Option<usize> {
    text.match_indices(':').find_map(|(at, _)| {
        let slash = |text: &'_ str| text.strip_prefix('\\').unwrap_or(text).strip_prefix('/').map(str::len);
        let rest = &text[at + 1..];
        let rest = &rest[rest.len() - slash(rest)?..];
        Some(text.len() - slash(rest)?)
    })
}

/// Returns where the authority ends: at a path, a blank, a line end, or a quote that ends a text. An `@` in a path
/// belongs to no credentials.
fn ends_authority(text: &str) -> usize {
    let ends = |(at, letter): &(usize, char)| match letter {
        '/' => true,
        '\\' => text[at + 1..].starts_with('/'),
        '\'' | '"' => {
            text[at + 1..].is_empty() || text[at + 1..].starts_with([',', ']', '}', ')', ':', ';', ' ', '\n'])
        }
        letter => letter.is_whitespace(),
    };
    text.char_indices().find(ends).map_or(text.len(), |(at, _)| at)
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
            ("https://a:b'c@x/y \"https://a:b\"c@x/y\"", "https://***@x/y \"https://***@x/y\""),
            (
                "code: {git: \"http:\\/\\/a:b@x\\/y.git\", ref: v1}",
                "code: {git: \"http:\\/\\/***@x\\/y.git\", ref: v1}",
            ),
            ("- http://a:b@x\n- {lr: 1, mail: c@d}", "- http://***@x\n- {lr: 1, mail: c@d}"),
            ("[\"http://x\",\"c@d\"]", "[\"http://x\",\"c@d\"]"),
            ("GET https://x/y?a=b&token=c#d=e: no", "GET https://x/y?a=***&token=***#d=*** no"),
            ("{url: https://x/y?token=***, lr: 1}", "{url: https://x/y?token=***, lr: 1}"),
            ("see https://x/y.html#a-b and https://x/?", "see https://x/y.html#a-b and https://x/?"),
            ("https://mirror/https://a:b@x/y?c=d", "https://mirror/https://***@x/y?c=***"),
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

    /// The URL was parsed, so any characters are hidden.
    const PARSED: [(&str, &str); 15] = [
        ("https://ana:s3cr3tpw@git.example/a.git", "https://***@git.example/a.git"),
        ("https://s3cr3tpw@git.example", "https://***@git.example"),
        ("http://ana:'s3cr3tpw\"@x/y", "http://***@x/y"),
        ("http://ana:a s3cr3tpw\\@x/y", "http://***@x/y"),
        ("http://ana:a/s3cr3tpw@x/y", "http://***@x/y"),
        ("http://ana:a?s3cr3tpw#b@x/y", "http://***@x/y"),
        ("http://ana:a@s3cr3tpw@x/y", "http://***@x/y"),
        ("http://ana:a@b/s3cr3tpw@x/y", "http://***@x/y"),
        ("http://ana:s3cr3tpw%2F%C3%A9@x/y", "http://***@x/y"),
        ("ana:s3cr3tpw@x:y.git", "***@x:y.git"),
        ("https://x/y.git?private_token=s3cr3tpw&b=1#s3cr3tpw", "https://x/y.git?private_token=***&b=***#***"),
        ("https://x/y.git?s3cr3tpw", "https://x/y.git?***"),
        ("https://mirror/https://ana:s3cr3tpw@x/y", "https://mirror/https://***@x/y"),
        ("ana:s3cr3tpw@x:y http://b:s3cr3tpw@y http://c:s3cr3tpw@z", "***@x:y http://***@z"),
        ("git@git.example:a/b.git", "git@git.example:a/b.git"),
    ];

    #[test]
    fn a_parsed_url_is_shown_without_credentials() {
        for (url, expected) in PARSED {
            assert_eq!(shown(url), expected);
        }
        for plain in ["https://x/y.git", "file:///a@b", "http://x/a@b", "", "@", "://", "://@", "C:\\a", "é"] {
            assert_eq!(shown(plain), plain);
        }
    }

    #[test]
    fn what_is_secret_in_a_url_is_hidden_wherever_it_is_repeated() {
        for (url, _) in PARSED {
            let secrets = Secrets::of(url);
            for said in [format!("unable to access '{url}': no"), format!("{url:?}"), percent_decoded(url)] {
                assert!(!secrets.hide(&said).contains("s3cr3tpw"), "{}", secrets.hide(&said));
            }
        }
        let said = "unable to access 'http://b/s3cr3tpw@x/y/': Could not resolve host: b";
        assert!(!Secrets::of("http://ana:a@b/s3cr3tpw@x/y").hide(said).contains("s3cr3tpw"));
        let secrets = Secrets::of("ana:s3cr3tpw@x:y.git");
        assert_eq!(secrets.hide("'s3cr3tpw@x:y.git' is no repository of ana"), "'***@x:y.git' is no repository of ana");
        assert_eq!(Secrets::of("http://a:b@x").hide("a and b stay readable"), "a and b stay readable");
    }
}
