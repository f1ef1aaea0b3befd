//! The steps of workflows on files, without a server: what happens when one is carried out twice.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail and print"
)]

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use outlast_api::aws::Operation;
use outlast_api::client::Client;
use outlast_api::ops::transfer::{create_server, create_user, create_workflow};
use outlast_api::service::sftp::{Connection, Decision, FileEvent, Session, Subject};
use outlast_api::service::{Request, Service, Sink};
use outlast_api::wire::sigv4::Credentials;
use outlast_crypto::Secret;
use outlast_domain::arn::Scope;
use outlast_domain::identity;
use outlast_domain::limits::EXECUTION_LEASE_MS;
use outlast_domain::seal::RootKey;
use outlast_domain::transfer::{Cause, Job, Login, Outcome, Rights, StepError};
use outlast_net::server::system_clock;
use outlast_net::sftp::{Buckets, WorkflowFiles};
use outlast_sftp::arrival::{Inspector, Reception};
use outlast_sftp::attributes::Attributes;
use outlast_sftp::error::{Error as SftpError, Result as SftpResult};
use outlast_sftp::local::{Folder, FolderOptions};
use outlast_sftp::path::RemotePath;
use outlast_sftp::volume::{File, Follow, Listing, OpenHow, Space, Volume};
use outlast_store::Store;
use outlast_store::memory::MemoryStore;
use serde_json::{Value, json};

const ACCOUNT: &str = "123456789012";
const REGION: &str = "us-east-1";
const ACCESS_KEY: &str = "AKIAEXAMPLE";
const SECRET: &[u8] = b"wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

/// Buckets that are folders, of which each account may use all but `others`.
struct Folders(Folder);

impl Buckets for Folders {
    fn open(&self, bucket: &str) -> SftpResult<Arc<dyn Volume>> {
        let path = RemotePath::root().join(bucket.as_bytes());
        Ok(Arc::new(self.0.below(&path, false)?).without_links())
    }

    fn make(&self, bucket: &str) -> SftpResult<()> {
        self.0.below(&RemotePath::root().join(bucket.as_bytes()), true).map(drop)
    }
}

impl Sink for Folders {
    fn put(&self, _: &str, _: &str, _: &str, _: &[u8]) -> Result<(), String> {
        Err("nothing is published".to_owned())
    }

    fn may_use(&self, _: &str, bucket: &str) -> bool {
        bucket != "others"
    }
}

/// A service that has a server with a workflow, and alice, who is logged in.
struct World {
    service: Service,
    store: Arc<MemoryStore>,
    session: Session,
    buckets: tempfile::TempDir,
}

/// Calls an operation as the administrator.
fn call<O: Operation>(service: &Service, body: Value) -> O::Output {
    let credentials = Credentials {
        access_key_id: ACCESS_KEY.into(),
        secret: Secret::new(SECRET.to_vec()),
        token: None,
    };
    let client = Client { host: "localhost".into(), region: REGION.into(), credentials };
    let now_ms = system_clock();
    let input = serde_json::from_value(body).unwrap();
    let request = client.request::<O>(&input, now_ms.div_euclid(1000)).unwrap();
    let response = service.call(&Request {
        method: request.method(),
        path: "/",
        query: "",
        host: "localhost",
        headers: request.headers(),
        body: request.body(),
        source_ip: "127.0.0.1",
        tls: None,
        now_ms,
        request_id: "00000000-0000-0000-0000-000000000000",
    });
    Client::response::<O>(response.status, &response.body).unwrap()
}

fn role(service: &Service, store: &MemoryStore, name: &str) -> String {
    let trust = json!({ "Version": "2012-10-17", "Statement": [{
        "Effect": "Allow", "Principal": { "Service": "transfer.amazonaws.com" }, "Action": "sts:AssumeRole",
    }] });
    let all = json!({ "Version": "2012-10-17", "Statement": [{ "Effect": "Allow", "Action": "s3:*", "Resource": "*" }] });
    let mut work = service.work(system_clock());
    let role = identity::create_role(&mut work, ACCOUNT, name, &trust.to_string(), 3600).unwrap();
    use outlast_domain::identity::Entry;
    let arn = role.put_policy(&mut work, "all", &all.to_string()).unwrap().arn();
    store.commit_and_wait(work.into_transaction(Vec::new())).unwrap();
    arn
}

