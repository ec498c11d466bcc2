use rustix::process::Signal;

use super::*;

const TERMS: Terms = Terms {
    signal: Signal::TERM,
    grace: None,
    stop_after: Duration::from_secs(30),
    timeout: Some(Duration::from_secs(900)),
};

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// One word for each action.
fn word(action: &Action) -> &'static str {
    match action {
        Action::Prepare => "prepare",
        Action::Train => "train",
        Action::Stop(_) => "stop",
        Action::Hurry(_) => "hurry",
        Action::Judge => "judge",
        Action::Collect { .. } => "collect",
        Action::Seal { .. } => "seal",
        Action::Unmount => "unmount",
        Action::Release => "release",
        Action::End { .. } => "end",
        Action::AwaitEnd => "await",
        Action::Exit(Exit::Code(_)) => "exit",
        Action::Exit(Exit::Left(_)) => "left",
        Action::Exit(Exit::Refused(_)) => "refused",
        Action::Exit(Exit::Unfit(_)) => "unfit",
        Action::Exit(Exit::Failed) => "failed",
    }
}

fn notice() -> Event {
    Event::Noticed { left: secs(120), why: "EC2 takes it".to_owned() }
}

fn fenced() -> Event {
    Event::Fenced(StopReason::Fenced { attempt: 1 })
}

fn ended(code: i32, is_by_itself: bool) -> Event {
    Event::CommandEnded { code, is_finished: false, is_by_itself }
}

fn prepared() -> Event {
    Event::Prepared { has_workspace: true }
}

fn collected() -> Event {
    Event::Collected { is_whole: true }
}

fn accepted() -> Event {
    Event::Answered(Some(Answer::Accepted))
}

/// The actions that follow from events, each after so many seconds.
fn actions(events: Vec<(u64, Event)>) -> String {
    let mut machine = Machine::new(TERMS);
    let mut words = vec![word(&machine.begin(None))];
    words.extend(events.into_iter().filter_map(|(at, event)| machine.on(event, secs(at))).map(|action| word(&action)));
    words.join(" ")
}

#[test]
fn an_attempt_seals_before_it_unmounts_and_unmounts_before_it_tells() {
    let term = || Event::Signalled(Signal::TERM);
    let stall = Event::Stalled { seconds: 600, is_last: false };
    let early = || Event::StoppedEarly("behind".to_owned());
    let judged = |goes_back| Event::Judged { goes_back };
    let cases: Vec<(&str, Vec<(u64, Event)>, &str)> = vec![
        (
            "a success",
            vec![(9, prepared()), (99, ended(0, true)), (100, collected()), (101, Event::Unmounted), (102, accepted())],
            "prepare train collect unmount end exit",
        ),
        (
            "a failure",
            vec![
                (9, prepared()),
                (99, ended(1, true)),
                (99, judged(false)),
                (100, collected()),
                (101, Event::Sealed),
                (102, Event::Unmounted),
                (103, accepted()),
            ],
            "prepare train judge collect seal unmount end exit",
        ),
        (
            "a failure on its checkpoint",
            vec![
                (9, prepared()),
                (99, ended(1, true)),
                (99, judged(true)),
                (100, Event::Sealed),
                (101, Event::Unmounted),
                (102, accepted()),
            ],
            "prepare train judge seal unmount release left",
        ),
        (
            "a notice",
            vec![
                (9, prepared()),
                (50, notice()),
                (60, ended(143, false)),
                (61, Event::Sealed),
                (62, Event::Unmounted),
                (63, accepted()),
            ],
            "prepare train stop seal unmount release left",
        ),
        (
            "a notice before the command",
            vec![(9, notice()), (10, Event::Unmounted), (11, accepted())],
            "prepare unmount release await",
        ),
        (
            "a signal before the command",
            vec![(9, term()), (10, Event::Unmounted), (11, accepted())],
            "prepare unmount release left",
        ),
        (
            "a notice and a signal before the command",
            vec![(9, notice()), (10, term()), (11, Event::Unmounted), (12, accepted())],
            "prepare unmount release left",
        ),
        (
            "no time to seal",
            vec![
                (9, prepared()),
                (50, notice()),
                (160, ended(143, false)),
                (170, Event::TimeOver),
                (172, Event::TimeOver),
            ],
            "prepare train stop seal release left",
        ),
        (
            "fenced while it saves",
            vec![
                (9, prepared()),
                (50, notice()),
                (55, fenced()),
                (60, ended(143, false)),
                (61, Event::Sealed),
                (62, Event::Unmounted),
            ],
            "prepare train stop hurry seal unmount refused",
        ),
        (
            "fenced while it uploads",
            vec![(9, prepared()), (99, ended(0, true)), (100, fenced()), (101, Event::Sealed), (102, Event::Unmounted)],
            "prepare train collect seal unmount refused",
        ),
        ("fenced before the command", vec![(9, fenced()), (10, Event::Unmounted)], "prepare unmount refused"),
        (
            "a notice while it uploads a success",
            vec![
                (9, prepared()),
                (99, ended(0, true)),
                (100, notice()),
                (208, Event::TimeOver),
                (209, Event::Sealed),
                (210, Event::Unmounted),
                (211, accepted()),
            ],
            "prepare train collect seal unmount release left",
        ),
        (
            "the timeout while it uploads a success",
            vec![
                (9, prepared()),
                (890, ended(0, true)),
                (895, term()),
                (920, Event::TimeOver),
                (921, Event::Sealed),
                (922, Event::Unmounted),
                (923, accepted()),
            ],
            "prepare train collect seal unmount end exit",
        ),
        (
            "a stall, a notice and a signal",
            vec![(9, prepared()), (50, stall), (55, notice()), (60, term()), (61, early()), (62, ended(143, false))],
            "prepare train stop hurry hurry seal",
        ),
        (
            "stopped early, then a notice",
            vec![
                (9, prepared()),
                (50, early()),
                (51, notice()),
                (60, ended(143, false)),
                (61, collected()),
                (62, Event::Unmounted),
                (63, accepted()),
            ],
            "prepare train stop hurry collect unmount end exit",
        ),
        (
            "the trial is stopped early meanwhile",
            vec![
                (9, prepared()),
                (50, notice()),
                (60, ended(143, false)),
                (61, Event::Sealed),
                (62, Event::Unmounted),
                (63, Event::Answered(Some(Answer::Stop(String::new())))),
            ],
            "prepare train stop seal unmount release exit",
        ),
        (
            "no answer",
            vec![
                (9, prepared()),
                (50, term()),
                (60, ended(143, false)),
                (61, Event::Sealed),
                (62, Event::Unmounted),
                (80, Event::TimeOver),
            ],
            "prepare train stop seal unmount release left",
        ),
        (
            "no answer to a failure before the container is killed",
            vec![
                (9, prepared()),
                (10, ended(1, true)),
                (10, judged(false)),
                (11, term()),
                (12, collected()),
                (13, Event::Sealed),
                (14, Event::Unmounted),
                (40, Event::TimeOver),
            ],
            "prepare train judge collect seal unmount end left",
        ),
        (
            "no workspace",
            vec![
                (9, Event::Prepared { has_workspace: false }),
                (50, notice()),
                (60, term()),
                (70, ended(143, false)),
                (71, collected()),
                (72, accepted()),
            ],
            "prepare train stop collect release left",
        ),
        (
            "the runner fails for good",
            vec![(9, Event::Failed { is_left: false }), (10, Event::Unmounted)],
            "prepare unmount failed",
        ),
        (
            "the workspace does not come",
            vec![(1800, Event::Failed { is_left: true }), (1801, Event::Unmounted), (1802, accepted())],
            "prepare unmount release failed",
        ),
        (
            "what comes late",
            vec![(9, prepared()), (10, Event::Unmounted), (11, accepted()), (12, Event::Sealed)],
            "prepare train",
        ),
    ];
    for (what, events, expected) in cases {
        assert_eq!(actions(events), expected, "{what}");
    }
}

