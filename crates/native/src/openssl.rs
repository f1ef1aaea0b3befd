//! OpenSSL 3.5 or later: handshakes in memory through libssl's own interface.
//!
//! Loads only functions that the headers of libssl and libcrypto declare as functions, all through libssl, so that
//! two libcryptos cannot be mixed. Macros of the headers become calls of `SSL_CTX_ctrl` and `SSL_ctrl` with the
//! numbers of `ssl.h`, which are part of the stable interface of 3.x.

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_ulong, c_void};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::OnceLock;

use libloading::Library;

use crate::Missing;

/// Oldest version with ML-KEM, ML-DSA and hybrid groups: 3.5.
const OLDEST: c_ulong = 0x3050_0000;

const SSL_CTRL_EXTRA_CHAIN_CERT: c_int = 14;
const SSL_CTRL_SET_SESS_CACHE_MODE: c_int = 44;
const SSL_CTRL_SET_TLSEXT_HOSTNAME: c_int = 55;
const SSL_CTRL_SET_GROUPS_LIST: c_int = 92;
const SSL_CTRL_SET_MIN_PROTO_VERSION: c_int = 123;
const TLS1_3_VERSION: c_long = 0x0304;
const SSL_VERIFY_NONE: c_int = 0;
/// `SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT`
const SSL_VERIFY_REQUIRED: c_int = 3;
const SSL_ERROR_WANT_READ: c_int = 2;
const OPENSSL_INIT_NO_LOAD_CONFIG: u64 = 0x80;

/// Declares the functions to load.
macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        #[allow(non_snake_case, reason = "C's names")]
        struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            /// All through libssl: the loader also searches a library's dependencies (dlsym(3)), so that libcrypto's
            /// functions are those of the libcrypto that this libssl uses.
            ///
            /// # Safety
            /// The library must be OpenSSL's libssl of version 3, and must stay loaded.
            unsafe fn find(ssl: &Library) -> Result<Self, libloading::Error> {
                Ok(Self {
                    // SAFETY: the types are those in OpenSSL 3's headers.
                    $($name: unsafe { *ssl.get(concat!(stringify!($name), "\0").as_bytes())? },)*
                })
            }
        }
    };
}

type Pointer = *mut c_void;

functions! {
    // Functions of libcrypto.
    OpenSSL_version: fn(c_int) -> *const c_char;
    BIO_s_mem: fn() -> Pointer;
    BIO_new: fn(Pointer) -> Pointer;
    BIO_new_mem_buf: fn(*const c_void, c_int) -> Pointer;
    BIO_free: fn(Pointer) -> c_int;
    BIO_read: fn(Pointer, Pointer, c_int) -> c_int;
    BIO_write: fn(Pointer, *const c_void, c_int) -> c_int;
    BIO_ctrl_pending: fn(Pointer) -> usize;
    PEM_read_bio_X509: fn(Pointer, *mut Pointer, Pointer, Pointer) -> Pointer;
    PEM_read_bio_PrivateKey: fn(Pointer, *mut Pointer, Pointer, Pointer) -> Pointer;
    X509_free: fn(Pointer);
    EVP_PKEY_free: fn(Pointer);
    X509_STORE_add_cert: fn(Pointer, Pointer) -> c_int;
    ERR_get_error: fn() -> c_ulong;
    ERR_error_string_n: fn(c_ulong, *mut c_char, usize);
    ERR_clear_error: fn();
    // Functions of libssl.
    OPENSSL_init_ssl: fn(u64, *const c_void) -> c_int;
    TLS_method: fn() -> Pointer;
    SSL_CTX_new: fn(Pointer) -> Pointer;
    SSL_CTX_free: fn(Pointer);
    SSL_CTX_ctrl: fn(Pointer, c_int, c_long, Pointer) -> c_long;
    SSL_CTX_use_certificate: fn(Pointer, Pointer) -> c_int;
    SSL_CTX_use_PrivateKey: fn(Pointer, Pointer) -> c_int;
    SSL_CTX_check_private_key: fn(Pointer) -> c_int;
    SSL_CTX_get_cert_store: fn(Pointer) -> Pointer;
    SSL_CTX_set_verify: fn(Pointer, c_int, Pointer);
    SSL_CTX_set_session_id_context: fn(Pointer, *const u8, u32) -> c_int;
    SSL_new: fn(Pointer) -> Pointer;
    SSL_free: fn(Pointer);
    SSL_ctrl: fn(Pointer, c_int, c_long, Pointer) -> c_long;
    SSL_set1_host: fn(Pointer, *const c_char) -> c_int;
    SSL_set_bio: fn(Pointer, Pointer, Pointer);
    SSL_set_connect_state: fn(Pointer);
    SSL_set_accept_state: fn(Pointer);
    SSL_do_handshake: fn(Pointer) -> c_int;
    SSL_read: fn(Pointer, Pointer, c_int) -> c_int;
    SSL_get_error: fn(Pointer, c_int) -> c_int;
    SSL_get_verify_result: fn(Pointer) -> c_long;
    SSL_get0_group_name: fn(Pointer) -> *const c_char;
    SSL_session_reused: fn(Pointer) -> c_int;
    SSL_set_shutdown: fn(Pointer, c_int);
    SSL_get1_session: fn(Pointer) -> Pointer;
    SSL_set_session: fn(Pointer, Pointer) -> c_int;
    SSL_SESSION_free: fn(Pointer);
}

