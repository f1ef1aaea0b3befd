"""Calls KMS and Private CA by boto3, as an application which knows nothing of the server.

usage: aws_calls.py [GROUP ...]

Reads AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE and AWS_PROFILE only: the profile
holds endpoint_url, region and ca_bundle. Groups run independently of each other; a
group stops at its first failure. Names are unique for each run.
"""

import contextlib
import datetime
import hashlib
import os
import sys
import traceback
import uuid

KEEP = {"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_PROFILE"}
for name in [n for n in os.environ if n.startswith("AWS_") and n not in KEEP]:
    del os.environ[name]

import boto3
import botocore.session
import cbor2
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import ClientError
from botocore.httpsession import URLLib3Session
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, utils
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

RUN = uuid.uuid4().hex[:12]
TEMPLATE = "arn:aws:acm-pca:::template/"
PUBLIC_KEY_LENGTH = {"ML_DSA_44": 1312, "ML_DSA_65": 1952, "ML_DSA_87": 2592}
SIGNATURE_LENGTH = {"ML_DSA_44": 2420, "ML_DSA_65": 3309, "ML_DSA_87": 4627}
MLDSA_OID = {
    "ML_DSA_44": "2.16.840.1.101.3.4.3.17",
    "ML_DSA_65": "2.16.840.1.101.3.4.3.18",
    "ML_DSA_87": "2.16.840.1.101.3.4.3.19",
}
HASHES = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}


class Aborted(Exception):
    """A step failed; the rest of its group is left out."""


class Tally:
    passed = 0
    failed = 0


@contextlib.contextmanager
def step(name):
    try:
        yield
    except Exception:
        Tally.failed += 1
        print(f"FAILED {name}", flush=True)
        traceback.print_exc()
        raise Aborted(name) from None
    Tally.passed += 1
    print(f"ok {name}", flush=True)


def equal(got, want, what="value"):
    assert got == want, f"{what}: got {got!r}, want {want!r}"


@contextlib.contextmanager
def refused(code, text=None):
    """The block must be answered with this error code, and with this text in the message."""
    try:
        yield
    except ClientError as e:
        error = e.response["Error"]
        equal(error["Code"], code, "error code")
        if text is not None:
            assert text in error["Message"], f"message {error['Message']!r} lacks {text!r}"
        status = e.response["ResponseMetadata"]["HTTPStatusCode"]
        equal(status, 400, "HTTP status")
        return
    raise AssertionError(f"no {code}")


session = None
kms = None
pca = None


def connect():
    global session, kms, pca
    missing = sorted(KEEP - set(os.environ))
    if missing:
        sys.exit(f"the environment lacks {', '.join(missing)}")
    session = boto3.Session()
    kms = session.client("kms")
    pca = session.client("acm-pca")
    for client in (kms, pca):
        if "amazonaws" in client.meta.endpoint_url:
            sys.exit("the profile has no endpoint_url")


def create_key(**kwargs):
    kwargs.setdefault("Description", f"interop {RUN}")
    return kms.create_key(**kwargs)["KeyMetadata"]


def flip(data, at):
    changed = bytearray(data)
    changed[at] ^= 1
    return bytes(changed)


def external_mu(spki, message):
    """FIPS 204 with the empty context, for a public key of 22 bytes of header."""
    tr = hashlib.shake_256(spki[22:]).digest(64)
    return hashlib.shake_256(tr + b"\0\0" + message).digest(64)


# KMS


def group_list():
    with step("ListKeys"):
        answer = kms.list_keys()
        assert isinstance(answer["Truncated"], bool)
        for key in answer["Keys"]:
            assert key["KeyArn"].endswith("key/" + key["KeyId"]), key
    with step("ListAliases"):
        assert isinstance(kms.list_aliases()["Truncated"], bool)
    with step("ListCertificateAuthorities"):
        assert isinstance(pca.list_certificate_authorities()["CertificateAuthorities"], list)


