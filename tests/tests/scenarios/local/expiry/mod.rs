//! Expiry through a table's handle: what it deletes, and that it deletes nothing unless its commit landed.

mod fixture;
mod handle;
