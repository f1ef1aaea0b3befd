//! Versity's gateway, which checks signatures and keeps a bucket on a disk.

use super::*;

/// The gateway checks what moto does not: who signed, and what.
#[test]
fn a_wrong_secret_is_refused() {
    let Some(s3) = S3::gateway() else { return };
    world(&s3.endpoint(), "files").put("x", b"mine");
    let runtime = Runtime::new().unwrap();
    let wrong = client(&s3.endpoint(), "another-secret");
    let volume = S3Buckets::new(wrong, runtime.handle().clone()).open("files").unwrap();
    let read = volume.open(&path("x"), &OpenHow::reading());
    assert_eq!(read.err().map(|error| error.status), Some(Status::PermissionDenied));
    let write = volume.open(&path("x"), &creating()).and_then(|file| {
        file.write_at(0, b"theirs")?;
        file.close()
    });
    assert!(write.is_err());
    assert_eq!(s3.curl(&[], "/files/x"), b"mine");
}

/// Folders, odd names, listings of more than one page and renaming, where keys are files of a disk.
#[test]
fn a_bucket_on_a_disk_has_folders() {
    let Some(s3) = S3::gateway() else { return };
    let world = world(&s3.endpoint(), "files");
    let volume = &world.volume;
    assert!(world.names("/").is_empty());
    volume.make_folder(&path("a"), None).unwrap();
    assert!(volume.attributes(&path("a"), Follow::No).unwrap().is_folder());
    assert!(world.names("a").is_empty());
    refused(volume.make_folder(&path("a"), None), Status::Failure, "exists");
    world.put("a/b/c d+é%&", b"1");
    world.put("a/b.txt", b"2");
    assert_eq!(world.names("a"), ["b.txt", "b/"]);
    assert_eq!(world.names("a/b"), ["c d+é%&"]);
    assert_eq!(world.get("a/b/c d+é%&"), b"1");
    refused(volume.remove(&path("a/b")), Status::Failure, "folder");
    refused(volume.remove_folder(&path("a/b")), Status::Failure, "not empty");
    let moved = content(20_000_000);
    world.put("from", &moved);
    volume.rename(&path("from"), &path("a/to"), false).unwrap();
    same(&world.get("a/to"), &moved);
    assert!(!world.is_there("from"));
    refused(volume.rename(&path("a/to"), &path("a/b.txt"), false), Status::Failure, "exists");
    volume.remove(&path("a/to")).unwrap();
    volume.remove(&path("a/b.txt")).unwrap();
    volume.remove(&path("a/b/c d+é%&")).unwrap();
    assert!(!world.is_there("a/b"), "a folder is what keys share");
    for number in 0..1_001 {
        world.put(&format!("many/{number:04}"), b"");
    }
    let names = world.names("many");
    assert_eq!((names.len(), names[1_000].as_str()), (1_001, "1000"));
}
