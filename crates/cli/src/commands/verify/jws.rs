//! Signatures in the form of JWS.

use std::path::Path;

use outlast_pki::cms::verify::SignedMessage;
use outlast_pki::jws::{BEGIN, Jws, MAX_PAYLOAD_LEN};

use super::{Entry, Run};
use crate::failure::{Failure, REFUSED, USAGE};
use crate::files;
use crate::verifying::Bare;

/// Whether a signature is a JWS: no CMS message begins like one.
pub(super) fn is_jws(signature: &[u8]) -> bool {
    signature.starts_with(BEGIN)
}

impl Run<'_> {
    /// Verifies a JWS of a file.
    pub(super) fn jws(
        &mut self,
        path: &Path,
        signature: &[u8],
        entry: &mut Entry,
    ) -> Result<(), Failure> {
        let cms_only = [
            ("--evidence", self.arguments.evidence.is_some()),
            ("--log-proof", self.arguments.log_proof.is_some()),
        ];
        if let Some((option, _)) = cms_only.iter().find(|(_, is_given)| *is_given) {
            return Err(Failure::new(format!("{option} is for CMS signatures, not for a JWS"))
                .hint("leave one of them out")
                .code(USAGE));
        }
        let refused = |error| Failure::file(path, &error).code(REFUSED);
        let jws = Jws::parse(signature).map_err(refused)?;
        let file = files::read(path, MAX_PAYLOAD_LEN)?;
        let signer = jws.authenticate(&file).map_err(refused)?;
        let message = SignedMessage::of_certificates(jws.certificates);
        self.bare(path, &Bare { signers: vec![signer], message }, None, entry)
    }
}
