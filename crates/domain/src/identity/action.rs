//! The actions that a permit can be for: AWS's actions as types, one row each.
//!
//! An action is a type, so that passing a permit to a function for another action does not compile. Where one
//! function carries out several actions, a trait lists them; other crates cannot add to such a list.

/// An action of a policy.
pub trait Action: sealed::Sealed + Copy {
    /// AWS's name, such as `kms:Sign`.
    const NAME: &'static str;
    /// The name without its service, such as `Sign`.
    const OPERATION: &'static str;
}

mod sealed {
    /// Closes [`super::Action`] to other crates.
    pub trait Sealed {}
}

macro_rules! actions {
    ($($service:ident = $prefix:literal { $($name:ident,)* })*) => {$(
        #[doc = concat!("Actions of `", $prefix, "`.")]
        pub mod $service {
            $(
                #[doc = concat!("`", $prefix, ":", stringify!($name), "`")]
                #[derive(Debug, Clone, Copy)]
                pub struct $name;
                impl super::sealed::Sealed for $name {}
                impl super::Action for $name {
                    const NAME: &'static str = concat!($prefix, ":", stringify!($name));
                    const OPERATION: &'static str = stringify!($name);
                }
            )*
        }
    )*};
}

actions! {
    outlast = "outlast" {
        AddLogEntries,
        ApproveSigning,
        DeleteSigningApprovalRule,
        DenySigning,
        GetAuditEntries,
        GetLogCheckpoint,
        GetLogEntries,
        GetLogProof,
        GetSigningApprovalRule,
        GetSigningRequest,
        GetTimestamp,
        ListKeySignatures,
        ListSigningRequests,
        PutSigningApprovalRule,
        RequestSigningApproval,
        SignSshCertificate,
    }
    kms = "kms" {
        CancelKeyDeletion,
        ConnectCustomKeyStore,
        CreateAlias,
        CreateCustomKeyStore,
        CreateGrant,
        CreateKey,
        Decapsulate,
        Decrypt,
        DeleteAlias,
        DeleteCustomKeyStore,
        DeleteImportedKeyMaterial,
        DeriveSharedSecret,
        DescribeCustomKeyStores,
        DescribeKey,
        DisableKey,
        DisableKeyRotation,
        DisconnectCustomKeyStore,
        EnableKey,
        EnableKeyRotation,
        Encapsulate,
        Encrypt,
        GenerateDataKey,
        GenerateDataKeyPair,
        GenerateDataKeyPairWithoutPlaintext,
        GenerateDataKeyWithoutPlaintext,
        GenerateMac,
        GenerateRandom,
        GetKeyLastUsage,
        GetKeyPolicy,
        GetKeyRotationStatus,
        GetParametersForImport,
        GetPublicKey,
        ImportKeyMaterial,
        ListAliases,
        ListGrants,
        ListKeyPolicies,
        ListKeyRotations,
        ListKeys,
        ListResourceTags,
        ListRetirableGrants,
        PutKeyPolicy,
        ReEncryptFrom,
        ReEncryptTo,
        ReplicateKey,
        RetireGrant,
        RevokeGrant,
        RotateKeyOnDemand,
        ScheduleKeyDeletion,
        Sign,
        TagResource,
        UntagResource,
        UpdateAlias,
        UpdateCustomKeyStore,
        UpdateKeyDescription,
        UpdatePrimaryRegion,
        Verify,
        VerifyMac,
    }
    acm_pca = "acm-pca" {
        CreateCertificateAuthority,
        CreateCertificateAuthorityAuditReport,
        CreatePermission,
        DeleteCertificateAuthority,
        DeletePermission,
        DeletePolicy,
        DescribeCertificateAuthority,
        DescribeCertificateAuthorityAuditReport,
        GetCertificate,
        GetCertificateAuthorityCertificate,
        GetCertificateAuthorityCsr,
        GetPolicy,
        ImportCertificateAuthorityCertificate,
        IssueCertificate,
        ListCertificateAuthorities,
        ListPermissions,
        ListTags,
        PutPolicy,
        RestoreCertificateAuthority,
        RevokeCertificate,
        TagCertificateAuthority,
        UntagCertificateAuthority,
        UpdateCertificateAuthority,
    }
    acm = "acm" {
        AddTagsToCertificate,
        CreateAcmeDomainValidation,
        CreateAcmeEndpoint,
        CreateAcmeExternalAccountBinding,
        DeleteAcmeDomainValidation,
        DeleteAcmeEndpoint,
        DeleteAcmeExternalAccountBinding,
        DeleteCertificate,
        DescribeAcmeAccount,
        DescribeAcmeDomainValidation,
        DescribeAcmeEndpoint,
        DescribeAcmeExternalAccountBinding,
        DescribeCertificate,
        ExportCertificate,
        GetAccountConfiguration,
        GetAcmeExternalAccountBindingCredentials,
        GetCertificate,
        ImportCertificate,
        ListAcmeAccounts,
        ListAcmeDomainValidations,
        ListAcmeEndpoints,
        ListAcmeExternalAccountBindings,
        ListCertificateDomainValidations,
        ListCertificates,
        ListTagsForCertificate,
        ListTagsForResource,
        PutAccountConfiguration,
        RemoveTagsFromCertificate,
        RenewCertificate,
        RequestCertificate,
        ResendValidationEmail,
        RevokeAcmeAccount,
        RevokeAcmeExternalAccountBinding,
        RevokeCertificate,
        SearchCertificates,
        TagResource,
        UntagResource,
        UpdateAcmeDomainValidation,
        UpdateAcmeEndpoint,
        UpdateCertificateOptions,
    }
    rolesanywhere = "rolesanywhere" {
        CreateProfile,
        CreateTrustAnchor,
        DeleteAttributeMapping,
        DeleteCrl,
        DeleteProfile,
        DeleteTrustAnchor,
        DisableCrl,
        DisableProfile,
        DisableTrustAnchor,
        EnableCrl,
        EnableProfile,
        EnableTrustAnchor,
        GetCrl,
        GetProfile,
        GetSubject,
        GetTrustAnchor,
        ImportCrl,
        ListCrls,
        ListProfiles,
        ListSubjects,
        ListTagsForResource,
        ListTrustAnchors,
        PutAttributeMapping,
        PutNotificationSettings,
        ResetNotificationSettings,
        TagResource,
        UntagResource,
        UpdateCrl,
        UpdateProfile,
        UpdateTrustAnchor,
    }
    secretsmanager = "secretsmanager" {
        BatchGetSecretValue,
        CancelRotateSecret,
        CreateSecret,
        DeleteResourcePolicy,
        DeleteSecret,
        DescribeSecret,
        GetRandomPassword,
        GetResourcePolicy,
        GetSecretValue,
        ListResourcePolicies,
        ListSecretVersionIds,
        ListSecrets,
        PutResourcePolicy,
        PutSecretValue,
        RemoveRegionsFromReplication,
        ReplicateSecretToRegions,
        RestoreSecret,
        RotateSecret,
        StopReplicationToReplica,
        TagResource,
        UntagResource,
        UpdateSecret,
        UpdateSecretVersionStage,
        ValidateResourcePolicy,
    }
    transfer = "transfer" {
        CreateConnector,
        CreateServer,
        CreateUser,
        CreateWorkflow,
        DeleteConnector,
        DeleteHostKey,
        DeleteServer,
        DeleteSshPublicKey,
        DeleteUser,
        DeleteWorkflow,
        DescribeExecution,
        DescribeConnector,
        DescribeHostKey,
        DescribeSecurityPolicy,
        DescribeServer,
        DescribeUser,
        DescribeWorkflow,
        ImportHostKey,
        ImportSshPublicKey,
        ListExecutions,
        ListConnectors,
        ListFileTransferResults,
        ListHostKeys,
        ListSecurityPolicies,
        ListServers,
        ListTagsForResource,
        ListUsers,
        ListWorkflows,
        SendWorkflowStepState,
        StartDirectoryListing,
        StartFileTransfer,
        StartRemoteDelete,
        StartRemoteMove,
        StartServer,
        StopServer,
        TagResource,
        TestConnection,
        TestIdentityProvider,
        UntagResource,
        UpdateConnector,
        UpdateHostKey,
        UpdateServer,
        UpdateUser,
    }
    sts = "sts" {
        AssumeRole,
        SetSourceIdentity,
        TagSession,
    }
    iam = "iam" {
        PassRole,
    }
    lambda = "lambda" {
        InvokeFunction,
    }
}

