//! Errors as AWS sends them, and the mapping of the domain's errors.

use outlast_crypto::CryptoError;
use outlast_domain::Fault;
use outlast_domain::acm::AcmError;
use outlast_domain::ca::CaError;
use outlast_domain::identity::Denied;
use outlast_domain::identity::session::AssumeError;
use outlast_domain::kms::KmsError;
use outlast_domain::rolesanywhere::RolesAnywhereError;
use outlast_domain::secrets::SecretError;
use outlast_domain::transfer::{About, TransferError};
use outlast_store::StoreError;

/// Errors that AWS sends without a message. Our text for them goes into the log and the audit event.
const WITHOUT_MESSAGE: &[&str] =
    &["InvalidCiphertextException", "KMSInvalidMacException", "KMSInvalidSignatureException"];

/// An error response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ApiError {
    /// AWS's name of the error.
    pub code: &'static str,
    /// HTTP status.
    pub status: u16,
    /// Message for people.
    pub message: String,
    /// The resource that the error is about, where AWS's error names it.
    pub about: Option<Box<About>>,
    /// The store's own reason, if the operation must be repeated or an operator must act.
    pub fault: Option<Fault>,
}

impl ApiError {
    /// An error that the caller can correct.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, status: 400, message: message.into(), about: None, fault: None }
    }

    /// A `ValidationException`.
    pub fn validation(message: impl Into<String>) -> Self {
        Self::new("ValidationException", message)
    }

    /// The body or one of its fields has the wrong form.
    pub fn serialization(message: impl Into<String>) -> Self {
        Self::new("SerializationException", message)
    }

    /// The text that the caller gets; `None` where AWS sends none.
    pub fn told(&self) -> Option<&str> {
        (!WITHOUT_MESSAGE.contains(&self.code)).then_some(self.message.as_str())
    }

    /// Whether the operation conflicted with another one and must be repeated.
    pub fn is_conflict(&self) -> bool {
        self.fault == Some(Fault::Store(StoreError::Conflict))
    }

    /// Whether the operation needs more time than it was given.
    pub fn takes_long(&self) -> bool {
        self.fault == Some(Fault::Crypto(CryptoError::TakesLong))
    }

    /// An internal error, under the service's own name for it. The reason goes to the log, not to the caller.
    pub fn internal(code: &'static str, fault: Fault) -> Self {
        let message = match &fault {
            Fault::Store(StoreError::Full) => {
                "The request failed because the service's disk is full. Nothing was changed."
            }
            Fault::Store(StoreError::Uncertain(_)) => {
                "The request failed because the store did not answer the commit. Whether it took effect is not \
                 certain; check before you try again."
            }
            Fault::Store(StoreError::Unavailable(_)) => {
                "The request failed because the store cannot be read or written. Nothing was changed; \
                 try again."
            }
            _ => "The request failed because of an internal error. Nothing was changed; try again.",
        };
        Self { code, status: 500, message: message.into(), about: None, fault: Some(fault) }
    }
}

impl From<KmsError> for ApiError {
    fn from(error: KmsError) -> Self {
        let code = match &error {
            KmsError::NotFound(_) => "NotFoundException",
            KmsError::InvalidArn(_) => "InvalidArnException",
            KmsError::Disabled(_) => "DisabledException",
            KmsError::InvalidState(_) => "KMSInvalidStateException",
            KmsError::InvalidKeyUsage(_) => "InvalidKeyUsageException",
            KmsError::UnsupportedOperation(_) => "UnsupportedOperationException",
            KmsError::InvalidSignature => "KMSInvalidSignatureException",
            KmsError::InvalidCiphertext => "InvalidCiphertextException",
            KmsError::IncorrectKey => "IncorrectKeyException",
            KmsError::AlreadyExists(_) => "AlreadyExistsException",
            KmsError::NotAuthorized(_) => "NotAuthorizedException",
            KmsError::InvalidAliasName(_) => "InvalidAliasNameException",
            KmsError::LimitExceeded(_) => "LimitExceededException",
            KmsError::Tag(_) => "TagException",
            KmsError::Validation(_) => "ValidationException",
            KmsError::InvalidMac => "KMSInvalidMacException",
            KmsError::UnknownCiphertextKey | KmsError::Denied(_) | KmsError::NotApproved(_) => {
                "AccessDeniedException"
            }
            KmsError::IncorrectDigest => "DigestMismatchException",
            KmsError::MalformedPolicy(_) => "MalformedPolicyDocumentException",
            KmsError::InvalidGrantToken(_) => "InvalidGrantTokenException",
            KmsError::InvalidGrantId(_) => "InvalidGrantIdException",
            KmsError::InvalidMarker => "InvalidMarkerException",
            KmsError::IncorrectKeyMaterial(_) => "IncorrectKeyMaterialException",
            KmsError::InvalidImportToken(_) => "InvalidImportTokenException",
            KmsError::ExpiredImportToken(_) => "ExpiredImportTokenException",
            KmsError::Fault(fault) => return Self::internal("KMSInternalException", fault.clone()),
            _ => "KMSInternalException",
        };
        Self::new(code, error.to_string())
    }
}

