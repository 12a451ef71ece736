//! Partitions are handed over while the catalog lets a writer wait.

use std::sync::Arc;
use std::time::Duration;

use firn_tests::sim::actors::{Teller, WriterPlan, writer_parts};
use firn_tests::sim::life::Destiny;
use firn_tests::sim::network::Kind;
use firn_tests::sim::records::Role;
use firn_tests::sim::stage;
use firn_writer::pipeline::run_pipeline;
use tokio_util::sync::CancellationToken;

/// A writer asks where the topic ends and then waits for the catalog; meanwhile another deployment commits what was
/// produced since. The cursor beyond the end that was seen is no sign of a topic that was cut off.
#[test]
fn what_is_committed_while_a_writer_waits_for_the_catalog_is_no_truncation() {
    stage::play(|stage| async move {
        let first = stage.writer("writer-1", stage.plan());
        stage.produce(0, 1);
        stage.committed(0, 1).await;
        stage.pass(Duration::from_secs(1)).await;

        let plan = WriterPlan { group: "other".to_owned(), ..stage.plan() };
        let process = stage.process(Role::Writer, "writer-2", Destiny::default());
        let parts = writer_parts(&process, plan.config(), &plan.group).await.unwrap();
        stage.world.network().order((Role::Writer, Kind::Load), "", "hangs");
        let (stop, own) = (CancellationToken::new(), process.clone());
        let token = stop.clone();
        let second = tokio::spawn(async move {
            let work = async { run_pipeline(parts, Arc::new(Teller(own.clone())), token).await.map(drop) };
            own.live(work).await
        });
        stage.pass(Duration::from_millis(100)).await;
        assert_eq!(stage.world.network().outstanding_orders(), 0, "the second writer waits");
        stage.produce(0, 50);
        stage.committed(0, 51).await;
        stage.pass(Duration::from_secs(20)).await;
        assert!(!second.is_finished(), "the second writer goes on");
        stop.cancel();
        second.await.unwrap().unwrap().unwrap();
        first.stop().await.unwrap();
    });
}
