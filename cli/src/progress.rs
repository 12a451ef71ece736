//! Progress on standard error: a bar on a terminal once the work takes longer than a blink, plain lines elsewhere.

use std::io::{self, IsTerminal};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work that ends sooner shows no bar.
const DELAY: Duration = Duration::from_millis(250);
/// Without a terminal, a line at most this often.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Whether progress is shown at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// On a terminal as a bar, elsewhere as lines.
    Shown,
    /// Not at all (`--quiet`).
    Hidden,
}

/// One piece of work with a known or unknown end.
#[derive(Debug)]
pub(crate) struct Progress {
    label: &'static str,
    bar: ProgressBar,
    started: Instant,
    style: Style,
    last_line: Mutex<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Bar,
    Lines,
    Hidden,
}

impl Progress {
    /// Work of `total` steps (zero where it is not known).
    pub(crate) fn start(label: &'static str, total: u64, visibility: Visibility) -> Self {
        let style = match visibility {
            Visibility::Hidden => Style::Hidden,
            Visibility::Shown if io::stderr().is_terminal() => Style::Bar,
            Visibility::Shown => Style::Lines,
        };
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let template =
            if total == 0 { "{prefix} {pos} {msg}" } else { "{prefix} {bar:30} {pos}/{len} {msg}" };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("█▌░"));
        }
        bar.set_prefix(label);
        let now = Instant::now();
        Self { label, bar, started: now, style, last_line: Mutex::new(now) }
    }

    /// The work has come to `position`.
    pub(crate) fn at(&self, position: u64, message: &str) {
        self.bar.set_position(position);
        self.bar.set_message(message.to_owned());
        match self.style {
            Style::Bar if self.bar.is_hidden() && self.started.elapsed() >= DELAY => {
                self.bar.set_draw_target(ProgressDrawTarget::stderr());
            }
            Style::Lines => self.line(position, message),
            Style::Bar | Style::Hidden => {}
        }
    }

    fn line(&self, position: u64, message: &str) {
        let Ok(mut last) = self.last_line.lock() else { return };
        if last.elapsed() < LINE_EVERY {
            return;
        }
        *last = Instant::now();
        let total =
            self.bar.length().filter(|total| *total > 0).map_or_else(String::new, |t| format!("/{t}"));
        let _ = io::Write::write_fmt(
            &mut io::stderr(),
            format_args!("{} {position}{total} {message}\n", self.label),
        );
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
