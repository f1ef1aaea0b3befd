//! Every limit on what a peer of the network controls, in one place.

use std::time::Duration;

/// Connections of a listener that have completed their TLS handshake, at most. For a further one the connection that has
/// been idle for longest is closed: a peer that sends nothing must not lock out others.
pub const MAX_CONNECTIONS: usize = 4096;
/// Connections that have not completed a handshake, at most. For a further one the oldest of the peer that has most is closed.
pub const MAX_HANDSHAKES: usize = 2048;
/// Fraction of a listener's connections, and of the memory for bodies, that a peer (an IPv4 address, or the first 64
/// bits of an IPv6 address) may use, unless the listener is configured otherwise.
pub const PEER_SHARE: usize = 8;
/// Concurrent handshakes of one peer, for each connection that it may have.
pub const HANDSHAKES_PER_CONNECTION: usize = 2;
/// Interval at which a waiting connection checks whether an idle one can be closed for it.
pub const SLOTS_AGAIN: Duration = Duration::from_millis(200);
/// Pause between searches for a connection that can be closed, after one in vain.
pub const SLOTS_IN_VAIN: Duration = Duration::from_millis(50);
/// From accept to the end of the TLS handshake.
pub const HANDSHAKE: Duration = Duration::from_secs(10);
/// Longest time of a connection without a request, and of the arrival of a request's head.
pub const REQUEST_HEAD: Duration = Duration::from_secs(75);
/// From a request's head to the end of its body.
pub const REQUEST_BODY: Duration = Duration::from_secs(30);
/// Time after a request's head in which its body may arrive at any pace.
pub const BODY_GRACE: Duration = Duration::from_secs(10);
/// Bytes per second of a body after that, at least, counted from its first byte.
pub const BODY_RATE: u64 = 4 * 1024;
/// Bytes of a request's head. Roles Anywhere sends ML-DSA certificates in headers: 10 to 20 kB and more.
pub const MAX_HEAD: usize = 64 * 1024;
/// Bytes of an oversized body that are read before it is refused.
pub const MAX_DISCARDED: usize = 16 * 1024 * 1024;
/// Longest time of that reading.
pub const DISCARD: Duration = Duration::from_secs(5);
/// Concurrent streams on one HTTP/2 connection.
pub const MAX_STREAMS: u32 = 32;
/// Requests on one connection that the client cancelled or did not send to their end, less those that were answered. With more
/// the connection is closed (CVE-2023-44487).
pub const MAX_CANCELLED: usize = 128;
/// Streams that an HTTP/2 client has reset before the server read them.
pub const MAX_RESET_STREAMS: usize = 20;
/// Bytes that a client may send on an HTTP/2 connection before they are read.
pub const HTTP2_WINDOW: u32 = 256 * 1024;
/// The same on one stream.
pub const HTTP2_STREAM_WINDOW: u32 = 128 * 1024;
/// Bytes of request bodies in memory over all connections, counted as they arrive; further ones wait.
pub const BODY_BUDGET: usize = 128 * 1024 * 1024;
/// Least number of bytes of it that a peer may use, however small its share of the connections: enough for some of
/// the longest bodies.
pub const LEAST_BODY_SHARE: usize = 8 * 1024 * 1024;
/// A body longer than this is read only for a caller whose access key exists.
pub const UNKNOWN_CALLER_BODY: usize = 64 * 1024;
/// Requests that may wait for a store over the network at the same time; further ones wait without a thread. Together
/// with [`MAX_PLAIN_READS`] fewer than the runtime's 512 threads, because requests that need no store must find one.
pub const MAX_READS: usize = 256;
/// The same for plain HTTP.
pub const MAX_PLAIN_READS: usize = 128;
/// Interval between checks whether the server is ready.
pub const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// Age of the last check beyond which the server counts as not ready.
pub const LOOK_AGE: Duration = Duration::from_secs(30);
/// Longest wait for the first check after the start.
pub const FIRST_LOOK: Duration = Duration::from_secs(10);
/// Time that open requests have after the signal to stop.
pub const GRACE: Duration = Duration::from_secs(20);
/// Sessions of TLS 1.2 that are remembered.
pub const MAX_SESSIONS: usize = 4096;
/// Bytes of an answer that our client reads, at most.
pub const MAX_ANSWER: usize = 4 * 1024 * 1024;
/// Longest wait of our client for an answer.
pub const ANSWER: Duration = Duration::from_secs(60);
/// Longest wait of our client for the reason why a connection broke, and of the server for a client that it has refused.
pub const LAST_WORDS: Duration = Duration::from_millis(500);
/// Bytes of the head of a request from a program on the same machine.
pub const MAX_LOCAL_HEAD: usize = 16 * 1024;
/// Local connections beyond their limit that are told that they are too many; further ones are closed.
pub const LOCAL_REFUSED: usize = 32;
/// Connections of validators to a machine that enrols by tls-alpn-01, at the same time.
pub const VALIDATORS: usize = 64;
/// Bytes of a CRL or OCSP response that is fetched, at most.
pub const MAX_FETCH: usize = 32 * 1024 * 1024;
/// Longest time of one fetch, from the DNS look-up to the last byte.
pub const FETCH: Duration = Duration::from_secs(15);
/// Redirections that a fetch follows.
pub const MAX_FETCH_REDIRECTS: usize = 3;
/// Certificates of a chain that a listener shows: clients take six below the root and the leaf.
pub const MAX_CHAIN: usize = 8;
/// Client CAs and CRLs of a server, at most.
pub const MAX_CLIENT_CAS: usize = 256;
/// Longest time of one ACME validation, with all its attempts and redirects.
pub const VALIDATION: Duration = Duration::from_secs(20);
/// Longest time of one step of it: a connection, a handshake, an answer.
pub const VALIDATION_STEP: Duration = Duration::from_secs(10);
/// Concurrent validations of challenges.
pub const MAX_VALIDATIONS: usize = 64;
/// Concurrent domain validations.
pub const MAX_DOMAIN_VALIDATIONS: usize = 32;
/// Redirects that are followed (RFC 8555, section 8.3).
pub const MAX_REDIRECTS: usize = 10;
/// Bytes of a target's answer.
pub const MAX_VALIDATION_BODY: usize = 64 * 1024;
/// Addresses of a target that are tried.
pub const MAX_ADDRESSES: usize = 4;
/// Connections over plain HTTP, at most; for a further one the same rule applies as over TLS.
pub const MAX_PLAIN_CONNECTIONS: usize = 2048;
/// Connections of one peer among them: many clients that ask for revocation may be behind one address.
pub const MAX_PLAIN_BY_PEER: usize = 1024;
/// Longest time of such a connection without a request or progress of an answer, and of the arrival of a request.
pub const PLAIN_IDLE: Duration = Duration::from_secs(20);
/// Bytes of an answer that are written to such a connection at once.
pub const PLAIN_PIECE: usize = 64 * 1024;
/// Bytes in the head of a request over plain HTTP, whose path may contain an OCSP request.
pub const MAX_PLAIN_HEAD: usize = 48 * 1024;
/// Bytes of an OCSP request.
pub const MAX_PLAIN_BODY: usize = 16 * 1024;
/// OCSP responses that are signed concurrently: each needs a signature and a commit.
pub const MAX_SIGNING: usize = 8;
/// OCSP requests that wait for a signature; further ones get `tryLater`.
pub const MAX_QUESTIONS: usize = 512;
/// Longest wait of such a request for its turn.
pub const SIGNING_WAIT: Duration = Duration::from_secs(2);
/// Connections to a witness, at most.
pub const MAX_WITNESS_CONNECTIONS: usize = 256;
/// Bytes of the head of a request to a witness.
pub const MAX_WITNESS_HEAD: usize = 16 * 1024;
/// Bytes of a request to a witness: 16 signatures of ML-DSA-44 are 54 kB.
pub const MAX_WITNESS_BODY: usize = 256 * 1024;
/// Bytes of a witness's answer.
pub const MAX_WITNESS_ANSWER: usize = 256 * 1024;
/// Longest time of a witness's answer, from the DNS look-up of its name.
pub const WITNESS_ANSWER: Duration = Duration::from_secs(10);
/// Attempts at reaching a witness for one checkpoint.
pub const WITNESS_ATTEMPTS: u32 = 3;
/// Pause before the second attempt; each further one is twice as long.
pub const WITNESS_PAUSE: Duration = Duration::from_secs(1);
/// Long-running calls of one principal that wait for their turn; further ones get `ThrottlingException`.
pub const SLOW_WAITING: usize = 64;
/// Longest time of writing an object to a bucket.
pub const OBJECT: Duration = Duration::from_secs(20);
/// Bytes of a PROXY protocol header; a certificate may be in it.
pub const MAX_PROXY_HEADER: usize = 16 * 1024;
/// Longest time of the arrival of such a header, before the TLS handshake begins.
pub const PROXY_HEADER: Duration = Duration::from_secs(5);
/// Time after which a proxied connection whose protocol the proxy does not understand, such as PostgreSQL's, may be closed
/// for another one if its client has sent nothing.
pub const PROXY_SILENT: Duration = Duration::from_secs(5);
/// Least number of connections of one peer through a proxy's listener, however few the listener has in all.
pub const LEAST_PROXIED_BY_PEER: usize = 256;
/// Connections through a proxy's listener, unless it is configured otherwise.
pub const MAX_PROXIED: usize = 16_384;
/// The most that can be configured.
pub const MOST_CONNECTIONS: usize = 1 << 24;
/// Bytes that a client may send on an HTTP/2 connection to a proxy before they are passed on.
pub const PROXY_WINDOW: u32 = 1024 * 1024;
/// The same on one stream.
pub const PROXY_STREAM_WINDOW: u32 = 256 * 1024;
/// Bytes of an answer that are held for one stream of such a connection.
pub const PROXY_SEND_BUFFER: usize = 64 * 1024;
/// Longest time that a receiver may leave unread the bytes that are held for it.
pub const PROXY_STALLED: Duration = Duration::from_secs(300);
/// Longest time of a proxied connection without a byte in either direction, unless the listener is configured otherwise.
pub const PROXY_IDLE: Duration = Duration::from_secs(3600);
/// Longest time of a backend to accept a connection, unless the listener is configured otherwise.
pub const BACKEND_CONNECT: Duration = Duration::from_secs(5);
/// Longest time of a backend to answer an HTTP request, unless the listener is configured otherwise.
pub const BACKEND_ANSWER: Duration = Duration::from_secs(60);
/// Bytes that are copied between client and backend at once, in a buffer that is held only meanwhile.
pub const PIECE: usize = 128 * 1024;
/// Such buffers that are kept for later.
pub const SPARE_PIECES: usize = 64;
/// Connections to one backend that are kept for the next request over HTTP.
pub const SPARE_BACKEND_CONNECTIONS: usize = 64;
/// Longest time that such a connection is kept.
pub const SPARE_BACKEND_IDLE: Duration = Duration::from_secs(30);
/// Concurrent streams on one HTTP/2 connection to a proxy.
pub const MAX_PROXY_STREAMS: u32 = 128;
/// Requests that a PostgreSQL client may make before its session begins: one for GSSAPI, one for TLS.
pub const MAX_POSTGRES_REQUESTS: usize = 2;
/// Time for which a backend that did not accept a connection is tried only after the others.
pub const BACKEND_REST: Duration = Duration::from_secs(10);
/// Refusals of each cause that are logged in a minute, at each listener.
pub const REFUSALS_LOGGED: u32 = 5;
/// Rows of one table of metrics; further label combinations share one row.
pub const MAX_METRIC_ROWS: usize = 2_000;
/// Names in labels of metrics that are the operator's, such as those of listeners.
pub const MAX_METRIC_NAMES: usize = 512;
/// Bytes of such a name.
pub const MAX_METRIC_NAME: usize = 128;
/// Connections to the listener for metrics; for a further one the connection that has been idle for longest is closed.
pub const MAX_METRIC_CONNECTIONS: usize = 64;
/// Bytes of the head of a request for metrics.
pub const MAX_METRIC_HEAD: usize = 16 * 1024;
/// Longest time of the last push of metrics.
pub const LAST_PUSH: Duration = Duration::from_secs(5);
/// Concurrent handshakes over QUIC above which a client must first prove its address, by Retry.
pub const RETRY_ABOVE: usize = 128;
/// Bytes that a peer may send on a QUIC connection before they are read.
pub const QUIC_WINDOW: u64 = 256 * 1024;
/// The same on one stream.
pub const QUIC_STREAM_WINDOW: u64 = 128 * 1024;
/// Bytes that are held for a QUIC stream until its peer has them.
pub const QUIC_SEND_BUFFER: u32 = 256 * 1024;
/// Unidirectional streams that a peer may have open: HTTP/3 has three, and some that mean nothing.
pub const UNIDIRECTIONAL_STREAMS: u64 = 8;
/// Frames on one HTTP/3 stream that no other limit counts: without content, or of another type than DATA.
pub const EMPTY_FRAMES: u32 = 1000;
/// Streams on one HTTP/3 connection that may end before there is a request on them.
pub const STREAMS_WITHOUT_REQUEST: usize = 1000;
/// Heads of requests that are read concurrently on one HTTP/3 connection; each may have [`MAX_HEAD`] bytes.
pub const HEADS_AT_A_TIME: usize = 4;
/// Longest time of the head of a request over HTTP/3 once its stream is open. A connection that has been idle for as long
/// ends with it.
pub const STREAM_HEAD: Duration = Duration::from_secs(15);
/// Longest wait for the end of a request without a body after its head.
pub const STREAM_END: Duration = Duration::from_secs(10);
/// Bytes of datagrams that wait to be read, on a QUIC listener's socket.
pub const QUIC_RECEIVE_BUFFER: usize = 2 * 1024 * 1024;
/// Time for which clients may remember that HTTP/3 is served (`Alt-Svc: ma`).
pub const ALT_SVC: Duration = Duration::from_secs(3600);
/// Interval, while the server stops, between checks whether an HTTP/3 connection has requests left.
pub const STOPPING: Duration = Duration::from_millis(20);

