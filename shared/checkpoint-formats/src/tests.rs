#![allow(clippy::unwrap_used)]
use super::*;
#[test]
fn t() {
    assert_eq!(hdf5::checksum(b"Four score and seven years ago"), 0x1777_0551);
}
