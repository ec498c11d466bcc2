//! Generated files: noise, pieces in any order, damaged real files, and parts repeated up to a megabyte.

use std::path::Path;

use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::MAX_BYTES;

/// Pieces of sweep files, and some that belong to none.
#[rustfmt::skip]
const PIECES: [&str; 101] = [
    "method: ", "grid", "random", "bayes", "parameters:", "run_cap: ", "metric: ", "spotsweep:", "trials:",
    "values: ", "value: ", "min: ", "max: ", "q: ", "mu: ", "sigma: ", "a: ", "b: ", "distribution: ", "uniform",
    "q_uniform", "normal", "log_normal", "beta", "q_beta", "int_uniform", "log_uniform_values", "categorical",
    "probabilities: ", "when: ", "exclude: ", "first: ", "order: shuffled", "seed: ", "command: ", "${args}",
    "${envvar:", "program: ", "workspace: ", "volume: ", "snapshot: snap-", "size: ", "attempts: ", "timeout: ", "stalled: ",
    "code: ", "data: ", "s3://bucket/", "lr", "units", "\n", "\n  ", "\n    ", "\n- ", "- ", ": ", ", ", "[", "]", "{", "}",
    "\"", "'", "|", ">", "&a ", "*a", "<<: ", "!!str ", "!x ", "? ", "# ", "---\n", "...\n", "%YAML", "1", "0", "-1",
    "0.1", "1e-4", "1e308", ".inf", "true", "~", "9223372036854775807", "\t", "\r\n", "é", "\u{feff}", "\0", "이",
    "1_000", "010", "1:30", "yes", "log_uniform", "${lr}", "${args_append_hydra}", "\n]", "\n}", "comment: ",
];

fn piece() -> BoxedStrategy<Vec<u8>> {
    prop_oneof![
        8 => select(PIECES.as_slice()).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => ".{0,8}".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 1..4),
    ]
    .boxed()
}

fn joined(parts: std::ops::Range<usize>) -> BoxedStrategy<Vec<u8>> {
    prop::collection::vec(piece(), parts).prop_map(|pieces| pieces.concat()).boxed()
}

pub(super) fn noise() -> BoxedStrategy<Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..200).boxed()
}

pub(super) fn pieces() -> BoxedStrategy<Vec<u8>> {
    joined(0..60)
}

/// Returns one part repeated up to a megabyte, to find parts whose cost grows faster than their number.
pub(super) fn repeated() -> BoxedStrategy<Vec<u8>> {
    let bytes = prop_oneof![1_usize..1 << 14, 1_usize..MAX_BYTES, Just(MAX_BYTES)];
    (joined(0..8), joined(1..6), joined(0..8), bytes)
        .prop_map(|(start, part, end, bytes)| {
            let room = bytes.saturating_sub(start.len() + end.len());
            let times = room / part.len().max(1);
            [start, part.repeat(times), end].concat()
        })
        .boxed()
}

/// Damage to a file. Places are relative, and lengths are in bytes.
#[derive(Clone, Debug)]
enum Damage {
    Overwrite(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    Copy(Index, usize, Index),
    Repeat(Index, usize, usize),
    Splice(Index, Index, Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<Index>;
    prop_oneof![
        3 => (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Overwrite(at, byte)),
        6 => (at(), piece()).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        4 => (at(), 1_usize..24).prop_map(|(at, length)| Damage::Remove(at, length)),
        3 => (at(), 1_usize..80, at()).prop_map(|(from, length, to)| Damage::Copy(from, length, to)),
        1 => (at(), 1_usize..40, 2_usize..2_000).prop_map(|(at, length, times)| Damage::Repeat(at, length, times)),
        1 => (at(), at(), at()).prop_map(|(file, at, from)| Damage::Splice(file, at, from)),
    ]
}

/// Returns a real file with up to seven damages.
pub(super) fn damaged() -> BoxedStrategy<Vec<u8>> {
    let files = real_files();
    let changes = prop_oneof![1 => Just(0_usize), 6 => Just(1_usize), 5 => 2_usize..8];
    let changes = changes.prop_flat_map(|number| prop::collection::vec(damage(), number));
    (any::<Index>(), changes)
        .prop_map(move |(file, changes)| {
            let mut bytes = file.get(&files).clone();
            for change in changes {
                apply(&mut bytes, change, &files);
            }
            bytes.truncate(MAX_BYTES);
            bytes
        })
        .boxed()
}

fn apply(bytes: &mut Vec<u8>, change: Damage, files: &[Vec<u8>]) {
    let place = |at: Index| at.index(bytes.len() + 1);
    let stretch = |at: Index, length: usize| place(at)..(place(at) + length).min(bytes.len());
    match change {
        Damage::Overwrite(at, byte) => {
            let at = place(at);
            bytes.splice(at..(at + 1).min(bytes.len()), [byte]);
        }
        Damage::Insert(at, inserted) => {
            let at = place(at);
            bytes.splice(at..at, inserted);
        }
        Damage::Remove(at, length) => {
            bytes.drain(stretch(at, length));
        }
        Damage::Copy(from, length, to) => {
            let (copied, to) = (bytes[stretch(from, length)].to_vec(), place(to));
            bytes.splice(to..to, copied);
        }
        Damage::Repeat(at, length, times) => {
            let stretch = stretch(at, length);
            let repeated = bytes[stretch.clone()].repeat(times);
            bytes.splice(stretch, repeated);
        }
        Damage::Splice(file, at, from) => {
            let other = file.get(files);
            bytes.truncate(place(at));
            bytes.extend_from_slice(&other[from.index(other.len())..]);
        }
    }
}

/// Returns the repository's sweep files, good and bad, and the examples of the documentation.
fn real_files() -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["tests/sweeps/good", "tests/sweeps/bad", "../../examples/digits"];
    let paths = folders.iter().flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap());
    let mut paths: Vec<_> = paths.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml"));
    // The same order on every machine makes a seed select the same files.
    paths.sort();
    let page = include_str!("../../../../docs/sweep-file.md");
    let examples = page.split("```yaml\n").skip(1).filter_map(|block| block.split("```").next());
    let read = paths.iter().map(|path| std::fs::read(path).unwrap());
    read.chain(examples.map(|example| example.as_bytes().to_vec())).filter(|bytes| !bytes.is_empty()).collect()
}
