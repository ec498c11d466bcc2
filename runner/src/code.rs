//! Training code from git, at one commit for all attempts of the trial.
//!
//! Git runs as the training's user, with the training's view of the devices. The training may have changed everything
//! in the checkout, so a later attempt takes only objects and files of the working tree from it, as data. Each attempt
//! has its own repository, which only this attempt writes. So hooks, filters and programs that a training has put into
//! its repository's settings do not run.

mod credentials;
mod git;
pub(crate) mod packed;

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_sdk_s3::error::SdkError;
use aws_sdk_s3::operation::get_object::GetObjectError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use spotsweep_beneath::Folder;
use spotsweep_protocol::cause::chain;
use spotsweep_protocol::claim::Git;
use spotsweep_protocol::redact::{Secrets, shown};
use spotsweep_seal::OWN;
use tokio::process::Command;
use tokio::time::{Instant, sleep};

use self::credentials::Credentials;
use self::git::{Changed, Said, change, led_elsewhere, run};
use crate::exit::Failure;
use crate::launch::Launcher;
use crate::log::{mask, say};
use crate::workspace::free_name;

const FOLDER: &str = "code";
const REPOSITORY: &str = ".git";
/// An attempt's own repository, in its temporary folder.
const OF_THE_ATTEMPT: &str = "code.git";
/// Where the runner moves a checkout that an attempt cannot use, in the runner's own folder.
const ASIDE: &str = "torn/code";
/// The file with the commit that the trial's first attempt found.
const PIN: &str = "code.json";
const MOST_PIN_BYTES: u64 = 64 * 1024;
/// The exit code of a shell and of the launch step for a missing program.
const NO_PROGRAM: i32 = 127;
/// Pauses before each further try: network errors are often short.
const FETCH_PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];
/// The limit for everything, from the first call of git to the last one.
const LIMIT: Duration = Duration::from_secs(900);
/// The limit for a checkout of an earlier attempt's files: one of them may be a pipe, which blocks git.
const KEPT_LIMIT: Duration = Duration::from_secs(60);
/// How many characters of git's output go into the log.
const SHOWN_CHARS: usize = 2000;
/// They override the image's own settings, so that git starts no program that outlives the call or that the checkout
/// names.
const SETTINGS: [&str; 5] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
];

/// Why there is no code.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CodeError {
    #[error("the image has no git: add it to the image, or put the code into the image and leave `code` out")]
    NoGit,
    #[error("`code` names {0:?}; neither url nor ref may start with a dash")]
    Dash(String),
    #[error("git {action} failed for {url}: {text}")]
    Git { action: &'static str, url: String, text: String },
    #[error("git {action} for {url} had no end after {} s: it is ended", limit.as_secs())]
    Endless { action: &'static str, url: String, limit: Duration },
    #[error("the packed folder s3://{bucket}/{key} could not be read")]
    Get { bucket: String, key: String, source: Box<SdkError<GetObjectError>> },
    #[error("the packed folder could not be unpacked: {0}")]
    Unpack(String),
    #[error("cannot use {0}")]
    Folder(PathBuf, #[source] io::Error),
}

impl From<CodeError> for Failure {
    fn from(error: CodeError) -> Self {
        Self::Code(Box::new(error))
    }
}

/// What the first attempt has written to `code.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Pin {
    git: String,
    #[serde(rename = "ref")]
    reference: Option<String>,
    commit: String,
}

/// A working tree and a repository for it.
struct Checkout<'a> {
    grant: &'a Git,
    launcher: &'a Launcher,
    changed: &'a Changed,
    credentials: &'a Credentials,
    folder: PathBuf,
    repository: PathBuf,
    /// The folder of the objects, if it is not in the repository.
    objects: Option<PathBuf>,
    until: Instant,
}

/// The folders of an attempt.
pub(crate) struct Place<'a> {
    /// The workspace, in which the runner has a folder of its own.
    pub(crate) workspace: &'a Path,
    /// The storage folders. Their content may outlive an attempt, too.
    pub(crate) storage: &'a Path,
    /// A folder of the training that is deleted with the attempt.
    pub(crate) temporary: PathBuf,
    /// The same of the runner.
    pub(crate) scratch: &'a Path,
}

