//! The search space as the algorithms see it: a unit cube with some structure.

use serde::{Deserialize, Serialize};

/// One parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Dimension {
    /// A real number, by its position from 0 to 1 in its distribution.
    Real,
    /// Ordered values (whole numbers, quantised ones), each by its position from 0 to 1; ascending.
    Steps {
        /// The positions.
        positions: Vec<f64>,
    },
    /// Values without an order.
    Choices {
        /// How many.
        count: usize,
    },
}

/// A parameter is there only while another one has one of some values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// The conditional dimension.
    pub dimension: usize,
    /// The dimension that decides: [`Dimension::Choices`] or [`Dimension::Steps`].
    pub parent: usize,
    /// Its values that make the dimension exist, by their index.
    pub levels: Vec<usize>,
}

/// All parameters that have more than one value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Space {
    /// The parameters.
    pub dimensions: Vec<Dimension>,
    /// All that name a dimension must hold for it to exist. A parent may be conditional itself.
    pub conditions: Vec<Condition>,
}

/// A parameter set: for each dimension a position from 0 to 1 ([`Dimension::Real`]), an index (the others), or nothing
/// where a condition does not hold.
pub type Point = Vec<Option<f64>>;
