//! How records are stored: what serde's attributes name.

/// Whether a field says nothing, so that it is left out of what is stored.
pub(crate) fn is_default<T: Default + PartialEq>(field: &T) -> bool {
    *field == T::default()
}
