//! Uses the charts with the mouse and with the keyboard.

use serde_json::json;

use super::browser::{ARROW_DOWN, ARROW_UP, Browser, END, ESCAPE, PAGE_DOWN};
use super::sweeps::Shape;
use super::{SMALL, assert_quiet, count, lines, listed, shapes, texts, tooltip, write, write_page, write_text};

/// A sweep with more trials than the timeline shows at once.
const LONG: Shape =
    Shape { name: "long", trials: 60, parameters: 6, points: 5, running_from: 60, is_priced: true, text: "" };

/// Finds texts of charts that overlap or leave their chart, and horizontal axes with fewer than three labels. Slanted
/// texts are left out, because their box is larger than the text.
const ILLEGIBLE: &str = "return [...document.querySelectorAll('.chart')].flatMap((chart) => {
    const frame = chart.getBoundingClientRect();
    const labels = [...chart.querySelectorAll('text:not([transform])')].map((text) => {
        const { left, right, top, bottom } = text.getBoundingClientRect();
        return { said: text.lastChild.data, left, right, top: top + 2, bottom: bottom - 2 };
    });
    const cut = labels.filter(({ left, right }) => left < frame.left - 1 || right > frame.right + 1);
    const overlaps = (one, other) =>
        Math.min(one.right, other.right) - Math.max(one.left, other.left) > 0.5 &&
        Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 0.5;
    const twice = labels.filter((one, at) => labels.some((other, place) => place > at && overlaps(one, other)));
    const counts = [...chart.querySelectorAll('.axis')].map((axis) => axis.querySelectorAll('.middle:not(.muted, .name)').length);
    const [found, least] = [[...cut, ...twice], Math.min(...counts.filter((count) => count > 0))];
    return [...found.map(({ said }) => `${chart.id}: ${said}`), ...(least < 3 ? [`${chart.id}: ${least} labels`] : [])];
})";

/// Number of curves that are dimmed.
fn faint(browser: &Browser) -> usize {
    count(&browser.run(
        "return [...document.querySelectorAll('#curves-chart .below .line')].filter((line) => getComputedStyle(line).strokeOpacity === '0.04').length",
    ))
}

/// Scrolls a chart to the middle of the window, and returns the position of its upper left corner then.
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

/// Presses keys on a control of a chart (an axis, a slider, the plot), and returns its text for screen readers
/// afterwards.
fn press(browser: &Browser, chart: &str, control: &str, keys: &str) -> String {
    let selector = format!("#{chart}-chart [data-control=\"{control}\"]");
    browser.type_on(&selector, keys);
    browser.settle();
    said(browser, chart, control)
}

/// The text for screen readers of a control of a chart.
fn said(browser: &Browser, chart: &str, control: &str) -> String {
    let selector = format!("#{chart}-chart [data-control=\"{control}\"]");
    let text =
        browser.run(&format!("return document.querySelector({}).getAttribute('aria-valuetext')", json!(selector)));
    text.as_str().unwrap().to_owned()
}

