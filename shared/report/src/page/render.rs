//! Renders the page as one file.

use sha2::{Digest, Sha256};
use spotsweep_protocol::words::hexadecimal;

use super::model::Report;

const PAGE: &str = include_str!("web/page.html");
const STYLE: &str = include_str!("web/page.css");
const SCRIPT: &str = concat!(
    "\"use strict\";(() => {\n",
    include_str!("web/dom.js"),
    include_str!("web/scales.js"),
    include_str!("web/ticks.js"),
    include_str!("web/intervals.js"),
    include_str!("web/svg.js"),
    include_str!("web/tooltip.js"),
    include_str!("web/charts.js"),
    include_str!("web/pointing.js"),
    include_str!("web/axes.js"),
    include_str!("web/lines.js"),
    include_str!("web/head.js"),
    include_str!("web/filter.js"),
    include_str!("web/links.js"),
    include_str!("web/sets.js"),
    include_str!("web/leaderboard.js"),
    include_str!("web/ranges.js"),
    include_str!("web/parallel-axes.js"),
    include_str!("web/parallel.js"),
    include_str!("web/curves.js"),
    include_str!("web/importance.js"),
    include_str!("web/predictions.js"),
    include_str!("web/regret.js"),
    include_str!("web/search.js"),
    include_str!("web/attempts.js"),
    include_str!("web/slider.js"),
    include_str!("web/timeline-zoom.js"),
    include_str!("web/timeline.js"),
    include_str!("web/cost.js"),
    include_str!("web/failures.js"),
    include_str!("web/main.js"),
    "})();\n",
);

/// Significant digits of numbers that are only drawn.
const DIGITS: usize = 6;

/// Returns the page as complete HTML in UTF-8. The same report gives the same bytes.
///
/// The page's content security policy allows no network request, and only this crate's script and style. They have a
/// nonce that is a hash of the data, so nothing in the data can contain it.
pub fn render(report: &Report) -> String {
    let data = escaped(&serde_json::to_string(report).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}")));
    let nonce = hexadecimal(&Sha256::digest(&data)[..16]);
    let mut page = String::with_capacity(PAGE.len() + STYLE.len() + SCRIPT.len() + data.len() + 256);
    for part in PAGE.split("%%") {
        page.push_str(match part {
            "STYLE" => STYLE,
            "SCRIPT" => SCRIPT,
            "DATA" => &data,
            "NONCE" => &nonce,
            "SWEEP" => &report.sweep,
            fixed => fixed,
        });
    }
    page
}

/// Escapes JSON so that it can neither end the element that contains it nor begin another one.
fn escaped(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '<' => escaped.push_str("\\u003c"),
            '>' => escaped.push_str("\\u003e"),
            '&' => escaped.push_str("\\u0026"),
            '\u{2028}' => escaped.push_str("\\u2028"),
            '\u{2029}' => escaped.push_str("\\u2029"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Returns the text, or its first bytes and an ellipsis if it is longer than `most` bytes.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(most)])
}

/// Rounds a number to the digits that are visible on a chart.
pub(super) fn rounded(value: f64) -> f64 {
    format!("{value:.*e}", DIGITS - 1).parse().unwrap_or(value)
}
