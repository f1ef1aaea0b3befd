//! Algorithms of the literature, on private code points: for the lab only, never in the service.
