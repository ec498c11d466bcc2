//! Tests with invented process trees.
use super::*;

const TERM: &[Signal] = &[Signal::TERM];
const NONE: &[Signal] = &[];
const INT: &[Signal] = &[Signal::INT];

/// `(pid, parent, program, handled signals, whether it waits for a child)` of each process; 1 is the command.
type Row = (i32, i32, &'static str, &'static [Signal], bool);

#[test]
fn the_topmost_process_with_a_handler_gets_the_signal() {
    let trees: [(&str, &[Row], &[i32]); 21] = [
        ("a training", &[(1, 0, "python3", TERM, false)], &[1]),
        ("a training without a handler", &[(1, 0, "python3", INT, false)], &[]),
        ("data loaders", &[(1, 0, "python3", TERM, false), (2, 1, "python3", TERM, false)], &[1]),
        (
            "data loaders of one without a handler",
            &[(1, 0, "python3", INT, false), (2, 1, "python3", TERM, false)],
            &[],
        ),
        ("a script", &[(1, 0, "dash", NONE, true), (2, 1, "python3", TERM, false)], &[2]),
        (
            "a pipeline with data loaders",
            &[
                (1, 0, "bash", NONE, true),
                (2, 1, "python3", TERM, false),
                (3, 1, "tee", NONE, false),
                (4, 2, "python3", TERM, false),
            ],
            &[2],
        ),
        ("a launcher", &[(1, 0, "python3", INT, true), (2, 1, "python3", TERM, false)], &[2]),
        ("a launcher with a handler", &[(1, 0, "python3", TERM, true), (2, 1, "python3", TERM, false)], &[1]),
        ("a script with a trap", &[(1, 0, "bash", TERM, true), (2, 1, "python3", TERM, false)], &[2]),
        ("a script with a trap alone", &[(1, 0, "bash", TERM, true), (2, 1, "sleep", NONE, false)], &[1]),
        ("a command between fork and exec", &[(1, 0, "bash", TERM, true), (2, 1, "bash", TERM, false)], &[1]),
        ("timeout", &[(1, 0, "timeout", TERM, true), (2, 1, "python3", TERM, false)], &[2]),
        (
            "timeout of one without a handler",
            &[(1, 0, "timeout", TERM, true), (2, 1, "python3", INT, false), (3, 2, "python3", TERM, false)],
            &[],
        ),
        ("uv", &[(1, 0, "uv", TERM, false), (2, 1, "python3", TERM, false)], &[2]),
        ("uv of one without a handler", &[(1, 0, "uv", TERM, false), (2, 1, "python3", INT, false)], &[]),
        ("micromamba", &[(1, 0, "micromamba", TERM, false), (2, 1, "python3", TERM, false)], &[2]),
        (
            "Open MPI",
            &[(1, 0, "prterun", TERM, false), (2, 1, "python3", TERM, false), (3, 1, "python3", TERM, false)],
            &[2, 3],
        ),
        (
            "MPICH",
            &[
                (1, 0, "mpiexec.hydra", TERM, false),
                (2, 1, "hydra_pmi_proxy", TERM, false),
                (3, 2, "python3", TERM, false),
            ],
            &[3],
        ),
        (
            "conda, which reads what the training says",
            &[(1, 0, "conda", INT, false), (2, 1, "bash", NONE, true), (3, 2, "python3", TERM, false)],
            &[3],
        ),
        (
            "two branches",
            &[(1, 0, "sh", NONE, true), (2, 1, "python3", TERM, false), (3, 1, "python3", TERM, false)],
            &[2, 3],
        ),
        ("a circle, of processes that end meanwhile", &[(1, 2, "sh", NONE, true), (2, 1, "sh", NONE, true)], &[]),
    ];
    for (what, rows, expected) in trees {
        let processes: Vec<_> = rows
            .iter()
            .map(|(pid, parent, program, handled, waits)| process(*pid, *parent, program, handled, *waits))
            .collect();
        assert_eq!(found(&processes), (expected.to_vec(), vec![]), "{what}");
    }
}

