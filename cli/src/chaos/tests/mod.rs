//! Rules alone, and every fault and the forwarding itself against small servers.

mod faults;
mod forwarding;
mod rules;
mod servers;
