//! Which files are packed.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixListener;
use std::process::Command;

use crate::tests::Bench;
use crate::{Content, LARGEST_BYTES, ListError, MOST_DATA_FILES, Reason, Selection, list};

fn left_out(bench: &Bench, include: &[&str], exclude: &[&str]) -> Vec<String> {
    bench.list(include, exclude).left_out.iter().map(|left_out| left_out.path.clone()).collect()
}

/// Ignore files that are nested, negated, bound to a folder, and for folders only.
fn ignoring() -> Bench {
    let bench = Bench::with(&[
        (".gitignore", "*.log\n!keep.log\n/out\nbuild/\n# no pattern\n\\#odd\n"),
        ("lib/.gitignore", "!*.log\nsecond.log\n/top.py\n"),
        ("lib/deep/.gitignore", "*\n!.gitignore\n!only.py\n"),
    ]);
    for path in [
        "a.log",
        "keep.log",
        "out/x",
        "lib/out",
        "build/x",
        "lib/build",
        "#odd",
        ".hidden/x",
        "lib/first.log",
        "lib/second.log",
        "lib/top.py",
        "lib/sub/top.py",
        "lib/deep/only.py",
        "lib/deep/other.py",
        "lib/deep/sub/only.py",
        "name with space.py",
    ] {
        bench.write(path, "");
    }
    bench
}

#[test]
fn git_takes_the_same_files() {
    let bench = ignoring();
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(bench.path()).args(["-c", "core.excludesFile=/dev/null", "-c", "core.quotePath=false"]);
        let output = command.args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let without = bench.names(&[], &[]);
    git(&["init", "--quiet"]);
    let listed = git(&["ls-files", "--others", "--exclude-standard"]);
    let mut expected: Vec<_> = listed.lines().map(str::to_owned).collect();
    expected.sort();
    assert!(expected.len() > 9);
    assert_eq!(bench.names(&[], &[]), expected);
    assert_eq!(without, expected, "the ignore files count without git, too");
    bench.write(".git/info/exclude", "*.py\n!only.py\n");
    let is_left = |path: &String| !path.ends_with(".py") || path.ends_with("only.py");
    expected.retain(is_left);
    assert_eq!(bench.names(&[], &[]), expected);
}

#[test]
fn ignore_files_around_the_folder_count_in_a_repository() {
    let bench = Bench::with(&[
        (".gitignore", "*.log\n/code/top.py\n"),
        ("code/.spotsweepignore", "*.txt\n!b.log\n"),
        ("code/.gitignore", "!keep.txt\n"),
    ]);
    for path in ["a.log", "b.log", "top.py", "sub/top.py", "keep.txt", "train.py"] {
        bench.write(&format!("code/{path}"), "");
    }
    let names = || {
        let listing = list(&bench.at("code"), &Selection::default()).unwrap();
        listing.files.into_iter().map(|item| item.path).filter(|path| !path.starts_with('.')).collect::<Vec<_>>()
    };
    assert_eq!(names(), ["a.log", "b.log", "sub/top.py", "top.py", "train.py"]);
    bench.write(".git/info/exclude", "sub\n");
    assert_eq!(names(), ["b.log", "train.py"]);
    // A worktree has a file in that place.
    fs::rename(bench.at(".git"), bench.at("elsewhere")).unwrap();
    bench.write("elsewhere/worktrees/one/commondir", "../..\n");
    bench.write(".git", "gitdir: elsewhere/worktrees/one\n");
    assert_eq!(names(), ["b.log", "train.py"]);
}

