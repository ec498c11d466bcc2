//! Studies of the product: a replay of recorded Spot capacity, and a mass interruption. The benchmark of the search is
//! in `search/`, with the program `suggestions` of this crate.

pub mod fetch;
pub mod mass_interruption;
pub mod replay;
pub mod table;

use mimalloc::MiMalloc;

/// A faster allocator, because half of a run's work is to make and drop JSON.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;
