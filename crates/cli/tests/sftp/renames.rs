//! What may be renamed.

use super::*;

/// What others have put into a directory would get the rights of the new path.
#[test]
fn a_directory_cannot_be_renamed() {
    let Some(tools) = openssh() else { return };
    let world = World::new(&tools, "2026-11", &[]);
    let may = [
        ("s3:PutObject", "arn:aws:s3:::files/in/*"),
        ("s3:DeleteObject", "arn:aws:s3:::files/in/*"),
        ("s3:GetObject", "arn:aws:s3:::files/pub/*"),
        ("s3:PutObject", "arn:aws:s3:::files/pub/*"),
    ];
    world.role("mover", &allowing(&may));
    world.user("mover", "mover", json!({ "HomeDirectory": "/files/pub" }));
    world.at_home("alice", "all");
    world.folder.write("secret", b"secret");
    world.works("alice", &["mkdir /files/in", "mkdir /files/pub"]);
    world.works("mover", &["mkdir /files/in/d"]);
    world.works("alice", &["put secret /files/in/d/secret"]);
    for to in ["/files/pub/d", "/files/in/e"] {
        world.fails("mover", &[&format!("rename /files/in/d {to}")], "unsupported");
    }
    world.fails("mover", &["rename /files/in/d/secret /files/pub/secret"], "ermission denied");
    // Whatever the user may do.
    world.fails("alice", &["rename /files/in/d /files/alice/d"], "unsupported");
    assert_eq!(std::fs::read(world.bucket("files/in/d/secret")).unwrap(), b"secret");
    assert_eq!(std::fs::read_dir(world.bucket("files/pub")).unwrap().count(), 0);
}
