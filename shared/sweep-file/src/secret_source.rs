//! What a sweep file writes in the place of a secret: the name of one of the deployment's own, the path or ARN of a
//! parameter in SSM Parameter Store, or the name or ARN of a secret in AWS Secrets Manager.

use spotsweep_protocol::claim::{ManagedSecret, secret_parameter};

use crate::managed_secret;
use crate::secret_name::{Why, is_value, secret_name_problem, start, value_problem};

/// The most characters of a path: those of a session tag's value
/// (<https://docs.aws.amazon.com/STS/latest/APIReference/API_Tag.html>). Each of a path's characters is allowed there.
const MOST_PATH_CHARS: usize = 256;

/// The most names in a path
/// (<https://docs.aws.amazon.com/systems-manager/latest/userguide/sysman-parameter-name-constraints.html>).
const MOST_LEVELS: usize = 15;

/// How names begin that are not a person's to give (the same page).
const RESERVED: [&str; 2] = ["aws", "ssm"];

/// The text in a parameter's ARN before its path
/// (<https://docs.aws.amazon.com/service-authorization/latest/reference/list_awssystemsmanager.html>).
const RESOURCE: &str = "parameter";

/// Where a secret is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretSource<'a> {
    /// A name below the deployment's prefix, which `spotsweep secret set` has stored.
    Own(&'a str),
    /// The path of a parameter, with its slash at the beginning.
    Path(&'a str),
    /// A secret of AWS Secrets Manager.
    Managed(ManagedSecret<'a>),
}

impl<'a> SecretSource<'a> {
    /// Reads a text that has no [`secret_source_problem`]. A text with a problem is taken for a name.
    pub fn of(text: &'a str) -> Self {
        let found = match arn(text) {
            Some([_, "ssm", _, _, resource]) => resource.strip_prefix(RESOURCE).map(Self::Path),
            Some([_, "secretsmanager", _, _, resource]) => managed_secret::of_resource(resource).map(Self::Managed),
            Some(_) => None,
            None => {
                ManagedSecret::of(text).map(Self::Managed).or_else(|| text.starts_with('/').then_some(Self::Path(text)))
            }
        };
        found.unwrap_or(Self::Own(text))
    }

    /// Returns the region and the account of a secret that the file names by its ARN.
    pub fn place(text: &'a str) -> Option<[&'a str; 2]> {
        arn(text).map(|[_, _, region, account, _]| [region, account])
    }

    /// Returns what names the secret in any account and region: its name or its path.
    pub fn anywhere(self) -> String {
        match self {
            Self::Own(text) | Self::Path(text) => text.to_owned(),
            Self::Managed(secret) => secret.to_string(),
        }
    }

    /// Returns what names the secret in a plan. The deployment's own are below a prefix with its bucket's name.
    pub fn planned(self, bucket: &str) -> String {
        match self {
            Self::Own(name) => secret_parameter(bucket, name),
            Self::Path(_) | Self::Managed(_) => self.anywhere(),
        }
    }
}

/// Returns why a text in a sweep file is no secret's name, path or ARN, and what to do.
pub(crate) fn secret_source_problem(text: &str) -> Option<Why> {
    if text.starts_with("arn:") {
        arn_problem(text)
    } else if let Some(secret) = ManagedSecret::of(text) {
        managed_secret::problem(secret, text)
    } else if text.starts_with('/') {
        path_problem(text)
    } else {
        secret_name_problem(text)
    }
}

/// Returns the parts of an ARN behind `arn:`: partition, service, region, account and resource.
fn arn(text: &str) -> Option<[&str; 5]> {
    let parts: Vec<&str> = text.strip_prefix("arn:")?.splitn(5, ':').collect();
    parts.try_into().ok()
}

fn arn_problem(text: &str) -> Option<Why> {
    match arn(text) {
        Some([_, _, "", _, _] | [_, _, _, "", _]) | None => Some(no_secret()),
        Some([_, "secretsmanager", _, _, resource]) => managed_secret::resource_problem(resource),
        Some([_, "ssm", _, _, resource]) => {
            match resource.strip_prefix(RESOURCE).filter(|path| path.starts_with('/')) {
                Some(path) => path_problem(path),
                None => Some(no_secret()),
            }
        }
        Some(_) => Some(no_secret()),
    }
}

fn no_secret() -> Why {
    let help = "write `arn:aws:ssm:REGION:ACCOUNT:parameter/PATH`, `arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME-AbCdEf`, \
                the path `/PATH`, or a name that `spotsweep secret set` has stored";
    ("this ARN is not that of a secret".to_owned(), help)
}

fn path_problem(path: &str) -> Option<Why> {
    let names: Vec<&str> = path.split('/').skip(1).collect();
    if names.iter().any(|name| is_value(name)) {
        return Some(value_problem(path));
    }
    let start = start(path);
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !names.iter().all(|name| !name.is_empty() && name.chars().all(is_allowed)) {
        let help = "write names of letters, digits, `_`, `-` and `.`, with one `/` before each: `/team/wandb`";
        return Some((format!("`{start}…` is no path of a parameter"), help));
    }
    let first = names.first().map(|name| name.to_ascii_lowercase()).unwrap_or_default();
    if RESERVED.iter().any(|reserved| first.starts_with(reserved)) {
        let help = "store the value under another path, or by `spotsweep secret set NAME`";
        return Some((format!("`{start}…` is a path that AWS reserves: it begins with `aws` or `ssm`"), help));
    }
    (names.len() > MOST_LEVELS || path.len() > MOST_PATH_CHARS).then(|| {
        let help = "store the value under a shorter path, or by `spotsweep secret set NAME`";
        (format!("`{start}…` has more than {MOST_LEVELS} names or {MOST_PATH_CHARS} characters"), help)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const ARN: &str = "arn:aws:ssm:eu-west-1:123456789012:parameter";

    const MANAGED: &str = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:team/db-x-a1B2c3";

    #[test]
    fn a_secret_is_named_by_name_path_or_arn() {
        let arn = format!("{ARN}/team/wandb");
        let deep = "/a".repeat(MOST_LEVELS);
        let long = format!("/{0}/{0}/{1}", "n".repeat(100), "n".repeat(MOST_PATH_CHARS - 203));
        let managed = |rest: &str| format!("/aws/reference/secretsmanager/{rest}");
        let longest = managed(&"n".repeat(256));
        for (text, planned) in [
            ("KEY", "/spotsweep/b/KEY"),
            ("/KEY", "/KEY"),
            ("/team/wandb.v2", "/team/wandb.v2"),
            ("/spotsweep/b/KEY", "/spotsweep/b/KEY"),
            (&arn, "/team/wandb"),
            (&deep, &deep),
            (&long, &long),
            (&managed("wandb"), &managed("wandb")),
            (&managed("team/a+b=c.d@e-f:KEY"), &managed("team/a+b=c.d@e-f:KEY")),
            (&longest, &longest),
            (MANAGED, &managed("team/db-x")),
            (&format!("{MANAGED}:KEY::"), &managed("team/db-x:KEY")),
            (&format!("{MANAGED}:KEY"), &managed("team/db-x:KEY")),
            (&format!("{MANAGED}:::"), &managed("team/db-x")),
        ] {
            assert_eq!(secret_source_problem(text), None, "{text}");
            assert_eq!(SecretSource::of(text).planned("b"), planned, "{text}");
            let anywhere = SecretSource::of(text).anywhere();
            assert_eq!(SecretSource::of(&anywhere).planned("b"), planned, "{text}");
            let place = text.starts_with("arn:").then_some(["eu-west-1", "123456789012"]);
            assert_eq!(SecretSource::place(text), place, "{text}");
        }
    }

    #[test]
    fn a_path_or_arn_that_cannot_be_one_is_refused() {
        let key = format!("/team/{}", "0123456789abcdef".repeat(3));
        let long = format!("{ARN}/{0}/{0}/{0}", "n".repeat(100));
        let managed = |rest: &str| format!("/aws/reference/secretsmanager/{rest}");
        let of = |resource: &str| format!("arn:aws:secretsmanager:eu-west-1:123456789012:{resource}");
        for (text, why) in [
            ("/", "no path"),
            ("//KEY", "no path"),
            ("/team/", "no path"),
            ("/team/*", "no path"),
            ("/team/é", "no path"),
            ("/team/a+b", "no path"),
            ("/aws/KEY", "reserves"),
            ("/aws/reference/secretsmanager", "reserves"),
            ("/SSM-KEY", "reserves"),
            ("arn:aws:s3:::bucket/KEY", "not that of a secret"),
            ("arn:aws:s3:eu-west-1:123456789012:bucket/KEY", "not that of a secret"),
            ("arn:aws:ssm:eu-west-1:123456789012:document/KEY", "not that of a secret"),
            ("arn:aws:ssm:eu-west-1::parameter/KEY", "not that of a secret"),
            ("arn:aws:secretsmanager:::secret:KEY-a1b2c3", "not that of a secret"),
            ("arn:aws:ssm", "not that of a secret"),
            (&key, "looks like"),
            ("/team/KEY=x", "looks like"),
            (&"/a".repeat(MOST_LEVELS + 1), "more than 15 names"),
            (&long, "256 characters"),
            (&format!("{ARN}/team//KEY"), "no path"),
            (&format!("{ARN}s/KEY"), "not that of a secret"),
            ("a/b", "no name"),
            (&managed(""), "has no name"),
            (&managed("/KEY"), "has no name"),
            (&managed("team/*"), "has no name"),
            (&managed("a b"), "has no name"),
            (&managed(&"n".repeat(257)), "has no name"),
            (&managed("team/hf_s3cr3tpws3cr3tpws3cr3tpw"), "looks like"),
            (&managed("team/db:hf_s3cr3tpws3cr3tpws3cr3tpw"), "looks like"),
            (&managed("KEY:"), "has no key"),
            (&managed("KEY:a:b"), "has no key"),
            (&managed("KEY:a b"), "has no key"),
            (&of("secret:KEY"), "no complete one"),
            (&of("secret:KEY-a1b2c"), "no complete one"),
            (&of("secret:KEY-a1b2c*"), "no complete one"),
            (&of("secrets:KEY-a1b2c3"), "no complete one"),
            (&of("secret:/KEY-a1b2c3"), "has no name"),
            (&of("secret:-a1b2c3"), "has no name"),
            (&of("secret:KEY-a1b2c3:a b"), "has no key"),
            (&of("secret:KEY-a1b2c3:a:AWSPREVIOUS:"), "names a version"),
            (&of("secret:KEY-a1b2c3:::id"), "names a version"),
            (&of("secret:KEY-a1b2c3:a:::"), "names a version"),
            (&of("secret:hf_s3cr3tpws3cr3tpws3cr3tpw-a1b2c3"), "looks like"),
        ] {
            let (message, help) = secret_source_problem(text).unwrap();
            assert!(message.contains(why), "{text}: {message} {help}");
            assert!(!message.contains("s3cr3t"), "{message}");
        }
    }
}
