//! Parses durations and sizes as people write them: `90m`, `100GiB`.

/// Returns the seconds of a duration such as `90s`, `30m`, `2h`, `1d`, or of a bare number of seconds.
pub(crate) fn seconds(written: &str) -> Option<u64> {
    scaled(written, &[("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)], 1)
}

/// Returns the MiB of a size such as `512MiB`, `16GiB`, `1TiB`. A size without a unit is refused as ambiguous.
pub(crate) fn mebibytes(written: &str) -> Option<u64> {
    scaled(written, &[("MiB", 1), ("GiB", 1 << 10), ("TiB", 1 << 20)], 0)
}

fn scaled(written: &str, units: &[(&str, u64)], bare: u64) -> Option<u64> {
    let digits = written.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = written.split_at(digits);
    let unit = unit.trim_start();
    let factor = match units.iter().find(|(name, _)| *name == unit) {
        Some((_, factor)) => *factor,
        None if unit.is_empty() && bare > 0 => bare,
        None => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes() {
        let durations = [
            ("90", Some(90)),
            ("30m", Some(1800)),
            ("2 h", Some(7200)),
            ("1d", Some(86_400)),
            ("h", None),
            ("1.5h", None),
            ("-1s", None),
        ];
        for (written, expected) in durations {
            assert_eq!(seconds(written), expected, "{written}");
        }
        let sizes = [
            ("512MiB", Some(512)),
            ("16 GiB", Some(16_384)),
            ("1TiB", Some(1 << 20)),
            ("16", None),
            ("16GB", None),
            ("99999999999999999999GiB", None),
        ];
        for (written, expected) in sizes {
            assert_eq!(mebibytes(written), expected, "{written}");
        }
    }
}