/// OpenSSL, loaded until the process ends.
pub struct OpenSsl {
    functions: Functions,
    version: String,
}

/// OpenSSL's own error message.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {reason}")]
pub struct Failure {
    what: &'static str,
    reason: String,
}

/// Finds OpenSSL in one of these folders, which the caller must trust, or else where the system's loader searches;
/// once per process.
pub fn load(folders: &[PathBuf]) -> Result<&'static OpenSsl, Missing> {
    static LOADED: OnceLock<OpenSsl> = OnceLock::new();
    if let Some(loaded) = LOADED.get() {
        return Ok(loaded);
    }
    let mut reasons = String::new();
    for folder in folders.iter().map(PathBuf::as_path).chain([Path::new("")]) {
        match OpenSsl::open(folder) {
            Ok(found) => return Ok(LOADED.get_or_init(|| found)),
            Err(reason) => {
                let _ = write!(reasons, "{}{reason}", if reasons.is_empty() { "" } else { "; " });
            }
        }
    }
    Err(Missing { library: "libssl.so.3".to_owned(), reason: reasons })
}

impl OpenSsl {
    fn open(folder: &Path) -> Result<Self, String> {
        let place = |name: &str| match folder.as_os_str().is_empty() {
            true => PathBuf::from(name),
            false => folder.join(name),
        };
        let failed = |error: libloading::Error| match std::error::Error::source(&error) {
            Some(source) => source.to_string(),
            None => error.to_string(),
        };
        // libssl's dependency on libcrypto.so.3 is satisfied by the library already loaded under that name, the one
        // next to it. SAFETY: the initialisers of these libraries are OpenSSL's own. The caller names the folders in
        // which a file of this name can be trusted to be OpenSSL (for the lab: folders that only root, the user and
        // the program's owner may write); without a folder the system's loader decides.
        let crypto = unsafe { Library::new(place("libcrypto.so.3")) }.map_err(failed)?;
        // SAFETY: as above.
        let ssl = unsafe { Library::new(place("libssl.so.3")) }.map_err(failed)?;
        let (used, beside) = (version_of(&ssl).map_err(failed)?, version_of(&crypto));
        if beside.is_ok_and(|beside| !std::ptr::fn_addr_eq(beside, used)) {
            return Err("another libcrypto.so.3 is loaded already".to_owned());
        }
        // SAFETY: it has no preconditions.
        let version = unsafe { used() };
        if version < OLDEST {
            let (major, minor) = (version >> 28, version >> 20 & 0xff);
            return Err(format!("OpenSSL {major}.{minor} is older than 3.5"));
        }
        // SAFETY: it is OpenSSL by name and version, and is leaked below with its dependencies before any call.
        let functions = unsafe { Functions::find(&ssl) }.map_err(failed)?;
        std::mem::forget((crypto, ssl));
        // SAFETY: no settings are passed. The machine's openssl.cnf is not read, so it cannot change the
        // measurements.
        if unsafe { (functions.OPENSSL_init_ssl)(OPENSSL_INIT_NO_LOAD_CONFIG, std::ptr::null()) }
            != 1
        {
            return Err("OpenSSL cannot be started".to_owned());
        }
        // SAFETY: 6 is OPENSSL_VERSION_STRING; the text is static.
        let version = unsafe { text((functions.OpenSSL_version)(6)) }.unwrap_or_default();
        Ok(Self { functions, version })
    }

