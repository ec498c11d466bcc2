//! Formats counts, times and amounts of money for people.

use std::fmt::Display;

/// The most characters of a number that is written without an exponent.
const MOST_PLAIN: usize = 20;
/// The amount from which on an exponent is written.
const MOST_USD: f64 = 1e15;
/// The amount below which only its size is written.
const LEAST_USD: f64 = 1e-6;

/// Returns bytes as lower-case hexadecimal digits.
pub fn hexadecimal(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a count with its noun: `1 trial`, `2 trials`, `0 trials`.
pub fn counted<N: Copy + Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let form = noun_for(count, noun);
    format!("{count} {form}")
}

/// Returns the noun in the form that goes with the count: `trial` or `trials`. Only its last word changes.
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

/// Returns a number of bytes with a unit: `12 bytes`, `1.5 GiB`.
pub fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let mut size = bytes as f64;
    let mut unit = "bytes";
    for larger in units {
        if size < 1024.0 {
            break;
        }
        (size, unit) = (size / 1024.0, larger);
    }
    if unit == "bytes" { format!("{bytes} bytes") } else { format!("{size:.1} {unit}") }
}

/// Returns a time in its two largest units, without the smaller one if it is zero: `0.4 s`, `12 s`, `3 min 05 s`, `2
/// h`, `1 d 03 h`. Below ten seconds it has tenths. `page/dom.js` of the report page does the same.
pub fn duration(seconds: f64) -> String {
    // A clock that is set back gives a negative time, and a negative zero would be printed with its sign.
    let seconds = if seconds > 0.0 { seconds } else { 0.0 };
    let tenths = (seconds * 10.0).round() / 10.0;
    if tenths < 10.0 {
        return format!("{tenths} s");
    }
    let whole = seconds.round() as u64;
    let (large, small) = match whole {
        0..60 => return format!("{whole} s"),
        60..3600 => ((whole / 60, "min"), (whole % 60, "s")),
        3600..86_400 => ((whole / 3600, "h"), (whole / 60 % 60, "min")),
        86_400.. => ((whole / 86_400, "d"), (whole / 3600 % 24, "h")),
    };
    match (large, small) {
        ((count, unit), (0, _)) => format!("{count} {unit}"),
        ((count, unit), (rest, smaller)) => format!("{count} {unit} {rest:02} {smaller}"),
    }
}

/// Returns an amount of money: `$3.11`, and below a cent two significant digits, `$0.00028`, so that only zero is
/// printed as zero. Below a millionth of a dollar it is `<$0.000001`.
pub fn dollars(usd: f64) -> String {
    let (sign, size) = if usd < 0.0 { ("-", -usd) } else { ("", usd) };
    if size == 0.0 {
        return "$0.00".to_owned();
    }
    if size < LEAST_USD {
        return format!("{sign}<${LEAST_USD:.6}");
    }
    if size >= MOST_USD {
        return format!("{sign}${size:.2e}");
    }
    // The amount is rounded first: 0.00996 is rounded to a cent, and a cent has two decimals.
    let rounded: f64 = format!("{size:.1e}").parse().unwrap_or(size);
    if rounded >= 0.01 || !size.is_finite() {
        return format!("{sign}${size:.2}");
    }
    let decimals = (1.0 - rounded.log10().floor()).max(2.0) as usize;
    format!("{sign}${size:.decimals$}")
}

/// Returns a number of another program with all its digits, and without a row of zeros: `0.1`, `1e300`.
pub fn figure(value: f64) -> String {
    let plain = value.to_string();
    if plain.len() <= MOST_PLAIN { plain } else { format!("{value:e}") }
}

/// Returns a number with `decimals` decimals, or with an exponent if these would be many digits or only zeros:
/// `0.9300`, `1.2000e-7`.
pub fn rounded(value: f64, decimals: usize) -> String {
    let is_plain = value == 0.0 || !value.is_finite() || (10_f64.powi(-(decimals as i32))..1e9).contains(&value.abs());
    if is_plain { format!("{value:.decimals$}") } else { format!("{value:.decimals$e}") }
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
    fn a_time_is_given_to_the_second_where_it_is_short() {
        let cases = [
            (0.0, "0 s"),
            (-0.0, "0 s"),
            (-3.0, "0 s"),
            (f64::NAN, "0 s"),
            (0.4, "0.4 s"),
            (9.96, "10 s"),
            (12.3, "12 s"),
            (59.6, "1 min"),
            (90.0, "1 min 30 s"),
            (185.2, "3 min 05 s"),
            (1_800.0, "30 min"),
            (3_599.6, "1 h"),
            (3_725.0, "1 h 02 min"),
            (97_200.0, "1 d 03 h"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(duration(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn no_number_is_a_row_of_digits() {
        let values = [0.0, -0.25, 0.1 + 0.2, 1e6, 1e300, -f64::MAX, 5e-324, f64::MIN_POSITIVE, f64::INFINITY, f64::NAN];
        for value in values {
            assert!(
                figure(value).len() <= 24 && rounded(value, 4).len() <= 15 && dollars(value).len() <= 20,
                "{value:e}"
            );
            assert!(figure(value).parse::<f64>().unwrap_or(0.5).total_cmp(&value).is_eq() || value.is_nan());
        }
        assert_eq!([figure(0.25), figure(1e300), figure(123_456.0)], ["0.25", "1e300", "123456"]);
        assert_eq!([rounded(0.93, 4), rounded(1.2e-7, 4), rounded(-1e300, 4)], ["0.9300", "1.2000e-7", "-1.0000e300"]);
    }

    #[test]
    fn sizes_have_a_readable_unit() {
        for (bytes, expected) in [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (5 << 40, "5.0 TiB")] {
            assert_eq!(size(bytes), expected);
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
