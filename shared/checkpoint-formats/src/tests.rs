#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "the cases are files")]

use std::fs;
use std::io::{Cursor, Write};

use proptest::prelude::*;

use super::*;

/// Bytes that look like ends of formats, and like operations of a pickle.
fn tricky(length: usize) -> Vec<u8> {
    b"..PK\x05\x06PAR1.}]\n\x1f\x8b".iter().copied().cycle().take(length).collect()
}

fn judged(name: &str, content: &[u8]) -> Completeness {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(name), content).unwrap();
    completeness(&folder.path().join(name)).unwrap()
}

fn zip_of(content: &[u8], is_large: bool) -> Vec<u8> {
    let mut writer = ::zip::ZipWriter::new(Cursor::new(Vec::new()));
    for method in [::zip::CompressionMethod::Stored, ::zip::CompressionMethod::Deflated] {
        let options = ::zip::write::SimpleFileOptions::default().compression_method(method).large_file(is_large);
        writer.start_file(format!("archive/{method:?}"), options).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn gzip_of(content: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    writer.write_all(content).unwrap();
    writer.finish().unwrap()
}

fn bzip2_of(content: &[u8]) -> Vec<u8> {
    let mut writer = ::bzip2::write::BzEncoder::new(Vec::new(), ::bzip2::Compression::fast());
    writer.write_all(content).unwrap();
    writer.finish().unwrap()
}

fn zlib_of(content: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    writer.write_all(content).unwrap();
    writer.finish().unwrap()
}

fn xz_of(content: &[u8]) -> Vec<u8> {
    let mut writer = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
    writer.write_all(content).unwrap();
    writer.finish().unwrap()
}

fn zstd_of(content: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(content, ruzstd::encoding::CompressionLevel::Fastest)
}

fn lz4_of(content: &[u8], has_checksum: bool) -> Vec<u8> {
    let options = lz4_flex::frame::FrameInfo::new().content_checksum(has_checksum);
    let mut writer = lz4_flex::frame::FrameEncoder::with_frame_info(options, Vec::new());
    writer.write_all(content).unwrap();
    writer.finish().unwrap()
}

fn safetensors_of(data: &[u8]) -> Vec<u8> {
    let length = data.len();
    let header = format!(
        r#"{{"__metadata__":{{"data_offsets":"1"}},"w":{{"dtype":"U8","shape":[{length}],"data_offsets":[0,{length}]}}}}"#
    );
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

fn npy_of(kind: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}\n");
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\x00", length.as_slice(), header.as_bytes(), data].concat()
}

/// `pickle.dumps({'epoch': 3, 'w': b'…'}, 4)`, in one frame.
fn pickle_of(data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap().to_le_bytes();
    let body = [b"}\x94(\x8c\x05epoch\x94K\x03\x8c\x01w\x94B".as_slice(), &length, data, b"\x94u."].concat();
    [b"\x80\x04\x95".as_slice(), &(body.len() as u64).to_le_bytes(), &body].concat()
}

/// The magic number, and four more pickles in place of version, system, object and keys.
fn torch_of(data: &[u8]) -> Vec<u8> {
    let number = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.".as_slice();
    let small = b"\x80\x02}q\x00.".as_slice();
    [number, small, small, &pickle_of(data), small].concat()
}

/// `base` bytes stand before it.
fn hdf5_of(version: u8, base: usize, data: &[u8]) -> Vec<u8> {
    let address = |number: u64| number.to_le_bytes();
    let mut start = [hdf5::SIGNATURE, &[version]].concat();
    let size = if version < 2 {
        start.extend([0, 0, 0, 0, 8, 8, 0, 4, 0, 16, 0, 0, 0, 0, 0]);
        if version == 1 {
            start.extend([32, 0, 0, 0]);
        }
        start.len() + 72
    } else {
        start.extend([8, 8, 0]);
        start.len() + 36
    };
    let end = address((base + size + data.len()) as u64);
    start.extend([address(base as u64), address(u64::MAX), end, address(u64::MAX)].concat());
    if version >= 2 {
        start.extend(hdf5::checksum(&start).to_le_bytes());
    }
    start.resize(size, 0);
    [start.as_slice(), data].concat()
}

fn sqlite_of(pages: u8) -> Vec<u8> {
    let mut content = vec![0; 512 * usize::from(pages)];
    content[..16].copy_from_slice(sqlite::MAGIC);
    content[16] = 2;
    content[27] = 7;
    content[31] = pages;
    content[95] = 7;
    content
}

/// A header of `ustar`.
fn tar_header(kind: u8, size: usize) -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..5].copy_from_slice(b"model");
    header[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
    header[148..156].fill(b' ');
    header[156] = kind;
    header[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    header
}

fn tar_member(kind: u8, data: &[u8]) -> Vec<u8> {
    let mut member = [tar_header(kind, data.len()), data.to_vec()].concat();
    member.resize(member.len().next_multiple_of(512), 0);
    member
}

fn tar_of(data: &[u8]) -> Vec<u8> {
    [tar_member(b'0', data), tar_member(b'5', b""), tar_member(b'0', data), vec![0; 1024]].concat()
}

fn parquet_of(data: &[u8]) -> Vec<u8> {
    [b"PAR1".as_slice(), data, &40_u32.to_le_bytes(), b"PAR1"].concat()
}

/// Whole files, and the length from which on every truncation of them is torn: shorter ones may be unknown.
fn files(data: &[u8]) -> Vec<(&'static str, Vec<u8>, usize)> {
    vec![
        ("model.pt", zip_of(data, false), 4),
        ("large.npz", zip_of(data, true), 4),
        ("empty.npz", ::zip::ZipWriter::new(Cursor::new(Vec::new())).finish().unwrap().into_inner(), 4),
        ("model.gz", gzip_of(data), 3),
        ("two.gz", [gzip_of(data), gzip_of(data)].concat(), usize::MAX),
        ("model.bz2", bzip2_of(data), 10),
        ("model.joblib", zlib_of(data), 2),
        ("model.xz", xz_of(data), 6),
        ("model.zst", zstd_of(data), 4),
        ("model.lz4", lz4_of(data, false), 4),
        ("checked.lz4", lz4_of(data, true), 4),
        ("model.safetensors", safetensors_of(data), 1),
        ("weights", safetensors_of(data), 10),
        ("w.npy", npy_of("<f4", &format!("{}, 2", data.len() / 8), &data[..data.len() / 8 * 8]), 6),
        ("o.npy", npy_of("|O", "2,", &pickle_of(data)), 6),
        ("model.pkl", pickle_of(data), 2),
        ("old.pkl", b"(dp0\nVepoch\np1\nI3\nsVw\np2\nVabc\np3\ns.".to_vec(), 1),
        ("v0.h5", hdf5_of(0, 0, data), 8),
        ("v1.h5", hdf5_of(1, 0, data), 8),
        ("v2.h5", hdf5_of(2, 0, data), 8),
        ("v3.h5", hdf5_of(3, 0, data), 8),
        ("user_block.mat", [vec![b'M'; 512], hdf5_of(0, 512, data)].concat(), usize::MAX),
        ("study.db", sqlite_of(3), 16),
        ("state.json", br#"{"epoch": 3, "best": [0.5, -1e-3, "x\u00e9", true]}"#.to_vec(), 1),
        ("log.jsonl", b"{\"epoch\": 1}\n{\"epoch\": [2.5]}\n".to_vec(), usize::MAX),
        ("anything", br#"[{"epoch": 3}]"#.to_vec(), usize::MAX),
        ("table.parquet", parquet_of(data), 4),
    ]
}

/// Truncations of these that end at a value or member are complete to the library too.
const MAY_END_EARLIER: [&str; 2] = ["log.jsonl", "two.gz"];

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
    // One block of zeros is the end to Python.
    assert_eq!(judged("a", &content), Completeness::Whole);
    assert_eq!(judged("a", &content[..members + 512]), Completeness::Whole);
    for length in 512..members {
        let at_member = length == size || length == size + 512;
        let expected = if at_member { Completeness::Unknown } else { Completeness::Torn };
        assert_eq!(judged("a", &content[..length]), expected, "{length}");
    }
    assert_eq!(judged("a", &content[..members]), Completeness::Unknown);
    assert_eq!(judged("a.tar", &content[..100]), Completeness::Torn);
    // An extended header's size is that of the next member, and without a member it is not complete.
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
fn a_nested_archive_does_not_stand_for_the_outer_one() {
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
    let folder = tempfile::tempdir().unwrap();
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
        let shows_holes = Source::new(File::open(&path).unwrap()).unwrap().has_hole();
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
    let names = ["model.pt", "model.pth", "a.npz", "a.keras", "a.npy", "a.h5", "a.safetensors", "a.parquet", "a.gz"];
    // A zip archive is known by its end too, as in `pytorch_model.bin` and Lightning's `.ckpt`.
    let zips = [("pytorch_model.bin", zip.clone()), ("last.ckpt", zip.clone()), ("large.ckpt", zip_of(&data, true))];
    let any = names.into_iter().chain(["a.pkl", "a.joblib", "a.sqlite", "a.db"]).map(|name| (name, zip.clone()));
    for (name, whole) in any.chain(zips) {
        for length in [600, 4096, 8192] {
            let lost = [vec![0; length], whole[length..].to_vec()].concat();
            assert_eq!(judged(name, &lost), Completeness::Torn, "{name} without {length} bytes");
        }
    }
    // Plain numbers, an empty archive, and a user block that was left as zeros.
    for (name, content) in [("a.bin", vec![0; 4096]), ("a.ckpt", vec![0; 4096]), ("a.tar", vec![0; 10240])] {
        assert_eq!(judged(name, &content), Completeness::Unknown, "{name}");
    }
    assert_eq!(judged("a.h5", &[vec![0; 1024], hdf5_of(0, 1024, &data)].concat()), Completeness::Whole);
}

#[test]
fn a_journal_or_log_completes_a_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("study.db");
    let hot = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7, 0, 0];
    let log = [[0x37, 0x7f, 0x06, 0x83].as_slice(), &[0; 60]].concat();
    fs::write(&path, &sqlite_of(3)[..1024]).unwrap();
    let cases: [(&str, &[u8], Completeness); 5] = [
        ("study.db-journal", &[], Completeness::Torn),
        ("study.db-journal", &[0; 64], Completeness::Torn),
        ("study.db-journal", &hot, Completeness::Whole),
        ("study.db-wal", &log[..32], Completeness::Torn),
        ("study.db-wal", &log, Completeness::Whole),
    ];
    for (name, content, expected) in cases {
        fs::write(folder.path().join(name), content).unwrap();
        assert_eq!(completeness(&path).unwrap(), expected, "{name} of {} bytes", content.len());
        fs::remove_file(folder.path().join(name)).unwrap();
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
    let cases: [(&str, &[u8]); 9] = [
        ("empty.pt", b""),
        ("latest", b"checkpoint-500\n"),
        ("model.gguf", b"GGUF\x03\0\0\0"),
        ("model.onnx", b"\x08\x09\x12\x07pytorch"),
        ("compressed.pkl", b"BZh9 and more"),
        ("zlib.bin", b"x\x9c\x01\x02"),
        ("note", b"{not json"),
        ("nan.json", b"{\"loss\": NaN}"),
        ("weights.bin", b"\x80\x03\xff\x01\x02\x03"),
    ];
    for (name, content) in cases {
        assert_eq!(judged(name, content), Completeness::Unknown, "{name}");
    }
    // Python's `gzip` passes over zeros after the last member.
    assert_eq!(judged("a.gz", &[gzip_of(b"a"), vec![0; 9]].concat()), Completeness::Whole);
    assert_eq!(judged("a.gz", &[gzip_of(b"a"), vec![1; 9]].concat()), Completeness::Unknown);
}

#[test]
fn the_checksum_of_hdf5_is_that_of_its_author() {
    // From lookup3.c, driver5.
    assert_eq!(hdf5::checksum(b"Four score and seven years ago"), 0x1777_0551);
}