/// Bytes of a rotation function's answer, which counts only as success or failure.
pub const MAX_FUNCTION_ANSWER: usize = 1 << 20;
/// SFTP connections, at most. None is closed for another one.
pub const MAX_SFTP_CONNECTIONS: usize = 8192;
/// Sessions of one SFTP user.
pub const MAX_SFTP_SESSIONS_BY_USER: usize = 1024;
/// Files and folders that all SFTP sessions have open together, and never more than a quarter of the file descriptors that the process
/// may have: an upload takes two of them.
pub const MAX_SFTP_HANDLES: usize = 16_384;
/// Part of these that one user may have.
pub const SFTP_HANDLES_SHARE: usize = 8;
/// SFTP connections that have not authenticated: from the first number on new ones are dropped at random, from the second all.
pub const SFTP_STARTUPS: (usize, usize) = (1024, 2048);
/// From accept to the end of authentication.
pub const SFTP_LOGIN_GRACE: Duration = Duration::from_secs(60);
/// Time without a request after which an SFTP session ends, as with AWS.
pub const SFTP_IDLE: Duration = Duration::from_secs(1800);
/// Interval between questions whether an SFTP client is still there.
pub const SFTP_KEEPALIVE: Duration = Duration::from_secs(60);
/// Interval between checks whether the user of an SFTP session may still be here.
pub const SFTP_RECHECK: Duration = Duration::from_secs(10);
/// Questions that it may leave without an answer.
pub const SFTP_KEEPALIVES: u32 = 3;
/// Longest time of a question to an identity provider; API Gateway's own limit is 29 seconds.
pub const SFTP_PROVIDER: Duration = Duration::from_secs(30);
/// Questions of SFTP logins to identity providers at the same time.
pub const SFTP_QUESTIONS: usize = 256;
/// Those of one peer; its further ones wait for them.
pub const SFTP_QUESTIONS_OF_PEER: usize = 8;
/// Questions of one kind to servers outside that calls of the API wait for.
pub const MAX_ERRANDS: usize = 8;
/// Longest time for the operations that run when an SFTP connection ends.
pub const SFTP_FINISH: Duration = Duration::from_secs(60);
/// Longest time to send what is left when an SFTP connection has ended: a client that reads nothing does not keep it.
pub const SFTP_LAST_WORDS: Duration = Duration::from_secs(5);
/// Channels of an SFTP connection, as with AWS.
pub const MAX_SFTP_CHANNELS: usize = 10;
/// Bytes of data in a packet of a client.
pub const MAX_SFTP_PACKET: u32 = 64 * 1024;
/// Operations of a channel that run at the same time.
pub const MAX_SFTP_OPERATIONS: usize = 8;
/// Writes to one file that run one after the other without another thread's part; their replies come together.
pub const SFTP_WRITES_TOGETHER: usize = 8;
/// Operations of a connection that run at the same time, those of channels that were closed meanwhile included.
pub const MAX_SFTP_OPERATIONS_OF_CONNECTION: usize = 32;
/// Operations of a user that run at the same time, in all sessions: others wait for the user's own.
pub const SFTP_THREADS_OF_USER: usize = 16;
/// Logins of a user that open the user's folders at the same time. They do not wait for the user's operations, which may take minutes.
pub const SFTP_LOGINS_OF_USER: usize = 4;
/// Operations of all connections that run at the same time, so that slow files leave threads to the rest of the server.
pub const SFTP_THREADS: usize = 256;
/// Logins of all users that open folders at the same time. Operations have other threads, so that a folder that is slow to open, or is
/// measured for its quota, does not hold up the sessions that are open.
pub const SFTP_LOGINS: usize = SFTP_THREADS / 4;
/// Uploads of a user that are inspected at the same time, in all sessions: others wait for the user's own.
pub const SFTP_INSPECTIONS_OF_USER: usize = 4;
/// Uploads of all users that are inspected or wait for it, each of which occupies a thread: half of [`SFTP_THREADS`] is left to everything
/// else, however slow the scanner is.
pub const SFTP_INSPECTIONS: usize = SFTP_THREADS / 2;
/// Longest wait of an upload for others of its user to be inspected.
pub const SFTP_INSPECTION_WAIT: Duration = Duration::from_secs(300);
/// Bytes that a copy of a workflow holds in memory.
pub const WORKFLOW_BUFFER: usize = 1 << 20;
/// Bytes that a connection holds for the client before it takes more replies: few enough to stay in a core's cache until they are sent.
pub const SFTP_OUTPUT: usize = 256 * 1024;
/// Bytes of input, requests, replies and wide windows that the channels of a connection share. When it is used up, each still has its own
/// share, see [`SFTP_SHARE_OF_CHANNEL`] and [`SFTP_REPLIES_OF_CHANNEL`]. One channel that sends or asks for much stays below it.
pub const SFTP_MEMORY_OF_CONNECTION: usize = 8 << 20;
/// The same for all sessions of a user.
pub const SFTP_MEMORY_OF_USER: usize = 256 << 20;
/// Bytes below which a channel is granted more window in any case. It is more than the longest packet of SFTP, so that a whole one
/// always arrives.
pub const SFTP_SHARE_OF_CHANNEL: usize = outlast_sftp::limits::MAX_PACKET + 32 * 1024;
/// Bytes of replies that a channel may have in any case; or one reply, whatever its size.
pub const SFTP_REPLIES_OF_CHANNEL: usize = 64 * 1024;
/// Receive window that a channel begins with.
pub const SFTP_FIRST_WINDOW: u32 = 128 * 1024;
/// Receive window of a channel that has sent as much, while there is memory for it.
pub const SFTP_WINDOW: u32 = 2 << 20;
/// Bytes that are read from the socket at a time.
pub const SFTP_READ: usize = 64 * 1024;
/// Longest time to read an upload that is to be signed.
pub const SFTP_SIGNING: Duration = Duration::from_secs(600);
/// Bytes of an upload that are read at a time to sign it.
pub const SFTP_SIGNING_READ: usize = 256 * 1024;

