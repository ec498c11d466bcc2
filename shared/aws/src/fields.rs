//! Fields that requests and answers of several services have.

/// The SDK leaves out what is absent, and sends what is empty.
pub(super) fn some<T>(values: Vec<T>) -> Option<Vec<T>> {
    (!values.is_empty()).then_some(values)
}

/// An empty token asks for no page.
pub(super) fn next(token: Option<String>) -> Option<String> {
    token.filter(|token| !token.is_empty())
}

/// AWS's numbers are signed.
pub(super) fn number(value: u32) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}