def group_mldsa():
    alias = f"alias/interop-{RUN}"
    with step("CreateKey ML_DSA_65"):
        key = create_key(
            KeySpec="ML_DSA_65",
            KeyUsage="SIGN_VERIFY",
            Tags=[{"TagKey": "run", "TagValue": RUN}],
        )
        equal(key["KeySpec"], "ML_DSA_65", "KeySpec")
        equal(key["KeyUsage"], "SIGN_VERIFY", "KeyUsage")
        equal(key["SigningAlgorithms"], ["ML_DSA_SHAKE_256"], "SigningAlgorithms")
        equal(key["KeyState"], "Enabled", "KeyState")
        equal(key["Enabled"], True, "Enabled")
        equal(key["Origin"], "AWS_KMS", "Origin")
        equal(key["KeyManager"], "CUSTOMER", "KeyManager")
        equal(key["Arn"].split(":")[:4], ["arn", "aws", "kms", session.region_name], "Arn")
        equal(len(key["AWSAccountId"]), 12, "length of AWSAccountId")
        age = datetime.datetime.now(datetime.timezone.utc) - key["CreationDate"]
        assert abs(age.total_seconds()) < 300, f"CreationDate is {age} ago"
    with step("CreateAlias"):
        kms.create_alias(AliasName=alias, TargetKeyId=key["KeyId"])
        listed = kms.list_aliases(KeyId=key["KeyId"])["Aliases"]
        equal([(a["AliasName"], a["TargetKeyId"]) for a in listed], [(alias, key["KeyId"])], "aliases")
    with step("CreateAlias of a used name"), refused("AlreadyExistsException"):
        kms.create_alias(AliasName=alias, TargetKeyId=key["KeyId"])
    with step("TagResource, ListResourceTags"):
        kms.tag_resource(KeyId=key["KeyId"], Tags=[{"TagKey": "team", "TagValue": "ä/+ 1"}])
        tags = kms.list_resource_tags(KeyId=key["KeyId"])
        equal(
            {t["TagKey"]: t["TagValue"] for t in tags["Tags"]},
            {"run": RUN, "team": "ä/+ 1"},
            "tags",
        )
        equal(tags["Truncated"], False, "Truncated")
    with step("DescribeKey by id, ARN, alias and alias ARN"):
        alias_arn = key["Arn"].rsplit(":", 1)[0] + ":" + alias
        for name in (key["KeyId"], key["Arn"], alias, alias_arn):
            equal(kms.describe_key(KeyId=name)["KeyMetadata"], key, "KeyMetadata")
    with step("GetPublicKey"):
        answer = kms.get_public_key(KeyId=alias)
        spki = answer["PublicKey"]
        equal(len(spki), 22 + 1952, "length")
        equal(answer["KeyId"], key["Arn"], "KeyId")
        equal(answer["KeySpec"], "ML_DSA_65", "KeySpec")
        equal(answer["SigningAlgorithms"], ["ML_DSA_SHAKE_256"], "SigningAlgorithms")
        public = serialization.load_der_public_key(spki)

    def sign(message, kind=None, name=alias):
        extra = {"MessageType": kind} if kind else {}
        answer = kms.sign(KeyId=name, Message=message, SigningAlgorithm="ML_DSA_SHAKE_256", **extra)
        equal(answer["KeyId"], key["Arn"], "KeyId")
        equal(answer["SigningAlgorithm"], "ML_DSA_SHAKE_256", "SigningAlgorithm")
        equal(len(answer["Signature"]), 3309, "length of the signature")
        return answer["Signature"]

    def verify(message, signature, kind=None):
        extra = {"MessageType": kind} if kind else {}
        answer = kms.verify(
            KeyId=alias, Message=message, Signature=signature, SigningAlgorithm="ML_DSA_SHAKE_256", **extra
        )
        equal(answer["SignatureValid"], True, "SignatureValid")
        equal(answer["KeyId"], key["Arn"], "KeyId")

    for size in (1, 183, 4096):
        with step(f"Sign RAW, {size} bytes"):
            message = os.urandom(size)
            signature = sign(message, "RAW")
            verify(message, signature)
            verify(message, signature, "RAW")
            verify(external_mu(spki, message), signature, "EXTERNAL_MU")
            public.verify(signature, message)
    with step("Sign without MessageType is RAW"):
        public.verify(sign(b"message"), b"message")
    with step("Sign EXTERNAL_MU"):
        message = os.urandom(100_000)
        signature = sign(external_mu(spki, message), "EXTERNAL_MU")
        verify(external_mu(spki, message), signature, "EXTERNAL_MU")
        public.verify(signature, message)
        short = message[:4096]
        verify(short, sign(external_mu(spki, short), "EXTERNAL_MU"), "RAW")
    with step("Verify of a tampered signature"):
        message = b"message"
        signature = sign(message)
        for at in (0, 1000, 3308):
            with refused("KMSInvalidSignatureException"):
                verify(message, flip(signature, at))
        with refused("KMSInvalidSignatureException"):
            verify(b"messagf", signature)
        try:
            verify(message, flip(signature, 0))
        except kms.exceptions.KMSInvalidSignatureException:
            pass
    with step("Sign RAW of more than 4096 bytes"), refused("ValidationException"):
        sign(bytes(4097))
    with step("CreateKey, Sign, Verify for ML_DSA_44 and ML_DSA_87"):
        for spec in ("ML_DSA_44", "ML_DSA_87"):
            other = create_key(KeySpec=spec, KeyUsage="SIGN_VERIFY")
            other_spki = kms.get_public_key(KeyId=other["KeyId"])["PublicKey"]
            equal(len(other_spki), 22 + PUBLIC_KEY_LENGTH[spec], "length of the public key")
            signature = kms.sign(KeyId=other["KeyId"], Message=b"m", SigningAlgorithm="ML_DSA_SHAKE_256")["Signature"]
            equal(len(signature), SIGNATURE_LENGTH[spec], "length of the signature")
            serialization.load_der_public_key(other_spki).verify(signature, b"m")


