//! `CreateSession` of Roles Anywhere: from a request that is signed by the key of a certificate to a session of a role.
//!
//! A request whose certificate no trust anchor trusts could be anybody's, and leaves nothing behind. Every other one leaves an
//! audit event, and a note in the record of its subject, in the transaction of the session.

use outlast_domain::arn::{assumed_role, shown_in};
use outlast_domain::identity::Entry;
use outlast_domain::ids;
use outlast_domain::rolesanywhere::{
    self, Asked, Presented, RolesAnywhereError, SUBJECT, TRUST_ANCHOR, Trusted,
};
use outlast_domain::work::Work;

use super::{Prepared, Request, Response, Route, Service, header_text, refused};
use crate::audit::{Actor, Event, Notes};
use crate::model::create_session::{
    AssumedRoleUser, CredentialResponse, Credentials, Request as Input, Response as Output,
};
use crate::wire::x509::Claim;
use crate::wire::{ApiError, Protocol};

impl Service {
    /// Prepares a `CreateSession` once; notes the role in `signer` once the certificate is trusted.
    pub(super) fn try_session(
        &self,
        mut work: Work<'_>,
        route: Route,
        request: &Request<'_>,
        signer: &mut Option<String>,
    ) -> Result<Prepared, ApiError> {
        let (claim, input) = read(request)?;
        let presented = Presented { leaf: claim.leaf, chain: claim.chain };
        let arn = &input.trust_anchor_arn;
        let trusted = rolesanywhere::authenticate(&mut work, arn, &claim.region, presented);
        let trusted = trusted.map_err(|error| refused(&work, route, error.into()))?;
        *signer = Some(input.role_arn.clone());
        let asked = Asked {
            profile_arn: input.profile_arn,
            role_arn: input.role_arn,
            seconds: input.duration_seconds,
            session_name: input.role_session_name,
            instance_properties: input.instance_properties,
        };
        let mut notes = noted(&trusted, &asked).map_err(|error| route.fault(error))?;
        let outcome = self.begin(&mut work, &trusted, &asked, &mut notes);
        let error = outcome.as_ref().err();
        if let Some(error) = error.filter(|error| error.fault.is_some()) {
            return Err(refused(&work, route, error.clone()));
        }
        let event_id = ids::event_id(request.now_ms).map_err(|fault| route.fault(fault))?;
        let event = Event {
            now_ms: request.now_ms,
            event_id: &event_id,
            request_id: request.request_id,
            source: route.service.model.event_source,
            name: route.row.name,
            region: &trusted.scope().region,
            read_only: false,
            actor: Actor::Certificate(&trusted.scope().account),
            source_ip: request.source_ip,
            user_agent: header_text(request.headers, "user-agent"),
            host: request.host,
            tls: request.tls,
            notes: &notes,
            error,
            invoked_by: None,
        }
        .to_json();
        let (transaction, response) = match outcome {
            Ok(body) => (
                work.into_transaction(vec![event]),
                Response {
                    status: route.row.http.status,
                    content_type: route.protocol.response_type(),
                    is_cbor: false,
                    error: None,
                    body,
                },
            ),
            Err(error) => {
                // Nothing of the session stays; that it was refused does, unless there is no room for another subject.
                let kept = trusted.subject_record_key().map_err(|fault| route.fault(fault))?;
                if let Err(RolesAnywhereError::Fault(fault)) =
                    rolesanywhere::note_refusal(&mut work, &trusted, &asked)
                {
                    return Err(refused(&work, route, route.fault(fault)));
                }
                let response = route.refusal(&error, request.request_id);
                (work.into_refusal_keeping(&kept, vec![event]), response)
            }
        };
        Ok(Prepared { transaction, response, principal: asked.role_arn, route })
    }

    /// Begins the session and returns the body of the answer.
    fn begin(
        &self,
        work: &mut Work<'_>,
        trusted: &Trusted,
        asked: &Asked,
        notes: &mut Notes,
    ) -> Result<Vec<u8>, ApiError> {
        let begun = rolesanywhere::begin(work, self.policies(), trusted, asked)?;
        let region = &trusted.scope().region;
        let role = &begun.role;
        let arn = assumed_role(&role.account, &role.name, &begun.session_name);
        notes.parameter("durationSeconds", begun.seconds);
        notes.response("accessKeyId", begun.issued.access_key_id.as_str());
        notes.response("assumedRoleArn", arn.as_str());
        notes.response("sourceIdentity", begun.source_identity.as_str());
        let output = Output {
            credential_set: vec![CredentialResponse {
                assumed_role_user: AssumedRoleUser {
                    arn: shown_in(region, &arn),
                    assumed_role_id: format!("{}:{}", role.id, begun.session_name),
                },
                packed_policy_size: 0,
                role_arn: shown_in(region, &role.arn()),
                source_identity: begun.source_identity,
                credentials: Credentials::new(begun.issued),
            }],
            subject_arn: trusted.subject_arn().map_err(RolesAnywhereError::from)?,
        };
        Protocol::RestJson1.encode(&output)
    }
}

/// Reads the request and verifies its signature by the key of the certificate that came with it.
fn read(request: &Request<'_>) -> Result<(Claim, Input), ApiError> {
    let parts = request.parts();
    let claim = Claim::parse(&parts, request.now_ms.div_euclid(1000))?;
    claim.verify(&parts)?;
    Ok((claim, Input::read(request.query, request.body)?))
}

/// What the event says whatever the outcome is.
fn noted(trusted: &Trusted, asked: &Asked) -> Result<Notes, outlast_domain::Fault> {
    let mut notes = Notes::default();
    let certificate = trusted.certificate();
    notes.parameter("trustAnchorArn", trusted.trust_anchor_arn());
    notes.parameter("profileArn", capped(&asked.profile_arn));
    notes.parameter("roleArn", capped(&asked.role_arn));
    if let Some(name) = &asked.session_name {
        notes.parameter("roleSessionName", name.as_str());
    }
    notes.additional(
        "x509Certificate",
        serde_json::json!({
            "subject": capped(&certificate.subject().to_string()),
            "serialNumber": hex::encode(certificate.serial()),
            "issuer": capped(&certificate.issuer().to_string()),
        }),
    );
    notes.resource(trusted.trust_anchor_arn(), TRUST_ANCHOR.cloudtrail);
    notes.resource(trusted.subject_arn()?, SUBJECT.cloudtrail);
    Ok(notes)
}

/// What a record quotes of a certificate or a request.
fn capped(text: &str) -> String {
    text.chars().take(1024).collect()
}
