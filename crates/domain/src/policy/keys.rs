//! Condition keys as rows: those that AWS documents for the services here, and our own.
//!
//! Sources: "AWS global condition context keys" of the IAM User Guide; the tables of condition keys of KMS, Private
//! CA, Certificate Manager, Secrets Manager and STS in the Service Authorization Reference; "AWS KMS condition keys" of the KMS
//! Developer Guide. `docs/condition-keys.md` and warnings about policies are made from these rows, and a test tries
//! each one on a call.

/// A condition key.
#[derive(Debug)]
pub struct KeyRow {
    /// Name in AWS's spelling; `${}` stands for any text.
    pub name: &'static str,
    /// Type of its values.
    pub kind: KeyKind,
    /// Whether it can have several values, for `ForAnyValue` and `ForAllValues`.
    pub many: bool,
    /// When requests have it.
    pub set: Set,
    /// Services whose actions have it, by their prefixes; empty for all.
    pub services: &'static [&'static str],
}

/// Type of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// Any text.
    Text,
    /// An ARN.
    Arn,
    /// `true` or `false`.
    Bool,
    /// A number.
    Number,
    /// A date and time.
    Date,
    /// An address.
    Address,
}

impl KeyKind {
    /// AWS's name of the type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "String",
            Self::Arn => "ARN",
            Self::Bool => "Bool",
            Self::Number => "Numeric",
            Self::Date => "Date",
            Self::Address => "IP address",
        }
    }
}

/// When requests have a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// Every request of the services has it.
    Always,
    /// Some requests have it, as the text says.
    When(&'static str),
    /// No request has it, for this reason.
    Never(&'static str),
}

impl KeyRow {
    /// The row of a key, given in lower case.
    pub fn find(key: &str) -> Option<&'static Self> {
        KEYS.iter().find(|row| {
            let name = row.name.to_ascii_lowercase();
            match name.split_once("${") {
                None => name == key,
                Some((prefix, _)) => key.len() > prefix.len() && key.starts_with(prefix),
            }
        })
    }

    const fn new(name: &'static str, kind: KeyKind, set: Set) -> Self {
        Self { name, kind, many: false, set, services: &[] }
    }

    const fn many(self) -> Self {
        Self { many: true, ..self }
    }

    const fn of(self, services: &'static [&'static str]) -> Self {
        Self { services, ..self }
    }
}

const fn always(name: &'static str, kind: KeyKind) -> KeyRow {
    KeyRow::new(name, kind, Set::Always)
}

const fn when(name: &'static str, kind: KeyKind, which: &'static str) -> KeyRow {
    KeyRow::new(name, kind, Set::When(which))
}

const fn never(name: &'static str, kind: KeyKind, why: &'static str) -> KeyRow {
    KeyRow::new(name, kind, Set::Never(why))
}

/// A key of KMS.
const fn kms(name: &'static str, kind: KeyKind, which: &'static str) -> KeyRow {
    when(name, kind, which).of(KMS)
}

/// A key of Secrets Manager.
const fn secrets(name: &'static str, kind: KeyKind, which: &'static str) -> KeyRow {
    when(name, kind, which).of(SECRETS)
}

use KeyKind::{Address, Arn, Bool, Date, Number, Text};

/// Prefixes of keys that AWS has for the services here, and of our own: any other key with such a prefix does not
/// exist.
pub(super) const PREFIXES: &[&str] =
    &["aws", "kms", "acm", "acm-pca", "secretsmanager", "sts", "iam", "outlast", "s3", "transfer"];

const KMS: &[&str] = &["kms"];
const ACM: &[&str] = &["acm"];
const SECRETS: &[&str] = &["secretsmanager"];
const STS: &[&str] = &["sts"];
const OUTLAST: &[&str] = &["outlast"];
/// The actions that decide about files of SFTP.
const S3: &[&str] = &["s3"];

