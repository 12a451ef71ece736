//! Several processes of one writer.

use std::time::Duration;

use anyhow::Result;
use firn_tests::checks::After;
use firn_tests::scratch::eventually;

use crate::stream::{LIMIT, Stream, TABLE};

/// K5, K2: a process that slept while another took its partitions over finds its flush overtaken.
#[tokio::test]
#[ignore = "needs Kafka: tests/run kafka"]
async fn a_paused_writer_does_not_write_again_what_its_successor_wrote() -> Result<()> {
    let stream = Stream::new("paused", 1).await?;
    stream.produce(0..100)?;
    let sleeper = stream.writer(&[], "sleeper.log")?;
    stream.wait_for_offsets(100).await?;
    // It holds messages that are not committed when it is put to sleep.
    stream.produce(100..400)?;
    sleeper.pause()?;
    let successor = stream.writer(&[], "successor.log")?;
    stream.produce(400..500)?;
    stream.wait_for_offsets(500).await?;
    sleeper.wake()?;
    stream.produce(500..1_000)?;
    stream.wait_for_offsets(1_000).await?;
    sleeper.stop(LIMIT).await?;
    successor.stop(LIMIT).await?;
    stream.holds(0..1_000, After::GracefulStop).await?;
    stream.holds_each_offset_once().await
}

/// K5, second half: two deployments under one name, each with a consumer group of its own, read the same partitions.
#[tokio::test]
#[ignore = "needs Kafka: tests/run kafka"]
async fn of_two_deployments_under_one_name_one_stops_and_names_both_commits() -> Result<()> {
    let stream = Stream::new("two-deployments", 1).await?;
    stream.produce(0..10)?;
    let options = |group| {
        let group = format!("group.id={group}");
        vec!["--kafka-property".to_owned(), group, "--set".to_owned(), "write.max-overtaken=3".to_owned()]
    };
    let (one, other) = (options("one"), options("other"));
    let start =
        |options: &[String], log| stream.writer(&options.iter().map(String::as_str).collect::<Vec<_>>(), log);
    let mut writers = [start(&one, "one.log")?, start(&other, "other.log")?];
    let mut produced = 10;
    let deadline = std::time::Instant::now() + LIMIT;
    let stopped = loop {
        assert!(std::time::Instant::now() < deadline, "both still run: {}", writers[0].said()?);
        stream.produce(produced..produced + 5)?;
        produced += 5;
        tokio::time::sleep(Duration::from_millis(20)).await;
        let ended = [writers[0].ended()?, writers[1].ended()?];
        if let Some(at) = ended.iter().position(Option::is_some) {
            break at;
        }
    };
    assert_eq!(writers[stopped].ended()?.and_then(|status| status.code()), Some(8));
    let said = writers[stopped].said()?;
    let commit_ids: std::collections::BTreeSet<&str> = said
        .lines()
        .last()
        .unwrap_or_default()
        .split(|c: char| !c.is_ascii_hexdigit() && c != '-')
        .filter(|word| word.len() > 36 && word.matches('-').count() == 5)
        .collect();
    assert_eq!(commit_ids.len(), 2, "both commit ids: {said}");
    let [one, other] = writers;
    let left = if stopped == 0 { other } else { one };
    stream.wait_for_offsets(i64::try_from(produced)?).await?;
    left.stop(LIMIT).await?;
    stream.holds(0..produced, After::GracefulStop).await
}

/// K14, with two processes: each is stopped and started again in turn, in good order, while messages come.
#[tokio::test]
#[ignore = "needs Kafka: tests/run kafka"]
async fn a_rolling_restart_of_two_processes_loses_and_doubles_nothing() -> Result<()> {
    let stream = Stream::new("rolling", 6).await?;
    let mut produced = 0;
    let (a, b) = (stream.started_writer(&[], "a-0.log").await?, stream.started_writer(&[], "b-0.log").await?);
    let mut writers = [Some(a), Some(b)];
    for round in 1..=8 {
        for _ in 0..10 {
            stream.produce(produced..produced + 300)?;
            produced += 300;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let at = round % 2;
        if let Some(writer) = writers[at].take() {
            writer.stop(LIMIT).await?;
        }
        let name = if at == 0 { "a" } else { "b" };
        writers[at] = Some(stream.started_writer(&[], &format!("{name}-{round}.log")).await?);
    }
    stream.wait_for_offsets(i64::try_from(produced)?).await?;
    for writer in writers.into_iter().flatten() {
        writer.stop(LIMIT).await?;
    }
    stream.holds(0..produced, After::GracefulStop).await?;
    stream.holds_each_offset_once().await
}

/// Both processes of a group get partitions, and both write.
#[tokio::test]
#[ignore = "needs Kafka: tests/run kafka"]
async fn partitions_are_shared_between_two_processes() -> Result<()> {
    let stream = Stream::new("shared", 4).await?;
    let (a, b) = (stream.writer(&[], "a.log")?, stream.writer(&[], "b.log")?);
    let mut produced = 0;
    let both_wrote = || {
        produced += 100;
        let produced = stream.produce(produced - 100..produced);
        async {
            produced?;
            let (table, _) = stream.warehouse.table(TABLE).await?;
            let commits = table.metadata().snapshots().filter_map(|snapshot| {
                snapshot.summary().additional_properties.get("firn.commit-id").cloned()
            });
            // A commit id is the process's own UUID and a number.
            let instances: std::collections::BTreeSet<String> =
                commits.filter_map(|id| Some(id.rsplit_once('-')?.0.to_owned())).collect();
            Ok((instances.len() == 2).then_some(()))
        }
    };
    eventually("commits of both processes", LIMIT, both_wrote).await?;
    stream.wait_for_offsets(i64::try_from(produced)?).await?;
    a.stop(LIMIT).await?;
    b.stop(LIMIT).await?;
    stream.holds(0..produced, After::GracefulStop).await
}
