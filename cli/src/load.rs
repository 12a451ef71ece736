//! Produces generated messages at a rate, on a thread of its own.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use firn_writer::generate::Generator;
use firn_writer::kafka::producer::{Deliveries, Producer, Record};
use tokio_util::sync::CancellationToken;

/// The longest wait for the last acknowledgements.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(60);
/// Between two looks at the clock and at the deliveries.
const SLICE: Duration = Duration::from_millis(10);
/// Messages between two looks, when there is no rate.
const SLICE_MESSAGES: u64 = 2_000;

/// What to produce, where and how fast.
#[derive(Debug)]
pub(crate) struct Load {
    /// librdkafka's properties.
    pub kafka: BTreeMap<String, String>,
    /// The topic, which exists.
    pub topic: String,
    /// Makes the messages.
    pub generator: Generator,
    /// How fast.
    pub rate: Rate,
    /// When it ends; never where neither is set.
    pub limit: Limit,
}

/// How fast to produce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rate {
    /// As fast as the broker takes messages.
    Max,
    /// Messages per second over all partitions.
    PerSecond(u64),
    /// Messages per second that grow or fall evenly, and then stay.
    Ramp {
        /// At the start.
        from: u64,
        /// At the end, and from then on.
        to: u64,
        /// How long it takes to get there.
        over: Duration,
    },
}

/// When to stop: at whichever comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limit {
    /// After this many messages.
    pub count: Option<u64>,
    /// After this time.
    pub time: Option<Duration>,
}

/// Produces until the limit or `stop`, then waits for the last acknowledgements. `watch` is called from time to time.
pub(crate) async fn run(
    load: Load,
    stop: CancellationToken,
    watch: impl Fn(Deliveries) + Send + 'static,
) -> anyhow::Result<Deliveries> {
    tokio::task::spawn_blocking(move || {
        let producer = Producer::new(&load.kafka)?;
        // The first message opens the connections and gets the producer its id, for which librdkafka takes a second.
        // The clock starts when it is acknowledged, so that the rest are not late before they are sent.
        send(&load, &producer, 0)?;
        producer.flush(FLUSH_TIMEOUT)?;
        let mut sent = 1;
        let started = Instant::now();
        while !stop.is_cancelled() {
            let elapsed = started.elapsed();
            let due = due(load.rate, load.limit, elapsed, sent);
            for index in sent..due {
                send(&load, &producer, index)?;
            }
            sent = due;
            watch(producer.deliveries());
            if ended(load.limit, elapsed, sent) {
                break;
            }
            if load.rate != Rate::Max {
                std::thread::sleep(SLICE);
            }
        }
        Ok(producer.flush(FLUSH_TIMEOUT)?)
    })
    .await?
}

/// How many messages should have been sent when `elapsed` has passed.
fn due(rate: Rate, limit: Limit, elapsed: Duration, sent: u64) -> u64 {
    let by_rate = match rate {
        Rate::Max => sent + SLICE_MESSAGES,
        Rate::PerSecond(rate) => {
            let elapsed = limit.time.map_or(elapsed, |time| elapsed.min(time));
            let due = u128::from(rate) * elapsed.as_micros() / 1_000_000;
            u64::try_from(due).unwrap_or(u64::MAX)
        }
        Rate::Ramp { from, to, over } => {
            let elapsed = limit.time.map_or(elapsed, |time| elapsed.min(time));
            ramped(from as f64, to as f64, over, elapsed) as u64
        }
    };
    by_rate.min(limit.count.unwrap_or(u64::MAX)).max(sent)
}

/// The area under the ramp: rising or falling until `over`, then even.
fn ramped(from: f64, to: f64, over: Duration, elapsed: Duration) -> f64 {
    let (whole, over) = (elapsed.as_secs_f64(), over.as_secs_f64());
    let within = whole.min(over);
    let slope = if over > 0.0 { (to - from) / over } else { 0.0 };
    from * within + slope * within * within / 2.0 + to * (whole - within)
}

fn ended(limit: Limit, elapsed: Duration, sent: u64) -> bool {
    limit.count.is_some_and(|count| sent >= count) || limit.time.is_some_and(|time| elapsed >= time)
}

fn send(load: &Load, producer: &Producer, index: u64) -> anyhow::Result<()> {
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
    let message = load.generator.message(index, now_ms);
    producer.send(Record {
        topic: &load.topic,
        partition: Some(message.partition),
        key: message.key.as_deref(),
        value: Some(&message.payload),
        timestamp_ms: Some(now_ms),
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_rate_is_kept_whatever_the_slices() {
        let rate = Rate::PerSecond(4_000);
        assert_eq!(due(rate, Limit::default(), Duration::from_millis(250), 0), 1_000);
        assert_eq!(due(rate, Limit::default(), Duration::from_secs(60), 100_000), 240_000);
    }

    #[test]
    fn a_ramp_sends_what_is_under_it_and_then_keeps_its_end() {
        let up = Rate::Ramp { from: 1_000, to: 3_000, over: 10 * SECOND };
        let at = |rate, seconds: u32| due(rate, Limit::default(), seconds * SECOND, 0);
        assert_eq!([0, 5, 10, 12].map(|seconds| at(up, seconds)), [0, 7_500, 20_000, 26_000]);
        let down = Rate::Ramp { from: 2_000, to: 0, over: 4 * SECOND };
        assert_eq!([1, 4, 9].map(|seconds| at(down, seconds)), [1_750, 4_000, 4_000]);
        let time = Limit { count: None, time: Some(5 * SECOND) };
        assert_eq!(due(up, time, 8 * SECOND, 0), 7_500);
    }

    #[test]
    fn limits_of_count_and_time_are_exact() {
        let count = Limit { count: Some(10), time: None };
        assert_eq!(due(Rate::Max, count, SECOND, 0), 10);
        assert!(ended(count, SECOND, 10));
        assert!(!ended(count, SECOND, 9));
        let time = Limit { count: None, time: Some(SECOND) };
        assert_eq!(due(Rate::PerSecond(7), time, SECOND * 3, 0), 7, "a late slice does not overshoot");
        assert!(ended(time, SECOND, 0));
    }

    #[test]
    fn what_is_sent_is_never_taken_back() {
        assert_eq!(due(Rate::PerSecond(1), Limit::default(), Duration::ZERO, 5), 5);
    }
}
