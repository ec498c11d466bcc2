//! What serde's attributes name to store records.

/// Whether a field has its default, so that it is not stored.
pub(crate) fn is_default<T: Default + PartialEq>(field: &T) -> bool {
    *field == T::default()
}
