//! Training code from git, at one commit for all attempts of the trial.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spotsweep_beneath::Folder;
use spotsweep_protocol::cause::chain;
use spotsweep_protocol::claim::CodeGrant;
use spotsweep_protocol::redact::{Secrets, shown};
use spotsweep_seal::OWN;
use tokio::process::Command;
use tokio::time::sleep;

use crate::exit::Failure;
use crate::launch::Launcher;
use crate::log::say;

const FOLDER: &str = "code";
/// Which commit the trial's first attempt found.
const PIN: &str = "code.json";
const MOST_PIN_BYTES: u64 = 64 * 1024;
/// How a shell, and the launch step, tell of a missing program.
const NO_PROGRAM: i32 = 127;
/// Before each further try: networks have their moments.
const FETCH_PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];
/// How much of git's words goes into the log.
const SHOWN_CHARS: usize = 2000;

/// Why there is no code.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CodeError {
    #[error("the image has no git: add it to the image, or put the code into the image and leave `code` out")]
    NoGit,
    #[error("`code` names {0:?}; neither url nor ref may start with a dash")]
    Dash(String),
    #[error("git {action} failed for {url}: {text}")]
    Git { action: &'static str, url: String, text: String },
    #[error("cannot use {0}")]
    Folder(PathBuf, #[source] io::Error),
}

impl From<CodeError> for Failure {
    fn from(error: CodeError) -> Self {
        Self::Code(Box::new(error))
    }
}

/// What the first attempt wrote down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Pin {
    git: String,
    #[serde(rename = "ref")]
    reference: Option<String>,
    commit: String,
}

/// A repository on its way into a folder. Git runs as the command will: what an earlier attempt
/// has left in the folder, hooks for instance, gets no more rights than it had.
struct Checkout<'a> {
    grant: &'a CodeGrant,
    folder: PathBuf,
    launcher: &'a Launcher,
}

/// Puts the code into the runner's own folder below `workspace`, and returns its folder. A reference that moves is resolved once:
/// attempts after the first run the commit that the first one ran.
pub(crate) async fn fetch(grant: &CodeGrant, workspace: &Path, launcher: &Launcher) -> Result<PathBuf, CodeError> {
    let names = [Some(&grant.git), grant.reference.as_ref()];
    if let Some(name) = names.into_iter().flatten().find(|name| name.starts_with('-')) {
        return Err(CodeError::Dash(shown(name)));
    }
    let checkout = Checkout { grant, folder: workspace.join(OWN).join(FOLDER), launcher };
    let failed = |source| CodeError::Folder(checkout.folder.clone(), source);
    let own = Folder::trusted(workspace).and_then(|workspace| workspace.make_folder(OWN.as_ref())).map_err(failed)?;
    make_folder(&own, launcher.user()).map_err(failed)?;
    let pinned = read_pin(&own);
    let pinned = pinned.filter(|pinned| pinned.git == grant.git && pinned.reference == grant.reference);
    let commit = match pinned {
        Some(pinned) => {
            checkout.have(&pinned.commit).await?;
            pinned.commit
        }
        None => {
            let commit = checkout.resolve().await?;
            let text = Pin { git: grant.git.clone(), reference: grant.reference.clone(), commit: commit.clone() };
            let text = serde_json::to_vec(&text).map_err(io::Error::from);
            text.and_then(|text| own.write(PIN.as_ref(), &text)).map_err(failed)?;
            commit
        }
    };
    checkout.git("checkout", &["checkout", "--quiet", "--force", "--detach", &commit]).await?;
    say(&format!("code: {} at {commit}", shown(&grant.git)));
    Ok(checkout.folder)
}

fn make_folder(own: &Folder, user: Option<&crate::user::User>) -> io::Result<()> {
    let folder = own.make_folder(FOLDER.as_ref())?;
    user.map_or(Ok(()), |user| folder.give_to(user.owner()))
}

fn read_pin(own: &Folder) -> Option<Pin> {
    let mut text = Vec::new();
    own.open(PIN.as_ref()).ok()?.take(MOST_PIN_BYTES).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

impl Checkout<'_> {
    /// The commit that the reference names now.
    async fn resolve(&self) -> Result<String, CodeError> {
        self.git("init", &["init", "--quiet"]).await?;
        let reference = self.grant.reference.as_deref().unwrap_or("HEAD");
        // One commit is enough for a branch, a tag, or a whole commit id.
        let shallow = ["fetch", "--quiet", "--no-tags", "--depth=1", "--", &self.grant.git, reference];
        if self.git("fetch", &shallow).await.is_ok() {
            return self.commit("FETCH_HEAD").await;
        }
        // Some servers give commits out only with their branch, and a short id is known to none.
        self.fetch_all().await?;
        match self.commit(&format!("refs/remotes/origin/{reference}")).await {
            Ok(commit) => Ok(commit),
            Err(_) => self.commit(reference).await,
        }
    }

    /// Makes sure that the pinned commit is here.
    async fn have(&self, commit: &str) -> Result<(), CodeError> {
        self.git("init", &["init", "--quiet"]).await?;
        if self.commit(commit).await.is_ok() {
            return Ok(());
        }
        let shallow = ["fetch", "--quiet", "--no-tags", "--depth=1", "--", &self.grant.git, commit];
        match self.git("fetch", &shallow).await {
            Ok(_) => Ok(()),
            Err(_) => self.fetch_all().await,
        }
    }

    async fn fetch_all(&self) -> Result<(), CodeError> {
        let all = ["+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"];
        let fetch = ["fetch", "--quiet", "--", &self.grant.git, all[0], all[1]];
        for pause in FETCH_PAUSES {
            match self.git("fetch", &fetch).await {
                Ok(_) => return Ok(()),
                Err(error) => say(&format!("{}; trying again in {pause:?}", chain(&error))),
            }
            sleep(pause).await;
        }
        self.git("fetch", &fetch).await.map(drop)
    }

    async fn commit(&self, name: &str) -> Result<String, CodeError> {
        self.git("rev-parse", &["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")]).await
    }

    /// Runs git in the folder; returns what it says.
    async fn git(&self, action: &'static str, arguments: &[&str]) -> Result<String, CodeError> {
        let words: Vec<_> = ["git"].iter().chain(arguments).map(|word| (*word).to_owned()).collect();
        let run = || async {
            let mut command = Command::from(self.launcher.command(&words)?);
            // Nobody is there to answer a question for a password.
            command.current_dir(&self.folder).env("GIT_TERMINAL_PROMPT", "0").stdin(std::process::Stdio::null());
            command.kill_on_drop(true).output().await
        };
        let Output { status, stdout, stderr } =
            run().await.map_err(|source| CodeError::Folder(self.folder.clone(), source))?;
        if status.success() {
            return Ok(String::from_utf8_lossy(&stdout).trim().to_owned());
        }
        if status.code() == Some(NO_PROGRAM) {
            return Err(CodeError::NoGit);
        }
        let said: String = String::from_utf8_lossy(&stderr).trim().chars().take(SHOWN_CHARS).collect();
        let text = if said.is_empty() { format!("no such branch, tag or commit ({arguments:?})") } else { said };
        let text = Secrets::of(&self.grant.git).hide(&text);
        Err(CodeError::Git { action, url: shown(&self.grant.git), text })
    }
}
