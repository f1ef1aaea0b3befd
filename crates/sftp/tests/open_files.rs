//! Quotas and files that are removed or replaced while they are open: the disk has them until their last handle is closed.

use std::sync::Arc;

use bytes::Bytes;
use outlast_sftp::attributes::Attributes;
use outlast_sftp::error::Status::Failure;
use outlast_sftp::local::FolderOptions;
use outlast_sftp::quota::{Quota, Usage};
use outlast_sftp::request::Request;
use outlast_sftp::view::View;
use tempfile::{TempDir, tempdir};

use crate::support::{NOW, Server, bytes, folder, path, write};

/// A home with a quota of 100 bytes.
struct Home {
    folder: TempDir,
    options: FolderOptions,
    quota: Arc<Quota>,
}

impl Home {
    /// Homes whose uploads are visible at once, and when they are complete.
    fn both() -> [Self; 2] {
        [false, true].map(|atomic_uploads| Self {
            folder: tempdir().unwrap(),
            options: FolderOptions { atomic_uploads },
            quota: Arc::new(Quota::new(Some(100), None, Usage::default())),
        })
    }

    fn view(&self) -> View {
        View::new(|| NOW).mount(path("/"), folder(self.folder.path(), self.options))
    }

    fn session(&self) -> Server {
        Server::new(self.view().quota(&self.quota))
    }

    #[track_caller]
    fn uses(&self, bytes: u64, files: u64) {
        assert_eq!(self.quota.used(), Usage { bytes, files }, "{:?}", self.options);
    }
}

/// A new file that is visible and still open for writing.
fn visible(server: &mut Server, name: &str, content: &[u8]) -> Bytes {
    let handle = server.create(name);
    server.ok(&write(&handle, 0, content));
    server.ok(&Request::FSync { handle: handle.clone() });
    handle
}

fn remove(name: &str) -> Request {
    Request::Remove { path: bytes(name) }
}

fn rename(from: &str, to: &str) -> Request {
    Request::PosixRename { from: bytes(from), to: bytes(to) }
}

#[test]
fn a_removed_file_counts_until_it_is_closed() {
    for home in Home::both() {
        let mut server = home.session();
        let handle = visible(&mut server, "/f", &[1; 60]);
        server.ok(&remove("/f"));
        home.uses(60, 1);
        let text = server.refused(&write(&handle, 60, &[1; 41]), Failure);
        assert!(text.starts_with("quota exceeded"), "{text}");
        // What is written and cut off without a name counts, too.
        server.ok(&write(&handle, 60, &[1; 40]));
        home.uses(100, 1);
        let attributes = Attributes { size: Some(80), ..Attributes::default() };
        server.ok(&Request::FSetStat { handle: handle.clone(), attributes });
        home.uses(80, 1);
        // Another file of the same name has its own number and bytes.
        server.write("/f", &[1; 20]);
        home.uses(100, 2);
        server.ok(&Request::Close { handle });
        home.uses(20, 1);
        assert_eq!(home.view().measure().unwrap(), home.quota.used());
    }
}

#[test]
fn a_file_that_a_rename_replaces_counts_until_it_is_closed() {
    for home in Home::both() {
        let mut server = home.session();
        server.write("/a", &[1; 10]);
        let handle = visible(&mut server, "/f", &[1; 60]);
        server.ok(&rename("/a", "/f"));
        home.uses(70, 2);
        server.ok(&write(&handle, 60, &[1; 30]));
        server.refused(&write(&handle, 90, &[1; 1]), Failure);
        home.uses(100, 2);
        server.ok(&Request::Close { handle });
        home.uses(10, 1);
        // A file that takes its own place keeps its name.
        let handle = server.open("/f");
        server.ok(&rename("/f", "/f"));
        server.ok(&Request::Close { handle });
        home.uses(10, 1);
        // So does one that is renamed; its new name is removed.
        let handle = server.open("/f");
        server.ok(&rename("/f", "/g"));
        server.ok(&remove("/g"));
        home.uses(10, 1);
        server.ok(&Request::Close { handle });
        home.uses(0, 0);
    }
}

#[test]
fn a_file_that_an_upload_replaces_counts_until_it_is_closed() {
    for home in Home::both() {
        let mut server = home.session();
        server.write("/f", &[1; 10]);
        let handle = server.open("/f");
        server.write("/f", &[1; 20]);
        if home.options.atomic_uploads {
            home.uses(30, 2);
        } else {
            // It is the same file, which has been emptied.
            home.uses(20, 1);
        }
        server.ok(&Request::Close { handle });
        home.uses(20, 1);
        server.ok(&remove("/f"));
        home.uses(0, 0);
    }
}

