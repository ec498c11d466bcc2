//! Fetches a data set from memory onto a disk, and says how fast that was and what it took.
//!
//! `cargo run --release -p spotsweep-data-cache --example measure -- FOLDER OBJECTS BYTES MILLISECONDS`: the bytes
//! of each object, and the time that each answer takes to begin.

#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use std::fs::{self, File};
use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use md5::{Digest as _, Md5};
use sha2::Sha256;
use spotsweep_data_cache::{Answer, Body, Cache, Check, GetError, Objects, Settings, Wanted};
use spotsweep_protocol::claim::{DataObject, DataSet, Listing};
use spotsweep_protocol::words::hexadecimal;

/// What a TLS record brings at most.
const PIECE_BYTES: usize = 16 << 10;

struct Memory {
    content: Bytes,
    listing: File,
    latency: Duration,
}

struct Pieces(Bytes);

impl Objects for Memory {
    type Body = Pieces;

    async fn listing(&self) -> Result<File, GetError> {
        Ok(self.listing.try_clone().unwrap())
    }

    async fn get(&self, wanted: &Wanted<'_>) -> Result<Answer<Pieces>, GetError> {
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
        let range = wanted.range.clone().unwrap_or(0..self.content.len() as u64);
        let content = self.content.slice(range.start as usize..range.end as usize);
        Ok(Answer { body: Pieces(content), check: Check::Md5 })
    }
}

impl Body for Pieces {
    async fn next(&mut self) -> Option<Result<Bytes, GetError>> {
        let piece = self.0.split_to(PIECE_BYTES.min(self.0.len()));
        // As bytes of a network do, a piece comes only when the runtime has looked for others.
        tokio::task::yield_now().await;
        (!piece.is_empty()).then_some(Ok(piece))
    }
}

/// Seconds in programs and in the kernel: <https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html>.
fn cpu() -> (f64, f64) {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let seconds = |at: usize| fields[at].parse::<f64>().unwrap() / rustix::param::clock_ticks_per_second() as f64;
    (seconds(11), seconds(12))
}

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().collect();
    let [_, folder, objects, size, latency] = &words[..] else { panic!("FOLDER OBJECTS BYTES MILLISECONDS") };
    let latency = Duration::from_millis(latency.parse().unwrap());
    let (objects, size): (u64, usize) = (objects.parse().unwrap(), size.parse().unwrap());
    let content: Bytes = (0..size).map(|at| (at * 7 + at / 251) as u8).collect::<Vec<u8>>().into();
    let etag = format!("\"{}\"", hexadecimal(Md5::digest(&content)));
    let mut text = Vec::new();
    for number in 0..objects {
        let key = format!("{:04}/{number:07}", number / 1_000);
        text.extend(serde_json::to_vec(&DataObject { key, size: size as u64, etag: etag.clone() }).unwrap());
        text.push(b'\n');
    }
    fs::create_dir_all(folder).unwrap();
    let mut file = File::options().create(true).truncate(true).read(true).write(true).open(format!("{folder}/listing"));
    let listing = file.as_mut().unwrap();
    listing.write_all(&text).unwrap();
    listing.rewind().unwrap();
    let bytes = objects * size as u64;
    let set = DataSet {
        name: "measured".to_owned(),
        bucket: "memory".to_owned(),
        prefix: String::new(),
        unpack: false,
        listing: Listing { sha256: hexadecimal(Sha256::digest(&text)), objects, bytes },
    };
    let cache = Cache::open(&Path::new(folder).join("cache")).unwrap();
    let source = Arc::new(Memory { content, listing: file.unwrap(), latency });
    let ((user, system), started) = (cpu(), Instant::now());
    let mut last = 0.0;
    let report = |progress: spotsweep_data_cache::Progress| {
        if progress.bytes < bytes {
            last = started.elapsed().as_secs_f64();
        }
    };
    let held = cache.acquire(&set, Arc::clone(&source), &Settings::default(), report).await.unwrap();
    let (seconds, (user_after, system_after)) = (started.elapsed().as_secs_f64(), cpu());
    let (user, system) = (user_after - user, system_after - system);
    let gigabytes = bytes as f64 / 1e9;
    println!("{objects} objects of {size} bytes: {seconds:.1} s with the flush, {:.0} MB/s", gigabytes * 1e3 / seconds);
    println!("arriving until about {last:.0} s");
    println!(
        "CPU: {user:.2} s user, {system:.2} s system; cores at 1 Gbit/s: {:.2}",
        (user + system) / gigabytes / 8.0
    );
    let again = Instant::now();
    drop(cache.acquire(&set, source, &Settings::default(), |_| ()).await.unwrap());
    println!("again: {:.4} s", again.elapsed().as_secs_f64());
    drop(held);
    fs::remove_dir_all(folder).unwrap();
}
