//! `firn chaos`: a proxy that does to requests what networks and servers do.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;

use crate::chaos::{
    Choice, Counts, Given, HostHeader, Journal, Proxy, Rule, RuleProblem, Upstream, bind, of_file,
    of_options, parse,
};
use crate::context::Context;
use crate::exit::{ExitCode, Failure};
use crate::units;

/// Below the options of `firn chaos --help`.
const HELP: &str = "\
Rules:
  METHOD[|METHOD…] PATH [query NAME[=GLOB]]… [header NAME=GLOB]… : FAULT [WHEN]…

  `*` as method stands for all. In PATH `*` stands for anything within a segment, `**` for anything; paths are compared
  as they are sent, escapes included. Words with spaces are quoted. For each request the rules are asked in order: the
  first one that fits and whose WHEN says so acts, the others do not.

  FAULT  status 503 [body TEXT | iceberg TYPE] [retry-after 5s]
                               answered here; `iceberg` makes the body of a catalog's error
         slowdown              answered with S3's 503 SlowDown
         apply-then 500 […]    forwarded, the reply dropped, this said instead (options as for status)
         apply-then reset      forwarded, the reply dropped, the connection reset
         delay 5s              held, then forwarded, also when the client has gone
         late 5s               answered with 504 at once, forwarded later
         hang                  never answered
         reset                 not forwarded, the connection reset
         truncate 100          the reply's body ends after 100 bytes; truncate-request: the request's
         slow 10KiB/s          both bodies at this rate
         drop-properties firn. table properties with this start are taken out of a catalog's request
         duplicate             sent twice, answered with the second reply
  WHEN   every 3 | first 2 | once | after 5 | share 0.1 | between 10s 40s, also several; a share is drawn under --seed

  A rule counts the requests that fit it and that no earlier rule took: under one seed its n-th request always meets
  the same decision. Bodies up to 64 MiB are kept where a fault needs that; longer ones are forwarded as they are.