#[test]
fn the_last_handle_of_any_session_gives_a_file_back() {
    for home in Home::both() {
        let (mut one, mut other) = (home.session(), home.session());
        let handle = visible(&mut one, "/f", &[1; 60]);
        other.open("/f");
        one.ok(&remove("/f"));
        one.ok(&write(&handle, 60, &[1; 10]));
        one.ok(&Request::Close { handle });
        home.uses(70, 1);
        other.session.end();
        home.uses(0, 0);
    }
}

#[test]
fn a_file_that_is_read_counts_until_it_is_closed() {
    for home in Home::both() {
        let mut server = home.session();
        server.write("/f", &[1; 60]);
        let handle = server.open("/f");
        server.ok(&remove("/f"));
        home.uses(60, 1);
        let other = server.create("/g");
        server.refused(&write(&other, 0, &[1; 41]), Failure);
        server.ok(&Request::Close { handle });
        home.uses(0, 1);
        server.ok(&write(&other, 0, &[1; 100]));
        home.uses(100, 1);
    }
}

/// The names of a file that another program has linked count each, and are given back each.
#[test]
fn one_of_several_names_is_given_back_when_it_is_removed() {
    for mut home in Home::both() {
        let at = |name| home.folder.path().join(name);
        std::fs::write(at("f"), [1; 10]).unwrap();
        std::fs::hard_link(at("f"), at("g")).unwrap();
        let used = home.view().measure().unwrap();
        home.quota = Arc::new(Quota::new(Some(100), None, used));
        home.uses(20, 2);
        let mut server = home.session();
        let handle = server.open("/f");
        server.ok(&remove("/f"));
        home.uses(10, 1);
        server.ok(&remove("/g"));
        home.uses(10, 1);
        server.ok(&Request::Close { handle });
        home.uses(0, 0);
    }
}

/// A folder that is renamed takes its uploads with it: what then has their paths still counts.
#[test]
fn an_upload_whose_folder_moved_replaces_nothing_at_its_old_path() {
    for home in Home::both() {
        let mut server = home.session();
        let (folder, attributes) = (bytes("/d"), Attributes::default());
        server.ok(&Request::MkDir { path: folder.clone(), attributes });
        let handle = server.create("/d/f");
        server.ok(&write(&handle, 0, &[1; 10]));
        server.ok(&rename("/d", "/e"));
        server.ok(&Request::MkDir { path: folder, attributes });
        server.write("/d/f", &[1; 20]);
        server.ok(&Request::Close { handle });
        home.uses(30, 4);
        assert_eq!(home.view().measure().unwrap(), home.quota.used());
    }
}

/// The file that an upload replaces is the one in its folder, wherever that is by now.
#[test]
fn an_upload_whose_folder_moved_gives_back_what_it_replaces() {
    for home in Home::both() {
        let mut server = home.session();
        let (folder, attributes) = (bytes("/d"), Attributes::default());
        server.ok(&Request::MkDir { path: folder, attributes });
        server.write("/d/f", &[1; 30]);
        let handle = server.create("/d/f");
        server.ok(&write(&handle, 0, &[1; 10]));
        server.ok(&rename("/d", "/e"));
        server.ok(&Request::Close { handle });
        home.uses(10, 2);
        assert_eq!(home.view().measure().unwrap(), home.quota.used());
    }
}

/// An upload that replaces a file needs no room for a name; if that file has another name by then, it does.
#[test]
fn no_upload_gets_past_the_limit_on_files() {
    for options in Home::both().map(|home| home.options) {
        let home = Home {
            folder: tempdir().unwrap(),
            options,
            quota: Arc::new(Quota::new(None, Some(1), Usage::default())),
        };
        let mut server = home.session();
        server.write("/f", &[1; 3]);
        for name in ["/g", "/h"] {
            let before = if name == "/g" { "/f" } else { "/g" };
            let handle = server.create(before);
            server.ok(&write(&handle, 0, &[2; 3]));
            server.ok(&rename(before, name));
            let closes = Request::Close { handle };
            if options.atomic_uploads {
                let text = server.refused(&closes, Failure);
                assert!(text.contains("quota exceeded"), "{text}");
            } else {
                // It is the file that was renamed.
                server.ok(&closes);
            }
            home.uses(3, 1);
            assert_eq!(home.view().measure().unwrap(), home.quota.used());
        }
    }
}
