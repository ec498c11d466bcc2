//! STS's answers: invalid tags and names are refused, and credentials expire after an hour.
//!
//! The packed size of tags is not checked, because no documentation says how STS compresses them.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use spotsweep_control_plane::calls::{AssumeRole, CallError, Sts, Tag, Wait};
use spotsweep_protocol::claim::Access;

use super::client::Client;

/// The longest duration if a role assumes another role, and STS's default
/// (<https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html>, `DurationSeconds`).
const LIFE: Duration = Duration::from_secs(3600);

/// <https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html>, `RoleSessionName`.
const NAME_CHARS: RangeInclusive<usize> = 2..=64;

/// <https://docs.aws.amazon.com/IAM/latest/UserGuide/id_session-tags.html>
const MOST_TAGS: usize = 50;

/// <https://docs.aws.amazon.com/STS/latest/APIReference/API_Tag.html>
const KEY_CHARS: RangeInclusive<usize> = 1..=128;
const VALUE_CHARS: RangeInclusive<usize> = 0..=256;

impl<W: Wait> Sts for Client<'_, W> {
    async fn assume_role(&self, wanted: AssumeRole) -> Result<Access, CallError> {
        let issue = || {
            check(&wanted)?;
            Ok(Access {
                access_key_id: "ASIA".to_owned(),
                secret_access_key: wanted.role.clone(),
                session_token: wanted.session.clone(),
                expires_at: self.cloud.world().now() + LIFE,
            })
        };
        self.on(("sts", "AssumeRole"), None, issue).await?
    }
}

/// Checks the name and the tags of a session.
///
/// # Errors
/// The refusal that STS returns.
pub fn check(wanted: &AssumeRole) -> Result<(), CallError> {
    let refused = |code: &str, message: String| Err(CallError::answered(400, code.to_owned(), message));
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "_+=,.@-".contains(letter);
    if !NAME_CHARS.contains(&wanted.session.chars().count()) || !wanted.session.chars().all(is_name) {
        return refused("ValidationError", format!("roleSessionName {:?}", wanted.session));
    }
    let keys: BTreeSet<String> = wanted.tags.iter().map(|(key, _)| key.to_lowercase()).collect();
    if wanted.tags.len() > MOST_TAGS || keys.len() < wanted.tags.len() {
        return refused("InvalidParameterValue", "too many tags, or two with one key".to_owned());
    }
    match wanted.tags.iter().find(|tag| !is_tag(tag)) {
        Some((key, value)) => refused("ValidationError", format!("tag {key:?}: {value:?}")),
        None => Ok(()),
    }
}

fn is_tag((key, value): &Tag) -> bool {
    let is_of_tags = |letter: char| letter.is_alphanumeric() || letter == ' ' || "_.:/=+-@".contains(letter);
    let is_text = |text: &str, chars: &RangeInclusive<usize>| {
        chars.contains(&text.chars().count()) && text.chars().all(is_of_tags)
    };
    is_text(key, &KEY_CHARS) && is_text(value, &VALUE_CHARS)
}
