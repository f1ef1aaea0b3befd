//! What sessions do on threads that may block, of which there are only so many.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use outlast_sftp::operation::{Operation, Outcome};
use outlast_sftp::view::View;
use tokio::sync::Semaphore;

/// Runs operations one after the other on a thread that may block. Those that have not begun when the connection is over fail.
pub(super) async fn carried_out(
    turns: [&Semaphore; 2],
    operations: Vec<Operation>,
    view: Arc<View>,
    over: Arc<AtomicBool>,
) -> Result<Vec<Outcome>, String> {
    let blocks = operations.iter().any(Operation::blocks);
    let run = move || {
        let is_over = || over.load(Ordering::Relaxed);
        operations.into_iter().map(|one| one.run_until(&view, &is_over)).collect()
    };
    if !blocks {
        return Ok(run());
    }
    on_thread(turns, run).await
}

/// Does something on a thread that may block, when there is a turn of each kind. They are waited for in this order: a user's own come
/// first, so that a user's work waits for the user's other work before it waits with that of others.
pub(super) async fn on_thread<T: Send + 'static, const N: usize>(
    turns: [&Semaphore; N],
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    let mut taken = Vec::with_capacity(N);
    for turn in turns {
        // Nobody closes them.
        taken.push(turn.acquire().await);
    }
    let ended = tokio::task::spawn_blocking(run).await;
    drop(taken);
    ended.map_err(|error| error.to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use bytes::Bytes;
    use outlast_sftp::error::Status;
    use outlast_sftp::local::{Folder, FolderOptions};
    use outlast_sftp::path::RemotePath;
    use outlast_sftp::request::{Request, write_hello};
    use outlast_sftp::session::Session;

    use super::*;

    /// An operation that waits for its turn when the connection ends is not carried out.
    #[tokio::test]
    async fn operations_that_have_not_begun_end_with_the_connection() {
        let folder = tempfile::tempdir().unwrap();
        let volume = Arc::new(Folder::open(folder.path(), FolderOptions::default()).unwrap());
        let view = Arc::new(View::new(|| 0).mount(RemotePath::root(), volume));
        let mut session = Session::default();
        session.receive(&write_hello(3)).unwrap();
        for (over, status) in [(false, Status::Ok), (true, Status::Failure)] {
            let path = Bytes::from(format!("/{over}"));
            let request = Request::MkDir { path, attributes: Default::default() };
            session.receive(&request.write(1)).unwrap();
            let operation = session.next_operation().unwrap();
            let (user, all) = (Semaphore::new(0), Semaphore::new(1));
            let is_over = Arc::new(AtomicBool::new(false));
            let ends = async {
                is_over.store(over, Ordering::Relaxed);
                user.add_permits(1);
            };
            let turns = [&user, &all];
            let runs = carried_out(turns, vec![operation], view.clone(), is_over.clone());
            let (outcomes, ()) = tokio::join!(runs, ends);
            for outcome in outcomes.unwrap() {
                assert_eq!(session.complete(outcome).status, status);
            }
            assert_eq!(folder.path().join(over.to_string()).exists(), !over);
        }
    }
}
