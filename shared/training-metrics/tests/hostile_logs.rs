//! Reading what a training writes takes time in proportion to its length, and constant memory.
//!
//! To run it longer: `FUZZ_SECONDS=600 FUZZ_SEED=7 cargo test --release --workspace --test hostile_logs --
//! --nocapture`.
#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "measures the clock and this thread")]

#[path = "../../sweep-file/tests/sweep_measure/mod.rs"]
mod sweep_measure;

use std::io::Cursor;
use std::path::Path;
use std::time::{Duration, Instant};

use allocation_counter::measure;
use crc::{CRC_32_ISCSI, CRC_32_ISO_HDLC, Crc};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use spotsweep_training_metrics::{Definitions, Lines, LogFile, Read, Shared};

use sweep_measure::{computed, peak_kib, scaled};

/// The longest line that is searched, in bytes.
const LINE: usize = 64 * 1024;
/// The most memory that reading a file may take, whatever its length.
const MOST_MEMORY: u64 = 48 << 20;

/// Pieces of lines that were, or could be, searched repeatedly.
const PIECES: [&str; 78] = [
    " ",
    "a",
    "=",
    ":",
    "9",
    "-",
    "|",
    "│",
    "(",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "'",
    "%",
    "é",
    "_0",
    "'s ",
    ". ",
    "a=1 ",
    "a:1.5 ",
    "a=[",
    "a=tensor(",
    "tensor(",
    "array(",
    "step: step=",
    "step=1 ",
    "epoch 1, ",
    "Epoch 1/10 ",
    "val ",
    "best ",
    "train: ",
    "Best val ",
    "loss 0.5, ",
    "loss 0.5 - ",
    "x ",
    "x 0.5 ",
    "val_acc 0.5 ",
    "{'a':",
    "{'a':[",
    "{\"a\":",
    "\"a\":1,",
    "1,234,",
    "1/2 ",
    "100%|",
    "it/s",
    "loaded ",
    "\u{1b}[1m",
    "[main] ",
    "INFO ",
    "NaN",
    "{\"a\": {",
    "\"val_acc\": ",
    "'x': 1, ",
    "{'x': [",
    "Array(0.5, ",
    "<tf.Tensor numpy=",
    "x=1.5 ms ",
    "x -> 0.5 ",
    "trial 1 finished ",
    "x  y\t",
    "{'loss': [1, ",
    "'x': [1], ",
    "{'x': [)",
    "time 0.5 (0.5) ",
    "x: 0.5 (0.25) ",
    "eta: (",
    "| x | 0.5 ",
    "|x|0.5",
    "x,1.5,",
    "train val ",
    "precision ",
    "0.5+-",
    "x on val: ",
    "x on ",
    "Traceback (most recent call last):",
    "File \"x\", line 1",
];
/// Metrics that a sweep file may name.
const NAMED: [Option<&str>; 6] = [None, Some("x"), Some("val_acc"), Some(" "), Some("=1"), Some("step")];

/// Returns the pieces one after the other, `bytes` bytes in all.
fn line(pieces: &[&str], bytes: usize) -> String {
    let mut line = pieces.concat();
    line = line.repeat(bytes / line.len() + 1);
    line.truncate(line.floor_char_boundary(bytes));
    line
}

/// Returns the CPU time of reading a line.
fn time_of_line(line: &str, named: Option<&str>) -> Duration {
    let mut lines = Lines::new(named.map(str::to_owned), Definitions::default());
    let began = computed();
    lines.read(line);
    lines.read(line);
    computed() - began
}

fn read_line(pieces: &[&str], named: Option<&str>) {
    let short = time_of_line(&line(pieces, LINE / 8), named);
    let long = time_of_line(&line(pieces, LINE), named);
    // Linear time would be 8 times as much; the rest tolerates other work on the machine.
    assert!(long < short * 32 + scaled(Duration::from_millis(4)), "{pieces:?} {named:?}: {short:?}, {long:?}");
    assert!(long < scaled(Duration::from_millis(150)), "{pieces:?} {named:?}: {long:?}");
}

