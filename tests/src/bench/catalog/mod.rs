//! Committers that share a REST catalog 40 ms away: whether they keep their freshness, at what rate the catalog has
//! enough, and what happens then.
//!
//! Rows arrive at a steady rate. A committer seals what has arrived as soon as its last commit is through, but not
//! before its interval has passed, as a writer does; where commits take longer than that, flushes grow.

mod delay;
mod load;

use std::time::Duration;

use anyhow::Result;
use firn_tests::servers;

use self::delay::Delay;
use self::load::{Tables, Wish, measure};
use crate::{Length, print};

const ROUND_TRIP: Duration = Duration::from_millis(40);

pub(crate) async fn run(length: Length) -> Result<()> {
    let uri = match servers::rest() {
        Ok(uri) => uri,
        Err(error) => return print(format_args!("catalog: left out, {error:#}")),
    };
    let upstream = uri.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let delay = Delay::start(&upstream, ROUND_TRIP).await?;
    print(format_args!(
        "catalog: committers on one REST catalog, {} ms away; 1,000 rows a second arrive at each",
        ROUND_TRIP.as_millis()
    ))?;
    let seconds = if length == Length::Short { 8 } else { 20 };
    let wishes: &[(Tables, &[usize], &[u64])] = match length {
        Length::Short => &[(Tables::Shared, &[2], &[1_000, 0])],
        Length::Full => {
            &[(Tables::Shared, &[1, 2, 4, 8], &[1_000, 250, 0]), (Tables::Own, &[2, 8, 16], &[1_000, 0])]
        }
    };
    print(format_args!(
        "  tables  committers  wanted/s  commits/s (all; least and most of one)  commit p50  p99  max ms  conflicts  \
         freshness p50  p99  max ms  KB a file"
    ))?;
    for (tables, committers, intervals) in wishes {
        for committers in *committers {
            for interval_ms in *intervals {
                let wish = Wish {
                    tables: *tables,
                    committers: *committers,
                    interval: Duration::from_millis(*interval_ms),
                    length: Duration::from_secs(seconds),
                };
                print(measure(&delay.uri(), &wish).await?)?;
            }
        }
    }
    Ok(())
}
