//! The distributions of a parameter, each by its quantile function.
//!
//! W&B also samples by inverting the distribution at a uniform number, so its recorded answers can be compared.

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use statrs::function::beta::checked_beta_reg;
use statrs::function::erf::erfc_inv;

/// The distribution of a parameter's values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Distribution {
    Constant(Value),
    /// One of several values, either all equally likely or by cumulated probabilities.
    Choice {
        values: Vec<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cumulated: Option<Vec<f64>>,
    },
    /// Every whole number from `min` to `max`.
    Integers {
        min: i64,
        max: i64,
    },
    /// A real number, rounded to multiples of the step if there is one.
    Real {
        curve: Curve,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<Step>,
    },
}

/// A continuous distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Curve {
    Uniform {
        min: f64,
        max: f64,
    },
    /// The logarithm is uniform. W&B's inverse form is the same distribution.
    LogUniform {
        min: f64,
        max: f64,
    },
    Normal {
        mu: f64,
        sigma: f64,
    },
    /// The logarithm is normal.
    LogNormal {
        mu: f64,
        sigma: f64,
    },
    Beta {
        a: f64,
        b: f64,
    },
}

/// The `q` of a quantised distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) size: f64,
    /// Whether `q` is written as a whole number, which makes the values whole numbers too.
    pub(crate) whole: bool,
    /// Whether `min` and `max` are whole numbers as well, which makes the values of a grid whole.
    pub(crate) whole_grid: bool,
}

/// The smallest probability that is drawn. The largest is as far from 1: draws have 52 bits and lie between the ends.
pub(crate) const SMALLEST_PROBABILITY: f64 = 1.0 / (1_u64 << 53) as f64;

impl Distribution {
    /// Returns which of the countable values stands at `probability`; `None` for real numbers.
    pub(crate) fn index(&self, probability: f64) -> Option<u64> {
        match self {
            Self::Constant(_) => Some(0),
            Self::Choice { values, cumulated: None } => Some(slot(probability, values.len() as u64)),
            Self::Choice { values, cumulated: Some(cumulated) } => {
                let found = cumulated.iter().position(|limit| probability < *limit);
                // Rounding may leave the last sum a little below 1.
                let last =
                    cumulated.iter().rposition(|limit| Some(limit) != cumulated.last()).map_or(0, |before| before + 1);
                Some(found.unwrap_or(last).min(values.len() - 1) as u64)
            }
            Self::Integers { min, max } => Some(slot(probability, count(*min, *max))),
            Self::Real { .. } => None,
        }
    }

    /// Returns the value with an index that [`Self::index`] gave, or the multiple of a step with one below
    /// [`Self::steps`].
    pub(crate) fn at(&self, index: u64) -> Option<Value> {
        match self {
            Self::Constant(value) => Some(value.clone()),
            Self::Choice { values, .. } => values.get(usize::try_from(index).ok()?).cloned(),
            Self::Integers { min, .. } => Some(Value::from(min.wrapping_add_unsigned(index))),
            Self::Real { curve, step } => {
                let step = (*step)?;
                let (least, greatest) = curve.offered(step);
                let multiple = least + index as f64;
                (multiple <= greatest).then(|| curve.multiple(step, multiple))
            }
        }
    }

    /// Returns the value at `probability`, from 0 to 1.
    pub(crate) fn quantile(&self, probability: f64) -> Value {
        match self {
            Self::Constant(_) | Self::Choice { .. } | Self::Integers { .. } => {
                self.index(probability).and_then(|index| self.at(index)).unwrap_or(Value::Null)
            }
            Self::Real { curve, step } => curve.stepped(*step, probability),
        }
    }
}

/// Returns which of `slots` equal parts of 0 to 1 holds `probability`. The upper end belongs to the part.
fn slot(probability: f64, slots: u64) -> u64 {
    // Clamping at both ends avoids W&B's "one below the first" at probability 0.
    ((probability * slots as f64).ceil() as u64).clamp(1, slots.max(1)) - 1
}

/// Returns how many whole numbers there are from `min` to `max`, at most `u64::MAX`.
pub(crate) fn count(min: i64, max: i64) -> u64 {
    max.abs_diff(min).saturating_add(1)
}

impl Curve {
    pub(crate) fn quantile(self, probability: f64) -> f64 {
        match self {
            Self::Uniform { min, max } => (min + probability * (max - min)).clamp(min, max),
            Self::LogUniform { min, max } => (min.ln() + probability * (max.ln() - min.ln())).exp().clamp(min, max),
            Self::Normal { mu, sigma } => mu + sigma * standard_normal(probability),
            Self::LogNormal { mu, sigma } => (mu + sigma * standard_normal(probability)).exp(),
            Self::Beta { a, b } => beta_quantile(a, b, probability),
        }
    }

    /// Returns the least and the greatest value.
    fn bounds(self) -> (f64, f64) {
        match self {
            Self::Uniform { min, max } | Self::LogUniform { min, max } => (min, max),
            Self::Normal { .. } => (f64::NEG_INFINITY, f64::INFINITY),
            Self::LogNormal { .. } => (0.0, f64::INFINITY),
            Self::Beta { .. } => (0.0, 1.0),
        }
    }

    /// Returns the least and the greatest multiple of `step` within the bounds. It tolerates rounding: 0.3 is a
    /// multiple of 0.1 although 0.3 / 0.1 is 2.9999999999999996.
    pub(crate) fn multiples(self, step: Step) -> (f64, f64) {
        let (min, max) = self.bounds();
        ((min / step.size - 1e-9).ceil(), (max / step.size + 1e-9).floor())
    }

    fn stepped(self, step: Option<Step>, probability: f64) -> Value {
        let value = self.quantile(probability);
        let Some(step) = step else { return real(value) };
        let (least, greatest) = self.multiples(step);
        // numpy rounds ties to even.
        self.multiple(step, (value / step.size).round_ties_even().max(least).min(greatest))
    }

    /// Returns a multiple of the step, moved into the bounds.
    fn multiple(self, step: Step, multiple: f64) -> Value {
        let (min, max) = self.bounds();
        let stepped = multiple * step.size;
        if step.whole { Value::from(stepped as i64) } else { real(stepped.max(min).min(max)) }
    }
}

/// Returns a JSON number, with 0.0 for -0.0.
fn real(value: f64) -> Value {
    Number::from_f64(value + 0.0).map_or(Value::Null, Value::Number)
}

fn standard_normal(probability: f64) -> f64 {
    -std::f64::consts::SQRT_2 * erfc_inv(2.0 * probability)
}

/// Finds the quantile by bisection, because statrs's own Newton iteration has no bound on its steps.
fn beta_quantile(a: f64, b: f64, probability: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..200 {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            break;
        }
        match checked_beta_reg(a, b, middle) {
            Ok(below) if below < probability => low = middle,
            Ok(_) | Err(_) => high = middle,
        }
    }
    high
}
