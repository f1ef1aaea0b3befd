//! Images in OCI image layouts: every blob, and the signatures that refer to the image.

use std::path::Path;

use outlast_pki::cms::MAX_MESSAGE_LEN;
use outlast_pki::cms::verify::SignedMessage;

use super::{Entry, Run};
use crate::failure::{Failure, REFUSED};
use crate::oci::{Descriptor, Layout};
use crate::output;
use crate::verifying::Bare;

impl Run<'_> {
    /// Verifies an image. One signature that is accepted is enough; of the others a warning says why they are not.
    pub(super) fn oci(&mut self, reference: &Path, entry: &mut Entry) -> Result<(), Failure> {
        let text = reference.to_str();
        let text = text.ok_or_else(|| Failure::file(reference, &"its name is not UTF-8"))?;
        let layout = Layout::open(text)?;
        let manifest = layout.manifest()?;
        layout.check(&self.progress)?;
        let mut failures = Vec::new();
        let mut is_accepted = false;
        for (name, layer) in layout.signatures()? {
            // What another signature left must not stay.
            let mut own = Entry::default();
            let judged = layer.and_then(|layer| {
                self.image_signature(reference, &layout, &manifest, &layer, &mut own)
            });
            match judged {
                Ok(()) if !is_accepted => {
                    is_accepted = true;
                    *entry = own;
                }
                Ok(()) => entry.text.push_str(&own.text),
                Err(failure) => {
                    if !is_accepted {
                        entry.members = own.members;
                    }
                    failures.push(failure.prefixed(&name));
                }
            }
        }
        let last = if is_accepted { None } else { failures.pop() };
        for failure in failures {
            output::warning(&format!("ignored {}", failure.message()));
        }
        if is_accepted {
            return Ok(());
        }
        Err(last.unwrap_or_else(|| {
            Failure::file(reference, &"the image has no signature")
                .hint("sign it: outlast sign --oci DIR:TAG --key alias/NAME")
                .code(REFUSED)
        }))
    }

    fn image_signature(
        &mut self,
        reference: &Path,
        layout: &Layout,
        manifest: &[u8],
        layer: &Descriptor,
        entry: &mut Entry,
    ) -> Result<(), Failure> {
        let bytes = layout.read(layer, MAX_MESSAGE_LEN)?;
        let refused = |error| Failure::file(reference, &error).code(REFUSED);
        let message = SignedMessage::parse(&bytes).map_err(refused)?;
        let rows = message.digests().map_err(refused)?;
        let values: Vec<_> = rows.iter().map(|row| row.digest(manifest)).collect();
        let signers = message.authenticate(&values, &self.verifier.extra).map_err(refused)?;
        self.bare(reference, &Bare { signers, message }, None, entry)
    }
}
