//! What is wrong with a sweep file, where, and how to fix it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use spotsweep_protocol::redact::{Secrets, redacted, shown};
use spotsweep_protocol::visible::{escaped, masked};
use spotsweep_protocol::words::counted;

use super::hidden::{Hidden, chars, lines};

/// The most problems reported for one file. More of them usually have one cause.
const MAX_PROBLEMS: usize = 100;

/// The most warnings kept for one file, because they are stored with the sweep's plan.
const MAX_WARNINGS: usize = 20;

/// The most warnings from which these are chosen.
const MAX_CHOICE: usize = 500;

/// The most characters of a line that a problem quotes, because a file may be one line of megabytes.
const MAX_TEXT_CHARS: u32 = 160;

/// Characters quoted before the column, if the line is cut.
const LEAD_CHARS: u32 = 40;

/// The most characters of a message and of a help text. Both quote the file, which may have a value of megabytes. The
/// first problems are put into one event of at most 256 KB, and the warnings into one item of at most 400 KB.
const MAX_MESSAGE_CHARS: usize = 2000;

/// The mark at which a line is cut.
const CUT: char = '…';

/// One problem in a sweep file, as printed for a person and as stored in `.rejected.json`.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// File name or object key.
    pub file: String,
    /// Line, from 1; 0 for a problem of the file as a whole.
    pub line: u32,
    /// Column in characters, from 1; 0 for a problem of the file as a whole.
    pub column: u32,
    /// The offending line, with U+FFFD for each invisible character. Of a very long line it is the part around the
    /// column, with `…` where it is cut. If `…` is the first character, the part to underline starts at the 42nd.
    pub text: String,
    /// The number of characters to underline.
    pub width: u32,
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub help: String,
}

/// A warning about a valid file. It has a problem's place and text, but the sweep runs.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(transparent)]
pub struct Warning(pub Problem);

/// The result for a file that is not valid.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug, Default)]
pub struct Rejected {
    /// Everything that is wrong with it, from top to bottom.
    pub problems: Vec<Problem>,
    /// Warnings for the file's author, which alone would not have rejected the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

impl From<Vec<Problem>> for Rejected {
    fn from(problems: Vec<Problem>) -> Self {
        Self { problems, warnings: Vec::new() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, "error")
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f, "warning")
    }
}

impl Problem {
    fn write(&self, f: &mut fmt::Formatter<'_>, severity: &str) -> fmt::Result {
        let Self { file, line, column, text, width, message, help } = self;
        if *line == 0 {
            return write!(f, "{severity}: {message}\n --> {}\n  = help: {help}", escaped(file));
        }
        let number = line.to_string();
        let gutter = " ".repeat(number.len());
        // Tabs become spaces, so that the marks stand under the text on any terminal.
        let (file, text, indent) = (escaped(file), text.replace('\t', " "), " ".repeat(self.offset()));
        writeln!(f, "{severity}: {message}")?;
        writeln!(f, "{gutter}--> {file}:{line}:{column}")?;
        writeln!(f, "{gutter} |")?;
        writeln!(f, "{number} | {text}")?;
        writeln!(f, "{gutter} | {indent}{}", "^".repeat(*width as usize))?;
        write!(f, "{gutter} = help: {help}")
    }

    /// Returns the number of characters of `text` before the part to underline.
    fn offset(&self) -> usize {
        let before = self.column.saturating_sub(1);
        let is_cut = before > LEAD_CHARS && self.text.starts_with(CUT);
        (if is_cut { LEAD_CHARS + 1 } else { before }) as usize
    }
}

/// A span of the file within one line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// The line, from 1.
    pub(crate) line: u32,
    /// The column in characters, from 1.
    pub(crate) column: u32,
    /// The width in characters.
    pub(crate) width: u32,
}

impl Place {
    /// The place of a problem of the file as a whole.
    pub(crate) const START: Self = Self { line: 1, column: 1, width: 1 };
}

/// Collects every problem of one file.
pub(crate) struct Report<'a> {
    file: &'a str,
    lines: Vec<&'a str>,
    problems: Vec<Problem>,
    suppressed: u64,
    /// Each warning with the number of earlier warnings of its kind, which are those with the same help.
    warnings: Vec<(usize, Problem)>,
    /// The number of warnings of each kind.
    kinds: BTreeMap<String, usize>,
    suppressed_warnings: u64,
    /// The places of the credentials of URLs in the file.
    hidden: Hidden,
    secrets: Secrets,
}

