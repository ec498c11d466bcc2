//! Opens `report.html` in a real browser, from a file, as a person does.
//!
//! The pages stay in cargo's folder for tests (`target/tmp`), where a developer can look at them.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod adaptive;
mod browser;
mod charts;
mod page;
mod sweeps;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use browser::{Browser, ENTER};
use page::{assert_quiet, colours, count, heading, lines, listed, shapes, sorted, texts, tooltip};
use serde_json::{Value, json};
use spotsweep_protocol::words::{dollars, duration};
use spotsweep_tests::local::Demo;
use sweeps::{Shape, Synthetic};
use tempfile::NamedTempFile;

const HOSTILE: &str = "</script><script>alert(1)</script><img src=x onerror=alert(2)>{a|b}";

const SMALL: Shape =
    Shape { name: "small", trials: 24, parameters: 6, points: 30, running_from: 24, is_priced: true, text: "" };
const RUNNING: Shape =
    Shape { name: "running", trials: 12, parameters: 6, points: 10, running_from: 7, is_priced: false, text: "" };
const HOSTILE_NAMES: Shape =
    Shape { name: "hostile", trials: 24, parameters: 6, points: 5, running_from: 24, is_priced: true, text: HOSTILE };
const LARGE: Shape =
    Shape { name: "large", trials: 1_000, parameters: 20, points: 100, running_from: 1_000, is_priced: true, text: "" };

/// Time until a page of 1 000 trials must be drawn, on a slow machine that has other work too.
const LARGE_PAGE_MS: f64 = 20_000.0;

fn write(shape: &Shape) -> (Synthetic, PathBuf) {
    let synthetic = shape.roll();
    let path = write_page(shape.name, &synthetic);
    (synthetic, path)
}

fn write_page(name: &str, synthetic: &Synthetic) -> PathBuf {
    write_text(name, &synthetic.page())
}

