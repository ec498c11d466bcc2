//! The little XML that EC2's answers need.

use quick_xml::escape::escape;

/// An element with text.
pub(super) fn text(name: &str, text: impl AsRef<str>) -> String {
    format!("<{name}>{}</{name}>", escape(text.as_ref()))
}

/// An element with elements.
pub(super) fn node(name: &str, children: impl IntoIterator<Item = String>) -> String {
    let children: String = children.into_iter().collect();
    format!("<{name}>{children}</{name}>")
}

/// EC2's form of a list: one `<item>` per entry.
pub(super) fn list(name: &str, entries: impl IntoIterator<Item = String>) -> String {
    node(name, entries.into_iter().map(|entry| node("item", [entry])))
}
