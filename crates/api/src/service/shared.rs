//! What several parts of the service need: locks, and times as HTTP writes them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

/// A moment as HTTP writes it (RFC 9110, section 5.6.7).
pub fn http_date(seconds: i64) -> String {
    const FORMAT: &[BorrowedFormatItem<'static>] = format_description!(
        "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
    );
    let time = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    time.format(FORMAT).unwrap_or_default()
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is kept is replaced whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
