//! Maps the values of a distribution to positions between 0 and 1, for searches that compare them.

use serde_json::Value;
use statrs::function::beta::checked_beta_reg;
use statrs::function::erf::erfc;

use super::distribution::{Curve, Distribution, Step, count};
use super::values::canonical;

/// The part of an unlimited distribution that a search leaves out at each end: a normal distribution is 3.1 sigma wide
/// there. Otherwise an optimiser that looks for the end of a cube would find the largest number.
const TAIL: f64 = 1e-3;

impl Distribution {
    /// Returns how many multiples of the step a search chooses from; `None` without a step.
    pub(crate) fn steps(&self) -> Option<u64> {
        match self {
            Self::Real { curve, step: Some(step) } => {
                let (least, greatest) = curve.offered(*step);
                Some(((greatest - least).max(0.0) as u64).saturating_add(1))
            }
            Self::Real { step: None, .. } | Self::Constant(_) | Self::Choice { .. } | Self::Integers { .. } => None,
        }
    }

    /// Whether the values have an order: whole numbers, multiples of a step, and a list of ascending numbers.
    pub(crate) fn is_ordered(&self) -> bool {
        match self {
            Self::Choice { values, .. } => {
                let numbers: Option<Vec<f64>> = values.iter().map(Value::as_f64).collect();
                numbers.is_some_and(|numbers| numbers.len() > 2 && numbers.is_sorted_by(|first, next| first < next))
            }
            Self::Integers { .. } => true,
            Self::Real { step, .. } => step.is_some(),
            Self::Constant(_) => false,
        }
    }

    /// Returns the position of the value with an index: the middle of its part of the distribution. The values of a
    /// list have equal distances.
    pub(crate) fn position(&self, index: u64) -> f64 {
        let middle = |count: u64| (index as f64 + 0.5) / count as f64;
        match self {
            Self::Constant(_) => middle(1),
            Self::Choice { values, .. } => middle(values.len() as u64),
            Self::Integers { min, max } => middle(count(*min, *max)),
            Self::Real { curve, step: Some(step) } => {
                let (least, greatest) = curve.offered(*step);
                let multiple = least + index as f64;
                let low = if multiple <= least { 0.0 } else { curve.probability((multiple - 0.5) * step.size) };
                let high = if multiple >= greatest { 1.0 } else { curve.probability((multiple + 0.5) * step.size) };
                f64::midpoint(low, high)
            }
            Self::Real { step: None, .. } => 0.5,
        }
    }

    /// Returns the index of a value, for [`Self::at`]; `None` if the distribution does not have the value.
    pub(crate) fn index_of(&self, value: &Value) -> Option<u64> {
        match self {
            Self::Constant(own) => (canonical(own) == canonical(value)).then_some(0),
            Self::Choice { values, .. } => {
                let wanted = canonical(value);
                values.iter().position(|own| canonical(own) == wanted).map(|index| index as u64)
            }
            Self::Integers { min, max } => {
                let number: i64 = canonical(value).parse().ok()?;
                (*min..=*max).contains(&number).then(|| number.abs_diff(*min))
            }
            Self::Real { curve, step } => {
                let (step, value) = ((*step)?, value.as_f64()?);
                let (least, greatest) = curve.offered(step);
                Some(((value / step.size).round().clamp(least, greatest) - least) as u64)
            }
        }
    }

    /// Returns the position of a real number.
    pub(crate) fn probability_of(&self, value: &Value) -> Option<f64> {
        match self {
            Self::Real { curve, .. } => Some(curve.probability(value.as_f64()?)),
            Self::Constant(_) | Self::Choice { .. } | Self::Integers { .. } => {
                Some(self.position(self.index_of(value)?))
            }
        }
    }

    /// Moves a position that a search gives out of the tails.
    pub(crate) fn within(&self, position: f64) -> f64 {
        let tail = match self {
            Self::Real { curve, .. } => curve.tail(),
            Self::Constant(_) | Self::Choice { .. } | Self::Integers { .. } => 0.0,
        };
        position.clamp(tail, 1.0 - tail)
    }
}

impl Curve {
    fn tail(self) -> f64 {
        match self {
            Self::Normal { .. } | Self::LogNormal { .. } => TAIL,
            Self::Uniform { .. } | Self::LogUniform { .. } | Self::Beta { .. } => 0.0,
        }
    }

    /// Returns the first and the last multiple of the step that a search chooses from.
    pub(crate) fn offered(self, step: Step) -> (f64, f64) {
        let (least, greatest) = self.multiples(step);
        let tail = self.tail();
        if tail == 0.0 {
            return (least, greatest);
        }
        let end = |probability| (self.quantile(probability) / step.size).round_ties_even();
        (end(tail).max(least), end(1.0 - tail).min(greatest))
    }

    /// Returns the probability of a smaller value: the inverse of [`Self::quantile`].
    pub(crate) fn probability(self, value: f64) -> f64 {
        let below_normal = |distance: f64| erfc(-distance / std::f64::consts::SQRT_2) / 2.0;
        let probability = match self {
            Self::Uniform { min, max } => (value - min) / (max - min),
            Self::LogUniform { min, max } => (value.max(min).ln() - min.ln()) / (max.ln() - min.ln()),
            Self::Normal { mu, sigma } => below_normal((value - mu) / sigma),
            Self::LogNormal { .. } if value <= 0.0 => 0.0,
            Self::LogNormal { mu, sigma } => below_normal((value.ln() - mu) / sigma),
            Self::Beta { a, b } => checked_beta_reg(a, b, value.clamp(0.0, 1.0)).unwrap_or(0.5),
        };
        probability.clamp(0.0, 1.0)
    }
}
