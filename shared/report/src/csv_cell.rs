//! Cells of CSV files that people open in spreadsheet programs.

use std::borrow::Cow;

/// The first characters by which a spreadsheet program recognizes a formula
/// (<https://owasp.org/www-community/attacks/CSV_Injection>). A line feed and the full-width forms, which East Asian
/// input methods write, are added as a precaution.
const FORMULA: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// Returns a text as a cell. A text that a spreadsheet program could take for a formula gets a single quote before it,
/// as OWASP recommends. A number is not changed.
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