def digest(message, bits):
    return hashlib.new(f"sha{bits}", message).digest()


def sign_verify(key, algorithm, local):
    """RAW and DIGEST, each verified as both and locally."""
    bits = algorithm.rsplit("_", 1)[1]
    message = os.urandom(500)
    forms = {"RAW": message, "DIGEST": digest(message, bits)}
    for kind, data in forms.items():
        signature = kms.sign(KeyId=key, Message=data, MessageType=kind, SigningAlgorithm=algorithm)["Signature"]
        local(signature, message, HASHES[bits])
        for other, other_data in forms.items():
            answer = kms.verify(
                KeyId=key, Message=other_data, MessageType=other, Signature=signature, SigningAlgorithm=algorithm
            )
            equal(answer["SignatureValid"], True, "SignatureValid")
        with refused("KMSInvalidSignatureException"):
            kms.verify(
                KeyId=key,
                Message=data,
                MessageType=kind,
                Signature=flip(signature, len(signature) - 1),
                SigningAlgorithm=algorithm,
            )
    with refused("ValidationException", "igest is invalid length"):
        kms.sign(KeyId=key, Message=forms["DIGEST"][1:], MessageType="DIGEST", SigningAlgorithm=algorithm)


def group_ecc():
    for curve, bits in (("P256", "256"), ("P384", "384"), ("P521", "512")):
        with step(f"ECC_NIST_{curve} Sign and Verify"):
            key = create_key(KeySpec=f"ECC_NIST_{curve}", KeyUsage="SIGN_VERIFY")
            equal(key["SigningAlgorithms"], [f"ECDSA_SHA_{bits}"], "SigningAlgorithms")
            public = serialization.load_der_public_key(kms.get_public_key(KeyId=key["KeyId"])["PublicKey"])
            sign_verify(key["KeyId"], f"ECDSA_SHA_{bits}", lambda s, m, h: public.verify(s, m, ec.ECDSA(h)))
    with step("Sign with an algorithm of another key type"), refused("InvalidKeyUsageException"):
        kms.sign(KeyId=key["KeyId"], Message=b"m", SigningAlgorithm="RSASSA_PSS_SHA_256")


def group_rsa():
    with step("CreateKey RSA_2048"):
        key = create_key(KeySpec="RSA_2048", KeyUsage="SIGN_VERIFY")
        equal(
            sorted(key["SigningAlgorithms"]),
            sorted(f"RSASSA_{p}_SHA_{b}" for p in ("PSS", "PKCS1_V1_5") for b in HASHES),
            "SigningAlgorithms",
        )
        public = serialization.load_der_public_key(kms.get_public_key(KeyId=key["KeyId"])["PublicKey"])
        equal(public.key_size, 2048, "key size")
    for bits, hash_ in HASHES.items():
        pss = padding.PSS(padding.MGF1(hash_), hash_.digest_size)
        for algorithm, pad in ((f"RSASSA_PSS_SHA_{bits}", pss), (f"RSASSA_PKCS1_V1_5_SHA_{bits}", padding.PKCS1v15())):
            with step(f"RSA_2048 {algorithm}"):
                sign_verify(key["KeyId"], algorithm, lambda s, m, h: public.verify(s, m, pad, h))


def group_hmac():
    with step("CreateKey HMAC_256"):
        key = create_key(KeySpec="HMAC_256", KeyUsage="GENERATE_VERIFY_MAC")
        equal(key["MacAlgorithms"], ["HMAC_SHA_256"], "MacAlgorithms")
        equal(kms.describe_key(KeyId=key["Arn"])["KeyMetadata"], key, "KeyMetadata")


def group_mac():
    key = create_key(KeySpec="HMAC_256", KeyUsage="GENERATE_VERIFY_MAC")["KeyId"]
    with step("GenerateMac, VerifyMac"):
        mac = kms.generate_mac(KeyId=key, Message=b"m", MacAlgorithm="HMAC_SHA_256")["Mac"]
        equal(len(mac), 32, "length")
        answer = kms.verify_mac(KeyId=key, Message=b"m", MacAlgorithm="HMAC_SHA_256", Mac=mac)
        equal(answer["MacValid"], True, "MacValid")
    with step("VerifyMac of a tampered MAC"), refused("KMSInvalidMacException"):
        kms.verify_mac(KeyId=key, Message=b"m", MacAlgorithm="HMAC_SHA_256", Mac=flip(mac, 0))


