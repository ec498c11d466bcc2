//! `report.html` as a person opens it: from a file, in a real browser.
//!
//! The pages stay in cargo's folder for tests (`target/tmp`), to be looked at.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod browser;
mod sweeps;

use std::path::{Path, PathBuf};

use browser::{ARROW_DOWN, ARROW_UP, Browser, END, ENTER, ESCAPE, PAGE_DOWN};
use serde_json::{Value, json};
use spotsweep_tests::local::Demo;
use sweeps::{Shape, Synthetic};

const HOSTILE: &str = "</script><script>alert(1)</script><img src=x onerror=alert(2)>{a|b}";

const SMALL: Shape =
    Shape { name: "small", trials: 24, parameters: 6, points: 30, running_from: 24, is_priced: true, text: "" };
const RUNNING: Shape =
    Shape { name: "running", trials: 12, parameters: 6, points: 10, running_from: 7, is_priced: false, text: "" };
const HOSTILE_NAMES: Shape =
    Shape { name: "hostile", trials: 24, parameters: 6, points: 5, running_from: 24, is_priced: true, text: HOSTILE };
/// More trials than the timeline shows at once.
const LONG: Shape =
    Shape { name: "long", trials: 60, parameters: 6, points: 5, running_from: 60, is_priced: true, text: "" };
const LARGE: Shape =
    Shape { name: "large", trials: 1_000, parameters: 20, points: 100, running_from: 1_000, is_priced: true, text: "" };

/// Most that a page of 1 000 trials may take until all is drawn, on a slow machine that does other things too.
const LARGE_PAGE_MS: f64 = 20_000.0;

fn write(shape: &Shape) -> (Synthetic, PathBuf) {
    let synthetic = shape.roll();
    let path = write_page(shape.name, &synthetic);
    (synthetic, path)
}

fn write_page(name: &str, synthetic: &Synthetic) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{name}.html"));
    std::fs::write(&path, synthetic.page()).unwrap();
    path
}

/// Nothing but the page itself was asked for, and nothing went wrong.
fn assert_quiet(browser: &Browser, page: &Path) {
    assert_eq!(browser.requests(), [format!("file://{}", page.display())]);
    let complaints = browser.complaints();
    assert!(complaints.is_empty(), "{complaints:#?}");
}

fn texts(browser: &Browser, selector: &str) -> Vec<String> {
    let script = format!("return [...document.querySelectorAll({})].map((one) => one.textContent)", json!(selector));
    serde_json::from_value(browser.run(&script)).unwrap()
}

/// How many shapes of a chart fit a selector.
fn shapes(browser: &Browser, chart: &str, selector: &str) -> usize {
    let selector = format!("#{chart}-chart {selector}");
    count(&browser.run(&format!("return document.querySelectorAll({}).length", json!(selector))))
}

/// How many lines of trials a chart has; the one that is pointed at is drawn once more, above them.
fn lines(browser: &Browser, chart: &str) -> usize {
    shapes(browser, chart, ".below .line")
}

/// How many lines of the curves have stepped back.
fn faint(browser: &Browser) -> usize {
    count(&browser.run(
        "return [...document.querySelectorAll('#curves-chart .below .line')].filter((line) => getComputedStyle(line).strokeOpacity === '0.04').length",
    ))
}

/// How many colours the shapes of a chart that fit a selector are drawn in.
fn colours(browser: &Browser, chart: &str, selector: &str, property: &str) -> usize {
    let selector = format!("#{chart}-chart {selector}");
    count(&browser.run(&format!(
        "return new Set([...document.querySelectorAll({})].map((shape) => getComputedStyle(shape).{property})).size",
        json!(selector)
    )))
}

/// Scrolls a chart to the middle of the window; where its upper left corner is then.
fn corner(browser: &Browser, chart: &str) -> (i64, i64) {
    let place = format!(
        "const chart = document.getElementById('{chart}-chart');
         chart.scrollIntoView({{ block: 'center' }});
         const {{ x, y }} = chart.getBoundingClientRect();
         return [Math.round(x), Math.round(y)]"
    );
    let corner = serde_json::from_value(browser.run(&place)).unwrap();
    browser.settle();
    corner
}

