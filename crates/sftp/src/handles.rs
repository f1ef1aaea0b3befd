//! How many files and folders sessions may have open together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A number of open files and folders that several sessions share, those of a user for example.
#[derive(Debug)]
pub struct Handles {
    open: AtomicUsize,
    most: usize,
    /// What these count for as well.
    of: Option<Arc<Self>>,
}

/// One of them, until this is dropped.
#[derive(Debug)]
pub(crate) struct Held(Arc<Handles>);

impl Handles {
    /// At most so many.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { open: AtomicUsize::new(0), most, of: None }
    }

    /// At most so many, which count for `all` as well.
    #[must_use]
    pub fn among(all: Arc<Self>, most: usize) -> Self {
        Self { of: Some(all), ..Self::new(most) }
    }

    /// One more, if there is room here and in all that it counts for.
    pub(crate) fn take(handles: &Arc<Self>) -> Option<Held> {
        handles.add().then(|| Held(Arc::clone(handles)))
    }

    fn add(&self) -> bool {
        let more = |open| (open < self.most).then_some(open + 1);
        if self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err() {
            return false;
        }
        let has_room = self.of.as_ref().is_none_or(|all| all.add());
        if !has_room {
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
        has_room
    }

    fn remove(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        if let Some(all) = &self.of {
            all.remove();
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.remove();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use super::*;

    #[test]
    fn each_counts_for_its_user_and_for_all() {
        let all = Arc::new(Handles::new(3));
        let user = || Arc::new(Handles::among(Arc::clone(&all), 2));
        let (one, other) = (user(), user());
        let held = [Handles::take(&one).unwrap(), Handles::take(&one).unwrap()];
        assert!(Handles::take(&one).is_none(), "more than the user's");
        let last = Handles::take(&other).unwrap();
        assert!(Handles::take(&other).is_none(), "more than all");
        drop(held);
        // What was refused holds nothing.
        let again = [Handles::take(&other).unwrap(), Handles::take(&one).unwrap()];
        assert!(Handles::take(&one).is_none());
        drop((last, again));
        assert_eq!((all.open.load(Ordering::Relaxed), one.open.load(Ordering::Relaxed)), (0, 0));
    }
}