def group_symmetric():
    context = {"tenant": "42", "purpose": "interop ü"}
    with step("CreateKey SYMMETRIC_DEFAULT"):
        key = create_key()
        equal(key["KeySpec"], "SYMMETRIC_DEFAULT", "KeySpec")
        equal(key["KeyUsage"], "ENCRYPT_DECRYPT", "KeyUsage")
        equal(key["EncryptionAlgorithms"], ["SYMMETRIC_DEFAULT"], "EncryptionAlgorithms")
    with step("Encrypt, Decrypt with an encryption context"):
        for size in (1, 4096):
            plaintext = os.urandom(size)
            answer = kms.encrypt(KeyId=key["KeyId"], Plaintext=plaintext, EncryptionContext=context)
            blob = answer["CiphertextBlob"]
            equal(answer["KeyId"], key["Arn"], "KeyId")
            assert plaintext not in blob or size == 1
            answer = kms.decrypt(CiphertextBlob=blob, EncryptionContext=dict(reversed(context.items())))
            equal(answer["Plaintext"], plaintext, "Plaintext")
            equal(answer["KeyId"], key["Arn"], "KeyId")
            equal(answer["EncryptionAlgorithm"], "SYMMETRIC_DEFAULT", "EncryptionAlgorithm")
    with step("Decrypt with another or no context"):
        for other in ({"tenant": "43", "purpose": "interop ü"}, {"tenant": "42"}, {}):
            with refused("InvalidCiphertextException"):
                kms.decrypt(CiphertextBlob=blob, EncryptionContext=other)
    with step("Decrypt of a tampered ciphertext"), refused("InvalidCiphertextException"):
        kms.decrypt(CiphertextBlob=flip(blob, len(blob) - 1), EncryptionContext=context)
    with step("Decrypt naming another key"), refused("IncorrectKeyException"):
        kms.decrypt(CiphertextBlob=blob, EncryptionContext=context, KeyId=create_key()["KeyId"])
    with step("GenerateDataKey, Decrypt"):
        for size, kwargs in ((32, {"KeySpec": "AES_256"}), (16, {"KeySpec": "AES_128"}), (64, {"NumberOfBytes": 64})):
            data = kms.generate_data_key(KeyId=key["Arn"], EncryptionContext=context, **kwargs)
            equal(len(data["Plaintext"]), size, "length")
            answer = kms.decrypt(CiphertextBlob=data["CiphertextBlob"], EncryptionContext=context, KeyId=key["KeyId"])
            equal(answer["Plaintext"], data["Plaintext"], "Plaintext")
            with refused("InvalidCiphertextException"):
                kms.decrypt(CiphertextBlob=data["CiphertextBlob"])
    with step("Sign with an encryption key"), refused("InvalidKeyUsageException"):
        kms.sign(KeyId=key["KeyId"], Message=b"m", SigningAlgorithm="ML_DSA_SHAKE_256")


def group_states():
    key = create_key(KeySpec="ML_DSA_65", KeyUsage="SIGN_VERIFY")["KeyId"]

    def sign():
        return kms.sign(KeyId=key, Message=b"m", SigningAlgorithm="ML_DSA_SHAKE_256")

    def state():
        metadata = kms.describe_key(KeyId=key)["KeyMetadata"]
        equal(metadata["Enabled"], metadata["KeyState"] == "Enabled", "Enabled")
        return metadata["KeyState"]

    with step("DisableKey"):
        kms.disable_key(KeyId=key)
        equal(state(), "Disabled", "KeyState")
    with step("Sign with a disabled key"), refused("DisabledException"):
        sign()
    with step("EnableKey"):
        kms.enable_key(KeyId=key)
        equal(state(), "Enabled", "KeyState")
        sign()
    with step("ScheduleKeyDeletion"):
        answer = kms.schedule_key_deletion(KeyId=key, PendingWindowInDays=7)
        equal(answer["KeyState"], "PendingDeletion", "KeyState")
        equal(answer["PendingWindowInDays"], 7, "PendingWindowInDays")
        left = answer["DeletionDate"] - datetime.datetime.now(datetime.timezone.utc)
        assert abs(left - datetime.timedelta(days=7)) < datetime.timedelta(days=1), f"deletion in {left}"
        equal(state(), "PendingDeletion", "KeyState")
    with step("Sign with a key pending deletion"), refused("KMSInvalidStateException"):
        sign()
    with step("CancelKeyDeletion"):
        kms.cancel_key_deletion(KeyId=key)
        equal(state(), "Disabled", "KeyState")
        kms.enable_key(KeyId=key)
        sign()
    unknown = str(uuid.uuid4())
    with step("unknown key"):
        with refused("NotFoundException", f"key/{unknown}' does not exist"):
            kms.describe_key(KeyId=unknown)
        with refused("NotFoundException"):
            kms.sign(KeyId=unknown, Message=b"m", SigningAlgorithm="ML_DSA_SHAKE_256")
    with step("unknown alias"), refused("NotFoundException", "is not found."):
        kms.describe_key(KeyId=f"alias/unknown-{RUN}")
    with step("CreateKey without KeyUsage"), refused("ValidationException", "You must specify a KeyUsage value"):
        create_key(KeySpec="ML_DSA_65")


