//! Bounds the time and memory of judging a file, whatever its content.
//!
//! To run it longer: `FUZZ_SECONDS=600 FUZZ_SEED=7 cargo test --release --workspace --lib -- whatever_is_in_a_file
//! --nocapture`.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use allocation_counter::measure;
use proptest::test_runner::{RngSeed, TestRunner};

use super::*;

#[path = "../../../sweep-file/tests/sweep_measure/mod.rs"]
mod sweep_measure;
use sweep_measure::{computed, peak_kib, scaled};

/// The most memory of a decoder: xz states in advance how much it needs, and Zstandard has a window of 128 MiB.
const MOST_MEMORY: u64 = 300 << 20;

/// Returns the CPU time and the memory of judging a file that is in memory.
fn cost(name: &str, content: &[u8]) -> (Completeness, Duration, u64) {
    let (mut found, mut time) = (Completeness::Unknown, Duration::ZERO);
    let content = content.to_vec();
    let memory = measure(|| {
        let began = computed();
        let open = |path: &Path| -> io::Result<Box<dyn Content>> {
            let is_it = path == Path::new(name);
            if is_it { Ok(Box::new(InMemory(content.clone()))) } else { Err(io::ErrorKind::NotFound.into()) }
        };
        found = completeness_by(Path::new(name), &open).unwrap();
        time = computed() - began;
    });
    (found, time, memory.bytes_max.saturating_sub(content.len() as u64))
}

struct InMemory(Vec<u8>);

