//! The server of the data sets answers as S3 does.
#![allow(missing_docs, clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use spotsweep_studies::fetch::{Objects, Server};

/// Not a multiple of the block that the objects repeat.
const BYTES: u64 = (3 << 20) + 5;

/// Sends requests on one connection. Returns each answer's status and body.
fn ask(server: &Server, requests: &[(&str, &str)]) -> Vec<(u16, Vec<u8>)> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port())).unwrap();
    let written: String =
        requests.iter().map(|(target, headers)| format!("GET {target} HTTP/1.1\r\nHost: h\r\n{headers}\r\n")).collect();
    stream.write_all(written.as_bytes()).unwrap();
    requests.iter().map(|_| read(&mut stream)).collect()
}

fn read(stream: &mut TcpStream) -> (u16, Vec<u8>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body)
}

#[test]
fn objects_are_read_whole_in_part_and_only_unchanged() {
    let objects = Objects::new(2, BYTES);
    let matching = format!("If-Match: {}\r\n", objects.etag());
    let server = Server::start(objects, Duration::ZERO).unwrap();
    let second = "/b/data/set/000000/000000001.bin";
    let answers = ask(
        &server,
        &[
            (second, &matching),
            (second, "Range: bytes=1048570-2097160\r\n"),
            (second, "Range: bytes=3145720-\r\n"),
            (second, "Range: bytes=3145733-\r\n"),
            (second, "If-Match: \"other\"\r\n"),
            ("/b/data/set/000000/000000002.bin", ""),
        ],
    );
    let statuses: Vec<u16> = answers.iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses, [200, 206, 206, 416, 412, 404]);
    let whole = &answers[0].1;
    assert_eq!(whole.len() as u64, BYTES);
    assert!(answers[1].1 == whole[1_048_570..=2_097_160], "a range over two blocks");
    assert_eq!(answers[2].1, whole[3_145_720..]);
}

#[test]
fn a_listing_has_pages_and_each_object_once() {
    let server = Server::start(Objects::new(2_500, 1), Duration::ZERO).unwrap();
    let (mut keys, mut next, mut pages) = (BTreeSet::new(), Some("0".to_owned()), 0);
    while let Some(token) = next {
        let target = format!("/b?list-type=2&prefix=data%2Fset%2F&continuation-token={token}");
        let (status, page) = ask(&server, &[(&target, "")]).remove(0);
        assert_eq!(status, 200);
        let page = String::from_utf8(page).unwrap();
        let between =
            |text: &str, open: &str| text.split_once(open).map(|(_, rest)| rest.split('<').next().unwrap().to_owned());
        keys.extend(page.split("<Contents>").skip(1).map(|entry| between(entry, "<Key>").unwrap()));
        next = between(&page, "<NextContinuationToken>");
        pages += 1;
    }
    assert_eq!((keys.len(), pages), (2_500, 3));
    assert_eq!(keys.last().unwrap(), "data/set/000002/000002499.bin");
}
