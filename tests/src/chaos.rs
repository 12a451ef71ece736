//! `firn chaos` as a process: a proxy before a server, which breaks what its rules name.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::process::{Running, binary};
use crate::scratch;

/// How long it may take to start or to end.
const LIMIT: Duration = Duration::from_secs(30);

/// The proxy at work. It ends with this value.
#[derive(Debug)]
pub struct Chaos {
    running: Running,
    address: String,
    log: std::path::PathBuf,
}

/// A request that a rule acted on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// The number of the rule, from 1.
    pub rule: u64,
    /// The path and the query.
    pub target: String,
    /// What the upstream answered, where it was asked.
    pub upstream_status: Option<u64>,
}

/// What a rule did, from first to last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Requests that fitted it.
    pub fitted: u64,
    /// Requests that it acted on.
    pub acted: u64,
}

impl Chaos {
    /// Stands before the server at `to`. `name` names its logs in the folder.
    pub async fn before(to: &str, folder: &Path, name: &str, rules: &[&str]) -> Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let mut command = Command::new(binary()?);
        command.args(["chaos", "--to", to, "--format", "json", "--log"]).arg(&log);
        for rule in rules {
            command.args(["--rule", rule]);
        }
        let running = Running::start(command, &folder.join(format!("{name}.out")))?;
        let says = || async {
            let said = running.said()?;
            let started = said.lines().next().and_then(|line| serde_json::from_str::<Value>(line).ok());
            match started {
                Some(event) => Ok(event["address"].as_str().map(str::to_owned)),
                None => Ok(None),
            }
        };
        let address = scratch::eventually("the proxy to listen", LIMIT, says).await;
        let address = address.with_context(|| running.said().unwrap_or_default())?;
        Ok(Self { running, address, log })
    }

    /// `http://host:port` of the proxy.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The requests that rules acted on until now.
    pub fn touched(&self) -> Result<Vec<Touched>> {
        let text = std::fs::read_to_string(&self.log)?;
        // The last line may be on its way.
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let touched = |line: Value| {
            Some(Touched {
                rule: line["rule"].as_u64()?,
                target: line["target"].as_str()?.to_owned(),
                upstream_status: line["upstream_status"].as_u64(),
            })
        };
        Ok(lines.filter_map(touched).collect())
    }

    /// Waits until rules have acted on this many requests, and what they did has an end.
    pub async fn wait_for_touched(&self, requests: usize) -> Result<Vec<Touched>> {
        let there = || async {
            let touched = self.touched()?;
            Ok((touched.len() >= requests).then_some(touched))
        };
        scratch::eventually(&format!("{requests} requests that a rule acted on"), LIMIT, there).await
    }

    /// Ends it; what each rule did is the result.
    pub async fn stop(self) -> Result<Vec<Counts>> {
        let ended = self.running.stop(LIMIT).await?;
        let last = ended.stderr.lines().last().and_then(|line| serde_json::from_str::<Value>(line).ok());
        let rules = last.as_ref().and_then(|event| event["rules"].as_array()).context("counts at the end")?;
        let counts =
            |rule: &Value| Some(Counts { fitted: rule["fitted"].as_u64()?, acted: rule["acted"].as_u64()? });
        let counts: Vec<Counts> = rules.iter().filter_map(counts).collect();
        ensure!(counts.len() == rules.len(), "counts of each rule: {}", ended.stderr);
        Ok(counts)
    }
}
