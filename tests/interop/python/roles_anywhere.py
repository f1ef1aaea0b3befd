"""Gets sessions by certificates with AWS's own Python client, and uses them with boto3.

usage: roles_anywhere.py ROLE_ARN

Reads AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE and AWS_PROFILE only: the profile holds
endpoint_url, region and ca_bundle. The role trusts the service if the certificate has the
common name "workload". The server ends running sessions on revocation.

AWS's client signs with RSA and EC keys. For ML-DSA this file replaces the name of its
algorithm and its signature, as AWS documents them, by pyca/cryptography.
"""

import contextlib
import datetime
import os
import sys
import time
import traceback
from urllib.parse import urlsplit

KEEP = {"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_PROFILE"}
for name in [n for n in os.environ if n.startswith("AWS_") and n not in KEEP]:
    del os.environ[name]

import boto3
from botocore.exceptions import ClientError
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, mldsa, rsa
from cryptography.x509.oid import NameOID
from iam_rolesanywhere_session import (
    CredentialsRetrievalError,
    IAMRolesAnywhereSession,
    IAMRolesAnywhereSigner,
)

ROLE = sys.argv[1]
PEM = serialization.Encoding.PEM
NOW = datetime.datetime.now(datetime.timezone.utc)
DAY = datetime.timedelta(days=1)
passed = failed = 0


@contextlib.contextmanager
def step(name):
    global passed, failed
    try:
        yield
    except Exception:
        failed += 1
        print(f"FAILED {name}", flush=True)
        traceback.print_exc()
    else:
        passed += 1
        print(f"ok {name}", flush=True)


@contextlib.contextmanager
def refused(text):
    try:
        yield
    except CredentialsRetrievalError as error:
        assert error.status_code == 403, error
        assert text in error.message, error.message
        return
    raise AssertionError("a session was given")


boto = boto3.Session()
CA_BUNDLE = boto._session.get_config_variable("ca_bundle")
anywhere = boto.client("rolesanywhere")
pca = boto.client("acm-pca")
HOST = urlsplit(anywhere.meta.endpoint_url).netloc
REGION = boto.region_name


def digest(key):
    is_mldsa = isinstance(key, (mldsa.MLDSA44PrivateKey, mldsa.MLDSA65PrivateKey, mldsa.MLDSA87PrivateKey))
    return None if is_mldsa else hashes.SHA256()


def subject(common_name):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def certificate(key, name, issuer, issuer_key, is_ca):
    usage = dict.fromkeys(
        ["content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
         "encipher_only", "decipher_only"], False)
    usage = x509.KeyUsage(digital_signature=not is_ca, key_cert_sign=is_ca, crl_sign=is_ca, **usage)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject(name))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - DAY)
        .not_valid_after(NOW + 30 * DAY)
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    return builder.sign(issuer_key, digest(issuer_key))


class MlDsaSigner(IAMRolesAnywhereSigner):
    """AWS's signer with the algorithm that AWS documents for ML-DSA: no digest before the signature."""

    algorithm = "AWS4-X509-MLDSA"

    def signature(self, string_to_sign, _=None):
        return self.private_key.sign(string_to_sign.encode()).hex()