impl<'a> Report<'a> {
    pub(crate) fn new(file: &'a str, text: &'a str) -> Self {
        Self {
            file,
            lines: lines(text).collect(),
            problems: Vec::new(),
            suppressed: 0,
            warnings: Vec::new(),
            kinds: BTreeMap::new(),
            suppressed_warnings: 0,
            hidden: Hidden::default(),
            secrets: Secrets::default(),
        }
    }

    /// Notes the credentials in a text that was parsed from what stands between two places.
    pub(crate) fn hide(&mut self, text: &str, from: Place, until: Place) {
        let at = |place: Place| [place.line, place.column - 1];
        if self.hidden.add(&self.lines, text, at(from), at(until)) {
            self.secrets.add(text);
        }
    }

    /// Notes a text that is secret as a whole, which was parsed from what stands between two places.
    pub(crate) fn hide_all(&mut self, text: &str, from: Place, until: Place) {
        if self.hidden.is_full() {
            return;
        }
        let at = |place: Place| [place.line, place.column - 1];
        self.hidden.add_all(&self.lines, at(from), at(until));
        self.secrets.add_all(text);
    }

    /// Notes what may be credentials in a line at which the parser has stopped.
    pub(crate) fn hide_unread(&mut self, number: u32) {
        self.hidden.add_unread(number, self.line(number));
    }

    /// Returns the places of credentials in the file.
    pub(crate) fn hidden(&self) -> Hidden {
        self.hidden.clone()
    }

    pub(crate) fn add(&mut self, place: Place, message: impl Into<String>, help: impl Into<String>) {
        if self.is_full() {
            self.suppressed += 1;
            return;
        }
        let problem = self.locate(place, message, help);
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Drops all problems and warnings, for a file that is parsed again from its start.
    pub(crate) fn forget(&mut self) {
        *self = Self { lines: std::mem::take(&mut self.lines), ..Self::new(self.file, "") };
    }

    /// Adds a warning for the file's author.
    pub(crate) fn warn(&mut self, place: Place, message: impl Into<String>, help: impl Into<String>) {
        let help = help.into();
        let of_kind = self.kinds.get(&help).copied().unwrap_or(0);
        if of_kind >= MAX_WARNINGS || self.warnings.len() >= MAX_CHOICE {
            self.suppressed_warnings += 1;
            return;
        }
        let warning = self.locate(place, message, help.clone());
        if !self.warnings.iter().any(|(_, known)| *known == warning) {
            self.warnings.push((of_kind, warning));
            self.kinds.insert(help, of_kind + 1);
        }
    }

    /// Returns a problem without adding it to the file's problems.
    pub(crate) fn locate(&self, place: Place, message: impl Into<String>, help: impl Into<String>) -> Problem {
        let (text, width) = self.excerpt(place);
        // A quoted name may have characters that a terminal would interpret, and a URL may have credentials.
        let hide = |text: String| if self.hidden.is_full() { shown(&text) } else { self.secrets.hide(&text) };
        let visible = |text: String| brief(&escaped(&hide(text)));
        let (text, message, help) = (masked(&text), visible(message.into()), visible(help.into()));
        Problem { file: self.file.to_owned(), line: place.line, column: place.column, text, width, message, help }
    }

    /// Returns the characters at `place`, as the person wrote them.
    pub(crate) fn written(&self, place: Place) -> String {
        let line = self.line(place.line);
        line.chars().skip(place.column as usize - 1).take(place.width as usize).collect()
    }

    /// Whether further problems are only counted, so that looking for help is not worth the time.
    pub(crate) fn is_full(&self) -> bool {
        self.problems.len() >= MAX_PROBLEMS
    }

    pub(crate) fn has_problem_at(&self, place: Place) -> bool {
        self.problems.iter().any(|problem| (problem.line, problem.column) == (place.line, place.column))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    /// Returns all problems from top to bottom. A last one states how many were left out.
    fn into_problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| (problem.line, problem.column));
        if self.suppressed > 0 {
            let message = format!("{} not shown", counted(self.suppressed, "more problem"));
            let last = self.locate(Place::START, message, "fix the problems above first");
            self.problems.push(last);
        }
        self.problems
    }

