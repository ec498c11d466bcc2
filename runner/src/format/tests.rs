#![allow(clippy::unwrap_used)]

use std::io::Write;

use super::*;

fn judged(name: &str, content: &[u8]) -> Completeness {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(name), content).unwrap();
    completeness(&folder.path().join(name)).unwrap()
}

fn zip_of(content: &[u8]) -> Vec<u8> {
    let mut writer = ::zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    writer.start_file("archive/data.pkl", ::zip::write::SimpleFileOptions::default()).unwrap();
    writer.write_all(content).unwrap();
    writer.finish().unwrap().into_inner()
}

fn gzip_of(content: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    writer.write_all(content).unwrap();
    writer.finish().unwrap()
}

fn safetensors_of(data: &[u8]) -> Vec<u8> {
    let length = data.len();
    let header = format!(
        r#"{{"__metadata__":{{"epoch":"1"}},"w":{{"dtype":"U8","shape":[{length}],"data_offsets":[0,{length}]}}}}"#
    );
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

fn npy_of(data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, 2), }}\n", data.len() / 8);
    [b"\x93NUMPY\x01\x00", u16::try_from(header.len()).unwrap().to_le_bytes().as_slice(), header.as_bytes(), data]
        .concat()
}

/// `pickle.dumps({'epoch': 3, 'w': b'…'}, 4)`
fn pickle_of(data: &[u8]) -> Vec<u8> {
    let head = b"\x80\x04}\x94(\x8c\x05epoch\x94K\x03\x8c\x01w\x94B";
    [head.as_slice(), &u32::try_from(data.len()).unwrap().to_le_bytes(), data, b"\x94u."].concat()
}

#[test]
fn no_truncation_of_a_whole_file_is_whole() {
    // Bytes that look like ends of formats, and like operations.
    let data: Vec<u8> = b"..PK\x05\x06PAR1.}]\n".iter().copied().cycle().take(160).collect();
    let files = [
        ("model.pt", zip_of(&data)),
        ("model.gz", gzip_of(&data)),
        ("model.safetensors", safetensors_of(&data)),
        ("weights", safetensors_of(&data)),
        ("w.npy", npy_of(&data)),
        ("model.pkl", pickle_of(&data)),
        ("state.json", br#"{"epoch": 3, "best": [0.5, "x"]}"#.to_vec()),
        ("table.parquet", [b"PAR1".as_slice(), &data, &40_u32.to_le_bytes(), b"PAR1"].concat()),
    ];
    for (name, content) in files {
        assert_eq!(judged(name, &content), Completeness::Whole, "{name}");
        for length in 0..content.len() {
            let found = judged(name, &content[..length]);
            assert_ne!(found, Completeness::Whole, "{name} cut to {length} of {} bytes", content.len());
            // A number may end anywhere, so a JSON text that is cut off there is only invalid.
            let is_recognised = length >= 16 && name != "state.json";
            assert!(!is_recognised || found == Completeness::Torn, "{name} cut to {length} bytes: {found:?}");
        }
    }
}

#[test]
fn several_pickles_in_one_file_are_no_fault() {
    let one = pickle_of(b"weights");
    assert_eq!(judged("two.pkl", &[one.clone(), one.clone()].concat()), Completeness::Whole);
    let legacy = [one.as_slice(), &one, b"raw tensors without a length"].concat();
    assert_eq!(judged("legacy.pt", &legacy), Completeness::Unknown);
}

#[test]
fn a_hole_in_a_file_without_checksums_is_a_missing_part() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let whole = safetensors_of(&vec![7; 1 << 20]);
    std::fs::write(&path, &whole[..4096]).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(whole.len() as u64).unwrap();
    let shows_holes = has_hole(&file, whole.len() as u64);
    let expected = if shows_holes { Completeness::Torn } else { Completeness::Whole };
    assert_eq!(completeness(&path).unwrap(), expected);
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
}

/// A line of `tests/formats/write.py`.
#[derive(serde::Deserialize)]
struct Written {
    file: String,
    loads: bool,
    whole: bool,
}

#[test]
fn what_libraries_refuse_is_not_whole_and_what_they_write_is_not_torn() {
    let Some(python) = spotsweep_needs::opted_in("SPOTSWEEP_FORMATS_PYTHON") else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/formats/write.py");
    let output = std::process::Command::new(python).arg(script).arg(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<Written> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (mut wrong, mut torn, mut unknown) = (Vec::new(), 0, 0);
    for Written { file, loads, whole } in &lines {
        let found = completeness(&folder.path().join(file)).unwrap();
        torn += usize::from(found == Completeness::Torn);
        unknown += usize::from(!loads && found == Completeness::Unknown);
        let is_wrong =
            if *whole { found == Completeness::Torn || !loads } else { !loads && found == Completeness::Whole };
        if is_wrong {
            wrong.push(format!("{file}: {found:?}, the library loads it: {loads}"));
        }
    }
    let wholes = lines.iter().filter(|line| line.whole).count();
    eprintln!(
        "{wholes} files, {} cut: {torn} torn, {unknown} that the library refuses are unknown",
        lines.len() - wholes
    );
    assert_eq!(wrong, [""; 0]);
    assert!(wholes >= 7 && torn > 100);
}
