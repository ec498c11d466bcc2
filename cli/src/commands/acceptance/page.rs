//! Writes a judgement as a page for people and as a document for programs.

use serde_json::{Value, json};

use super::checks::{Check, Delay, Verdict};

/// What is not checked. The page lists it, so that its absence is not taken for approval.
const NOT_JUDGED: [&str; 2] =
    ["the bill itself, which AWS has a day later: compare it with the costs above", "GPUs: the sweep trains on CPUs"];

/// The run that was judged.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct About {
    /// What was done, line by line.
    pub(super) done: Vec<String>,
    /// Cost of the trials in USD, if it is known.
    pub(super) trials_usd: Option<f64>,
    /// The estimate before the run, in USD.
    pub(super) estimate_usd: f64,
}

/// The content of `acceptance.json`.
pub(super) fn document(checks: &[Check], delays: &[Delay], about: &About) -> Value {
    let delay = |delay: &Delay| json!({ "kind": delay.kind, "events": delay.events, "median_seconds": delay.median, "longest_seconds": delay.longest });
    json!({
        "done": about.done,
        "costs": { "trials_usd": about.trials_usd, "estimate_usd": about.estimate_usd },
        "checks": checks,
        "delays": delays.iter().map(delay).collect::<Vec<_>>(),
        "not_judged": NOT_JUDGED,
    })
}

/// The content of `acceptance.md`. Checks that did not hold come first.
pub(super) fn markdown(checks: &[Check], delays: &[Delay], about: &About) -> String {
    let mut text = String::from("# Acceptance: what was seen against what is assumed\n\n");
    for verdict in [Verdict::DidNotHold, Verdict::NotSeen, Verdict::Held] {
        let chosen: Vec<&Check> = checks.iter().filter(|check| check.verdict == verdict).collect();
        if chosen.is_empty() {
            continue;
        }
        text.push_str(&format!("## {} of {}: {}\n\n", chosen.len(), checks.len(), verdict.name()));
        for check in chosen {
            text.push_str(&format!("**{}.** {}\n\n", check.name, check.assumption));
            list(&mut text, &check.recorded);
        }
    }
    text.push_str("## What was done\n\n");
    list(&mut text, &about.done);
    text.push_str("## Not judged here\n\n");
    list(&mut text, &NOT_JUDGED);
    text.push_str("## Delays\n\nFrom an event's time, which is cut to the second, to its arrival.\n\n");
    text.push_str("| event | recorded | median | longest |\n|---|---|---|---|\n");
    for Delay { kind, events, median, longest } in delays {
        text.push_str(&format!("| {kind} | {events} | {median:.1} s | {longest:.1} s |\n"));
    }
    text
}

fn list<T: std::fmt::Display>(text: &mut String, lines: &[T]) {
    lines.iter().for_each(|line| text.push_str(&format!("- {line}\n")));
    text.push_str(if lines.is_empty() { "" } else { "\n" });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_hold_comes_first_and_is_named() {
        let check = |name, verdict, recorded: &[&str]| Check {
            name,
            assumption: "So it is.",
            verdict,
            recorded: recorded.iter().map(ToString::to_string).collect(),
        };
        let checks = [
            check("good", Verdict::Held, &["case 1"]),
            check("bad", Verdict::DidNotHold, &["case 2"]),
            check("unknown", Verdict::NotSeen, &[]),
        ];
        let about = About { done: Vec::new(), trials_usd: None, estimate_usd: 0.5 };
        let page = markdown(&checks, &[], &about);
        let place = |part: &str| page.find(part).unwrap_or(usize::MAX);
        assert!(
            place("1 of 3: did not hold") < place("**bad.**") && place("case 2") < place("1 of 3: not seen"),
            "{page}"
        );
        assert!(place("**unknown.**") < place("**good.**") && place("case 1") < place("the bill itself"), "{page}");
        assert_eq!(document(&checks, &[], &about)["checks"][1]["verdict"], "did-not-hold");
    }
}
