//! Names of secrets. A person may write a secret itself in place of its name, so no message shows all of a wrong name.

/// The most characters of a name. With a deployment's prefix it is a path of a parameter, which has a limit too
/// (`secret_source.rs`).
const MOST_CHARS: usize = 100;

/// The most characters of a wrong name that a message shows.
const SHOWN_CHARS: usize = 4;

/// How tokens begin.
const TOKENS: [&str; 15] = [
    "hf_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "sk-",
    "AKIA",
    "ASIA",
    "xoxb-",
    "xoxa-",
    "xoxp-",
    "wandb_v1_",
];
/// The least characters of a token that begins so. `hf_token` is a name.
const TOKEN_CHARS: usize = 20;
/// The least characters of a key that has only hexadecimal digits. One of W&B has 40.
const KEY_CHARS: usize = 32;

/// A message, and what to do.
pub(crate) type Why = (String, &'static str);

/// Returns why a secret of the deployment cannot have this name, and what to do.
pub fn secret_name_problem(name: &str) -> Option<(String, &'static str)> {
    // All of these are allowed in a parameter's name and in a tag's value. A slash would reach other deployments.
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if is_value(name) {
        return Some(value_problem(name));
    }
    let help = "write 1 to 100 letters, digits, `_`, `-` and `.`, the first one no `-` and no `.`";
    if name.is_empty() {
        return Some(("a secret has no name".to_owned(), help));
    }
    let is_name = !name.starts_with(['.', '-']) && name.chars().all(is_allowed);
    (!is_name).then(|| (format!("`{}…` is no name of a secret", start(name)), help))
}

/// Returns the problem of a text that looks like a secret's value.
pub(crate) fn value_problem(text: &str) -> Why {
    let help = "`spotsweep secret set NAME` stores the value; write its name here";
    (format!("`{}…` looks like a secret itself, where its name belongs", start(text)), help)
}

/// Returns as much of a wrong name as a message may show.
pub(crate) fn start(name: &str) -> String {
    name.chars().take(SHOWN_CHARS).collect()
}

/// Whether a text has the form of a secret's value.
pub(crate) fn is_value(text: &str) -> bool {
    is_token(text) || text.chars().count() > MOST_CHARS || text.contains(['=', ':', ' ', '\n'])
}

/// Whether a text has the form of a token or of a key.
pub(crate) fn is_token(text: &str) -> bool {
    let length = text.chars().count();
    let is_token = length >= TOKEN_CHARS && TOKENS.iter().any(|start| text.starts_with(start));
    let is_key = length >= KEY_CHARS && text.chars().all(|c| c.is_ascii_hexdigit());
    is_token || is_key || text.starts_with("-----BEGIN")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn no_message_shows_more_than_the_start_of_what_may_be_a_secret() {
        let longest = "n".repeat(MOST_CHARS);
        for name in ["A", "hf_token", "sk-learn", "team-wandb.v2", "0", "deadbeef", longest.as_str()] {
            assert_eq!(secret_name_problem(name), None, "{name}");
        }
        let too_long = "n".repeat(MOST_CHARS + 1);
        let key = "0123456789abcdef".repeat(3);
        let values = [
            "hf_s3cr3tpws3cr3tpws3cr3tpw",
            "github_pat_s3cr3tpws3cr3tpw",
            "sk-proj-s3cr3tpws3cr3tpw",
            "AKIAIOSFODNN7EXAMPLE",
            "-----BEGIN PRIVATE KEY-----\ns3cr3tpw",
            "KEY=s3cr3tpw",
            "two words",
            &key,
            &too_long,
        ];
        let names = ["", ".hidden", "-x", "a/b", "é", "/own/NAME"];
        for name in values.into_iter().chain(names) {
            let (message, help) = secret_name_problem(name).unwrap();
            let rest: String = name.chars().skip(SHOWN_CHARS).collect();
            assert!(rest.is_empty() || !message.contains(&rest), "{message}");
            assert_eq!(values.contains(&name), message.contains("looks like"), "{message} {help}");
        }
    }
}
