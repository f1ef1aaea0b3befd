//! A permit for one resource is refused for every other: every function of the domain that takes one gets a permit
//! for its own action on another resource. (A permit for another action does not compile: see the documentation of
//! `Permit`.)
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::acme_support;
use crate::common;

use acme_support::world::World;
use common::{ACCESS_KEY, ACCOUNT, Fixture, NOW, REGION, text};
use outlast_crypto::Secret;
use outlast_crypto::keys::KeySpec;
use outlast_crypto::signatures::{Message, SignatureAlgorithm};
use outlast_crypto::wrap::WrappingAlgorithm;
use outlast_domain::acm::{self, certificate, import, revoke, search, tags};
use outlast_domain::acme::{self, Idempotency};
use outlast_domain::arn::{Arn, Scope};
use outlast_domain::ca::{self, permission, report};
use outlast_domain::identity::action::Action;
use outlast_domain::identity::session::{self, MayAssume, NewSession};
use outlast_domain::identity::{
    self, Caller, Denied, Permit, PolicyCache, Role, action, authorize,
};
use outlast_domain::keyring::KeyRing;
use outlast_domain::kms::{self, Access, EncryptionContext};
use outlast_domain::policy::ConditionKeys;
use outlast_domain::work::Work;
use outlast_pki::templates::Template;
use serde_json::json;

/// The permit must be the only reason of the failure.
#[track_caller]
fn misused<T, E: ToString>(action: &str, result: Result<T, E>) {
    let error = result.err().unwrap_or_else(|| panic!("{action}: it was done")).to_string();
    assert_eq!(error, format!("a permit for {action} was used on another resource"));
}

fn scope() -> Scope {
    Scope { account: ACCOUNT.into(), region: REGION.into() }
}

fn elsewhere() -> Scope {
    Scope { region: "us-east-1".into(), ..scope() }
}

struct Admin {
    caller: Caller,
    conditions: ConditionKeys,
    policies: PolicyCache,
}

impl Admin {
    fn new(fixture: &Fixture) -> Self {
        let policies = PolicyCache::default();
        let mut work = fixture.service.work(NOW * 1000);
        let found = identity::find_credential(&mut work, &policies, ACCESS_KEY).unwrap().unwrap();
        Self { caller: found.caller, conditions: ConditionKeys::new(), policies }
    }

    fn access(&self) -> Access<'_> {
        Access {
            caller: &self.caller,
            conditions: &self.conditions,
            policies: &self.policies,
            tokens: &[],
            context: None,
        }
    }

    fn on<A: Action>(&self, action: A, resource: &str) -> Permit<A> {
        authorize(&self.caller, &self.conditions, action, resource).unwrap()
    }
}

