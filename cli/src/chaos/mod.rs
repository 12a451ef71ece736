//! A proxy in front of a catalog or a store that does to requests what networks, proxies and servers do.
//!
//! It forwards HTTP/1.1 byte for byte (targets with their escapes, headers with their case and the client's `Host`,
//! bodies as they come) to `http` and `https`, and breaks what its rules name: replies that are lost after the request
//! was applied, requests that arrive late or twice, throttling, hangs, cut bodies. Which request meets which fault
//! depends on the rules, the seed, and how many requests came before, so that a run can be repeated.
//!
//! | module | subject |
//! | --- | --- |
//! | [`words`], [`parse`] | the rule language, and problems that point into it |
//! | [`rule`], [`meaning`], [`glob`] | rules as values, as text, in words |
//! | [`choice`] | which rule acts on a request: pure but for its counters |
//! | [`proxy`], [`upstream`] | connections on either side |
//! | [`faults`], [`answers`], [`properties`], [`body`] | what is done to requests and replies |
//! | [`journal`] | what was done |
//!
//! A request passes from [`proxy`] through [`choice`] to the upstream, or to [`faults`], which ends with a line in the
//! [`journal`]. Memory is bounded: connections are counted, bodies pass in pieces, and those that a fault keeps (to
//! forward them later or twice) share one budget.

mod answers;
mod body;
mod choice;
mod faults;
mod glob;
mod journal;
mod meaning;
mod parse;
mod properties;
mod proxy;
mod rule;
mod upstream;
mod words;

#[cfg(test)]
mod tests;

pub(crate) use choice::{Choice, Counts};
pub(crate) use journal::Journal;
pub(crate) use parse::{Given, of_file, of_options, parse};
pub(crate) use proxy::{Proxy, bind};
pub(crate) use rule::Rule;
pub(crate) use upstream::{HostHeader, Upstream};
pub(crate) use words::RuleProblem;