    /// Version, such as `3.5.7`.
    pub fn version(&self) -> &str {
        &self.version
    }

    fn failure(&self, what: &'static str) -> Failure {
        let mut reasons = Vec::new();
        loop {
            // SAFETY: it has no preconditions.
            let code = unsafe { (self.functions.ERR_get_error)() };
            if code == 0 || reasons.len() == 8 {
                break;
            }
            let mut buffer = [0_u8; 256];
            // SAFETY: the buffer has the stated length and ends with a zero byte.
            unsafe {
                (self.functions.ERR_error_string_n)(code, buffer.as_mut_ptr().cast(), buffer.len());
            }
            let reason = CStr::from_bytes_until_nul(&buffer).unwrap_or_default();
            reasons.push(reason.to_string_lossy().into_owned());
        }
        Failure { what, reason: reasons.join("; ") }
    }

    fn owned(
        &'static self,
        pointer: Pointer,
        free: Free,
        what: &'static str,
    ) -> Result<Owned, Failure> {
        let pointer = NonNull::new(pointer).ok_or_else(|| self.failure(what))?;
        Ok(Owned { pointer, free })
    }

    /// A BIO that reads `pem`.
    fn reader(&'static self, pem: &[u8]) -> Result<Owned, Failure> {
        let len = c_int::try_from(pem.len()).unwrap_or(0);
        // SAFETY: the BIO only reads, and every caller drops it before the text.
        let bio = unsafe { (self.functions.BIO_new_mem_buf)(pem.as_ptr().cast(), len) };
        self.owned(bio, Free::Int(self.functions.BIO_free), "memory")
    }

    fn certificates(&'static self, pem: &[u8]) -> Result<Vec<Owned>, Failure> {
        let bio = self.reader(pem)?;
        let null = std::ptr::null_mut();
        let mut found = Vec::new();
        loop {
            // SAFETY: the BIO is alive; no password is asked for, because certificates have none.
            let next = unsafe {
                (self.functions.PEM_read_bio_X509)(bio.get(), std::ptr::null_mut(), null, null)
            };
            if next.is_null() {
                break;
            }
            found.push(self.owned(next, Free::Void(self.functions.X509_free), "certificate")?);
        }
        // OpenSSL reports the end of the text as an error. SAFETY: it has no preconditions.
        unsafe { (self.functions.ERR_clear_error)() };
        Ok(found)
    }
}

type VersionNumber = unsafe extern "C" fn() -> c_ulong;

/// The function that returns the version of the libcrypto that this library is or uses.
fn version_of(library: &Library) -> Result<VersionNumber, libloading::Error> {
    // SAFETY: the function has this type in every version of OpenSSL since 1.1.
    unsafe { library.get::<VersionNumber>(b"OpenSSL_version_num\0") }.map(|found| *found)
}

/// # Safety The pointer must be null or point to a text that ends with a zero byte and stays valid during the call.
unsafe fn text(pointer: *const c_char) -> Option<String> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    Some(unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
}