def group_pages():
    keys = [create_key()["KeyId"] for _ in range(5)]
    aliases = [f"alias/page-{RUN}-{n}" for n in range(5)]
    for key, alias in zip(keys, aliases):
        kms.create_alias(AliasName=alias, TargetKeyId=key)

    def walk(operation, result, field, wanted, **kwargs):
        pages = list(kms.get_paginator(operation).paginate(PaginationConfig={"PageSize": 2}, **kwargs))
        assert all(len(p[result]) <= 2 for p in pages), "a page of more than 2"
        equal([p["Truncated"] for p in pages], [True] * (len(pages) - 1) + [False], "Truncated")
        assert all("NextMarker" in p for p in pages[:-1]) and "NextMarker" not in pages[-1]
        found = [entry[field] for p in pages for entry in p[result]]
        equal(len(found), len(set(found)), "number of distinct entries")
        missing = set(wanted) - set(found)
        assert not missing, f"missing {missing}"
        return found

    with step("ListKeys Limit=2, all pages"):
        walk("list_keys", "Keys", "KeyId", keys)
    with step("ListAliases Limit=2, all pages"):
        walk("list_aliases", "Aliases", "AliasName", aliases)
    with step("ListAliases of one key"):
        for n in range(3):
            kms.create_alias(AliasName=f"alias/one-{RUN}-{n}", TargetKeyId=keys[0])
        found = walk("list_aliases", "Aliases", "AliasName", [], KeyId=keys[0])
        equal(sorted(found), sorted([aliases[0]] + [f"alias/one-{RUN}-{n}" for n in range(3)]), "aliases")
    with step("ListResourceTags Limit=2, all pages"):
        kms.tag_resource(KeyId=keys[1], Tags=[{"TagKey": f"k{n}", "TagValue": str(n)} for n in range(5)])
        found = walk("list_resource_tags", "Tags", "TagKey", [], KeyId=keys[1])
        equal(sorted(found), [f"k{n}" for n in range(5)], "tags")
    with step("ListKeys with a marker which was not given out"), refused("InvalidMarkerException"):
        kms.list_keys(Marker="no-such-marker")
    for key in keys:
        kms.schedule_key_deletion(KeyId=key, PendingWindowInDays=7)


# Private CA


def authority_request(kind, token, name, algorithm="ML_DSA_65"):
    return {
        "CertificateAuthorityType": kind,
        "IdempotencyToken": token,
        "Tags": [{"Key": "Name", "Value": name}],
        "CertificateAuthorityConfiguration": {
            "KeyAlgorithm": algorithm,
            "SigningAlgorithm": algorithm,
            "Subject": {"Country": "DE", "Organization": "Outlast", "CommonName": name},
        },
    }


def token():
    return uuid.uuid4().hex


def issue(ca, csr, template, years=None, days=None, idempotency=None):
    validity = {"Type": "YEARS", "Value": years} if years else {"Type": "DAYS", "Value": days}
    arn = pca.issue_certificate(
        CertificateAuthorityArn=ca,
        Csr=csr,
        SigningAlgorithm="ML_DSA_65",
        TemplateArn=TEMPLATE + template,
        Validity=validity,
        IdempotencyToken=idempotency or token(),
    )["CertificateArn"]
    pca.get_waiter("certificate_issued").wait(CertificateAuthorityArn=ca, CertificateArn=arn)
    return arn, pca.get_certificate(CertificateAuthorityArn=ca, CertificateArn=arn)


def load(pem):
    return x509.load_pem_x509_certificates(pem.encode())


def extension(certificate, kind):
    return certificate.extensions.get_extension_for_class(kind)


def authority_certificate(certificate, name, path_length):
    equal(certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value, name, "subject")
    equal(certificate.signature_algorithm_oid.dotted_string, MLDSA_OID["ML_DSA_65"], "signature algorithm")
    constraints = extension(certificate, x509.BasicConstraints)
    equal((constraints.critical, constraints.value.ca), (True, True), "basic constraints")
    equal(constraints.value.path_length, path_length, "path length")
    usage = extension(certificate, x509.KeyUsage)
    assert usage.critical and usage.value.digital_signature and usage.value.key_cert_sign and usage.value.crl_sign
    assert not usage.value.key_encipherment


