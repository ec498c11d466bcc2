//! Divides what is below a prefix, so that many parts are listed at the same time.

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use crate::calls::{CallError, ListObjects, ListedObject, S3};

/// How many parts are listed at the same time. One page has 1 000 objects, whatever it is a page of.
pub(super) const AT_ONCE: usize = 8;
/// How often parts are divided at most until there are enough to list at the same time.
const LEVELS: usize = 3;
/// The most characters that all keys of a folder may have in common, such as the zeros before a number.
const MOST_IN_COMMON: usize = 64;
/// The most parts by one character. Each costs a request, and they come one after the other.
const MOST_CHARACTERS: usize = 128;

/// A part of a listing.
pub(super) enum Part {
    Object(ListedObject),
    /// Every object whose key begins with this.
    Keys(String),
    /// The same, where nothing divides it.
    Undivided(String),
}

impl Part {
    /// Where the part is in the order of all keys.
    fn name(&self) -> &str {
        match self {
            Self::Object(object) => &object.key,
            Self::Keys(prefix) | Self::Undivided(prefix) => prefix,
        }
    }
}

fn is_keys(part: &Part) -> bool {
    matches!(part, Part::Keys(_))
}

/// Returns the parts of what is below a prefix, in the order of all keys.
pub(super) async fn of(s3: &impl S3, bucket: &str, prefix: &str) -> Result<Vec<Part>, CallError> {
    let mut parts = vec![Part::Keys(prefix.to_owned())];
    for _level in 0..LEVELS {
        if parts.iter().filter(|part| !matches!(part, Part::Object(_))).count() >= AT_ONCE {
            break;
        }
        let divided = parts.into_iter().map(|part| divide(s3, bucket, part));
        parts = stream::iter(divided).buffered(AT_ONCE).try_concat().await?;
    }
    Ok(parts)
}

/// Divides a part into its objects and folders. If there is more than a page of them, the next characters of the keys
/// divide it: to list so many folders may need more requests than to list their objects.
async fn divide(s3: &impl S3, bucket: &str, part: Part) -> Result<Vec<Part>, CallError> {
    let Part::Keys(prefix) = part else { return Ok(vec![part]) };
    let wanted = ListObjects { prefix: prefix.clone(), is_divided: true, ..ListObjects::of(bucket) };
    let page = s3.list_objects(wanted).await?;
    if page.next_token.is_some() {
        return by_characters(s3, bucket, prefix).await;
    }
    let folders = page.folders.into_iter().map(Part::Keys);
    let mut parts: Vec<Part> = page.objects.into_iter().map(Part::Object).chain(folders).collect();
    parts.sort_by(|one, other| one.name().cmp(other.name()));
    Ok(parts)
}

/// Divides a part by the first characters in which its keys differ.
async fn by_characters(s3: &impl S3, bucket: &str, mut prefix: String) -> Result<Vec<Part>, CallError> {
    let mut parts = Vec::new();
    for _character in 0..MOST_IN_COMMON {
        let mut divided = by_next_character(s3, bucket, &prefix).await?;
        match divided.pop() {
            Some(Part::Keys(all)) if !divided.iter().any(is_keys) => {
                parts.append(&mut divided);
                prefix = all;
            }
            last => {
                parts.append(&mut divided);
                parts.extend(last);
                return Ok(parts);
            }
        }
    }
    parts.push(Part::Undivided(prefix));
    Ok(parts)
}

/// Returns the object with this key, and a part for each character that follows in other keys. It stays
/// undivided if there are too many characters.
async fn by_next_character(s3: &impl S3, bucket: &str, prefix: &str) -> Result<Vec<Part>, CallError> {
    let (mut parts, mut after) = (Vec::<Part>::new(), None);
    while parts.len() < MOST_CHARACTERS {
        let wanted = ListObjects { prefix: prefix.to_owned(), after, most: Some(1), ..ListObjects::of(bucket) };
        let Some(found) = s3.list_objects(wanted).await?.objects.into_iter().next() else { return Ok(parts) };
        let next = found.key.strip_prefix(prefix).and_then(|rest| rest.chars().next());
        let Some(character) = next else {
            after = Some(found.key.clone());
            parts.push(Part::Object(found));
            continue;
        };
        let keys = format!("{prefix}{character}");
        // Keys behind it begin with other characters, except those that have this last character of Unicode.
        after = Some(format!("{keys}{}", char::MAX));
        if parts.last().is_some_and(|last| last.name() == keys) {
            break;
        }
        parts.push(Part::Keys(keys));
    }
    Ok(vec![Part::Undivided(prefix.to_owned())])
}