#[derive(Clone, Copy)]
enum Free {
    Void(unsafe extern "C" fn(Pointer)),
    Int(unsafe extern "C" fn(Pointer) -> c_int),
}

/// An OpenSSL object that is released on drop.
struct Owned {
    pointer: NonNull<c_void>,
    free: Free,
}

impl Owned {
    fn get(&self) -> Pointer {
        self.pointer.as_ptr()
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the pointer came from OpenSSL with this release function, and is released once.
        unsafe {
            match self.free {
                Free::Void(free) => free(self.get()),
                Free::Int(free) => {
                    free(self.get());
                }
            }
        }
    }
}

/// Side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Connects.
    Client,
    /// Accepts connections.
    Server,
}

/// Settings of a side.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// Client or server.
    pub side: Side,
    /// Groups in OpenSSL's notation, `X25519MLKEM768:x25519`; a client sends a key share of the first.
    pub groups: &'a str,
    /// Certificate chain and private key of this side, in PEM.
    pub identity: Option<(&'a str, &'a str)>,
    /// Trusted roots in PEM: the peer must present a certificate below them.
    pub roots: Option<&'a str>,
}

/// An `SSL_CTX` for TLS 1.3.
pub struct Context {
    openssl: &'static OpenSsl,
    context: Owned,
    side: Side,
    verifies: bool,
}

impl Context {
    /// Sets up a side.
    pub fn new(openssl: &'static OpenSsl, setup: &Setup<'_>) -> Result<Self, Failure> {
        let functions = &openssl.functions;
        // SAFETY: the method is static.
        let context = unsafe { (functions.SSL_CTX_new)((functions.TLS_method)()) };
        let context = openssl.owned(context, Free::Void(functions.SSL_CTX_free), "context")?;
        let groups = CString::new(setup.groups)
            .map_err(|_| Failure { what: "groups", reason: "a zero byte".to_owned() })?;
        let control = |command, number, pointer: Pointer| {
            // SAFETY: the context is alive, and each command below gets the arguments that `ssl.h` specifies.
            unsafe { (functions.SSL_CTX_ctrl)(context.get(), command, number, pointer) }
        };
        let null = std::ptr::null_mut();
        if control(SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION, null) != 1 {
            return Err(openssl.failure("TLS 1.3"));
        }
        if control(SSL_CTRL_SET_GROUPS_LIST, 0, groups.as_ptr().cast_mut().cast()) != 1 {
            return Err(openssl.failure("groups"));
        }
        // Off: sessions are resumed from tickets.
        control(SSL_CTRL_SET_SESS_CACHE_MODE, 0, null);
        // SAFETY: the context is alive, and four bytes are read.
        unsafe { (functions.SSL_CTX_set_session_id_context)(context.get(), b"lab!".as_ptr(), 4) };
        if let Some((chain, key)) = setup.identity {
            let mut chain = openssl.certificates(chain.as_bytes())?.into_iter();
            let leaf = chain.next().ok_or_else(|| openssl.failure("chain"))?;
            // SAFETY: context and certificate are alive; the context takes its own reference.
            if unsafe { (functions.SSL_CTX_use_certificate)(context.get(), leaf.get()) } != 1 {
                return Err(openssl.failure("certificate"));
            }
            for certificate in chain {
                if control(SSL_CTRL_EXTRA_CHAIN_CERT, 0, certificate.get()) != 1 {
                    return Err(openssl.failure("chain"));
                }
                // The context owns the certificate now.
                std::mem::forget(certificate);
            }
            let bio = openssl.reader(key.as_bytes())?;
            // SAFETY: the BIO is alive. OpenSSL would ask for a password on the terminal, but the keys have none.
            let key = unsafe {
                (functions.PEM_read_bio_PrivateKey)(bio.get(), std::ptr::null_mut(), null, null)
            };
            let key = openssl.owned(key, Free::Void(functions.EVP_PKEY_free), "private key")?;
            // SAFETY: context and key are alive; the context takes its own reference.
            let used = unsafe {
                (functions.SSL_CTX_use_PrivateKey)(context.get(), key.get()) == 1
                    && (functions.SSL_CTX_check_private_key)(context.get()) == 1
            };
            if !used {
                return Err(openssl.failure("private key"));
            }
        }
        if let Some(roots) = setup.roots {
            for root in openssl.certificates(roots.as_bytes())? {
                // SAFETY: the store belongs to the context, which is alive; it takes its own reference.
                let added = unsafe {
                    let store = (functions.SSL_CTX_get_cert_store)(context.get());
                    (functions.X509_STORE_add_cert)(store, root.get())
                };
                if added != 1 {
                    return Err(openssl.failure("root"));
                }
            }
        }
        let mode = if setup.roots.is_some() { SSL_VERIFY_REQUIRED } else { SSL_VERIFY_NONE };
        // SAFETY: the context is alive; there is no callback.
        unsafe { (functions.SSL_CTX_set_verify)(context.get(), mode, null) };
        Ok(Self { openssl, context, side: setup.side, verifies: setup.roots.is_some() })
    }
}

