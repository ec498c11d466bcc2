//! Reads what a browser shows of a page.

use std::path::Path;

use serde_json::{Value, json};

use super::browser::Browser;

/// Asserts that nothing but the page was requested, and that there was no error.
pub(super) fn assert_quiet(browser: &Browser, page: &Path) {
    assert_eq!(browser.requests(), [format!("file://{}", page.display())]);
    let complaints = browser.complaints();
    assert!(complaints.is_empty(), "{complaints:#?}");
}

pub(super) fn texts(browser: &Browser, selector: &str) -> Vec<String> {
    let script = format!("return [...document.querySelectorAll({})].map((one) => one.textContent)", json!(selector));
    serde_json::from_value(browser.run(&script)).unwrap()
}

/// Number of shapes in a chart that match a selector.
pub(super) fn shapes(browser: &Browser, chart: &str, selector: &str) -> usize {
    let selector = format!("#{chart}-chart {selector}");
    count(&browser.run(&format!("return document.querySelectorAll({}).length", json!(selector))))
}

/// Number of trials' lines in a chart. The line under the pointer is drawn once more above the others, and is not
/// counted.
pub(super) fn lines(browser: &Browser, chart: &str) -> usize {
    shapes(browser, chart, ".below .line")
}

/// Number of colours of the shapes in a chart that match a selector.
pub(super) fn colours(browser: &Browser, chart: &str, selector: &str, property: &str) -> usize {
    let selector = format!("#{chart}-chart {selector}");
    count(&browser.run(&format!(
        "return new Set([...document.querySelectorAll({})].map((shape) => getComputedStyle(shape).{property})).size",
        json!(selector)
    )))
}

/// The tooltip's text, if it is shown.
pub(super) fn tooltip(browser: &Browser) -> Option<String> {
    let text = browser.run("const tip = document.querySelector('.tooltip'); return tip.hidden ? null : tip.innerText");
    text.as_str().map(str::to_owned)
}

pub(super) fn count(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

/// The trials in the leaderboard's order.
pub(super) fn listed(browser: &Browser) -> Vec<u32> {
    texts(browser, "#leaderboard tbody th").iter().map(|text| text.parse().unwrap()).collect()
}

/// A column's heading, as a selector.
pub(super) fn heading(browser: &Browser, column: &str) -> String {
    let headings = texts(browser, "#leaderboard thead th");
    let at = headings.iter().position(|text| text == column).unwrap() + 1;
    format!("#leaderboard thead th:nth-child({at})")
}

pub(super) fn sorted(browser: &Browser, column: &str) -> Value {
    browser.run(&format!("return document.querySelector('{}').getAttribute('aria-sort')", heading(browser, column)))
}
