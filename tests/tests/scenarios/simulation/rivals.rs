//! Several processes of one writer.

use std::time::Duration;

use firn_table::ErrorKind;
use firn_tests::sim::actors::partition;
use firn_tests::sim::network::Kind;
use firn_tests::sim::records::{Role, Tale};
use firn_tests::sim::stage::{self, Stage};
use firn_writer::Event;

fn overtaken(stage: &Stage, name: &str) -> usize {
    stage.world.read(|records| {
        let told = records.told.iter().filter(|told| told.by.name == name);
        told.filter(
            |told| matches!(&told.what, Tale::Writer(event) if matches!(**event, Event::Overtaken { .. })),
        )
        .count()
    })
}

#[test]
fn a_process_that_wakes_after_another_took_over_discards_what_it_had() {
    stage::play(|stage| async move {
        let sleeper = stage.writer("sleeper", stage.plan());
        stage.produce(0, 100);
        stage.committed(0, 100).await;
        stage.world.network().order((Role::Writer, Kind::Put), ".parquet", "slow-put");
        stage.produce(0, 5);
        stage.until("its file is on its way", |stage| stage.world.network().outstanding_orders() == 0).await;
        sleeper.process.life().pause(Duration::from_secs(120));
        let other = stage.writer("other", stage.plan());
        stage.committed(0, 105).await;
        stage.pass(Duration::from_secs(180)).await;
        stage.produce(0, 10);
        stage.committed(0, 115).await;
        assert_eq!(stage.cursor(0).map(|cursor| cursor.rows), Some(115));
        assert_eq!(overtaken(&stage, "sleeper"), 1);
        sleeper.stop().await.unwrap();
        other.stop().await.unwrap();
    });
}

#[test]
fn of_two_deployments_with_one_name_one_stops_and_names_both_commits() {
    stage::play(|stage| async move {
        let ours = stage.writer("ours", stage.plan());
        let mut theirs = stage.plan();
        theirs.group = "another".to_owned();
        let theirs = stage.writer("theirs", theirs);
        let feeding = stage.clone();
        let feed = tokio::spawn(async move {
            for _ in 0..3_000 {
                feeding.produce(0, 1);
                feeding.pass(Duration::from_millis(50)).await;
            }
        });
        let stopped = |stage: &Stage| {
            stage
                .world
                .read(|records| records.told.iter().any(|told| matches!(told.what, Tale::Ended(Err(_)))))
        };
        stage.until("one of the two stops", stopped).await;
        let both = [ours, theirs];
        feed.await.unwrap();
        stage.committed(0, 3_000).await;
        let mut ends = Vec::new();
        for writer in both {
            ends.push(writer.stop().await);
        }
        let errors: Vec<_> = ends.into_iter().filter_map(Result::err).collect();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(errors[0].kind(), ErrorKind::Overtaken);
        assert_eq!(errors[0].to_string().matches("commit `").count(), 2, "{}", errors[0]);
        assert_eq!(stage.cursor(0).map(|cursor| cursor.rows), Some(3_000));
    });
}

#[test]
fn a_new_owner_is_overtaken_by_a_request_of_the_old_one_and_goes_on_behind_it() {
    stage::play(|stage| async move {
        let old = stage.writer("old", stage.plan());
        stage.produce(0, 100);
        stage.committed(0, 100).await;
        stage.world.network().order((Role::Writer, Kind::Commit), "", "applied-late");
        stage.produce(0, 10);
        stage
            .until("the request is under way", |stage| stage.world.network().outstanding_orders() == 0)
            .await;
        old.process.life().crash();
        assert!(old.end().await.is_none());
        let new = stage.writer("new", stage.plan());
        stage.committed(0, 110).await;
        stage.produce(0, 3);
        stage.committed(0, 113).await;
        stage.pass(Duration::from_secs(60)).await;
        assert_eq!(stage.cursor(0).map(|cursor| cursor.rows), Some(113));
        new.stop().await.unwrap();
    });
}

#[test]
fn partitions_of_a_process_that_is_not_scheduled_go_to_another() {
    stage::play(|stage| async move {
        let (one, two) = (stage.writer("one", stage.plan()), stage.writer("two", stage.plan()));
        (0..4).for_each(|of| stage.produce(of, 10));
        for of in 0..4 {
            stage.committed(of, 10).await;
        }
        one.process.life().pause(Duration::from_secs(100));
        (0..4).for_each(|of| stage.produce(of, 10));
        for of in 0..4 {
            stage.committed(of, 20).await;
        }
        assert!(one.process.life().is_paused(), "the other took over while it slept");
        stage.pass(Duration::from_secs(200)).await;
        (0..4).for_each(|of| stage.produce(of, 1));
        for of in 0..4 {
            stage.committed(of, 21).await;
        }
        one.stop().await.unwrap();
        two.stop().await.unwrap();
    });
}

#[test]
fn eight_writers_with_partitions_of_their_own_share_a_table() {
    stage::play(|stage| async move {
        stage.world.log().create_topic(firn_tests::sim::actors::TOPIC, 8);
        let writers: Vec<_> = (0..8).map(|n| stage.writer(&format!("writer-{n}"), stage.plan())).collect();
        for _ in 0..200 {
            (0..8).for_each(|of| stage.produce(of, 5));
            stage.pass(Duration::from_millis(300)).await;
        }
        for of in 0..8 {
            stage.committed(of, 1_000).await;
        }
        for writer in writers {
            writer.stop().await.unwrap();
        }
        let snapshots = stage.table().metadata().snapshots().len();
        assert!(snapshots <= 8 * 200, "{snapshots} snapshots");
        for of in 0..8 {
            assert_eq!(stage.cursor(of).map(|cursor| cursor.rows), Some(1_000), "{}", partition(of));
        }
    });
}

#[test]
fn a_rolling_restart_every_five_seconds_loses_and_doubles_nothing() {
    stage::play(|stage| async move {
        let start = |stage: &Stage, n: usize, round: usize| {
            stage.writer(&format!("writer-{n}'{round}"), stage.plan())
        };
        let mut writers: Vec<_> = (0..10).map(|n| start(&stage, n, 0)).collect();
        for round in 0..24 {
            let n = round % writers.len();
            let fresh = start(&stage, n, round + 1);
            std::mem::replace(&mut writers[n], fresh).stop().await.unwrap();
            for _ in 0..5 {
                (0..4).for_each(|of| stage.produce(of, 3));
                stage.pass(Duration::from_secs(1)).await;
            }
        }
        for of in 0..4 {
            stage.committed(of, 24 * 15).await;
            assert_eq!(stage.cursor(of).map(|cursor| cursor.rows), Some(24 * 15));
        }
        for writer in writers {
            writer.stop().await.unwrap();
        }
        assert!((0..10).all(|n| overtaken(&stage, &format!("writer-{n}'0")) < 20));
    });
}