/// A session that can be resumed.
pub struct Session(Owned);

/// A connection in memory.
pub struct Connection {
    openssl: &'static OpenSsl,
    /// It owns both BIOs.
    connection: Owned,
    incoming: Pointer,
    outgoing: Pointer,
    verifies: bool,
}

impl Connection {
    /// A client passes the name of the server that it expects, and possibly a session to resume.
    pub fn new(
        context: &Context,
        server_name: &str,
        session: Option<&Session>,
    ) -> Result<Self, Failure> {
        let openssl = context.openssl;
        let functions = &openssl.functions;
        // SAFETY: the context is alive; the connection takes its own reference.
        let connection = unsafe { (functions.SSL_new)(context.context.get()) };
        let connection = openssl.owned(connection, Free::Void(functions.SSL_free), "connection")?;
        // SAFETY: the method is static.
        let bio = || unsafe { (functions.BIO_new)((functions.BIO_s_mem)()) };
        let incoming = openssl.owned(bio(), Free::Int(functions.BIO_free), "memory")?;
        let outgoing = openssl.owned(bio(), Free::Int(functions.BIO_free), "memory")?;
        let (reads, writes) = (incoming.get(), outgoing.get());
        std::mem::forget((incoming, outgoing));
        // SAFETY: all three are alive; the connection owns both BIOs from now on, so they were forgotten above.
        unsafe { (functions.SSL_set_bio)(connection.get(), reads, writes) };
        match context.side {
            // SAFETY: the connection is alive.
            Side::Server => unsafe { (functions.SSL_set_accept_state)(connection.get()) },
            Side::Client => {
                let name = CString::new(server_name)
                    .map_err(|_| Failure { what: "name", reason: "a zero byte".to_owned() })?;
                // SAFETY: the connection is alive, and both calls copy the name, which ends with a zero byte.
                let named = unsafe {
                    (functions.SSL_set_connect_state)(connection.get());
                    (functions.SSL_ctrl)(
                        connection.get(),
                        SSL_CTRL_SET_TLSEXT_HOSTNAME,
                        0,
                        name.as_ptr().cast_mut().cast(),
                    ) == 1
                        && (functions.SSL_set1_host)(connection.get(), name.as_ptr()) == 1
                };
                if !named {
                    return Err(openssl.failure("name"));
                }
            }
        }
        if let Some(session) = session {
            // SAFETY: both are alive; the connection takes its own reference.
            if unsafe { (functions.SSL_set_session)(connection.get(), session.0.get()) } != 1 {
                return Err(openssl.failure("session"));
            }
        }
        let verifies = context.verifies;
        Ok(Self { openssl, connection, incoming: reads, outgoing: writes, verifies })
    }

