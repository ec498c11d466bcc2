//! Draws a value over time in one line of text.

use jiff::Timestamp;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws a bar for each column, from `from` to `to`. Its height is the value at the end of the column. Columns before
/// the first value are blank. The lowest value is the lowest bar, and the highest is the highest. If all values are
/// equal, all bars are in the middle.
pub(super) fn line(values: &[(Timestamp, f64)], from: Timestamp, to: Timestamp, columns: usize) -> String {
    let finite = values.iter().map(|(_, value)| *value).filter(|value| value.is_finite());
    let (low, high) =
        finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    let span = to.duration_since(from).as_secs_f64();
    let held_at = |column: usize| {
        let seconds = span * (column + 1) as f64 / columns as f64;
        values.iter().rev().find(|(at, _)| at.duration_since(from).as_secs_f64() <= seconds).map(|(_, value)| *value)
    };
    (0..columns).map(|column| held_at(column).map_or(' ', |value| bar(value, low, high))).collect()
}

fn bar(value: f64, low: f64, high: f64) -> char {
    let share = if high > low { (value - low) / (high - low) } else { 0.5 };
    // Casts of floats saturate, and turn NaN into 0.
    let step = (share * (BARS.len() - 1) as f64).round() as usize;
    BARS.get(step).copied().unwrap_or('█')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::samples::at;

    #[test]
    fn bars_follow_the_value() {
        let values = [(at(25), 0.0), (at(50), 0.5), (at(90), 1.0)];
        assert_eq!(line(&values, at(0), at(100), 10), "  ▁▁▅▅▅▅██");
        assert_eq!(line(&values[..1], at(0), at(100), 4), "▅▅▅▅", "one value is neither high nor low");
        assert_eq!(line(&[], at(0), at(100), 3), "   ");
        assert_eq!(line(&[(at(0), f64::NAN), (at(50), 2.0)], at(0), at(100), 2), "▅▅");
        assert_eq!(line(&values, at(0), at(0), 2), "  ", "no time has passed");
    }
}
