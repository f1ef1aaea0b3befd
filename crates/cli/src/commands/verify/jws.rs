//! Signatures in the form of JWS.

use std::path::Path;

use outlast_pki::cms::verify::SignedMessage;
use outlast_pki::jws::{BEGIN, Jws, MAX_PAYLOAD_LEN};

use super::{Entry, Run};
use crate::failure::{Failure, REFUSED};
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
        let refused = |error| Failure::file(path, &error).code(REFUSED);
        let jws = Jws::parse(signature).map_err(refused)?;
        let file = files::read(path, MAX_PAYLOAD_LEN)?;
        let signer = jws.authenticate(&file).map_err(refused)?;
        let message = SignedMessage::of_certificates(jws.certificates);
        self.bare(path, &Bare { signers: vec![signer], message }, None, entry)
    }
}
