//! Runs `pull` on outputs that are hard to store: two names in the bucket that are one on a disk, and links on the
//! path.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use aws_sdk_s3::primitives::ByteStream;
use spotsweep_tests::local::{Stack, s3};

use super::by_hand::{run, settled, submit};

const WORK: &str = "spotsweep: {workspace: off, command: [echo, trained]}\ntrials: [{n: 1}, {n: 2}]\n";

/// Objects of the second trial that can be downloaded.
const GOOD: [&str; 4] = ["model/w", "back\\slash", "esc\u{1b}[0m", "z"];
/// Objects that cannot, with a part of the message about each.
const BAD: [(&str, &str); 5] = [
    ("model", "a folder has its name"),
    ("a//b", "no name of a file"),
    ("a/.spotsweep-1-0.part", "no name of a file"),
    ("linked/stolen", "linked is a link, which is not followed"),
    ("link", "what lies at trials/1/link is a link"),
];

#[tokio::test(flavor = "multi_thread")]
async fn one_bad_key_never_stops_the_others() {
    let stack = Stack::start("pull").await;
    let sweep = submit(&stack, "work", WORK).await;
    settled(&stack, &sweep).await;
    let long = "n".repeat(256);
    // The file was uploaded before it became a folder.
    for name in ["model"].iter().chain(&GOOD).chain(BAD[1..].iter().map(|(name, _)| name)).chain([&&*long]) {
        put(&stack, &format!("results/{sweep}/trials/1/{name}"), name).await;
    }
    put(&stack, &format!("results/{sweep}/trials/1/folder/"), "").await;

    let (to, outside) = (stack.subfolder("pulled"), stack.subfolder("outside"));
    fs::create_dir_all(to.join("trials/1")).unwrap();
    symlink(&outside, to.join("trials/1/linked")).unwrap();
    symlink(outside.join("file"), to.join("trials/1/link")).unwrap();
    let pull = ["pull", &sweep, "--to", to.to_str().unwrap()];
    let said = run(&stack, &pull).await.said(1, "6 not fetched").notes;
    for (name, why) in BAD.iter().chain(&[(&*long, "cannot write")]) {
        let line =
            said.lines().find(|line| line.starts_with("not fetched: ") && line.contains(&format!("/1/{name}: ")));
        assert!(line.is_some_and(|line| line.contains(why)), "{name}: {said}");
    }
    assert!(said.contains("trials/1/model/w"), "both names are said: {said}");
    for name in GOOD {
        assert_eq!(fs::read_to_string(to.join("trials/1").join(name)).unwrap(), name);
    }
    assert!(to.join("trials/0/train.log").is_file(), "other trials' files are fetched");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "nothing is written through a link");
    assert!(!has_parts(&to), "nothing half fetched stays");

    // The same command downloads nothing twice, and goes on with what is possible by now.
    let again = run(&stack, &[&pull[..], &["--json"]].concat()).await.said(1, "0 files fetched").json();
    assert_eq!(again["failed"].as_array().unwrap().len(), 6, "{again}");
    fs::remove_file(to.join("trials/1/link")).unwrap();
    run(&stack, &pull).await.said(1, "1 file fetched");
    run(&stack, &["pull", &sweep, "0", "--to", to.to_str().unwrap()]).await.said(0, "0 files fetched");
    stack.stop().await;
}

fn has_parts(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let entry = entry.unwrap();
        let is_folder = entry.file_type().unwrap().is_dir();
        entry.file_name().to_string_lossy().ends_with(".part") || (is_folder && has_parts(&entry.path()))
    })
}

async fn put(stack: &Stack, key: &str, content: &str) {
    let put = s3(&stack.config()).put_object().bucket(&stack.bucket).key(key);
    put.body(ByteStream::from(content.as_bytes().to_vec())).send().await.unwrap();
}
