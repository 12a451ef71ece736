//! Kills, pauses and outages, one of each, under a seed.

use std::time::Duration;

use anyhow::Result;
use firn_tests::kafka::Brokers;
use firn_tests::scratch;
use firn_tests::torment::{CatalogKind, Harm, Harms, Setting, run};

/// K5, K14, and what else can happen to processes, a broker and a disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Kafka: tests/run kafka"]
async fn writers_and_a_compactor_survive_kills_pauses_a_broker_and_a_disk() -> Result<()> {
    let setting = Setting {
        seed: scratch::seed()?,
        catalog: CatalogKind::Sqlite,
        brokers: Brokers::One,
        harms: Harms::Each(vec![
            Harm::KillBoth,
            Harm::PauseWriter,
            Harm::PauseCompactor,
            Harm::RestartWriter,
            Harm::RestartBroker,
            Harm::ReadOnlyWarehouse,
            Harm::FullWarehouse,
        ]),
        // Longer than the session of three seconds.
        lengths: (Duration::from_millis(3_500), Duration::from_secs(4)),
    };
    println!("FIRN_TEST_SEED={}", setting.seed);
    println!("{}", run("torment", setting).await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Kafka: tests/run kafka"]
async fn partitions_that_get_other_leaders_lose_and_double_nothing() -> Result<()> {
    let setting = Setting {
        seed: scratch::seed()?,
        catalog: CatalogKind::Sqlite,
        brokers: Brokers::Three,
        harms: Harms::Each(vec![Harm::RestartBroker, Harm::KillWriter]),
        lengths: (Duration::from_secs(4), Duration::from_secs(5)),
    };
    println!("FIRN_TEST_SEED={}", setting.seed);
    println!("{}", run("leaders", setting).await?);
    Ok(())
}