/// The trainings and the helpers that get the signal.
fn found(processes: &[Process]) -> (Vec<i32>, Vec<i32>) {
    // `tee` and `tail` read what the process before them prints.
    let reads = |reader: &Process, writer: &Process| {
        let is_reader = |program| !reader.is_other_than(&Process::new(0, 0, program));
        ["tee", "tail"].into_iter().any(is_reader) && reader.id.pid == writer.id.pid + 1
    };
    let mut targets = targets(1, &Tree { processes, reads: &reads }, Signal::TERM);
    targets.sort_by_key(|target| target.id);
    let (helpers, trainings): (Vec<_>, Vec<_>) = targets.into_iter().partition(|target| target.is_helper);
    let pids = |targets: Vec<Target>| targets.into_iter().map(|target| target.id.pid).collect();
    (pids(trainings), pids(helpers))
}

fn process(pid: i32, parent: i32, program: &str, handled: &[Signal], waits: bool) -> Process {
    Process { waits, ..Process::new(pid, parent, program).handling(handled) }
}

fn sh(handled: &[Signal]) -> Process {
    process(1, 0, "sh", handled, true)
}

fn python(pid: i32, parent: i32, arguments: &str, handled: &[Signal]) -> Process {
    Process::new(pid, parent, "python3").handling(handled).with_arguments(arguments)
}

/// A server in the background.
fn server(pid: i32) -> Process {
    process(pid, 1, "redis-server", TERM, false).in_background()
}

/// A process after this much work: ticks, writes and bytes.
fn worked(process: Process, ticks: u64, writes: u64, bytes: u64) -> Process {
    process.that_did(Work { ticks, writes, bytes })
}

/// The launcher polls, reads what the training prints, or waits in a thread.
#[test]
fn a_launcher_that_does_not_wait_is_passed_over() {
    let launcher = || python(1, 0, "launch.py", NONE);
    let training = || worked(python(2, 1, "train.py", TERM), 30, 40, 600);
    let cases: [(&str, Vec<Process>, &[i32]); 9] = [
        ("a launcher", vec![launcher(), training()], &[2]),
        ("it prints what the training prints", vec![worked(launcher(), 900, 40, 2000), training()], &[2]),
        ("by way of a shell", vec![launcher(), process(2, 1, "sh", NONE, true), python(3, 2, "train.py", TERM)], &[3]),
        (
            "ranks",
            vec![launcher(), python(2, 1, "train.py --rank=0", TERM), python(3, 1, "train.py --rank=1", TERM)],
            &[2, 3],
        ),
        ("copies of a training, which load its data", vec![launcher(), python(2, 1, "launch.py", TERM)], &[]),
        ("a training that prints its steps", vec![worked(launcher(), 20, 60, 900), worked(training(), 9, 1, 13)], &[]),
        ("a training that computes", vec![worked(launcher(), 90_000, 9, 90), worked(training(), 100, 50, 900)], &[]),
        ("a training, then a monitor", vec![launcher(), python(2, 1, "train.py", TERM), python(3, 1, "x", NONE)], &[2]),
        ("a launcher with a handler", vec![python(1, 0, "launch.py", TERM), training()], &[1]),
    ];
    for (what, processes, expected) in cases {
        assert_eq!(found(&processes), (expected.to_vec(), vec![]), "{what}");
    }
}

/// A training that has run for minutes.
fn busy(process: Process) -> Process {
    worked(process, 30_000, 400, 60_000)
}

/// A monitor that regularly prints the load of the GPU.
fn monitor(pid: i32, handled: &[Signal]) -> Process {
    worked(process(pid, 1, "nvidia-smi", handled, false), 20, 30, 900)
}

