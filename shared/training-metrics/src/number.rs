//! Reads numbers in text for people.

/// Kinds of objects that a script prints around a number: `tensor(0.25, grad_fn=…)`, `np.float64(0.9)`, `Array(0.875,
/// dtype=float32)`. The last word of the object's name contains one of these.
const KINDS: [&str; 5] = ["array", "tensor", "float", "double", "decimal"];
/// The text before the number in the description of such an object: `<tf.Tensor: shape=(), dtype=float32, numpy=0.25>`.
const CONTENTS: [&str; 2] = ["numpy=", "value="];
/// The bytes of such a description that are searched.
const MOST_OF_SELF: usize = 200;
/// Units of durations, rates, sizes and counts.
const UNITS: [&str; 25] = [
    "s", "sec", "secs", "second", "seconds", "ms", "us", "ns", "min", "mins", "minute", "minutes", "h", "hr", "hrs",
    "hour", "hours", "days", "it/s", "s/it", "MB", "GB", "K", "M", "B",
];

/// Units that multiply a number.
const MULTIPLES: [&str; 6] = ["K", "k", "M", "G", "B", "T"];
/// The longest unit, in bytes: `samples/second`.
const MOST_UNIT: usize = 16;
/// The longest element of a list that is read, in bytes.
const LONGEST_ELEMENT: usize = 64;

/// A number, and how it was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Number {
    pub(crate) value: f64,
    /// Whether it has no point, exponent, per cent sign or denominator. Then it may be a count, a port, or a number of
    /// parameters.
    pub(crate) is_whole: bool,
}

/// Returns the number that a text begins with. `None` for a part of a longer word (`10.0.0.1`, `2024-03-04`, `12:30`),
/// for durations and rates (`0.44s`, `3 ms`, `5.2 it/s`), and for lists (`1,2`).
pub(crate) fn leading(text: &str) -> Option<Number> {
    let mut text = text.trim_start();
    let mut is_wrapped = false;
    // This is a loop and no recursion, because a line may have thousands of wrappers.
    while let Some(inner) = within(text) {
        (text, is_wrapped) = (inner.trim_start(), true);
        text = text.strip_prefix(['\'', '"']).unwrap_or(text);
    }
    let content = || CONTENTS.iter().find_map(|mark| first(text, MOST_OF_SELF).split_once(mark)).map(|(_, rest)| rest);
    if let Some(content) = (is_wrapped || text.starts_with("<tf.")).then(content).flatten() {
        text = content.trim_start();
    }
    bare(text).map(|number| Number { is_whole: number.is_whole && !is_wrapped, ..number })
}

/// Returns the content of the object that a text begins with, if the script means a number by it.
fn within(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.')))?;
    let inner = text[end..].strip_prefix('(')?;
    let kind = text[..end].rsplit('.').next()?.to_ascii_lowercase();
    let is_integer = || ["int", "uint"].contains(&kind.trim_end_matches(|c: char| c.is_ascii_digit()));
    (KINDS.iter().any(|known| kind.contains(known)) || is_integer()).then_some(inner)
}

/// Returns the number that a text begins with, which may have a unit of time or a rate. For the named metric. `None` if
/// the unit may multiply the number (`1.2 K`), or belongs to a part of a duration (`1m 30s`).
pub(crate) fn measured(text: &str) -> Option<Number> {
    leading(text).or_else(|| {
        let (number, rest) = with_unit(text.trim_start())?;
        with_unit(rest.trim_start()).is_none().then_some(number)
    })
}

/// Reads the value of an object's member like [`measured`]. It may be a number in quotes.
pub(crate) fn of_member(text: &str) -> Option<f64> {
    let text = text.trim_start();
    measured(text.strip_prefix(['\'', '"']).unwrap_or(text)).map(|number| number.value)
}

/// Returns a number with its unit, and the text after them.
fn with_unit(text: &str) -> Option<(Number, &str)> {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '-' | '.');
    let word = &text[..text.find(|c| !inner(c)).unwrap_or(text.len())];
    let end = if word.parse::<f64>().is_ok() { word.len() } else { word.find(|c: char| c.is_ascii_alphabetic())? };
    let value = word[..end].parse().ok()?;
    let rest = text[end..].strip_prefix(' ').unwrap_or(&text[end..]);
    let unit = &rest[..rest.find(|c: char| !(c.is_alphabetic() || c == '/')).unwrap_or(rest.len())];
    let rest = &rest[unit.len()..];
    let is_unit = unit.len() <= MOST_UNIT && unit.starts_with(char::is_alphabetic) && !MULTIPLES.contains(&unit);
    let is_end = !rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '=' | ':' | '+' | '-'));
    (is_unit && is_end).then_some((Number { value, is_whole: false }, rest))
}