Examples:
  Each third commit of a REST catalog lands, and its reply is lost:
    firn chaos --to http://127.0.0.1:8181 --rule 'POST /v1/**/tables/* : apply-then 500 every 3'
    firn write db.events --catalog http://127.0.0.1:PORT …          (the address is printed at the start)

  A store that throttles one upload in ten and cuts one read in fifty, the same ones under the same seed:
    firn chaos --to https://s3.eu-central-1.amazonaws.com --host upstream --seed 7 --log - \\
      --rule 'PUT /bucket/** : slowdown share 0.1' --rule 'GET /bucket/**.parquet : truncate 1000 share 0.02'

  Rules in a file, read back in words before they are used:
    firn chaos --rules outage.rules --explain
      # outage.rules: half a minute of 429, then a hang, then a request that arrives five seconds late
      POST /v1/** : status 429 retry-after 1s between 10s 40s
      POST /v1/**/tables/* : hang once
      POST /v1/**/tables/* : delay 5s once
";

/// Where to listen, where to forward, what to break.
#[derive(Debug, Args)]
#[command(after_long_help = HELP, after_help = "`firn chaos --help` explains rules and shows examples.")]
pub(crate) struct ChaosArgs {
    /// The server to stand in front of: http://HOST:PORT or https://HOST[:PORT]
    #[arg(long, value_name = "URL", required_unless_present = "explain")]
    to: Option<String>,
    /// The address to listen at; port 0 stands for a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    listen: String,
    /// A rule; several are asked in their order
    #[arg(long = "rule", value_name = "RULE")]
    rules: Vec<String>,
    /// A file of rules, one a line, asked after those of --rule; lines that begin with `#` are comments
    #[arg(long = "rules", value_name = "FILE")]
    file: Option<PathBuf>,
    /// What chances are drawn under
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Where to write a line for each request that a rule acted on; `-` for standard error. JSON with --format json
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// The `Host` that the upstream sees: the client's, which its signature may cover, or the upstream's own
    #[arg(long, value_enum, default_value_t)]
    host: HostHeader,
    /// Print the rules in words and do nothing else
    #[arg(long)]
    explain: bool,
}

/// Serves until a signal, then tells what happened.
pub(crate) async fn run(args: &ChaosArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let rules = parse(&given(args)?).map_err(|problems| Failure::usage(sentence(&problems)))?;
    if args.explain {
        explain(&rules, context)?;
        return Ok(ExitCode::Done);
    }
    let to = args.to.as_deref().unwrap_or_default();
    let upstream = Upstream::new(to, args.host)?;
    let journal = Journal::open(args.log.as_deref(), context.output.format()).map_err(|error| {
        let path = args.log.as_deref().unwrap_or(Path::new("-")).display();
        Failure::configuration(format!(
            "the log `{path}` cannot be written ({error}), so nothing was started"
        ))
    })?;
    let listener = bind(&args.listen).await.map_err(|error| {
        Failure::configuration(format!(
            "`{}` cannot be listened at ({error}); name another port",
            args.listen
        ))
    })?;
    let address = listener.local_addr().context("the address that is listened at")?;
    let started = json!({
        "event": "listening",
        "address": format!("http://{address}"),
        "to": upstream.to_string(),
        "seed": args.seed,
        "rules": rules.len(),
    });
    context.output.event(&started, |_| format!("http://{address}"))?;
    let proxy = Arc::new(Proxy::new(upstream, Choice::new(rules, args.seed), journal));
    Arc::clone(&proxy).serve(listener, context.stop.clone()).await;
    summary(&proxy, context)?;
    Ok(ExitCode::Done)
}

fn given(args: &ChaosArgs) -> anyhow::Result<Vec<Given>> {
    let mut given = of_options(&args.rules);
    if let Some(path) = &args.file {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Failure::configuration(format!("the rules `{}` cannot be read ({error})", path.display()))
        })?;
        given.extend(of_file(path, &text));
    }
    Ok(given)
}

fn sentence(problems: &[RuleProblem]) -> String {
    let count = problems.len();
    let mut text = format!("the rules have {count} {}", if count == 1 { "problem" } else { "problems" });
    for problem in problems {
        text.push_str(&format!("\n{problem}"));
    }
    text
}

fn explain(rules: &[Rule], context: &Context) -> anyhow::Result<()> {
    let explained = |(at, rule): (usize, &Rule)| json!({"rule": at + 1, "text": rule.to_string(), "meaning": rule.meaning()});
    let values: Vec<_> = rules.iter().enumerate().map(explained).collect();
    context.output.value(&values, |_| {
        let lines = rules.iter().enumerate();
        let lines: String =
            lines.map(|(at, rule)| format!("{}  {rule}\n   {}\n", at + 1, rule.meaning())).collect();
        if lines.is_empty() { "no rules: everything is forwarded".to_owned() } else { lines }
    })
}

fn summary(proxy: &Proxy, context: &Context) -> anyhow::Result<()> {
    let (totals, counts) = (proxy.journal.totals(), proxy.choice.counts());
    let of_rule = |(at, (rule, counts)): (usize, (&Rule, &Counts))| json!({"rule": at + 1, "text": rule.to_string(), "fitted": counts.fitted, "acted": counts.acted});
    let rules: Vec<_> = proxy.choice.rules().iter().zip(&counts).enumerate().map(of_rule).collect();
    let finished = json!({
        "event": "finished",
        "requests": totals.requests,
        "unreachable": totals.unreachable,
        "rules": rules,
    });
    context.output.event(&finished, |_| {
        let mut text = format!("{} requests", units::format_count(totals.requests));
        if totals.unreachable > 0 {
            text.push_str(&format!(", {} of them met no upstream", units::format_count(totals.unreachable)));
        }
        for (at, (rule, counts)) in proxy.choice.rules().iter().zip(&counts).enumerate() {
            let acted = units::format_count(counts.acted);
            let fitted = units::format_count(counts.fitted);
            text.push_str(&format!("\nrule {}: acted on {acted} of {fitted}: {rule}", at + 1));
        }
        text
    })
}
