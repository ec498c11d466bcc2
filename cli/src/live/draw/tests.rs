use super::*;
use crate::live::WatchEvent;
use crate::live::samples::{at, interrupted, look, running, succeeded, trial};
use crate::progress::Best;
use spotsweep_records::trial::{JobStatus, Trial};

/// A sweep in its middle, with a trial of each state. The rest waits.
fn model(total: u32) -> Model {
    let mut again = trial(3, JobStatus::Runnable);
    again.ended = 1;
    *again.attempt(1) = interrupted("us-east-1c", 5, 70);
    let trials: Vec<Trial> = vec![
        succeeded(0, 5, 65, 0.5),
        running(1, "us-east-1a", 66),
        trial(2, JobStatus::Failed),
        again,
        trial(4, JobStatus::Starting),
    ];
    Model::new(look(90, total, trials)).0
}

fn frame(model: &Model, width: u16, height: u16, view: &View) -> (String, Buffer) {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    draw(model, view, area, &mut buffer);
    (rows(&buffer), buffer)
}

fn live(colours: bool) -> View {
    View { colours, foot: Some(Ok(())), ..View::still(at(95)) }
}

#[test]
fn a_small_terminal_shows_everything() {
    let model = model(24);
    let (text, buffer) = frame(&model, 80, 24, &live(false));
    let id = model.look.sweep.id.as_str();
    let expected = format!(
        "{id}  running                 1 min 35 s · about 11 min 45 s left
sweeps/digits.yaml · 24 trials · 3 attempts
1 interruption · 0 zone moves · 20 s lost
── trials ──────────────────────────────────────────────────────────────────────
■●✗↻○···················
✗ 1 failed  ↻ 1 interrupted  ● 1 running  ○ 1 starting  · 19 waiting  ■ 1 done
── zones and instances ─────────────────────────────────────────────────────────
us-east-1a     1 running   i-us-east-1a
best accuracy 0.5000 (trial 0)                      ▅▅▅▅▅▅▅▅▅▅
── waits for ───────────────────────────────────────────────────────────────────
20 trials wait for an instance while 2 run or start
── what happened ───────────────────────────────────────────────────────────────
    1:30  the sweep is running
    1:30  trial 2 failed after 0 attempts: no reason was given
    1:10  trial 3 is interrupted in us-east-1c: attempt 1: Host EC2 (instance i-
    1:06  trial 1 runs in us-east-1a on i-us-east-1a
    1:05  trial 0 succeeded after 1 min, accuracy 0.5000, the best so far
    0:05  trial 3 runs in us-east-1c on i-us-east-1c
    0:05  trial 0 runs in us-east-1a on i-us-east-1a




q quit   ↑ ↓ PgUp PgDn scroll   ? help
"
    );
    assert_eq!(text, expected);
    assert!(buffer.content.iter().all(|cell| cell.fg == Color::Reset), "NO_COLOR is kept");
}

#[test]
fn colours_tell_the_same_as_symbols() {
    let (text, buffer) = frame(&model(24), 80, 24, &live(true));
    assert_eq!(text, frame(&model(24), 80, 24, &live(false)).0);
    let colour = |column: u16| buffer.cell((column, 4)).map(|cell| cell.fg);
    let expected = [Color::Green, Color::Cyan, Color::Red, Color::Magenta, Color::Yellow, Color::DarkGray];
    for (column, expected) in (0..).zip(expected) {
        assert_eq!(colour(column), Some(expected), "cell {column}");
    }
}

#[test]
fn every_size_of_sweep_and_terminal_fits() {
    let legends = [(1_000, 80, 24), (10_000, 80, 24), (10_000, 200, 50), (1_000, 200, 50), (100_000, 80, 24)];
    for (total, width, height) in legends {
        let (text, _) = frame(&model(total), width, height, &live(false));
        let all: Vec<&str> = text.lines().collect();
        assert_eq!(all.len(), usize::from(height), "{total} on {width}x{height}:\n{text}");
        for part in ["zones and instances", "best accuracy", "waits for", "trial 0 succeeded", "q quit"] {
            assert!(text.contains(part), "{part}: {total} on {width}x{height}:\n{text}");
        }
        let begin = all.iter().position(|line| line.starts_with("── trials")).unwrap_or_default();
        let end = all.iter().position(|line| line.contains(" running  ○ ")).unwrap_or_default();
        let cells: usize = all[begin + 1..end].iter().map(|line| line.chars().count()).sum();
        let each = usize::try_from(total).unwrap_or_default().div_ceil(cells);
        assert!(all[begin].contains(&format!("{each} to a cell")) || each == 1, "{total}: {}", all[begin]);
        assert!(all[begin + 1].starts_with(if each > 3 { '✗' } else { '■' }) || each > 1, "{}", all[begin + 1]);
    }
    for (width, height) in [(0, 0), (1, 1), (5, 2), (20, 5), (30, 9), (300, 3)] {
        frame(&model(24), width, height, &live(true));
    }
}

#[test]
fn events_scroll_and_help_replaces_them() {
    let mut model = model(24);
    let news = |second: i64| WatchEvent { at: at(second), ..model.events[0].clone() };
    model.events = (1..=200).map(news).collect();
    let newest = |scroll| {
        let (text, _) = frame(&model, 80, 24, &View { scroll, ..live(false) });
        let mut lines = text.lines().skip_while(|line| !line.starts_with("── what happened"));
        (lines.next().map(str::to_owned), lines.next().map(|line| line.trim_start().to_owned()))
    };
    assert!(newest(0).1.is_some_and(|line| line.starts_with("3:20  ")));
    let (title, line) = newest(20);
    assert!(
        title.is_some_and(|title| title.contains("20 newer above"))
            && line.is_some_and(|line| line.starts_with("3:00"))
    );
    assert!(newest(1_000).1.is_some_and(|line| line.starts_with("0:01")), "the oldest stays in sight");

    let (text, _) = frame(&model, 80, 24, &View { help: true, ..live(false) });
    assert!(text.contains("Ctrl-C    quit") && !text.contains("what happened ─"), "{text}");
    let trouble = View { foot: Some(Err("looking again: no network".to_owned())), ..live(false) };
    assert!(frame(&model, 80, 24, &trouble).0.ends_with("looking again: no network\n"));
}

#[test]
fn costs_are_shown_where_they_are_known() {
    let mut model = model(24);
    for (cost, expected) in [
        ((1.234, 4.0), "cost $1.23 (on demand: $4.00)"),
        ((0.000_28, 0.000_554), "cost $0.00028 (on demand: $0.00055)"),
    ] {
        model.cost = Some(cost);
        let (text, _) = frame(&model, 80, 24, &live(false));
        let line = text.lines().nth(1).unwrap_or_default();
        assert!(line.ends_with(expected), "{line}");
    }
}

#[test]
fn what_others_have_written_cannot_leave_its_cell() {
    let mut model = model(2);
    let metric = "\u{1b}[2Jacc\u{202e}".to_owned();
    model.figures.best = Some(Best { metric, value: 1.0, trial: 0, mean: None });
    let text = text(&model, &View::still(at(95)), 80, 24);
    assert!(!text.contains('\u{1b}') && text.contains("[2Jacc"), "{text}");
    assert!(!text.ends_with("\n\n"), "no blank end");
}

#[test]
fn a_warning_is_shown_while_it_holds_and_reported_once() {
    let reporting = |reports| {
        let mut trial = running(0, "us-east-1a", 5);
        trial.metrics = succeeded(0, 5, 6, 0.5).metrics.into_values().map(|value| ("loss".to_owned(), value)).collect();
        trial.attempt(1).sequence = Some(reports);
        trial
    };
    let count = |news: &[WatchEvent]| news.iter().filter(|news| news.text().starts_with("warning: no trial")).count();
    let (mut model, news) = Model::new(look(20, 24, vec![reporting(1)]));
    assert_eq!((count(&news), model.json()["warnings"].as_array().map(Vec::len)), (0, Some(0)));
    let news = model.take(look(35, 24, vec![reporting(2)]));
    assert_eq!(count(&news), 1, "{news:?}");
    let line = serde_json::to_value(&news[0]).unwrap_or_default();
    assert_eq!((&line["what"], line["warning"].is_string()), (&serde_json::json!("warned"), true), "{line}");
    assert_eq!(count(&model.take(look(50, 24, vec![reporting(3)]))), 0, "it is the same, with other numbers");
    assert!(model.json()["warnings"][0].as_str().is_some_and(|text| text.contains("in 3 reports of trial 0")));
    let (shown, _) = frame(&model, 80, 24, &live(false));
    let rows: Vec<&str> = shown.lines().skip_while(|line| !line.starts_with("── warnings")).collect();
    assert_eq!(
        rows[1..5],
        [
            "no trial has reported `accuracy` yet, in 3 reports of trial 0: without it no",
            "trial has a rank; metrics that trials printed: loss, one of which can be named",
            "as `metric: {name: …}`",
            "── what happened ───────────────────────────────────────────────────────────────",
        ],
        "{shown}"
    );
    model.warnings = vec!["word ".repeat(200)];
    let (shown, _) = frame(&model, 80, 24, &live(false));
    assert!(shown.contains("… `spotsweep status` shows all\n── what happened"), "{shown}");
    for (width, height) in [(0, 0), (1, 1), (5, 9), (20, 5)] {
        frame(&model, width, height, &live(true));
    }
    model.take(look(60, 24, vec![succeeded(0, 5, 55, 0.5)]));
    assert!(model.warnings.is_empty() && !frame(&model, 80, 24, &live(false)).0.contains("── warnings"));
}
