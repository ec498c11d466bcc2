//! Numbers in text for people.

/// What stands around a number where a script prints an object: `tensor(0.25, grad_fn=…)`, `np.float64(0.9)`.
const WRAPPERS: [&str; 5] = ["tensor(", "np.float64(", "np.float32(", "np.float16(", "array("];
/// Units that make a number a duration, a rate, a size or a count.
const UNITS: [&str; 25] = [
    "s", "sec", "secs", "second", "seconds", "ms", "us", "ns", "min", "mins", "minute", "minutes", "h", "hr", "hrs",
    "hour", "hours", "days", "it/s", "s/it", "MB", "GB", "K", "M", "B",
];

/// The longest element of a list that is read, in bytes.
const LONGEST_ELEMENT: usize = 64;

/// A number, and how it was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Number {
    pub(crate) value: f64,
    /// Whether it has neither a point, an exponent, a per cent sign nor a denominator: it may be a count, a port, a
    /// number of parameters.
    pub(crate) is_whole: bool,
}

/// The number that a text begins with. None where a part of a longer word begins like a number (`10.0.0.1`,
/// `2024-03-04`, `12:30`), for durations and rates (`0.44s`, `3 ms`, `5.2 it/s`), and for lists (`1,2`).
pub(crate) fn leading(text: &str) -> Option<Number> {
    let mut text = text.trim_start();
    let mut is_wrapped = false;
    // A loop: a line may have thousands of them.
    while let Some(inner) = WRAPPERS.iter().find_map(|wrapper| text.strip_prefix(wrapper)) {
        (text, is_wrapped) = (inner.trim_start(), true);
    }
    bare(text).map(|number| Number { is_whole: number.is_whole && !is_wrapped, ..number })
}

/// The first bytes of a text, up to so many.
fn first(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// The same of a text without wrappers.
fn bare(text: &str) -> Option<Number> {
    if let Some((element, _)) = text.strip_prefix('[').and_then(|inner| first(inner, LONGEST_ELEMENT).split_once(']')) {
        // An array of one element, as NumPy shows it: `[21.]`.
        let value = element.trim().parse().ok().filter(|_| element.contains('.'))?;
        return Some(Number { value, is_whole: false });
    }
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '-' | '.');
    let rest = text.trim_start_matches(inner);
    let word = &text[..text.len() - rest.len()];
    let (word, rest) = with_thousands(word, rest)?;
    let value: f64 = word.trim_end_matches('.').parse().ok()?;
    let digit_after =
        |mark: char| rest.strip_prefix(mark).filter(|after| after.starts_with(|c: char| c.is_ascii_digit()));
    if digit_after(':').is_some() || has_unit(rest) {
        return None;
    }
    let whole = word.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-'));
    if let Some(denominator) = digit_after('/') {
        let end = denominator.find(|c: char| !c.is_ascii_digit()).unwrap_or(denominator.len());
        let denominator: f64 = denominator[..end].parse().ok()?;
        return (denominator > 0.0).then_some(Number { value: value / denominator, is_whole: false });
    }
    Some(Number { value, is_whole: whole && !rest.starts_with('%') })
}

/// `1,234.5` is one number with groups of three digits; another comma before a digit makes a list.
fn with_thousands<'a>(word: &str, mut rest: &'a str) -> Option<(String, &'a str)> {
    let is_digit = |c: char| c.is_ascii_digit();
    let digits = |text: &str| text.find(|c| !is_digit(c)).unwrap_or(text.len());
    let mut number = word.to_owned();
    let head = word.trim_start_matches(['+', '-']);
    let can_go_on = (1..=3).contains(&head.len()) && !head.starts_with('0') && head.chars().all(is_digit);
    while let Some(group) = rest.strip_prefix(',').filter(|group| group.starts_with(is_digit)) {
        if !can_go_on || digits(group) != 3 {
            return None;
        }
        number.push_str(&group[..3]);
        rest = &group[3..];
    }
    if let Some(fraction) = rest.strip_prefix('.').filter(|_| number != word) {
        let end = digits(fraction);
        number = format!("{number}.{}", &fraction[..end]);
        rest = &fraction[end..];
    }
    Some((number, rest))
}

fn has_unit(rest: &str) -> bool {
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    let word = |inner: fn(char) -> bool| &rest[..rest.find(|c| !inner(c)).unwrap_or(rest.len())];
    let (unit, rate) = (word(|c| c.is_ascii_alphabetic()), word(|c| c.is_ascii_alphabetic() || c == '/'));
    let is_name = rest[unit.len()..].starts_with([':', '=', '_']);
    (UNITS.contains(&unit) && !is_name) || (rate != unit && UNITS.contains(&rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_one_as_a_whole() {
        let cases: [(&str, Option<(f64, bool)>); 29] = [
            ("0.5", Some((0.5, false))),
            (" 3 epochs", Some((3.0, true))),
            ("97.3%", Some((97.3, false))),
            ("97%", Some((97.0, false))),
            ("5.", Some((5.0, false))),
            ("-1e-3,", Some((-0.001, false))),
            ("82/512 (16%)", Some((0.16015625, false))),
            ("1/0", None),
            ("1,234", Some((1234.0, true))),
            ("1,234,567.5 x", Some((1_234_567.5, false))),
            ("0,931", None),
            ("1,2,3", None),
            ("1,2", None),
            ("1, 2", Some((1.0, true))),
            ("0.44s", None),
            ("0.44 s", None),
            ("12 ms/step", None),
            ("5.2 it/s]", None),
            ("3 sigma", Some((3.0, true))),
            ("3 s: x", Some((3.0, true))),
            ("12:30:01", None),
            ("10.0.0.1", None),
            ("2024-03-04", None),
            ("tensor(0.25, grad_fn=<NllLossBackward0>)", Some((0.25, false))),
            ("np.float64(0.9)}", Some((0.9, false))),
            ("0x1f", None),
            ("array([21.], dtype=float32)", Some((21.0, false))),
            ("[4]", None),
            ("[0.1, 0.2]", None),
        ];
        for (text, expected) in cases {
            assert_eq!(leading(text).map(|number| (number.value, number.is_whole)), expected, "{text}");
        }
    }
}