#[test]
fn a_line_costs_as_much_as_it_is_long() {
    for piece in PIECES {
        for named in NAMED {
            read_line(&[piece], named);
        }
    }
    for pieces in [["x", " "], ["val", "  "], ["step", "  "], ["_=1.5 ", " "]] {
        let spaces = " ".repeat(LINE / 2);
        read_line(&[pieces[0], &spaces, pieces[1]], Some("x"));
        read_line(&[&spaces, pieces[0], pieces[1]], None);
    }
}

#[test]
fn names_that_other_lines_repeat_are_short() {
    let name = "n".repeat(LINE);
    let mut lines = Lines::default();
    let columns = "x  ".repeat(LINE / 3);
    let starts = [format!("| {name}/ | |"), format!("epoch {name}"), format!("| epoch | {name} |")];
    for start in starts.into_iter().chain([format!("  epoch {columns}"), format!("class {columns}")]) {
        lines.read(&start);
        let began = computed();
        for _ in 0..200 {
            lines.read("| 1 | 0.5 |");
            lines.read("1 0.5");
        }
        assert!(computed() - began < scaled(Duration::from_millis(20)), "{:.20}", start);
    }
}

#[test]
fn an_object_without_an_end_holds_and_costs_no_more_than_its_lines() {
    for line in ["{'a': {", "\"a\": {", "'x': [1,", "{", "}", "\"x\": 1,", "x  y", "[{\"x\": 0.5,"] {
        let mut lines = Lines::new(Some("x".to_owned()), Definitions::default());
        let mut time = Duration::ZERO;
        let memory = measure(|| {
            lines.read("metrics: {");
            let began = computed();
            for _ in 0..50_000 {
                lines.read(line);
            }
            time = computed() - began;
        });
        assert!(time < scaled(Duration::from_secs(2)), "{line}: {time:?}");
        assert!(memory.bytes_max < 8 << 20, "{line}: {} bytes", memory.bytes_max);
    }
}