/// The values of a leaderboard's column, as numbers.
fn column(browser: &Browser, name: &str) -> Vec<f64> {
    let headings = texts(browser, "#leaderboard thead th");
    let at = headings.iter().position(|text| text == name).unwrap() + 1;
    let cells = texts(browser, &format!("#leaderboard tbody > tr > :nth-child({at})"));
    cells.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn a_range_on_an_axis_chooses_trials_everywhere() {
    let (_, page) = write(&SMALL);
    let Some(browser) = Browser::start() else { return };
    browser.open(&page);
    assert_eq!(faint(&browser), 0);
    let (x, y) = corner(&browser, "parallel");
    // The drag selects the upper half of the first axis: lr from 1e-4 to 0.1, from 10^-2.5 up.
    browser.drag((x + 75, y + 46), (x + 75, y + 44 + (420 - 44 - 24) / 2));
    let rates = column(&browser, "lr");
    assert!(!rates.is_empty() && rates.len() < 22, "{rates:?}");
    assert!(rates.iter().all(|lr| *lr > 0.003), "{rates:?}");
    assert_eq!(faint(&browser), 22 - rates.len(), "the curves of the others step back");

    // The drag selects a second range on the fifth of seven axes: model.depth from 4.5 up.
    let depth_x = x + 75 + (1240 - 150) * 4 / 6;
    browser.drag((depth_x, y + 44), (depth_x, y + 44 + (420 - 44 - 24) / 2));
    let (both, depths) = (column(&browser, "lr"), column(&browser, "model.depth"));
    assert!(!both.is_empty() && both.len() < rates.len(), "{both:?} of {rates:?}");
    assert!(both.iter().all(|lr| *lr > 0.003) && depths.iter().all(|depth| *depth >= 5.0), "{both:?} {depths:?}");
    assert_eq!(faint(&browser), 22 - both.len());
    // A click on the axis removes its range.
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
    // Each key press selects the next value of a category.
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
    // The point is the beginning of the best trial's line.
    let (x, y) = corner(&browser, "parallel");
    let start = browser.run("return document.querySelector('#parallel-chart .winner').getAttribute('d').slice(1).split('L')[0].split(' ').map((px) => Math.round(Number(px)))");
    let (line_x, line_y): (i64, i64) = serde_json::from_value(start).unwrap();
    browser.hover((x + line_x + 1, y + line_y));
    let shown = tooltip(&browser).unwrap();
    assert!(shown.starts_with(&format!("Trial {} · succeeded", best[0])) && shown.contains("optimizer="), "{shown}");
    assert_eq!(shapes(&browser, "parallel", ".above .line.hovered"), 1);
    browser.hover((x + 5, y + 5));
    assert_eq!((tooltip(&browser), shapes(&browser, "parallel", ".above .line.hovered")), (None, 0));

    // The arrow key moves from the best trial to the second one, and on.
    for chart in ["parallel", "curves"] {
        let text = press(&browser, chart, "plot", ARROW_DOWN);
        assert!(text.starts_with(&format!("Trial {} · succeeded", best[1])), "{text}");
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
fn odd_values_and_long_names_are_drawn() {
    let page = write_page("odd", &SMALL.roll().with_odd_parameters());
    let Some(browser) = Browser::start() else { return };
    browser.open(&page);
    assert_eq!(lines(&browser, "parallel"), 22);
    let broken = "return [...document.querySelectorAll('.chart')].flatMap((chart) => chart.innerHTML.match(/[^\"]*(NaN|Infinity|undefined)[^\"]*/g) ?? [])";
    assert_eq!(browser.run(broken), json!([]));
    let titles = texts(&browser, "#parallel-chart .name title");
    assert!(titles.iter().any(|title| title.len() > 200), "a name that is cut has itself as its title: {titles:?}");
    // Trials without a parameter are in no range of it.
    assert!(press(&browser, "parallel", "axis-4", ARROW_UP).starts_with("from "));
    assert!(!listed(&browser).is_empty());
    assert!(listed(&browser).iter().all(|index| index % 3 == 0), "{:?}", listed(&browser));
    assert_quiet(&browser, &page);
}

#[test]
fn labels_can_be_read_on_a_phone_too() {
    let two_hours = [6_600.0, 6_000.0, 3_000.0, 600.0, 66.0, 6.0, 6_500.0, 6_550.0];
    let pages = [
        write_page("legible", &SMALL.roll().searched()),
        write_page("two-hours", &SMALL.roll().lasting(&two_hours)),
        write_page("seconds", &SMALL.roll().lasting(&two_hours.map(|seconds| seconds / 500.0))),
    ];
    let Some(browser) = Browser::start() else { return };
    for width in [375, 1280] {
        let metrics = json!({ "width": width, "height": 812, "deviceScaleFactor": 2, "mobile": width == 375 });
        browser.devtools("Emulation.setDeviceMetricsOverride", &metrics);
        for page in &pages {
            browser.open(page);
            assert_eq!(browser.run(ILLEGIBLE), json!([]), "{width} px: {}", page.display());
            assert_eq!(browser.run("return document.documentElement.scrollWidth"), width, "{}", page.display());
        }
    }
}

#[test]
fn a_page_that_is_printed_at_once_has_all_its_charts() {
    let (synthetic, _) = write(&SMALL);
    let text = synthetic.page();
    let nonce = text.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap();
    // Charts are drawn one by one after the page's script. This script runs before the first of them is drawn.
    let at_once = format!(
        "<script nonce=\"{nonce}\">
            dispatchEvent(new Event('beforeprint'));
            document.documentElement.dataset.printed = document.querySelectorAll('.chart > .below').length;
         </script></body>"
    );
    let page = write_text("printed", &text.replace("</body>", &at_once));
    let Some(browser) = Browser::start() else { return };
    browser.open(&page);
    let charts = count(&browser.run("return document.querySelectorAll('.chart > .below').length"));
    assert!(charts >= 5, "{charts} charts");
    assert_eq!(browser.run("return document.documentElement.dataset.printed"), json!(charts.to_string()));
    assert_quiet(&browser, &page);
}
