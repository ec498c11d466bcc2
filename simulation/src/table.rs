//! Bytes of the table's rows, and the units that they cost
//! (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html>).

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;
use spotsweep_control_plane::input::Subject;
use spotsweep_control_plane::store::{Record, View};
use spotsweep_ranking::peer::Peer;
use spotsweep_records::sweep::Sweep;
use spotsweep_records::trial::Trial;

use crate::limits::Units;

/// Bytes of a read unit, and of a write unit.
const READ_BYTES: usize = 4096;
const WRITE_BYTES: usize = 1024;
/// Bytes of a peer's row without its rungs, and of a rung.
const PEER_BYTES: usize = 100;
const RUNG_BYTES: usize = 40;

/// Bytes of a record: the bytes of its JSON, which are about as many as DynamoDB counts. Its history fills the last
/// unit.
pub(crate) fn bytes(record: &Record) -> usize {
    match record {
        Record::Sweep(sweep) => of_sweep(sweep),
        Record::Trial(trial) => of_trial(trial),
    }
}

fn of_sweep(sweep: &Sweep) -> usize {
    json_bytes(sweep).next_multiple_of(READ_BYTES)
}

fn of_trial(trial: &Trial) -> usize {
    json_bytes(trial).next_multiple_of(WRITE_BYTES)
}

/// Units of a put.
pub(crate) fn written(bytes: usize) -> Units {
    Units { written: bytes.div_ceil(WRITE_BYTES).max(1) as f64, read: 0.0 }
}

/// Units of a load. All reads but those of peers are strongly consistent.
pub(crate) fn read(subject: &Subject, view: &View) -> Units {
    let sweep = units(view.sweep.as_ref().map_or(0, |held| of_sweep(&held.record)));
    let trial = units(view.trial.as_ref().map_or(0, |held| of_trial(&held.record)));
    let read = match subject {
        Subject::Sweep(_) => sweep,
        Subject::Trial(..) => sweep + trial,
        Subject::Comparison(..) => sweep + trial + view.peers.as_ref().map_or(0.0, |peers| of_peers(peers).read),
        Subject::Settlement(..) => sweep + units(view.trials.iter().map(of_trial).sum()),
        Subject::Resource(_) => 1.0,
        // The look-up reads the index, which has its own partitions.
        Subject::Overdue => 0.0,
    };
    Units { read, written: 0.0 }
}

/// Units of the rows of peers, which cost half because their reads are eventually consistent.
pub(crate) fn of_peers(peers: &BTreeMap<u32, Peer>) -> Units {
    let row =
        |peer: &Peer| PEER_BYTES + RUNG_BYTES * peer.rungs.len() + peer.parameters.as_ref().map_or(0, String::len);
    Units { read: units(peers.values().map(row).sum()) / 2.0, written: 0.0 }
}

fn units(bytes: usize) -> f64 {
    bytes.div_ceil(READ_BYTES).max(1) as f64
}

fn json_bytes(record: &impl Serialize) -> usize {
    let mut counted = Counted(0);
    // Writing to a counter never fails.
    let _ = serde_json::to_writer(&mut counted, record);
    counted.0
}

struct Counted(usize);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
