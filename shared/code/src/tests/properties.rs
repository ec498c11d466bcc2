//! Any folder comes out as it went in.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use crate::tests::Bench;

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn what_is_packed_is_unpacked(
        files in btree_map("[a-zé .]{1,3}[x]/[a-z \"*\\\\]{1,120}", (vec(any::<u8>(), 0..3000), any::<bool>(), 0..100_usize), 0..12)
    ) {
        let bench = Bench::new();
        for (path, (content, is_executable, times)) in &files {
            bench.write(path, content.repeat(*times));
            bench.mode(path, if *is_executable { 0o755 } else { 0o644 });
            let link = format!("{}-link", path.chars().take(90).collect::<String>());
            if !bench.at(&link).is_symlink() {
                bench.link(&link, "../some where/é");
            }
        }
        let (packed, archive) = bench.pack();
        let out = Bench::new();
        let unpacked = out.unpack(&archive, &packed.sha256).unwrap();
        prop_assert_eq!(unpacked.files, packed.files);
        prop_assert_eq!(out.tree(), bench.tree());
    }
}
