//! Dense symmetric positive matrices, row by row. They have a few hundred rows, so no BLAS is needed.

#[derive(Debug, Clone)]
pub(super) struct Square {
    size: usize,
    values: Vec<f64>,
}

impl Square {
    /// Returns a matrix of zeros.
    pub(super) fn new(size: usize) -> Self {
        Self { size, values: vec![0.0; size * size] }
    }

    pub(super) fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.size..(row + 1) * self.size]
    }

    /// Returns one row to write to.
    pub(super) fn row_mut(&mut self, row: usize) -> &mut [f64] {
        &mut self.values[row * self.size..(row + 1) * self.size]
    }

    /// Replaces the lower triangle by its Cholesky factor. Returns false if the matrix is not positive definite.
    pub(super) fn factorize(&mut self) -> bool {
        for row in 0..self.size {
            let (above, rest) = self.values.split_at_mut(row * self.size);
            let own = &mut rest[..self.size];
            for (column, other) in above.chunks_exact(self.size).enumerate() {
                let sum = own[column] - dot(&own[..column], &other[..column]);
                own[column] = sum / other[column];
            }
            let diagonal = own[row] - dot(&own[..row], &own[..row]);
            if diagonal.is_nan() || diagonal <= 0.0 {
                return false;
            }
            own[row] = diagonal.sqrt();
        }
        true
    }

    /// Returns the transposed inverse of a Cholesky factor: row `j` has column `j` from place `j` on.
    pub(super) fn inverse_columns(&self) -> Self {
        let mut inverse = Self::new(self.size);
        for column in 0..self.size {
            let own = inverse.row_mut(column);
            own[column] = 1.0 / self.row(column)[column];
            for row in column + 1..self.size {
                let factor = self.row(row);
                own[row] = -dot(&factor[column..row], &own[column..row]) / factor[row];
            }
        }
        inverse
    }

    /// Returns the whole inverse of the factorized matrix, from [`Self::inverse_columns`].
    pub(super) fn inverse(columns: &Self) -> Self {
        let mut inverse = Self::new(columns.size);
        for row in 0..columns.size {
            for column in 0..=row {
                let sum = dot(&columns.row(row)[row..], &columns.row(column)[row..]);
                inverse.row_mut(row)[column] = sum;
                inverse.row_mut(column)[row] = sum;
            }
        }
        inverse
    }

    /// Returns the logarithm of the determinant of a Cholesky factor's matrix.
    pub(super) fn log_determinant(&self) -> f64 {
        (0..self.size).map(|row| 2.0 * self.row(row)[row].ln()).sum()
    }

    /// Returns the matrix times a vector.
    pub(super) fn times(&self, vector: &[f64]) -> Vec<f64> {
        (0..self.size).map(|row| dot(self.row(row), vector)).collect()
    }
}

/// Returns the inner product. The compiler turns eight sums side by side into vector instructions.
pub(super) fn dot(left: &[f64], right: &[f64]) -> f64 {
    let (lefts, rights) = (left.chunks_exact(8), right.chunks_exact(8));
    let rest: f64 = lefts.remainder().iter().zip(rights.remainder()).map(|(left, right)| left * right).sum();
    let mut sums = [0.0; 8];
    for (left, right) in lefts.zip(rights) {
        for (sum, (left, right)) in sums.iter_mut().zip(left.iter().zip(right)) {
            *sum += left * right;
        }
    }
    rest + sums.iter().sum::<f64>()
}