def private(key):
    return key.private_bytes(
        PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def session(anchor, profile, key, leaf, chain=()):
    certificate = leaf.public_bytes(PEM)
    bundle = b"".join(one.public_bytes(PEM) for one in chain) or None
    is_mldsa = digest(key) is None
    accepted = ec.generate_private_key(ec.SECP256R1()) if is_mldsa else key
    made = IAMRolesAnywhereSession(
        profile_arn=profile, role_arn=ROLE, trust_anchor_arn=anchor, certificate=certificate,
        private_key=private(accepted), certificate_chain=bundle, region=REGION, endpoint=HOST,
        session_duration=900, verify=CA_BUNDLE)
    if is_mldsa:
        signer = MlDsaSigner(certificate, private(accepted), bundle, region=REGION)
        signer.private_key = key
        made._request_signer = signer
    return made.get_session()


def client(of, service):
    return of.client(service, endpoint_url=anywhere.meta.endpoint_url)


def works(of):
    identity = client(of, "sts").get_caller_identity()
    role = ROLE.rsplit("/", 1)[1]
    assert f":assumed-role/{role}/" in identity["Arn"], identity
    client(of, "kms").list_keys()
    return identity["Arn"]


def bundle_anchor(name, root):
    source = {"x509CertificateData": root.public_bytes(PEM).decode()}
    return anywhere.create_trust_anchor(
        name=name, enabled=True, source={"sourceType": "CERTIFICATE_BUNDLE", "sourceData": source},
    )["trustAnchor"]["trustAnchorArn"]


PROFILE = anywhere.create_profile(name="workloads", enabled=True, roleArns=[ROLE])["profile"]["profileArn"]

root_key = ec.generate_private_key(ec.SECP384R1())
root = certificate(root_key, "Root", subject("Root"), root_key, True)
ANCHOR = bundle_anchor("ecdsa", root)
LEAVES = {
    "EC P-256": ec.generate_private_key(ec.SECP256R1()),
    "EC P-384": ec.generate_private_key(ec.SECP384R1()),
    "RSA 2048": rsa.generate_private_key(65537, 2048),
    "ML-DSA-44": mldsa.MLDSA44PrivateKey.generate(),
    "ML-DSA-65": mldsa.MLDSA65PrivateKey.generate(),
    "ML-DSA-87": mldsa.MLDSA87PrivateKey.generate(),
}
for name, key in LEAVES.items():
    with step(f"session by {name}"):
        leaf = certificate(key, "workload", root.subject, root_key, False)
        arn = works(session(ANCHOR, PROFILE, key, leaf))
        assert int(arn.rsplit("/", 1)[1], 16) == leaf.serial_number, arn

with step("session by ML-DSA-65 all the way down"):
    pq_root_key = mldsa.MLDSA65PrivateKey.generate()
    pq_root = certificate(pq_root_key, "PQ", subject("PQ"), pq_root_key, True)
    middle_key = mldsa.MLDSA65PrivateKey.generate()
    middle = certificate(middle_key, "Middle", pq_root.subject, pq_root_key, True)
    key = mldsa.MLDSA65PrivateKey.generate()
    leaf = certificate(key, "workload", middle.subject, middle_key, False)
    pq = bundle_anchor("mldsa", pq_root)
    works(session(pq, PROFILE, key, leaf, [middle]))
    with refused("Untrusted"):
        works(session(pq, PROFILE, key, leaf))
    with refused("Untrusted"):
        works(session(ANCHOR, PROFILE, key, leaf, [middle]))

with step("the trust policy sees the certificate"):
    key = LEAVES["EC P-256"]
    leaf = certificate(key, "somebody", root.subject, root_key, False)
    with refused("Unable to assume role"):
        works(session(ANCHOR, PROFILE, key, leaf))

with step("the key must be the certificate's"):
    leaf = certificate(key, "workload", root.subject, root_key, False)
    with refused("signature"):
        works(session(ANCHOR, PROFILE, ec.generate_private_key(ec.SECP256R1()), leaf))

with step("an imported CRL ends new and running sessions"):
    leaf = certificate(key, "workload", root.subject, root_key, False)
    running = session(ANCHOR, PROFILE, key, leaf)
    works(running)
    crl = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(root.subject)
        .last_update(NOW - DAY)
        .next_update(NOW + DAY)
        .add_extension(x509.CRLNumber(1), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(root_key.public_key()), critical=False)
        .add_revoked_certificate(
            x509.RevokedCertificateBuilder()
            .serial_number(leaf.serial_number).revocation_date(NOW - DAY).build())
        .sign(root_key, hashes.SHA256())
    )
    anywhere.import_crl(name="crl", crlData=crl.public_bytes(PEM), enabled=True, trustAnchorArn=ANCHOR)
    with refused("Certificate revoked"):
        works(session(ANCHOR, PROFILE, key, leaf))
    try:
        works(running)
        raise AssertionError("the session still runs")
    except ClientError as error:
        assert error.response["Error"]["Code"] in ("ExpiredToken", "ExpiredTokenException"), error

with step("a private CA of the service revokes at once"):
    arn = pca.create_certificate_authority(
        CertificateAuthorityType="ROOT",
        CertificateAuthorityConfiguration={
            "KeyAlgorithm": "ML_DSA_65", "SigningAlgorithm": "ML_DSA_65", "Subject": {"CommonName": "Own"}},
    )["CertificateAuthorityArn"]
    csr = pca.get_certificate_authority_csr(CertificateAuthorityArn=arn)["Csr"]

    def issue(csr, template, days):
        issued = pca.issue_certificate(
            CertificateAuthorityArn=arn, Csr=csr, SigningAlgorithm="ML_DSA_65",
            TemplateArn=f"arn:aws:acm-pca:::template/{template}", Validity={"Type": "DAYS", "Value": days},
        )["CertificateArn"]
        for _ in range(100):
            try:
                return pca.get_certificate(CertificateAuthorityArn=arn, CertificateArn=issued)["Certificate"]
            except pca.exceptions.RequestInProgressException:
                time.sleep(0.05)
        raise AssertionError("no certificate")

    pca.import_certificate_authority_certificate(
        CertificateAuthorityArn=arn, Certificate=issue(csr.encode(), "RootCACertificate/V1", 60))
    own = anywhere.create_trust_anchor(
        name="own", enabled=True, source={"sourceType": "AWS_ACM_PCA", "sourceData": {"acmPcaArn": arn}},
    )["trustAnchor"]["trustAnchorArn"]
    key = mldsa.MLDSA65PrivateKey.generate()
    csr = x509.CertificateSigningRequestBuilder().subject_name(subject("workload")).sign(key, None)
    leaf = x509.load_pem_x509_certificate(
        issue(csr.public_bytes(PEM), "EndEntityClientAuthCertificate/V1", 7).encode())
    running = session(own, PROFILE, key, leaf)
    works(running)
    pca.revoke_certificate(
        CertificateAuthorityArn=arn, CertificateSerial=f"{leaf.serial_number:x}", RevocationReason="KEY_COMPROMISE")
    with refused("Certificate revoked"):
        works(session(own, PROFILE, key, leaf))
    try:
        works(running)
        raise AssertionError("the session still runs")
    except ClientError as error:
        assert error.response["Error"]["Code"] in ("ExpiredToken", "ExpiredTokenException"), error

print(f"{passed} passed, {failed} failed")
