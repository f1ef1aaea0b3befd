//! Published figures, as data with their sources.
