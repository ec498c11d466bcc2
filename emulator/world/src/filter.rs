//! What EC2's Describe* actions have in common: ids, filters, wildcards and pages.

use super::ApiError;

/// Page size bounds.
const PAGE_SIZES: std::ops::RangeInclusive<usize> = 5..=1000;

/// Which resources to show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// All if empty.
    pub ids: Vec<String>,
    /// All of them must match.
    pub filters: Vec<Filter>,
    /// 5 to 1000; not together with ids.
    pub max_results: Option<usize>,
    /// From the page before.
    pub next_token: Option<String>,
}

/// An EC2 filter: any of its values must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Such as `instance-state-name` or `tag:Name`.
    pub name: String,
    /// `*` and `?` are wildcards.
    pub values: Vec<String>,
}

impl Filter {
    /// A filter with one value.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Filter { name: name.into(), values: vec![value.into()] }
    }

    fn hits(&self, texts: &[&str]) -> bool {
        texts.iter().any(|text| self.values.iter().any(|pattern| glob(pattern, text)))
    }
}

/// Something with an id and tags that a [`Selection`] chooses from.
pub(super) trait Resource {
    /// EC2's name of the list of ids, as its messages say it.
    const IDS: &'static str;

    /// The filters that [`Resource::field`] knows.
    const FILTERS: &'static [&'static str];

    fn id(&self) -> &str;

    fn tags(&self) -> impl Iterator<Item = (&str, &str)>;

    /// What it has of one of [`Resource::FILTERS`].
    fn field(&self, filter: &str) -> Vec<&str>;
}

impl Selection {
    /// Whether everything is asked for at once.
    pub(super) fn is_unbounded(&self) -> bool {
        self.ids.is_empty() && self.filters.is_empty() && self.max_results.is_none()
    }

    /// The chosen ones in the order of `all` (which must be by id), and the token of the next page.
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

/// A filter that is none is refused, also where there is nothing to choose from.
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

/// EC2's filter wildcards: `*` for any run of characters, `?` for one; a backslash before either, or before
/// another backslash, makes it a plain character (EC2 user guide, "Filter resources using the API").
fn glob(pattern: &str, text: &str) -> bool {
    if !pattern.contains(['*', '?', '\\']) {
        return pattern == text;
    }
    let text: Vec<char> = text.chars().collect();
    let mut symbols = pattern.chars();
    // matched[j]: the pattern so far matches the first j characters.
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
