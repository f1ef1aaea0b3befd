//! Key material that its owner brings.
//!
//! The owner asks for parameters: an RSA wrapping key and a token. The wrapping key's private half stays here,
//! sealed, for one import or 24 hours.

use outlast_crypto::keys::KeySpec;
use outlast_crypto::wrap::WrappingAlgorithm;
use outlast_crypto::{Secret, digests};
use serde::{Deserialize, Serialize};

use super::record::{Import, Key, KeyState, Material, Origin};
use super::{KmsError, region};
use crate::identity::{Permit, action};
use crate::keyring::KeyRing;
use crate::work::{Sweep, Swept, Work};
use crate::{Fault, events, ids, limits};

/// Parameters that were given to an importer.
#[derive(Debug, Serialize, Deserialize)]
struct Parameters {
    algorithm: String,
    expires_ms: i64,
}

/// What an importer needs.
pub struct ImportParameters {
    /// Identifies the parameters: 32 bytes.
    pub token: Vec<u8>,
    /// DER `SubjectPublicKeyInfo` of the wrapping key.
    pub public_key: Vec<u8>,
    /// When they expire, milliseconds since 1970.
    pub expires_ms: i64,
}

/// The material of an import.
pub struct NewMaterial<'a> {
    /// The token of the parameters.
    pub token: &'a [u8],
    /// The material, encrypted under the wrapping key.
    pub wrapped: &'a [u8],
    /// When it expires, milliseconds since 1970; absent if it does not.
    pub expires_ms: Option<i64>,
    /// Whether it must be (`Some(true)`) or must not be (`Some(false)`) a material that is new to the key.
    pub is_new: Option<bool>,
    /// Free text; if absent, the previous one stays.
    pub description: Option<String>,
    /// Required id of the material.
    pub material_id: Option<&'a str>,
}

/// Returns parameters for an import with `algorithm` and a wrapping key of type `spec`.
pub fn import_parameters(
    work: &mut Work<'_>,
    key: &Key,
    algorithm: &WrappingAlgorithm,
    spec: &KeySpec,
    permit: &Permit<action::kms::GetParametersForImport>,
) -> Result<ImportParameters, KmsError> {
    permit.opens(&key.arn())?;
    require_external(key)?;
    key.require_kept()?;
    let open = work.scan::<Parameters>(&record_key(key, ""), "", limits::MAX_OPEN_IMPORTS)?;
    if open.len() >= limits::MAX_OPEN_IMPORTS {
        // Older parameters are of no use to an importer who asks again.
        close_all(work, key)?;
    }
    let token = ids::hex::<32>()?;
    let private = spec.generate()?;
    let public_key = spec
        .load(&private)?
        .public_key()
        .map(<[u8]>::to_vec)
        .ok_or_else(|| Fault::Damaged(key.arn()))?;
    let expires_ms = work.now_ms() + limits::IMPORT_PARAMETERS_MS;
    let parameters = Parameters { algorithm: algorithm.name.to_owned(), expires_ms };
    work.put(&record_key(key, &token), &parameters)?;
    work.put_secret(&secret_record_key(key, &token), &private)?;
    let token = hex::decode(&token).map_err(|_| Fault::Damaged(key.arn()))?;
    Ok(ImportParameters { token, public_key, expires_ms })
}

/// Imports material, and returns its id.
pub fn import_material(
    work: &mut Work<'_>,
    key: Key,
    new: NewMaterial<'_>,
    permit: &Permit<action::kms::ImportKeyMaterial>,
) -> Result<(Key, String), KmsError> {
    permit.opens(&key.arn())?;
    require_external(&key)?;
    key.require_kept()?;
    let (material, algorithm) = unwrap(work, &key, &new)?;
    place_material(work, key, &new, &material).map_err(|error| match error {
        // PKCS #1 v1.5 has no integrity protection: somebody who can tell bad padding from bad material could decrypt
        // by asking often (Bleichenbacher, CRYPTO '98).
        KmsError::IncorrectKeyMaterial(_) if !algorithm.detects_changes() => {
            KmsError::InvalidCiphertext
        }
        other => other,
    })
}

