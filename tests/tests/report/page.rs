//! What a browser shows of a page.

use std::path::Path;

use serde_json::{Value, json};

use super::browser::Browser;

/// Nothing but the page itself was asked for, and nothing went wrong.
pub(super) fn assert_quiet(browser: &Browser, page: &Path) {
    assert_eq!(browser.requests(), [format!("file://{}", page.display())]);
    let complaints = browser.complaints();
    assert!(complaints.is_empty(), "{complaints:#?}");
}

pub(super) fn texts(browser: &Browser, selector: &str) -> Vec<String> {
    let script = format!("return [...document.querySelectorAll({})].map((one) => one.textContent)", json!(selector));
    serde_json::from_value(browser.run(&script)).unwrap()
}

/// How many shapes of a chart fit a selector.
pub(super) fn shapes(browser: &Browser, chart: &str, selector: &str) -> usize {
    let selector = format!("#{chart}-chart {selector}");
    count(&browser.run(&format!("return document.querySelectorAll({}).length", json!(selector))))
}

/// How many lines of trials a chart has; the one that is pointed at is drawn once more, above them.
pub(super) fn lines(browser: &Browser, chart: &str) -> usize {
    shapes(browser, chart, ".below .line")
}

/// How many colours the shapes of a chart that fit a selector are drawn in.
pub(super) fn colours(browser: &Browser, chart: &str, selector: &str, property: &str) -> usize {
    let selector = format!("#{chart}-chart {selector}");
    count(&browser.run(&format!(
        "return new Set([...document.querySelectorAll({})].map((shape) => getComputedStyle(shape).{property})).size",
        json!(selector)
    )))
}

/// The tooltip's text, where it is shown.
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
