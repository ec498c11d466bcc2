//! What the run leaves: a page for people and a document for programs.

use serde_json::{Value, json};

use super::checks::{Check, Delay, Verdict};

/// What no recorded event tells; the page names it, so that its silence is not taken for approval.
const NOT_JUDGED: [&str; 2] = [
    "session tags: whether the credentials that trials borrow reach only their own results",
    "costs: whether `spotsweep cost` agrees with the bill",
];

/// `acceptance.json`.
pub(super) fn document(checks: &[Check], delays: &[Delay]) -> Value {
    let delay = |delay: &Delay| json!({ "kind": delay.kind, "events": delay.events, "median_seconds": delay.median, "longest_seconds": delay.longest });
    json!({
        "checks": checks,
        "delays": delays.iter().map(delay).collect::<Vec<_>>(),
        "not_judged": NOT_JUDGED,
    })
}

/// `acceptance.md`: what did not hold comes first.
pub(super) fn markdown(checks: &[Check], delays: &[Delay]) -> String {
    let mut text = String::from("# Acceptance: recorded events against assumptions\n\n");
    for verdict in [Verdict::DidNotHold, Verdict::NotSeen, Verdict::Held] {
        let chosen: Vec<&Check> = checks.iter().filter(|check| check.verdict == verdict).collect();
        if chosen.is_empty() {
            continue;
        }
        text.push_str(&format!("## {} of {}: {}\n\n", chosen.len(), checks.len(), verdict.name()));
        for check in chosen {
            text.push_str(&format!("**{}.** {}\n\n", check.name, check.assumption));
            check.recorded.iter().for_each(|line| text.push_str(&format!("- {line}\n")));
            text.push_str(if check.recorded.is_empty() { "" } else { "\n" });
        }
    }
    text.push_str("## Not judged here\n\n");
    NOT_JUDGED.iter().for_each(|line| text.push_str(&format!("- {line}\n")));
    text.push_str("\n## Delays\n\nFrom an event's time, which is cut to the second, to its arrival.\n\n");
    text.push_str("| event | recorded | median | longest |\n|---|---|---|---|\n");
    for Delay { kind, events, median, longest } in delays {
        text.push_str(&format!("| {kind} | {events} | {median:.1} s | {longest:.1} s |\n"));
    }
    text
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
        let page = markdown(&checks, &[]);
        let place = |part: &str| page.find(part).unwrap_or(usize::MAX);
        assert!(
            place("1 of 3: did not hold") < place("**bad.**") && place("case 2") < place("1 of 3: not seen"),
            "{page}"
        );
        assert!(place("**unknown.**") < place("**good.**") && place("case 1") < place("session tags"), "{page}");
        assert_eq!(document(&checks, &[])["checks"][1]["verdict"], "did-not-hold");
    }
}
