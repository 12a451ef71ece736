//! firn