/// Attempts at a request to S3; the first repetition comes after [`S3_PAUSE`], each further one after twice the pause.
pub const S3_ATTEMPTS: u32 = 4;
/// Pause before the second attempt.
pub const S3_PAUSE: Duration = Duration::from_millis(200);
/// Longest time of one attempt; a body adds a second for each of these bytes, [`S3_SLOWEST`].
pub const S3_REQUEST: Duration = Duration::from_secs(30);
/// Bytes in a second that S3 must take or send, at least.
pub const S3_SLOWEST: u64 = 1024 * 1024;
/// Idle connections to an S3 endpoint that are kept.
pub const S3_SPARE_CONNECTIONS: usize = 16;
/// Longest time that one is kept.
pub const S3_SPARE_IDLE: Duration = Duration::from_secs(10);
/// Names in one page of a listing, at most; S3 allows no more.
pub const S3_PAGE: u32 = 1000;
/// Pages of a listing that may follow each other without a name that users can see.
pub const S3_EMPTY_PAGES: u32 = 1000;
/// Bytes of a key (AWS: "Naming Amazon S3 objects").
pub const S3_MAX_KEY: usize = 1024;
/// Bytes of an object that is written or renamed, at most: 1.7 TiB, all that [`S3_PARTS`] hold.
pub const S3_MAX_OBJECT: u64 = (2_000 * 8 + 3_000 * 64 + 5_000 * 320) << 20;
/// Bytes that S3 copies in one request, at most.
pub const S3_MAX_COPY: u64 = 5 << 30;
/// Parts of an upload: how many, and how many bytes each has. Those of files that are common stay small, and three of the
/// largest fit into [`S3_MEMORY`]. S3 allows 10,000 parts of 5 MiB to 5 GiB.
pub const S3_PARTS: [(u64, u64); 3] = [(2_000, 8 << 20), (3_000, 64 << 20), (5_000, 320 << 20)];
/// Bytes that may be missing before what a client writes into a part: less than clients have on their way.
pub const S3_MAX_GAP: usize = 32 << 20;
/// Bytes that S3 copies in a second, at least.
pub const S3_COPIES: u64 = 8 << 20;
/// Time in which S3 makes an object of its parts; AWS says that it may take minutes.
pub const S3_COMPLETION: Duration = Duration::from_secs(600);
/// Parts of one upload that are in memory and not complete: so far may a client write out of order.
pub const S3_OPEN_PARTS: usize = 4;
/// Complete parts of one upload that are on their way at the same time.
pub const S3_SENDING_PARTS: usize = 2;
/// Bytes that are read from S3 at a time for a file that is read from front to back.
pub const S3_BLOCK: u64 = 4 << 20;
/// Such blocks of one open file, those that are read ahead among them.
pub const S3_BLOCKS: usize = 4;
/// Blocks that are read ahead.
pub const S3_AHEAD: usize = 2;
/// Bytes of all open files of S3 in memory: without room an upload fails, and reading goes on without blocks.
pub const S3_MEMORY: usize = 1 << 30;
/// Those of them that the uploads of one user, or of an account's connectors and workflows, have in any case: eight can use all of it.
pub const S3_MEMORY_OF_USER: usize = S3_MEMORY / 8;
/// Bytes of an error of S3's, at most.
pub const MAX_S3_ERROR: usize = 64 * 1024;