/// Processes, the trainings that get the signal, and the helpers that get it later.
type Case = (&'static str, Vec<Process>, &'static [i32], &'static [i32]);

#[test]
fn helpers_get_the_signal_later() {
    let training = |pid, handled| worked(python(pid, 1, "train.py", handled), 30, 40, 600);
    let cases: [Case; 13] = [
        ("in the background", vec![sh(NONE), server(2), training(3, TERM)], &[3], &[2]),
        ("of a training without a handler", vec![sh(NONE), server(2), training(3, NONE)], &[], &[2]),
        ("of a shell with a trap", vec![sh(TERM), server(2), training(3, NONE)], &[1], &[2]),
        ("of a pipeline", vec![sh(NONE), server(2), training(3, TERM), process(4, 1, "tee", NONE, false)], &[3], &[2]),
        (
            "with a program that resets its signals",
            vec![sh(NONE), process(2, 1, "Xvfb", TERM, false), training(3, TERM)],
            &[3],
            &[2],
        ),
        ("all in the background", vec![sh(NONE), server(2), training(3, TERM).in_background()], &[3], &[2]),
        (
            "a training in the background, and its log",
            vec![sh(NONE), training(2, TERM).in_background(), worked(process(3, 1, "tail", NONE, false), 0, 40, 600)],
            &[2],
            &[],
        ),
        (
            "a shell that polls",
            vec![sh(NONE), server(2), training(3, TERM).in_background(), process(4, 1, "sleep", NONE, false)],
            &[3],
            &[2],
        ),
        (
            "a server after its training: it ends at once, and then the training gets it",
            vec![sh(NONE), training(2, TERM).in_background(), worked(server(3), 1, 9, 90)],
            &[3],
            &[2],
        ),
        (
            "a monitor without a handler is last",
            vec![
                sh(NONE),
                training(2, TERM).in_background(),
                worked(python(3, 1, "m.py", NONE), 9, 9, 9).in_background(),
            ],
            &[2],
            &[],
        ),
        (
            "a launcher waits for the training",
            vec![
                sh(NONE),
                python(2, 1, "run.py", NONE).waiting_for(4),
                python(3, 2, "server.py", TERM),
                python(4, 2, "train.py", TERM),
            ],
            &[4],
            &[3],
        ),
        (
            "a launcher waits for a training without a handler",
            vec![python(1, 0, "run.py", NONE).waiting_for(3), python(2, 1, "server.py", TERM), training(3, NONE)],
            &[],
            &[2],
        ),
        (
            "a launcher waits for a monitor first",
            vec![python(1, 0, "run.py", NONE).waiting_for(2), python(2, 1, "m.py", NONE), training(3, TERM)],
            &[3],
            &[],
        ),
    ];
    for (what, processes, trainings, helpers) in cases {
        assert_eq!(found(&processes), (trainings.to_vec(), helpers.to_vec()), "{what}");
    }
}

/// If one of two did far more, it may be the training, although the other one is in the foreground.
#[test]
fn a_training_in_the_background_is_no_helper_of_its_monitor() {
    let cases: [Case; 4] = [
        (
            "a monitor in the foreground",
            vec![sh(NONE), server(2), busy(python(3, 1, "train.py", TERM)).in_background(), monitor(4, NONE)],
            &[3],
            &[2],
        ),
        (
            "a monitor that handles the signal",
            vec![sh(NONE), busy(python(2, 1, "train.py", TERM)).in_background(), monitor(3, TERM)],
            &[3],
            &[2],
        ),
        (
            "a training that saves, beside a server that computes",
            vec![sh(NONE), worked(server(2), 90_000, 9, 90), worked(python(3, 1, "train.py", NONE), 900, 90, 9000)],
            &[],
            &[2],
        ),
        (
            "a monitor of a training without a handler",
            vec![sh(NONE), server(2), busy(python(3, 1, "train.py", NONE)).in_background(), monitor(4, NONE)],
            &[],
            &[2],
        ),
    ];
    for (what, processes, trainings, helpers) in cases {
        assert_eq!(found(&processes), (trainings.to_vec(), helpers.to_vec()), "{what}");
    }
}
