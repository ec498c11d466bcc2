//! Conversions of fields that requests and answers of several services have.

/// Returns no list if it is empty, because the SDK leaves out an absent list but sends an empty one.
pub(super) fn some<T>(values: Vec<T>) -> Option<Vec<T>> {
    (!values.is_empty()).then_some(values)
}

/// Returns the token of the next page. An empty token means that there is none.
pub(super) fn next(token: Option<String>) -> Option<String> {
    token.filter(|token| !token.is_empty())
}

/// Converts a number, because AWS's numbers are signed.
pub(super) fn number(value: u32) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}
