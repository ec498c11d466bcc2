//! What opens a private repository for git: a token, or a private key.
//!
//! The token is in a variable of git's process and in no file, and git asks for it only on behalf of the repository's
//! host (<https://git-scm.com/docs/gitcredentials>). A key has to be in a file. It is deleted once the code is there.

use std::io::{self, Write as _};
use std::os::unix::fs::fchown;
use std::path::Path;

use tempfile::{NamedTempFile, TempPath};

use crate::launch::Launcher;

const TOKEN: &str = "SPOTSWEEP_GIT_TOKEN";
const USER: &str = "SPOTSWEEP_GIT_USER";
/// The user name that git sends with a token, if the secret has no user name. GitHub and GitLab accept any.
const ANY_USER: &str = "x-access-token";
const HELPER: &str = r#"!f() { test "$1" = get && printf 'username=%s\npassword=%s\n' "$SPOTSWEEP_GIT_USER" "$SPOTSWEEP_GIT_TOKEN"; }; f"#;

/// Settings and variables of each call of git.
#[derive(Default)]
pub(super) struct Credentials {
    pub(super) settings: Vec<String>,
    pub(super) variables: Vec<(&'static str, String)>,
    /// The file of the key, which is deleted with this.
    _key: Option<TempPath>,
}

impl Credentials {
    /// Credentials for the repository at `url`. A key is written into `folder`, for the training's user.
    pub(super) fn new(url: &str, secret: &str, folder: &Path, launcher: &Launcher) -> io::Result<Self> {
        let secret = secret.trim();
        if secret.contains("PRIVATE KEY-----") {
            Self::key(secret, folder, launcher)
        } else {
            Ok(Self::token(url, secret))
        }
    }

    fn token(url: &str, secret: &str) -> Self {
        let (user, token) = secret.split_once(':').unwrap_or((ANY_USER, secret));
        let (scheme, rest) = url.split_once("://").unwrap_or(("https", url));
        let host = rest.split('/').next().unwrap_or_default();
        // An empty helper removes those of the image.
        let settings = ["credential.helper=".to_owned(), format!("credential.{scheme}://{host}.helper={HELPER}")];
        let variables = [(USER, user.to_owned()), (TOKEN, token.to_owned())];
        Self { settings: settings.into(), variables: variables.into(), _key: None }
    }

    fn key(secret: &str, folder: &Path, launcher: &Launcher) -> io::Result<Self> {
        // The file is its owner's alone, as ssh demands, and ssh demands a line break at its end.
        let mut file = NamedTempFile::new_in(folder)?;
        writeln!(file, "{secret}")?;
        if let Some(user) = launcher.user() {
            let owner = user.owner();
            fchown(file.as_file(), Some(owner.uid), Some(owner.gid))?;
        }
        let key = file.into_temp_path();
        // The host's key is not known in a new container, so the first one is taken.
        let ssh = format!(
            "ssh -i '{}' -o IdentitiesOnly=yes -o BatchMode=yes -o StrictHostKeyChecking=accept-new -o \
             UserKnownHostsFile=/dev/null",
            key.display()
        );
        Ok(Self { settings: Vec::new(), variables: vec![("GIT_SSH_COMMAND", ssh)], _key: Some(key) })
    }
}
