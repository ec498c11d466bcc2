//! Writes the XML of EC2's answers.

use quick_xml::escape::escape;

/// Returns an element with text.
pub(super) fn text(name: &str, text: impl AsRef<str>) -> String {
    format!("<{name}>{}</{name}>", escape(text.as_ref()))
}

/// Returns an element with elements.
pub(super) fn node(name: &str, children: impl IntoIterator<Item = String>) -> String {
    let children: String = children.into_iter().collect();
    format!("<{name}>{children}</{name}>")
}

/// Returns a list in EC2's form: one `<item>` per entry.
pub(super) fn list(name: &str, entries: impl IntoIterator<Item = String>) -> String {
    node(name, entries.into_iter().map(|entry| node("item", [entry])))
}