fn place_material(
    work: &mut Work<'_>,
    mut key: Key,
    new: &NewMaterial<'_>,
    material: &Secret,
) -> Result<(Key, String), KmsError> {
    let imported = key.spec().import(material.expose()).map_err(|_| {
        KmsError::IncorrectKeyMaterial(format!(
            "The key material is not a valid {} key.",
            key.spec().name
        ))
    })?;
    let id = material_id(&key, &imported.stored);
    if new.material_id.is_some_and(|wanted| wanted != id) {
        return Err(KmsError::IncorrectKeyMaterial(
            "The key material is not the one that KeyMaterialId names.".into(),
        ));
    }
    let known = key.material(&id).cloned();
    check_novelty(&key, known.is_some(), new.is_new)?;
    work.put_secret(&key.material_record_key(&id), &imported.stored)?;
    let description = new
        .description
        .clone()
        .or_else(|| known.as_ref()?.import.as_ref().map(|import| import.description.clone()))
        .unwrap_or_default();
    let import = Import {
        present: true,
        expires_ms: new.expires_ms,
        description,
        form: imported.form.name().to_owned(),
    };
    let is_first = key.material_id().is_empty();
    // "The key state changes to Enabled", also for a key that was disabled before its material was deleted.
    if key.state() == KeyState::PendingImport {
        key.record.enabled = true;
    }
    match key.record.materials.iter_mut().find(|material| material.id == id) {
        Some(material) => material.import = Some(import),
        None => {
            // At most one new material waits for its rotation; a later one replaces it.
            let waiting = key.record.materials.iter().find(|m| m.pending).map(|m| m.id.clone());
            if let Some(waiting) = waiting {
                work.delete(&key.material_record_key(&waiting));
                key.record.materials.retain(|material| material.id != waiting);
                region::forget_waiting(work, &key, &waiting)?;
            }
            key.record.materials.push(Material {
                import: Some(import),
                pending: !is_first,
                ..Material::first(id.clone())
            });
        }
    }
    if is_first {
        id.clone_into(&mut key.record.material_id);
    }
    key.save(work)?;
    if !key.is_replica() {
        region::spread_materials(work, &key)?;
    }
    Ok((key, id))
}

/// Deletes imported material: the current one, or the one that is named. Returns its id.
pub fn delete_material(
    work: &mut Work<'_>,
    ring: &KeyRing,
    mut key: Key,
    material_id: Option<&str>,
    permit: &Permit<action::kms::DeleteImportedKeyMaterial>,
) -> Result<(Key, Option<String>), KmsError> {
    permit.opens(&key.arn())?;
    require_external(&key)?;
    let id = material_id.unwrap_or_else(|| key.material_id()).to_owned();
    if id.is_empty() {
        return Ok((key, None));
    }
    if key.material(&id).is_none() {
        return Err(KmsError::NotFound(format!("{} has no key material {id}.", key.arn())));
    }
    let record_key = key.material_record_key(&id);
    work.delete(&record_key);
    ring.forget(&record_key);
    // Material that waits for its rotation belongs to the primary key, and is deleted everywhere if it is deleted
    // there.
    let was_waiting = key.material(&id).is_some_and(|material| material.pending);
    if was_waiting && !key.is_replica() {
        key.record.materials.retain(|material| material.id != id);
        region::forget_waiting(work, &key, &id)?;
    }
    for material in &mut key.record.materials {
        if material.id == id
            && let Some(import) = &mut material.import
        {
            import.present = false;
            import.expires_ms = None;
        }
    }
    key.save(work)?;
    Ok((key, Some(id)))
}

/// Erases the expired materials of a key.
pub(super) fn erase_expired(
    work: &mut Work<'_>,
    mut key: Key,
    swept: &mut Swept,
) -> Result<(), Fault> {
    let mut expired = Vec::new();
    for material in &mut key.record.materials {
        let gone = !material.is_present(work.now_ms());
        if let Some(import) = material.import.as_mut().filter(|import| import.present && gone) {
            import.present = false;
            expired.push(material.id.clone());
        }
    }
    for id in expired {
        let record_key = key.material_record_key(&id);
        work.delete(&record_key);
        swept.erased.push(record_key);
        key.tell(work, &events::MATERIAL_EXPIRED)?;
        swept.done(key.scope(), key.arn(), "DeleteExpiredKeyMaterial");
    }
    key.save(work)
}

