use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

use super::*;

const VALUE: &str = "gh/p_Zq+8 \"x'é~\\w";

/// How programs print the value, made by Python, bash, Node and Rust.
const PRINTED: [&str; 26] = [
    VALUE,
    "Z2gvcF9acSs4ICJ4J8Opflx3",
    "67682f705f5a712b3820227827c3a97e5c77",
    "67682F705F5A712B3820227827C3A97E5C77",
    "gh/p_Zq%2B8%20%22x%27%C3%A9~%5Cw",
    "gh%2Fp_Zq%2B8%20%22x%27%C3%A9~%5Cw",
    "gh%2fp_Zq%2b8%20%22x%27%c3%a9~%5cw",
    "gh%2Fp_Zq%2B8+%22x%27%C3%A9~%5Cw",
    "gh%2Fp_Zq%2B8+%22x%27%C3%A9%7E%5Cw",
    "gh%2Fp_Zq%2B8%20%22x'%C3%A9~%5Cw",
    "gh/p_Zq+8%20%22x'%C3%A9~%5Cw",
    "gh%2Fp_Zq+8%20%22x'%C3%A9~%5Cw",
    r#"gh/p_Zq+8 \"x'\u00e9~\\w"#,
    r#"gh/p_Zq+8 \"x'é~\\w"#,
    r#"gh\/p_Zq+8 \"x'é~\\w"#,
    r#"gh\/p_Zq+8 \"x'\u00e9~\\w"#,
    r#"gh/p_Zq+8 "x\'é~\\w"#,
    r#"gh/p_Zq+8 "x\'\xe9~\\w"#,
    r#"gh/p_Zq+8 "x\'\xc3\xa9~\\w"#,
    r#"gh/p_Zq+8 \"x\'é~\\w"#,
    r#"gh/p_Zq+8 "x'\''é~\w"#,
    r#"gh/p_Zq+8 "x'"'"'é~\w"#,
    "gh/p_Zq+8 \"x'é~\\w\ngh/p_Zq+8 \"x'é~\\w",
    "Z2gvcF9acSs4ICJ4J8Opflx3Z2gvcF9acSs4ICJ4J8Opflx3",
    "gh/p_Zq+8 \"x'é~\\wgh/p_Zq+8 \"x'é~\\w",
    "gh/p_Zq+8 \"x'é~\\w67682f705f5a712b3820227827c3a97e5c77",
];

const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADAN\nBgkqhkiG9w0B\n=\n-----END PRIVATE KEY-----\n";

/// Pushes the text in pieces, which end at these places.
fn in_pieces(mask: &Mask, text: &[u8], ends: &[usize]) -> Vec<u8> {
    let mut stream = mask.stream();
    let (mut clean, mut from) = (Vec::new(), 0);
    for end in ends.iter().copied().chain([text.len()]).filter(|end| *end <= text.len()) {
        clean.extend(stream.push(&text[from..end.max(from)]));
        from = end.max(from);
    }
    clean.extend(stream.finish());
    clean
}

#[test]
fn what_programs_print_is_hidden() {
    let mask = Mask::new([VALUE]);
    for printed in PRINTED {
        let hidden = if printed.contains('\n') { "***\n***" } else { "***" };
        for (before, after) in [("", ""), ("token=", ", and more"), ("é'", "'\n"), ("gh/p_", "gh/p_,"), ("6", ".")] {
            let clean = mask.hide(&format!("{before}{printed}{after}"));
            assert_eq!(clean, format!("{before}{hidden}{after}"), "{printed}");
        }
    }
}

/// The values are behind a name and a colon, and some have more after them. Both alphabets occur.
#[test]
fn a_value_is_hidden_within_base64() {
    let cases = [
        (VALUE, "eC1hY2Nlc3MtdG9rZW46Z2gvcF9acSs4ICJ4J8Opflx3", "eC1hY2Nlc3MtdG9rZW46***"),
        (VALUE, "YWI6Z2gvcF9acSs4ICJ4J8Opflx3Ong=", "YWI6***Ong="),
        ("s3cr3t?>", "dTpzM2NyM3Q/Pg==", "dTp***=="),
        ("s3cr3t?>", "dTpzM2NyM3Q_Pg", "dTp***"),
        ("s3cr3t?>", "YTpzM2NyM3Q/PjpiCg==", "YTp***jpiCg=="),
        ("s3cr3t?>", "YWE6czNjcjN0Pz4=", "YWE6***="),
        ("s3cr3t?>", "YWE6czNjcjN0Pz46eA==", "YWE6***6eA=="),
        ("s3cr3t?>", "YWFhOnMzY3IzdD8-Og==", "YWFhOn***Og=="),
    ];
    for (value, text, expected) in cases {
        assert_eq!(Mask::new([value]).hide(text), expected, "{text}");
    }
}

#[test]
fn each_line_of_a_value_is_hidden_and_marks_of_keys_stay() {
    let mask = Mask::new([KEY]);
    assert_eq!(mask.hide(&format!("{KEY}next\n")), "***\nnext\n", "the last line break is no part of it");
    assert_eq!(mask.hide(&KEY.replace('\n', "\r\n")).matches("***").count(), 2);
    assert_eq!(mask.hide("-----BEGIN PRIVATE KEY-----\n."), "-----BEGIN PRIVATE KEY-----\n.");
    assert_eq!(mask.hide("+ key=MIIEvQIBADAN.\n=\n"), "+ key=***.\n=\n");
    assert_eq!(mask.hide(&format!("{KEY:?}")), "\"***\\n\"");
    assert_eq!(Mask::new([" yes\n", "1", "", "  \n \n"]).hide("yes 1 \n \n"), "yes 1 \n \n", "too short");
    assert_eq!(Mask::new(["abcd"]).hide("abcde"), "***e");
}

