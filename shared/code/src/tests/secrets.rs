//! What looks like a secret.

use crate::secrets::{by_content, by_name};
use crate::tests::Bench;

/// Returns `count` characters, as varied as those of a token.
fn body(count: usize) -> String {
    "aZ3kQ9vB7xM2nT5rW8yL1pD4sF6gH0jC".chars().cycle().take(count).collect()
}

fn upper(count: usize) -> String {
    body(count).to_uppercase()
}

#[test]
fn names_say_what_is_secret() {
    for name in [
        ".env",
        "conf/.env",
        ".env.local",
        ".env.production",
        ".ENV",
        "id_rsa",
        ".ssh/id_ed25519",
        ".netrc",
        "kaggle.json",
        ".aws/credentials",
        "home/.aws/credentials",
        "cert.p12",
        ".git-credentials",
    ] {
        assert!(by_name(name).is_some(), "{name}");
    }
    for name in [
        ".env.example",
        ".env.template",
        ".env.sample",
        "env",
        ".environment",
        "a.env",
        "id_rsa.pub",
        "id_rsa.py",
        "credentials",
        "my.aws/credentials",
        ".aws/config",
        "kaggle.json.md",
        "netrc",
        "kaggle.py",
        ".envrc",
    ] {
        assert!(by_name(name).is_none(), "{name}");
    }
}

#[test]
fn contents_say_what_is_secret() {
    let pem = |kind: &str| format!("-----BEGIN {kind}-----\n{}\n", body(64));
    for (what, text) in [
        ("a private key", pem("PRIVATE KEY")),
        ("a private key", pem("RSA PRIVATE KEY")),
        ("a private key", pem("OPENSSH PRIVATE KEY")),
        ("a private key", pem("ENCRYPTED PRIVATE KEY")),
        ("a private key", pem("PGP PRIVATE KEY BLOCK")),
        (
            "a private key",
            format!("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0\n\n{}", body(64)),
        ),
        ("a private key", format!("KEY = \"-----BEGIN PRIVATE KEY-----\\n{}\"", body(64))),
        ("an AWS access key id", format!("aws_access_key_id=AKIA{}", upper(16))),
        ("an AWS access key id", format!("'ASIA{}'", upper(16))),
        ("a token of GitHub", format!("https://ghp_{}@github.com", body(36))),
        ("a token of GitHub", format!("gho_{}", body(36))),
        ("a token of GitHub", format!("ghs_{}", body(40))),
        ("a token of GitHub", format!("github_pat_{}_{}", body(22), body(59))),
        ("a token of Hugging Face", format!("token: hf_{}", body(34))),
        ("a key of OpenAI", format!("sk-{}", body(48))),
        ("a key of OpenAI", format!("sk-proj-{}-{}", body(20), body(20))),
        ("a key of Anthropic", format!("sk-ant-api03-{}", body(95))),
        ("a token of Slack", format!("xoxb-123456789012-{}", body(24))),
        ("a token of Slack", format!("xoxp-123456789012-{}", body(24))),
        ("a token of GitLab", format!("glpat-{}", body(20))),
    ] {
        let text = format!("first\nsecond {text}\nthird\n").replace('\n', "\r\n");
        let secret = by_content("a.py", text.as_bytes()).unwrap_or_else(|| panic!("{text}"));
        assert_eq!((secret.what, secret.line), (what, Some(2)), "{text}");
    }
    for text in [
        pem("PUBLIC KEY"),
        "START = b\"-----BEGIN PRIVATE KEY-----\"\nEND = b\"-----END PRIVATE KEY-----\"\n".to_owned(),
        pem("CERTIFICATE"),
        "the line BEGIN RSA PRIVATE KEY of a file".to_owned(),
        "-----BEGIN (RSA|EC) PRIVATE KEY-----".to_owned(),
        "AKIAIOSFODNN7EXAMPLE".to_owned(),
        "ASIAIOSFODNN7EXAMPLE".to_owned(),
        format!("AKIA{}", upper(15)),
        format!("AKIA{}", upper(17)),
        format!("XAKIA{}", upper(16)),
        format!("AKIA{}", body(16)),
        format!("AKIA{}", "X".repeat(16)),
        format!("ghp_{}", "x".repeat(36)),
        format!("ghp_{}", body(35)),
        format!("hf_{}", body(33)),
        format!("hf_{}", body(35)),
        format!("shf_{}", body(34)),
        "hf_hub_download_with_a_long_name_of_it".to_owned(),
        format!("sk-{}", body(47)),
        "sk-learn-estimator-with-a-name-of-many-characters-in-it".to_owned(),
        format!("task-{}", body(48)),
        "sk-ant-short".to_owned(),
        "xoxb-your-token".to_owned(),
        "glpat-short".to_owned(),
        "github_pat_here".to_owned(),
    ] {
        assert_eq!(by_content("a.py", text.as_bytes()), None, "{text}");
    }
}

