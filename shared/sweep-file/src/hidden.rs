//! Finds the credentials of URLs in a sweep file, so that no page and no problem shows them.
//!
//! The parser returns the value of a scalar, without escapes and line breaks, and the place where it is written.
//! Secrets are found in the value and hidden at the place.

use serde::{Deserialize, Serialize};
use spotsweep_protocol::redact::{HIDDEN, credentials, redacted};

/// The most spans that are noted. A file with more is not shown at all.
const MOST: usize = 200;

/// Spans of a file's lines. Each has its line, from 1, and its first and last column, from 0, the last one excluded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Hidden(Vec<[u32; 3]>);

impl Hidden {
    /// Whether there is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there may be more to hide than has been noted.
    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= MOST
    }

    /// Returns the file's text for other people: without the noted spans, and without the credentials of URLs in
    /// comments.
    pub fn shown(&self, text: &str) -> String {
        if self.is_full() {
            return format!("# The file has more than {MOST} credentials, so it is not shown.\n");
        }
        let text = text.trim_start_matches('\u{feff}');
        let line = |(number, line): (u32, &str)| redacted(&self.line(number, line, 0).0).into_owned();
        let shown: Vec<String> = (1..).zip(lines(text)).map(line).collect();
        shown.join("\n")
    }

    /// Returns a line without its hidden spans, or nothing of it if there may be more to hide. Also returns how many
    /// characters remain before the one at `before`.
    pub(crate) fn line(&self, number: u32, line: &str, before: u32) -> (String, u32) {
        if self.is_full() {
            return (HIDDEN.to_owned(), 0);
        }
        let (mut clean, mut kept, mut at, mut rest) = (String::new(), before, 0, line.chars());
        let mut of_line: Vec<_> = self.0.iter().filter(|[of, ..]| *of == number).collect();
        of_line.sort();
        for [_, first, last] in of_line {
            clean.extend(rest.by_ref().take(first.saturating_sub(at) as usize));
            clean.push_str(HIDDEN);
            if before > *first {
                kept = (kept + HIDDEN.len() as u32).saturating_sub(before.min(*last) - first);
            }
            at = at.max(*first);
            rest.by_ref().take(last.saturating_sub(at) as usize).for_each(drop);
            at = at.max(*last);
        }
        clean.extend(rest);
        (without_scp(&clean), kept)
    }

    /// Adds what may be secret in a line at which the parser has stopped.
    pub(crate) fn add_unread(&mut self, number: u32, line: &str) {
        self.0.extend(unread(line).map(|[first, last]| [number, first, last]));
    }

    /// Adds what is secret in a text that was parsed between two places: line, from 1, and column, from 0. Returns
    /// whether the text has a secret.
    pub(crate) fn add(&mut self, lines: &[&str], text: &str, from: [u32; 2], until: [u32; 2]) -> bool {
        let secrets = credentials(text);
        if secrets.is_empty() || self.is_full() {
            return false;
        }
        let ([first_line, first], [last_line, last]) = (from, until);
        if first_line == last_line {
            let line = lines.get(first_line as usize - 1).copied().unwrap_or_default();
            let written: String = part(line, first, last).collect();
            let places: Option<Vec<_>> = secrets.iter().map(|secret| places(&written, &text[secret.clone()])).collect();
            if let Some(places) = places {
                let places = places.into_iter().flatten().take(MOST);
                self.0.extend(places.map(|[from, until]| [first_line, first + from, first + until]));
                return true;
            }
        }
        // The secret is not written as it was parsed, so the whole text is hidden.
        self.add_all(lines, from, until);
        true
    }

    /// Adds everything between two places.
    pub(crate) fn add_all(&mut self, lines: &[&str], from: [u32; 2], until: [u32; 2]) {
        let ([first_line, first], [last_line, last]) = (from, until);
        for number in first_line..=last_line {
            let from = if number == first_line { first } else { 0 };
            let until = if number == last_line { last } else { u32::MAX };
            let line = lines.get(number as usize - 1).copied().unwrap_or_default();
            let is_blank = part(line, from, until).all(char::is_whitespace);
            self.0.extend((!is_blank).then_some([number, from, until]));
        }
    }
}

