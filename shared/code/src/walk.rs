//! Looks at each file of a folder, and decides by its path whether it is packed.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use ignore::gitignore::Gitignore;
use spotsweep_beneath::{Entry, Folder, Kind, Status};

use crate::content::Content;
use crate::error::ListError;
use crate::item::{Item, content_of};
use crate::left_out::{LeftOut, Reason};
use crate::names::{self, LONGEST_PATH, MOST_ENTRIES, TEMPORARY, escaped};
use crate::rules::{self, Rules};

/// The start of a `CACHEDIR.TAG` (<https://bford.info/cachedir/>).
const CACHE_TAG: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";

/// A file or link that its path does not leave out.
pub(crate) struct Found {
    pub(crate) item: Item,
    /// Whether `include` matches it or a folder above it.
    pub(crate) is_included: bool,
    /// Whether `include` matches it itself.
    pub(crate) is_named: bool,
}

pub(crate) struct Walk<'a> {
    /// The absolute path of the folder.
    root: &'a Path,
    rules: &'a Rules,
    /// The ignore files that count here. The later ones decide.
    layers: Vec<Gitignore>,
    found: Vec<Found>,
    left_out: Vec<LeftOut>,
}

/// What happens to a folder.
enum Descent {
    /// It is packed.
    All,
    /// Only what `include` matches is packed.
    Included,
    /// Nothing is packed.
    Nothing,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(root: &'a Path, rules: &'a Rules) -> Self {
        Self { root, rules, layers: rules.around.clone(), found: Vec::new(), left_out: Vec::new() }
    }

    pub(crate) fn run(mut self, folder: &Folder) -> Result<(Vec<Found>, Vec<LeftOut>), ListError> {
        self.folder(folder, Path::new(""), true)?;
        Ok((self.found, self.left_out))
    }

    /// Looks at a folder. Unless `all` is set, only what `include` matches is packed.
    fn folder(&mut self, folder: &Folder, path: &Path, all: bool) -> Result<(), ListError> {
        let count = self.layers.len();
        if all {
            self.layers.extend(rules::ignore_files(folder, &self.root.join(path), path)?);
        }
        for entry in folder.entries().map_err(|source| unreadable(path, source))? {
            // Git's own, and what an interrupted unpacking has left.
            let is_never = entry.name == ".git" || (entry.name == TEMPORARY && path.as_os_str().is_empty());
            if is_never {
                continue;
            }
            let below = path.join(&entry.name);
            if entry.status.kind != Kind::Folder {
                self.file(folder, &entry, &below, all)?;
                continue;
            }
            if below.as_os_str().len() > LONGEST_PATH {
                check_name(&below)?;
            }
            let opened = folder.folder(Path::new(&entry.name)).map_err(|source| unreadable(&below, source))?;
            match self.descent(&opened, &entry, &below, all) {
                Descent::Nothing => {}
                Descent::Included => self.folder(&opened, &below, false)?,
                Descent::All => self.folder(&opened, &below, true)?,
            }
        }
        self.layers.truncate(count);
        Ok(())
    }

    fn descent(&mut self, folder: &Folder, entry: &Entry, path: &Path, all: bool) -> Descent {
        if let Some(reason) = self.rules.excluded(path, true) {
            return self.without(path, reason, all);
        }
        let made = made_folder(folder, entry);
        if let Some(what) = made.filter(|_| !self.rules.includes_itself(path, true)) {
            return self.without(path, Reason::Made { what }, all);
        }
        let ignored = if all { rules::ignored(&self.layers, &self.root.join(path), true) } else { None };
        if all && ignored.is_none() {
            return Descent::All;
        }
        let is_included = self.rules.includes(path, true);
        if let Some(reason) = ignored.filter(|_| !is_included) {
            self.without(path, reason, true);
        }
        if is_included || self.rules.may_include_below(path) { Descent::Included } else { Descent::Nothing }
    }

    fn file(&mut self, folder: &Folder, entry: &Entry, path: &Path, all: bool) -> Result<(), ListError> {
        let is_included = self.rules.includes(path, false);
        let reason = self.rules.excluded(path, false).or_else(|| {
            if is_included {
                return None;
            }
            let is_compiled = path.extension().is_some_and(|ending| ending == "pyc");
            let made = is_compiled.then_some(Reason::Made { what: "compiled Python" });
            made.or_else(|| rules::ignored(&self.layers, &self.root.join(path), false))
        });
        if let Some(reason) = reason {
            self.without(path, reason, all);
            return Ok(());
        }
        if !all && !is_included {
            return Ok(());
        }
        let (content, modified_ns) = match entry.status {
            Status { kind: Kind::Link, .. } => match link(folder, entry, path)? {
                Ok(content) => (content, 0),
                Err(reason) => {
                    self.without(path, reason, true);
                    return Ok(());
                }
            },
            Status { kind: Kind::Other, .. } => {
                self.without(path, Reason::Special, true);
                return Ok(());
            }
            status => (content_of(&status), status.modified_ns),
        };
        let item = Item { path: check_name(path)?.to_owned(), content, modified_ns };
        if self.found.len() == MOST_ENTRIES {
            return Err(ListError::TooMany);
        }
        self.found.push(Found { item, is_included, is_named: self.rules.includes_itself(path, false) });
        Ok(())
    }

    /// Notes what is left out, unless the folder around it is noted already.
    fn without(&mut self, path: &Path, reason: Reason, is_noted: bool) -> Descent {
        if is_noted {
            self.left_out.push(LeftOut { path: shown(path), reason });
        }
        Descent::Nothing
    }
}

/// Returns what kind of folder it is, if a tool makes it again.
fn made_folder(folder: &Folder, entry: &Entry) -> Option<&'static str> {
    let has = |name: &str| folder.status(Path::new(name)).is_ok_and(|status| status.kind == Kind::File);
    let is_tagged = || {
        let mut start = [0; CACHE_TAG.len()];
        let file = folder.open(Path::new("CACHEDIR.TAG"));
        file.and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == CACHE_TAG
    };
    match entry.name.as_encoded_bytes() {
        b"__pycache__" => Some("compiled Python"),
        b"node_modules" => Some("a folder of installed packages"),
        b".ipynb_checkpoints" => Some("a folder of earlier notebooks"),
        _ if has("pyvenv.cfg") => Some("a virtual environment of Python"),
        _ if is_tagged() => Some("a cache, as its CACHEDIR.TAG says"),
        _ => None,
    }
}

fn link(folder: &Folder, entry: &Entry, path: &Path) -> Result<Result<Content, Reason>, ListError> {
    let target: PathBuf = folder.read_link(Path::new(&entry.name)).map_err(|source| unreadable(path, source))?;
    let text = target.to_str().filter(|target| path.to_str().is_some_and(|path| names::stays_inside(path, target)));
    Ok(text.map(|target| Content::Link { target: target.to_owned() }).ok_or(Reason::LinkOut { target: shown(&target) }))
}

fn check_name(path: &Path) -> Result<&str, ListError> {
    let refused = |why| ListError::Name { path: shown(path), why };
    let text = path.to_str().ok_or_else(|| refused("its name is not UTF-8"))?;
    names::problem(text).map_or(Ok(text), |why| Err(refused(why)))
}

fn unreadable(path: &Path, source: std::io::Error) -> ListError {
    let path = if path.as_os_str().is_empty() { ".".to_owned() } else { shown(path) };
    ListError::Read { path, source }
}

fn shown(path: &Path) -> String {
    escaped(path.as_os_str().as_encoded_bytes())
}