def create_authority(kind, name):
    """With its idempotency; the CA waits for its certificate afterwards. Returns ARN and CSR."""
    with step(f"CreateCertificateAuthority {kind}"):
        request = authority_request(kind, token(), name)
        arn = pca.create_certificate_authority(**request)["CertificateAuthorityArn"]
        assert arn.startswith(f"arn:aws:acm-pca:{session.region_name}:") and ":certificate-authority/" in arn, arn
    with step(f"CreateCertificateAuthority {kind} repeated gives the same ARN"):
        equal(pca.create_certificate_authority(**request)["CertificateAuthorityArn"], arn, "ARN")
    with step(f"CreateCertificateAuthority {kind} with other input and the same token"):
        other = authority_request(kind, request["IdempotencyToken"], name + " other")
        with refused("InvalidArgsException"):
            pca.create_certificate_authority(**other)
    with step(f"GetCertificateAuthorityCsr {kind}"):
        pca.get_waiter("certificate_authority_csr_created").wait(CertificateAuthorityArn=arn)
        csr = pca.get_certificate_authority_csr(CertificateAuthorityArn=arn)["Csr"]
        parsed = x509.load_pem_x509_csr(csr.encode())
        equal(parsed.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value, name, "subject")
        equal(parsed.signature_algorithm_oid.dotted_string, MLDSA_OID["ML_DSA_65"], "signature algorithm")
        assert parsed.is_signature_valid, "the CSR's signature is not valid"
    with step(f"DescribeCertificateAuthority {kind}"):
        ca = pca.describe_certificate_authority(CertificateAuthorityArn=arn)["CertificateAuthority"]
        equal((ca["Arn"], ca["Type"], ca["Status"]), (arn, kind, "PENDING_CERTIFICATE"), "CA")
        equal(ca["CertificateAuthorityConfiguration"]["KeyAlgorithm"], "ML_DSA_65", "KeyAlgorithm")
        equal(ca["CertificateAuthorityConfiguration"]["Subject"]["CommonName"], name, "CommonName")
        equal(ca["UsageMode"], "GENERAL_PURPOSE", "UsageMode")
        equal(len(ca["OwnerAccount"]), 12, "length of OwnerAccount")
        tags = pca.list_tags(CertificateAuthorityArn=arn)["Tags"]
        equal(tags, [{"Key": "Name", "Value": name}], "tags")
    return arn, csr


def group_pca():
    root_name, sub_name = f"interop root {RUN}", f"interop sub {RUN}"
    root_arn, root_csr = create_authority("ROOT", root_name)
    with step("GetCertificateAuthorityCertificate before the import"), refused("InvalidStateException"):
        pca.get_certificate_authority_certificate(CertificateAuthorityArn=root_arn)
    with step("IssueCertificate RootCACertificate"):
        _, answer = issue(root_arn, root_csr, "RootCACertificate/V1", years=10)
        root_pem = answer["Certificate"]
        [root] = load(root_pem)
        authority_certificate(root, root_name, None)
        equal(root.issuer, root.subject, "issuer")
        root.verify_directly_issued_by(root)
        years = (root.not_valid_after_utc - datetime.datetime.now(datetime.timezone.utc)).days / 365.25
        assert 9.9 < years < 10.1, f"valid for {years} years"
    with step("ImportCertificateAuthorityCertificate ROOT"):
        pca.import_certificate_authority_certificate(CertificateAuthorityArn=root_arn, Certificate=root_pem)
        ca = pca.describe_certificate_authority(CertificateAuthorityArn=root_arn)["CertificateAuthority"]
        equal(ca["Status"], "ACTIVE", "Status")
        equal(ca["NotAfter"], root.not_valid_after_utc, "NotAfter")
        equal(int(ca["Serial"].replace(":", ""), 16), root.serial_number, "Serial")
        answer = pca.get_certificate_authority_certificate(CertificateAuthorityArn=root_arn)
        equal(load(answer["Certificate"]), [root], "certificate")
        assert not answer.get("CertificateChain"), "a root has no chain"

    sub_arn, sub_csr = create_authority("SUBORDINATE", sub_name)
    with step("IssueCertificate SubordinateCACertificate_PathLen0"):
        _, answer = issue(root_arn, sub_csr, "SubordinateCACertificate_PathLen0/V1", years=5)
        sub_pem = answer["Certificate"]
        [sub] = load(sub_pem)
        authority_certificate(sub, sub_name, 0)
        sub.verify_directly_issued_by(root)
        equal(load(answer["CertificateChain"]), [root], "chain")
        equal(
            extension(sub, x509.AuthorityKeyIdentifier).value.key_identifier,
            extension(root, x509.SubjectKeyIdentifier).value.digest,
            "authority key identifier",
        )
    with step("Import of the certificate of another CA"), refused("CertificateMismatchException"):
        pca.import_certificate_authority_certificate(
            CertificateAuthorityArn=sub_arn, Certificate=root_pem, CertificateChain=root_pem
        )
    with step("ImportCertificateAuthorityCertificate SUBORDINATE"):
        pca.import_certificate_authority_certificate(
            CertificateAuthorityArn=sub_arn, Certificate=sub_pem, CertificateChain=root_pem
        )
        answer = pca.get_certificate_authority_certificate(CertificateAuthorityArn=sub_arn)
        equal(load(answer["Certificate"]) + load(answer["CertificateChain"]), [sub, root], "certificates")
    with step("both CAs are listed ACTIVE"):
        pages = pca.get_paginator("list_certificate_authorities").paginate(PaginationConfig={"PageSize": 1})
        listed = {ca["Arn"]: ca["Status"] for page in pages for ca in page["CertificateAuthorities"]}
        equal((listed.get(root_arn), listed.get(sub_arn)), ("ACTIVE", "ACTIVE"), "states")

    with step("IssueCertificate EndEntityCertificate from an ECDSA CSR"):
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.DNSName(f"{RUN}.example.test")])
        csr = (
            x509.CertificateSigningRequestBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{RUN}.example.test")]))
            .add_extension(names, critical=False)
            .sign(key, hashes.SHA256())
            .public_bytes(serialization.Encoding.PEM)
        )
        once = token()
        leaf_arn, answer = issue(sub_arn, csr, "EndEntityCertificate/V1", days=30, idempotency=once)
        assert leaf_arn.startswith(sub_arn + "/certificate/"), leaf_arn
        [leaf] = load(answer["Certificate"])
        leaf.verify_directly_issued_by(sub)
        equal(load(answer["CertificateChain"]), [sub, root], "chain")
        equal(leaf.public_key(), key.public_key(), "public key")
        equal(extension(leaf, x509.SubjectAlternativeName).value, names, "subject alternative names")
        equal(extension(leaf, x509.BasicConstraints).value.ca, False, "CA")
        equal(
            set(extension(leaf, x509.ExtendedKeyUsage).value),
            {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH},
            "extended key usage",
        )
        serial = leaf_arn.rsplit("/", 1)[1]
        equal(int(serial, 16), leaf.serial_number, "serial number in the ARN")
    with step("IssueCertificate repeated gives the same ARN"):
        equal(issue(sub_arn, csr, "EndEntityCertificate/V1", days=30, idempotency=once)[0], leaf_arn, "ARN")
    with step("IssueCertificate with other input and the same token"), refused("InvalidArgsException"):
        issue(sub_arn, csr, "EndEntityCertificate/V1", days=31, idempotency=once)
    with step("IssueCertificate of something which is no CSR"), refused("MalformedCSRException"):
        issue(sub_arn, b"-----BEGIN NONSENSE-----\n", "EndEntityCertificate/V1", days=30)
    with step("unknown CA"), refused("ResourceNotFoundException"):
        unknown = root_arn.rsplit("/", 1)[0] + "/" + str(uuid.uuid4())
        pca.describe_certificate_authority(CertificateAuthorityArn=unknown)
    with step("malformed CA ARN"), refused("ValidationException"):
        pca.describe_certificate_authority(CertificateAuthorityArn="arn:aws:acm-pca:no-arn")