fn event(content: &[u8], size: u64) -> Vec<u8> {
    let crc = Crc::<u32>::new(&CRC_32_ISCSI);
    let masked = |bytes: &[u8]| crc.checksum(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes();
    let length = size.to_le_bytes();
    [&length[..], &masked(&length), content, &masked(content)].concat()
}

fn chunk(kind: u8, content: &[u8]) -> Vec<u8> {
    let crc = Crc::<u32>::new(&CRC_32_ISO_HDLC).checksum(&[&[kind], content].concat());
    let length = u16::try_from(content.len()).unwrap();
    [&crc.to_le_bytes()[..], &length.to_le_bytes(), &[kind], content].concat()
}

/// Returns W&B's file of such chunks, with its header and its blocks.
fn run_of(kinds: &[(u8, Vec<u8>)], bytes: usize) -> Vec<u8> {
    let mut file = b":W&B\xe1\xbe\x00".to_vec();
    for (kind, content) in kinds.iter().cycle() {
        let left = 32 * 1024 - file.len() % (32 * 1024);
        if left < 7 {
            file.extend(vec![0; left]);
            continue;
        }
        file.extend(chunk(*kind, &content[..content.len().min(left - 7)]));
        if file.len() >= bytes {
            return file;
        }
    }
    file
}

/// Returns files by name, of about `bytes` bytes.
fn files(bytes: usize) -> Vec<(&'static str, Vec<u8>)> {
    let repeated = |start: &str, piece: &str| [start, &piece.repeat(bytes / piece.len() + 1)].concat().into_bytes();
    let scalar = b"\x09\0\0\0\0\0\0\xf0A\x2a\x08\x0a\x06\x0a\x01a\x15\0\0\0?".as_slice();
    let values = [b"\x09\0\0\0\0\0\0\xf0A\x2a\xff\xff\x03".as_slice(), &b"\x0a\0".repeat(32_000)].concat();
    let records = |content: &[u8]| event(content, content.len() as u64).repeat(bytes / (content.len() + 16) + 1);
    let closed = format!("[{}{{}}]", "{\"epoch\":1,\"val_acc\":1},".repeat(bytes.min(250_000) / 25));
    let item = b"\x12\x12\x0a\x10\x0a\x01a\x82\x01\x030.5\x12\0\x12\0\x12\0".to_vec();
    vec![
        ("metrics.jsonl", repeated("", "{\"a\":1}\n")),
        ("metrics.jsonl", repeated("", "\n")),
        ("metrics.jsonl", repeated("", "{\"a\":1,")),
        ("metrics.jsonl", repeated("", "[")),
        ("metrics.jsonl", repeated("", "{\"a\":\"\n")),
        ("metrics.json", repeated("", "{\"a\":1}\n")),
        ("metrics.json", repeated("[", "{\"a\":1},")),
        ("metrics.json", repeated("", "[")),
        ("metrics.json", closed.into_bytes()),
        ("metrics.json", repeated("{\"loss\":[1],", "\"val_acc\":[1],")),
        ("scalars.json", repeated("", "{\n\"val_acc\":[1,\n")),
        ("metrics.csv", repeated("a,b\n", "1,2\n")),
        ("metrics.csv", repeated("", "1,")),
        ("metrics.csv", repeated("", "val_acc,a,b\n")),
        ("metrics.csv", repeated("a;b\n", "1;2\nb;a\n")),
        ("metrics.csv", repeated("a,b\n", "\"\n")),
        ("metrics.csv", repeated("a,b\n", "\"")),
        ("trainer_state.json", repeated("{\"log_history\":[", "{\"a\":1},")),
        ("trainer_state.json", repeated("{\"log_history\":[{", "\"a\":1,")),
        ("trainer_state.json", repeated("{\"log_history\":", "[")),
        ("trainer_state.json", repeated("{\"log_history", "\\")),
        ("events.out.tfevents.1", records(scalar)),
        ("events.out.tfevents.1", records(b"")),
        ("events.out.tfevents.1", records(&values)),
        ("events.out.tfevents.1", event(b"", u64::MAX - 8)[..12].to_vec()),
        ("events.out.tfevents.1", event(b"", u64::MAX)[..12].to_vec()),
        ("events.out.tfevents.1", event(b"", i64::MAX as u64)[..12].to_vec()),
        ("run-a.wandb", run_of(&[(1, item)], bytes)),
        ("run-a.wandb", run_of(&[(1, Vec::new())], bytes)),
        ("run-a.wandb", run_of(&[(2, vec![0; 9])], bytes)),
        ("run-a.wandb", run_of(&[(3, vec![0; 9])], bytes)),
        ("run-a.wandb", run_of(&[(2, Vec::new()), (3, vec![0x0a; 1 << 14]), (4, vec![0])], bytes)),
        (
            "run-a.wandb",
            run_of(
                &[(2, vec![0x0a, 0xff, 0xff, 0x3f])]
                    .into_iter()
                    .chain(vec![(3, vec![0x0a, 0]); 99])
                    .collect::<Vec<_>>(),
                bytes,
            ),
        ),
    ]
}

/// Returns the CPU time and the memory of reading a file as the runner does: during the training, and at its end.
fn cost_of_file(name: &str, content: &[u8]) -> (Duration, u64) {
    let Some(mut file) = LogFile::named(Path::new(name)) else { return Default::default() };
    let mut time = Duration::ZERO;
    let memory = measure(|| {
        let began = computed();
        let other = [b"x\n", content].concat();
        let mut shared = Shared::new(0.0, Some("val_acc".to_owned()));
        let looks = [(Read::During, &content[..content.len() / 2]), (Read::During, content), (Read::During, &other)];
        // The last but one look finds a file that was rewritten.
        for (when, bytes) in looks.into_iter().chain([(Read::Last, content)]) {
            let mut rounds = 0;
            while file.read(Cursor::new(bytes), when, &mut shared).unwrap().has_more {
                rounds += 1;
                assert!(rounds < 10_000, "{name} has no end");
            }
        }
        time = computed() - began;
    });
    (time, memory.bytes_max)
}

#[test]
fn a_file_costs_time_in_proportion_and_no_memory() {
    for ((name, short), (_, long)) in files(256 << 10).into_iter().zip(files(2 << 20)) {
        let start = long[..long.len().min(24)].escape_ascii().to_string();
        let (short, _) = cost_of_file(name, &short);
        let (time, memory) = cost_of_file(name, &long);
        assert!(time < short * 32 + scaled(Duration::from_millis(20)), "{name} {start}: {short:?}, {time:?}");
        assert!(memory < MOST_MEMORY, "{name} {start}: {memory} bytes");
    }
}

/// Bytes that replace others, with their places.
type Damage = Vec<(prop::sample::Index, u8)>;
/// The number of a sample, or beyond the samples a piece; how often it is repeated; and the damage.
type Case = (usize, Vec<u8>, usize, Damage);

/// Returns files and lines made of pieces and damaged samples.
fn anything() -> impl Strategy<Value = Case> {
    let pieces = prop::collection::vec(prop::sample::select(PIECES.to_vec()), 1..5).prop_map(|pieces| pieces.concat());
    let bytes = prop_oneof![pieces.prop_map(String::into_bytes), prop::collection::vec(any::<u8>(), 1..200)];
    let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..9);
    (0..40_usize, bytes, 1..3000_usize, damage)
}

