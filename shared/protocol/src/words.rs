//! Counts and amounts of money as people read them.

use std::fmt::Display;

/// Below it an amount has only its size to say.
const LEAST_USD: f64 = 1e-6;

/// A count with its noun: `1 trial`, `2 trials`, `0 trials`.
pub fn counted<N: Copy + Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let form = noun_for(count, noun);
    format!("{count} {form}")
}

/// The noun in the form that goes with the count: `trial` or `trials`. Its last word is the one that changes.
pub fn noun_for<N: Copy + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    if count == N::from(1) {
        return noun.to_owned();
    }
    let ends_in = |endings: &[&str]| endings.iter().any(|ending| noun.ends_with(ending));
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        Some(_) | None if ends_in(&["s", "x"]) => format!("{noun}es"),
        Some(_) | None => format!("{noun}s"),
    }
}

/// An amount of money: `$3.11`, and below a cent two significant digits, `$0.00028`: no amount but zero reads as zero.
/// Below a millionth of a dollar `<$0.000001`.
pub fn dollars(usd: f64) -> String {
    let (sign, size) = if usd < 0.0 { ("-", -usd) } else { ("", usd) };
    if size == 0.0 {
        return "$0.00".to_owned();
    }
    if size < LEAST_USD {
        return format!("{sign}<${LEAST_USD:.6}");
    }
    // Rounded first: 0.00996 is a cent, and a cent has two decimals.
    let rounded: f64 = format!("{size:.1e}").parse().unwrap_or(size);
    if rounded >= 0.01 || !size.is_finite() {
        return format!("{sign}${size:.2}");
    }
    let decimals = (1.0 - rounded.log10().floor()).max(2.0) as usize;
    format!("{sign}${size:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_every_other_count_plural() {
        for (count, expected) in [(0, "0 trials"), (1, "1 trial"), (2, "2 trials"), (21, "21 trials")] {
            assert_eq!(counted(count, "trial"), expected);
        }
        let forms = [
            ("entry", "entries"),
            ("day", "days"),
            ("process", "processes"),
            ("zone move", "zone moves"),
            ("try", "tries"),
            ("epoch", "epochs"),
        ];
        for (noun, expected) in forms {
            assert_eq!(noun_for(2_u64, noun), expected);
            assert_eq!(noun_for(1_u64, noun), noun);
        }
    }

    #[test]
    fn small_amounts_keep_two_digits_and_never_read_as_nothing() {
        let cases = [
            (0.0, "$0.00"),
            (3.114, "$3.11"),
            (1234.5, "$1234.50"),
            (0.25, "$0.25"),
            (0.01, "$0.01"),
            (0.014, "$0.01"),
            (0.009_96, "$0.01"),
            (0.0099, "$0.0099"),
            (0.002, "$0.0020"),
            (0.000_28, "$0.00028"),
            (0.000_554_9, "$0.00055"),
            (0.000_001, "$0.0000010"),
            (0.000_000_4, "<$0.000001"),
            (-0.000_28, "-$0.00028"),
        ];
        for (usd, expected) in cases {
            assert_eq!(dollars(usd), expected, "{usd}");
        }
        for exponent in -9..4 {
            let text = dollars(10_f64.powi(exponent) * 0.96);
            assert!(text.contains(|digit: char| ('1'..='9').contains(&digit)), "{text}");
        }
    }
}
