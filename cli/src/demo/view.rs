//! The live view: a few lines that are redrawn on a terminal, one line every few seconds elsewhere.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use firn_table::commit::TableHandle;
use firn_table::layout::live_files;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::demo::setup::Stage;
use crate::demo::tally::{Counted, Tally};
use crate::progress::Visibility;
use crate::render::bars;
use crate::units;

/// Between two pictures on a terminal.
const REDRAW_EVERY: Duration = Duration::from_millis(500);
/// Between two lines elsewhere.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// The width of the bar of small and large files.
const BAR: usize = 20;

/// Shows the demo while it runs.
#[derive(Debug)]
pub(crate) struct View {
    task: JoinHandle<()>,
    done: CancellationToken,
}

/// What is shown at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Picture {
    elapsed: Duration,
    seconds: u64,
    counted: Counted,
    small: Part,
    large: Part,
}

/// Files of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Part {
    files: u64,
    bytes: u64,
}

/// Where pictures go.
enum Screen {
    Terminal(ProgressBar),
    Lines,
    Nowhere,
}

impl View {
    /// Starts to show. On a terminal where progress may be shown, the picture is redrawn in place.
    pub(crate) fn start(stage: &Stage, tally: Arc<Tally>, context: &Context) -> Self {
        let (screen, every) = match context.visibility() {
            Visibility::Hidden => (Screen::Nowhere, LINE_EVERY),
            Visibility::Shown if io::stderr().is_terminal() => (terminal(), REDRAW_EVERY),
            Visibility::Shown => (Screen::Lines, LINE_EVERY),
        };
        screen.announce(stage);
        let done = CancellationToken::new();
        let (handle, seconds, until) = (stage.handle.clone(), stage.seconds, done.clone());
        let task = tokio::spawn(async move {
            let started = Instant::now();
            let mut ticks = tokio::time::interval(every);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            ticks.tick().await;
            while until.run_until_cancelled(ticks.tick()).await.is_some() {
                screen.show(&picture(&handle, &tally, started.elapsed(), seconds).await);
            }
            screen.show(&picture(&handle, &tally, started.elapsed(), seconds).await);
            screen.close();
        });
        Self { task, done }
    }

    /// Shows the last picture and ends.
    pub(crate) async fn finish(self) {
        self.done.cancel();
        let _ = self.task.await;
    }
}

async fn picture(handle: &TableHandle, tally: &Tally, elapsed: Duration, seconds: u64) -> Picture {
    let mut picture = Picture { elapsed, seconds, counted: tally.snapshot(), ..Picture::default() };
    let table = handle.table();
    let Some(head) = table.metadata().current_snapshot_id() else { return picture };
    // The picture is worth no error: a table that cannot be read stops writer and compactor, which say so.
    let files = live_files(&table, head).await.unwrap_or_default();
    for file in files {
        let bytes = file.file.file_size_in_bytes();
        let part = if bytes < Stage::small_below_bytes() { &mut picture.small } else { &mut picture.large };
        part.files += 1;
        part.bytes += bytes;
    }
    picture
}

fn terminal() -> Screen {
    let style = ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style);
    Screen::Terminal(bar)
}

/// Lines of the picture on a terminal.
const LINES: usize = 6;

impl Screen {
    fn announce(&self, stage: &Stage) {
        if !matches!(self, Self::Nowhere) {
            let where_to = stage.directory.display();
            let _ = writeln!(
                io::stderr(),
                "firn demo: {} messages a second for {} s, in {where_to}",
                units::format_count(stage.rate),
                stage.seconds,
            );
        }
    }

    fn show(&self, picture: &Picture) {
        match self {
            Self::Terminal(bar) => bar.set_message(block(picture).join("\n")),
            Self::Lines => {
                let _ = writeln!(io::stderr(), "{}", line(picture));
            }
            Self::Nowhere => {}
        }
    }

    /// Leaves the last picture on the terminal.
    fn close(&self) {
        if let Self::Terminal(bar) = self {
            bar.abandon();
        }
    }
}

fn per_second(count: u64, picture: &Picture) -> f64 {
    count as f64 / picture.elapsed.as_secs_f64().max(0.001)
}

fn block(picture: &Picture) -> [String; LINES] {
    let Picture { counted, small, large, elapsed, seconds } = picture;
    let done = elapsed.as_secs_f64() / (*seconds).max(1) as f64;
    let latency = |millis: u64| units::format_millis(millis as f64);
    [
        format!(
            "  {:<12} {:<BAR$} {} s of {seconds} s",
            "time",
            bars::bar(done, BAR),
            elapsed.as_secs().min(*seconds)
        ),
        format!(
            "  {:<12} {} messages, {}, {}/s",
            "produced",
            units::format_count(counted.produced),
            units::format_bytes(counted.produced_bytes),
            units::format_count(per_second(counted.produced, picture) as u64),
        ),
        format!(
            "  {:<12} {} rows, {} still on their way",
            "in the table",
            units::format_count(counted.rows),
            units::format_count(counted.produced.saturating_sub(counted.rows)),
        ),
        format!(
            "  {:<12} p50 {}  p95 {}  p99 {}",
            "latency",
            latency(counted.latency.p50),
            latency(counted.latency.p95),
            latency(counted.latency.p99),
        ),
        format!(
            "  {:<12} {} {} small ({}), {} large ({})",
            "files",
            bars::split_bar(small.files, large.files, BAR),
            small.files,
            units::format_bytes(small.bytes),
            large.files,
            units::format_bytes(large.bytes),
        ),
        format!(
            "  {:<12} {:.1}/s by the writer, {} by the compactor",
            "commits",
            per_second(counted.commits, picture),
            counted.rewrites,
        ),
    ]
}

fn line(picture: &Picture) -> String {
    let Picture { counted, small, large, elapsed, .. } = picture;
    format!(
        "{:>4} s  produced {}  in the table {}  p50 {}  p99 {}  files {} small, {} large  commits {:.1}/s  rewrites {}",
        elapsed.as_secs(),
        units::format_count(counted.produced),
        units::format_count(counted.rows),
        units::format_millis(counted.latency.p50 as f64),
        units::format_millis(counted.latency.p99 as f64),
        small.files,
        large.files,
        per_second(counted.commits, picture),
        counted.rewrites,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::Latency;

    fn picture() -> Picture {
        Picture {
            elapsed: Duration::from_secs(10),
            seconds: 60,
            counted: Counted {
                produced: 40_000,
                produced_bytes: 40_000 << 10,
                rows: 39_200,
                commits: 50,
                rewrites: 1,
                latency: Latency { p50: 200, p95: 350, p99: 480, max: 700 },
                ..Counted::default()
            },
            small: Part { files: 9, bytes: 3 << 20 },
            large: Part { files: 1, bytes: 30 << 20 },
        }
    }

    #[test]
    fn without_a_terminal_it_is_one_line() {
        assert_eq!(
            line(&picture()),
            "  10 s  produced 40,000  in the table 39,200  p50 200 ms  p99 480 ms  files 9 small, 1 large  \
             commits 5.0/s  rewrites 1"
        );
    }

    #[test]
    fn on_a_terminal_it_fits_eighty_columns() {
        for line in block(&picture()) {
            assert!(line.chars().count() < 80, "{line}");
        }
        assert!(block(&picture())[4].contains("██████████████████░░ 9 small (3.00 MiB), 1 large"));
    }
}