    /// Returns the warnings from top to bottom. A last one states how many were left out. It keeps the first of each
    /// kind, then the second, and so on, so that one kind does not hide another.
    fn take_warnings(&mut self) -> Vec<Warning> {
        let mut warnings = std::mem::take(&mut self.warnings);
        warnings.sort_by_key(|(number, _)| *number);
        self.suppressed_warnings += warnings.len().saturating_sub(MAX_WARNINGS) as u64;
        warnings.truncate(MAX_WARNINGS);
        let mut warnings: Vec<Problem> = warnings.into_iter().map(|(_, warning)| warning).collect();
        warnings.sort_by_key(|warning| (warning.line, warning.column));
        if self.suppressed_warnings > 0 {
            let message = format!("{} not shown", counted(self.suppressed_warnings, "more warning"));
            warnings.push(self.locate(Place::START, message, "look at the warnings above first"));
        }
        warnings.into_iter().map(Warning).collect()
    }

    pub(crate) fn into_warnings(mut self) -> Vec<Warning> {
        self.take_warnings()
    }

    /// Returns the problems of the file, and its warnings.
    pub(crate) fn into_rejected(mut self) -> Rejected {
        let warnings = self.take_warnings();
        Rejected { warnings, problems: self.into_problems() }
    }

    /// Returns a line of the file by its number, from 1.
    pub(crate) fn line(&self, number: u32) -> &'a str {
        self.lines.get(number as usize - 1).copied().unwrap_or("")
    }

    /// Returns the line at `place`, shortened around it, and the underline's width in it.
    fn excerpt(&self, place: Place) -> (String, u32) {
        let (line, before) = self.hidden.line(place.line, self.line(place.line), place.column - 1);
        let (line, kept_before) = without_credentials(&line, before);
        // Blanks replace hidden text before the place, so that the marks stand under the place.
        let before = kept_before.max(place.column - 1);
        let line = " ".repeat((before - kept_before) as usize) + &line;
        if line.len() <= MAX_TEXT_CHARS as usize {
            let width = place.width.min(chars(&line).saturating_sub(before)).max(1);
            return (line, width);
        }
        let first = before.saturating_sub(LEAD_CHARS);
        let kept: String = line.chars().skip(first as usize).take(MAX_TEXT_CHARS as usize).collect();
        let width = place.width.min(chars(&kept).saturating_sub(before - first)).max(1);
        let is_cut_after = line.chars().nth((first + MAX_TEXT_CHARS) as usize).is_some();
        let lead = if first > 0 { String::from(CUT) } else { String::new() };
        let tail = if is_cut_after { String::from(CUT) } else { String::new() };
        (lead + &kept + &tail, width)
    }
}

fn brief(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => format!("{}{CUT}", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns the line without the credentials of URLs, and the number of characters before the place in it.
fn without_credentials(line: &str, before: u32) -> (Cow<'_, str>, u32) {
    let clean = redacted(line);
    let at = line.char_indices().nth(before as usize).map_or(line.len(), |(at, _)| at);
    // A place within the credentials does not exist in the clean line.
    let start = clean.strip_suffix(&*redacted(&line[at..])).map(chars);
    (clean, start.unwrap_or(before).min(before))
}

/// Returns the candidate nearest to `written`, if it is near enough for "did you mean …?".
pub(crate) fn nearest<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The comparison is quadratic, so long texts are not compared.
    if written.len() > 64 {
        return None;
    }
    let written = written.to_lowercase();
    let reach = |candidate: &str| 1 + candidate.len().min(written.len()) / 3;
    candidates
        .into_iter()
        .filter(|candidate| candidate.len().abs_diff(written.len()) <= reach(candidate))
        .map(|candidate| (strsim::damerau_levenshtein(&written, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= reach(candidate) && *distance < candidate.len().min(written.len()))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns the candidate that `written` surely means: one slip away, or two in a long word. For keys that other
/// programs may have.
pub(crate) fn near_miss<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let written = written.to_lowercase();
    let reach = |candidate: &str| if candidate.len() >= 9 { 2 } else { 1 };
    candidates
        .into_iter()
        .filter(|candidate| candidate.len().abs_diff(written.len()) <= reach(candidate))
        .map(|candidate| (strsim::damerau_levenshtein(&written, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= reach(candidate))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