/// From the look-up of a name to a connection with a server outside that a connector names.
pub const OUTBOUND_CONNECT: Duration = Duration::from_secs(15);
/// Longest time of its key exchange and login, and again of the start of SFTP.
pub const OUTBOUND_LOGIN: Duration = Duration::from_secs(30);
/// Longest time of a test of a connection: AWS's clients wait a minute for an answer.
pub const OUTBOUND_TEST: Duration = Duration::from_secs(50);
/// Longest wait for such a server to send or to take a byte, and for its next reply to requests of SFTP.
pub const OUTBOUND_IDLE: Duration = Duration::from_secs(60);
/// Bytes of data in a packet of such a server.
pub const OUTBOUND_PACKET: u32 = 64 * 1024;
/// Rounds of questions of such a server at a login.
pub const OUTBOUND_PROMPTS: usize = 4;
/// Jobs of connectors that run at the same time, each with up to five connections, each with a thread for its file.
pub const MAX_CONNECTOR_JOBS: usize = 16;
/// Those of one account: others must not wait for the whole time that its remote servers may take.
pub const CONNECTOR_JOBS_OF_ACCOUNT: usize = 4;
/// Interval between searches for jobs of connectors whose time is over.
pub const CONNECTOR_OVERDUE: Duration = Duration::from_secs(60);
/// How long before the end of its lease a job stops whose lease was not renewed.
pub const CONNECTOR_MARGIN: Duration = Duration::from_secs(5);
/// Interval between searches for jobs of connectors that are due.
pub const CONNECTOR_SEARCH: Duration = Duration::from_secs(1);
/// Interval at which the lease of a running job is renewed.
pub const CONNECTOR_RENEWAL: Duration = Duration::from_secs(20);
/// Pieces of a file that wait between its reader and its writer.
pub const CONNECTOR_PIECES: usize = 16;
/// Bytes of a file of a bucket that a connector reads at a time.
pub const CONNECTOR_PIECE: usize = 256 * 1024;
/// Bytes of a file that a connector retrieves (AWS: "Quotas for SFTP connectors", 150 GiB).
pub const MAX_CONNECTOR_FILE: u64 = 150 << 30;
/// Free bytes of a file system that retrieved files leave, or a twentieth of it if that is less: a full disk stops every call.
pub const CONNECTOR_RESERVE: u64 = 1 << 30;
/// Bytes of a retrieved file between looks at the free space.
pub const CONNECTOR_SPACE_STEP: u64 = 8 << 20;
/// Tests of one account, of connectors and of identity providers together, that run at the same time.
pub const MAX_TESTS_OF_ACCOUNT: usize = 2;
/// Names of a remote folder that lead to nothing that can be listed.
pub const MAX_CONNECTOR_SKIPPED: usize = 10_000;
/// Bytes of paths in a list of a remote folder: [`outlast_domain::limits::MAX_LISTED_ITEMS`] of 80 bytes. A list with longer ones is
/// truncated before.
pub const MAX_CONNECTOR_NAMES: usize = 16_000_000;
