//! The files of a folder that are packed.

use crate::item::Item;
use crate::left_out::{Finding, LeftOut};

/// The largest files that [`Listing::largest`] names.
const LARGEST: usize = 10;

/// The files of a folder that are packed, and those that are not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "the findings have to be shown"]
pub struct Listing {
    /// The packed files and links, sorted by the bytes of their paths.
    pub files: Vec<Item>,
    /// What is left out, sorted by path. Of a folder that is left out only the folder itself is here.
    pub left_out: Vec<LeftOut>,
    /// Secrets in source files. The caller has to show them: those files are left out unless `include` names them, and
    /// without a source file the training probably fails. Also secrets of any kind that `include` sends.
    pub findings: Vec<Finding>,
}

impl Listing {
    /// Returns the bytes of all packed files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|item| item.content.bytes()).sum()
    }

    /// Returns the ten largest packed files, the largest first.
    pub fn largest(&self) -> Vec<&Item> {
        let mut items: Vec<&Item> = self.files.iter().collect();
        items.sort_by_key(|item| std::cmp::Reverse(item.content.bytes()));
        items.truncate(LARGEST);
        items
    }
}
