//! SIGINT and SIGTERM: the first asks to bring the work to an end, the second ends the process.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::exit::ExitCode;

/// Begins to listen. The token is cancelled by the first signal; at the second one the process exits with 130.
pub(crate) fn listen() -> std::io::Result<CancellationToken> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let token = CancellationToken::new();
    let cancelled = token.clone();
    tokio::spawn(async move {
        either(&mut interrupt, &mut terminate).await;
        tracing::warn!("stopping: what is in hand is brought to an end; a second signal stops at once");
        cancelled.cancel();
        either(&mut interrupt, &mut terminate).await;
        std::process::exit(i32::from(ExitCode::Interrupted.number()));
    });
    Ok(token)
}

async fn either(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