const NO_ORGANIZATIONS: &str = "there are no organizations";
const NO_FEDERATION: &str = "there are no federated sessions";
const NO_MFA: &str = "there is no multi-factor authentication";
const NO_VPC: &str = "there are no VPCs";
const NO_EC2: &str = "there are no EC2 instances";
const NO_ENCLAVES: &str = "there are no Nitro enclaves";
const NO_MCP: &str = "there is no MCP service";
const NOT_HERE: &str = "outlast does not have the service that sets it";
const NO_TOKENS: &str = "there is no operation that issues such tokens";
const NO_PARTNERS: &str = "there are no secrets of AWS's partners";
const NO_SERVICE_GRANTS: &str = "grants to services are refused";

const SESSIONS: &str = "the caller is a session of a role";
const BY_SERVICE: &str = "a service asks to assume a role: for an ACME endpoint, a certificate (Roles Anywhere) or a user of SFTP";
const FORWARDED: &str =
    "Certificate Manager asks Private CA, or Secrets Manager KMS, with the caller's rights";
const OF_KEYS: &str = "CreateKey, ReplicateKey and every operation on a key";
const OF_MULTI_REGION: &str = "the same, where the key is a multi-Region key";
const ENCRYPTION_CONTEXT: &str = "the operation has an encryption context";
const OF_CERTIFICATES: &str =
    "RequestCertificate, orders by ACME, and every operation on a certificate";
const SSH: &str = "SignSshCertificate";
const ASSUME_ROLE: &str = "AssumeRole, and where Roles Anywhere asks";