#[test]
fn overlapping_values_are_hidden_whole() {
    let mask = Mask::new(["abcdef", "defghi", "secret", "secretsecret2"]);
    let cases = [
        ("-abcdefghi-", "-***-"),
        ("abcdefghi", "***"),
        ("abcdeabcdef", "abcde***"),
        ("secretsecret1", "***1"),
        ("secretsecret2", "***"),
        ("secret secre", "*** ***"),
        ("secret sec", "*** sec"),
        ("secretsecretsecret2", "***"),
    ];
    for (text, expected) in cases {
        assert_eq!(mask.hide(text), expected, "{text}");
    }
}

#[test]
fn only_what_may_begin_a_value_is_held_back() {
    let mut stream = Mask::new(["secret", "secretsecret2", "retail"]).stream();
    let pushes: [(&[u8], &[u8]); 8] = [
        (b"loss 0.5\n", b"loss 0.5\n"),
        (b"a sec", b"a "),
        (b"ond se", b"second "),
        (b"cret", b""),
        (b".", b"***."),
        (b"retail", b"***"),
        (b"secretsecret2", b""),
        (b"\xff", b"\xff"),
    ];
    for (pushed, passed) in pushes {
        assert_eq!(stream.push(pushed), passed, "{}", String::from_utf8_lossy(pushed));
    }
    assert_eq!((stream.push(b"secr"), stream.finish()), (Vec::new(), b"***".to_vec()));
    assert_eq!(stream.push(b"et."), b"et.", "a new stream");
}

#[test]
fn cuts_make_no_difference() {
    let mask = Mask::new([VALUE, KEY, "abcdef", "defghi"]);
    let text = format!("é{} \"{KEY:?}\" {KEY}{VALUE} abcdefghi, -----BEGIN PRIVATE KEY-----\nMII", PRINTED.join(" "));
    let whole = mask.hide(&text);
    assert!(whole.ends_with("*** ***, ***"), "{whole}");
    for length in 1..text.len() {
        let ends: Vec<usize> = (length..text.len()).step_by(length).collect();
        assert_eq!(in_pieces(&mask, text.as_bytes(), &ends), whole.as_bytes(), "{length}");
        assert_eq!(in_pieces(&mask, text.as_bytes(), &[length]), whole.as_bytes(), "{length}");
    }
}

#[test]
fn values_are_not_printed() {
    let mask = Mask::new(["s3cr3t"]);
    let mut stream = mask.stream();
    stream.push(b"s3cr");
    assert_eq!(format!("{mask:?} {stream:?}"), "Mask(..) Stream(..)");
}

/// Looks for each pattern at each place of the whole text.
fn naive(patterns: &BTreeSet<Vec<u8>>, text: &[u8]) -> Vec<u8> {
    let mut is_hidden = vec![false; text.len()];
    for (start, pattern) in (0..text.len()).flat_map(|start| patterns.iter().map(move |pattern| (start, pattern))) {
        let rest = &text[start..];
        let is_cut_off = rest.len() >= LEAST_BYTES && pattern.starts_with(rest);
        if rest.starts_with(pattern) || is_cut_off {
            is_hidden[start..text.len().min(start + pattern.len())].fill(true);
        }
    }
    let mut clean = Vec::new();
    for (at, byte) in text.iter().enumerate() {
        match is_hidden[at] {
            false => clean.push(*byte),
            true if at > 0 && is_hidden[at - 1] => {}
            true => clean.extend(HIDDEN.as_bytes()),
        }
    }
    clean
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_stream_hides_what_a_search_of_the_whole_text_finds(
        patterns in btree_set(vec(b'a'..=b'c', 1..9), 1..6),
        text in vec(b'a'..=b'c', 0..60),
        mut ends in vec(0_usize..60, 0..20),
    ) {
        ends.sort_unstable();
        let mask = Mask::of_patterns(&patterns);
        prop_assert_eq!(in_pieces(&mask, &text, &ends), naive(&patterns, &text));
    }

    #[test]
    fn values_with_all_their_forms_are_hidden_as_by_a_search(
        values in vec("[ab\n\"'é%+]{1,7}", 1..4),
        pieces in vec((any::<prop::sample::Index>(), "[ab\n\"'é%+]{0,3}"), 0..12),
        mut ends in vec(0_usize..120, 0..20),
    ) {
        ends.sort_unstable();
        let patterns: BTreeSet<Vec<u8>> = values.iter().flat_map(|value| forms::of(value)).collect();
        let known: Vec<&[u8]> = patterns.iter().map(Vec::as_slice).chain(values.iter().map(String::as_bytes)).collect();
        let text: Vec<u8> =
            pieces.iter().flat_map(|(index, other)| [*index.get(&known), other.as_bytes()].concat()).collect();
        prop_assert_eq!(in_pieces(&Mask::new(&values), &text, &ends), naive(&patterns, &text));
    }

    #[test]
    fn bytes_without_values_stay(bytes in vec(any::<u8>(), 0..200), mut ends in vec(0_usize..200, 0..9)) {
        ends.sort_unstable();
        for mask in [Mask::default(), Mask::new(["no"]), Mask::new(["a s3cr3t"])] {
            prop_assert_eq!(&in_pieces(&mask, &bytes, &ends), &bytes);
        }
    }
}
