//! One connection: its socket, its SSH transport, and what runs for it.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use outlast_api::service::sftp::Connection as Described;
use outlast_crypto::ssh::Algorithm;
use outlast_domain::ids;
use outlast_domain::transfer::Refusal;
use outlast_sftp::operation::{self, Operation};
use outlast_sftp::view::View;
use outlast_ssh::{
    Attempt, AuthDecision, ChannelId, Chosen, Method, Negotiation, Reason, Request, Server,
    ServerEvent,
};
use tokio::io::{Interest, Ready};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep_until, timeout};

use super::SftpServer;
use super::budget::Budget;
use super::channel::{self, Channel, carried_out_now, closed};
use super::failures::Failures;
use super::journal::{Journal, ended, told};
use super::listener::Listening;
use super::login::{Outcome, Proven, User};
use super::report::Report;
use super::roster::Roster;
use super::startups::Startup;
use super::turns::{carried_out, on_thread};
use crate::limits;

/// What a connection waits for besides its socket.
enum Done {
    Login(Box<Outcome>),
    Operations(channel::Done),
    /// The event of an operation could not be recorded, so its reply must not be sent.
    Unrecorded(String),
    /// The files that a channel had left open are closed, and recorded.
    Forgotten,
    /// The user may not be here any more.
    Refused(Refusal),
}

thread_local! {
    /// Where a thread reads sockets whose clients send little. The transport copies what it keeps, so that a connection that waits needs
    /// no memory for it.
    static INPUT: RefCell<Box<[u8]>> = RefCell::new(vec![0; limits::SFTP_READ].into_boxed_slice());
}

/// A user's session.
struct Inside {
    user: User,
    view: Arc<View>,
    journal: Journal,
    /// What its channels and the transport's output hold in memory.
    budget: Budget,
    /// The output among it.
    output: usize,
    /// The record of tries that failed before.
    failures: Option<JoinHandle<()>>,
}

struct Connection {
    begun: Instant,
    server: Arc<SftpServer>,
    peer: SocketAddr,
    id: String,
    ssh: Server,
    report: Report,
    listening: Arc<Listening>,
    /// Counts as a startup until the user has authenticated.
    startup: Option<Startup>,
    described: Option<Arc<Described>>,
    proven: Option<Proven>,
    /// The key that the service is asked about.
    asked: Option<Proven>,
    inside: Option<Inside>,
    /// Tries to log in that failed.
    failures: Failures,
    channels: Vec<Channel>,
    /// Whether the last read found so much that copying it would take longer than memory of its own.
    sends_much: bool,
    /// Operations that are running, also of channels that are closed.
    running: usize,
    /// Whether the connection has ended: operations that have not begun are not carried out any more.
    over: Arc<AtomicBool>,
    /// Tells a login that waits that it has ended.
    gone: Arc<Notify>,
    done: mpsc::UnboundedSender<Done>,
    /// When something of the user's was last done.
    used: Instant,
    /// When it was last decided whether to ask the client for a sign of life.
    asked_for_life: Instant,
    /// Whether something has come from the client since.
    was_heard: bool,
    /// Questions since something last came.
    questions: u32,
    /// When it was last checked that the user may be here.
    checked: Instant,
    /// Whether a try to log in is being decided.
    deciding: bool,
    ended: bool,
}

impl SftpServer {
    /// Serves a connection to its end.
    pub(super) async fn connection(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        startup: Startup,
        stopped: watch::Receiver<bool>,
    ) {
        let _ = stream.set_nodelay(true);
        let listening = match self.listening() {
            Ok(listening) => listening,
            Err(error) => {
                tracing::warn!(%peer, error, "an SFTP client was refused: nothing can be served");
                return;
            }
        };
        let Ok(id) = ids::uuid().map(|id| id.replace('-', "")) else { return };
        let (done, arrived) = mpsc::unbounded_channel();
        let connection = Connection {
            begun: Instant::now(),
            ssh: Server::new(listening.config.clone(), 0),
            report: Report::new(self.settings.observer.clone(), listening.rules.clone(), peer),
            server: self,
            peer,
            id,
            listening,
            startup: Some(startup),
            described: None,
            proven: None,
            asked: None,
            inside: None,
            failures: Failures::default(),
            channels: Vec::new(),
            sends_much: false,
            running: 0,
            over: Arc::default(),
            gone: Arc::default(),
            done,
            used: Instant::now(),
            asked_for_life: Instant::now(),
            was_heard: false,
            questions: 0,
            checked: Instant::now(),
            deciding: false,
            ended: false,
        };
        connection.run(stream, arrived, stopped).await;
    }
}

