//! A Kafka broker within the process: Tansu on 127.0.0.1, everything in memory.
//!
//! It runs on a runtime of its own, so that encoding and compacting do not keep it waiting, and so that it ends
//! with all its connections when the runtime is dropped.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use firn_writer::kafka::cluster::probe;
use tansu_broker::broker::Builder;
use tokio::runtime::Runtime;
use url::Url;
use uuid::Uuid;

/// The longest wait for the first answer.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Between two questions whether it answers.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// A running broker; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct EmbeddedBroker {
    address: String,
    runtime: Option<Runtime>,
}

impl EmbeddedBroker {
    /// Starts a broker on a free port and waits until it answers.
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let port = free_port()?;
        let address = format!("127.0.0.1:{port}");
        let listener = Url::parse(&format!("tcp://{address}"))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("embedded-broker")
            .enable_all()
            .build()
            .context("the embedded broker's runtime cannot be started")?;
        runtime.spawn(async move {
            if let Err(error) = serve(listener).await {
                tracing::error!(%error, "the embedded broker ended");
            }
        });
        let broker = Self { address, runtime: Some(runtime) };
        broker.wait().await?;
        Ok(broker)
    }

    /// Properties with which librdkafka is fast on this broker: it answers a fetch when its wait is over, not when
    /// data comes, so the wait is short.
    pub(crate) fn properties(&self) -> BTreeMap<String, String> {
        [
            ("bootstrap.servers", self.address.as_str()),
            ("fetch.wait.max.ms", "10"),
            ("fetch.queue.backoff.ms", "10"),
            ("fetch.message.max.bytes", "8388608"),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
    }

    async fn wait(&self) -> anyhow::Result<()> {
        let started = Instant::now();
        loop {
            // A port that accepts is not yet a broker that answers.
            if tokio::net::TcpStream::connect(&self.address).await.is_ok()
                && probe(&self.properties(), &[], Duration::from_secs(5)).await.is_ok()
            {
                return Ok(());
            }
            if started.elapsed() > START_TIMEOUT {
                anyhow::bail!(
                    "the embedded broker did not answer at {} within {START_TIMEOUT:?}",
                    self.address
                );
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
    }
}

impl Drop for EmbeddedBroker {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Dropping a runtime waits, which is not allowed on another runtime's thread.
            runtime.shutdown_background();
        }
    }
}

/// A builder of which nothing is known yet.
type Empty = Builder<
    PhantomData<i32>,
    PhantomData<String>,
    PhantomData<Uuid>,
    PhantomData<Url>,
    PhantomData<Url>,
    PhantomData<Url>,
>;

async fn serve(listener: Url) -> anyhow::Result<()> {
    let mut broker = Empty::default()
        .node_id(1)
        .cluster_id("firn-demo")
        .incarnation_id(Uuid::now_v7())
        .advertised_listener(listener.clone())
        .listener(listener)
        .storage(Url::parse("memory://tansu/")?)
        .silent(true)
        .build()
        .await?;
    broker.serve(tokio::time::Instant::now()).await?;
    Ok(())
}

/// A port that is free now. Another process may take it before the broker does, which then fails to start.
fn free_port() -> anyhow::Result<u16> {
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free on 127.0.0.1")?;
    Ok(socket.local_addr()?.port())
}