    /// Passes in bytes from the other side.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let len = c_int::try_from(bytes.len())
            .map_err(|_| Failure { what: "input", reason: "too long".to_owned() })?;
        // SAFETY: the BIO is alive as long as the connection; `len` bytes are read.
        let taken = unsafe {
            (self.openssl.functions.BIO_write)(self.incoming, bytes.as_ptr().cast(), len)
        };
        if taken == len { Ok(()) } else { Err(self.openssl.failure("input")) }
    }

    /// Appends bytes for the other side to `output`.
    pub fn drain(&mut self, output: &mut Vec<u8>) {
        // SAFETY: the BIO is alive as long as the connection.
        let pending = unsafe { (self.openssl.functions.BIO_ctrl_pending)(self.outgoing) };
        let Ok(len) = c_int::try_from(pending) else { return };
        let start = output.len();
        output.resize(start + pending, 0);
        // SAFETY: there is room for `len` bytes from `start` on.
        let given = unsafe {
            (self.openssl.functions.BIO_read)(
                self.outgoing,
                output[start..].as_mut_ptr().cast(),
                len,
            )
        };
        output.truncate(start + usize::try_from(given).unwrap_or(0));
    }

    /// Continues the handshake as far as the input allows; returns whether it is complete.
    pub fn handshake(&mut self) -> Result<bool, Failure> {
        let functions = &self.openssl.functions;
        // SAFETY: the connection is alive.
        let (result, error) = unsafe {
            (functions.ERR_clear_error)();
            let result = (functions.SSL_do_handshake)(self.connection.get());
            (result, (functions.SSL_get_error)(self.connection.get(), result))
        };
        match (result, error) {
            (1, _) => Ok(true),
            (_, SSL_ERROR_WANT_READ) => Ok(false),
            _ => Err(self.openssl.failure("handshake")),
        }
    }

    /// Processes messages after the handshake: tickets.
    pub fn settle(&mut self) -> Result<(), Failure> {
        let functions = &self.openssl.functions;
        let mut byte = [0_u8; 1];
        // SAFETY: the connection is alive; there is room for one byte.
        let error = unsafe {
            (functions.ERR_clear_error)();
            let result = (functions.SSL_read)(self.connection.get(), byte.as_mut_ptr().cast(), 1);
            (functions.SSL_get_error)(self.connection.get(), result)
        };
        match error {
            SSL_ERROR_WANT_READ => Ok(()),
            _ => Err(self.openssl.failure("after the handshake")),
        }
    }

    /// Negotiated group in OpenSSL's notation.
    pub fn group(&self) -> Option<String> {
        // SAFETY: the connection is alive; the text is static or belongs to it.
        unsafe { text((self.openssl.functions.SSL_get0_group_name)(self.connection.get())) }
    }

    /// Whether a session was resumed.
    pub fn resumed(&self) -> bool {
        // SAFETY: the connection is alive.
        unsafe { (self.openssl.functions.SSL_session_reused)(self.connection.get()) == 1 }
    }

    /// Whether the peer's certificate was requested and verified.
    pub fn verified(&self) -> bool {
        // SAFETY: the connection is alive. 0 is X509_V_OK.
        self.verifies
            && unsafe { (self.openssl.functions.SSL_get_verify_result)(self.connection.get()) } == 0
    }

    /// Session of the last ticket; consumes the connection.
    pub fn session(&self) -> Result<Session, Failure> {
        let functions = &self.openssl.functions;
        // OpenSSL does not resume a session whose connection was not closed (`ssl_clear_bad_session`). SAFETY: the
        // connection is alive; 3 is `SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN`.
        unsafe { (functions.SSL_set_shutdown)(self.connection.get(), 3) };
        // SAFETY: the connection is alive; the returned reference is ours to release.
        let session = unsafe { (functions.SSL_get1_session)(self.connection.get()) };
        let free = Free::Void(functions.SSL_SESSION_free);
        Ok(Session(self.openssl.owned(session, free, "session")?))
    }
}
