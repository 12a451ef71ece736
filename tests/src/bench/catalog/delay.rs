//! A wire that is longer than it is: a proxy that holds back every byte for a while, in both directions.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

/// Pieces that are under way at most, in one direction of a connection.
const UNDER_WAY: usize = 1_024;

/// A proxy that runs until it is dropped.
#[derive(Debug)]
pub(super) struct Delay {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Delay {
    /// Forwards to `upstream` (`host:port`); a question and its answer take `round_trip` longer.
    pub(super) async fn start(upstream: &str, round_trip: Duration) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let upstream = upstream.to_owned();
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(join(client, upstream.clone(), round_trip / 2));
            }
        });
        Ok(Self { address, task })
    }

    /// A catalog's address through the proxy.
    pub(super) fn uri(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Delay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Carries one connection until either end closes it.
async fn join(client: TcpStream, upstream: String, one_way: Duration) -> Result<()> {
    let server = TcpStream::connect(&upstream).await.context(upstream)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    tokio::try_join!(carry(from_client, to_server, one_way), carry(from_server, to_client, one_way))?;
    Ok(())
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, one_way: Duration) -> Result<()> {
    let (sent, mut under_way) = mpsc::channel::<(Instant, Vec<u8>)>(UNDER_WAY);
    let reads = async move {
        let mut piece = vec![0; 64 << 10];
        loop {
            let length = from.read(&mut piece).await?;
            if length == 0 || sent.send((Instant::now() + one_way, piece[..length].to_vec())).await.is_err() {
                return anyhow::Ok(());
            }
        }
    };
    let writes = async move {
        while let Some((due, piece)) = under_way.recv().await {
            sleep_until(due).await;
            to.write_all(&piece).await?;
        }
        to.shutdown().await?;
        anyhow::Ok(())
    };
    tokio::try_join!(reads, writes)?;
    Ok(())
}