/// Returns the span that may be secret in a line at which the parser has stopped before it read a scalar.
fn unread(line: &str) -> Option<[u32; 2]> {
    match (line.rfind('@'), line.find("://")) {
        (Some(at), _) => Some([0, chars(&line[..at])]),
        (None, Some(at)) => Some([chars(&line[..at]) + 3, u32::MAX]),
        (None, None) => None,
    }
}

pub(crate) fn chars(text: &str) -> u32 {
    u32::try_from(text.chars().count()).unwrap_or(u32::MAX)
}

/// Returns the first [`MOST`] places of `secret` in `written`, in characters, or `None` if there are none. A secret may
/// be one letter, so there may be many.
fn places(written: &str, secret: &str) -> Option<Vec<[u32; 2]>> {
    let (length, mut before, mut end) = (chars(secret), 0, 0);
    let place = |(at, _)| {
        before += chars(&written[end..at]);
        end = at;
        [before, before + length]
    };
    let found: Vec<_> = written.match_indices(secret).take(MOST).map(place).collect();
    (!found.is_empty()).then_some(found)
}

fn part(line: &str, from: u32, until: u32) -> impl Iterator<Item = char> {
    line.chars().take(until as usize).skip(from as usize)
}

/// Returns the line without user and password of `user:password@host:path` in its comment, which the parser never
/// reads.
fn without_scp(line: &str) -> String {
    let is_comment = |(at, _): &(usize, &str)| line[..*at].is_empty() || line[..*at].ends_with([' ', '\t']);
    let Some((at, _)) = line.match_indices('#').find(is_comment) else { return line.to_owned() };
    let hidden = |word: &str| match word.rfind('@') {
        Some(at) if word[..at].contains(':') && !word.contains("://") => format!("{HIDDEN}{}", &word[at..]),
        Some(_) | None => word.to_owned(),
    };
    let words: String = line[at..].split_inclusive(' ').map(hidden).collect();
    format!("{}{words}", &line[..at])
}