impl From<CaError> for ApiError {
    fn from(error: CaError) -> Self {
        let code = match &error {
            CaError::NotFound(_) => "ResourceNotFoundException",
            CaError::InvalidArn(_) => "InvalidArnException",
            CaError::InvalidArgs(_) => "InvalidArgsException",
            CaError::InvalidState(_) => "InvalidStateException",
            CaError::InvalidRequest(_) => "InvalidRequestException",
            CaError::MalformedCsr(_) => "MalformedCSRException",
            CaError::MalformedCertificate(_) => "MalformedCertificateException",
            CaError::CertificateMismatch(_) => "CertificateMismatchException",
            CaError::InvalidTag(_) => "InvalidTagException",
            CaError::TooManyTags(_) => "TooManyTagsException",
            CaError::AlreadyProcessed(_) => "RequestAlreadyProcessedException",
            CaError::InProgress(_) => "RequestInProgressException",
            CaError::PermissionExists(_) => "PermissionAlreadyExistsException",
            CaError::InvalidPolicy(_) => "InvalidPolicyException",
            CaError::LimitExceeded(_) => "LimitExceededException",
            CaError::LockoutPrevented(_) => "LockoutPreventedException",
            CaError::Denied(_) => "AccessDeniedException",
            CaError::Validation(_) => "ValidationException",
            CaError::Fault(fault) => return Self::internal("InternalFailure", fault.clone()),
            _ => "InternalFailure",
        };
        Self::new(code, error.to_string())
    }
}

impl From<AcmError> for ApiError {
    fn from(error: AcmError) -> Self {
        let code = match &error {
            AcmError::NotFound(_) => "ResourceNotFoundException",
            AcmError::InvalidArn(_) => "InvalidArnException",
            AcmError::InvalidArgs(_) => "InvalidArgsException",
            AcmError::InvalidParameter(_) => "InvalidParameterException",
            AcmError::InvalidState(_) => "InvalidStateException",
            AcmError::InvalidDomainValidationOptions(_) => {
                "InvalidDomainValidationOptionsException"
            }
            AcmError::InvalidTag(_) => "InvalidTagException",
            AcmError::TooManyTags(_) => "TooManyTagsException",
            AcmError::Conflict(_) => "ConflictException",
            AcmError::ResourceInUse(_) => "ResourceInUseException",
            AcmError::RequestInProgress(_) => "RequestInProgressException",
            AcmError::LimitExceeded(_) => "LimitExceededException",
            AcmError::ServiceQuotaExceeded(_) => "ServiceQuotaExceededException",
            AcmError::AccessDenied(_) => "AccessDeniedException",
            AcmError::Validation(_) => "ValidationException",
            AcmError::Fault(fault) => return Self::internal("InternalFailure", fault.clone()),
            _ => "InternalFailure",
        };
        Self::new(code, error.to_string())
    }
}

impl From<SecretError> for ApiError {
    fn from(error: SecretError) -> Self {
        let code = match &error {
            SecretError::NotFound(_) => "ResourceNotFoundException",
            SecretError::Exists(_) => "ResourceExistsException",
            SecretError::InvalidRequest(_) => "InvalidRequestException",
            SecretError::InvalidParameter(_) => "InvalidParameterException",
            SecretError::Validation(_) => "ValidationException",
            SecretError::LimitExceeded(_) => "LimitExceededException",
            SecretError::Encryption(_) => "EncryptionFailure",
            SecretError::Decryption(_) => "DecryptionFailure",
            SecretError::MalformedPolicy(_) => "MalformedPolicyDocumentException",
            SecretError::PublicPolicy(_) => "PublicPolicyException",
            SecretError::Denied(_) | SecretError::KmsDenied => "AccessDeniedException",
            SecretError::Fault(fault) => {
                return Self::internal("InternalServiceError", fault.clone());
            }
            _ => "InternalServiceError",
        };
        Self::new(code, error.to_string())
    }
}

impl From<RolesAnywhereError> for ApiError {
    fn from(error: RolesAnywhereError) -> Self {
        let code = match &error {
            RolesAnywhereError::Validation(_) => "ValidationException",
            RolesAnywhereError::NotFound(_) => "ResourceNotFoundException",
            RolesAnywhereError::Refused(_) | RolesAnywhereError::Denied(_) => {
                "AccessDeniedException"
            }
            RolesAnywhereError::TooManyTags(_) => "TooManyTagsException",
            RolesAnywhereError::Throttled(_) => "ThrottlingException",
            RolesAnywhereError::Fault(fault) => {
                return Self::internal("ServiceUnavailableException", fault.clone());
            }
            _ => "ServiceUnavailableException",
        };
        Self::new(code, error.to_string())
    }
}

impl From<TransferError> for ApiError {
    fn from(error: TransferError) -> Self {
        let code = match &error {
            TransferError::InvalidRequest(_) => "InvalidRequestException",
            TransferError::NotFound(_) => "ResourceNotFoundException",
            TransferError::Exists(_) => "ResourceExistsException",
            TransferError::Denied(_) => "AccessDeniedException",
            TransferError::Fault(fault) => {
                return Self::internal("InternalServiceError", fault.clone());
            }
            _ => "InternalServiceError",
        };
        let message = error.to_string();
        let about = match error {
            TransferError::NotFound(about) | TransferError::Exists(about) => Some(Box::new(about)),
            _ => None,
        };
        Self { about, ..Self::new(code, message) }
    }
}

impl From<Denied> for ApiError {
    fn from(error: Denied) -> Self {
        Self::new("AccessDeniedException", error.to_string())
    }
}

impl From<AssumeError> for ApiError {
    fn from(error: AssumeError) -> Self {
        match error {
            AssumeError::Denied(denied) => denied.into(),
            // STS has no error for a quota. After this one clients retry later, and by then sessions may have ended.
            AssumeError::TooMany(reached) => Self::new("Throttling", reached.to_string()),
            AssumeError::Fault(fault) => fault.into(),
        }
    }
}

impl From<Fault> for ApiError {
    fn from(fault: Fault) -> Self {
        Self::internal("InternalFailure", fault)
    }
}