impl World {
    fn new(step: &Value) -> Self {
        let store = Arc::new(MemoryStore::new());
        let service = Service::new(store.clone(), RootKey::generate().unwrap());
        let now_ms = system_clock();
        let mut work = service.work(now_ms);
        outlast_domain::audit::establish(&mut work, "log.example/workflow-steps").unwrap();
        store.commit_and_wait(work.into_transaction(Vec::new())).unwrap();
        let mut work = service.work(now_ms);
        let (id, secret) = (Some(ACCESS_KEY.into()), Secret::new(SECRET.to_vec()));
        identity::create_administrator(&mut work, ACCOUNT, "admin", id, &secret).unwrap();
        store.commit_and_wait(work.into_transaction(Vec::new())).unwrap();
        let new = json!({ "Steps": [step] });
        let workflow = call::<create_workflow::CreateWorkflow>(&service, new).workflow_id;
        let execution = role(&service, &store, "workflows");
        let attached = json!([{ "WorkflowId": workflow, "ExecutionRole": execution }]);
        let new = json!({ "WorkflowDetails": { "OnUpload": attached } });
        let server = call::<create_server::CreateServer>(&service, new).server_id;
        let kind = b"ssh-ed25519";
        let key = [&[0, 0, 0, 11][..], kind, &[0, 0, 0, 32], &[1; 32]].concat();
        let new = json!({
            "ServerId": server, "UserName": "alice", "Role": role(&service, &store, "users"),
            "SshPublicKeyBody": format!("ssh-ed25519 {}", STANDARD.encode(&key)), "HomeDirectory": "/files",
        });
        let _ = call::<create_user::CreateUser>(&service, new);
        let session = session(&service, &server, &key);
        let buckets = tempfile::tempdir().unwrap();
        std::fs::create_dir(buckets.path().join("files")).unwrap();
        std::fs::write(buckets.path().join("files/a"), b"content").unwrap();
        Self { service, store, session, buckets }
    }

    /// A step of an upload.
    fn job(&self) -> Job {
        let now_ms = system_clock();
        let subject = Subject {
            target: b"files/a",
            new_target: b"",
            writes: true,
            since_ms: now_ms,
            why: "",
            is_apart: false,
        };
        let event = FileEvent::Close { path: b"/files/a", bytes_in: 7, bytes_out: 0 };
        let made = self.service.sftp_file_event(&self.session, &event, &subject, now_ms).unwrap();
        self.store.commit_and_wait(made).unwrap();
        self.due(now_ms)
    }

    fn due(&self, now_ms: i64) -> Job {
        let mut jobs = self.service.workflow_jobs(now_ms, 10, &|_, _| true).unwrap();
        assert_eq!(jobs.len(), 1);
        jobs.remove(0)
    }

    /// The same step, after the server that carried it out was killed.
    fn again(&self) -> Job {
        let job = self.due(system_clock() + 2 * EXECUTION_LEASE_MS);
        assert!(job.is_again);
        job
    }

    /// Carries out a step as a server does, on what its first step has found.
    fn carry_out(&self, job: &Job) -> Result<(), StepError> {
        let files = self.files();
        if job.content.get().is_none() {
            let content = files.look(job)?;
            assert!(self.service.workflow_pin(job, &content, system_clock()).unwrap());
            job.content.set(content).unwrap();
        }
        files.carry_out(job, &self.rights(job)).map(drop)
    }

    fn rights(&self, job: &Job) -> Rights {
        self.service.workflow_rights(job, system_clock()).unwrap().unwrap()
    }

    fn files(&self) -> WorkflowFiles {
        let options = FolderOptions { atomic_uploads: true };
        let folders = Arc::new(Folders(Folder::open(self.buckets.path(), options).unwrap()));
        let (stopped, lost) = (Arc::default(), Arc::default());
        let buckets = folders.clone();
        WorkflowFiles { buckets, sink: folders, clock: system_clock, stopped, lost }
    }

    #[track_caller]
    fn fails(&self, job: &Job, cause: Cause) {
        assert_eq!(self.carry_out(job).unwrap_err().cause, cause);
    }

    fn path(&self, path: &str) -> PathBuf {
        self.buckets.path().join(path)
    }
}