macro_rules! any_of {
    ($($(#[$doc:meta])* $name:ident: $($service:ident::$action:ident,)*;)*) => {$(
        $(#[$doc])*
        pub trait $name: Action {}
        $(impl $name for $service::$action {})*
    )*};
}

any_of! {
    /// Actions that encrypt with a key.
    Encrypts:
        kms::Encrypt,
        kms::ReEncryptTo,
        kms::GenerateDataKey,
        kms::GenerateDataKeyWithoutPlaintext,
        kms::GenerateDataKeyPair,
        kms::GenerateDataKeyPairWithoutPlaintext,;
    /// Actions that change who must approve what a key signs.
    ChangesApprovalRule: outlast::PutSigningApprovalRule, outlast::DeleteSigningApprovalRule,;
    /// What decrypts with a key.
    Decrypts: kms::Decrypt, kms::ReEncryptFrom,;
    /// Actions that end a grant.
    EndsGrant: kms::RevokeGrant, kms::RetireGrant,;
    /// Actions that read a certificate.
    ReadsCertificate: acm::GetCertificate, acm::DescribeCertificate,;
    /// Actions that list the certificates of an account.
    ListsCertificates: acm::ListCertificates, acm::SearchCertificates,;
    /// Actions that add tags to a resource of Certificate Manager.
    AddsTags: acm::TagResource, acm::AddTagsToCertificate,;
    /// Actions that read the value of a secret: to return it, or to compare, re-encrypt or replicate it.
    ReadsSecretValue:
        secretsmanager::GetSecretValue,
        secretsmanager::CreateSecret,
        secretsmanager::DeleteResourcePolicy,
        secretsmanager::PutResourcePolicy,
        secretsmanager::PutSecretValue,
        secretsmanager::ReplicateSecretToRegions,
        secretsmanager::TagResource,
        secretsmanager::UntagResource,
        secretsmanager::UpdateSecret,
        secretsmanager::UpdateSecretVersionStage,;
    /// Actions that give a secret a value.
    WritesSecretValue:
        secretsmanager::CreateSecret,
        secretsmanager::PutSecretValue,
        secretsmanager::UpdateSecret,;
    /// Actions that make replicas of a secret.
    ReplicatesSecret: secretsmanager::CreateSecret, secretsmanager::ReplicateSecretToRegions,;
    /// Actions whose changes of a secret reach its replicas.
    ChangesSecret:
        secretsmanager::CreateSecret,
        secretsmanager::DeleteResourcePolicy,
        secretsmanager::PutResourcePolicy,
        secretsmanager::PutSecretValue,
        secretsmanager::ReplicateSecretToRegions,
        secretsmanager::TagResource,
        secretsmanager::UntagResource,
        secretsmanager::UpdateSecret,
        secretsmanager::UpdateSecretVersionStage,;
    /// Actions that list secrets.
    ListsSecrets: secretsmanager::ListSecrets, secretsmanager::BatchGetSecretValue,;
    /// Actions that remove tags from a resource of Certificate Manager.
    RemovesTags: acm::UntagResource, acm::RemoveTagsFromCertificate,;
    /// Actions that enable or disable a trust anchor.
    EnablesTrustAnchor: rolesanywhere::EnableTrustAnchor, rolesanywhere::DisableTrustAnchor,;
    /// Actions that enable or disable a profile.
    EnablesProfile: rolesanywhere::EnableProfile, rolesanywhere::DisableProfile,;
    /// Actions that start or stop an SFTP server.
    StartsServer: transfer::StartServer, transfer::StopServer,;
    /// Actions that give a connector something to do.
    StartsJob:
        transfer::StartFileTransfer,
        transfer::StartDirectoryListing,
        transfer::StartRemoteDelete,
        transfer::StartRemoteMove,;
    /// Actions that enable or disable an imported CRL.
    EnablesCrl: rolesanywhere::EnableCrl, rolesanywhere::DisableCrl,;
}
