//! Small grids.
