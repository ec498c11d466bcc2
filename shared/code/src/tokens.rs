//! Keys and tokens, recognized by their form.

/// A token begins with `start`, and goes on with `least` to `most` bytes of an alphabet.
struct Form {
    start: &'static [u8],
    is_part: fn(u8) -> bool,
    least: usize,
    most: usize,
    what: &'static str,
}

const ANY: usize = usize::MAX;
/// A token has more different characters than a placeholder such as `ghp_xxxxxxxx`.
const LEAST_DIFFERENT: usize = 7;
/// How far behind its first line a private key begins at most, in bytes. An encrypted one has headers before it.
const SOON_BYTES: usize = 400;
/// The least characters of a key in a row. A line of a PEM file has 64.
const KEY_PART: usize = 32;
/// AWS's documentation has keys with this ending.
const EXAMPLE: &[u8] = b"EXAMPLE";
const AWS: &str = "an AWS access key id";
const GITHUB: &str = "a token of GitHub";
const OPENAI: &str = "a key of OpenAI";

/// The longer beginnings come first.
const FORMS: [Form; 18] = [
    form(b"AKIA", upper, 16, 16, AWS),
    form(b"ASIA", upper, 16, 16, AWS),
    form(b"ghp_", letter, 36, ANY, GITHUB),
    form(b"gho_", letter, 36, ANY, GITHUB),
    form(b"ghs_", letter, 36, ANY, GITHUB),
    form(b"ghu_", letter, 36, ANY, GITHUB),
    form(b"ghr_", letter, 36, ANY, GITHUB),
    form(b"github_pat_", word, 22, ANY, GITHUB),
    form(b"hf_", letter, 34, 34, "a token of Hugging Face"),
    form(b"sk-ant-", dashed, 32, ANY, "a key of Anthropic"),
    form(b"sk-proj-", dashed, 32, ANY, OPENAI),
    form(b"sk-svcacct-", dashed, 32, ANY, OPENAI),
    form(b"sk-admin-", dashed, 32, ANY, OPENAI),
    form(b"sk-", letter, 48, 48, OPENAI),
    form(b"xoxb-", dashed, 24, ANY, "a token of Slack"),
    form(b"xoxa-", dashed, 24, ANY, "a token of Slack"),
    form(b"xoxp-", dashed, 24, ANY, "a token of Slack"),
    form(b"glpat-", dashed, 20, ANY, "a token of GitLab"),
];

const fn form(start: &'static [u8], is_part: fn(u8) -> bool, least: usize, most: usize, what: &'static str) -> Form {
    Form { start, is_part, least, most, what }
}

fn upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn word(byte: u8) -> bool {
    letter(byte) || byte == b'_'
}

fn dashed(byte: u8) -> bool {
    word(byte) || byte == b'-'
}

/// Returns what kind of token is in a line.
pub(crate) fn in_line(line: &[u8]) -> Option<&'static str> {
    (0..line.len()).find_map(|at| {
        let (before, rest) = line.split_at(at);
        // All forms begin with one of these, and this is the loop that takes the time.
        let may_begin = matches!(rest[0], b'A' | b'g' | b'h' | b's' | b'x');
        if !may_begin || before.last().is_some_and(|byte| word(*byte)) {
            return None;
        }
        FORMS.iter().find(|form| form.begins(rest)).map(|form| form.what)
    })
}

impl Form {
    fn begins(&self, text: &[u8]) -> bool {
        let Some(rest) = text.strip_prefix(self.start) else { return false };
        let count = rest.iter().take_while(|byte| (self.is_part)(**byte)).count();
        let body = &rest[..count];
        let goes_on = rest.get(count).is_some_and(|byte| word(*byte));
        let is_example = self.what == AWS && body.ends_with(EXAMPLE);
        (self.least..=self.most).contains(&count) && !goes_on && !is_example && different(body) >= LEAST_DIFFERENT
    }
}

/// Whether a private key begins in the first line of a text: the first line of a PEM file, and a part of a key soon after
/// it. Programs that read keys have the former without the latter.
pub(crate) fn has_private_key(text: &[u8]) -> bool {
    const START: &[u8] = b"-----BEGIN ";
    const END: &[u8] = b"PRIVATE KEY-----";
    const PGP: &[u8] = b"PRIVATE KEY BLOCK-----";
    let position = |part: &[u8], text: &[u8]| text.windows(part.len()).position(|window| window == part);
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let Some(start) = position(START, line) else { return false };
    let (line, text) = (&line[start + START.len()..], &text[start + START.len()..]);
    let Some(at) = position(END, line).or_else(|| position(PGP, line)) else { return false };
    // Between them is at most the kind, such as `OPENSSH` or `ENCRYPTED`.
    let is_kind = line[..at].iter().all(|byte| upper(*byte) || *byte == b' ');
    let soon = &text[at..text.len().min(at + SOON_BYTES)];
    is_kind && soon.split(|byte| !base64(*byte)).any(|part| part.len() >= KEY_PART)
}

fn base64(byte: u8) -> bool {
    letter(byte) || matches!(byte, b'+' | b'/' | b'=')
}

fn different(body: &[u8]) -> usize {
    let mut seen = [false; 256];
    body.iter().for_each(|byte| seen[usize::from(*byte)] = true);
    seen.iter().filter(|seen| **seen).count()
}
