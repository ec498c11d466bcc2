//! What programs expect in their environment and ECS does not set: a home, a name and a region.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};

use crate::user::{Account, User};

/// The name of a user without an entry in `passwd`.
const UNNAMED: &str = "trial";
const REGIONS: [&str; 2] = ["AWS_REGION", "AWS_DEFAULT_REGION"];

/// Reads a variable of the sweep file's `env`, or of the runner's own environment.
pub(crate) type Inherited<'a> = &'a dyn Fn(&str) -> Option<String>;

/// `HOME`, `USER` and `LOGNAME` of the user that the command runs as. A process whose uid was changed keeps root's.
/// Then caches below `~` cannot be written, and `getpass.getuser()` fails without a `passwd` entry (fact 39).
pub(crate) fn identity(user: &User, passwd: &str, scratch: &Path, inherited: Inherited<'_>) -> Vec<(String, String)> {
    let account = Account::of(user, passwd);
    let named = inherited("HOME").map(PathBuf::from);
    let homes = named.into_iter().chain(account.as_ref().map(|account| account.home.clone()));
    let home = homes.into_iter().find(|home| can_write(home, user)).unwrap_or_else(|| scratch.to_owned());
    let name = account.map_or_else(|| UNNAMED.to_owned(), |account| account.name);
    let home = home.to_string_lossy().into_owned();
    [("HOME", home), ("USER", name.clone()), ("LOGNAME", name)].map(|(key, value)| (key.to_owned(), value)).to_vec()
}

/// The region for AWS's SDKs in the command, if neither the job nor the ECS agent sets one (fact 38).
pub(crate) fn region(region: Option<&str>, inherited: Inherited<'_>) -> Vec<(String, String)> {
    let set = |name: &str| inherited(name).filter(|value| !value.is_empty());
    let Some(region) = REGIONS.into_iter().find_map(set).or_else(|| region.map(str::to_owned)) else {
        return Vec::new();
    };
    REGIONS.map(|name| (name.to_owned(), set(name).unwrap_or_else(|| region.clone()))).to_vec()
}

/// `PATH` with the folder for the programs that `pip install` puts below the home, behind all others.
pub(crate) fn own_programs(variables: &[(String, String)], inherited: Inherited<'_>) -> Option<(String, String)> {
    let own = |wanted: &str| variables.iter().rev().find(|(name, _)| name == wanted).map(|(_, value)| value.clone());
    let home = own("HOME").or_else(|| inherited("HOME"))?;
    let path = own("PATH").or_else(|| inherited("PATH")).filter(|path| !path.is_empty());
    let own = format!("{home}/.local/bin");
    Some(("PATH".to_owned(), path.map_or(own.clone(), |path| format!("{path}:{own}"))))
}

/// Whether the user may make files in a folder: by its mode, and if its file system can be written.
#[expect(clippy::disallowed_methods, reason = "nothing is opened")]
fn can_write(folder: &Path, user: &User) -> bool {
    let (Ok(found), Ok(system)) = (fs::metadata(folder), statvfs(folder)) else { return false };
    if !found.is_dir() || system.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return false;
    }
    let groups = user.groups.iter().chain([&user.gid]);
    let wanted = if found.uid() == user.uid.as_raw() {
        0o300
    } else if groups.into_iter().any(|group| group.as_raw() == found.gid()) {
        0o030
    } else {
        0o003
    };
    user.uid.is_root() || found.permissions().mode() & wanted == wanted
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
#[allow(clippy::disallowed_methods, reason = "works in a temporary folder")]
mod tests {
    use rustix::fs::{Gid, Uid};

    use super::*;

    #[test]
    fn a_home_is_one_that_the_user_can_write() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str, mode: u32| {
            let path = folder.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let (closed, open) = (at("closed", 0o755), at("open", 0o777));
        let scratch = folder.path().join("scratch");
        let user = User { uid: Uid::from_raw(43_210), gid: Gid::from_raw(43_211), groups: Vec::new() };
        let entry =
            |home: &Path| format!("root:x:0:0:root:/root:/bin/sh\nana:x:43210:43211::{}:/bin/sh\n", home.display());
        // The inherited HOME, passwd, and the variables of the command.
        let cases = [
            (Some(&closed), entry(&open), &open, "ana"),
            (Some(&open), entry(&closed), &open, "ana"),
            (Some(&closed), entry(&closed), &scratch, "ana"),
            (None, entry(&folder.path().join("none")), &scratch, "ana"),
            (Some(&closed), String::new(), &scratch, "trial"),
        ];
        for (home, passwd, expected, name) in cases {
            let inherited =
                |wanted: &str| (wanted == "HOME").then(|| home.map(|home| home.display().to_string())).flatten();
            let found = identity(&user, &passwd, &scratch, &inherited);
            let expected = [("HOME", expected.display().to_string()), ("USER", name.into()), ("LOGNAME", name.into())];
            assert_eq!(found, expected.map(|(key, value)| (key.to_owned(), value)), "{home:?} {passwd}");
        }
    }

    #[test]
    fn both_variables_name_the_region_and_the_jobs_own_win() {
        let of = |own: &[(&str, &str)], region: Option<&str>| {
            let own: Vec<_> = own.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let inherited =
                move |wanted: &str| own.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone());
            super::region(region, &inherited).into_iter().map(|(_, value)| value).collect::<Vec<_>>()
        };
        assert_eq!(of(&[], Some("eu-west-1")), ["eu-west-1", "eu-west-1"]);
        assert_eq!(of(&[("AWS_DEFAULT_REGION", "us-east-2")], Some("eu-west-1")), ["us-east-2", "us-east-2"]);
        assert_eq!(of(&[("AWS_REGION", "us-east-2")], Some("eu-west-1")), ["us-east-2", "us-east-2"]);
        assert!(of(&[], None).is_empty());
    }
}