impl Connection {
    /// Milliseconds of the connection, which no change of the clock makes more or fewer.
    fn now_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    async fn run(
        mut self,
        stream: TcpStream,
        mut arrived: mpsc::UnboundedReceiver<Done>,
        mut stopped: watch::Receiver<bool>,
    ) {
        let (mut is_open, mut stopping) = (true, false);
        let mut users = self.server.settings.users.clone();
        let mut last = None;
        while is_open {
            is_open = self.move_data(&stream);
            if self.ended {
                let last = *last.get_or_insert_with(|| Instant::now() + limits::SFTP_LAST_WORDS);
                if self.ssh.outgoing().is_empty() || Instant::now() >= last {
                    break;
                }
            }
            let (reads, writes) =
                (self.ssh.wants_input() && !self.ended, !self.ssh.outgoing().is_empty());
            let interest = match (reads, writes) {
                (true, true) => Some(Interest::READABLE | Interest::WRITABLE),
                (true, false) => Some(Interest::READABLE),
                (false, true) => Some(Interest::WRITABLE),
                (false, false) => None,
            };
            let deadline = last.unwrap_or_else(|| self.deadline());
            tokio::select! {
                ready = async {
                    match interest {
                        Some(interest) => stream.ready(interest).await,
                        None => std::future::pending().await,
                    }
                } => {
                    if ready.is_ok_and(Ready::is_readable) && reads {
                        is_open &= self.read(&stream);
                    }
                }
                Some(done) = arrived.recv() => {
                    self.take(done);
                    // Their replies go out together.
                    while let Ok(done) = arrived.try_recv() {
                        self.take(done);
                    }
                }
                () = sleep_until(deadline.into()) => self.on_timer(),
                () = changed(&mut users) => self.check_again(),
                _ = stopped.wait_for(|stopped| *stopped), if !stopping => {
                    stopping = true;
                    self.ssh.disconnect(Reason::ByApplication, "the server is stopping");
                }
            }
        }
        self.over.store(true, Ordering::Relaxed);
        self.gone.notify_one();
        if timeout(limits::SFTP_FINISH, self.drain(&mut arrived)).await.is_err() {
            tracing::warn!("an SFTP connection ended before its files were closed");
        }
        // What ends later finds nobody, and records itself what it has left.
        arrived.close();
        while let Ok(done) = arrived.try_recv() {
            self.take(done);
        }
        self.finish(&stream).await;
    }

    /// Reads what the socket has. False at the end of the stream.
    fn read(&mut self, stream: &TcpStream) -> bool {
        let (most, now_ms) = (limits::SFTP_READ.min(self.ssh.room()), self.now_ms());
        let read = if self.sends_much {
            stream.try_read_buf(&mut self.ssh.input(most, now_ms))
        } else {
            INPUT.with_borrow_mut(|input| {
                let len = stream.try_read(&mut input[..most])?;
                self.ssh.receive(&input[..len], now_ms);
                Ok(len)
            })
        };
        match read {
            Ok(0) => false,
            Ok(len) => {
                self.report.heard(len);
                self.was_heard = true;
                self.sends_much = len >= limits::SFTP_READ / 2;
                true
            }
            Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
        }
    }

