//! One figure with its peer and its limit.

use serde::Serialize;

/// One line of the table.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    /// The name: `<measurement>/<object>`.
    pub(crate) name: String,
    /// The unit of `ours`, `peer` and `limit`.
    pub(crate) unit: &'static str,
    /// The median of our values.
    pub(crate) ours: f64,
    /// The median of what people use instead, in the same run.
    pub(crate) peer: Option<f64>,
    /// The value that is possible or allowed.
    pub(crate) limit: Option<f64>,
    /// peer/ours if there is a peer, else ours/limit if there is a limit.
    pub(crate) ratio: Option<f64>,
    /// (90th − 10th percentile) / median of the repeats: of the ratio if there is a peer, else of our values.
    pub(crate) spread: Option<f64>,
    /// The number of our measurements.
    pub(crate) repeats: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<Target>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Target {
    AtMost(f64),
    RatioAtLeast(f64),
}

impl Row {
    /// Returns a row of our values only: the median of the repeats. One value is enough if all repeats would be the
    /// same.
    pub(crate) fn new(name: impl Into<String>, unit: &'static str, ours: &[f64]) -> Self {
        Self {
            name: name.into(),
            unit,
            ours: median(ours),
            peer: None,
            limit: None,
            ratio: None,
            spread: spread(ours),
            repeats: ours.len(),
            target: None,
        }
    }

    /// Returns a row of our values and the peer's, both in the order in which they were measured in turns. Each of the
    /// peer's values belongs to the same number of ours. The spread is that of the turns' ratios.
    pub(crate) fn versus(name: impl Into<String>, unit: &'static str, ours: &[f64], peer: &[f64]) -> Self {
        let turn = (ours.len() / peer.len().max(1)).max(1);
        let ratios: Vec<f64> = ours.chunks(turn).zip(peer).map(|(ours, peer)| peer / median(ours)).collect();
        let row = Self::new(name, unit, ours);
        let peer = median(peer);
        Self { peer: Some(peer), ratio: Some(peer / row.ours), spread: spread(&ratios), ..row }
    }

    /// Adds the value that is possible or allowed.
    pub(crate) fn limit(self, limit: f64) -> Self {
        let ratio = self.ratio.or(Some(self.ours / limit));
        Self { limit: Some(limit), ratio, ..self }
    }

    pub(crate) fn target(self, target: Target) -> Self {
        Self { target: Some(target), ..self }
    }

    /// Whether the target is met; `None` without a target.
    pub(crate) fn met(&self) -> Option<bool> {
        self.target.map(|target| match target {
            Target::AtMost(most) => self.ours <= most,
            Target::RatioAtLeast(least) => self.ratio.is_some_and(|ratio| ratio >= least),
        })
    }
}

/// Returns the middle value; NaN without any.
pub(crate) fn median(values: &[f64]) -> f64 {
    percentile(values, 0.5)
}

/// Returns (90th − 10th percentile) / median; `None` for fewer than two values.
fn spread(values: &[f64]) -> Option<f64> {
    let between = percentile(values, 0.9) - percentile(values, 0.1);
    (values.len() > 1).then(|| between / median(values)).filter(|spread| spread.is_finite())
}

/// Returns a percentile, with linear interpolation between two values.
fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = share * sorted.len().saturating_sub(1) as f64;
    let at = |place: f64| sorted.get(place as usize).copied().unwrap_or(f64::NAN);
    at(place.floor()) + (at(place.ceil()) - at(place.floor())) * place.fract()
}
