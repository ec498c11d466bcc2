//! How far a fetch is.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The figures of one fetch, counted by all that take part.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    arrived: AtomicU64,
    on_disk: AtomicU64,
    signs: AtomicU64,
    is_flushing: AtomicBool,
}

impl Meter {
    /// Counts bytes that have arrived.
    pub(crate) fn arrive(&self, bytes: usize) {
        self.arrived.fetch_add(bytes as u64, Ordering::Relaxed);
        self.sign();
    }

    /// Takes back bytes that will come again.
    pub(crate) fn take_back(&self, bytes: u64) {
        self.arrived.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn arrived(&self) -> u64 {
        self.arrived.load(Ordering::Relaxed)
    }

    /// Counts what a file takes up on the disk.
    pub(crate) fn keep(&self, bytes: u64) {
        self.on_disk.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn on_disk(&self) -> u64 {
        self.on_disk.load(Ordering::Relaxed)
    }

    /// Notes that the fetch goes on, though nothing arrives.
    pub(crate) fn sign(&self) {
        self.signs.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that from now on the kernel writes to the disk, of which nothing is seen.
    pub(crate) fn flush(&self) {
        self.is_flushing.store(true, Ordering::Relaxed);
    }

    /// Returns a figure that changes as long as the fetch goes on; `None` while that cannot be seen.
    pub(crate) fn signs(&self) -> Option<u64> {
        (!self.is_flushing.load(Ordering::Relaxed)).then(|| self.signs.load(Ordering::Relaxed))
    }
}
