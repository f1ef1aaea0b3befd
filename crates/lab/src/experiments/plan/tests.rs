//! A plan's grid and endpoint, small.
