//! Splits a line into cells.

/// Characters that are drawn between columns.
const RULES: [char; 4] = ['|', '│', '┃', '┆'];
/// The kinds of values that Polars prints below a header.
const TYPES: [&str; 12] = ["---", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64", "str"];

/// The separator between the columns of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gap {
    Rules,
    Commas,
    Spaces,
}

/// Whether a character is drawn between columns.
pub(crate) fn is_rule(c: char) -> bool {
    RULES.contains(&c)
}

/// Returns the separator and the cells. Values between commas have no spaces in them, but sentences have.
pub(super) fn cells(line: &str) -> (Gap, Vec<&str>) {
    let line = line.trim();
    if line.contains(RULES) {
        let inner = line.strip_prefix(RULES).unwrap_or(line);
        let inner = inner.strip_suffix(RULES).unwrap_or(inner);
        return (Gap::Rules, inner.split(RULES).map(str::trim).collect());
    }
    let commas = || line.split(',').map(str::trim);
    if line.contains(',') && commas().all(|cell| !cell.contains(char::is_whitespace)) {
        return (Gap::Commas, commas().collect());
    }
    (Gap::Spaces, line.split_whitespace().collect())
}

/// Returns the words of a line with their ends, in characters. At least `spaces` spaces, or a tab, separate two words.
pub(super) fn words(line: &str, spaces: usize) -> Vec<(&str, usize)> {
    let (mut found, mut start, mut end, mut gap) = (Vec::new(), None, (0, 0), 0);
    for (count, (at, c)) in line.char_indices().enumerate() {
        if c.is_whitespace() {
            gap += if c == '\t' { spaces } else { 1 };
            continue;
        }
        if gap >= spaces
            && let Some(start) = start.replace(at)
        {
            found.push((&line[start..end.0], end.1));
        }
        start.get_or_insert(at);
        (gap, end) = (0, (at + c.len_utf8(), count + 1));
    }
    found.extend(start.map(|start| (&line[start..end.0], end.1)));
    found
}

/// Returns a line without its progress bar: Ultralytics prints one behind the names of its columns.
pub(super) fn without_bar(line: &str) -> &str {
    if !line.trim_start().starts_with("Class") {
        return line;
    }
    let Some(at) = ["%|", "% ━"].iter().filter_map(|bar| line.find(bar)).min() else { return line };
    line[..at].trim_end_matches(|c: char| c.is_ascii_digit()).trim_end().trim_end_matches(':')
}

/// Whether a line only separates a header from its rows, or states the kinds of its values.
pub(super) fn is_separator(line: &str, cells: &[&str]) -> bool {
    line.chars().all(|c| c.is_whitespace() || matches!(c, '-' | '=' | '+' | '|' | ':' | '\u{2500}'..='\u{257f}'))
        || cells.iter().all(|cell| TYPES.contains(cell))
}