/// Presses keys on a control of a chart (an axis, a slider, the plot), and gives back what it then says of itself.
fn press(browser: &Browser, chart: &str, control: &str, keys: &str) -> String {
    let selector = format!("#{chart}-chart [data-control=\"{control}\"]");
    browser.type_on(&selector, keys);
    browser.settle();
    said(browser, chart, control)
}

/// What a control of a chart says of itself to a screen reader.
fn said(browser: &Browser, chart: &str, control: &str) -> String {
    let selector = format!("#{chart}-chart [data-control=\"{control}\"]");
    let text =
        browser.run(&format!("return document.querySelector({}).getAttribute('aria-valuetext')", json!(selector)));
    text.as_str().unwrap().to_owned()
}

/// The tooltip's text, where it is shown.
fn tooltip(browser: &Browser) -> Option<String> {
    let text = browser.run("const tip = document.querySelector('.tooltip'); return tip.hidden ? null : tip.innerText");
    text.as_str().map(str::to_owned)
}

/// The values of a leaderboard's column, as numbers.
fn column(browser: &Browser, name: &str) -> Vec<f64> {
    let headings = texts(browser, "#leaderboard thead th");
    let at = headings.iter().position(|text| text == name).unwrap() + 1;
    let cells = texts(browser, &format!("#leaderboard tbody > tr > :nth-child({at})"));
    cells.iter().map(|text| text.parse().unwrap()).collect()
}

