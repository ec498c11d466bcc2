//! The common parts of EC2's Describe* calls: ids, filters, wildcards and pages.

use super::ApiError;

/// The possible page sizes.
const PAGE_SIZES: std::ops::RangeInclusive<usize> = 5..=1000;

/// The parameters that choose resources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// The wanted ids; empty for all.
    pub ids: Vec<String>,
    /// Filters that all have to match.
    pub filters: Vec<Filter>,
    /// Page size, 5 to 1000. It cannot be combined with ids.
    pub max_results: Option<usize>,
    /// The token from the page before.
    pub next_token: Option<String>,
}

/// An EC2 filter, which matches if any of its values does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// The filter's name, such as `instance-state-name` or `tag:Name`.
    pub name: String,
    /// The values, with the wildcards `*` and `?`.
    pub values: Vec<String>,
}

impl Filter {
    /// Makes a filter with one value.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Filter { name: name.into(), values: vec![value.into()] }
    }

    fn hits(&self, texts: &[&str]) -> bool {
        texts.iter().any(|text| self.values.iter().any(|pattern| glob(pattern, text)))
    }
}

/// A resource with an id and tags, which a [`Selection`] can choose.
pub(super) trait Resource {
    /// EC2's name of the list of ids in its messages.
    const IDS: &'static str;

    /// The filters that [`Resource::field`] knows.
    const FILTERS: &'static [&'static str];

    fn id(&self) -> &str;

    fn tags(&self) -> impl Iterator<Item = (&str, &str)>;

    /// Returns the resource's values for one of [`Resource::FILTERS`].
    fn field(&self, filter: &str) -> Vec<&str>;
}

impl Selection {
    /// Whether all resources are wanted in one answer.
    pub(super) fn is_unbounded(&self) -> bool {
        self.ids.is_empty() && self.filters.is_empty() && self.max_results.is_none()
    }

    /// Returns the chosen resources in the order of `all`, which must be ordered by id, and the token of the next page.
    pub(super) fn choose<'a, R: Resource>(
        &self,
        all: impl Iterator<Item = &'a R>,
    ) -> Result<(Vec<&'a R>, Option<String>), ApiError> {
        self.check_page::<R>()?;
        self.filters.iter().try_for_each(check_name::<R>)?;
        let after = self.next_token.as_deref().map(after_id).transpose()?;
        let mut found = Vec::new();
        for one in all {
            let named = self.ids.is_empty() || self.ids.iter().any(|id| id == one.id());
            if named && matches_all(one, &self.filters) && after.is_none_or(|after| one.id() > after) {
                found.push(one);
            }
        }
        let size = self.max_results.unwrap_or(usize::MAX);
        let next = found.get(size.saturating_sub(1)).filter(|_| found.len() > size);
        let next = next.map(|last| format!("after-{}", last.id()));
        found.truncate(size);
        Ok((found, next))
    }

    fn check_page<R: Resource>(&self) -> Result<(), ApiError> {
        let Some(size) = self.max_results else { return Ok(()) };
        if !PAGE_SIZES.contains(&size) {
            let message =
                format!("Value ( {size} ) for parameter maxResults is invalid. Expecting a value between 5 and 1000.");
            return Err(ApiError::ec2("InvalidParameterValue", message));
        }
        if !self.ids.is_empty() {
            let message = format!("The parameter {} cannot be used with the parameter maxResults", R::IDS);
            return Err(ApiError::ec2("InvalidParameterCombination", message));
        }
        Ok(())
    }
}

fn after_id(token: &str) -> Result<&str, ApiError> {
    token
        .strip_prefix("after-")
        .ok_or_else(|| ApiError::ec2("InvalidNextToken", format!("The token '{token}' is invalid.")))
}

/// Refuses an unknown filter, even if there is nothing to choose from.
fn check_name<R: Resource>(filter: &Filter) -> Result<(), ApiError> {
    let name = filter.name.as_str();
    if name.starts_with("tag:") || name == "tag-key" || R::FILTERS.contains(&name) {
        return Ok(());
    }
    Err(ApiError::ec2("InvalidParameterValue", format!("The filter '{name}' is invalid")))
}

fn matches_all<R: Resource>(one: &R, filters: &[Filter]) -> bool {
    filters.iter().all(|filter| {
        let have: Vec<&str> = match (filter.name.strip_prefix("tag:"), filter.name.as_str()) {
            (Some(wanted), _) => one.tags().filter(|(key, _)| *key == wanted).map(|(_, value)| value).collect(),
            (None, "tag-key") => one.tags().map(|(key, _)| key).collect(),
            (None, name) => one.field(name),
        };
        filter.hits(&have)
    })
}

/// Matches EC2's wildcards: `*` for any number of characters, `?` for one. A backslash before one of them, or before
/// another backslash, makes it a plain character (EC2 user guide, "Filter resources using the API").
fn glob(pattern: &str, text: &str) -> bool {
    if !pattern.contains(['*', '?', '\\']) {
        return pattern == text;
    }
    let text: Vec<char> = text.chars().collect();
    let mut symbols = pattern.chars();
    // matched[j] is whether the pattern so far matches the first j characters.
    let mut matched: Vec<bool> = (0..=text.len()).map(|j| j == 0).collect();
    while let Some(symbol) = symbols.next() {
        let (symbol, escaped) = match symbol {
            '\\' => (symbols.next().unwrap_or('\\'), true),
            plain => (plain, false),
        };
        let mut next = vec![false; text.len() + 1];
        next[0] = symbol == '*' && !escaped && matched[0];
        for (j, character) in text.iter().enumerate() {
            next[j + 1] = match (symbol, escaped) {
                ('*', false) => matched[j + 1] || next[j],
                ('?', false) => matched[j],
                (plain, _) => matched[j] && plain == *character,
            };
        }
        matched = next;
    }
    matched[text.len()]
}

#[cfg(test)]
mod tests {
    use super::glob;

    #[test]
    fn wildcards() {
        let cases = [
            ("", "", true),
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abb", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("us-*-1?", "us-east-1b", true),
            (r"a\*c", "a*c", true),
            (r"a\*c", "abc", false),
            (r"a\?\\c", r"a?\c", true),
        ];
        for (pattern, text, wanted) in cases {
            assert_eq!(glob(pattern, text), wanted, "{pattern} {text}");
        }
    }
}
