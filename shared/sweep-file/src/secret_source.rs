//! What a sweep file writes in the place of a secret: the name of one of the deployment's own, or the path or ARN of a
//! parameter in SSM Parameter Store.

use spotsweep_protocol::claim::secret_parameter;

use crate::secret_name::{is_value, secret_name_problem, start, value_problem};

/// The most characters of a path: those of a session tag's value
/// (<https://docs.aws.amazon.com/STS/latest/APIReference/API_Tag.html>). Each of a path's characters is allowed there.
const MOST_PATH_CHARS: usize = 256;

/// The most names in a path
/// (<https://docs.aws.amazon.com/systems-manager/latest/userguide/sysman-parameter-name-constraints.html>).
const MOST_LEVELS: usize = 15;

/// How names begin that are not a person's to give (the same page).
const RESERVED: [&str; 2] = ["aws", "ssm"];

/// The beginning of the paths by which Parameter Store passes on secrets of AWS Secrets Manager. DescribeParameters does
/// not show whether there is one
/// (<https://docs.aws.amazon.com/systems-manager/latest/userguide/integration-ps-secretsmanager.html>).
const SECRETS_MANAGER: &str = "/aws/reference/secretsmanager/";

/// The text in a parameter's ARN before its path
/// (<https://docs.aws.amazon.com/service-authorization/latest/reference/list_awssystemsmanager.html>).
const RESOURCE: &str = "parameter";

/// A message, and what to do.
type Why = (String, &'static str);

/// Where a secret is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretSource<'a> {
    /// A name below the deployment's prefix, which `spotsweep secret set` has stored.
    Own(&'a str),
    /// The path of a parameter, with its slash at the beginning.
    Path(&'a str),
    /// A parameter by its ARN.
    Arn {
        /// The region.
        region: &'a str,
        /// The account.
        account: &'a str,
        /// The path.
        path: &'a str,
    },
}

impl<'a> SecretSource<'a> {
    /// Reads a text that has no [`secret_source_problem`]. A text with a problem is taken for a name.
    pub fn of(text: &'a str) -> Self {
        match arn(text) {
            Some([_, "ssm", region, account, resource]) => {
                Self::Arn { region, account, path: resource.strip_prefix(RESOURCE).unwrap_or_default() }
            }
            Some(_) | None if text.starts_with('/') => Self::Path(text),
            Some(_) | None => Self::Own(text),
        }
    }

    /// Returns the same name or path in any account and region.
    pub fn anywhere(self) -> &'a str {
        match self {
            Self::Own(text) | Self::Path(text) | Self::Arn { path: text, .. } => text,
        }
    }

    /// Returns the path of the parameter. The deployment's own are below a prefix with its bucket's name.
    pub fn parameter(self, bucket: &str) -> String {
        match self {
            Self::Own(name) => secret_parameter(bucket, name),
            Self::Path(path) | Self::Arn { path, .. } => path.to_owned(),
        }
    }
}

/// Returns why a text in a sweep file is no secret's name, path or ARN, and what to do.
pub(crate) fn secret_source_problem(text: &str) -> Option<Why> {
    if text.starts_with("arn:") {
        arn_problem(text)
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
        Some([_, "secretsmanager", ..]) => Some(of_secrets_manager()),
        Some([_, "ssm", region, account, resource]) if !region.is_empty() && !account.is_empty() => {
            match resource.strip_prefix(RESOURCE).filter(|path| path.starts_with('/')) {
                Some(path) => path_problem(path),
                None => Some(no_parameter()),
            }
        }
        Some(_) | None => Some(no_parameter()),
    }
}

fn no_parameter() -> Why {
    let help = "write `arn:aws:ssm:REGION:ACCOUNT:parameter/PATH`, the path `/PATH`, or a name that \
                `spotsweep secret set` has stored";
    ("this ARN is not that of a parameter in SSM Parameter Store".to_owned(), help)
}

fn of_secrets_manager() -> Why {
    let help = "copy the value into Parameter Store, and write that name here: `aws secretsmanager get-secret-value \
                --secret-id ID --query SecretString --output text | spotsweep secret set NAME`";
    ("secrets of AWS Secrets Manager cannot be read".to_owned(), help)
}

fn path_problem(path: &str) -> Option<Why> {
    if path.starts_with(SECRETS_MANAGER) {
        return Some(of_secrets_manager());
    }
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

    #[test]
    fn a_secret_is_named_by_name_path_or_arn() {
        let arn = format!("{ARN}/team/wandb");
        let deep = "/a".repeat(MOST_LEVELS);
        let long = format!("/{0}/{0}/{1}", "n".repeat(100), "n".repeat(MOST_PATH_CHARS - 203));
        for (text, parameter) in [
            ("KEY", "/spotsweep/b/KEY"),
            ("/KEY", "/KEY"),
            ("/team/wandb.v2", "/team/wandb.v2"),
            ("/spotsweep/b/KEY", "/spotsweep/b/KEY"),
            (&arn, "/team/wandb"),
            (&deep, &deep),
            (&long, &long),
        ] {
            assert_eq!(secret_source_problem(text), None, "{text}");
            assert_eq!(SecretSource::of(text).parameter("b"), parameter, "{text}");
            let anywhere = SecretSource::of(text).anywhere();
            assert_eq!(SecretSource::of(anywhere).parameter("b"), parameter, "{text}");
        }
        let of_arn = SecretSource::Arn { region: "eu-west-1", account: "123456789012", path: "/team/wandb" };
        assert_eq!(SecretSource::of(&arn), of_arn);
    }

    #[test]
    fn a_path_or_arn_that_cannot_be_one_is_refused() {
        let key = format!("/team/{}", "0123456789abcdef".repeat(3));
        let long = format!("{ARN}/{0}/{0}/{0}", "n".repeat(100));
        for (text, why) in [
            ("/", "no path"),
            ("//KEY", "no path"),
            ("/team/", "no path"),
            ("/team/*", "no path"),
            ("/team/é", "no path"),
            ("/team/a+b", "no path"),
            ("/aws/KEY", "reserves"),
            ("/SSM-KEY", "reserves"),
            ("/aws/reference/secretsmanager/KEY", "Secrets Manager"),
            ("arn:aws:secretsmanager:eu-west-1:123456789012:secret:KEY-a1b2c3", "Secrets Manager"),
            ("arn:aws:s3:::bucket/KEY", "not that of a parameter"),
            ("arn:aws:ssm:eu-west-1:123456789012:document/KEY", "not that of a parameter"),
            ("arn:aws:ssm:eu-west-1::parameter/KEY", "not that of a parameter"),
            ("arn:aws:ssm", "not that of a parameter"),
            (&key, "looks like"),
            ("/team/KEY=x", "looks like"),
            (&"/a".repeat(MOST_LEVELS + 1), "more than 15 names"),
            (&long, "256 characters"),
            (&format!("{ARN}/team//KEY"), "no path"),
            (&format!("{ARN}s/KEY"), "not that of a parameter"),
            ("a/b", "no name"),
        ] {
            let (message, help) = secret_source_problem(text).unwrap();
            assert!(message.contains(why), "{text}: {message} {help}");
        }
    }
}
