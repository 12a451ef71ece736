//! Expiry through a table's handle: what it deletes, and that it deletes nothing unless its commit landed.

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod handle;