impl Place<'_> {
    /// The runner's own folder on the workspace.
    fn own(&self) -> io::Result<Folder> {
        Folder::trusted(self.workspace)?.make_folder(OWN.as_ref())
    }
}

/// Puts the code into the runner's own folder on the workspace, and returns its folder. A reference that moves is
/// resolved once, so that all later attempts run the commit of the first one.
/// `secret` opens a private repository.
pub(crate) async fn fetch(
    (grant, secret): (&Git, Option<&str>),
    place: &Place<'_>,
    launcher: &Launcher,
) -> Result<PathBuf, CodeError> {
    let names = [Some(&grant.git), grant.reference.as_ref()];
    if let Some(name) = names.into_iter().flatten().find(|name| name.starts_with('-')) {
        return Err(CodeError::Dash(shown(name)));
    }
    let folder = place.workspace.join(OWN).join(FOLDER);
    let at = folder.clone();
    let failed = |source| CodeError::Folder(at.clone(), source);
    let own = place.own().map_err(failed)?;
    let pinned = read_pin(&own).filter(|pinned: &Pin| pinned.git == grant.git && pinned.reference == grant.reference);
    let changed = led_elsewhere(std::env::vars_os(), &[place.workspace, place.storage]);
    let repository = folder.join(REPOSITORY);
    let until = Instant::now() + LIMIT;
    let credentials = secret.map(|secret| Credentials::new(&grant.git, secret, &place.temporary, launcher));
    let credentials = &credentials.transpose().map_err(failed)?.unwrap_or_default();
    let new = Checkout { grant, launcher, changed: &changed, credentials, folder, repository, objects: None, until };
    if own.status(FOLDER.as_ref()).is_ok() {
        if let Some(Pin { commit, .. }) = &pinned {
            let temporary = Folder::trusted(&place.temporary);
            temporary.and_then(|temporary| make(&temporary, OF_THE_ATTEMPT, launcher)).map_err(failed)?;
            let repository = place.temporary.join(OF_THE_ATTEMPT);
            match new.again(repository).check_out(commit).await {
                Ok(()) => return Ok(new.folder),
                Err(CodeError::NoGit) => return Err(CodeError::NoGit),
                Err(error) => say(&format!("the code on the workspace does not serve: {}", chain(&error))),
            }
        }
        put_aside(&own).map_err(failed)?;
    }
    make(&own, FOLDER, launcher).map_err(failed)?;
    let commit = new.get(&own, pinned).await?;
    new.check_out(&commit).await?;
    Ok(new.folder)
}

/// Moves the code that an attempt cannot use.
fn put_aside(own: &Folder) -> io::Result<()> {
    let aside = free_name(own, ASIDE)?;
    own.rename(FOLDER.as_ref(), &aside)?;
    say(&format!("the code on the workspace is put aside in {OWN}/{}", aside.display()));
    Ok(())
}

/// Makes a folder that the training's user owns.
fn make(parent: &Folder, name: &str, launcher: &Launcher) -> io::Result<()> {
    let folder = parent.make_folder(name.as_ref())?;
    launcher.user().map_or(Ok(()), |user| folder.give_to(user.owner()))
}

/// Writes which code the trial's attempts run.
fn write_pin(own: &Folder, pin: &impl Serialize) -> io::Result<()> {
    own.write(PIN.as_ref(), &serde_json::to_vec(pin)?)
}

