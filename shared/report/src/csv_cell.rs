//! Cells of CSV files that people open in spreadsheets.

use std::borrow::Cow;

/// The characters by which a spreadsheet takes a cell for a formula
/// (<https://owasp.org/www-community/attacks/CSV_Injection>), and as a precaution a line feed and the full-width forms,
/// which East Asian input methods write.
const FORMULA: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// A text as a cell: if a spreadsheet could take it for a formula, it has a single quote before it, as OWASP recommends.
/// A number stays as it is.
pub fn csv_cell(text: &str) -> Cow<'_, str> {
    let is_number = || text.parse::<f64>().is_ok();
    if text.starts_with(FORMULA) && !is_number() { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_become_texts_and_numbers_stay() {
        for text in ["=1+1", "+1+1", "-1-1", "@SUM(1)", "\t=1", "\r=1", "\n=1", "＝1", "-", "--lr"] {
            assert_eq!(csv_cell(text), format!("'{text}"));
        }
        for text in ["", "a=1", "-0.5", "+1e-3", "-inf", "1", " =1", "정확도", "metrics/mAP50(B)"] {
            assert_eq!(csv_cell(text), text);
        }
    }
}