#[test]
fn what_a_tool_makes_again_is_left_out() {
    let bench = Bench::with(&[
        (".git/config", ""),
        ("sub/.git", "gitdir: x"),
        ("a.py", ""),
        ("a.pyc", ""),
        ("__pycache__/a.pyc", ""),
        ("sub/__pycache__/a.py", ""),
        ("env/pyvenv.cfg", ""),
        ("env/lib/a.py", ""),
        ("venv/a.py", ""),
        ("node_modules/a.js", ""),
        (".ipynb_checkpoints/a.ipynb", "{}"),
        ("tagged/a.py", ""),
        ("untagged/a.py", ""),
        ("tagged/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n"),
        ("untagged/CACHEDIR.TAG", "?"),
    ]);
    let packed = ["a.py", "untagged/CACHEDIR.TAG", "untagged/a.py", "venv/a.py"];
    assert_eq!(bench.names(&[], &[]), packed);
    let without = [".ipynb_checkpoints", "__pycache__", "a.pyc", "env", "node_modules", "sub/__pycache__", "tagged"];
    assert_eq!(left_out(&bench, &[], &[]), without);
    // A wildcard for files does not open such a folder, and nothing opens that of git.
    assert_eq!(bench.names(&["*.py", ".git/", ".git/config"], &[]), packed);
    let mut with = packed.map(str::to_owned).to_vec();
    with.extend(["env/lib/a.py", "env/pyvenv.cfg", "a.pyc"].map(str::to_owned));
    with.sort();
    assert_eq!(bench.names(&["env/", "a.pyc"], &[]), with);
}

#[test]
fn include_wins_over_ignore_files_and_exclude_over_include() {
    let bench = ignoring();
    let packed = bench.names(&[], &[]);
    let more = |include: &[&str], exclude: &[&str]| {
        let mut names = bench.names(include, exclude);
        names.retain(|name| !packed.contains(name));
        names
    };
    assert_eq!(more(&["*.log"], &[]), ["a.log", "lib/second.log"]);
    assert_eq!(more(&["/out/x", "lib/deep/sub/only.py"], &[]), ["lib/deep/sub/only.py", "out/x"]);
    assert_eq!(more(&["x"], &[]), ["build/x", "out/x"]);
    assert_eq!(more(&["out/", "build/"], &["x"]), [""; 0]);
    assert_eq!(more(&["/*/x"], &["/out"]), ["build/x"]);
    assert_eq!(more(&["lib/deep/**", "!only.py"], &[]), ["lib/deep/other.py"]);
    assert_eq!(bench.names(&[], &["*", "!keep.log"]), ["keep.log"]);
    let reasons = bench.list(&[], &["lib"]).left_out;
    let texts: Vec<_> = reasons.iter().map(ToString::to_string).collect();
    assert!(
        texts.contains(&"`lib` is left out: it matches `lib` of `exclude`; to send it, remove that pattern".into())
    );
    let ignored = "`out` is left out: it matches `/out` of .gitignore; to send it anyway, add `/out` to `include`";
    assert!(texts.contains(&ignored.into()), "{texts:?}");
    assert!(reasons.iter().all(|left_out| !left_out.is_unexpected()));
}

#[test]
fn links_that_stay_are_kept() {
    let bench = Bench::with(&[("train.py", ""), ("lib/a.py", "")]);
    for (link, target) in [
        ("inside", "lib/a.py"),
        ("lib/up", "../train.py"),
        ("folder", "./lib/"),
        ("dangling", "none"),
        ("out", "../x"),
        ("lib/out", "../../x"),
        ("absolute", "/etc/passwd"),
        ("through", "folder/../../x"),
        ("self", "."),
    ] {
        bench.link(link, target);
    }
    let _socket = UnixListener::bind(bench.at("socket")).unwrap();
    let kept = ["dangling", "folder", "inside", "lib/a.py", "lib/up", "self", "train.py"];
    assert_eq!(bench.names(&[], &[]), kept);
    assert_eq!(bench.names(&["*"], &[]), kept, "a link out cannot be sent");
    assert_eq!(left_out(&bench, &[], &[]), ["absolute", "lib/out", "out", "socket", "through"]);
    let listing = bench.list(&[], &[]);
    assert!(listing.left_out.iter().all(super::super::LeftOut::is_unexpected));
    assert_eq!(listing.left_out[3].reason, Reason::Special);
    assert_eq!(listing.left_out[0].reason, Reason::LinkOut { target: "/etc/passwd".into() });
    assert_eq!(listing.files[4].content, Content::Link { target: "../train.py".into() });
}