    /// Writes what the socket takes. False if it is broken.
    fn write(&mut self, stream: &TcpStream) -> bool {
        while !self.ssh.outgoing().is_empty() {
            match stream.try_write(self.ssh.outgoing()) {
                Ok(len) => {
                    self.report.sent = self.report.sent.saturating_add(len as u64);
                    self.ssh.sent(len);
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
        true
    }

    /// Works and writes until the socket or the client's window is full, or there is nothing more. False if the socket is broken.
    fn move_data(&mut self, stream: &TcpStream) -> bool {
        loop {
            self.work();
            let is_moving = !self.ssh.outgoing().is_empty();
            if !self.write(stream) {
                return false;
            }
            // What the socket has taken makes room for replies that no event would wake.
            if self.ended || !is_moving || !self.ssh.outgoing().is_empty() {
                return true;
            }
        }
    }

    /// Handles events and moves data until nothing happens.
    fn work(&mut self) {
        loop {
            let mut events = false;
            while let Some(event) = self.ssh.poll() {
                events = true;
                self.on_event(event);
            }
            self.pump();
            if !events {
                return;
            }
        }
    }

    fn pump(&mut self) {
        let Some(inside) = &mut self.inside else { return };
        inside.budget.count(&mut inside.output, self.ssh.queued());
        // Another one begins each time, so that one with many replies leaves room to others.
        if self.channels.len() > 1 {
            self.channels.rotate_left(1);
        }
        for channel in &mut self.channels {
            let (id, done) = (channel.id(), self.done.clone());
            let (view, journal) = (inside.view.clone(), inside.journal.clone());
            let (server, place, over) = (&self.server, &inside.user.place, &self.over);
            let running = &mut self.running;
            let most = limits::MAX_SFTP_OPERATIONS_OF_CONNECTION.saturating_sub(*running);
            let now = |operation: Operation| carried_out_now(operation, &inside.view);
            let has_sent =
                channel.pump(&mut self.ssh, &mut inside.budget, most, now, |operations| {
                    let (view, journal, done) = (view.clone(), journal.clone(), done.clone());
                    let (server, place, over) = (server.clone(), place.clone(), over.clone());
                    *running += 1;
                    tokio::spawn(async move {
                        let turns = [&*place.turns, &server.threads];
                        let ended = match carried_out(turns, operations, view, over).await {
                            Ok(outcomes) => match journal.tell_all(&outcomes).await {
                                Ok(()) => Done::Operations(channel::Done { channel: id, outcomes }),
                                Err(error) => Done::Unrecorded(error),
                            },
                            Err(error) => Done::Unrecorded(error),
                        };
                        // The user's next session shares the turns as long as this one holds some.
                        drop(place);
                        // If the connection waits no longer, its end did not tell of what was opened since.
                        if let Err(mpsc::error::SendError(Done::Operations(lost))) =
                            done.send(ended)
                        {
                            for record in
                                lost.outcomes.iter().filter_map(operation::Outcome::abandoned)
                            {
                                told(&journal, &record).await;
                            }
                        }
                    });
                });
            if has_sent {
                self.used = Instant::now();
            }
        }
        inside.budget.count(&mut inside.output, self.ssh.queued());
    }

    fn on_event(&mut self, event: ServerEvent) {
        match event {
            ServerEvent::Negotiated(negotiation) => self.negotiated(&negotiation),
            ServerEvent::Keyed => self.report.keyed(),
            ServerEvent::Authenticate(attempt) => self.authenticate(*attempt),
            ServerEvent::ChannelOpen(id) => {
                self.used = Instant::now();
                self.channels.push(Channel::new(id));
                self.ssh.reply(true);
            }
            ServerEvent::ChannelRequest { channel, request } => self.request(channel, &request),
            ServerEvent::Data { channel, len } => {
                self.used = Instant::now();
                if let Some(found) = self.channels.iter_mut().find(|one| one.id() == channel) {
                    found.receive(self.ssh.data(len));
                }
            }
            ServerEvent::Eof(channel) => {
                if let Some(found) = self.channels.iter_mut().find(|one| one.id() == channel) {
                    found.ended();
                }
            }
            ServerEvent::Closed(channel) => {
                if let Some(found) = self.channels.iter_mut().find(|one| one.id() == channel) {
                    found.close();
                }
                self.forget(channel);
            }
            ServerEvent::Alive => {}
            ServerEvent::Disconnected(end) => {
                tracing::debug!(peer = %self.peer, by_peer = end.by_peer, reason = ?end.reason, message = end.message, "an SFTP connection ended");
                self.ended = true;
                // What is sent last may take long.
                self.over.store(true, Ordering::Relaxed);
            }
        }
    }

    fn negotiated(&mut self, negotiation: &Negotiation) {
        if negotiation.rekey {
            let was = self.described.as_ref().is_some_and(|described| described.post_quantum);
            let chosen = negotiation.outcome.as_ref();
            if was && chosen.is_ok_and(|chosen| !is_post_quantum(chosen.key_exchange)) {
                // The audit trail and the ledger say that the session is post-quantum.
                self.ssh.disconnect(
                    Reason::KeyExchangeFailed,
                    "the new keys would not be post-quantum as the first ones",
                );
            }
            return;
        }
        self.report.negotiated(negotiation);
        let chosen = match &negotiation.outcome {
            Ok(chosen) => chosen,
            Err(outcome) => {
                tracing::info!(peer = %self.peer, client = negotiation.peer_version, %outcome, "an SFTP client was refused");
                return;
            }
        };
        self.described = Some(Arc::new(self.describe(negotiation, chosen)));
    }

    fn describe(&self, negotiation: &Negotiation, chosen: &Chosen) -> Described {
        let facts = &self.listening.facts;
        let mac = |mac: Option<&'static str>| mac.unwrap_or_default().to_owned();
        let (to_server, to_client) = (chosen.to_server, chosen.to_client);
        Described {
            scope: facts.scope.clone(),
            server_arn: facts.arn.clone(),
            session: self.id.clone(),
            source_ip: self.peer.ip(),
            client: negotiation.peer_version.clone(),
            key_exchange: chosen.key_exchange.to_owned(),
            post_quantum: is_post_quantum(chosen.key_exchange),
            host_key: chosen.host_key.to_owned(),
            ciphers: [to_server.cipher.to_owned(), to_client.cipher.to_owned()],
            macs: [mac(to_server.mac), mac(to_client.mac)],
        }
    }

    fn authenticate(&mut self, attempt: Attempt) {
        let Some(described) = self.described.clone() else {
            self.ssh.answer(AuthDecision::Reject);
            return;
        };
        self.asked = match &attempt.method {
            Method::PublicKey(offer) => {
                let (user, key) = (attempt.user.clone(), offer.key.blob().to_vec());
                Some(Proven { user, key, certificate: offer.certificate.clone() })
            }
            _ => None,
        };
        let (server, listening) = (self.server.clone(), self.listening.clone());
        let (peer, proven, done) = (self.peer, self.proven.clone(), self.done.clone());
        self.deciding = true;
        let gone = self.gone.clone();
        tokio::spawn(async move {
            let decided = server.clone().login(listening, described, peer, attempt, proven, gone);
            let outcome = decided.await;
            let sent = done.send(Done::Login(Box::new(outcome)));
            if let Err(mpsc::error::SendError(Done::Login(outcome))) = sent
                && let Some(user) = outcome.user
            {
                // The connection has broken meanwhile, and its end must follow the event of the login.
                ended(&Journal::of(&server, &user.session, &user.target)).await;
            }
        });
    }

    fn request(&mut self, id: ChannelId, request: &Request) {
        self.used = Instant::now();
        let channel = self.channels.iter_mut().find(|one| one.id() == id);
        match request {
            Request::Subsystem(name) if name == "sftp" => {
                let handles = self.inside.as_ref().map(|inside| inside.user.place.handles.clone());
                let started = channel.zip(handles).is_some_and(|(one, handles)| one.start(handles));
                self.ssh.reply(started);
            }
            Request::Exec(_) | Request::Shell => {
                self.ssh.reply(true);
                let _ = self.ssh.write(id, NO_SHELL.as_bytes());
                self.ssh.exit_status(id, 1);
                self.ssh.eof(id);
                self.ssh.close(id);
            }
            // Clients send their locale and go on without it.
            Request::Env { .. } | Request::Pty(_) | Request::Subsystem(_) => self.ssh.reply(false),
        }
    }

    fn take(&mut self, done: Done) {
        match done {
            Done::Login(outcome) => self.logged_in(*outcome),
            Done::Operations(channel::Done { channel, outcomes }) => {
                self.used = Instant::now();
                self.running -= 1;
                if let Some(found) = self.channels.iter_mut().find(|one| one.id() == channel) {
                    found.complete(outcomes);
                }
                self.forget(channel);
            }
            Done::Unrecorded(error) => {
                self.running -= 1;
                tracing::error!(error, "an SFTP session ends: its audit event cannot be recorded");
                self.ssh.disconnect(Reason::ByApplication, "the server cannot record what you do");
            }
            Done::Forgotten => self.running -= 1,
            Done::Refused(refusal) => {
                tracing::info!(peer = %self.peer, reason = %refusal, "an SFTP session ends: its user may not be here any more");
                self.ssh.disconnect(Reason::ByApplication, "you may not be here any more");
            }
        }
    }

    fn logged_in(&mut self, outcome: Outcome) {
        let Outcome { decision, user, failure } = outcome;
        self.deciding = false;
        if matches!(decision, AuthDecision::Partial(_)) {
            self.proven = self.asked.take();
        }
        if let Some(failure) = failure {
            self.failures.add(failure);
        }
        if let Some(user) = user {
            self.enter(user);
        }
        if let Some(welcome) = self.inside.as_ref().and_then(|inside| inside.user.welcome.as_ref())
        {
            self.ssh.banner(welcome);
        }
        self.ssh.answer(decision);
        if self.inside.is_some() {
            self.ssh.announce_host_keys();
        }
    }

    fn enter(&mut self, user: User) {
        self.startup = None;
        let failures = std::mem::take(&mut self.failures);
        let described = self.described.clone().filter(|_| failures.matter_after_login());
        let failures = described
            .map(|described| tokio::spawn(failures.record(self.server.clone(), described)));
        self.report.principal = Some(user.arn.clone());
        self.used = Instant::now();
        self.checked = self.used;
        let journal = Journal::of(&self.server, &user.session, &user.target);
        let budget = Budget::new(user.place.held.clone());
        let view = user.view.clone();
        self.inside = Some(Inside { view, user, journal, budget, output: 0, failures });
    }

    /// When something is due.
    fn deadline(&self) -> Instant {
        let settings = &self.server.settings;
        let mine = match &self.inside {
            None => self.begun + settings.login_grace,
            Some(_) => {
                let next = (self.asked_for_life + settings.keepalive)
                    .min(self.checked + limits::SFTP_RECHECK);
                next.min(self.used + settings.idle)
            }
        };
        let now_ms = self.now_ms();
        let ssh = self
            .ssh
            .next_timer()
            .map(|at| Instant::now() + Duration::from_millis(at.saturating_sub(now_ms)));
        ssh.map_or(mine, |ssh| ssh.min(mine))
    }

    fn on_timer(&mut self) {
        if self.ended {
            return;
        }
        let now = Instant::now();
        let settings = &self.server.settings;
        let now_ms = self.now_ms();
        if self.ssh.next_timer().is_some_and(|at| at <= now_ms) {
            self.ssh.on_timer(now_ms);
        }
        if self.inside.is_none() {
            if now >= self.begun + settings.login_grace {
                self.ssh.disconnect(Reason::ByApplication, "you did not log in in time");
            }
            return;
        }
        if self.running > 0 {
            self.used = now;
        } else if now >= self.used + settings.idle {
            self.ssh.disconnect(Reason::ByApplication, "the session was idle for too long");
        }
        if now >= self.checked + limits::SFTP_RECHECK {
            self.check_again();
        }
        if now >= self.asked_for_life + self.server.settings.keepalive {
            self.asked_for_life = now;
            self.ask_for_life();
        }
    }

    /// Asks a silent client for a sign of life; ends the session of one that stays silent. Whatever comes is a sign: an answer has to wait
    /// behind the data of a slow transfer, in both directions.
    fn ask_for_life(&mut self) {
        // An exchange of keys has a time limit of its own, and no question could be sent before its end.
        if self.ssh.is_exchanging() {
            return;
        }
        if std::mem::take(&mut self.was_heard) {
            self.questions = 0;
        } else if self.questions >= limits::SFTP_KEEPALIVES {
            self.ssh.disconnect(Reason::ConnectionLost, "you did not answer");
        } else {
            self.questions += 1;
            self.ssh.keepalive();
        }
    }

    /// Checks whether the user may still be here.
    fn check_again(&mut self) {
        self.checked = Instant::now();
        self.ssh.rest();
        let Some(inside) = &self.inside else { return };
        let (server, facts) = (self.server.clone(), self.listening.facts.clone());
        let (user, from) = (inside.user.renewal.clone(), self.peer.ip());
        let (session, done) = (inside.user.session.clone(), self.done.clone());
        tokio::task::spawn_blocking(move || {
            if let Err(refusal) = server.still_admits(&facts, &session, &user, from) {
                let _ = done.send(Done::Refused(refusal));
            }
        });
    }

    /// Forgets a channel if it is over, and records which files it has left open. When the connection has ended, [`Self::finish`] does
    /// that, so that these events come before that of the end.
    fn forget(&mut self, channel: ChannelId) {
        if self.over.load(Ordering::Relaxed) {
            return;
        }
        let is_it = |one: &Channel| one.id() == channel && one.is_over();
        let Some(at) = self.channels.iter().position(is_it) else { return };
        let mut channel = self.channels.swap_remove(at);
        let Some(inside) = &mut self.inside else { return };
        channel.leave(&mut inside.budget);
        if !channel.has_open() {
            return;
        }
        let (journal, done) = (inside.journal.clone(), self.done.clone());
        let (server, place) = (self.server.clone(), inside.user.place.clone());
        self.running += 1;
        tokio::spawn(async move {
            let closes = move || channel.end();
            let closed = on_thread([&*place.turns, &server.threads], closes).await;
            drop(place);
            for record in closed.unwrap_or_default() {
                told(&journal, &record).await;
            }
            let _ = done.send(Done::Forgotten);
        });
    }

    /// Waits for what is running.
    async fn drain(&mut self, arrived: &mut mpsc::UnboundedReceiver<Done>) {
        while self.deciding || self.running > 0 {
            let Some(done) = arrived.recv().await else { break };
            self.take(done);
        }
    }

    /// Records the end.
    async fn finish(mut self, stream: &TcpStream) {
        self.write(stream);
        if let Some(version) = self.ssh.peer_version() {
            self.report.identified(&version);
        }
        let Some(inside) = self.inside.take() else {
            if let Some(described) = self.described.take() {
                self.failures.record(self.server.clone(), described).await;
            }
            return;
        };
        for record in closed(std::mem::take(&mut self.channels)).await {
            told(&inside.journal, &record).await;
        }
        ended(&inside.journal).await;
        if let Some(failures) = inside.failures {
            let _ = failures.await;
        }
        drop(inside.user);
    }
}

fn is_post_quantum(key_exchange: &str) -> bool {
    Algorithm::by_name(key_exchange).is_some_and(|row| row.post_quantum)
}

/// Waits until there are other users, for ever if users do not come from a file.
async fn changed(users: &mut Option<watch::Receiver<Arc<Roster>>>) {
    let changed = match users {
        Some(users) => users.changed().await.is_ok(),
        None => false,
    };
    if !changed {
        std::future::pending::<()>().await;
    }
}

const NO_SHELL: &str = "This server speaks SFTP only: use sftp, or scp of OpenSSH 9 or later (older ones: scp -s).\r\n";
