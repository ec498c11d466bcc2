//! Formats errors that leave the process: in a log line, a function's answer, a record, or a person's terminal.
//!
//! The SDKs' errors name only their outermost kind ("service error", "dispatch failure"). AWS's message is in a cause.

use std::error::Error;
use std::iter::successors;

use crate::redact::redacted;

/// The most causes that are named. If there are more, the last one is the innermost.
const MOST_CAUSES: usize = 12;
/// The most characters of each cause in one line. AWS's refusals name caller, action and resource within these; an
/// encoded authorization message may follow.
const MOST_CHARS: usize = 500;
/// Headers and query parameters whose values AWS repeats in its answer to a wrong signature
/// (<https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.html>).
const SECRETS: [&str; 2] = ["x-amz-security-token", "x-amz-signature"];

/// Returns the texts of an error and of its causes, outermost first. It leaves out a cause that repeats another text,
/// and the values of credentials.
pub fn causes(error: &dyn Error) -> Vec<String> {
    let mut named: Vec<String> = Vec::new();
    for cause in successors(Some(error), |&error| error.source()) {
        let text = without_secrets(redacted(&cause.to_string()).into_owned());
        if named.iter().any(|other| other.contains(&text)) {
            continue;
        }
        if named.len() == MOST_CAUSES {
            named.pop();
        }
        named.push(text);
    }
    named
}

/// Returns the texts of [`causes`] in one line of bounded length: at most 12 causes of 500 characters each.
pub fn chain(error: &dyn Error) -> String {
    let cut = |text: String| match text.char_indices().nth(MOST_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    };
    causes(error).into_iter().map(cut).collect::<Vec<_>>().join(": ")
}

/// Replaces each secret's value by `…`. The value ends at a space, a quote or the next parameter.
fn without_secrets(mut text: String) -> String {
    for name in SECRETS {
        let mut from = 0;
        while let Some(at) = text[from..].to_ascii_lowercase().find(name) {
            let value = from + at + name.len() + 1;
            from = from + at + name.len();
            let Some(rest) = text.get(value..).filter(|_| text[from..].starts_with([':', '='])) else { continue };
            let end = rest.find(|c: char| c.is_whitespace() || "&\"'".contains(c)).unwrap_or(rest.len());
            text.replace_range(value..value + end, "…");
        }
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// An error with a text and a cause.
    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Layer(String, #[source] Option<Box<Layer>>);

    fn of<'a>(outermost_first: impl DoubleEndedIterator<Item = &'a str>) -> Layer {
        *outermost_first.rev().fold(None, |beneath, text| Some(Box::new(Layer(text.to_owned(), beneath)))).unwrap()
    }

    #[test]
    fn every_cause_is_named_once() {
        let error = of(["submit-part failed", "service error", "service error", "AccessDenied: no", "no"].into_iter());
        assert_eq!(causes(&error), ["submit-part failed", "service error", "AccessDenied: no"]);
        assert_eq!(chain(&error), "submit-part failed: service error: AccessDenied: no");
    }

    #[test]
    fn a_line_has_a_bound_and_keeps_the_innermost_cause() {
        let texts: Vec<String> = (0..100).map(|layer| format!("<{layer}>{}", "é".repeat(10_000))).collect();
        let line = chain(&of(texts.iter().map(String::as_str)));
        assert!(line.starts_with("<0>") && line.contains("<99>"), "{line}");
        assert!(line.chars().count() < MOST_CAUSES * (MOST_CHARS + 3), "{}", line.chars().count());
    }

    #[test]
    fn credentials_are_left_out() {
        let refused = "The Canonical String should have been 'POST\n/\n\nhost:batch\nX-Amz-Security-Token:IQoJsecret==\n\n\
            host;x-amz-security-token\nabc' for /?X-Amz-Security-Token=IQoJsecret&X-Amz-Signature=secret";
        let line = chain(&of([refused].into_iter()));
        assert!(!line.contains("secret"), "{line}");
        assert!(line.contains("host;x-amz-security-token\nabc"), "{line}");
        let url = "cannot connect to https://ana:secret@host/";
        assert_eq!(chain(&of([url].into_iter())), "cannot connect to https://***@host/");
    }
}