/// Returns at most the first `bytes` bytes of a text.
fn first(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// Returns the number that a text without wrappers begins with.
fn bare(text: &str) -> Option<Number> {
    if let Some((element, _)) = text.strip_prefix('[').and_then(|inner| first(inner, LONGEST_ELEMENT).split_once(']')) {
        // NumPy prints an array of one element as `[21.]`, and a list as `[np.float32(0.5)]`.
        let element = element.trim();
        let number = || within(element).and_then(|inner| inner.strip_suffix(')')).unwrap_or(element).parse().ok();
        let value = number().filter(|_| element.contains('.'))?;
        return Some(Number { value, is_whole: false });
    }
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '-' | '.');
    let rest = text.trim_start_matches(inner);
    let word = &text[..text.len() - rest.len()];
    let (word, rest) = with_thousands(word, rest)?;
    // In `0.75+-0.02` and `0.75+/-0.02` a deviation follows the number.
    let word = word.split_once("+-").map_or(word.as_str(), |(value, _)| value);
    let (word, rest) = word.strip_suffix('+').zip(rest.strip_prefix("/-")).unwrap_or((word, rest));
    let value: f64 = word.trim_end_matches('.').parse().ok().or_else(|| single_precision(word))?;
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

/// Reads Julia's numbers of 32 bits: `0.25f0`.
fn single_precision(word: &str) -> Option<f64> {
    let (number, exponent) = word.split_once('f').filter(|(number, _)| number.contains('.'))?;
    format!("{number}e{exponent}").parse().ok()
}

/// Reads `1,234.5` as one number with groups of three digits. Any other comma before a digit makes a list.
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
    fn a_metric_that_is_asked_for_may_have_a_unit() {
        for (text, expected) in [
            ("12.5 ms, throughput: 80.1", Some(12.5)),
            ("12.5ms", Some(12.5)),
            ("80.1 it/s", Some(80.1)),
            ("3.25 min", Some(3.25)),
            ("12.5 µs/step", Some(12.5)),
            ("120 samples/s", Some(120.0)),
            ("0.5", Some(0.5)),
            ("1.5e-3 s", Some(0.0015)),
            ("1e-3ms", None),
            ("1.2 K", None),
            ("1.2M", None),
            ("1m 30s", None),
            ("5min30s", None),
            ("00:03", None),
            ("2024-03-04", None),
            ("10.0.0.1", None),
            ("0x1f", None),
        ] {
            assert_eq!(measured(text).map(|number| number.value), expected, "{text}");
        }
    }

    #[test]
    fn a_number_is_one_as_a_whole() {
        let cases: [(&str, Option<(f64, bool)>); 45] = [
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
            ("Array(0.875, dtype=float32)", Some((0.875, false))),
            ("tf.Tensor(0.25, shape=(), dtype=float32)", Some((0.25, false))),
            ("<tf.Tensor: shape=(), dtype=float32, numpy=0.25>", Some((0.25, false))),
            ("Tensor(shape=[], dtype=Float32, value= 0.25)", Some((0.25, false))),
            ("jnp.float32(0.5)", Some((0.5, false))),
            ("np.int64(3)", Some((3.0, false))),
            ("Decimal('0.5')", Some((0.5, false))),
            ("0.25f0", Some((0.25, false))),
            ("[np.float32(0.5)]", Some((0.5, false))),
            ("[np.float32(0.5), np.float32(0.25)]", None),
            ("0.75+-0.02", Some((0.75, false))),
            ("0.75+/-0.02", Some((0.75, false))),
            ("0.75 (+/- 0.02)", Some((0.75, false))),
            ("0.75±0.02", Some((0.75, false))),
            ("max(0.5, 0.25)", None),
            ("Dropout(0.5)", None),
        ];
        for (text, expected) in cases {
            assert_eq!(leading(text).map(|number| (number.value, number.is_whole)), expected, "{text}");
        }
    }
}