impl Content for InMemory {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = self.0.get(usize::try_from(offset).unwrap()..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn has_hole(&self) -> bool {
        false
    }
}

#[test]
fn what_unpacks_to_more_than_its_share_is_not_judged() {
    // Each file has 1 MiB of zeros in every member.
    let zeros = vec![0; 1 << 20];
    let mut zip = ::zip::ZipWriter::new(Cursor::new(Vec::new()));
    for member in 0..40 {
        zip.start_file(member.to_string(), ::zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(&zeros).unwrap();
    }
    let bombs = [
        ("a.gz", gzip_of(&zeros).repeat(40)),
        ("a.bz2", bzip2_of(&zeros).repeat(40)),
        ("a.xz", xz_of(&zeros).repeat(40)),
        ("a.zst", zstd_of(&zeros).repeat(40)),
        ("a.lz4", lz4_of(&zeros, false).repeat(40)),
        ("a.joblib", zlib_of(&vec![0; 40 << 20])),
        ("a.pt", zip.finish().unwrap().into_inner()),
    ];
    for (name, bomb) in bombs {
        assert!(bomb.len() < 1 << 20, "{name}: {} bytes", bomb.len());
        assert_eq!(judged(name, &bomb), Completeness::Unjudged, "{name}");
    }
    for (name, whole) in [("a.gz", gzip_of(&zeros)), ("a.bz2", bzip2_of(&zeros)), ("a.pt", zip_of(&zeros, false))] {
        assert_eq!(judged(name, &whole), Completeness::Whole, "{name}");
    }
}

/// Returns starts of files, each with a valid piece of its format that is repeated after it.
fn pieces() -> Vec<(&'static str, Vec<u8>, Vec<u8>)> {
    let of = |start: &[u8], piece: &[u8]| (start.to_vec(), piece.to_vec());
    let sqlite = sqlite_of(1);
    type Part<'a> = (&'a str, (Vec<u8>, Vec<u8>));
    let parts: [Part<'_>; 19] = [
        ("a.pkl", of(b"\x80\x04", b"N")),
        ("a.pkl", of(b"\x80\x04", b"\x8c\x01a")),
        ("a.pkl", of(b"\x80\x02", b"ca\nb\n")),
        ("a.pkl", of(b"", b"\x80\x04N.")),
        ("a.json", of(b"", b"[")),
        ("a.json", of(b"[1", b",1")),
        ("a.json", of(b"\"", b"\\n")),
        ("a.jsonl", of(b"", b"{\"a\":1}\n")),
        ("a.ubj", of(b"{", b"i\x01a[")),
        ("a.ubj", of(b"{", b"i\x01aZ")),
        ("a.msgpack", of(b"\xdf\xff\xff\xff\xff", b"\xa1a\xc0")),
        ("a.tar", of(b"", &tar_header(b'0', 0))),
        ("a.tar", of(b"", &tar_member(b'x', b"13 size=1030\n"))),
        ("a.safetensors", of(b"\0\0\x10\0\0\0\0\0{\"a\":1", b",\"a\":1")),
        ("model.txt", of(b"tree\nversion=v4\n", b"\nend of parameters\n")),
        ("a.gz", of(b"", &gzip_of(b""))),
        ("a.zst", of(b"", &zstd_of(b""))),
        ("a.bz2", of(b"", &bzip2_of(b""))),
        ("a.db", (sqlite.clone(), sqlite)),
    ];
    parts.into_iter().map(|(name, (start, piece))| (name, start, piece)).collect()
}

fn repeated(start: &[u8], piece: &[u8], bytes: usize) -> Vec<u8> {
    [start, &piece.repeat(bytes / piece.len() + 1)].concat()
}

#[test]
fn a_file_costs_time_in_proportion_and_bounded_memory() {
    for (name, start, piece) in pieces() {
        let (_, short, _) = cost(name, &repeated(&start, &piece, 64 << 10));
        let (_, long, memory) = cost(name, &repeated(&start, &piece, 512 << 10));
        let what = piece.escape_ascii().to_string();
        assert!(long < short * 32 + scaled(Duration::from_millis(10)), "{name} {what:.40}: {short:?}, {long:?}");
        assert!(memory < 32 << 20, "{name} {what:.40}: {memory} bytes");
    }
}

#[test]
fn whatever_is_in_a_file_is_judged_within_bounds() {
    let setting = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    let limit = setting("FUZZ_SECONDS").map(Duration::from_secs);
    let first = setting("FUZZ_SEED").unwrap_or(1);
    let made: Vec<_> =
        pieces().into_iter().map(|(name, start, piece)| (name, repeated(&start, &piece, 2000))).collect();
    let whole = files(&tricky(700)).into_iter().map(|(name, content, _)| (name, content));
    let samples: Vec<(&str, Vec<u8>)> = whole.chain(made).collect();
    let (began, cases, slowest) = (Instant::now(), RefCell::new(0), RefCell::new(Duration::ZERO));
    for seed in first.. {
        let rng_seed = RngSeed::Fixed(seed);
        let config = ProptestConfig { cases: 200, failure_persistence: None, rng_seed, ..Default::default() };
        let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 1..9_usize), 0..5);
        let case = (any::<prop::sample::Index>(), damage, 1..40_usize);
        let tried = TestRunner::new(config).run(&case, |(kind, damage, times)| {
            let (name, sample) = &samples[kind.index(samples.len())];
            let mut content = sample.repeat(times);
            for (at, byte, count) in damage {
                let at = at.index(content.len());
                let end = content.len().min(at + count);
                content[at..end].fill(byte);
            }
            let (_, time, memory) = cost(name, &content);
            assert!(time < scaled(Duration::from_millis(500)), "{name}: {time:?} for {} bytes", content.len());
            assert!(memory < MOST_MEMORY, "{name}: {memory} bytes for {}", content.len());
            *cases.borrow_mut() += 1;
            slowest.replace_with(|slowest| time.max(*slowest));
            Ok(())
        });
        tried.unwrap_or_else(|failure| panic!("FUZZ_SEED={seed}: {failure}"));
        if limit.is_none_or(|limit| began.elapsed() >= limit) {
            break;
        }
    }
    let (cases, slowest) = (cases.into_inner(), slowest.into_inner());
    println!("{cases} files, slowest {slowest:?}, seeds from {first}, peak memory {:?} KiB", peak_kib());
}
