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
        Action::Shorten(_) => "shorten",
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

/// An event by its name in order.txt.
fn event(name: &str) -> Event {
    let stop = || Answer::Stop("behind".to_owned());
    let waiting = || Answer::Waiting { reason: "others".to_owned(), pause: secs(5) };
    match name {
        "prepared" => prepared(),
        "prepared-without-workspace" => Event::Prepared { has_workspace: false },
        "failed-for-good" => Event::Failed { is_left: false },
        "failed-for-now" => Event::Failed { is_left: true },
        "setup-failed" => Event::SetupFailed { code: 1 },
        "notice" => notice(),
        "SIGTERM" => Event::Signalled(Signal::TERM),
        "fenced" => fenced(),
        "stopped-early" => Event::StoppedEarly("behind".to_owned()),
        "stalled" => Event::Stalled { seconds: 600, is_last: false },
        "stalled-for-good" => Event::Stalled { seconds: 600, is_last: true },
        "goes-back" => Event::Judged { goes_back: true },
        "not-to-blame" => Event::Judged { goes_back: false },
        "collected" => Event::Collected { is_whole: true },
        "sealed" => Event::Sealed,
        "unmounted" => Event::Unmounted,
        "accepted" => Event::Answered(Some(Answer::Accepted)),
        "stop" => Event::Answered(Some(stop())),
        "waiting" => Event::Answered(Some(waiting())),
        "no-answer" => Event::Answered(None),
        "time-over" => Event::TimeOver,
        other => {
            let (how, code) = other.rsplit_once('-').expect("a name and an exit code");
            ended(code.parse().expect("an exit code"), how == "ended")
        }
    }
}

/// Plays the cases of order.txt, and adds the actions that the machine decides on.
fn played(cases: &str) -> String {
    let mut machine = Machine::new(TERMS);
    let mut play = |line: &str| match &line.split_whitespace().collect::<Vec<_>>()[..] {
        [at, name, _action] if at.parse::<u64>().is_ok() => {
            let action = machine.on(event(name), secs(at.parse().expect("seconds")));
            format!("{at:<6}{name:<28}{}", action.as_ref().map_or("-", word))
        }
        _ => {
            machine = Machine::new(TERMS);
            machine.begin(None);
            line.to_owned()
        }
    };
    cases.lines().map(|line| play(line) + "\n").collect()
}

#[test]
fn an_attempt_seals_before_it_unmounts_and_unmounts_before_it_reports() {
    let cases = include_str!("order.txt");
    assert_eq!(played(cases), cases);
}

/// A machine whose command is asked to stop, and the graces that it gets.
fn stopping(events: Vec<(u64, Event)>) -> (Machine, Vec<Duration>) {
    let mut machine = Machine::new(Terms { grace: Some(secs(300)), ..TERMS });
    machine.begin(None);
    machine.on(prepared(), secs(1));
    let mut graces = Vec::new();
    for (at, event) in events {
        match machine.on(event, secs(at)) {
            Some(Action::Stop(stop)) => graces.push(secs(at) + stop.grace),
            Some(Action::Shorten(grace)) => graces.push(secs(at) + grace),
            other => panic!("{other:?}"),
        }
    }
    (machine, graces)
}

#[test]
fn what_comes_while_the_command_stops_leaves_it_less_time_and_not_more() {
    let stall = || Event::Stalled { seconds: 600, is_last: false };
    let (machine, graces) = stopping(vec![(10, stall()), (20, notice()), (30, Event::Signalled(Signal::TERM))]);
    // The stall alone would allow a grace until 310.
    assert_eq!(graces, [secs(310), secs(128), secs(30) + Duration::from_millis(18_850)]);
    let stop = machine.stop().expect("it is to stop");
    assert_eq!((stop.deadline, stop.stalled_seconds()), (secs(59), Some(600)));
    let timed_out = stopping(vec![(10, stall()), (890, Event::Signalled(Signal::TERM))]).0;
    assert_eq!(timed_out.stop().and_then(Stop::reason), Some(StopReason::TimedOut { seconds: 900 }));
    let fenced = stopping(vec![(10, fenced()), (890, Event::Signalled(Signal::TERM))]).0;
    assert!(matches!(fenced.stop().map(|stop| &stop.cause), Some(Cause::Fenced(_))));
}

#[test]
fn each_action_has_a_deadline_once_the_container_or_the_instance_ends() {
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
    // The container is killed before EC2 takes the instance.
    machine.on(Event::Signalled(Signal::TERM), secs(131));
    assert_eq!(machine.until(), Some(secs(140)));
    machine.on(Event::TimeOver, secs(140));
    assert_eq!(machine.until(), Some(secs(142)), "the last request");
    // Only the announced end of an instance is known.
    let mut machine = Machine::new(TERMS);
    assert_eq!(machine.begin(Some(secs(100))), Action::AwaitEnd);
    assert_eq!(machine.until(), Some(secs(400)));
}

#[test]
fn a_runner_exits_before_its_container_is_killed() {
    let sigterm = || Event::Signalled(Signal::TERM);
    // The events, the last of which is the signal. After them nothing ends in its time.
    let cases = [
        vec![sigterm()],
        vec![prepared(), ended(0, true), sigterm()],
        vec![prepared(), ended(0, true), notice(), sigterm()],
        vec![prepared(), ended(1, true), Event::Judged { goes_back: true }, sigterm()],
        vec![prepared(), ended(1, true), Event::Judged { goes_back: true }, Event::Sealed, sigterm()],
        vec![prepared(), ended(1, true), Event::Judged { goes_back: true }, Event::Sealed, Event::Unmounted, sigterm()],
    ];
    for events in cases {
        let mut machine = Machine::new(TERMS);
        machine.begin(None);
        for event in events.clone() {
            machine.on(event, secs(10));
        }
        let (mut at, mut action) = (secs(10), None);
        while !matches!(action, Some(Action::Exit(_))) {
            at = machine.until().unwrap_or_else(|| panic!("{events:?}: {action:?} has no end")).max(at);
            action = machine.on(Event::TimeOver, at);
        }
        assert!(at < secs(10) + TERMS.stop_after, "{events:?}: exits after {at:?}");
    }
}
