//! Signatures of uploads. Each has an event of its own, `Sign` of the key, which names the user, the file and its digest, and is durable
//! before the signature is given away.

use std::sync::{Arc, PoisonError, RwLock};

use outlast_crypto::digests::{Digest, sha256};
use outlast_domain::certified_key::{Identities, Unfit};
use outlast_domain::identity::Caller;
use outlast_domain::kms::LastUse;
use outlast_domain::policy::ConditionKeys;
use outlast_domain::upload_signing::{self, Signing, UploadKey};
use outlast_domain::work::Work;
use outlast_domain::{Fault, ids, kms};
use outlast_store::StoreError;
use outlast_store::driver::{Attempt, drive_and_wait};
use serde_json::json;

use super::record::shown;
use super::{Service, Session};
use crate::audit::{Event, Notes};
use crate::ops::KMS;

/// The service principal that the events name.
const INVOKED_BY: &str = "uploads.outlast";

/// The key, and what is kept in memory.
#[derive(Default)]
pub(in crate::service) struct State(RwLock<Option<Arc<Running>>>);

struct Running {
    key: UploadKey,
    identities: Identities,
}

/// A file that has arrived.
#[derive(Debug, Clone, Copy)]
pub struct Upload<'a> {
    /// Its name, in the folder where the user puts it.
    pub name: &'a [u8],
    /// Size in bytes.
    pub size: u64,
    /// The digest of [`Service::sftp_signing_digest`].
    pub digest: &'static Digest,
    /// Its value for the file.
    pub value: &'a [u8],
}

impl Service {
    /// Sets the key that signs uploads; none, if nobody has called it.
    pub fn set_upload_signing(&self, key: Option<UploadKey>) {
        let running =
            key.map(|key| Arc::new(Running { key, identities: upload_signing::identities() }));
        *self.sftp.signing.0.write().unwrap_or_else(PoisonError::into_inner) = running;
    }

    /// The digest of files that are to be signed, if the key can sign.
    ///
    /// # Errors
    /// Why it cannot, for the operator.
    pub fn sftp_signing_digest(
        &self,
        session: &Session,
        now_ms: i64,
    ) -> Result<&'static Digest, String> {
        let running = self.upload_signing()?;
        // Nothing of it is committed, so that it must not be out of date.
        let mut work = self.work(now_ms);
        let found = self.with_signer(&running, session, now_ms, |signing| {
            upload_signing::digest(&mut work, &self.ring, signing)
        });
        found.map_err(|error| error.to_string())
    }

    /// Signs a file, and waits until the event is durable. Returns a CMS message in DER.
    ///
    /// # Errors
    /// Why it is not signed, for the operator.
    pub fn sftp_sign(
        &self,
        session: &Session,
        upload: &Upload<'_>,
        now_ms: i64,
    ) -> Result<Vec<u8>, String> {
        let running = self.upload_signing()?;
        let prepare = || {
            let mut work = self.request_work(now_ms);
            match self.signed_upload(&mut work, &running, session, upload, now_ms) {
                Ok((event, message)) => {
                    Attempt::Commit(work.into_transaction(vec![event]), message)
                }
                Err(Unfit::Fault(Fault::Store(StoreError::Conflict))) => Attempt::Again,
                Err(unfit) => match work.is_current() {
                    Ok(true) => Attempt::Done(Err(unfit.to_string())),
                    Ok(false) => Attempt::Again,
                    Err(fault) => Attempt::Done(Err(fault.to_string())),
                },
            }
        };
        let finish = |message, outcome: Result<(), StoreError>| {
            outcome.map(|()| message).map_err(|error| error.to_string())
        };
        drive_and_wait(self.store.as_ref(), prepare, finish)
            .unwrap_or_else(|| Err("the key's record is changed all the time".to_owned()))
    }

    fn upload_signing(&self) -> Result<Arc<Running>, String> {
        let running = self.sftp.signing.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        running.ok_or_else(|| "there is no key that signs uploads".to_owned())
    }

    fn with_signer<T>(
        &self,
        running: &Running,
        session: &Session,
        now_ms: i64,
        act: impl FnOnce(&Signing<'_>) -> Result<T, Unfit>,
    ) -> Result<T, Unfit> {
        let signer = upload_signing::signer(&running.key, &self.policies)?;
        let conditions = conditions(&signer, running, session, now_ms);
        act(&Signing {
            key: &running.key,
            identities: &running.identities,
            signer: &signer,
            policies: &self.policies,
            conditions: &conditions,
        })
    }

    fn signed_upload(
        &self,
        work: &mut Work<'_>,
        running: &Running,
        session: &Session,
        upload: &Upload<'_>,
        now_ms: i64,
    ) -> Result<(Vec<u8>, Vec<u8>), Unfit> {
        let (made, signer) = self.with_signer(running, session, now_ms, |signing| {
            let file = (upload.digest, upload.value);
            let made = upload_signing::sign(work, &self.ring, signing, file)?;
            Ok((made, signing.signer.principal.clone()))
        })?;
        let event_id = ids::event_id(now_ms)?;
        let request_id = ids::uuid()?;
        let last = LastUse {
            operation: "Sign".to_owned(),
            at_ms: now_ms,
            event_id: event_id.clone(),
            request_id: request_id.clone(),
        };
        kms::record_use(work, &made.key, &last)?;
        let mut notes = Notes::default();
        notes.parameter("keyId", running.key.arn());
        notes.parameter("signingAlgorithm", made.algorithm.kms_name);
        notes.resource(made.key.arn(), "AWS::KMS::Key");
        // By this the owner of the key finds the signature, as those of `Sign`.
        notes.additional("signatureSha256", hex::encode(sha256(&made.signature)));
        notes.additional(
            "upload",
            json!({
                "session-id": session.connection.session,
                "user": session.user,
                "resource-arn": session.user_arn,
                "name": shown(upload.name),
                "size": upload.size.to_string(),
                "digest": upload.digest.name,
                "value": hex::encode(upload.value),
            }),
        );
        let event = Event {
            now_ms,
            event_id: &event_id,
            request_id: &request_id,
            source: KMS.model.event_source,
            name: "Sign",
            region: &running.key.scope().region,
            read_only: true,
            actor: (&signer).into(),
            source_ip: &session.connection.source_ip.to_string(),
            user_agent: &session.connection.client,
            host: INVOKED_BY,
            tls: None,
            notes: &notes,
            error: None,
            invoked_by: Some(INVOKED_BY),
        };
        Ok((event.to_json(), made.message))
    }
}

/// What key policies may ask about.
fn conditions(signer: &Caller, running: &Running, session: &Session, now_ms: i64) -> ConditionKeys {
    let principal = &signer.principal;
    let mut keys = ConditionKeys::new();
    keys.set_time(now_ms);
    keys.set("aws:SourceIp", session.connection.source_ip.to_string());
    keys.set("aws:SecureTransport", "true");
    keys.set("aws:RequestedRegion", running.key.scope().region.as_str());
    keys.set("aws:PrincipalAccount", principal.account.as_str());
    keys.set("aws:PrincipalArn", principal.role_arn().unwrap_or_else(|| principal.arn()));
    keys.set("kms:MessageType", "RAW");
    keys
}
