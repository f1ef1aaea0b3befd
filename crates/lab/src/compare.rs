//! Two results folders side by side.