# Private CA by smithy-rpc-v2-cbor


def cbor_call(operation, members):
    """A plain HTTP request; returns status, decoded body and the body's bytes."""
    request = AWSRequest(
        method="POST",
        url=f"{pca.meta.endpoint_url}/service/ACMPrivateCA/operation/{operation}",
        data=cbor2.dumps(members),
        headers={
            "smithy-protocol": "rpc-v2-cbor",
            "content-type": "application/cbor",
            "accept": "application/cbor",
        },
    )
    credentials = session.get_credentials().get_frozen_credentials()
    SigV4Auth(credentials, "acm-pca", session.region_name).add_auth(request)
    verify = session._session.get_config_variable("ca_bundle") or True
    response = URLLib3Session(verify=verify).send(request.prepare())
    equal(response.headers.get("smithy-protocol"), "rpc-v2-cbor", "header smithy-protocol")
    equal(response.headers.get("content-type"), "application/cbor", "header content-type")
    return response.status_code, cbor2.loads(response.content), response.content


def cbor(operation, members):
    status, answer, _ = cbor_call(operation, members)
    equal(status, 200, f"HTTP status of {answer}")
    return answer


def comparable(value):
    """Without what differs by nature; times to a hundredth of a second."""
    if isinstance(value, dict):
        return {k: comparable(v) for k, v in value.items() if k != "ResponseMetadata"}
    if isinstance(value, list):
        return [comparable(v) for v in value]
    if isinstance(value, datetime.datetime):
        return round(value.timestamp(), 2)
    return value


