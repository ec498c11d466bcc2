//! The user that the training command runs as, given in the form of Docker's `--user`.

use std::fmt;
use std::path::PathBuf;

use rustix::fs::{Gid, Uid};
use spotsweep_beneath::{Owner, Status, read_regular};

/// The largest file of accounts that is read. An image's has a few dozen lines.
const MOST_ACCOUNT_BYTES: u64 = 1024 * 1024;

/// A numeric identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) uid: Uid,
    pub(crate) gid: Gid,
    /// Supplementary groups.
    pub(crate) groups: Vec<Gid>,
}

impl User {
    /// The user that the runner itself runs as.
    pub(crate) fn own() -> Self {
        Self { uid: rustix::process::geteuid(), gid: rustix::process::getegid(), groups: Vec::new() }
    }

    /// This user and group as the owner of files.
    pub(crate) fn owner(&self) -> Owner {
        Owner { uid: self.uid.as_raw(), gid: self.gid.as_raw() }
    }

    /// Whether this user may read a file.
    pub(crate) fn can_read(&self, file: &Status) -> bool {
        let groups: Vec<u32> = self.groups.iter().chain([&self.gid]).map(|group| group.as_raw()).collect();
        file.is_readable_by(self.uid.as_raw(), &groups)
    }

    /// Finds `name`, `uid`, or either with `:group`, in the image's own `passwd` and `group`. A static binary cannot
    /// ask a name service. As in Docker, a uid without an entry belongs to group 0, and a named group replaces all
    /// others.
    pub(crate) fn find(text: &str, passwd: &str, group: &str) -> Result<Self, String> {
        let (user, named_group) = text.split_once(':').map_or((text, None), |(user, group)| (user, Some(group)));
        let account = entries(passwd).find(|fields| fields.first() == Some(&user) || fields.get(2) == Some(&user));
        let uid =
            account.as_ref().and_then(|fields| id(fields.get(2)?)).or_else(|| id(user)).ok_or_else(|| {
                format!("/etc/passwd has no user {user:?}; give a number, or add the user to the image")
            })?;
        let found_group = |name: &str| {
            let entry = entries(group).find(|fields| fields.first() == Some(&name));
            entry.and_then(|fields| id(fields.get(2)?)).or_else(|| id(name))
        };
        if let Some(name) = named_group {
            let gid = found_group(name).ok_or_else(|| {
                format!("/etc/group has no group {name:?}; give a number, or add the group to the image")
            })?;
            return Ok(Self { uid: Uid::from_raw(uid), gid: Gid::from_raw(gid), groups: Vec::new() });
        }
        let gid = account.as_ref().and_then(|fields| id(fields.get(3)?)).unwrap_or(0);
        let name = account.as_ref().and_then(|fields| fields.first().copied());
        let is_member = |fields: &Vec<&str>| {
            let members = fields.get(3).copied().unwrap_or_default();
            name.is_some_and(|name| members.split(',').any(|member| member == name))
        };
        let groups = entries(group).filter(is_member).filter_map(|fields| id(fields.get(2)?));
        Ok(Self { uid: Uid::from_raw(uid), gid: Gid::from_raw(gid), groups: groups.map(Gid::from_raw).collect() })
    }

    /// Parses what [`fmt::Display`] wrote.
    pub(crate) fn from_words(text: &str) -> Option<Self> {
        let mut ids = text.split(',').map(id);
        let (uid, gid) = (ids.next()??, ids.next()??);
        let groups = ids.map(|group| group.map(Gid::from_raw)).collect::<Option<_>>()?;
        Some(Self { uid: Uid::from_raw(uid), gid: Gid::from_raw(gid), groups })
    }
}

/// The numbers of the user, the group, and the other groups.
impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.uid.as_raw(), self.gid.as_raw())?;
        self.groups.iter().try_for_each(|group| write!(f, ",{}", group.as_raw()))
    }
}

/// The text of the image's `passwd` or `group`; empty if there is none.
pub(crate) fn accounts(path: &str) -> String {
    let text = read_regular(path.as_ref(), MOST_ACCOUNT_BYTES).unwrap_or_default();
    String::from_utf8_lossy(&text).into_owned()
}

/// What `passwd` contains about a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) home: PathBuf,
}

impl Account {
    /// The entry of a user; `None` for a uid without an entry.
    pub(crate) fn of(user: &User, passwd: &str) -> Option<Self> {
        let uid = user.uid.as_raw().to_string();
        let fields = entries(passwd).find(|fields| fields.get(2) == Some(&uid.as_str()))?;
        Some(Self { name: (*fields.first()?).to_owned(), home: PathBuf::from(fields.get(5)?) })
    }
}

fn entries(file: &str) -> impl Iterator<Item = Vec<&str>> {
    file.lines().map(|line| line.split(':').collect())
}

/// Parses an id. The highest number belongs to no user, because it means "leave it as it is" to the kernel.
fn id(text: &str) -> Option<u32> {
    text.parse().ok().filter(|number| *number != u32::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn users_are_read_as_docker_reads_them() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nana:x:1000:100:Ana:/home/ana:/bin/sh\n";
        let group = "root:x:0:\nusers:x:100:\nvideo:x:44:bob,ana\nrender:x:105:ana\n";
        let cases = [
            ("ana", Ok("1000,100,44,105")),
            ("1000", Ok("1000,100,44,105")),
            ("ana:video", Ok("1000,44")),
            ("ana:7", Ok("1000,7")),
            ("2000", Ok("2000,0")),
            ("2000:2001", Ok("2000,2001")),
            ("root", Ok("0,0")),
            ("bob", Err("no user \"bob\"")),
            ("", Err("no user")),
            ("-1", Err("no user")),
            ("4294967295", Err("no user")),
            ("ana:no-such-group", Err("no group \"no-such-group\"")),
            ("ana:", Err("no group")),
        ];
        for (text, expected) in cases {
            match (User::find(text, passwd, group), expected) {
                (Ok(user), Ok(words)) => {
                    assert_eq!(user.to_string(), words, "{text}");
                    assert_eq!(User::from_words(words), Some(user), "{text}");
                }
                (Err(problem), Err(part)) => assert!(problem.contains(part), "{text}: {problem}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
        assert_eq!(User::from_words("1000"), None);
        assert_eq!(User::from_words("1000,x"), None);
    }
}