fn session(service: &Service, server: &str, key: &[u8]) -> Session {
    let scope = Scope { account: ACCOUNT.into(), region: REGION.into() };
    let source_ip = IpAddr::from([127, 0, 0, 1]);
    let login = Login {
        scope: &scope,
        server,
        user: "alice",
        key: Some(key),
        key_is_proven: true,
        key_was_accepted: false,
        certificate: None,
        password: None,
        source_ip,
        session: "0123456789abcdef",
    };
    let connection = Connection {
        server_arn: format!("arn:aws:transfer:{REGION}:{ACCOUNT}:server/{server}"),
        scope: scope.clone(),
        session: "0123456789abcdef".into(),
        source_ip,
        client: "SSH-2.0-test".into(),
        key_exchange: "mlkem768x25519-sha256".into(),
        post_quantum: true,
        host_key: "ssh-ed25519".into(),
        ciphers: Default::default(),
        macs: Default::default(),
    };
    match service.sftp_login_call(&login, &connection, None, system_clock()) {
        Decision::Account(account) => Session::new(connection, &account),
        _ => panic!("alice is not welcome"),
    }
}

fn copy(bucket: &str, overwrite: &str) -> Value {
    json!({ "Type": "COPY", "CopyStepDetails": {
        "OverwriteExisting": overwrite,
        "DestinationFileLocation": { "S3FileLocation": { "Bucket": bucket, "Key": "deep/er/" } },
    } })
}

