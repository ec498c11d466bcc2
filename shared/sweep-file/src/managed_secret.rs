//! Secrets of AWS Secrets Manager in a sweep file: by ARN, or by the name that Parameter Store has for them.

use spotsweep_protocol::claim::ManagedSecret;

use crate::secret_name::{Why, is_token, start, value_problem};

/// The most characters of a name: those of a session tag's value
/// (<https://docs.aws.amazon.com/STS/latest/APIReference/API_Tag.html>). Each of a name's characters is allowed there.
const MOST_NAME_CHARS: usize = 256;

/// The most characters of a key.
const MOST_KEY_CHARS: usize = 100;

/// The text in a secret's ARN before its name, and the number of random characters after it and its hyphen
/// (<https://docs.aws.amazon.com/secretsmanager/latest/userguide/whats-in-a-secret.html>).
const RESOURCE: &str = "secret:";
const RANDOM_CHARS: usize = 6;

/// The last part of a secret's ARN. Behind it, ECS and Batch write a JSON key, a version's stage and a version's id
/// (<https://docs.aws.amazon.com/AmazonECS/latest/developerguide/secrets-envvar-secrets-manager.html>).
struct Resource<'a> {
    /// Name, hyphen and random characters.
    full_name: &'a str,
    key: Option<&'a str>,
    /// Stage and id of a version, if the ARN has more than a key.
    version: Option<&'a str>,
}

impl<'a> Resource<'a> {
    fn of(resource: &'a str) -> Option<Self> {
        let mut parts = resource.strip_prefix(RESOURCE)?.splitn(3, ':');
        let (full_name, key, version) = (parts.next()?, parts.next(), parts.next());
        Some(Self { full_name, key: key.filter(|key| !key.is_empty()), version })
    }

    /// Returns the name without the random characters; `None` if the ARN lacks them.
    fn name(&self) -> Option<&'a str> {
        let (name, random) = self.full_name.rsplit_once('-')?;
        (random.len() == RANDOM_CHARS && random.chars().all(|c| c.is_ascii_alphanumeric())).then_some(name)
    }
}

/// Reads the last part of an ARN.
pub(crate) fn of_resource(resource: &str) -> Option<ManagedSecret<'_>> {
    let found = Resource::of(resource)?;
    Some(ManagedSecret { name: found.name()?, key: found.key })
}

/// Returns why the last part of an ARN names no secret.
pub(crate) fn resource_problem(resource: &str) -> Option<Why> {
    let Some(found) = Resource::of(resource) else { return Some(no_arn()) };
    if found.full_name.split('/').any(is_token) || found.key.is_some_and(is_token) {
        return Some(value_problem("arn:"));
    }
    if found.version.is_some_and(|version| !matches!(version, "" | ":")) {
        let help = "each attempt reads the current version: write `…:secret:NAME-AbCdEf:KEY`, with nothing behind KEY";
        return Some(("this ARN names a version of the secret".to_owned(), help));
    }
    match found.name() {
        Some(name) => problem(ManagedSecret { name, key: found.key }, "arn:"),
        None => Some(no_arn()),
    }
}

/// Returns why a secret of Secrets Manager cannot have this name or this key. `text` is all of what is written.
pub(crate) fn problem(ManagedSecret { name, key }: ManagedSecret<'_>, text: &str) -> Option<Why> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '+' | '=' | '.' | '@' | '-');
    let is_of = |text: &str, most: usize| (1..=most).contains(&text.len()) && text.chars().all(is_allowed);
    if name.split('/').chain(key).any(is_token) {
        return Some(value_problem(text));
    }
    if name.starts_with('/') || !is_of(name, MOST_NAME_CHARS) {
        let help = "write `/aws/reference/secretsmanager/NAME`: 1 to 256 letters, digits, `/`, `_`, `+`, `=`, `.`, `@` and \
                    `-`, the first one no `/`";
        return Some((format!("`{}…` has no name of a secret of AWS Secrets Manager", start(text)), help));
    }
    if key.is_some_and(|key| !is_of(key, MOST_KEY_CHARS)) {
        let help = "write `NAME:KEY`, with a key of 1 to 100 letters, digits, `/`, `_`, `+`, `=`, `.`, `@` and `-`; or \
                    `NAME` for the whole text";
        return Some((format!("`{}…` has no key of a JSON object behind its colon", start(text)), help));
    }
    None
}

fn no_arn() -> Why {
    let help = "write all of it, `arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME-AbCdEf`, as `aws secretsmanager \
                describe-secret --secret-id NAME` shows it; or `/aws/reference/secretsmanager/NAME`";
    ("this ARN is no complete one of a secret of AWS Secrets Manager".to_owned(), help)
}
