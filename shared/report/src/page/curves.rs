//! A metric by step, with a limited number of points.

use std::collections::BTreeMap;

use serde::Deserialize;
use spotsweep_protocol::number::Number;

/// How many points a curve keeps while it is read. It may hold up to twice as many before it is thinned.
const KEPT_POINTS: usize = 1_000;
/// Points that each shown curve may have at least, however many curves there are.
pub const MIN_POINTS: usize = 20;
/// Most points of a shown curve.
pub const MAX_POINTS: usize = 200;

/// One metric of one trial over all its attempts, in limited memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Curve {
    /// Step and value, in order once [`Curve::settle`] has run.
    points: Vec<(f64, f64)>,
    /// How many values had no step. Their number is used as the step.
    unnumbered: u32,
}

impl Curve {
    /// Adds a value. A later value of the same step replaces the earlier one, because a resumed attempt repeats the
    /// steps that were not saved. Values that are not finite are ignored.
    pub fn push(&mut self, step: Option<f64>, value: f64) {
        let step = step.unwrap_or_else(|| {
            self.unnumbered = self.unnumbered.saturating_add(1);
            f64::from(self.unnumbered)
        });
        if !step.is_finite() || !value.is_finite() {
            return;
        }
        self.points.push((step, value));
        if self.points.len() >= 2 * KEPT_POINTS {
            self.settle();
            self.points = thinned(&self.points, KEPT_POINTS);
        }
    }

    /// Whether the curve has no points.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Returns at most `most` points that keep the curve's shape, in the order of steps.
    pub fn points(&self, most: usize) -> Vec<(f64, f64)> {
        let mut curve = self.clone();
        curve.settle();
        thinned(&curve.points, most)
    }

    /// Orders the points by step. Of several values for one step, the last one stays.
    fn settle(&mut self) {
        self.points.reverse();
        self.points.sort_by(|left, right| left.0.total_cmp(&right.0));
        self.points.dedup_by(|later, kept| later.0 == kept.0);
    }
}

/// One line of a trial's `metrics.jsonl`, as the runner writes it.
#[derive(Deserialize)]
struct Line {
    step: Option<f64>,
    metrics: BTreeMap<String, Number>,
}

/// Reads a trial's `metrics.jsonl`. Unwanted metrics are ignored, and so are incomplete lines, because a file that is
/// being written can end within a line.
pub fn read(jsonl: &[u8], wanted: &[String]) -> BTreeMap<String, Curve> {
    let mut curves: BTreeMap<String, Curve> = BTreeMap::new();
    for line in jsonl.split(|byte| *byte == b'\n') {
        let Ok(line) = serde_json::from_slice::<Line>(line) else { continue };
        for (name, Number(value)) in line.metrics.into_iter().filter(|(name, _)| wanted.contains(name)) {
            curves.entry(name).or_default().push(line.step, value);
        }
    }
    curves
}

/// Thins a curve by largest-triangle-three-buckets (Steinarsson 2013, hdl.handle.net/1946/15343). The first and the
/// last point stay. Of each bucket between them, the point stays that forms the largest triangle with the point before
/// it and the mean of the next bucket.
fn thinned(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    if points.len() <= most || most < 3 {
        return points.to_vec();
    }
    let inner = points.len() - 2;
    let start = |bucket: usize| 1 + bucket * inner / (most - 2);
    let mut kept = vec![points[0]];
    for bucket in 0..most - 2 {
        let after = if bucket + 3 > most - 1 {
            &points[points.len() - 1..]
        } else {
            &points[start(bucket + 1)..start(bucket + 2)]
        };
        let mean = mean(after);
        let (x, y) = kept[kept.len() - 1];
        let area = |point: &(f64, f64)| ((x - mean.0) * (point.1 - y) - (x - point.0) * (mean.1 - y)).abs();
        let largest =
            points[start(bucket)..start(bucket + 1)].iter().max_by(|left, right| area(left).total_cmp(&area(right)));
        kept.extend(largest);
    }
    kept.push(points[points.len() - 1]);
    kept
}

fn mean(points: &[(f64, f64)]) -> (f64, f64) {
    let count = points.len() as f64;
    let sum = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
    (sum.0 / count, sum.1 / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resumed_attempt_replaces_what_it_repeats() {
        let record = concat!(
            r#"{"time":1,"step":1,"metrics":{"loss":5,"acc":0.1}}"#,
            "\n",
            r#"{"time":2,"step":2,"metrics":{"loss":4}}"#,
            "\n",
            r#"{"time":9,"step":2,"metrics":{"loss":3}}"#,
            "\n",
            r#"{"time":9,"step":3,"metrics":{"loss":null}}"#,
            "\n",
            r#"{"time":10,"step":3,"metrics":{"loss":2}}"#,
            "\n",
            r#"{"time":11,"step":4,"metr"#,
        );
        let curves = read(record.as_bytes(), &["loss".to_owned(), "absent".to_owned()]);
        assert_eq!(curves.keys().collect::<Vec<_>>(), ["loss"], "acc is not wanted");
        assert_eq!(curves["loss"].points(200), [(1.0, 5.0), (2.0, 3.0), (3.0, 2.0)]);
        let unnumbered = read(
            b"{\"step\":null,\"metrics\":{\"loss\":7}}\n{\"step\":null,\"metrics\":{\"loss\":6}}",
            &["loss".to_owned()],
        );
        assert_eq!(unnumbered["loss"].points(9), [(1.0, 7.0), (2.0, 6.0)]);
    }

    #[test]
    fn thinning_is_bounded_and_keeps_ends_and_spikes() {
        for length in [3_u32, 199, 200, 201, 999, 2_500, 100_000] {
            let mut curve = Curve::default();
            for step in 0..length {
                let spike = if step == length / 2 { 100.0 } else { 0.0 };
                curve.push(Some(f64::from(step)), f64::from(step % 3) + spike);
                assert!(curve.points.len() < 2 * KEPT_POINTS);
            }
            for most in [MIN_POINTS, MAX_POINTS] {
                let points = curve.points(most);
                assert_eq!(points.len(), most.min(length as usize), "{length} to {most}");
                assert!(points.is_sorted_by(|left, right| left.0 < right.0));
                assert_eq!((points[0].0, points[points.len() - 1].0), (0.0, f64::from(length - 1)));
                assert!(points.iter().any(|point| point.1 >= 100.0), "the spike of {length} is lost at {most}");
            }
        }
    }
}