/// A machine whose command is asked to stop, with the times that it is given.
fn stopping(events: Vec<(u64, Event)>) -> (Machine, Vec<Duration>) {
    let mut machine = Machine::new(Terms { grace: Some(secs(300)), ..TERMS });
    machine.begin(None);
    machine.on(prepared(), secs(1));
    let mut graces = Vec::new();
    for (at, event) in events {
        match machine.on(event, secs(at)) {
            Some(Action::Stop(stop)) => graces.push(secs(at) + stop.grace),
            Some(Action::Hurry(grace)) => graces.push(secs(at) + grace),
            other => panic!("{other:?}"),
        }
    }
    (machine, graces)
}

#[test]
fn what_comes_while_the_command_stops_leaves_it_less_time_and_not_more() {
    let stall = || Event::Stalled { seconds: 600, is_last: false };
    let (machine, graces) = stopping(vec![(10, stall()), (20, notice()), (30, Event::Signalled(Signal::TERM))]);
    // The stall alone would leave it until 310.
    assert_eq!(graces, [secs(310), secs(128), secs(30) + Duration::from_millis(19_500)]);
    let stop = machine.stop().expect("it is to stop");
    assert_eq!((stop.deadline, stop.stalled_seconds()), (secs(60), Some(600)));
    let timed_out = stopping(vec![(10, stall()), (890, Event::Signalled(Signal::TERM))]).0;
    assert_eq!(timed_out.stop().and_then(Stop::reason), Some(StopReason::TimedOut { seconds: 900 }));
    let fenced = stopping(vec![(10, fenced()), (890, Event::Signalled(Signal::TERM))]).0;
    assert!(matches!(fenced.stop().map(|stop| &stop.cause), Some(Cause::Fenced(_))));
}

#[test]
fn each_action_has_an_end_where_something_presses() {
    let mut machine = Machine::new(TERMS);
    machine.begin(None);
    machine.on(prepared(), secs(1));
    machine.on(ended(0, true), secs(10));
    assert_eq!(machine.until(), None, "an upload may take as long as it needs");
    machine.on(notice(), secs(20));
    assert_eq!(machine.until(), Some(secs(128)));
    let seal = machine.on(Event::TimeOver, secs(128));
    assert_eq!(seal, Some(Action::Seal { reading_until: secs(134), is_left: true }));
    assert_eq!(machine.until(), Some(secs(140)));
    machine.on(Event::Sealed, secs(130));
    assert_eq!(machine.until(), Some(secs(140)));
    // The container is killed earlier than the instance is taken.
    machine.on(Event::Signalled(Signal::TERM), secs(131));
    assert_eq!(machine.until(), Some(secs(140)));
    machine.on(Event::TimeOver, secs(140));
    assert_eq!(machine.until(), Some(secs(142)), "the last word");
    // Nothing is known of the end of an instance but what was announced.
    let mut machine = Machine::new(TERMS);
    assert_eq!(machine.begin(Some(secs(100))), Action::AwaitEnd);
    assert_eq!(machine.until(), Some(secs(400)));
}
