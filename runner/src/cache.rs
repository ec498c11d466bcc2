//! The sweep's part of the instance's cache of packages, for `setup`.
//!
//! The job mounts a folder of the instance. In it each sweep has a folder of its own, so that a training puts packages
//! only before trials of its own sweep. The trainings of all sweeps have the same user. So the runner mounts the
//! sweep's folder over the whole cache, which is then out of the container's sight.

use std::io;
use std::path::Path;

use rustix::mount::mount_bind;
use spotsweep_beneath::Folder;

use crate::config::Config;
use crate::exit::Failure;
use crate::user::User;

/// Each sweep's folder belongs to the training. No other user lists the folders.
const OF_ALL: u32 = 0o711;
const OF_SWEEP: u32 = 0o700;
/// The variables of the tools that `setup` calls most:
/// <https://docs.astral.sh/uv/reference/environment/#uv_cache_dir>,
/// <https://pip.pypa.io/en/stable/topics/configuration/#environment-variables>.
const TOOLS: [(&str, &str); 2] = [("UV_CACHE_DIR", "uv"), ("PIP_CACHE_DIR", "pip")];

/// Leaves only the sweep's part of the cache in sight, if the job mounts a cache. Call it before any program runs that
/// the training's user starts.
pub(crate) fn narrow(config: &Config) -> Result<(), Failure> {
    let Some(cache) = &config.cache else { return Ok(()) };
    let narrowed = || {
        let all = Folder::trusted(cache)?;
        all.set_mode(OF_ALL)?;
        let own = all.make_folder(config.sweep.as_ref())?;
        own.give_to(config.user.clone().unwrap_or_else(User::own).owner())?;
        own.set_mode(OF_SWEEP)?;
        Ok::<_, io::Error>(mount_bind(cache.join(&config.sweep), cache)?)
    };
    narrowed().map_err(|source| Failure::System("mount the sweep's cache of packages", source))
}

/// The variables by which the tools find the cache. Values of the job or of the sweep file stay.
pub(crate) fn variables(cache: &Path, inherited: &dyn Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    let unset = TOOLS.iter().filter(|(name, _)| inherited(name).is_none());
    unset.map(|(name, folder)| ((*name).to_owned(), cache.join(folder).to_string_lossy().into_owned())).collect()
}
