//! Report pages of sweeps that repeat their parameter sets, and of sweeps that search.

use super::browser::Browser;
use super::{HOSTILE, HOSTILE_NAMES, SMALL, assert_quiet, heading, lines, listed, shapes, texts, write_page};
use serde_json::json;

#[test]
fn repeated_sets_are_ranked_before_the_trials() {
    let synthetic = SMALL.roll().repeated("seed");
    let page = write_page("repeated", &synthetic);
    let Some(browser) = Browser::start() else { return };
    browser.open(&page);
    assert_eq!(texts(&browser, "h2")[..2], ["Parameter sets", "Leaderboard"]);
    // Trials 5 and 22 have failed, so sets 5 and 6 have no rank.
    let ranks = texts(&browser, "#sets tbody td:first-child");
    assert_eq!(ranks, ["1", "2", "3", "4", "5", "6", "–", "–"]);
    let flags = texts(&browser, "#sets tbody .status.failed");
    assert_eq!(flags, ["1 of 3 failed", "1 of 3 failed"]);
    let heads = texts(&browser, "#sets thead th");
    assert!(heads.contains(&"mean val_loss".to_owned()) && !heads.contains(&"seed".to_owned()), "{heads:?}");
    let best = &texts(&browser, "#sets tbody tr:first-child td")[1..3];
    let tile = &texts(&browser, ".tile")[0];
    let (mean, error) = best[1].split_once(" ± ").unwrap();
    assert!(tile.starts_with(&format!("Best: smallest mean val_loss{mean}± {error}, trials {}", best[0])), "{tile}");
    let first = listed(&browser)[0].to_string();
    assert!(best[0].split(", ").any(|trial| trial == first), "the best trial is one of the best set: {best:?} {first}");
    heading(&browser, "set");
    assert!(texts(&browser, "#importance p")[0].contains("8 parameter sets"), "a set counts once");
    assert_quiet(&browser, &page);
}

#[test]
fn a_search_shows_predictions_and_regret() {
    let page = write_page("search", &SMALL.roll().searched());
    let Some(browser) = Browser::start() else { return };
    browser.open(&page);
    assert!(texts(&browser, "h2").contains(&"Suggested and found".to_owned()));
    assert!(texts(&browser, "header p.muted").iter().any(|text| {
        text.starts_with("Early stopping (hyperband): trials are compared at steps 3, 9, 27 of val_loss.")
    }));
    // Of 24 trials, the first four do not come from a model, and trials 5 and 22 have failed.
    assert_eq!(shapes(&browser, "predictions", ".above circle.found"), 18);
    assert_eq!(shapes(&browser, "predictions", ".equal"), 1);
    let improved = shapes(&browser, "regret", ".above circle.found");
    assert!(improved > 0 && lines(&browser, "regret") == 1, "{improved}");
    browser.run("document.querySelectorAll('#search summary').forEach((one) => one.click())");
    browser.settle();
    assert_eq!(texts(&browser, "#search details:first-of-type tbody tr").len(), 24);
    let regrets = texts(&browser, "#search details:last-of-type tbody td:last-child");
    assert!(regrets.len() == improved && regrets.last().is_some_and(|last| last == "0"), "{regrets:?}");
    for (label, value) in [("Show", "regret"), ("Against", "ended")] {
        browser.run(&format!(
            "const select = [...document.querySelectorAll('#search label')].find((one) => one.firstChild.data === {})
                .querySelector('select');
             select.value = {}; select.dispatchEvent(new Event('change'))",
            json!(label),
            json!(value)
        ));
    }
    let titles = texts(&browser, "#regret-chart text.muted");
    assert!(titles.contains(&"simple regret of val_loss".to_owned()) && titles.contains(&"trials ended".to_owned()));
    assert_quiet(&browser, &page);
}

#[test]
fn names_of_others_stay_texts_where_sets_are_searched() {
    let page = write_page("searched-sets", &HOSTILE_NAMES.roll().repeated(&format!("seed{HOSTILE}")).searched());
    let Some(browser) = Browser::start() else { return };
    browser.open(&page);
    assert!(texts(&browser, "#sets p")[0].contains(&format!("seed{HOSTILE}")));
    browser.run("document.querySelectorAll('summary').forEach((one) => one.click())");
    browser.settle();
    assert_eq!(browser.run("return [document.scripts.length, document.images.length]"), json!([2, 0]));
    // Sets 0 to 3 do not come from a model, and sets 5 and 6 lack a result.
    assert_eq!(shapes(&browser, "predictions", ".above circle.found"), 2);
    assert_quiet(&browser, &page);
}
