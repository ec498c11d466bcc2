//! Secrets of AWS Secrets Manager, as plans and grants name them.

use std::fmt;

/// The beginning of the names that Parameter Store has for secrets of Secrets Manager
/// (<https://docs.aws.amazon.com/systems-manager/latest/userguide/integration-ps-secretsmanager.html>). No parameter's own
/// path begins with it.
const MANAGED_PREFIX: &str = "/aws/reference/secretsmanager/";

/// A secret of AWS Secrets Manager, or one value of the JSON object in it.
///
/// Its text is `/aws/reference/secretsmanager/NAME`, or `/aws/reference/secretsmanager/NAME:KEY` for one value. Neither
/// names nor keys have a colon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManagedSecret<'a> {
    /// The secret's name, without the six characters that its ARN ends with.
    pub name: &'a str,
    /// The key of the value in the JSON object; `None` for the whole text.
    pub key: Option<&'a str>,
}

impl<'a> ManagedSecret<'a> {
    /// Reads a text; `None` if it is the path of a parameter.
    pub fn of(path: &'a str) -> Option<Self> {
        let text = path.strip_prefix(MANAGED_PREFIX)?;
        Some(match text.split_once(':') {
            Some((name, key)) => Self { name, key: Some(key) },
            None => Self { name: text, key: None },
        })
    }
}

impl fmt::Display for ManagedSecret<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, key } = self;
        write!(formatter, "{MANAGED_PREFIX}{name}")?;
        key.map_or(Ok(()), |key| write!(formatter, ":{key}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_text_says_which_value_of_which_secret_it_is() {
        for (text, expected) in [
            ("/aws/reference/secretsmanager/wandb", Some(("wandb", None))),
            ("/aws/reference/secretsmanager/team/db+x@y:password", Some(("team/db+x@y", Some("password")))),
            ("/aws/reference/secretsmanager", None),
            ("/spotsweep/bucket/aws/reference/secretsmanager/wandb", None),
            ("/team/wandb", None),
        ] {
            let read = ManagedSecret::of(text);
            assert_eq!(read.map(|secret| (secret.name, secret.key)), expected, "{text}");
            assert!(read.is_none_or(|secret| secret.to_string() == text), "{text}");
        }
    }
}