def group_cbor():
    name = f"interop cbor {RUN}"
    with step("CBOR CreateCertificateAuthority"):
        request = authority_request("ROOT", token(), name)
        arn = cbor("CreateCertificateAuthority", request)["CertificateAuthorityArn"]
    with step("CBOR CreateCertificateAuthority repeated by JSON gives the same ARN"):
        equal(pca.create_certificate_authority(**request)["CertificateAuthorityArn"], arn, "ARN")
    pca.get_waiter("certificate_authority_csr_created").wait(CertificateAuthorityArn=arn)
    with step("CBOR DescribeCertificateAuthority"):
        status, answer, raw = cbor_call("DescribeCertificateAuthority", {"CertificateAuthorityArn": arn})
        equal(status, 200, "HTTP status")
        ca = answer["CertificateAuthority"]
        assert isinstance(ca["CreatedAt"], datetime.datetime), f"CreatedAt is {ca['CreatedAt']!r}"
        at = raw.index(b"\x69CreatedAt") + 10
        equal(raw[at], 0xC1, "first byte of CreatedAt (tag 1)")
        age = datetime.datetime.now(datetime.timezone.utc) - ca["CreatedAt"]
        assert abs(age.total_seconds()) < 300, f"CreatedAt is {age} ago"
        by_json = pca.describe_certificate_authority(CertificateAuthorityArn=arn)
        equal(comparable(answer), comparable(by_json), "answer")
    with step("CBOR ListCertificateAuthorities"):
        by_cbor, members = [], {}
        while True:
            page = cbor("ListCertificateAuthorities", members)
            by_cbor += page["CertificateAuthorities"]
            if not page.get("NextToken"):
                break
            members = {"NextToken": page["NextToken"]}
        pages = pca.get_paginator("list_certificate_authorities").paginate()
        by_json = {ca["Arn"]: comparable(ca) for page in pages for ca in page["CertificateAuthorities"]}
        own = [ca for ca in by_cbor if RUN in ca["CertificateAuthorityConfiguration"]["Subject"]["CommonName"]]
        assert arn in [ca["Arn"] for ca in own], "the new CA is not listed"
        for ca in own:
            equal(comparable(ca), by_json.get(ca["Arn"]), "CA")
    with step("CBOR ListCertificateAuthorities MaxResults=1"):
        page = cbor("ListCertificateAuthorities", {"MaxResults": 1})
        equal(len(page["CertificateAuthorities"]), 1, "number of CAs")
    with step("CBOR GetCertificateAuthorityCsr, IssueCertificate with a byte string"):
        csr = cbor("GetCertificateAuthorityCsr", {"CertificateAuthorityArn": arn})["Csr"]
        issued = cbor(
            "IssueCertificate",
            {
                "CertificateAuthorityArn": arn,
                "Csr": csr.encode(),
                "SigningAlgorithm": "ML_DSA_65",
                "TemplateArn": TEMPLATE + "RootCACertificate/V1",
                "Validity": {"Type": "YEARS", "Value": 10},
            },
        )["CertificateArn"]
        pca.get_waiter("certificate_issued").wait(CertificateAuthorityArn=arn, CertificateArn=issued)
        answer = cbor("GetCertificate", {"CertificateAuthorityArn": arn, "CertificateArn": issued})
        authority_certificate(load(answer["Certificate"])[0], name, None)
    with step("CBOR error"):
        unknown = arn.rsplit("/", 1)[0] + "/" + str(uuid.uuid4())
        status, answer, _ = cbor_call("DescribeCertificateAuthority", {"CertificateAuthorityArn": unknown})
        equal(status, 400, "HTTP status")
        equal(answer["__type"].split("#")[-1], "ResourceNotFoundException", "__type")
    with step("CBOR by botocore's own client"):
        inner = botocore.session.Session()
        model = inner.get_component("data_loader").load_service_model("acm-pca", "service-2")
        model["metadata"]["protocols"] = ["smithy-rpc-v2-cbor"]
        client = boto3.Session(botocore_session=inner).client("acm-pca")
        equal(client.meta.service_model.resolved_protocol, "smithy-rpc-v2-cbor", "protocol")
        answer = client.describe_certificate_authority(CertificateAuthorityArn=arn)
        by_json = pca.describe_certificate_authority(CertificateAuthorityArn=arn)
        equal(comparable(answer), comparable(by_json), "answer")
        client.import_certificate_authority_certificate(
            CertificateAuthorityArn=arn,
            Certificate=pca.get_certificate(CertificateAuthorityArn=arn, CertificateArn=issued)["Certificate"],
        )
        equal(
            client.describe_certificate_authority(CertificateAuthorityArn=arn)["CertificateAuthority"]["Status"],
            "ACTIVE",
            "Status",
        )
        with refused("ResourceNotFoundException"):
            client.describe_certificate_authority(CertificateAuthorityArn=unknown)


DEFAULT = ["list", "mldsa", "ecc", "rsa", "hmac", "symmetric", "states", "pages", "pca", "cbor"]
ALL = DEFAULT + ["mac"]


def main(groups):
    unknown = [g for g in groups if g not in ALL]
    if unknown:
        sys.exit(f"unknown group {unknown[0]}; known: {' '.join(ALL)}")
    connect()
    for group in groups or DEFAULT:
        try:
            globals()[f"group_{group}"]()
        except Aborted:
            pass
        except Exception:
            Tally.failed += 1
            print(f"FAILED group {group}", flush=True)
            traceback.print_exc()
    print(f"{Tally.passed} passed, {Tally.failed} failed")
    return 1 if Tally.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