fn read(path: &Path) -> String {
    String::from_utf8(std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_copy_that_is_made_twice_is_made_once() {
    let world = World::new(&copy("archive", "FALSE"));
    let made = world.path("archive/deep/er/a");
    let first = world.job();
    world.carry_out(&first).unwrap();
    assert_eq!(read(&made), "content");
    // The outcome was lost with the server. Only then a copy that is there is this step's.
    world.fails(&first, Cause::AlreadyExists);
    let again = world.again();
    world.carry_out(&again).unwrap();
    // Another content is somebody else's, whatever its length.
    for other in ["another", "another one", ""] {
        std::fs::write(&made, other).unwrap();
        world.fails(&again, Cause::AlreadyExists);
        assert_eq!(read(&made), other);
    }
    // What could not be read was not copied.
    std::fs::remove_file(&made).unwrap();
    std::fs::remove_file(world.path("files/a")).unwrap();
    world.fails(&again, Cause::NotFound);
    assert!(!made.exists());
    let error = StepError::new(Cause::NotFound, "no such file");
    let next = world.service.workflow_outcome(&again, &Outcome::Failed(error), system_clock());
    assert!(next.unwrap().is_none());
}

#[test]
fn a_copy_replaces_what_it_may_replace_whole() {
    let world = World::new(&copy("archive", "TRUE"));
    let job = world.job();
    std::fs::create_dir_all(world.path("archive/deep/er")).unwrap();
    std::fs::write(world.path("archive/deep/er/a"), b"a longer one that was there before").unwrap();
    for _ in 0..2 {
        world.carry_out(&job).unwrap();
        assert_eq!(read(&world.path("archive/deep/er/a")), "content");
    }
    // Neither a link nor a folder takes the place of the file.
    std::fs::remove_file(world.path("files/a")).unwrap();
    std::fs::write(world.path("canary"), b"canary").unwrap();
    std::os::unix::fs::symlink(world.path("canary"), world.path("files/a")).unwrap();
    world.fails(&job, Cause::NotFound);
    assert_eq!(read(&world.path("archive/deep/er/a")), "content");
}

#[test]
fn a_bucket_that_the_account_may_not_use_is_not_even_made() {
    let world = World::new(&copy("others", "TRUE"));
    world.fails(&world.job(), Cause::PermissionDenied);
    assert!(!world.path("others").exists());
}

#[test]
fn what_is_removed_twice_is_removed() {
    let world = World::new(&json!({ "Type": "DELETE", "DeleteStepDetails": {} }));
    let job = world.job();
    for _ in 0..2 {
        world.carry_out(&job).unwrap();
        assert!(!world.path("files/a").exists());
    }
    std::fs::create_dir(world.path("files/a")).unwrap();
    assert!(world.carry_out(&job).is_err());
    assert!(world.path("files/a").exists(), "a folder is no file");
}

/// The server is killed before it records the removal, and the user uploads the file again: that one stays.
#[test]
fn a_repeated_removal_leaves_the_next_upload() {
    let world = World::new(&json!({ "Type": "DELETE", "DeleteStepDetails": {} }));
    world.carry_out(&world.job()).unwrap();
    std::fs::write(world.path("files/a"), b"content").unwrap();
    world.fails(&world.again(), Cause::NotFound);
    assert_eq!(read(&world.path("files/a")), "content");
}

#[test]
fn a_step_concerns_the_file_that_the_first_one_has_seen() {
    let tag = json!({ "Type": "TAG", "TagStepDetails": { "Tags": [{ "Key": "state", "Value": "seen" }] } });
    let delete = json!({ "Type": "DELETE", "DeleteStepDetails": {} });
    for step in [copy("archive", "TRUE"), tag, delete] {
        let world = World::new(&step);
        let job = world.job();
        job.content.set(world.files().look(&job).unwrap()).unwrap();
        // Another upload of the same length.
        std::fs::write(world.path("new"), b"CONTENT").unwrap();
        std::fs::rename(world.path("new"), world.path("files/a")).unwrap();
        let error = world.carry_out(&job).unwrap_err();
        assert_eq!(error.cause, Cause::NotFound, "{step}");
        assert!(error.message.contains("was replaced"), "{error:?}");
        assert_eq!(read(&world.path("files/a")), "CONTENT");
        assert!(!world.path("archive").exists());
        let mut value = [0_u8; 100];
        assert!(
            rustix::fs::getxattr(world.path("files/a"), "user.outlast.tags", &mut value[..])
                .is_err()
        );
        // Nor what was not there.
        std::fs::remove_file(world.path("files/a")).unwrap();
        let job = world.again();
        world.fails(&job, Cause::NotFound);
        std::fs::write(world.path("files/a"), b"later").unwrap();
        world.fails(&job, Cause::NotFound);
        assert_eq!(read(&world.path("files/a")), "later");
    }
}

/// A server that stops waits for no copy, and a copy that is cut short is none.
#[test]
fn a_copy_ends_when_the_server_stops() {
    let world = World::new(&copy("archive", "TRUE"));
    let job = world.job();
    world.carry_out(&job).unwrap();
    std::fs::write(world.path("archive/deep/er/a"), b"old").unwrap();
    let files = world.files();
    files.stopped.store(true, Ordering::Relaxed);
    assert!(files.carry_out(&job, &world.rights(&job)).is_err());
    assert_eq!(read(&world.path("archive/deep/er/a")), "old");
}

/// Not even a file without content, which is copied in no time.
#[test]
fn a_step_whose_lease_may_be_anothers_changes_nothing() {
    let tag = json!({ "Type": "TAG", "TagStepDetails": { "Tags": [{ "Key": "state", "Value": "seen" }] } });
    let delete = json!({ "Type": "DELETE", "DeleteStepDetails": {} });
    for step in [copy("archive", "TRUE"), tag, delete] {
        let world = World::new(&step);
        std::fs::write(world.path("files/a"), b"").unwrap();
        let job = world.job();
        job.content.set(world.files().look(&job).unwrap()).unwrap();
        let lost = Arc::new(AtomicBool::new(true));
        let files = world.files().of_step(lost.clone());
        let rights = world.rights(&job);
        let error = files.carry_out(&job, &rights).unwrap_err();
        assert!(error.message.contains("another server"), "{error:?}");
        assert!(world.path("files/a").exists() && !world.path("archive/deep/er/a").exists());
        let mut value = [0_u8; 100];
        let tags = rustix::fs::getxattr(world.path("files/a"), "user.outlast.tags", &mut value[..]);
        assert!(tags.is_err(), "{step}");
        // Not every folder of a test can have tags.
        if step["Type"] != "TAG" {
            lost.store(false, Ordering::Relaxed);
            files.carry_out(&job, &rights).unwrap();
        }
    }
}

/// Buckets that store a copy, or what another client writes in its place, and fail.
struct Failing {
    buckets: Arc<dyn Buckets>,
    reception: Reception,
}

impl Buckets for Failing {
    fn open(&self, bucket: &str) -> SftpResult<Arc<dyn Volume>> {
        Ok(self.reception.guard(self.buckets.open(bucket)?))
    }

    fn make(&self, bucket: &str) -> SftpResult<()> {
        self.buckets.make(bucket)
    }
}

struct Stored {
    path: PathBuf,
    content: &'static [u8],
}

impl Inspector for Stored {
    fn inspect(&self, _: &[u8], _: OwnedFd) -> SftpResult<()> {
        std::fs::write(&self.path, self.content).unwrap();
        Err(SftpError::failure("the storage does not answer; try again later"))
    }
}

#[test]
fn a_copy_that_is_stored_is_made_although_the_answer_is_lost() {
    let (exists, failed) = (Cause::AlreadyExists, Cause::InternalServerError);
    for (overwrite, content, expected) in [
        ("FALSE", &b"content"[..], None),
        ("TRUE", &b"content"[..], None),
        ("FALSE", &b"another"[..], Some(exists)),
        ("TRUE", &b"another"[..], Some(failed)),
    ] {
        let world = World::new(&copy("archive", overwrite));
        let job = world.job();
        job.content.set(world.files().look(&job).unwrap()).unwrap();
        let stored = Stored { path: world.path("archive/deep/er/a"), content };
        let files = world.files();
        let reception = Reception { inspector: Some(Arc::new(stored)), signer: None };
        let buckets = Arc::new(Failing { buckets: files.buckets.clone(), reception });
        let files = WorkflowFiles { buckets, ..files };
        let outcome = files.carry_out(&job, &world.rights(&job));
        assert_eq!(outcome.err().map(|error| error.cause), expected, "{overwrite} {content:?}");
    }
}

/// Buckets that only work for somebody, and who that was.
struct Shares {
    buckets: Arc<dyn Buckets>,
    users: Arc<Mutex<BTreeSet<String>>>,
}

impl Buckets for Shares {
    fn open(&self, bucket: &str) -> SftpResult<Arc<dyn Volume>> {
        let volume = self.buckets.open(bucket)?;
        Ok(Arc::new(Shared { volume, users: self.users.clone() }))
    }

    fn make(&self, bucket: &str) -> SftpResult<()> {
        self.buckets.make(bucket)
    }
}

struct Shared {
    volume: Arc<dyn Volume>,
    users: Arc<Mutex<BTreeSet<String>>>,
}

fn no_share<T>() -> SftpResult<T> {
    Err(SftpError::failure("it is nobody's"))
}

impl Volume for Shared {
    fn of_user(&self, user: &str) -> Option<Arc<dyn Volume>> {
        self.users.lock().unwrap().insert(user.to_owned());
        Some(self.volume.clone())
    }

    fn open(&self, _: &RemotePath, _: &OpenHow) -> SftpResult<Box<dyn File>> {
        no_share()
    }

    fn attributes(&self, _: &RemotePath, _: Follow) -> SftpResult<Attributes> {
        no_share()
    }

    fn set_attributes(&self, _: &RemotePath, _: &Attributes, _: Follow) -> SftpResult<()> {
        no_share()
    }

    fn list(&self, _: &RemotePath) -> SftpResult<Box<dyn Listing>> {
        no_share()
    }

    fn remove(&self, _: &RemotePath) -> SftpResult<()> {
        no_share()
    }

    fn make_folder(&self, _: &RemotePath, _: Option<u32>) -> SftpResult<()> {
        no_share()
    }

    fn remove_folder(&self, _: &RemotePath) -> SftpResult<()> {
        no_share()
    }

    fn rename(&self, _: &RemotePath, _: &RemotePath, _: bool) -> SftpResult<()> {
        no_share()
    }

    fn read_link(&self, _: &RemotePath) -> SftpResult<Vec<u8>> {
        no_share()
    }

    fn symlink(&self, _: &[u8], _: &RemotePath) -> SftpResult<()> {
        no_share()
    }

    fn hard_link(&self, _: &RemotePath, _: &RemotePath) -> SftpResult<()> {
        no_share()
    }

    fn space(&self, _: &RemotePath) -> SftpResult<Space> {
        no_share()
    }

    fn without_links(self: Arc<Self>) -> Arc<dyn Volume> {
        self
    }
}

#[test]
fn the_workflows_of_an_account_have_a_share_of_the_storages_memory() {
    let world = World::new(&copy("archive", "TRUE"));
    let (files, users) = (world.files(), Arc::default());
    let buckets = Arc::new(Shares { buckets: files.buckets.clone(), users: Arc::clone(&users) });
    let files = WorkflowFiles { buckets, ..files };
    let job = world.job();
    job.content.set(files.look(&job).unwrap()).unwrap();
    files.carry_out(&job, &world.rights(&job)).unwrap();
    assert_eq!(*users.lock().unwrap(), BTreeSet::from([ACCOUNT.to_owned()]));
}
