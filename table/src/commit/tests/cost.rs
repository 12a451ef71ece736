//! The cost of a commit stays flat.

use super::world::{Ids, World, committed};

/// K12, in small: no data manifest is read on an ordinary append, a merge reads a bounded number, and the number of
/// manifests stays bounded.
#[tokio::test]
async fn reads_per_append_do_not_grow_and_manifests_stay_bounded() {
    const APPENDS: i64 = 2_500;
    let world = World::new();
    let handle = world.open().await;
    let mut ids = Ids::new();
    let (mut most_manifests, mut reads, mut merges) = (0, 0, 0);
    for at in 0..APPENDS {
        let before = (world.meter.reads(), world.catalog.loads(), world.meter.writes());
        let flush = world.flush(ids.next(), at, at + 1).await;
        let done = committed(handle.append(flush).await.unwrap());
        let (read, written) = (world.meter.reads() - before.0, world.meter.writes() - before.2);
        // Data file, manifest, list; and where manifests are merged, the merged one.
        assert!(written == 3 || (written == 4 && read > 0), "append {at} wrote {written} and read {read}");
        assert!(read == 0 || read == 100, "append {at} read {read}");
        assert_eq!(world.catalog.loads() - before.1, usize::from(at == 0));
        reads += read;
        merges += usize::from(read > 0);
        let summary =
            &done.table.metadata().snapshot_by_id(done.snapshot_id).unwrap().summary().additional_properties;
        let number = |name: &str| summary[name].parse::<usize>().unwrap();
        most_manifests = most_manifests.max(number("manifests-created") + number("manifests-kept"));
    }
    assert!(most_manifests < 250, "{most_manifests} manifests");
    // One at each hundred but the last, which is not in a parent yet.
    assert_eq!((reads, merges), (100 * 24, 24));
    assert_eq!(world.rows().await, 2_500);
    let total =
        world.catalog.metadata().current_snapshot().unwrap().summary().additional_properties["total-records"]
            .clone();
    assert_eq!(total, "2500");
}