fn write_text(name: &str, page_text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{name}.html"));
    // The page is replaced atomically, because another test may read it in another process.
    let mut page = NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    page.write_all(page_text.as_bytes()).unwrap();
    page.persist(&path).unwrap();
    path
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
fn trials_link_to_their_logs_and_files() {
    let (_, page) = write(&SMALL);
    let Some(browser) = Browser::start() else { return };
    browser.open(&page);
    let addresses =
        "return [...document.querySelectorAll('#leaderboard tbody tr:first-child a')].map((one) => one.href)";
    let trial = listed(&browser)[0];
    let [log, files]: [String; 2] = serde_json::from_value(browser.run(addresses)).unwrap();
    let path = |name: &str| format!("%2Ftrials%2F{trial}%2F{name}");
    assert!(log.contains("/s3/object/sweeps-bucket?prefix=results%2F") && log.ends_with(&path("train.log")), "{log}");
    assert!(files.contains("/s3/buckets/sweeps-bucket?prefix=results%2F") && files.ends_with(&path("")), "{files}");
    let page = write_page("unstarted", &RUNNING.roll().before_its_first_trial());
    browser.open(&page);
    assert_eq!(texts(&browser, "#leaderboard tbody a").len(), 0);
}

#[test]
fn the_filter_takes_comparisons() {
    let (_, page) = write(&SMALL);
    let Some(browser) = Browser::start() else { return };
    browser.open(&page);
    let data = browser.run("return JSON.parse(document.getElementById('data').textContent)");
    let place = |list: &Value, name: &str| {
        list.as_array().unwrap().iter().position(|one| one == name || one["name"] == name).unwrap()
    };
    let (lr, loss) = (place(&data["columns"], "lr"), place(&data["metrics"], "val_loss"));
    let optimizer = place(&data["columns"], "optimizer");
    let rows = data["rows"].as_array().unwrap();
    let lr = |row: &Value| row["parameters"][lr].as_f64().unwrap();
    let loss = |row: &Value| row["metrics"][loss].as_f64();
    let middle = loss(&rows[rows.len() / 2]).unwrap();
    let with = |fits: &dyn Fn(&Value) -> bool| -> Vec<Value> {
        rows.iter().filter(|row| fits(row)).map(|row| row["index"].clone()).collect()
    };
    let cases: [(String, Vec<Value>); 8] = [
        ("lr>0.01".to_owned(), with(&|row| lr(row) > 0.01)),
        (
            format!("lr > 0.001 val_loss<={middle}"),
            with(&|row| lr(row) > 0.001 && loss(row).is_some_and(|loss| loss <= middle)),
        ),
        (format!("VAL_LOSS={middle}"), with(&|row| loss(row) == Some(middle))),
        (format!("val_loss!={middle}"), with(&|row| loss(row) != Some(middle))),
        ("optimizer=adam attempts>=1".to_owned(), with(&|row| row["parameters"][optimizer] == "adam")),
        ("lr<0.01".to_owned(), with(&|row| lr(row) < 0.01)),
        (format!("val_loss>={middle}"), with(&|row| loss(row).is_some_and(|loss| loss >= middle))),
        ("lr>".to_owned(), with(&|_| true)),
    ];
    for (typed, expected) in cases {
        browser.run(&format!(
            "const input = document.querySelector('#leaderboard input');
             input.value = {}; input.dispatchEvent(new Event('input'))",
            json!(typed)
        ));
        assert!(!expected.is_empty(), "{typed} chooses something");
        let listed: Vec<Value> = listed(&browser).into_iter().map(Value::from).collect();
        assert_eq!(listed, expected, "{typed}");
    }
    assert_quiet(&browser, &page);
}

/// The page's amounts are rounded as on the command line: below a cent to two digits, and none of them to 0.
#[test]
fn small_amounts_are_shown() {
    let paid = 0.000_28;
    let page = write_page("small-amounts", &SMALL.roll().costing(paid));
    let Some(browser) = Browser::start() else { return };
    browser.open(&page);
    let cells = texts(&browser, "#cost td.number");
    assert!(cells.len() > 3 && cells.iter().all(|cell| cell != "$0.0000"), "{cells:?}");
    assert!(cells.contains(&dollars(paid)), "no {}: {cells:?}", dollars(paid));
    assert_quiet(&browser, &page);
}

/// The page's times are written as on the command line.
#[test]
fn short_times_are_given_to_the_second() {
    let seconds = [0.4, 9.96, 12.3, 59.6, 185.0, 1_800.0, 7_265.0, 97_200.0];
    let page = write_page("times", &SMALL.roll().lasting(&seconds));
    let Some(browser) = Browser::start() else { return };
    browser.open(&page);
    let cells = texts(&browser, &heading(&browser, "time").replace("thead th", "tbody tr > *"));
    let expected: Vec<String> =
        listed(&browser).iter().map(|index| duration(seconds[usize::try_from(*index).unwrap()])).collect();
    assert_eq!(cells, expected);
    assert!(texts(&browser, "#timeline text.muted").contains(&"from 2026-11-20 22:05:00 UTC".to_owned()));
    assert_quiet(&browser, &page);
}

/// `status` and `watch` use the same decision about which trial leads: an attempt without a claim does not count.
#[test]
fn the_trial_that_leads_so_far_is_named() {
    let Some(browser) = Browser::start() else { return };
    for (is_claimed, leads) in [(true, true), (false, false)] {
        let page = write_page("led", &RUNNING.roll().led_by(8, is_claimed));
        browser.open(&page);
        let tile = &texts(&browser, ".tile")[0];
        assert_eq!(tile.contains("trial 8 leads so far: -1"), leads, "{tile}");
        assert!(leads || !tile.contains("leads so far"), "{tile}");
    }
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
    // Tooltips and tables are made after the page was drawn.
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

    // If the page made a request, its policy would stop it.
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
    let slowness = browser.slowness();
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
    let slowness = slowness.max(browser.slowness());
    let limits = [LARGE_PAGE_MS, 2_000.0, 5_000.0].map(|limit| limit * slowness);
    assert!([drawn_ms, sorted_ms, all_sorted_ms].iter().zip(&limits).all(|(taken, limit)| taken < limit), "{limits:?}");
    assert_quiet(&browser, &page);
}

/// Opens the page of a sweep on the local stack, in which one trial was interrupted and one has failed.
#[test]
fn the_report_of_a_real_sweep_opens() {
    let folder = tempfile::tempdir().unwrap();
    let trial = |lr: &str| format!("- {{lr: {lr}, hidden: 16, alpha: 0.0001, batch_size: 64, epochs: 3, seed: 7}}\n");
    let list: String = ["0.01", "0.03", "0.1", "not-a-number"].map(trial).concat();
    let run = Demo::run(folder.path(), "real.yaml", &list, &["--reclaims", "1", "--seed", "3"]);
    let summary = run.summary();
    assert_eq!((&summary["succeeded"], &summary["failed"]), (&json!(3), &json!(1)), "{}", run.messages());
    let cost = |part: &str| summary["cost"][part].as_f64().unwrap();
    // The trials run for seconds, so the control plane may cost more than they do.
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
    let addresses =
        "return [...document.querySelectorAll('#leaderboard tbody a')].map((one) => new URL(one.href).pathname)";
    let paths: Vec<PathBuf> = serde_json::from_value(browser.run(addresses)).unwrap();
    assert!(paths.len() == 8 && paths.iter().all(|path| path.exists()), "each trial's log and files: {paths:?}");
    assert!(texts(&browser, "#file pre")[0].contains("not-a-number"));
    browser.click(&format!("{} button", heading(&browser, "trial")));
    assert_eq!(listed(&browser), [0, 1, 2, 3]);
    assert_quiet(&browser, &page);
}