#[test]
fn names_that_cannot_be_sent_are_shown_escaped() {
    for (name, shown) in [
        (&b"lib/\xff\xfe.py"[..], "lib/\\xff\\xfe.py"),
        (b"a\x1b[2J\n", "a\\u{1b}[2J\\n"),
        (b"bad\x07folder/a.py", "bad\\u{7}folder/a.py"),
        ("\u{85}é".as_bytes(), "\\u{85}é"),
    ] {
        let bench = Bench::with(&[("train.py", "")]);
        let path = bench.path().join(OsStr::from_bytes(name));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
        let error = list(bench.path(), &Selection::default()).unwrap_err();
        assert!(matches!(&error, ListError::Name { path, .. } if path == shown), "{error}");
        // It does not matter if the file is not sent.
        assert_eq!(bench.names(&[], &["/*", "!/train.py"]), ["train.py"]);
        bench.write(".gitignore", "/*\n!/train.py");
        assert_eq!(bench.names(&[], &[]), ["train.py"]);
        assert_eq!(bench.names(&["*.md"], &[]), ["train.py"]);
    }
}

#[test]
fn data_is_left_out() {
    let bench = Bench::with(&[("train.py", ""), ("data/labels/x.png", ""), ("weights.pt", "")]);
    fs::File::options().write(true).open(bench.at("weights.pt")).unwrap().set_len(LARGEST_BYTES).unwrap();
    bench.write("large.bin", "");
    fs::File::options().write(true).open(bench.at("large.bin")).unwrap().set_len(LARGEST_BYTES + 1).unwrap();
    for number in 0..MOST_DATA_FILES {
        bench.write(&format!("data/{}/{number}.png", number % 3), "");
        bench.write(&format!("data/more/{number}.JPG"), "");
    }
    let listing = bench.list(&[], &[]);
    assert_eq!(listing.files.len() as u64, MOST_DATA_FILES + 2, "the images of one kind are too many");
    assert_eq!(listing.bytes(), LARGEST_BYTES);
    assert_eq!((listing.largest().len(), listing.largest()[0].path.as_str()), (10, "weights.pt"));
    let texts: Vec<_> = listing.left_out.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "`data` is left out: it has 5001 .png files, which looks like a data set; put it into S3; to send it \
             anyway, add `/data/**/*.png` to `include`",
            "`large.bin` is left out: it has 50 MiB, more than code has; put data into S3; to send it anyway, add \
             `/large.bin` to `include`",
        ]
    );
    assert_eq!(bench.names(&["/data/**/*.png", "/large.bin"], &[]).len() as u64, 2 * MOST_DATA_FILES + 4);
    bench.write("data/more/5000.py", "");
    for number in 0..=MOST_DATA_FILES {
        bench.write(&format!("{}/{number}.json", number % 2), "");
    }
    assert_eq!(bench.list(&["/data/labels/"], &[]).left_out.len(), 1, "what is included does not count");
}

#[test]
fn a_wrong_pattern_is_named() {
    let bench = Bench::with(&[("train.py", ""), (".gitignore", "ok\n{a\n")]);
    let error = list(bench.path(), &Selection::default()).unwrap_err().to_string();
    assert!(error.starts_with("the pattern `{a` of .gitignore cannot be read: "), "{error}");
    let selection = Selection { include: vec!["a**[z-a]".into()], ..Selection::default() };
    assert!(list(bench.path(), &selection).unwrap_err().to_string().contains("of `include`"));
    assert!(matches!(list(&bench.at("none"), &Selection::default()), Err(ListError::Read { .. })));
}
