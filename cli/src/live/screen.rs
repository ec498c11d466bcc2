//! Takes over the terminal, and restores it.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::Rect;
use tokio::sync::mpsc::{self, UnboundedReceiver};

use crate::out;
use spotsweep_protocol::failure::{Context, Failure};
use spotsweep_protocol::visible::stripped;

/// Time between two checks whether the view is still wanted, if no key is pressed.
const KEY_POLL: Duration = Duration::from_millis(100);

/// What the user asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    /// To leave the view.
    Quit,
    /// To scroll by lines, back or forth.
    Scroll(isize),
    /// To scroll by screens, back or forth.
    Page(isize),
    /// To go to the newest event.
    Home,
    /// To show or hide the keys.
    Help,
    /// The terminal has another size.
    Resized,
}

/// Whether standard output and input are a terminal on which the view can be drawn.
pub(crate) fn is_there() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    out::results_are_on_terminal() && std::io::stdin().is_terminal() && !is_dumb
}

/// Whether colours are not turned off: <https://no-color.org>
pub(crate) fn has_colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// A terminal that is drawn on. It is restored when this is dropped, or by a hook when the program panics.
pub(crate) struct Screen {
    /// It is never dropped. If the terminal is closed, ratatui's own drop writes to standard error, which is closed
    /// too, and panics.
    terminal: &'static mut DefaultTerminal,
    keys: UnboundedReceiver<Key>,
    closed: Arc<AtomicBool>,
}

impl Screen {
    /// Takes the terminal over.
    pub(crate) fn open() -> Result<Self, Failure> {
        let terminal = ratatui::try_init().inspect_err(|_| give_back()).context(|| "cannot draw on this terminal")?;
        let (to, keys) = mpsc::unbounded_channel();
        let closed = Arc::new(AtomicBool::new(false));
        let is_closed = Arc::clone(&closed);
        std::thread::spawn(move || {
            while !is_closed.load(Ordering::Relaxed) {
                match next_key() {
                    Ok(Some(key)) if to.send(key).is_err() => return,
                    Ok(_) => {}
                    // The terminal is gone, so the view is not wanted any more.
                    Err(_) => return,
                }
            }
        });
        Ok(Self { terminal: Box::leak(Box::new(terminal)), keys, closed })
    }

    /// Draws in the present size of the terminal. Characters that a terminal would obey are left out.
    #[expect(clippy::disallowed_methods)]
    pub(crate) fn draw(&mut self, draw: impl FnOnce(Rect, &mut Buffer)) -> Result<(), Failure> {
        let drawn = self.terminal.draw(|frame| {
            draw(frame.area(), frame.buffer_mut());
            clean(frame.buffer_mut());
        });
        drawn.map(drop).context(|| "cannot draw on this terminal")
    }

    /// The next key with a meaning. The end of the terminal counts as a wish to leave.
    pub(crate) async fn key(&mut self) -> Key {
        self.keys.recv().await.unwrap_or(Key::Quit)
    }

    /// Number of rows.
    pub(crate) fn height(&self) -> usize {
        self.terminal.size().map_or(24, |size| usize::from(size.height))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        let _ = self.terminal.show_cursor();
        give_back();
    }
}

/// Removes invisible characters from each cell.
fn clean(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        let seen = stripped(cell.symbol());
        // A cell next to a wide character is empty.
        if seen != cell.symbol() {
            cell.set_symbol(if seen.is_empty() { " " } else { &seen });
        }
    }
}

/// If the terminal is closed, this fails, and there is nothing to restore.
fn give_back() {
    let _ = ratatui::try_restore();
}

fn next_key() -> std::io::Result<Option<Key>> {
    if !event::poll(KEY_POLL)? {
        return Ok(None);
    }
    let key = match event::read()? {
        Event::Key(key) if key.kind != KeyEventKind::Release => key,
        Event::Resize(_, _) => return Ok(Some(Key::Resized)),
        Event::Key(_) | Event::FocusGained | Event::FocusLost | Event::Mouse(_) | Event::Paste(_) => return Ok(None),
    };
    Ok(match key.code {
        KeyCode::Char('c' | 'd') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(Key::Quit),
        KeyCode::Char('q') | KeyCode::Esc => Some(Key::Quit),
        KeyCode::Char('?' | 'h') => Some(Key::Help),
        KeyCode::Down | KeyCode::Char('j') => Some(Key::Scroll(1)),
        KeyCode::Up | KeyCode::Char('k') => Some(Key::Scroll(-1)),
        KeyCode::PageDown | KeyCode::Char(' ') => Some(Key::Page(1)),
        KeyCode::PageUp => Some(Key::Page(-1)),
        KeyCode::Home => Some(Key::Home),
        _other => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_nothing_that_a_terminal_obeys() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 4, 1));
        for (cell, symbol) in buffer.content.iter_mut().zip(["\u{1b}", "a\u{202e}", "모", ""]) {
            cell.set_symbol(symbol);
        }
        let wide = buffer.content[3].clone();
        clean(&mut buffer);
        let symbols: Vec<&str> = buffer.content.iter().map(|cell| cell.symbol()).collect();
        assert_eq!(symbols[..3], [" ", "a", "모"]);
        assert_eq!(buffer.content[3], wide);
    }
}