fn try_one(samples: &[(&str, Vec<u8>)], (kind, piece, times, damage): Case) {
    let (name, mut content) = match samples.get(kind) {
        Some((name, sample)) => (*name, sample.clone()),
        None => (samples[kind % samples.len()].0, piece.repeat(times)),
    };
    for (at, byte) in damage {
        let at = at.index(content.len());
        content[at] = byte;
    }
    let (time, memory) = cost_of_file(name, &content);
    assert!(time < scaled(Duration::from_millis(200)), "{name}: {time:?} for {} bytes", content.len());
    assert!(memory < MOST_MEMORY, "{name}: {memory} bytes for {}", content.len());
    let text = String::from_utf8_lossy(&content);
    let line = &text[..text.floor_char_boundary(LINE)];
    let named = NAMED[kind % NAMED.len()];
    let memory = measure(|| assert!(time_of_line(line, named) < scaled(Duration::from_millis(300))));
    assert!(memory.bytes_max < MOST_MEMORY, "{named:?}: {} bytes for a line", memory.bytes_max);
}

#[test]
fn whatever_is_written_is_read_within_bounds() {
    let setting = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    let limit = setting("FUZZ_SECONDS").map(Duration::from_secs);
    let first = setting("FUZZ_SEED").unwrap_or(1);
    let (samples, began, mut cases) = (files(20_000), Instant::now(), 0);
    for seed in first.. {
        let rng_seed = RngSeed::Fixed(seed);
        let config = ProptestConfig { cases: 200, failure_persistence: None, rng_seed, ..Default::default() };
        let tried = TestRunner::new(config).run(&anything(), |case| {
            try_one(&samples, case);
            Ok(())
        });
        tried.unwrap_or_else(|failure| panic!("FUZZ_SEED={seed}: {failure}"));
        cases += 200;
        if limit.is_none_or(|limit| began.elapsed() >= limit) {
            break;
        }
    }
    println!("{cases} files and lines in {:?}, seeds from {first}, peak memory {:?} KiB", began.elapsed(), peak_kib());
}
