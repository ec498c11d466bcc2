//! The page as one file.

use sha2::{Digest, Sha256};

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

/// Significant digits of what is only drawn.
const DIGITS: usize = 6;

/// The page: HTML in UTF-8, complete in itself. The same report gives the same bytes.
///
/// Its content security policy lets no address be asked, and only this crate's script and style apply: they carry a nonce
/// that is a hash over the data, so nothing in the data can know it.
pub fn render(report: &Report) -> String {
    let data = escaped(&serde_json::to_string(report).unwrap_or_else(|error| format!("{{\"error\":\"{error}\"}}")));
    let nonce: String = Sha256::digest(&data).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
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

/// JSON that cannot end the element it stands in, nor begin another one.
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

/// The text, or its beginning where it is longer than so many bytes.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(most)])
}

/// To the digits that an eye can tell on a chart.
pub(super) fn rounded(value: f64) -> f64 {
    format!("{value:.*e}", DIGITS - 1).parse().unwrap_or(value)
}