#[test]
fn some_files_have_secrets_of_their_own() {
    for (path, text, is_secret) in [
        (".npmrc", "//registry.npmjs.org/:_authToken=x", true),
        (".npmrc", "registry=https://example.com", false),
        ("a.txt", "_authToken=x", false),
        (".pypirc", "[pypi]\n  password = x", true),
        (".pypirc", "[pypi]\nusername = x", false),
        ("key.json", "{\"type\": \"service_account\",\n\"private_key\": \"x\"}", true),
        ("schema.json", "{\"properties\": {\"private_key\": {}}}", false),
        ("a.py", "\"service_account\" \"private_key\"", false),
    ] {
        assert_eq!(by_content(path, text.as_bytes()).is_some(), is_secret, "{path}: {text}");
    }
}

#[test]
fn a_secret_is_left_out_and_shown() {
    let token = format!("ghp_{}", body(36));
    let bench = Bench::with(&[
        ("train.py", &format!("import os\nTOKEN = '{token}'\n")),
        ("conf/.env", "A=1"),
        ("notes.md", &token),
    ]);
    bench.write("conf/ok.yaml", "a: 1");
    bench.write("cert.pem", "-----BEGIN CERTIFICATE-----");
    bench.write("key.pem", format!("-----BEGIN PRIVATE KEY-----\n{}", body(64)));
    bench.write("binary.py", format!("\0{token}"));
    bench.write("late.py", format!("{}\n{token}", " ".repeat(1 << 20)));
    bench.write("long.py", format!("{}\n{token}", " ".repeat(1000 * 1000)));
    let listing = bench.list(&["conf/"], &[]);
    let names: Vec<_> = listing.files.iter().map(|item| item.path.as_str()).collect();
    assert_eq!(names, ["binary.py", "cert.pem", "conf/ok.yaml", "late.py"]);
    let texts: Vec<_> = listing.left_out.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "`conf/.env` is left out: it is a file of environment variables; to send it anyway, add `/conf/.env` to \
             `include`",
            "`key.pem` is left out: it has a private key in line 1; to send it anyway, add `/key.pem` to `include`",
            "`notes.md` is left out: it has a token of GitHub in line 1; to send it anyway, add `/notes.md` to `include`",
        ]
    );
    assert_eq!(listing.findings.len(), 2);
    assert_eq!(
        listing.findings[1].to_string(),
        "`train.py` has a token of GitHub in line 2, so it is not sent, and the training may fail without it; read the \
         secret from somewhere else, or add `/train.py` to `include` if it is only an example"
    );
    let listing = bench.list(&["/train.py", "conf/.env"], &["long.py"]);
    assert!(listing.files.iter().any(|item| item.path == "train.py"));
    let sent: Vec<_> = listing.findings.iter().map(|finding| (finding.path.as_str(), finding.is_sent)).collect();
    assert_eq!(sent, [("conf/.env", true), ("train.py", true)]);
}

#[test]
fn the_proposed_pattern_matches_the_file_and_no_other() {
    for name in
        ["a b.md", "a*b.md", "a?.md", "[ab].md", "{a,b}.md", "!a.md", "#a.md", "a\\b.md", " .md", "a.md ", "é.md"]
    {
        let token = format!("ghp_{}", body(36));
        let bench = Bench::with(&[(name, &token), ("aXb.md", &token), ("a.md", &token), ("sub/a.md", &token)]);
        let text = bench.list(&[], &[]).left_out.iter().find(|left_out| left_out.path == name).unwrap().to_string();
        let pattern = text.rsplit('`').nth(3).unwrap();
        assert_eq!(bench.names(&[pattern], &[]), [name], "{text}");
    }
}
