//! Which paths and links an archive may have. Packing and unpacking use the same rules.

/// The most files and links in an archive.
pub const MOST_ENTRIES: usize = 1_000_000;
/// The longest path in bytes. Linux's `PATH_MAX` is 4096, and the folder that the code is unpacked into takes its part.
pub(crate) const LONGEST_PATH: usize = 3_800;
/// Unpacking writes each file under this name first.
pub(crate) const TEMPORARY: &str = ".spotsweep-unpacking";

/// Returns why a path cannot be in an archive.
pub(crate) fn problem(path: &str) -> Option<&'static str> {
    let mut names = path.split('/');
    if path.is_empty() {
        Some("it has no name")
    } else if path.starts_with('/') {
        Some("its path is absolute")
    } else if path.len() > LONGEST_PATH {
        Some("its path is longer than 3 800 bytes")
    } else if path.chars().any(char::is_control) {
        Some("its name has a control character")
    } else if names.any(|name| matches!(name, "" | "." | "..")) {
        Some("its path has an empty name, `.` or `..`")
    } else if path.split('/').next() == Some(TEMPORARY) {
        Some("its name is reserved for unpacking")
    } else {
        None
    }
}

/// Whether a link leads to something in the folder, whatever other links are there.
///
/// `..` may only be at the beginning of the target. There it goes up from real folders, because no file of an archive
/// is below a link. Further on it could go up from the target of another link.
pub(crate) fn stays_inside(link: &str, target: &str) -> bool {
    if target.is_empty() || target.starts_with('/') || target.len() > LONGEST_PATH {
        return false;
    }
    let mut names = target.split('/').filter(|name| !matches!(*name, "" | ".")).peekable();
    let mut ups = 0;
    while names.next_if_eq(&"..").is_some() {
        ups += 1;
    }
    ups <= link.matches('/').count() && !names.any(|name| name == "..") && !target.chars().any(char::is_control)
}

/// Returns a name that is not fit to be printed in a form that is.
pub(crate) fn escaped(name: &[u8]) -> String {
    let part = |chunk: std::str::Utf8Chunk<'_>| {
        let valid = chunk
            .valid()
            .chars()
            .map(|char| if char.is_control() { char.escape_default().to_string() } else { char.into() });
        valid.chain(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}"))).collect::<String>()
    };
    name.utf8_chunks().map(part).collect()
}
