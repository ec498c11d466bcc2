//! Samples of files of each format.

use super::*;

/// Returns bytes that look like ends of formats, and like operations of a pickle.
pub(super) fn tricky(length: usize) -> Vec<u8> {
    b"..PK\x05\x06PAR1.}]\n\x1f\x8b".iter().copied().cycle().take(length).collect()
}

pub(super) fn zip_of(content: &[u8], is_large: bool) -> Vec<u8> {
    let mut writer = ::zip::ZipWriter::new(Cursor::new(Vec::new()));
    for method in [::zip::CompressionMethod::Stored, ::zip::CompressionMethod::Deflated] {
        let options = ::zip::write::SimpleFileOptions::default().compression_method(method).large_file(is_large);
        writer.start_file(format!("archive/{method:?}"), options).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

pub(super) fn gzip_of(content: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    writer.write_all(content).unwrap();
    writer.finish().unwrap()
}

pub(super) fn bzip2_of(content: &[u8]) -> Vec<u8> {
    let mut writer = ::bzip2::write::BzEncoder::new(Vec::new(), ::bzip2::Compression::fast());
    writer.write_all(content).unwrap();
    writer.finish().unwrap()
}

pub(super) fn zlib_of(content: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    writer.write_all(content).unwrap();
    writer.finish().unwrap()
}

pub(super) fn xz_of(content: &[u8]) -> Vec<u8> {
    let mut writer = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
    writer.write_all(content).unwrap();
    writer.finish().unwrap()
}

pub(super) fn zstd_of(content: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(content, ruzstd::encoding::CompressionLevel::Fastest)
}

pub(super) fn lz4_of(content: &[u8], has_checksum: bool) -> Vec<u8> {
    let options = lz4_flex::frame::FrameInfo::new().content_checksum(has_checksum);
    let mut writer = lz4_flex::frame::FrameEncoder::with_frame_info(options, Vec::new());
    writer.write_all(content).unwrap();
    writer.finish().unwrap()
}

pub(super) fn safetensors_of(data: &[u8]) -> Vec<u8> {
    let length = data.len();
    let header = format!(
        r#"{{"__metadata__":{{"data_offsets":"1"}},"w":{{"dtype":"U8","shape":[{length}],"data_offsets":[0,{length}]}}}}"#
    );
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

pub(super) fn npy_of(kind: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}\n");
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\x00", length.as_slice(), header.as_bytes(), data].concat()
}

/// Returns `pickle.dumps({'epoch': 3, 'w': b'…'}, 4)`, in one frame.
pub(super) fn pickle_of(data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap().to_le_bytes();
    let body = [b"}\x94(\x8c\x05epoch\x94K\x03\x8c\x01w\x94B".as_slice(), &length, data, b"\x94u."].concat();
    [b"\x80\x04\x95".as_slice(), &(body.len() as u64).to_le_bytes(), &body].concat()
}

/// Returns the magic number, and four more pickles in place of version, system, object and keys.
pub(super) fn torch_of(data: &[u8]) -> Vec<u8> {
    let number = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.".as_slice();
    let small = b"\x80\x02}q\x00.".as_slice();
    [number, small, small, &pickle_of(data), small].concat()
}

/// Returns an HDF5 file with `base` bytes before the superblock.
pub(super) fn hdf5_of(version: u8, base: usize, data: &[u8]) -> Vec<u8> {
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

pub(super) fn sqlite_of(pages: u8) -> Vec<u8> {
    let mut content = vec![0; 512 * usize::from(pages)];
    content[..16].copy_from_slice(sqlite::MAGIC);
    content[16] = 2;
    content[27] = 7;
    content[31] = pages;
    content[95] = 7;
    content
}

/// Returns a journal of a database of `database` pages, whose pages and sectors have 512 bytes. `stated` is the number
/// of records.
pub(super) fn journal_of(database: u32, stated: u32, pages: &[u32]) -> Vec<u8> {
    let mut content = vec![0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    for number in [stated, 77, database, 512, 512] {
        content.extend(number.to_be_bytes());
    }
    content.resize(512, 0);
    for page in pages {
        let data: Vec<u8> = (0..512_u32).map(|at| (at * page % 251) as u8).collect();
        let sum = 77 + u32::from(data[312]) + u32::from(data[112]);
        content.extend([page.to_be_bytes().as_slice(), &data, &sum.to_be_bytes()].concat());
    }
    content
}

/// Joins two parts of a journal: the second one begins at the next sector.
pub(super) fn two_parts(first: &[u8], second: &[u8]) -> Vec<u8> {
    let mut content = first.to_vec();
    content.resize(content.len().next_multiple_of(512), 0);
    content.extend(second);
    content
}

/// Judges the first `bytes` bytes of a database of three pages, with the file `beside` of this ending next to it.
pub(super) fn with_beside(bytes: usize, ending: &str, beside: &[u8]) -> Completeness {
    let folder = spotsweep_needs::scratch();
    let path = folder.path().join("study.db");
    fs::write(&path, &sqlite_of(3)[..bytes]).unwrap();
    fs::write(folder.path().join(format!("study.db{ending}")), beside).unwrap();
    completeness(&path).unwrap()
}

/// Returns a log with these pages. Each has the size of the database after the transaction that ends with it, or 0.
pub(super) fn log_of(is_big_endian: bool, frames: &[(u32, u32)]) -> Vec<u8> {
    let mut sums = [0_u32; 2];
    let mut add = |content: &[u8]| {
        for (at, word) in content.chunks_exact(4).enumerate() {
            let word = <[u8; 4]>::try_from(word).unwrap();
            let word = if is_big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) };
            sums[at % 2] = sums[at % 2].wrapping_add(word).wrapping_add(sums[1 - at % 2]);
        }
        sums.map(u32::to_be_bytes).concat()
    };
    let magic = 0x377f_0682_u32 | u32::from(is_big_endian);
    let mut content: Vec<u8> = [magic, 3_007_000, 512, 0, 11, 12].map(u32::to_be_bytes).concat();
    let sum = add(&content);
    content.extend(sum);
    for (page, size) in frames {
        let start = [page.to_be_bytes(), size.to_be_bytes()].concat();
        let data: Vec<u8> = (0..512_u32).map(|at| (at * page % 249) as u8).collect();
        add(&start);
        let sum = add(&data);
        content.extend([start, [11_u32, 12].map(u32::to_be_bytes).concat(), sum, data].concat());
    }
    content
}

/// Returns a header of `ustar`.
pub(super) fn tar_header(kind: u8, size: usize) -> Vec<u8> {
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

pub(super) fn tar_member(kind: u8, data: &[u8]) -> Vec<u8> {
    let mut member = [tar_header(kind, data.len()), data.to_vec()].concat();
    member.resize(member.len().next_multiple_of(512), 0);
    member
}

pub(super) fn tar_of(data: &[u8]) -> Vec<u8> {
    [tar_member(b'0', data), tar_member(b'5', b""), tar_member(b'0', data), vec![0; 1024]].concat()
}

/// Returns whole files, each with the length from which on every truncation of it is torn. Shorter ones may be unknown.
pub(super) fn files(data: &[u8]) -> Vec<(&'static str, Vec<u8>, usize)> {
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
        ("user_block.h5", [vec![b'U'; 512], hdf5_of(0, 512, data)].concat(), usize::MAX),
        ("study.db", sqlite_of(3), 16),
        ("state.json", br#"{"epoch": 3, "best": [0.5, -1e-3, "x\u00e9", true]}"#.to_vec(), 1),
        ("log.jsonl", b"{\"epoch\": 1}\n{\"epoch\": [2.5]}\n".to_vec(), usize::MAX),
        ("anything", br#"[{"epoch": 3}]"#.to_vec(), usize::MAX),
        ("checkpoint.msgpack", msgpack_of(data), 1),
        ("ckpt-1.index", tensorflow_of(data), 5),
        ("model.ubj", ubjson_of(data), 1),
        ("model.txt", lightgbm_of(), usize::MAX),
    ]
}

/// Returns `{'step': 3, 'params': {'w': extension type 1, 'b': [1.0, None, -1]}}`.
fn msgpack_of(data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap().to_be_bytes();
    let start = b"\x82\xa4step\x03\xa6params\xde\x00\x02\xa1w\xc9".as_slice();
    [start, &length, b"\x01", data, b"\xd9\x01b\x93\xca\x3f\x80\0\0\xc0\xff"].concat()
}

/// Returns a block of `data`, an empty list of other blocks, an index, and the footer.
fn tensorflow_of(data: &[u8]) -> Vec<u8> {
    let mut content = [b"\0\0\x06\x08\x01\x1a\x02\x08\x01".as_slice(), data, &[0; 5]].concat();
    let at = content.len();
    content.extend([7; 8 + 5 + 20 + 5]);
    let variable = |number: usize| [(number & 0x7f) as u8 | 0x80, (number >> 7) as u8];
    let mut footer = [variable(at), variable(8), variable(at + 13), variable(20)].concat();
    footer.resize(40, 0);
    footer.extend(0xdb47_7524_8b80_fb57_u64.to_le_bytes());
    content.extend(footer);
    content
}

/// Returns an index of two tensors, the second one in file 1, and file 0 with `data`.
pub(super) fn tensorflow_pair(data: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let variable = |number: usize| [(number & 0x7f) as u8 | 0x80, (number >> 7) as u8];
    let sum = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI).checksum(data).rotate_right(15).wrapping_add(0xa282_ead8);
    let entry =
        [b"\x08\x01\x12\x02\x12\0\x20\x05\x28".as_slice(), &variable(data.len()), b"\x35", &sum.to_le_bytes()].concat();
    let item = |start: &[u8], key: &[u8], value: &[u8]| [start, &[value.len() as u8], key, value].concat();
    let end = [0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4];
    let other = b"\x08\x01\x18\x01\x28\x09";
    let tensors = [item(&[0, 0], b"", b"\x08\x02"), item(&[0, 2], b"w1", &entry), item(&[1, 1], b"2", other)].concat();
    let handle = |at: usize, block: usize| [variable(at), variable(block + 8)].concat();
    let blocks = item(&[0, 1], b"x", &handle(0, tensors.len()));
    let lists_at = tensors.len() + 13;
    let mut footer = [handle(lists_at, 0), handle(lists_at + 13, blocks.len())].concat();
    footer.resize(40, 0);
    footer.extend(0xdb47_7524_8b80_fb57_u64.to_le_bytes());
    let index = [tensors.as_slice(), &end, &end, &blocks, &end, &footer].concat();
    (index, [b"other", data].concat())
}

/// Returns an object with each kind of item, and `data` as an array of numbers.
pub(super) fn ubjson_of(data: &[u8]) -> Vec<u8> {
    let count = (data.len() as u64).to_be_bytes();
    let start = b"{L\0\0\0\0\0\0\0\x01a{}i\x01b[$U#L".as_slice();
    [start, &count, data, b"i\x01c[#i\x02Si\x02hi[ZTd\0\0\0\0]i\x01d[$d#L\0\0\0\0\0\0\0\0i\x01eI\0\x01}"].concat()
}

pub(super) fn lightgbm_of() -> Vec<u8> {
    let trees = "tree\nversion=v4\ntree_sizes=9\n\nTree=0\nnum_leaves=1\n\nend of trees\n";
    let rest = "\nparameters:\n[boosting: gbdt]\n\nend of parameters\n\npandas_categorical:null\n";
    [trees, rest].concat().into_bytes()
}
