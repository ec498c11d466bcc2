#![allow(clippy::unwrap_used)]

mod model;

use super::*;

const GIB: u64 = 1 << 30;

fn other(id: &str, gib: u64, last_use: i64) -> Other {
    Other { id: id.to_owned(), bytes: gib * GIB, to_come: 0, last_use, is_complete: true, is_in_use: false }
}

fn disk(free_gib: u64, others: &[Other]) -> Disk {
    Disk { size: 1_000 * GIB, free: free_gib * GIB, others: others.to_vec() }
}

/// The sets that go, in this order, if each takes up what it says.
fn going(mut disk: Disk, needed_gib: u64) -> Result<Vec<String>, Shortage> {
    let mut gone = Vec::new();
    loop {
        match room(&disk, needed_gib * GIB) {
            Room::Enough => return Ok(gone),
            Room::Lacking(shortage) => return Err(shortage),
            Room::Evict(id) => {
                let at = disk.others.iter().position(|other| other.id == id).unwrap();
                disk.free += disk.others.remove(at).bytes;
                gone.push(id);
            }
        }
    }
}

#[test]
fn room_is_made_from_what_was_not_used_for_longest() {
    let (old, new) = (other("old", 10, 1), other("new", 100, 2));
    let leftovers = Other { is_complete: false, ..other("left", 5, 3) };
    let in_use = Other { is_in_use: true, ..other("busy", 50, 0) };
    let fetched = Other { is_in_use: true, is_complete: false, to_come: 20 * GIB, ..other("coming", 10, 0) };
    let all = [new, old, leftovers, in_use, fetched];
    // 80 are free, without the margin of 1 and the 20 that are still to come.
    let at_80 = |needed| going(disk(101, &all), needed);
    assert_eq!(at_80(80).unwrap(), [""; 0]);
    assert_eq!(at_80(81).unwrap(), ["left"]);
    assert_eq!(at_80(91).unwrap(), ["left", "old"]);
    // What is not enough stays if the next one is enough without it.
    assert_eq!(at_80(86).unwrap(), ["old"]);
    assert_eq!(at_80(96).unwrap(), ["new"]);
    assert_eq!(at_80(195).unwrap(), ["left", "old", "new"]);
    let shortage = Shortage { needed: 196 * GIB, free: 80 * GIB, evictable: 115 * GIB, in_use: 80 * GIB };
    assert_eq!(at_80(196).unwrap_err(), shortage);
}

#[test]
fn others_are_to_blame_only_for_what_they_use() {
    let shortage = Shortage { needed: 100, free: 20, evictable: 30, in_use: 60 };
    let cases = [(0, true), (10, true), (11, false), (60, false), (70, false)];
    for (own, expected) in cases {
        assert_eq!(shortage.is_caused_by_others(own), expected, "{own}");
    }
}

#[test]
fn a_margin_stays_free() {
    assert_eq!(margin(10 * GIB), GIB / 2);
    assert_eq!(margin(1_000 * GIB), GIB);
    let tight = Disk { size: 10 * GIB, free: GIB, others: Vec::new() };
    assert_eq!(room(&tight, GIB / 2), Room::Enough);
    assert!(matches!(room(&tight, GIB / 2 + 1), Room::Lacking(shortage) if shortage.free == GIB / 2));
}

#[test]
fn each_view_has_one_step() {
    let empty = View { hold: Hold::Exclusive, is_refused: false, content: Content::Nothing, needed: None, disk: None };
    let with = |hold, content| View { hold, content, ..empty.clone() };
    let known = View { needed: Some(GIB), ..empty.clone() };
    let roomy = View { disk: Some(disk(10, &[])), ..known };
    let tight = View { disk: Some(disk(1, &[other("old", 10, 1)])), ..known };
    let full = View { disk: Some(disk(1, &[])), ..known };
    let shortage = Shortage { needed: GIB, free: 0, evictable: 0, in_use: 0 };
    for (view, step) in [
        (with(Hold::Nothing, Content::Complete), Step::TakeShared),
        (with(Hold::Nothing, Content::Nothing), Step::TakeExclusive),
        (with(Hold::Nothing, Content::Leftovers), Step::TakeExclusive),
        (with(Hold::Shared, Content::Complete), Step::Use),
        (with(Hold::Shared, Content::Nothing), Step::TakeExclusive),
        (with(Hold::Shared, Content::Leftovers), Step::TakeExclusive),
        (with(Hold::Exclusive, Content::Complete), Step::TakeShared),
        (with(Hold::Exclusive, Content::Leftovers), Step::Discard),
        (View { is_refused: true, ..with(Hold::Nothing, Content::Complete) }, Step::Wait),
        (empty.clone(), Step::ReadListing),
        (known, Step::LockRoom),
        (roomy, Step::Fetch),
        (tight, Step::Evict("old".to_owned())),
        (full, Step::DoesNotFit(shortage)),
    ] {
        assert_eq!(next(&view), step, "{view:?}");
    }
}
