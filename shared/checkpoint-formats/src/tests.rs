#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "the cases are files")]

use std::fs;
use std::io::{Cursor, Write};

use proptest::prelude::*;

use super::*;
use samples::*;
mod bounds;
mod samples;

fn judged(name: &str, content: &[u8]) -> Completeness {
    let folder = spotsweep_needs::scratch();
    fs::write(folder.path().join(name), content).unwrap();
    completeness(&folder.path().join(name)).unwrap()
}

/// Files whose truncation at the end of a value or member is complete for the library too.
const MAY_END_EARLIER: [&str; 3] = ["log.jsonl", "model.txt", "two.gz"];

fn check_truncation(name: &str, content: &[u8], torn_from: usize, length: usize) {
    let found = judged(name, &content[..length]);
    let cut = format!("{name} cut to {length} of {} bytes", content.len());
    assert!(found != Completeness::Whole || MAY_END_EARLIER.contains(&name), "{cut}");
    assert!(length < torn_from || found == Completeness::Torn, "{cut}: {found:?}");
}

#[test]
fn no_truncation_of_a_whole_file_is_whole() {
    for (name, content, torn_from) in files(&tricky(160)) {
        assert_eq!(judged(name, &content), Completeness::Whole, "{name}");
        for length in 0..content.len() {
            check_truncation(name, &content, torn_from, length);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_truncation_of_any_whole_file_is_whole(data in prop::collection::vec(any::<u8>(), 1..3000), part in 0.0..1.0) {
        for (name, content, torn_from) in files(&[tricky(40), data].concat()) {
            prop_assert_eq!(judged(name, &content), Completeness::Whole, "{}", name);
            let part: f64 = part;
            check_truncation(name, &content, torn_from, (content.len() as f64 * part) as usize);
        }
    }

    #[test]
    fn strange_content_is_no_error(kind in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), junk in prop::collection::vec(any::<u8>(), 1..64)) {
        let mut files = files(&tricky(80));
        let (name, mut content, _) = files.swap_remove(kind.index(files.len()));
        let at = at.index(content.len());
        let end = content.len().min(at + junk.len());
        content[at..end].copy_from_slice(&junk[..end - at]);
        judged(name, &content);
    }
}

#[test]
fn a_tar_without_its_last_blocks_is_not_whole() {
    let content = tar_of(&tricky(700));
    let (members, size) = (content.len() - 1024, 512 + 1024);
    // Python takes one block of zeros for the end.
    assert_eq!(judged("a", &content), Completeness::Whole);
    assert_eq!(judged("a", &content[..members + 512]), Completeness::Whole);
    for length in 512..members {
        let at_member = length == size || length == size + 512;
        let expected = if at_member { Completeness::Unknown } else { Completeness::Torn };
        assert_eq!(judged("a", &content[..length]), expected, "{length}");
    }
    assert_eq!(judged("a", &content[..members]), Completeness::Unknown);
    assert_eq!(judged("a.tar", &content[..100]), Completeness::Torn);
    // An extended header states the size of the next member, so it is not complete without one.
    let extended = tar_member(b'x', b"13 size=1030\n");
    let long = [extended.clone(), tar_header(b'0', 0), vec![1; 1030], vec![0; 506], vec![0; 1024]].concat();
    assert_eq!(judged("a", &long), Completeness::Whole);
    assert_eq!(judged("a", &long[..2500]), Completeness::Torn);
    assert_eq!(judged("a", &extended), Completeness::Torn);
}

#[test]
fn several_pickles_in_one_file_are_no_fault() {
    let one = pickle_of(b"weights");
    assert_eq!(judged("two.pkl", &[one.clone(), one.clone()].concat()), Completeness::Whole);
    assert_eq!(judged("raw.pkl", &[one.as_slice(), b"raw"].concat()), Completeness::Unknown);
    let torch = torch_of(&tricky(100));
    for length in 15..torch.len() {
        assert_eq!(judged("model.pt", &torch[..length]), Completeness::Torn, "{length}");
    }
    assert_eq!(judged("model.pt", &torch), Completeness::Unknown);
    assert_eq!(judged("model.pt", &[torch, vec![0x80; 9]].concat()), Completeness::Unknown);
}

#[test]
fn bytes_of_an_array_between_operations_are_not_taken_for_a_fault() {
    let start = b"\x80\x02cjoblib.numpy_pickle\nNumpyArrayWrapper\nq\x00)\x81q\x01}q\x02b";
    assert_eq!(judged("a.pkl", &[start.as_slice(), &[0; 64], b"."].concat()), Completeness::Unknown);
}

#[test]
fn a_nested_archive_is_not_taken_for_the_outer_one() {
    let mut writer = ::zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = ::zip::write::SimpleFileOptions::default().compression_method(::zip::CompressionMethod::Stored);
    writer.start_file("inner.zip", options).unwrap();
    writer.write_all(&zip_of(b"content", false)).unwrap();
    let outer = writer.finish().unwrap().into_inner();
    for length in 0..outer.len() {
        assert_ne!(judged("a.zip", &outer[..length]), Completeness::Whole, "{length}");
    }
    assert_eq!(judged("a.zip", &outer), Completeness::Whole);
}

#[test]
fn compressed_files_may_have_several_members() {
    let data = tricky(3000);
    let skipped = b"\x51\x2a\x4d\x18\x03\0\0\0abc".to_vec();
    let cases = [
        ("a.bz2", bzip2_of(&data), bzip2_of(b"b")),
        ("a.xz", xz_of(&data), xz_of(b"b")),
        ("a.lz4", lz4_of(&data, true), lz4_of(b"b", false)),
        ("a.zst", zstd_of(&data), zstd_of(b"b")),
        ("a.zst", skipped.clone(), zstd_of(&data)),
        ("a.zst", zstd_of(&data), skipped),
    ];
    for (name, first, second) in cases {
        let both = [first.clone(), second].concat();
        assert_eq!(judged(name, &both), Completeness::Whole, "{name}");
        for length in first.len() + 1..both.len() {
            assert_eq!(judged(name, &both[..length]), Completeness::Torn, "{name} cut to {length}");
        }
        for rest in [b"more".as_slice(), &[0; 8]] {
            assert_eq!(judged(name, &[first.as_slice(), rest].concat()), Completeness::Unknown, "{name}");
        }
    }
}

#[test]
fn a_model_of_lightgbm_is_torn_inside_a_part() {
    // The lengths range from the end of the trees to the parameters, and from the end of these.
    let model = lightgbm_of();
    let text = str::from_utf8(&model).unwrap();
    let at = |part: &str| text.find(part).unwrap();
    let trees_end = at("end of trees\n") + 13;
    for (length, expected) in [
        (30, Completeness::Torn),
        (trees_end - 1, Completeness::Torn),
        (trees_end, Completeness::Unknown),
        (at("[boosting"), Completeness::Torn),
        (at("end of parameters") + 3, Completeness::Torn),
        (at("pandas"), Completeness::Whole),
        (at("pandas") + 9, Completeness::Torn),
        (text.len() - 1, Completeness::Torn),
    ] {
        assert_eq!(judged("model.txt", &model[..length]), expected, "{length}");
    }
    assert_eq!(judged("a.txt", &[&model, b"more".as_slice()].concat()), Completeness::Torn);
}

#[test]
fn the_data_of_a_tensorflow_checkpoint_are_judged_by_its_index() {
    let (index, data) = tensorflow_pair(&tricky(300));
    let folder = spotsweep_needs::scratch();
    let path = folder.path().join("ckpt-1.data-00000-of-00002");
    let judge = |content: &[u8]| {
        fs::write(&path, content).unwrap();
        completeness(&path).unwrap()
    };
    // Without an index, and with an index that is cut off, the result is unknown.
    assert_eq!(judge(&data), Completeness::Unknown);
    for length in 0..index.len() {
        fs::write(folder.path().join("ckpt-1.index"), &index[..length]).unwrap();
        assert_eq!(judge(&data), Completeness::Unknown, "{length}");
    }
    fs::write(folder.path().join("ckpt-1.index"), &index).unwrap();
    assert_eq!(judge(&data), Completeness::Whole);
    assert_eq!(judge(&[&data, b"more".as_slice()].concat()), Completeness::Whole);
    for length in 0..data.len() {
        assert_eq!(judge(&data[..length]), Completeness::Torn, "{length}");
    }
    assert_eq!(judge(&[&data[..100], &[0; 50], &data[150..]].concat()), Completeness::Torn);
    // Invalid content of the index is no error.
    for at in 0..index.len() {
        for byte in [0, 1, 0x7f, 0x80, 0xff] {
            let mut strange = index.clone();
            strange[at] = byte;
            fs::write(folder.path().join("ckpt-1.index"), &strange).unwrap();
            judge(&data);
        }
    }
}

#[test]
fn what_follows_a_value_may_be_another() {
    for (name, content) in [("a.msgpack", b"\x81\xa1a\x01".to_vec()), ("a.ubj", ubjson_of(b"a"))] {
        assert_eq!(judged(name, &[content.as_slice(), b"\0"].concat()), Completeness::Unknown, "{name}");
    }
    assert_eq!(judged("deep.ubj", &[b"{i\x01a".as_slice(), &[b'['; 1000]].concat()), Completeness::Unknown);
}

#[test]
fn zeros_inside_a_compressed_file_are_missing_parts() {
    let next = |number: &u32| Some(number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    let data: Vec<u8> = std::iter::successors(Some(1), next).map(|number| (number >> 26) as u8).take(40_000).collect();
    let cases = [
        ("a.gz", gzip_of(&data)),
        ("a.bz2", bzip2_of(&data)),
        ("a.joblib", zlib_of(&data)),
        ("a.xz", xz_of(&data)),
        ("a.zst", zstd_of(&data)),
        ("a.lz4", lz4_of(&data, true)),
    ];
    for (name, mut content) in cases {
        let half = content.len() / 2;
        content[half..half + 4096].fill(0);
        assert_eq!(judged(name, &content), Completeness::Torn, "{name}");
    }
}

#[test]
fn lost_pages_are_missing_parts() {
    let folder = spotsweep_needs::scratch();
    let data = vec![7; 1 << 20];
    let files = [
        ("model.safetensors", safetensors_of(&data)),
        ("w.npy", npy_of("|u1", "1048576,", &data)),
        ("model.pkl", pickle_of(&data)),
    ];
    for (name, whole) in files {
        let path = folder.path().join(name);
        let mut file = File::create(&path).unwrap();
        file.write_all(&whole[..4096]).unwrap();
        file.set_len(whole.len() as u64 - 2).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &whole[whole.len() - 2..], whole.len() as u64 - 2).unwrap();
        let shows_holes = File::open(&path).unwrap().has_hole();
        let expected = if shows_holes { Completeness::Torn } else { Completeness::Whole };
        assert_eq!(completeness(&path).unwrap(), expected, "{name}");
    }
    let mut zip = zip_of(&data, false);
    zip[4096..8192].fill(0);
    assert_eq!(judged("model.pt", &zip), Completeness::Torn);
    assert_eq!(judged("state.json", b"{\"a\": \0\0\0\0}"), Completeness::Torn);
}

#[test]
fn zeros_in_place_of_the_first_page_are_missing_parts() {
    let data = tricky(9000);
    let zip = zip_of(&data, false);
    let names = ["model.pt", "model.pth", "a.npz", "a.keras", "a.npy", "a.h5", "a.safetensors", "a.gz"];
    // A zip archive can also be recognised by its end, as in `pytorch_model.bin` and Lightning's `.ckpt`.
    let zips = [("pytorch_model.bin", zip.clone()), ("last.ckpt", zip.clone()), ("large.ckpt", zip_of(&data, true))];
    let any = names.into_iter().chain(["a.pkl", "a.joblib", "a.sqlite", "a.db"]).map(|name| (name, zip.clone()));
    for (name, whole) in any.chain(zips) {
        for length in [600, 4096, 8192] {
            let lost = [vec![0; length], whole[length..].to_vec()].concat();
            assert_eq!(judged(name, &lost), Completeness::Torn, "{name} without {length} bytes");
        }
    }
    // These are plain numbers, an empty archive, and a user block of zeros.
    for (name, content) in [("a.bin", vec![0; 4096]), ("a.ckpt", vec![0; 4096]), ("a.tar", vec![0; 10240])] {
        assert_eq!(judged(name, &content), Completeness::Unknown, "{name}");
    }
    assert_eq!(judged("a.h5", &[vec![0; 1024], hdf5_of(0, 1024, &data)].concat()), Completeness::Whole);
}

#[test]
fn a_hot_journal_restores_the_pages_that_it_has() {
    let journal = |stated, pages: &[u32]| journal_of(3, stated, pages);
    let cases = [
        // The file has all pages; or the last one is in the journal, in its second part, or in neither.
        (1536, journal(1, &[1]), Completeness::Whole),
        (2 * 512, journal(2, &[1, 3]), Completeness::Whole),
        (2 * 512 + 9, journal(u32::MAX, &[1, 3]), Completeness::Whole),
        (2 * 512, two_parts(&journal(1, &[1]), &journal(1, &[3])), Completeness::Whole),
        (2 * 512, two_parts(&journal(1, &[1]), &journal(0, &[3])), Completeness::Torn),
        (2 * 512, journal(1, &[1]), Completeness::Torn),
        (512, journal(2, &[1, 3]), Completeness::Torn),
        // The journal has fewer records than stated, or a header that is cut off.
        (1536, journal(3, &[1, 2]), Completeness::Unknown),
        (1536, journal(1, &[1])[..900].to_vec(), Completeness::Unknown),
        (1536, journal(u32::MAX, &[1, 2])[..1500].to_vec(), Completeness::Unknown),
        (1536, journal(1, &[1])[..300].to_vec(), Completeness::Unknown),
        // Another file decides whether the transaction was complete.
        (1536, [journal(1, &[1]), journal(1, &[1])[..8].to_vec()].concat(), Completeness::Unknown),
        // The transaction was committed.
        (1536, vec![0; 2000], Completeness::Whole),
        (1024, vec![0; 2000], Completeness::Torn),
        (1024, Vec::new(), Completeness::Torn),
    ];
    for (number, (bytes, journal, expected)) in cases.into_iter().enumerate() {
        assert_eq!(with_beside(bytes, "-journal", &journal), expected, "{number}");
    }
    let mut wrong = journal(2, &[1, 3]);
    wrong[512 + 4 + 512 - 200] ^= 1;
    assert_eq!(with_beside(2 * 512, "-journal", &wrong), Completeness::Torn);
}

#[test]
fn a_log_has_the_pages_of_its_transactions() {
    for is_big_endian in [false, true] {
        let log = |frames: &[(u32, u32)]| log_of(is_big_endian, frames);
        let cases = [
            (2 * 512, log(&[(1, 0), (3, 3)]), Completeness::Whole),
            (2 * 512, log(&[(3, 0), (1, 3), (2, 0)]), Completeness::Whole),
            // No transaction is complete, or not the one with the last page.
            (2 * 512, log(&[(1, 0), (3, 0)]), Completeness::Torn),
            (2 * 512, log(&[(1, 3), (3, 0)]), Completeness::Torn),
            (3 * 512, log(&[(1, 0)]), Completeness::Whole),
            (3 * 512, log(&[(1, 4)]), Completeness::Torn),
            (512, log(&[(1, 0), (3, 3)]), Completeness::Torn),
            (2 * 512, log(&[]), Completeness::Torn),
            (2 * 512, vec![0; 3000], Completeness::Torn),
        ];
        for (number, (bytes, log, expected)) in cases.into_iter().enumerate() {
            assert_eq!(with_beside(bytes, "-wal", &log), expected, "{number}");
        }
        let whole = log(&[(1, 0), (3, 3)]);
        for length in 0..whole.len() {
            assert_eq!(with_beside(2 * 512, "-wal", &whole[..length]), Completeness::Torn, "{length}");
        }
        let mut wrong = whole.clone();
        wrong[100] ^= 1;
        assert_eq!(with_beside(2 * 512, "-wal", &wrong), Completeness::Torn);
    }
}

#[test]
fn the_first_page_of_a_database_may_be_beside_it() {
    let folder = spotsweep_needs::scratch();
    let path = folder.path().join("study.db");
    fs::write(&path, [0; 1536]).unwrap();
    for (pages, expected) in [(vec![1, 2, 3], Completeness::Whole), (vec![1, 2], Completeness::Torn)] {
        fs::write(folder.path().join("study.db-journal"), journal_of(3, u32::MAX, &pages)).unwrap();
        assert_eq!(completeness(&path).unwrap(), expected);
    }
}

#[test]
fn hostile_lengths_cost_nothing() {
    let huge = [0xff; 8];
    let cases: [(&str, Vec<u8>); 5] = [
        ("a.safetensors", [&huge, b"{\"a\":1}".as_slice()].concat()),
        ("a.pkl", [b"\x80\x04\x8e".as_slice(), &huge, b"."].concat()),
        ("a.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}".to_vec()),
        ("a.h5", [b"\x89HDF\r\n\x1a\n\x02\x08\x08\x00".as_slice(), &[0xff; 60]].concat()),
        ("a.db", [b"SQLite format 3\0".as_slice(), &[0xff; 90]].concat()),
    ];
    for (name, content) in cases {
        assert_eq!(judged(name, &content), Completeness::Torn, "{name}");
    }
    let many = npy_of("<f8", "18446744073709551615, 9", b"x");
    assert_eq!(judged("a.npy", &many), Completeness::Unknown);
}

#[test]
fn what_is_no_known_format_is_unknown() {
    let cases: [(&str, &[u8]); 12] = [
        ("empty.pt", b""),
        ("latest", b"checkpoint-500\n"),
        ("table.parquet", b"PAR1\0\0PAR1"),
        ("model.onnx", b"\x12\x07pytorch"),
        ("numbers.msgpack", b"\x01\x02\x03"),
        ("faiss.index", b"IxF2"),
        ("text.ubj", b"{\"a\""),
        ("compressed.pkl", b"BZh9 and more"),
        ("zlib.bin", b"x\x9c\x01\x02"),
        ("note", b"{not json"),
        ("nan.json", b"{\"loss\": NaN}"),
        ("weights.bin", b"\x80\x03\xff\x01\x02\x03"),
    ];
    for (name, content) in cases {
        assert_eq!(judged(name, content), Completeness::Unknown, "{name}");
    }
    // Python's `gzip` skips zeros after the last member.
    assert_eq!(judged("a.gz", &[gzip_of(b"a"), vec![0; 9]].concat()), Completeness::Whole);
    assert_eq!(judged("a.gz", &[gzip_of(b"a"), vec![1; 9]].concat()), Completeness::Unknown);
}

#[test]
fn the_checksum_of_hdf5_is_that_of_its_author() {
    // The value comes from driver5 in lookup3.c.
    assert_eq!(hdf5::checksum(b"Four score and seven years ago"), 0x1777_0551);
}