fn read_pin<P: DeserializeOwned>(own: &Folder) -> Option<P> {
    let mut text = Vec::new();
    own.open(PIN.as_ref()).ok()?.take(MOST_PIN_BYTES).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

impl Checkout<'_> {
    /// The same working tree and its objects, with this attempt's own repository.
    fn again(&self, repository: PathBuf) -> Checkout<'_> {
        let objects = Some(self.repository.join("objects"));
        let until = self.until.min(Instant::now() + KEPT_LIMIT);
        Checkout { folder: self.folder.clone(), repository, objects, until, ..*self }
    }

    /// Fetches the commit into a new repository. A reference is resolved, and its commit is written into `own`.
    async fn get(&self, own: &Folder, pinned: Option<Pin>) -> Result<String, CodeError> {
        self.git("init", &["init", "--quiet"]).await?;
        let Some(Pin { commit, .. }) = pinned else {
            let commit = self.resolve().await?;
            let Self { grant: Git { git, reference }, .. } = self;
            let pin = Pin { git: git.clone(), reference: reference.clone(), commit: commit.clone() };
            return write_pin(own, &pin)
                .map(|()| commit)
                .map_err(|source| CodeError::Folder(self.folder.clone(), source));
        };
        if self.fetch_one(&commit).await.is_err() {
            self.fetch_all().await?;
        }
        Ok(commit)
    }

    async fn check_out(&self, commit: &str) -> Result<(), CodeError> {
        self.git("init", &["init", "--quiet"]).await?;
        self.git("checkout", &["checkout", "--quiet", "--force", "--detach", commit]).await?;
        say(&format!("code: {} at {commit}", shown(&self.grant.git)));
        Ok(())
    }

    /// The commit that the reference names now.
    async fn resolve(&self) -> Result<String, CodeError> {
        let reference = self.grant.reference.as_deref().unwrap_or("HEAD");
        if self.fetch_one(reference).await.is_ok() {
            return self.commit("FETCH_HEAD").await;
        }
        // Some servers send a commit only with its branch, and no server resolves a short id.
        self.fetch_all().await?;
        match self.commit(&format!("refs/remotes/origin/{reference}")).await {
            Ok(commit) => Ok(commit),
            Err(_) => self.commit(reference).await,
        }
    }

    /// Fetches only one commit, by a branch, a tag, or a whole commit id.
    async fn fetch_one(&self, reference: &str) -> Result<String, CodeError> {
        let shallow = ["fetch", "--quiet", "--no-tags", "--depth=1", "--", &self.grant.git, reference];
        self.git("fetch", &shallow).await
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

    /// Runs git in the folder and returns its output.
    async fn git(&self, action: &'static str, arguments: &[&str]) -> Result<String, CodeError> {
        let own = self.credentials.settings.iter().map(String::as_str);
        let settings = SETTINGS.into_iter().chain(own).flat_map(|setting| ["-c", setting]);
        let words = ["git"].into_iter().chain(settings).chain(arguments.iter().copied());
        let words: Vec<_> = words.map(str::to_owned).collect();
        let failed = |source| CodeError::Folder(self.folder.clone(), source);
        let mut command = Command::from(self.launcher.command(&words).map_err(failed)?);
        change(&mut command, self.changed);
        command.current_dir(&self.folder).env("GIT_DIR", &self.repository).env("GIT_WORK_TREE", &self.folder);
        command.envs(self.objects.as_ref().map(|objects| ("GIT_OBJECT_DIRECTORY", objects)));
        command.envs(self.credentials.variables.iter().cloned());
        // Git must fail instead of asking for a password.
        command.env("GIT_TERMINAL_PROMPT", "0");
        let url = || shown(&self.grant.git);
        let limit = self.until.saturating_duration_since(Instant::now());
        let Some(Said { status, stdout, stderr }) = run(command, limit).await.map_err(failed)? else {
            return Err(CodeError::Endless { action, url: url(), limit });
        };
        if status.success() {
            return Ok(String::from_utf8_lossy(&stdout).trim().to_owned());
        }
        if status.code() == Some(NO_PROGRAM) {
            return Err(CodeError::NoGit);
        }
        let said: String = String::from_utf8_lossy(&stderr).trim().chars().take(SHOWN_CHARS).collect();
        let text = if said.is_empty() { format!("no such branch, tag or commit ({arguments:?})") } else { said };
        Err(CodeError::Git { action, url: url(), text: Secrets::of(&self.grant.git).hide(&mask().hide(&text)) })
    }
}
