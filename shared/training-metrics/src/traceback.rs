//! Finds the lines of Python's tracebacks, which quote the source: `config={"lr": 0.01}` there is no value.

const HEADER: &str = "Traceback (most recent call last):";
/// Rich draws a box around it.
const IN_BOX: &str = "╭";
const HEADER_IN_BOX: &str = " Traceback (most recent call last) ";
/// The most bytes before a header, such as `[rank0]: `.
const MOST_BEFORE: usize = 200;

/// The traceback of a stream of lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct Traceback {
    /// What each line of it begins with, before its indentation.
    start: Option<String>,
    /// Whether the last line belongs to it.
    pub(crate) has_last: bool,
}

impl Traceback {
    /// Reads the next line. Returns whether it belongs to a traceback.
    pub(crate) fn read(&mut self, line: &str) -> bool {
        self.has_last = self.goes_on(line) || self.begins(line);
        self.has_last
    }

    /// All lines of a traceback are indented but the last one, which names the exception.
    fn goes_on(&mut self, line: &str) -> bool {
        let Some(rest) = self.start.as_ref().and_then(|start| line.strip_prefix(&**start)) else {
            self.start = None;
            return false;
        };
        if rest.is_empty() || rest.starts_with(char::is_whitespace) {
            return true;
        }
        self.start = None;
        is_exception(rest)
    }

    fn begins(&mut self, line: &str) -> bool {
        let Some(before) = before_header(line).filter(|before| before.len() <= MOST_BEFORE) else { return false };
        let start = if before.starts_with(IN_BOX) { "│" } else { before };
        self.start = Some(start.to_owned());
        true
    }
}

/// The text before the first line of a traceback. A syntax error has only a line that names the file.
fn before_header(line: &str) -> Option<&str> {
    let is_in_box = line.starts_with(IN_BOX);
    if let Some((before, _)) = line.split_once(if is_in_box { HEADER_IN_BOX } else { HEADER }) {
        return Some(before);
    }
    let rest = line.trim_start();
    let (_, number) = rest.strip_prefix("File \"")?.split_once("\", line ")?;
    number.starts_with(|c: char| c.is_ascii_digit()).then(|| &line[..line.len() - rest.len()])
}

/// Whether a line names an exception: `KeyError: 'lr'`, `torch.cuda.OutOfMemoryError: …`, `KeyboardInterrupt`.
fn is_exception(line: &str) -> bool {
    let name = line.split_once(':').map_or(line, |(name, _)| name).trim_end();
    let class = name.rsplit('.').next().unwrap_or(name);
    class.starts_with(|c: char| c.is_uppercase()) && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'))
}