/// Runs it, and checks that it changed nothing.
fn without_change(fixture: &Fixture, run: impl FnOnce(&mut Work<'_>)) {
    let before = fixture.store_without_uses();
    fixture.directory(run);
    assert!(fixture.store_without_uses() == before, "something was written");
}

#[test]
fn a_permit_for_one_key_opens_no_other() {
    let fixture = Fixture::new();
    let make = || {
        let made = fixture.kms("CreateKey", json!({ "MultiRegion": true })).unwrap();
        text(&made["KeyMetadata"]["Arn"]).to_owned()
    };
    let (key, other) = (make(), make());
    fixture.kms("CreateAlias", json!({ "AliasName": "alias/a", "TargetKeyId": key })).unwrap();
    fixture.kms("ReplicateKey", json!({ "KeyId": key, "ReplicaRegion": "eu-west-2" })).unwrap();
    let grantee = format!("arn:aws:iam::{ACCOUNT}:user/admin");
    let grant = json!({ "KeyId": key, "GranteePrincipal": grantee, "Operations": ["Decrypt"] });
    let grant = fixture.kms("CreateGrant", grant).unwrap();
    let (admin, ring, scope) = (Admin::new(&fixture), KeyRing::default(), scope());
    without_change(&fixture, |work| {
        let access = admin.access();
        let key = kms::find(work, &scope, &key).unwrap();
        let other = kms::find(work, &scope, &other).unwrap();
        let grant = kms::find_grant(work, &key, text(&grant["GrantId"])).unwrap();
        let context = EncryptionContext::new();
        let plain =
            kms::PlaintextRef { algorithm: "SYMMETRIC_DEFAULT", context: &context, bytes: b"x" };
        let sealed =
            kms::CiphertextRef { algorithm: "SYMMETRIC_DEFAULT", context: &context, blob: b"x" };
        let spec = KeySpec::by_name("RSA_2048").unwrap();
        let wrapping = WrappingAlgorithm::by_name("RSAES_OAEP_SHA_256").unwrap();
        macro_rules! refused {
            ($($action:ident, $permit:ident => $call:expr;)*) => {$(
                let $permit =
                    &kms::authorize(work, access, action::kms::$action, &other).unwrap();
                misused(action::kms::$action::NAME, $call);
            )*};
        }
        refused! {
            GetPublicKey, p => kms::public_key(work, &ring, &key, p);
            Sign, p => kms::sign(work, &ring, &key, "ECDSA_SHA_256", Message::Raw(b"x"), p);
            Verify, p => kms::verify(work, &ring, &key, "ECDSA_SHA_256", Message::Raw(b"x"), b"y", p);
            Encrypt, p => kms::encrypt(work, &ring, &key, "Encrypt", plain, p);
            ReEncryptTo, p => kms::encrypt(work, &ring, &key, "ReEncrypt", plain, p);
            GenerateDataKey, p => kms::encrypt(work, &ring, &key, "GenerateDataKey", plain, p);
            Decrypt, p => kms::decrypt(work, &ring, &key, "Decrypt", sealed, p);
            ReEncryptFrom, p => kms::decrypt(work, &ring, &key, "ReEncrypt", sealed, p);
            GenerateMac, p => kms::mac(work, &ring, &key, "HMAC_SHA_256", b"x", p);
            VerifyMac, p => kms::verify_mac(work, &ring, &key, "HMAC_SHA_256", b"x", b"y", p);
            DeriveSharedSecret, p => kms::derive_shared_secret(work, &ring, &key, "ECDH", b"x", p);
            Encapsulate, p => kms::encapsulate(work, &ring, &key, "ML_KEM", p);
            Decapsulate, p => kms::decapsulate(work, &ring, &key, "ML_KEM", b"x", p);
            EnableKey, p => kms::enable(work, key.clone(), p);
            DisableKey, p => kms::disable(work, key.clone(), p);
            ScheduleKeyDeletion, p => kms::schedule_deletion(work, key.clone(), 7, p);
            CancelKeyDeletion, p => kms::cancel_deletion(work, key.clone(), p);
            UpdateKeyDescription, p => kms::describe(work, key.clone(), "x".into(), p);
            TagResource, p => kms::add_tags(work, key.clone(), [("a".into(), "b".into())].into(), p);
            UntagResource, p => kms::remove_tags(work, key.clone(), &[], p);
            PutKeyPolicy, p => kms::put_policy(work, key.clone(), String::new(), p);
            GetKeyLastUsage, p => kms::last_use(work, &key, p);
            EnableKeyRotation, p => kms::enable_rotation(work, key.clone(), 365, p);
            DisableKeyRotation, p => kms::disable_rotation(work, key.clone(), p);
            GetKeyRotationStatus, p => kms::rotation_status(work, &key, p);
            RotateKeyOnDemand, p => kms::rotate_on_demand(work, key.clone(), p);
            ListKeyRotations, p => kms::rotations(work, &key, kms::Listed::All, None, 10, p);
            ListKeyRotations, p => kms::awaits_import(work, &key, &key.materials()[0], p);
            GetParametersForImport, p => kms::import_parameters(work, &key, wrapping, spec, p);
            ImportKeyMaterial, p => kms::import_material(work, key.clone(), kms::NewMaterial {
                token: b"",
                wrapped: b"",
                expires_ms: None,
                is_new: None,
                description: None,
                material_id: None,
            }, p);
            DeleteImportedKeyMaterial, p => kms::delete_material(work, &ring, key.clone(), None, p);
            ReplicateKey, p => kms::replicate(work, &key, kms::NewReplica {
                region: "us-east-1".into(),
                description: String::new(),
                tags: Default::default(),
                policy: None,
            }, p);
            UpdatePrimaryRegion, p => kms::update_primary(work, &key, "eu-west-2", p, None);
            ListGrants, p => kms::grants(work, &key, None, 10, p);
            RevokeGrant, p => kms::delete_grant(work, key.scope(), &grant, p);
            CreateGrant, p => kms::create_grant(work, access, &key, kms::NewGrant {
                name: None,
                grantee: Some(grantee.clone()),
                grantee_service: None,
                retiring: None,
                retiring_service: None,
                operations: ["Decrypt".to_owned()].into(),
                constraints: Default::default(),
            }, p);
        }
        // Where several permits are needed, each is checked.
        let alias = scope.arn("kms", "alias/a");
        let on_alias = &admin.on(action::kms::UpdateAlias, &alias);
        let on_other_alias = &admin.on(action::kms::UpdateAlias, &scope.arn("kms", "alias/b"));
        let mut at = |key| kms::authorize(work, access, action::kms::UpdateAlias, key).unwrap();
        let (on_key, on_other) = (&at(&key), &at(&other));
        for (alias, current, target) in [
            (on_other_alias, on_key, on_other),
            (on_alias, on_other, on_other),
            (on_alias, on_key, on_key),
        ] {
            let may = kms::MayUpdate { alias, current, key: target };
            let done = kms::update_alias(work, "alias/a", &other, &key, &may);
            misused("kms:UpdateAlias", done);
        }
        let on_alias = &admin.on(action::kms::DeleteAlias, &alias);
        let on_other_alias = &admin.on(action::kms::DeleteAlias, &scope.arn("kms", "alias/b"));
        let mut at = |key| kms::authorize(work, access, action::kms::DeleteAlias, key).unwrap();
        let (on_key, on_other) = (&at(&key), &at(&other));
        for may in [(on_other_alias, on_key), (on_alias, on_other)] {
            misused("kms:DeleteAlias", kms::delete_alias(work, &scope, "alias/a", may));
        }
        let on_alias = &admin.on(action::kms::CreateAlias, &scope.arn("kms", "alias/c"));
        let on_other_alias = &admin.on(action::kms::CreateAlias, &alias);
        let mut at = |key| kms::authorize(work, access, action::kms::CreateAlias, key).unwrap();
        let (on_key, on_other) = (&at(&key), &at(&other));
        for may in [(on_other_alias, on_key), (on_alias, on_other)] {
            misused("kms:CreateAlias", kms::create_alias(work, &scope, "alias/c", &key, may));
        }
        // The replica that becomes the primary key has a policy of its own.
        let update = action::kms::UpdatePrimaryRegion;
        let primary = kms::authorize(work, access, update, &key).unwrap();
        for at_replica in [None, Some(&primary)] {
            let done = kms::update_primary(work, &key, "eu-west-2", &primary, at_replica);
            misused(action::kms::UpdatePrimaryRegion::NAME, done);
        }
        // An action without a resource of its own gets permits for another Region.
        let there = elsewhere();
        let p = &admin.on(action::kms::ListKeys, &there.arn("kms", "key/*"));
        misused("kms:ListKeys", kms::keys(work, &scope, None, 10, p));
        let p = &admin.on(action::kms::CreateKey, &there.arn("kms", "key/*"));
        let new = kms::NewKey {
            spec,
            usage: spec.usages[0],
            description: String::new(),
            tags: Default::default(),
            origin: kms::Origin::Own,
            multi_region: false,
            policy: None,
        };
        misused("kms:CreateKey", kms::create(work, &scope, new, p));
        let p = &admin.on(action::kms::ListAliases, &there.arn("kms", "alias/*"));
        misused("kms:ListAliases", kms::aliases(work, &scope, None, None, 10, p));
        let p = &admin.on(action::kms::ListRetirableGrants, &grantee);
        let done = kms::retirable_grants(work, &scope, "another", None, 10, p);
        misused("kms:ListRetirableGrants", done);
    });
}

#[test]
fn keys_and_authorities_need_their_policy_to_decide() {
    let fixture = Fixture::new();
    let admin = Admin::new(&fixture);
    for resource in ["kms", "acm-pca"] {
        let kind = if resource == "kms" { "key" } else { "certificate-authority" };
        let arn = scope().arn(resource, &format!("{kind}/x"));
        let decided: Result<Permit<action::kms::Sign>, Denied> =
            authorize(&admin.caller, &admin.conditions, action::kms::Sign, &arn);
        assert!(decided.unwrap_err().to_string().contains("its own policy was not evaluated"));
    }
}

#[test]
fn a_permit_for_one_authority_opens_no_other() {
    let world = World::new();
    let fixture = &world.fixture;
    let other = acme_support::world::root(fixture, "EC_prime256v1");
    let (admin, ring, scope) = (Admin::new(fixture), KeyRing::default(), scope());
    without_change(fixture, |work| {
        let access = admin.access();
        let authority = ca::find(work, &scope, &world.authority).unwrap();
        let other = ca::find(work, &scope, &other).unwrap();
        let acm = permission::CERTIFICATE_MANAGER;
        let found = |work: &mut Work<'_>| ca::find(work, &scope, &world.authority).unwrap();
        let until = ca::Validity { value: 1, kind: ca::ValidityType::Days };
        let new = || ca::NewCertificate {
            request: b"",
            algorithm: SignatureAlgorithm::by_pca_name("SHA256WITHECDSA").unwrap(),
            template: Template::default_row(),
            passthrough: ca::Passthrough::default(),
            named: None,
            validity: until,
            not_before: None,
            token: None,
            request_digest: String::new(),
        };
        let update = ca::Update { status: None, revocation: None };
        let certificate = format!("{}/certificate/00", authority.arn());
        let no_one = ca::Requester::default();
        macro_rules! refused {
            ($($action:ident, $permit:ident => $call:expr;)*) => {$(
                let $permit =
                    &ca::authorize(work, access, action::acm_pca::$action, &other).unwrap();
                misused(action::acm_pca::$action::NAME, $call);
            )*};
        }
        refused! {
            IssueCertificate, p => ca::issue(work, &ring, &authority, new(), p);
            IssueCertificate, p => ca::issue_for(work, &ring, &authority, new(), no_one, p);
            IssueCertificate, p =>
                ca::issue_pair(work, &ring, (&authority, &other), new(), b"", no_one, (p, p));
            IssueCertificate, p =>
                ca::issue_pair(work, &ring, (&other, &authority), new(), b"", no_one, (p, p));
            GetCertificate, p => ca::certificate(work, &authority, &certificate, p);
            RevokeCertificate, p => {
                let at = ca::RevokeAt { authority: p, partner: None };
                ca::revoke(work, &authority, "00", "UNSPECIFIED", at)
            };
            CreatePermission, p =>
                permission::create(work, &authority, acm, ACCOUNT, Default::default(), p);
            DeletePermission, p => permission::delete(work, &authority, acm, ACCOUNT, p);
            ListPermissions, p => permission::list(work, &authority, None, 10, p);
            PutPolicy, p => ca::policy::put(work, access, &authority, "{}", p);
            GetPolicy, p => ca::policy::text(work, &authority, p);
            DeletePolicy, p => ca::policy::delete(work, &authority, p);
            CreateCertificateAuthorityAuditReport, p =>
                report::create(work, &authority, "bucket".into(), report::Format::Json, p);
            DescribeCertificateAuthorityAuditReport, p =>
                report::find(work, &authority, "00000000-0000-4000-8000-000000000000", p);
            DeleteCertificateAuthority, p => { let it = found(work); ca::delete(work, it, 7, p) };
            RestoreCertificateAuthority, p => { let it = found(work); ca::restore(work, it, p) };
            TagCertificateAuthority, p => {
                let it = found(work);
                ca::add_tags(work, it, [("a".into(), "b".into())].into(), p)
            };
            UntagCertificateAuthority, p => {
                let it = found(work);
                ca::remove_tags(work, it, &[], p)
            };
            ImportCertificateAuthorityCertificate, p => {
                let it = found(work);
                ca::import_certificate(work, &ring, it, b"", None, p)
            };
            UpdateCertificateAuthority, p => {
                let it = found(work);
                ca::set_status(work, it, update, p)
            };
        }
        let all = elsewhere().arn("acm-pca", "certificate-authority/*");
        let p = &admin.on(action::acm_pca::ListCertificateAuthorities, &all);
        misused("acm-pca:ListCertificateAuthorities", ca::authorities(work, &scope, None, 10, p));
        let listed = ca::policy::shared_with(work, &scope, None, 10, p);
        misused("acm-pca:ListCertificateAuthorities", listed);
        let p = &admin.on(action::acm_pca::CreateCertificateAuthority, &all);
        let new = ca::NewAuthority {
            kind: ca::Kind::Root,
            spec: KeySpec::by_name("ECC_NIST_P256").unwrap(),
            algorithm: SignatureAlgorithm::by_pca_name("SHA256WITHECDSA").unwrap(),
            subject: ca::Subject::default(),
            csr_extensions: Vec::new(),
            shown_csr_extensions: None,
            usage_mode: "GENERAL_PURPOSE".into(),
            key_storage: String::new(),
            revocation: ca::Revocation::default(),
            tags: Default::default(),
            token: None,
            request_digest: String::new(),
        };
        misused("acm-pca:CreateCertificateAuthority", ca::create(work, &scope, new, p));
    });
}

#[test]
fn a_permit_for_one_certificate_opens_no_other() {
    let world = World::new();
    let fixture = &world.fixture;
    let requested = |name: &str| {
        let made = world.acm(
            "RequestCertificate",
            json!({ "DomainName": name, "CertificateAuthorityArn": world.authority }),
        );
        text(&made["CertificateArn"]).to_owned()
    };
    let (arn, other) = (requested("a.example"), requested("b.example"));
    let (admin, ring, scope) = (Admin::new(fixture), KeyRing::default(), scope());
    without_change(fixture, |work| {
        let access = admin.access();
        let found = || certificate::find(&mut fixture.service.work(NOW * 1000), &scope, &arn);
        let found = || found().unwrap();
        let authority = ca::find(work, &scope, &world.authority).unwrap();
        let at_authority =
            ca::authorize(work, access, action::acm_pca::RevokeCertificate, &authority).unwrap();
        let may_issue =
            ca::authorize(work, access, action::acm_pca::IssueCertificate, &authority).unwrap();
        let at = ca::RevokeAt { authority: &at_authority, partner: None };
        let passphrase = Secret::new(b"passphrase".to_vec());
        let import = |replaces| import::Import {
            certificate: b"",
            private_key: b"",
            chain: None,
            replaces,
            tags: Default::default(),
        };
        let all = scope.arn("acm", "certificate/*");
        macro_rules! refused {
            ($($action:ident, $resource:expr, $permit:ident => $call:expr;)*) => {$(
                let $permit = &admin.on(action::acm::$action, $resource);
                misused(action::acm::$action::NAME, $call);
            )*};
        }
        refused! {
            GetCertificate, &other, p => found().text(work, p);
            DescribeCertificate, &other, p => found().text(work, p);
            SearchCertificates, &other, p => found().text_if_there(work, p);
            DeleteCertificate, &other, p => certificate::delete(work, &found(), p);
            UpdateCertificateOptions, &other, p =>
                certificate::set_options(work, found(), certificate::Options::default(), p);
            RevokeCertificate, &other, p =>
                revoke::revoke(work, found(), &authority, "UNSPECIFIED", p, at);
            RevokeCertificate, &other, p =>
                acm::revoke_for_acme(work, found(), &authority, "UNSPECIFIED", p, at);
            ExportCertificate, &other, p => acm::export::export(work, found(), &passphrase, p);
            RenewCertificate, &other, p => acm::renew::renew(work, &ring, found(), p);
            ImportCertificate, &other, p => import::import(work, &scope, import(Some(found())), p);
            ImportCertificate, &all, p => import::import(work, &scope, import(Some(found())), p);
            ImportCertificate, &other, p => import::import(work, &scope, import(None), p);
            TagResource, &other, p => tags::add(work, &scope, &arn, Default::default(), p);
            AddTagsToCertificate, &other, p => tags::add(work, &scope, &arn, Default::default(), p);
            UntagResource, &other, p => tags::remove(work, &scope, &arn, &[], p);
            RemoveTagsFromCertificate, &other, p => tags::remove(work, &scope, &arn, &[], p);
            GetAccountConfiguration, &other, p => acm::account::configuration(work, &scope, p);
            PutAccountConfiguration, &other, p =>
                acm::account::configure(work, &scope, None, "token", p);
            ListCertificates, &other, p => search::search(work, &scope, &search::Search {
                matches: &|_| true,
                key: &|_| search::SortKey::None,
                descending: false,
                after: None,
                limit: 10,
            }, p);
            RequestCertificate, &other, p => {
                let new = acm::request::NewCertificate {
                    issuers: acm::Issuers {
                        authority: (&authority, &may_issue),
                        partner: None,
                        template: acm::private_template(),
                    },
                    domain: "c.example".into(),
                    names: Vec::new(),
                    key_algorithm: None,
                    exportable: true,
                    transparency: true,
                    tags: Default::default(),
                    token: None,
                    request_digest: String::new(),
                };
                acm::request::request(work, &ring, &scope, new, p)
            };
        }
    });
}

#[test]
fn a_permit_for_one_acme_resource_opens_no_other() {
    let world = World::new();
    let fixture = &world.fixture;
    let other = world.another("CHALLENGE", json!({}));
    let of_endpoint = json!({ "AcmeEndpointArn": world.endpoint, "DomainName": "a.example",
        "PrevalidationOptions": { "DnsPrevalidation": { "DomainScope": { "ExactDomain": "ENABLED" } } } });
    let validation = world.acm("CreateAcmeDomainValidation", of_endpoint);
    let validation = text(&validation["AcmeDomainValidationArn"]).to_owned();
    let (binding, _) = world.binding(json!({}));
    let (admin, scope) = (Admin::new(fixture), scope());
    without_change(fixture, |work| {
        let access = admin.access();
        let endpoint = acme::find_endpoint(work, &scope, &world.endpoint).unwrap();
        let binding = acme::find_binding(work, &scope, &binding).unwrap();
        let validation = || {
            let mut work = fixture.service.work(NOW * 1000);
            acme::find_validation(&mut work, &scope, &validation).unwrap()
        };
        let token = || Idempotency { token: None, request: String::new() };
        let exact = acme::DomainScope { exact: true, subdomains: false, wildcards: false };
        let authority = ca::find(work, &scope, &world.authority).unwrap();
        let may_issue =
            ca::authorize(work, access, action::acm_pca::IssueCertificate, &authority).unwrap();
        let new_endpoint = |arn: String| acme::NewEndpoint {
            authorization: endpoint.authorization(),
            contact: endpoint.contact(),
            authority: acme::Authority { arn, by_tag: false, key_algorithms: Vec::new() },
            tags: Default::default(),
            certificate_tags: Default::default(),
            token: token(),
        };
        let role = Arn::parse(&world.role).unwrap();
        let new_binding = || acme::NewBinding {
            role_arn: &role,
            expires_ms: None,
            tags: Default::default(),
            token: token(),
            policies: &admin.policies,
        };
        let may_pass = admin.on(action::iam::PassRole, &world.role);
        let other_binding = format!("{other}/acme-external-account-binding/x");
        let other_validation = format!("{other}/acme-domain-validation/x");
        macro_rules! refused {
            ($($action:ident, $resource:expr, $permit:ident => $call:expr;)*) => {$(
                let $permit = &admin.on(action::acm::$action, $resource);
                misused(action::acm::$action::NAME, $call);
            )*};
        }
        refused! {
            CreateAcmeEndpoint, &other, p =>
                acme::create_endpoint(work, &scope, new_endpoint(authority.arn()), p, &may_issue);
            ListAcmeEndpoints, &other, p => acme::endpoints(work, &scope, None, 10, p);
            UpdateAcmeEndpoint, &other, p =>
                acme::update_endpoint(work, endpoint.clone(), Default::default(), p, None);
            DeleteAcmeEndpoint, &other, p => acme::delete_endpoint(work, &endpoint, p);
            CreateAcmeExternalAccountBinding, &other, p =>
                acme::create_binding(work, &endpoint, new_binding(), p, &may_pass);
            ListAcmeExternalAccountBindings, &other, p =>
                acme::bindings(work, &endpoint, None, 10, p);
            GetAcmeExternalAccountBindingCredentials, &other_binding, p =>
                acme::credentials(work, &binding, p);
            RevokeAcmeExternalAccountBinding, &other_binding, p =>
                acme::revoke_binding(work, binding.clone(), p);
            DeleteAcmeExternalAccountBinding, &other_binding, p =>
                acme::delete_binding(work, &binding, p);
            CreateAcmeDomainValidation, &other, p => acme::create_validation(
                work, &endpoint, "b.example", exact, Default::default(), &token(), p);
            ListAcmeDomainValidations, &other, p => acme::validations(work, &endpoint, None, 10, p);
            UpdateAcmeDomainValidation, &other_validation, p =>
                acme::update_validation(work, validation(), None, p);
            DeleteAcmeDomainValidation, &other_validation, p =>
                acme::delete_validation(work, &validation(), p);
            ListAcmeAccounts, &other, p => acme::accounts(work, &endpoint, None, 10, p);
        }
        // Permission to issue must be for this CA, and permission to pass for this role.
        let create =
            &admin.on(action::acm::CreateAcmeEndpoint, &scope.arn("acm", "acme-endpoint/*"));
        let elsewhere = new_endpoint(authority.arn() + "0");
        let made = acme::create_endpoint(work, &scope, elsewhere, create, &may_issue);
        misused("acm-pca:IssueCertificate", made);
        let update = &admin.on(action::acm::UpdateAcmeEndpoint, &endpoint.arn());
        for may_issue in [None, Some(&may_issue)] {
            let authority = new_endpoint(authority.arn() + "0").authority;
            let change = acme::UpdateEndpoint { authority: Some(authority), ..Default::default() };
            let made = acme::update_endpoint(work, endpoint.clone(), change, update, may_issue);
            misused("acm-pca:IssueCertificate", made);
        }
        let create = &admin.on(action::acm::CreateAcmeExternalAccountBinding, &endpoint.arn());
        let may_pass = admin.on(action::iam::PassRole, &format!("{}0", world.role));
        let made = acme::create_binding(work, &endpoint, new_binding(), create, &may_pass);
        misused("iam:PassRole", made);
    });
}

#[test]
fn a_permit_for_one_role_opens_no_other() {
    let fixture = Fixture::new();
    let trust = common::policy(
        json!([{ "Effect": "Allow", "Principal": { "AWS": ACCOUNT }, "Action": "sts:*" }]),
    );
    let make = |name: &str| {
        fixture.directory(|work| {
            identity::create_role(work, ACCOUNT, name, &trust.to_string(), 3600).unwrap()
        })
    };
    let (role, other) = (make("one"), make("other"));
    let admin = Admin::new(&fixture);
    fn may<A: Action>(admin: &Admin, action: A, role: &Role) -> Permit<A> {
        let (caller, conditions) = (&admin.caller, &admin.conditions);
        session::authorize_assume(caller, conditions, &admin.policies, action, role).unwrap()
    }
    let session = || NewSession {
        name: "session".into(),
        seconds: 900,
        policy: None,
        tags: [("a".to_owned(), "b".to_owned())].into(),
        transitive: Default::default(),
        started_by: None,
        source_identity: Some("somebody".into()),
        managed: Vec::new(),
        certificate: None,
    };
    let all = |wrong: &str| MayAssume {
        role: may(&admin, action::sts::AssumeRole, if wrong == "role" { &other } else { &role }),
        tags: Some(may(
            &admin,
            action::sts::TagSession,
            if wrong == "tags" { &other } else { &role },
        )),
        source_identity: Some(may(
            &admin,
            action::sts::SetSourceIdentity,
            if wrong == "source" { &other } else { &role },
        )),
    };
    let mut work = fixture.service.work(NOW * 1000);
    for (wrong, action) in [
        ("role", "sts:AssumeRole"),
        ("tags", "sts:TagSession"),
        ("source", "sts:SetSourceIdentity"),
    ] {
        misused(action, session::assume(&mut work, &role, session(), &all(wrong)));
    }
    let without_tags = MayAssume { tags: None, ..all("") };
    let made = session::assume(&mut work, &role, session(), &without_tags);
    misused("sts:TagSession", made);
    let without_source = MayAssume { source_identity: None, ..all("") };
    let made = session::assume(&mut work, &role, session(), &without_source);
    misused("sts:SetSourceIdentity", made);
    assert!(session::assume(&mut work, &role, session(), &all("")).is_ok());
}

#[test]
fn a_permit_for_one_secret_opens_no_other() {
    use outlast_domain::secrets::{
        self, Description, Filter, NewReplica, NewSecret, Order, Selector, Update,
    };
    let fixture = Fixture::new();
    fixture.secret("one", "a value");
    fixture.secret("two", "another value");
    let (admin, scope) = (Admin::new(&fixture), scope());
    without_change(&fixture, |work| {
        let access = admin.access();
        let found = |work: &mut Work<'_>, name: &str| {
            let named = secrets::Named::parse(&scope, name).unwrap();
            secrets::find(work, &named).unwrap().unwrap()
        };
        let mut one = found(work, "one");
        let other = found(work, "two");
        let selected = secrets::select(&one, Selector::default()).unwrap();
        let replica = NewReplica { region: "us-east-1".into(), kms_key: None };
        let policy = r#"{"Version":"2012-10-17","Statement":[]}"#;
        macro_rules! refused {
            ($($action:ident, $permit:ident => $call:expr;)*) => {$({
                let action = action::secretsmanager::$action;
                let $permit = &secrets::authorize(work, access, action, &other).unwrap();
                misused(concat!("secretsmanager:", stringify!($action)), $call);
            })*};
        }
        let update = || Update { description: Description::New("x".into()), key: None };
        let start = || secrets::rotation::Start {
            function: Some("f".into()),
            rules: None,
            version_id: "v".repeat(32),
            immediately: true,
        };
        refused! {
            GetSecretValue, may => secrets::read(work, &mut one, &selected, may);
            UpdateSecret, may => secrets::update(work, &mut one, update(), may);
            UpdateSecretVersionStage, may => secrets::move_stage(work, &mut one, "x", (None, Some(&selected.id)), may);
            TagResource, may => secrets::add_tags(work, &mut one, Default::default(), may);
            UntagResource, may => secrets::remove_tags(work, &mut one, &[], may);
            DeleteSecret, may => secrets::delete(work, &mut one, 30, may);
            DeleteSecret, may => secrets::force_delete(work, &one, may).map(|_| ());
            RestoreSecret, may => secrets::restore(work, &mut one, may);
            ListSecretVersionIds, may => secrets::versions(&one, true, None, 1, may);
            PutResourcePolicy, may => secrets::policy::put(work, access, &mut one, policy, false, may);
            GetResourcePolicy, may => secrets::policy::text(work, &one, may);
            ListResourcePolicies, may => secrets::policy::exists(work, &one, may);
            DeleteResourcePolicy, may => secrets::policy::delete(work, &mut one, may);
            ReplicateSecretToRegions, may => secrets::add_replicas(work, &mut one, &[replica], may);
            TagResource, may => secrets::sync(work, &mut one, "us-east-1", Ok(Vec::new()), may);
            RemoveRegionsFromReplication, may => secrets::remove_replicas(work, &mut one, &[], may);
            StopReplicationToReplica, may => secrets::promote(work, &mut one, may);
            RotateSecret, may => secrets::rotation::start(work, &mut one, start(), may);
            CancelRotateSecret, may => secrets::rotation::cancel(work, &mut one, may);
        }
        let (new, another) =
            (NewSecret::named("three".into()).unwrap(), NewSecret::named("four".into()).unwrap());
        let action = action::secretsmanager::CreateSecret;
        let may = secrets::authorize_new(access, &scope, action, &another).unwrap();
        misused("secretsmanager:CreateSecret", secrets::create(work, &scope, new, &may));
        let may = admin.on(
            action::secretsmanager::ListSecrets,
            &elsewhere().arn("secretsmanager", "secret:*"),
        );
        let none: &[Filter] = &[];
        let listed = secrets::secrets(work, &scope, none, Order::default(), (None, 1), false, &may);
        misused("secretsmanager:ListSecrets", listed);
    });
}