/// Closes all open imports of a key.
pub(super) fn close_all(work: &mut Work<'_>, key: &Key) -> Result<(), Fault> {
    let prefix = record_key(key, "");
    for (found, _) in work.scan::<Parameters>(&prefix, "", limits::MAX_OPEN_IMPORTS)? {
        let token = found.trim_start_matches(prefix.as_str()).to_owned();
        work.delete(&found);
        work.delete(&secret_record_key(key, &token));
    }
    Ok(())
}

/// Forgets parameters that have expired.
pub const FORGET_EXPIRED: Sweep = Sweep {
    find: |work, after, limit| {
        // Kept a day longer than it is valid, so that a late importer gets the right error.
        work.due("kms/import/", after, limit, |parameters: &Parameters, now_ms| {
            parameters.expires_ms + limits::IMPORT_PARAMETERS_MS <= now_ms
        })
    },
    // Parameters never change, so they need not be read again.
    handle: |work, record_key, _| {
        work.delete(record_key);
        work.delete(&record_key.replacen("kms/import/", "kms/import-secret/", 1));
        Ok(())
    },
};

/// Uses the parameters up and unwraps the material.
fn unwrap(
    work: &mut Work<'_>,
    key: &Key,
    new: &NewMaterial<'_>,
) -> Result<(Secret, &'static WrappingAlgorithm), KmsError> {
    let token = hex::encode(new.token);
    let unknown = || {
        KmsError::InvalidImportToken(
            "The import token does not belong to this key, or was used before: get new parameters with \
             GetParametersForImport."
                .into(),
        )
    };
    if new.token.len() != 32 {
        return Err(unknown());
    }
    let parameters = work.get::<Parameters>(&record_key(key, &token))?.ok_or_else(unknown)?;
    if parameters.expires_ms <= work.now_ms() {
        return Err(KmsError::ExpiredImportToken(
            "The import token has expired: get new parameters with GetParametersForImport.".into(),
        ));
    }
    let sealed = secret_record_key(key, &token);
    let private = work.secret(&sealed)?.ok_or_else(|| Fault::Damaged(sealed.clone()))?;
    let algorithm = WrappingAlgorithm::by_name(&parameters.algorithm)
        .ok_or_else(|| Fault::Damaged(record_key(key, &token)))?;
    let material =
        algorithm.unwrap(&private, new.wrapped).map_err(|_| KmsError::InvalidCiphertext)?;
    work.delete(&record_key(key, &token));
    work.delete(&sealed);
    Ok((material, algorithm))
}

fn check_novelty(key: &Key, is_known: bool, wanted_new: Option<bool>) -> Result<(), KmsError> {
    let incorrect = |text: &str| Err(KmsError::IncorrectKeyMaterial(text.to_owned()));
    let is_first = key.materials().is_empty();
    let wants_new = wanted_new.unwrap_or(is_first);
    match (wants_new, is_known) {
        (true, true) => incorrect("The key material is already associated with this key."),
        (false, false) => {
            incorrect("The key material is not the one that was imported into this key before.")
        }
        (true, false) if !is_first && !key.is_symmetric_encryption() => {
            incorrect("The key material of an asymmetric or HMAC key cannot be changed.")
        }
        // The same error as for any other material that does not fit: another would tell that the padding was right.
        (true, false) if key.is_replica() => incorrect(
            "The key material is new: import it into the primary key first, and then into its replicas.",
        ),
        _ => Ok(()),
    }
}

/// The id of a material: a key gives the same material the same id. The id reveals nothing of a key with 28 random
/// bytes or more.
fn material_id(key: &Key, stored: &Secret) -> String {
    let tagged = [b"outlast key material id v1\0", key.id().as_bytes(), b"\0", stored.expose()];
    hex::encode(digests::sha256(Secret::new(tagged.concat()).expose()))
}

fn require_external(key: &Key) -> Result<(), KmsError> {
    if key.origin() == Origin::External {
        return Ok(());
    }
    Err(KmsError::UnsupportedOperation(format!(
        "{} origin is AWS_KMS which is not valid for this operation.",
        key.arn()
    )))
}

fn record_key(key: &Key, token: &str) -> String {
    format!("kms/import/{}/{}/{}/{token}", key.scope().account, key.scope().region, key.id())
}

fn secret_record_key(key: &Key, token: &str) -> String {
    format!("kms/import-secret/{}/{}/{}/{token}", key.scope().account, key.scope().region, key.id())
}
