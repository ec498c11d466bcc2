//! Prints tables with aligned columns.

use std::io::{self, Write};

/// A table: its header, and its rows.
pub type Table = Vec<Vec<String>>;

const GAP: &str = "  ";

/// Writes rows, each column as wide as its widest cell.
///
/// # Errors
/// Returns the writer's error.
pub fn write(table: &Table, to: &mut dyn Write) -> io::Result<()> {
    let columns = table.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column| table.iter().filter_map(|row| row.get::<usize>(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    for row in table {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        writeln!(to, "{}", cells.join(GAP).trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let table = [["policy", "USD"], ["über", "1.00"]].map(|row| row.map(String::from).into()).into();
        let mut written = Vec::new();
        write(&table, &mut written).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), "policy  USD\nüber    1.00\n");
    }
}
