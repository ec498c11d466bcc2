//! The search space as a unit cube with conditions, without names.

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
        /// The number of values.
        count: usize,
    },
}

/// A condition: a parameter exists only while another one has one of some values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// The conditional dimension.
    pub dimension: usize,
    /// The deciding dimension: [`Dimension::Choices`] or [`Dimension::Steps`].
    pub parent: usize,
    /// The indexes of its values with which the dimension exists.
    pub levels: Vec<usize>,
}

/// All parameters that have more than one value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Space {
    /// The parameters.
    pub dimensions: Vec<Dimension>,
    /// The conditions. All that name a dimension must hold for it to exist, and a parent may be conditional itself.
    pub conditions: Vec<Condition>,
}

/// A parameter set. Each dimension has a position from 0 to 1 ([`Dimension::Real`]), an index (the others), or nothing
/// if a condition does not hold.
pub type Point = Vec<Option<f64>>;