fn count(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

/// The trials in the leaderboard's order.
fn listed(browser: &Browser) -> Vec<u32> {
    texts(browser, "#leaderboard tbody th").iter().map(|text| text.parse().unwrap()).collect()
}

/// A column's heading, as a selector.
fn heading(browser: &Browser, column: &str) -> String {
    let headings = texts(browser, "#leaderboard thead th");
    let at = headings.iter().position(|text| text == column).unwrap() + 1;
    format!("#leaderboard thead th:nth-child({at})")
}

fn sorted(browser: &Browser, column: &str) -> Value {
    browser.run(&format!("return document.querySelector('{}').getAttribute('aria-sort')", heading(browser, column)))
}

#[test]
fn every_section_shows_what_the_records_say() {
    let (synthetic, page) = write(&SMALL);
    let Some(browser) = Browser::start() else { return };
    browser.open(&page);
    let expected = [
        "Leaderboard",
        "Parameters and metric",
        "Metric against step",
        "Parameter importance",
        "Attempts over time",
        "Costs and savings",
        "Failures",
        "Sweep file",
    ];
    assert_eq!(texts(&browser, "h2"), expected);
    assert_eq!(texts(&browser, "nav a"), expected);

    assert_eq!(lines(&browser, "parallel"), synthetic.curves(), "each trial with the metric");
    assert_eq!(lines(&browser, "curves"), synthetic.curves());
    assert!(colours(&browser, "curves", ".below .line", "stroke") > 10, "from worst to best");
    assert_eq!(shapes(&browser, "importance", ".bar"), 6, "a bar for each parameter that differs");
    assert_eq!(shapes(&browser, "timeline", ".attempt"), synthetic.attempts(24));
    assert_eq!(colours(&browser, "timeline", ".attempt", "fill"), 3, "one for each zone");
    assert_eq!(
        shapes(&browser, "timeline", ".interrupted"),
        synthetic.attempts(24) - 24,
        "all but the last were interrupted"
    );
    assert_eq!(shapes(&browser, "timeline", ".failed"), synthetic.failed());
    assert_eq!(shapes(&browser, "cost", ":is(.spot, .storage)"), 2 * 24);
    assert_eq!(shapes(&browser, "cost", ".on-demand"), 24);
    assert_eq!(texts(&browser, "#failures section, #failures details").len(), synthetic.failed());
    assert!(texts(&browser, "#file pre")[0].contains("log_uniform_values"));
    let unnamed = "return [...document.querySelectorAll('.chart, .control')].filter((one) => !one.getAttribute('aria-label')).length";
    assert_eq!(browser.run(unnamed), 0, "every chart says in words what it shows, and each of its controls what it is");
    browser.click("#timeline summary");
    assert_eq!(texts(&browser, "#timeline tbody tr").len(), synthetic.attempts(24), "and has a table beside it");
    assert_quiet(&browser, &page);
}

#[test]
fn the_leaderboard_sorts_and_filters_by_mouse_and_keyboard() {
    let (synthetic, page) = write(&SMALL);
    let Some(browser) = Browser::start() else { return };
    browser.open(&page);
    let best = synthetic.by_loss();
    assert_eq!(listed(&browser)[..best.len()], best, "the best first");

    let trial = format!("{} button", heading(&browser, "trial"));
    browser.click(&trial);
    assert_eq!((listed(&browser), sorted(&browser, "trial")), ((0..24).collect(), json!("ascending")));
    browser.type_on(&trial, ENTER);
    assert_eq!((listed(&browser), sorted(&browser, "trial")), ((0..24).rev().collect(), json!("descending")));
    browser.type_on(&format!("{} button", heading(&browser, "val_loss")), ENTER);
    assert_eq!((sorted(&browser, "val_loss"), sorted(&browser, "trial")), (json!("ascending"), Value::Null));
    browser.click(&format!("{} button", heading(&browser, "val_loss")));
    let reversed: Vec<u32> = best.iter().rev().copied().collect();
    assert_eq!(listed(&browser)[..best.len()], reversed, "those without the metric stay last");

    browser.type_on("#leaderboard input", "FAILED");
    assert_eq!(listed(&browser).len(), synthetic.failed());
    assert!(texts(&browser, "#leaderboard [role=status]")[0].starts_with("2 trials of 24, 2 shown"));
    assert_quiet(&browser, &page);
}

#[test]
fn a_range_on_an_axis_chooses_trials_everywhere() {
    let (_, page) = write(&SMALL);
    let Some(browser) = Browser::start() else { return };
    browser.open(&page);
    assert_eq!(faint(&browser), 0);
    let (x, y) = corner(&browser, "parallel");
    // The upper half of the first axis, lr from 1e-4 to 0.1: from 10^-2.5 up.
    browser.drag((x + 75, y + 46), (x + 75, y + 44 + (420 - 44 - 24) / 2));
    let rates = column(&browser, "lr");
    assert!(!rates.is_empty() && rates.len() < 22, "{rates:?}");
    assert!(rates.iter().all(|lr| *lr > 0.003), "{rates:?}");
    assert_eq!(faint(&browser), 22 - rates.len(), "the curves of the others step back");

    // A second range, on the fifth of seven axes: model.depth from 4.5 up.
    let depth_x = x + 75 + (1240 - 150) * 4 / 6;
    browser.drag((depth_x, y + 44), (depth_x, y + 44 + (420 - 44 - 24) / 2));
    let (both, depths) = (column(&browser, "lr"), column(&browser, "model.depth"));
    assert!(!both.is_empty() && both.len() < rates.len(), "{both:?} of {rates:?}");
    assert!(both.iter().all(|lr| *lr > 0.003) && depths.iter().all(|depth| *depth >= 5.0), "{both:?} {depths:?}");
    assert_eq!(faint(&browser), 22 - both.len());
    // A click on the axis drops its range.
    browser.drag((depth_x, y + 300), (depth_x, y + 300));
    assert_eq!(column(&browser, "lr"), rates);

    browser.click("#leaderboard .controls button");
    assert_eq!((listed(&browser).len(), faint(&browser)), (24, 0));
    assert_quiet(&browser, &page);
}

#[test]
fn ranges_are_chosen_by_keyboard_too() {
    let (_, page) = write(&SMALL);
    let Some(browser) = Browser::start() else { return };
    browser.open(&page);
    assert_eq!(said(&browser, "parallel", "axis-0"), "all values");
    let chosen = press(&browser, "parallel", "axis-0", ARROW_UP);
    assert!(chosen.starts_with("from 0.00316") && chosen.ends_with("to 0.1"), "the upper half: {chosen}");
    let rates = column(&browser, "lr");
    assert!(!rates.is_empty() && rates.len() < 22 && rates.iter().all(|lr| *lr > 0.003), "{rates:?}");
    assert_eq!(faint(&browser), 22 - rates.len());
    // One value of a category after another.
    assert_eq!(press(&browser, "parallel", "axis-1", ARROW_UP), "sgd");
    let sgd = listed(&browser).len();
    assert_eq!(press(&browser, "parallel", "axis-1", ARROW_DOWN), "lion");
    assert!(sgd + listed(&browser).len() <= rates.len(), "within the range of lr");
    assert_eq!(press(&browser, "parallel", "axis-1", ESCAPE), "all values");
    assert_eq!(column(&browser, "lr"), rates);
    assert_eq!(press(&browser, "parallel", "axis-0", ESCAPE), "all values");
    assert_eq!((listed(&browser).len(), faint(&browser)), (24, 0));
    assert_quiet(&browser, &page);
}

#[test]
fn the_timeline_scrolls_and_zooms() {
    let (_, page) = write(&LONG);
    let Some(browser) = Browser::start() else { return };
    browser.open(&page);
    let (rows, whole) = (said(&browser, "timeline", "rows"), said(&browser, "timeline", "time"));
    assert_eq!(rows, "1 to 40 of 60 rows");
    let keys =
        [(ARROW_DOWN, "2 to 41"), (PAGE_DOWN, "21 to 60"), ("+", "31 to 50"), (END, "41 to 60"), (ESCAPE, "1 to 40")];
    for (key, shown) in keys {
        assert_eq!(press(&browser, "timeline", "rows", key), format!("{shown} of 60 rows"));
    }

    let all = shapes(&browser, "timeline", ".attempt");
    let is_back_offered = || browser.run("return !document.querySelector('#timeline .controls button').hidden") == true;
    assert!(!is_back_offered());
    let closer = press(&browser, "timeline", "time", "+++");
    assert!(closer != whole && shapes(&browser, "timeline", ".attempt") < all && is_back_offered(), "{closer}");
    assert_ne!(press(&browser, "timeline", "time", ARROW_DOWN), closer);
    assert_eq!(press(&browser, "timeline", "time", ESCAPE), whole);
    assert_eq!((shapes(&browser, "timeline", ".attempt"), is_back_offered()), (all, false));

    let (x, y) = corner(&browser, "timeline");
    browser.drag((x + 300, y + 200), (x + 400, y + 220));
    assert!(said(&browser, "timeline", "time") != whole && is_back_offered());
    browser.double_click((x + 300, y + 200));
    assert_eq!(said(&browser, "timeline", "time"), whole);
    browser.drag((x + 400, y + 200), (x + 300, y + 220));
    browser.click("#timeline .controls button");
    assert_eq!(said(&browser, "timeline", "time"), whole);
    assert_quiet(&browser, &page);
}

#[test]
fn a_tooltip_describes_what_the_pointer_or_a_key_points_at() {
    let (synthetic, page) = write(&SMALL);
    let Some(browser) = Browser::start() else { return };
    browser.open(&page);
    let best = synthetic.by_loss();
    assert_eq!(tooltip(&browser), None);
    // Where the best trial's line begins.
    let (x, y) = corner(&browser, "parallel");
    let start = browser.run("return document.querySelector('#parallel-chart .winner').getAttribute('d').slice(1).split('L')[0].split(' ').map((px) => Math.round(Number(px)))");
    let (line_x, line_y): (i64, i64) = serde_json::from_value(start).unwrap();
    browser.hover((x + line_x + 1, y + line_y));
    let shown = tooltip(&browser).unwrap();
    assert!(shown.starts_with(&format!("Trial {} · succeeded", best[0])) && shown.contains("optimizer="), "{shown}");
    assert_eq!(shapes(&browser, "parallel", ".above .line.hovered"), 1);
    browser.hover((x + 5, y + 5));
    assert_eq!((tooltip(&browser), shapes(&browser, "parallel", ".above .line.hovered")), (None, 0));

    // By keyboard from the best to the second and on.
    for chart in ["parallel", "curves"] {
        let said = press(&browser, chart, "plot", ARROW_DOWN);
        assert!(said.starts_with(&format!("Trial {} · succeeded", best[1])), "{said}");
        assert!(tooltip(&browser).unwrap().starts_with(&format!("Trial {} · ", best[1])));
        press(&browser, chart, "plot", ESCAPE);
        assert_eq!(tooltip(&browser), None);
    }
    assert!(press(&browser, "timeline", "plot", ARROW_DOWN).contains("us-east-1"));
    assert!(press(&browser, "cost", "plot", ARROW_DOWN).contains("on demand $"));
    assert!(press(&browser, "importance", "plot", ARROW_DOWN).contains("of the ranks' variance"));
    assert_quiet(&browser, &page);
}

#[test]
fn nothing_that_a_person_wrote_becomes_markup() {
    let (_, page) = write(&HOSTILE_NAMES);
    let Some(browser) = Browser::start() else { return };
    browser.open(&page);
    assert_eq!(browser.run("return [document.scripts.length, document.images.length]"), json!([2, 0]));
    let name = format!("optimizer{HOSTILE}");
    assert!(texts(&browser, "#leaderboard thead th").contains(&name), "it is shown as it was written");
    assert!(texts(&browser, "#leaderboard tbody td").contains(&HOSTILE.to_owned()));
    assert!(texts(&browser, "#failures pre")[0].contains(HOSTILE) && texts(&browser, "#file pre")[0].contains(HOSTILE));
    // Tooltips and tables come later than the page.
    browser.run("document.querySelectorAll('summary').forEach((one) => one.click())");
    let middle = "const { x, y, width } = document.getElementById('importance-chart').getBoundingClientRect();
        scrollBy(0, y - 200); return [Math.round(x + width / 4), 215]";
    let (x, y): (i64, i64) = serde_json::from_value(browser.run(middle)).unwrap();
    // The page's scroll event hides a tooltip.
    browser.settle();
    let mut described = Vec::new();
    for row in 0..6 {
        browser.hover((x, y + 30 * row));
        described.extend(tooltip(&browser));
    }
    assert!(described.len() == 6 && described.iter().any(|text| text.contains(&name)), "{described:?}");
    assert_eq!(browser.run("return [document.scripts.length, document.images.length]"), json!([2, 0]));
    assert_quiet(&browser, &page);

    // And if it did, the policy of the page would stop it.
    browser.run("const script = document.createElement('script'); script.textContent = 'window.ran = true'; document.body.append(script)");
    browser.run("fetch('http://127.0.0.1:9/').catch(() => {})");
    browser.settle();
    assert_eq!(browser.run("return window.ran ?? null"), Value::Null);
    let complaints = browser.complaints();
    for refused in ["script-src", "connect-src"] {
        let is_refused = |entry: &Value| entry["message"].as_str().unwrap().contains(refused);
        assert!(complaints.iter().any(is_refused), "{refused}: {complaints:#?}");
    }
}

#[test]
fn an_unfinished_sweep_says_so_and_the_page_follows_dark_mode_and_paper() {
    let (_, page) = write(&RUNNING);
    let Some(browser) = Browser::start() else { return };
    let scheme = |name| {
        browser.devtools(
            "Emulation.setEmulatedMedia",
            &json!({ "features": [{ "name": "prefers-color-scheme", "value": name }] }),
        );
        browser.settle();
    };
    scheme("light");
    browser.open(&page);
    assert!(
        texts(&browser, "header .notice")[0].starts_with("Partial: 7 of 12 trials had ended"),
        "{:?}",
        texts(&browser, ".notice")
    );
    assert!(texts(&browser, "#cost p")[0].starts_with("Not priced"));
    let look = "return [getComputedStyle(document.querySelector('#curves-chart svg text')).fill, document.querySelector('#curves-chart svg').getAttribute('width')]";
    let light = browser.run(look);
    scheme("dark");
    let dark = browser.run(look);
    assert!(dark[0] != light[0] && dark[1] == light[1], "{light} {dark}");
    browser.run("dispatchEvent(new Event('beforeprint'))");
    assert_eq!(browser.run(look), json!([light[0], "700"]), "paper is white and narrow");
    browser.run("dispatchEvent(new Event('afterprint'))");
    assert_eq!(browser.run(look), dark);
    let pdf = browser.devtools("Page.printToPDF", &json!({}));
    assert!(pdf["data"].as_str().unwrap().len() > 10_000);
    assert_quiet(&browser, &page);
}

#[test]
fn what_is_not_there_is_said() {
    let Some(browser) = Browser::start() else { return };
    let page = write_page("empty", &RUNNING.roll().before_its_first_trial());
    browser.open(&page);
    assert!(texts(&browser, "header .notice")[0].starts_with("Partial: 0 of 12"));
    assert_eq!(texts(&browser, ".chart").len(), 0);
    let sections = ["parallel", "curves", "importance", "timeline", "cost", "failures"];
    let said: Vec<String> = sections.iter().flat_map(|id| texts(&browser, &format!("#{id} > p"))).collect();
    let expected = [
        "No trial has reported val_loss yet.",
        "No curves were recorded",
        "Nothing to compare: 0 trials succeeded",
        "No attempt has started yet.",
        "Not priced",
        "No trial has failed.",
    ];
    assert_eq!(said.len(), expected.len(), "{said:?}");
    for (said, expected) in said.iter().zip(expected) {
        assert!(said.starts_with(expected), "{said}");
    }
    assert_quiet(&browser, &page);

    let page = write_page("unranked", &SMALL.roll().without_metric());
    browser.open(&page);
    let assumed = "The sweep file names no metric; val_accuracy (larger is better) was taken";
    assert!(texts(&browser, "header p.muted")[1].starts_with(assumed));
    assert_eq!(texts(&browser, ".chart").len(), 5);
    assert_quiet(&browser, &page);
}

#[test]
fn a_thousand_trials_are_shown_without_delay() {
    let (synthetic, page) = write(&LARGE);
    let bytes = std::fs::metadata(&page).unwrap().len();
    let Some(browser) = Browser::start() else { return };
    let drawn_ms = browser.open(&page);
    assert_eq!(lines(&browser, "parallel"), synthetic.curves());
    assert_eq!(lines(&browser, "curves"), synthetic.curves());
    assert_eq!(shapes(&browser, "importance", ".bar"), 20);
    assert_eq!(shapes(&browser, "timeline", ".attempt"), synthetic.attempts(40));
    assert_eq!(shapes(&browser, "cost", ":is(.spot, .storage)"), 2 * 30, "the most expensive");
    assert_eq!(listed(&browser), synthetic.by_loss()[..100]);
    let sort = format!(
        "const button = document.querySelector('{} button'), start = performance.now();
         button.click(); document.body.offsetHeight; return performance.now() - start",
        heading(&browser, "lr")
    );
    let sorted_ms = browser.run(&sort).as_f64().unwrap();
    browser.run(
        "[...document.querySelectorAll('#leaderboard button')].find((one) => one.textContent === 'Show all').click()",
    );
    assert_eq!(listed(&browser).len(), 1_000);
    let all_sorted_ms = browser.run(&sort).as_f64().unwrap();
    println!("{bytes} bytes, drawn in {drawn_ms} ms, sorted in {sorted_ms} ms, all rows in {all_sorted_ms} ms");
    assert!(drawn_ms < LARGE_PAGE_MS && sorted_ms < 2_000.0 && all_sorted_ms < 5_000.0);
    assert_quiet(&browser, &page);
}

/// The page that a sweep on the local stack leaves, an interruption and a failed trial among its trials.
#[test]
fn the_report_of_a_real_sweep_opens() {
    let folder = tempfile::tempdir().unwrap();
    let trial = |lr: &str| format!("- {{lr: {lr}, hidden: 16, alpha: 0.0001, batch_size: 64, epochs: 3, seed: 7}}\n");
    let list: String = ["0.01", "0.03", "0.1", "not-a-number"].map(trial).concat();
    let run = Demo::run(folder.path(), "real.yaml", &list, &["--reclaims", "1", "--seed", "3"]);
    let summary = run.summary();
    assert_eq!((&summary["succeeded"], &summary["failed"]), (&json!(3), &json!(1)), "{}", run.messages());
    let cost = |part: &str| summary["cost"][part].as_f64().unwrap();
    // Trials of seconds: the control plane may be their larger part.
    let instances = cost("usd") - cost("storage_usd") - cost("control_plane_usd");
    assert!(0.0 < instances && instances < cost("on_demand_usd"), "{summary}");
    assert_eq!(cost("unpriced_seconds"), 0.0, "{summary}");
    let page = run.outputs().join("report.html").canonicalize().unwrap();
    assert!(run.messages().contains(&format!("report: {}", page.display())), "{}", run.messages());

    let Some(browser) = Browser::start() else { return };
    browser.open(&page);
    assert_eq!(listed(&browser).len(), 4);
    assert_eq!(listed(&browser)[3], 3, "the failed one is last");
    assert_eq!(lines(&browser, "curves"), 3, "a curve for each that has trained");
    assert!(texts(&browser, "#failures")[0].contains("not-a-number"), "with the last words of its log");
    assert!(!texts(&browser, "#cost table").is_empty(), "priced");
    assert!(texts(&browser, "#file pre")[0].contains("not-a-number"));
    browser.click(&format!("{} button", heading(&browser, "trial")));
    assert_eq!(listed(&browser), [0, 1, 2, 3]);
    assert_quiet(&browser, &page);
}
