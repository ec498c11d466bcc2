//! The wildcards of IAM's policies.

/// Whether a text matches a pattern, in which `*` is any text, slashes included, and `?` is one character
/// (<https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_resource.html>).
pub fn is_like(pattern: &str, text: &str) -> bool {
    match pattern.split_once(['*', '?']) {
        None => pattern == text,
        Some((before, after)) => text.strip_prefix(before).is_some_and(|rest| {
            let one = rest.char_indices().nth(1).map_or(rest.len(), |(at, _)| at);
            match pattern.as_bytes().get(before.len()) {
                Some(b'?') => !rest.is_empty() && is_like(after, &rest[one..]),
                _ => (0..=rest.len()).filter(|at| rest.is_char_boundary(*at)).any(|at| is_like(after, &rest[at..])),
            }
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_matches_as_iam_has_it() {
        for (pattern, text, expected) in [
            ("spotsweep-compute", "spotsweep-compute", true),
            ("spotsweep-compute", "spotsweep-compute2", false),
            ("spotsweep-*", "spotsweep-", true),
            ("*-compute", "a-b-compute", true),
            ("/team/*", "/team/wandb/key", true),
            ("/team/*", "/team", false),
            ("/team/*", "/team-2/wandb", false),
            ("a?c*", "abcd", true),
            ("a?c", "ac", false),
            ("a?c", "aéc", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(is_like(pattern, text), expected, "{pattern} {text}");
        }
    }
}