/// All keys.
#[rustfmt::skip]
pub static KEYS: &[KeyRow] = &[
    // Properties of the principal.
    always("aws:PrincipalArn", Arn),
    when("aws:PrincipalAccount", Text, "the caller is a user or a session"),
    never("aws:PrincipalOrgPaths", Text, NO_ORGANIZATIONS).many(),
    never("aws:PrincipalOrgID", Text, NO_ORGANIZATIONS),
    when("aws:PrincipalTag/${TagKey}", Text, "the user, the role or the session has the tag, or the session that Roles Anywhere asks for"),
    always("aws:PrincipalIsAWSService", Bool),
    when("aws:PrincipalServiceName", Text, BY_SERVICE).of(STS),
    when("aws:PrincipalServiceNamesList", Text, BY_SERVICE).many().of(STS),
    when("aws:PrincipalType", Text, "the caller is a user or a session"),
    when("aws:userid", Text, "the caller is a user or a session"),
    when("aws:username", Text, "the caller is a user"),
    // Properties of a role session.
    never("aws:AssumedRoot", Text, "there is no AssumeRoot"),
    never("aws:FederatedProvider", Text, NO_FEDERATION),
    when("aws:TokenIssueTime", Date, SESSIONS),
    never("aws:SignInSessionArn", Arn, NO_FEDERATION),
    never("aws:MultiFactorAuthAge", Number, NO_MFA),
    when("aws:MultiFactorAuthPresent", Bool, "the caller is a session of a role; it is false"),
    never("aws:ChatbotSourceArn", Arn, NOT_HERE),
    never("aws:Ec2InstanceSourceVpc", Text, NO_EC2),
    never("aws:Ec2InstanceSourcePrivateIPv4", Address, NO_EC2),
    when("aws:SourceIdentity", Text, "the session has a source identity"),
    never("ec2:RoleDelivery", Number, NO_EC2),
    never("ec2:SourceInstanceArn", Arn, NO_EC2),
    never("glue:RoleAssumedBy", Text, NOT_HERE),
    never("glue:CredentialIssuingService", Text, NOT_HERE),
    never("codebuild:BuildArn", Arn, NOT_HERE),
    never("codebuild:ProjectArn", Arn, NOT_HERE),
    never("lambda:SourceFunctionArn", Arn, NOT_HERE),
    never("ssm:SourceInstanceArn", Arn, NOT_HERE),
    never("identitystore:UserId", Text, NOT_HERE),
    // Properties of the network.
    when("aws:SourceIp", Address, "the call came over the network, including where a service calls with the caller's rights"),
    never("aws:SourceVpc", Text, NO_VPC),
    never("aws:SourceVpcArn", Arn, NO_VPC),
    never("aws:SourceVpce", Text, NO_VPC),
    never("aws:VpceAccount", Text, NO_VPC),
    never("aws:VpceOrgID", Text, NO_VPC),
    never("aws:VpceOrgPaths", Text, NO_VPC).many(),
    never("aws:VpcSourceIp", Address, NO_VPC),
    // Properties of the resource.
    always("aws:ResourceAccount", Text),
    never("aws:ResourceOrgID", Text, NO_ORGANIZATIONS),
    never("aws:ResourceOrgPaths", Text, NO_ORGANIZATIONS).many(),
    when("aws:ResourceTag/${TagKey}", Text, "the key, certificate authority, certificate, resource of ACME or of Roles Anywhere has the tag"),
    // Properties of the request.
    when("aws:CalledVia", Text, FORWARDED).many(),
    when("aws:CalledViaFirst", Text, FORWARDED),
    when("aws:CalledViaLast", Text, FORWARDED),
    never("aws:CalledViaAWSMCP", Text, NO_MCP),
    always("aws:ViaAWSService", Bool),
    never("aws:ViaAWSMCPService", Bool, NO_MCP),
    always("aws:CurrentTime", Date),
    always("aws:EpochTime", Number),
    when("aws:referer", Text, "the request has a Referer header"),
    when("aws:RequestedRegion", Text, "somebody calls"),
    when("aws:RequestTag/${TagKey}", Text, "the request gives the tag"),
    when("aws:TagKeys", Text, "the request adds or removes tags").many(),
    when("aws:SecureTransport", Bool, "somebody calls"),
    when("aws:SourceAccount", Text, BY_SERVICE).of(STS),
    when("aws:SourceArn", Arn, BY_SERVICE).of(STS),
    never("aws:SourceOrgID", Text, NO_ORGANIZATIONS),
    never("aws:SourceOrgPaths", Text, NO_ORGANIZATIONS).many(),
    when("aws:UserAgent", Text, "the request has a User-Agent header"),
    never("aws:IsMcpServiceAction", Bool, NO_MCP),
    // Our own: what the connection negotiated.
    when("outlast:TlsVersion", Text, "the call came over TLS"),
    when("outlast:KeyExchange", Text, "the call came over TLS with a key exchange, so not in a resumed session of TLS 1.2"),
    when("outlast:ClientCertificateSubject", Text, "the client has presented a certificate"),
    // Our own: what an SSH certificate is to say.
    when("outlast:SshCertificateType", Text, SSH).of(OUTLAST),
    when("outlast:SshCriticalOptions", Text, "SignSshCertificate with critical options; name=value").many().of(OUTLAST),
    when("outlast:SshExtensions", Text, "SignSshCertificate with extensions; name, or name=value").many().of(OUTLAST),
    when("outlast:SshKeyId", Text, SSH).of(OUTLAST),
    when("outlast:SshPrincipals", Text, SSH).many().of(OUTLAST),
    when("outlast:SshValiditySeconds", Number, "SignSshCertificate; from the request to the end of the certificate").of(OUTLAST),
    // KMS.
    kms("kms:BypassPolicyLockoutSafetyCheck", Bool, "CreateKey, PutKeyPolicy, ReplicateKey"),
    always("kms:CallerAccount", Text).of(KMS),
    kms("kms:CustomerMasterKeySpec", Text, "as kms:KeySpec, of which it is the old name"),
    kms("kms:CustomerMasterKeyUsage", Text, "as kms:KeyUsage, of which it is the old name"),
    kms("kms:DataKeyPairSpec", Text, "GenerateDataKeyPair, GenerateDataKeyPairWithoutPlaintext"),
    kms("kms:EncapsulationAlgorithm", Text, "Encapsulate, Decapsulate"),
    kms("kms:EncryptionAlgorithm", Text, "Encrypt, Decrypt, ReEncrypt and the operations that make data keys"),
    kms("kms:EncryptionContext:${EncryptionContextKey}", Text, ENCRYPTION_CONTEXT),
    kms("kms:EncryptionContextKeys", Text, ENCRYPTION_CONTEXT).many(),
    kms("kms:ExpirationModel", Text, "ImportKeyMaterial"),
    never("kms:GrantConstraintSourceArn", Arn, NO_SERVICE_GRANTS).of(KMS),
    kms("kms:GrantConstraintType", Text, "CreateGrant with constraints"),
    kms("kms:GrantIsForAWSResource", Bool, "CreateGrant, ListGrants, RevokeGrant; it is false"),
    kms("kms:GrantOperations", Text, "CreateGrant").many(),
    kms("kms:GranteePrincipal", Text, "CreateGrant"),
    never("kms:GranteeServicePrincipal", Text, NO_SERVICE_GRANTS).of(KMS),
    kms("kms:KeyAgreementAlgorithm", Text, "DeriveSharedSecret"),
    kms("kms:KeyOrigin", Text, OF_KEYS),
    kms("kms:KeySpec", Text, OF_KEYS),
    kms("kms:KeyUsage", Text, OF_KEYS),
    kms("kms:MacAlgorithm", Text, "GenerateMac, VerifyMac"),
    kms("kms:MessageType", Text, "Sign, Verify"),
    kms("kms:MultiRegion", Bool, OF_KEYS),
    kms("kms:MultiRegionKeyType", Text, OF_MULTI_REGION),
    kms("kms:PrimaryRegion", Text, "UpdatePrimaryRegion"),
    kms("kms:ReEncryptOnSameKey", Bool, "ReEncrypt"),
    never("kms:RecipientAttestation:${Measurement}", Text, NO_ENCLAVES).of(KMS),
    kms("kms:ReplicaRegion", Text, "ReplicateKey"),
    kms("kms:RequestAlias", Text, "the key is named by an alias"),
    kms("kms:ResourceAliases", Text, "the key has aliases").many(),
    kms("kms:RetiringPrincipal", Text, "CreateGrant with a retiring principal"),
    never("kms:RetiringServicePrincipal", Text, NO_SERVICE_GRANTS).of(KMS),
    kms("kms:RotationPeriodInDays", Number, "EnableKeyRotation"),
    kms("kms:ScheduleKeyDeletionPendingWindowInDays", Number, "ScheduleKeyDeletion"),
    kms("kms:SigningAlgorithm", Text, "Sign, Verify"),
    kms("kms:TrailingDaysWithoutKeyUsage", Number, "DisableKey, ScheduleKeyDeletion"),
    kms("kms:ValidTo", Date, "ImportKeyMaterial with a time at which the material expires"),
    kms("kms:ViaService", Text, "Secrets Manager asks KMS with the caller's rights"),
    kms("kms:WrappingAlgorithm", Text, "GetParametersForImport"),
    kms("kms:WrappingKeySpec", Text, "GetParametersForImport"),
    // Private CA.
    when("acm-pca:TemplateArn", Arn, "IssueCertificate").of(&["acm-pca"]),
    // Certificate Manager.
    when("acm:CertificateAuthority", Text, "the same, where a private CA issues it").of(ACM),
    when("acm:CertificateKeyPairOrigin", Text, "the same, and ImportCertificate").of(ACM),
    when("acm:CertificateTransparencyLogging", Text, OF_CERTIFICATES).of(ACM),
    when("acm:DomainNames", Text, OF_CERTIFICATES).many().of(ACM),
    when("acm:Export", Text, OF_CERTIFICATES).of(ACM),
    when("acm:KeyAlgorithm", Text, OF_CERTIFICATES).of(ACM),
    when("acm:ValidationMethod", Text, "RequestCertificate, orders by ACME").of(ACM),
    // Secrets Manager.
    secrets("secretsmanager:AddReplicaRegions", Text, "CreateSecret and ReplicateSecretToRegions with replicas").many(),
    secrets("secretsmanager:BlockPublicPolicy", Bool, "PutResourcePolicy"),
    secrets("secretsmanager:Description", Text, "CreateSecret and UpdateSecret with a description"),
    never("secretsmanager:ExternalSecretRotationRoleArn", Arn, NO_PARTNERS).of(SECRETS),
    secrets("secretsmanager:ForceDeleteWithoutRecovery", Bool, "DeleteSecret"),
    secrets("secretsmanager:ForceOverwriteReplicaSecret", Bool, "CreateSecret and ReplicateSecretToRegions with replicas"),
    never("secretsmanager:KmsKeyArn", Arn, "secretsmanager:KmsKeyId and the key's own policy say who may use it").of(SECRETS),
    secrets("secretsmanager:KmsKeyId", Text, "CreateSecret and UpdateSecret with a KMS key"),
    secrets("secretsmanager:ModifyRotationRules", Bool, "RotateSecret"),
    secrets("secretsmanager:Name", Text, "CreateSecret"),
    secrets("secretsmanager:RecoveryWindowInDays", Number, "DeleteSecret without ForceDeleteWithoutRecovery"),
    secrets("secretsmanager:ResourceTag/${TagKey}", Text, "the secret has the tag"),
    secrets("secretsmanager:RotateImmediately", Bool, "RotateSecret"),
    secrets("secretsmanager:RotationLambdaARN", Arn, "RotateSecret with a function"),
    secrets("secretsmanager:SecretId", Arn, "every operation on a secret"),
    secrets("secretsmanager:SecretPrimaryRegion", Text, "the same, where the secret is replicated"),
    never("secretsmanager:Type", Text, NO_PARTNERS).of(SECRETS),
    secrets("secretsmanager:VersionId", Text, "GetSecretValue with a version id"),
    secrets("secretsmanager:VersionStage", Text, "GetSecretValue, UpdateSecretVersionStage"),
    secrets("secretsmanager:resource/AllowRotationLambdaArn", Arn, "every operation on a secret that has a rotation function"),
    // Transfer Family: S3's actions on files, and the variables of session policies.
    when("s3:delimiter", Text, "a user of SFTP lists a directory, or asks whether something exists; it is /").of(S3),
    when("s3:prefix", Text, "the same; the path in the bucket").of(S3),
    always("transfer:HomeBucket", Text).of(S3),
    always("transfer:HomeDirectory", Text).of(S3),
    always("transfer:HomeFolder", Text).of(S3),
    always("transfer:UserName", Text).of(S3),
    // STS, and what IAM has for assuming and passing roles.
    never("sts:AWSServiceName", Text, NO_TOKENS).of(STS),
    never("sts:DurationSeconds", Number, NO_TOKENS).of(STS),
    when("sts:ExternalId", Text, "AssumeRole with an external id").of(STS),
    never("sts:IdentityTokenAudience", Text, NO_TOKENS).many().of(STS),
    never("sts:RequestContext/${ContextKey}", Text, "there are no context providers").of(STS),
    never("sts:RequestContextProviders", Arn, "there are no context providers").many().of(STS),
    never("sts:RoleAuthorizedByIdp", Bool, NO_FEDERATION).of(STS),
    when("sts:RoleSessionName", Text, ASSUME_ROLE).of(STS),
    never("sts:SigningAlgorithm", Text, NO_TOKENS).of(STS),
    when("sts:SourceIdentity", Text, "AssumeRole with a source identity, given or inherited, and where a service asks").of(STS),
    never("sts:TaskPolicyArn", Arn, "there is no AssumeRoot").of(STS),
    when("sts:TransitiveTagKeys", Text, "AssumeRole with transitive tags").many().of(STS),
    never("iam:AssociatedResourceArn", Arn, "it is not known at which resource AWS sets it for ACME").of(&["iam"]),
    when("iam:PassedToService", Text, "CreateAcmeExternalAccountBinding, CreateProfile, UpdateProfile, and Transfer Family's operations with roles, for iam:PassRole").of(&["iam"]),
    never("iam:ResourceTag/${TagKey}", Text, "roles have no tags").of(&["iam", "sts"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_one_row() {
        for row in KEYS {
            let name = row.name.replace("${TagKey}", "team").to_ascii_lowercase();
            assert!(std::ptr::eq(KeyRow::find(&name).unwrap_or(row), row), "{}", row.name);
            let prefix = row.name.split(':').next().unwrap_or_default();
            let known = PREFIXES.contains(&prefix) || matches!(row.set, Set::Never(_));
            assert!(known, "{}", row.name);
        }
        for unknown in ["aws:sourceipaddress", "kms:keyspecs", "aws:resourcetag/", "s3:versionid"] {
            assert!(KeyRow::find(unknown).is_none(), "{unknown}");
        }
        assert!(KeyRow::find("kms:recipientattestation:pcr0").is_some());
    }
}