/// Splits at every line break of YAML 1.2, including a lone carriage return.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::parse;

    /// Ways to write a URL with a secret, as a value that is indented by eight blanks.
    const WRITTEN: [&str; 27] = [
        "http://ana:s3cr3tpw@h/x.git",
        "\"http://ana:s3cr3tpw@h/x.git\"",
        "'http://ana:s3cr3tpw@h/x.git'",
        "\"http://ana:s3c'r3tpw@h/x.git\"",
        "'http://ana:s3c\"r3tpw@h/x.git'",
        "'http://ana:s3c''r3tpw@h/x.git'",
        "'http://ana:s3c\\r3tpw@h/x.git'",
        "\"http://ana:s3c r3tpw@h/x.git\"",
        "\"http://ana:s3c/r3tpw@h/x.git\"",
        "\"http:\\/\\/ana:s3cr3tpw@h\\/x.git\"",
        "\"http:\\x2F\\x2Fana:s3cr3tpw@h/x.git\"",
        "\"http:\\u002f\\u002fana:s3cr3tpw@h/x.git\"",
        "\"http\\x3A//ana:s3cr3tpw@h/x.git\"",
        "\"http://ana:s3cr3tpw\\x40h/x.git\"",
        "\"http://ana:s3c\\x723tpw@h/x.git\"",
        "\"http://ana:\\\n         s3cr3tpw@h/x.git\"",
        "http://ana:s3c\n         r3tpw@h/x.git",
        "'http://ana:s3c\n         r3tpw@h/x.git'",
        ">-\n         http://ana:s3cr3tpw@h/x.git",
        "|\n         http://ana:s3cr3tpw@h/x.git",
        "!!str http://ana:s3cr3tpw@h/x.git",
        "&a http://s3cr3tpw@h/x.git",
        "ana:s3cr3tpw@h:x.git",
        "https://h/x.git?private_token=s3cr3tpw",
        "https://h/x.git#s3cr3tpw",
        "https://mirror/http://ana:s3cr3tpw@h/x.git",
        "h/x.git # of http://ana:s3cr3tpw@h and ana:s3cr3tpw@h:x",
    ];

    fn has_secret(text: &str) -> bool {
        ["s3c", "3tpw"].iter().any(|part| text.contains(part))
    }

    #[test]
    fn a_files_text_is_shown_without_credentials_however_they_are_written() {
        for written in WRITTEN {
            let text = format!(
                "spotsweep:\n    env:\n        git: {written}\n        ref: main\ntrials:\n- {{lr: 0.1}} # the last\n"
            );
            let file = parse("f.yaml", "", text.as_bytes()).map_err(|problems| format!("{written}: {problems:?}"));
            let shown = file.as_ref().map(|file| file.hidden.shown(&text)).unwrap_or_default();
            assert!(file.is_ok() && !has_secret(&shown), "{written}\n{shown}\n{file:?}");
            assert!(shown.contains("ref: main\ntrials:\n- {lr: 0.1} # the last\n"), "{shown}");
        }
    }

    #[test]
    fn no_problem_shows_credentials_however_they_are_written() {
        let wrong = |written: &str| {
            [
                format!("spotsweep:\n    code:\n        gti: {written}\n        git: [{written}]\ntrials: []\n"),
                format!("spotsweep:\n    queue: {written}\n    tags:\n        {written}: 1\ntrials: [1]\n"),
                format!(
                    "spotsweep:\n    code:\n        git: {written}\n        git: {written}\n    attempts: {written}\n"
                ),
                format!("spotsweep:\n    code:\n        git: {written}\n  ref: \"\n"),
                format!("spotsweep:\n    data:\n        x: {written}\n        {written}: s3://bucket\ntrials: [1]\n"),
                format!("spotsweep: {{code: {{git: {written}}}\n"),
                format!("spotsweep:\n    code: {{ref: a, git: \"{}\n", written.trim_matches(['"', '\''])),
            ]
        };
        for text in WRITTEN.iter().flat_map(|written| wrong(written)) {
            let problems = parse("f.yaml", "", text.as_bytes()).map(|_| ()).unwrap_err().problems;
            for problem in problems {
                assert!(!has_secret(&serde_json::to_string(&problem).unwrap()), "{text}\n{problem}");
            }
        }
    }

    #[test]
    fn marks_are_under_what_is_meant_next_to_hidden_credentials() {
        let text = "- {a: 'http://ana:s3c''r3tpw@h', b: .inf}\n";
        let problems = parse("f.yaml", "", text.as_bytes()).map(|_| ()).unwrap_err().problems;
        let lines: Vec<String> = problems[0].to_string().lines().map(str::to_owned).collect();
        let at = lines[4].find('^').unwrap();
        assert_eq!(&lines[3][at..at + 4], ".inf", "{}", problems[0]);
    }

    /// Showing the line below each of a hundred problems once took minutes.
    #[test]
    fn a_secret_that_is_everywhere_is_noted_so_many_times_at_most() {
        let values = ".inf, ".repeat(200);
        let text = format!("- {{url: 'http://s@h/{}', b: [{values}]}}\n", "s".repeat(20_000));
        let problems = parse("f.yaml", "", text.as_bytes()).map(|_| ()).unwrap_err().problems;
        assert!(problems.iter().all(|problem| !problem.to_string().contains("s@h")), "{:?}", problems.len());
        let file = text.replace(".inf", "1.5");
        let hidden = parse("f.yaml", "", file.as_bytes()).unwrap().hidden;
        assert!(hidden.is_full() && hidden.0.len() <= 2 * super::MOST, "{}", hidden.0.len());
        assert!(hidden.shown(&file).starts_with("# The file has"));
    }

    #[test]
    fn a_file_with_too_many_credentials_is_not_shown() {
        let text: String = (0..300).map(|number| format!("- {{url: 'http://ana:s3cr3tpw@h/{number}'}}\n")).collect();
        let file = parse("f.yaml", "", text.as_bytes()).unwrap();
        assert!(file.hidden.shown(&text).starts_with("# The file has"));
        let broken = text + "- {url: 'ana:s3cr3tpw@h', b: .inf}\n";
        let problems = parse("f.yaml", "", broken.as_bytes()).map(|_| ()).unwrap_err().problems;
        assert!(!has_secret(&serde_json::to_string(&problems).unwrap()), "{problems:?}");
    }
}
