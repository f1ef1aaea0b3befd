"""The program of KMS_STEPS.md by boto3.

usage: kms_whole.py [STEP ...]
       kms_whole.py secrets [STEP ...]    the program of SECRETS_STEPS.md

Reads AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE and AWS_PROFILE only: the profile
holds endpoint_url, region and ca_bundle. With OUTLAST_ROLE_ARN it takes on that role.
"""

import contextlib
import datetime
import functools
import hashlib
import json
import os
import re
import sys
import tempfile
import time
import uuid

import secrets_steps
from steps import Skipped, check, connect, equal, eventually, now, refused_by, run_steps, within

import boto3
from botocore.exceptions import ClientError
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, mlkem, padding

RUN = uuid.uuid4().hex[:12]
DAY = datetime.timedelta(days=1)
ML_DSA = {"ML_DSA_44": (1312, 2420), "ML_DSA_65": (1952, 3309), "ML_DSA_87": (2592, 4627)}
ML_KEM_768 = {"public": 1184, "ciphertext": 1088}

STEPS = {}
made = []


def step(name):
    def add(function):
        STEPS[name] = function
        return function

    return add


def refused(*codes):
    return refused_by(kms, *codes)


def new_key(client=None, **request):
    client = client or kms
    request.setdefault("Description", f"kms_whole {RUN}")
    metadata = client.create_key(**request)["KeyMetadata"]
    made.append((client, metadata["KeyId"]))
    return metadata


def describe(key, client=None):
    return (client or kms).describe_key(KeyId=key)["KeyMetadata"]


def encrypt(key, plaintext=b"plaintext", **more):
    return kms.encrypt(KeyId=key, Plaintext=plaintext, **more)["CiphertextBlob"]


def decrypt(blob, client=None, **more):
    return (client or kms).decrypt(CiphertextBlob=blob, **more)["Plaintext"]


def flip(data):
    return data[:-1] + bytes([data[-1] ^ 1])


# Keys


@step("create-symmetric")
def _():
    tags = [{"TagKey": "run", "TagValue": RUN}]
    key = new_key(Description="first ä", Tags=tags)
    for field, want in {
        "KeySpec": "SYMMETRIC_DEFAULT",
        "KeyUsage": "ENCRYPT_DECRYPT",
        "EncryptionAlgorithms": ["SYMMETRIC_DEFAULT"],
        "KeyState": "Enabled",
        "Enabled": True,
        "Origin": "AWS_KMS",
        "KeyManager": "CUSTOMER",
        "MultiRegion": False,
        "Description": "first ä",
    }.items():
        equal(key.get(field), want, field)
    check(re.fullmatch(r"\d{12}", key["AWSAccountId"]), f"AWSAccountId {key['AWSAccountId']}")
    equal(key["Arn"], f"arn:aws:kms:{region}:{key['AWSAccountId']}:key/{key['KeyId']}", "Arn")
    within(key["CreationDate"], now(), DAY / 24, "CreationDate")
    equal(kms.list_resource_tags(KeyId=key["KeyId"])["Tags"], tags, "tags")


@step("describe-key")
def _():
    key = new_key()
    for name in (key["KeyId"], key["Arn"]):
        equal(describe(name), key, f"metadata of {name}")


@step("list-keys")
def _():
    arns = {key["Arn"] for key in (new_key(), new_key(), new_key())}
    pages = list(kms.get_paginator("list_keys").paginate(PaginationConfig={"PageSize": 2}))
    check(all(len(page["Keys"]) <= 2 for page in pages), "a page of more than 2")
    listed = [key["KeyArn"] for page in pages for key in page["Keys"]]
    equal(len(listed), len(set(listed)), "number of distinct keys")
    check(arns <= set(listed), f"not listed: {arns - set(listed)}")


@step("update-key-description")
def _():
    key = new_key()["KeyId"]
    kms.update_key_description(KeyId=key, Description="second ä")
    equal(describe(key)["Description"], "second ä", "Description")


@step("tags")
def _():
    key = new_key()["KeyId"]

    def tags():
        return {tag["TagKey"]: tag["TagValue"] for tag in kms.list_resource_tags(KeyId=key)["Tags"]}

    kms.tag_resource(
        KeyId=key, Tags=[{"TagKey": "team", "TagValue": "ä/+ 1"}, {"TagKey": "stage", "TagValue": "test"}]
    )
    equal(tags(), {"team": "ä/+ 1", "stage": "test"}, "tags")
    kms.untag_resource(KeyId=key, TagKeys=["stage"])
    equal(tags(), {"team": "ä/+ 1"}, "tags after UntagResource")


@step("enable-disable")
def _():
    key = new_key()["KeyId"]
    kms.disable_key(KeyId=key)
    metadata = describe(key)
    equal((metadata["KeyState"], metadata["Enabled"]), ("Disabled", False), "state")
    with refused("DisabledException"):
        encrypt(key)
    kms.enable_key(KeyId=key)
    metadata = describe(key)
    equal((metadata["KeyState"], metadata["Enabled"]), ("Enabled", True), "state")
    encrypt(key)


@step("alias")
def _():
    first, second = new_key()["KeyId"], new_key()["KeyId"]
    alias = f"alias/kms-whole-{RUN}"
    kms.create_alias(AliasName=alias, TargetKeyId=first)
    equal(describe(alias)["KeyId"], first, "KeyId by the alias")
    with refused("AlreadyExistsException"):
        kms.create_alias(AliasName=alias, TargetKeyId=first)
    kms.update_alias(AliasName=alias, TargetKeyId=second)
    equal(describe(alias)["KeyId"], second, "KeyId by the alias after UpdateAlias")
    of_key = kms.list_aliases(KeyId=second)["Aliases"]
    equal([(a["AliasName"], a["TargetKeyId"]) for a in of_key], [(alias, second)], "aliases of the key")
    pages = kms.get_paginator("list_aliases").paginate(PaginationConfig={"PageSize": 2})
    listed = [a["AliasArn"] for page in pages for a in page["Aliases"] if a["AliasName"] == alias]
    equal(listed, [describe(second)["Arn"].rsplit(":", 1)[0] + ":" + alias], "listed alias")
    kms.delete_alias(AliasName=alias)
    with refused("NotFoundException"):
        describe(alias)


# Data and data keys

CONTEXT = {"tenant": "42", "purpose": "interop ü"}
OTHER_CONTEXT = {"tenant": "43", "purpose": "interop ü"}


@step("encrypt-decrypt")
def _():
    key = new_key()
    answer = kms.encrypt(KeyId=key["KeyId"], Plaintext=bytes(range(256)), EncryptionContext=CONTEXT)
    equal((answer["KeyId"], answer["EncryptionAlgorithm"]), (key["Arn"], "SYMMETRIC_DEFAULT"), "answer")
    blob = answer["CiphertextBlob"]
    answer = kms.decrypt(CiphertextBlob=blob, EncryptionContext=CONTEXT)
    equal(answer["Plaintext"], bytes(range(256)), "Plaintext")
    equal((answer["KeyId"], answer["EncryptionAlgorithm"]), (key["Arn"], "SYMMETRIC_DEFAULT"), "answer")
    for context in (OTHER_CONTEXT, {}):
        with refused("InvalidCiphertextException"):
            decrypt(blob, EncryptionContext=context)
    with refused("InvalidCiphertextException"):
        decrypt(flip(blob), EncryptionContext=CONTEXT)
    with refused("IncorrectKeyException"):
        decrypt(blob, EncryptionContext=CONTEXT, KeyId=new_key()["KeyId"])


@step("re-encrypt")
def _():
    source, destination = new_key(), new_key()
    answer = kms.re_encrypt(
        CiphertextBlob=encrypt(source["KeyId"], EncryptionContext=CONTEXT),
        SourceEncryptionContext=CONTEXT,
        DestinationKeyId=destination["KeyId"],
        DestinationEncryptionContext=OTHER_CONTEXT,
    )
    equal((answer["SourceKeyId"], answer["KeyId"]), (source["Arn"], destination["Arn"]), "keys")
    kms.disable_key(KeyId=source["KeyId"])
    equal(decrypt(answer["CiphertextBlob"], EncryptionContext=OTHER_CONTEXT), b"plaintext", "Plaintext")


@step("generate-data-key")
def _():
    key = new_key()
    for size, request in ((32, {"KeySpec": "AES_256"}), (64, {"NumberOfBytes": 64})):
        answer = kms.generate_data_key(KeyId=key["KeyId"], EncryptionContext=CONTEXT, **request)
        equal(answer["KeyId"], key["Arn"], "KeyId")
        equal(len(answer["Plaintext"]), size, "length")
        equal(decrypt(answer["CiphertextBlob"], EncryptionContext=CONTEXT), answer["Plaintext"], "Plaintext")


@step("generate-data-key-without-plaintext")
def _():
    key = new_key()
    answer = kms.generate_data_key_without_plaintext(KeyId=key["KeyId"], KeySpec="AES_256", EncryptionContext=CONTEXT)
    check("Plaintext" not in answer, "an answer with Plaintext")
    equal(answer["KeyId"], key["Arn"], "KeyId")
    equal(len(decrypt(answer["CiphertextBlob"], EncryptionContext=CONTEXT)), 32, "length")


def pair_fits(spec, private, public):
    """What the private key does must be undone by the public key."""
    secret = serialization.load_der_private_key(private, None)
    key = serialization.load_der_public_key(public)
    if spec == "RSA_2048":
        equal(key.key_size, 2048, "key size")
        pss = padding.PSS(padding.MGF1(hashes.SHA256()), 32)
        key.verify(secret.sign(b"m", pss, hashes.SHA256()), b"m", pss, hashes.SHA256())
    elif spec == "ECC_NIST_P256":
        equal(key.curve.name, "secp256r1", "curve")
        key.verify(secret.sign(b"m", ec.ECDSA(hashes.SHA256())), b"m", ec.ECDSA(hashes.SHA256()))
    else:
        equal(len(public), 22 + ML_KEM_768["public"], "length of the public key")
        equal(len(private), 86, "length of the private key as a seed")
        shared, ciphertext = key.encapsulate()
        equal(secret.decapsulate(ciphertext), shared, "shared secret")


def data_key_pair(spec):
    key = new_key()
    answer = kms.generate_data_key_pair(KeyId=key["KeyId"], KeyPairSpec=spec, EncryptionContext=CONTEXT)
    equal((answer["KeyId"], answer["KeyPairSpec"]), (key["Arn"], spec), "answer")
    private = decrypt(answer["PrivateKeyCiphertextBlob"], EncryptionContext=CONTEXT)
    equal(private, answer["PrivateKeyPlaintext"], "private key")
    pair_fits(spec, private, answer["PublicKey"])


def data_key_pair_without_plaintext(spec):
    key = new_key()
    answer = kms.generate_data_key_pair_without_plaintext(
        KeyId=key["KeyId"], KeyPairSpec=spec, EncryptionContext=CONTEXT
    )
    check("PrivateKeyPlaintext" not in answer, "an answer with PrivateKeyPlaintext")
    equal((answer["KeyId"], answer["KeyPairSpec"]), (key["Arn"], spec), "answer")
    private = decrypt(answer["PrivateKeyCiphertextBlob"], EncryptionContext=CONTEXT)
    pair_fits(spec, private, answer["PublicKey"])


for prefix, function in (("", data_key_pair), ("without-plaintext-", data_key_pair_without_plaintext)):
    for spec in ("RSA_2048", "ECC_NIST_P256", "ML_KEM_768"):
        suffix = prefix + spec.lower().replace("_", "-")
        STEPS[f"generate-data-key-pair-{suffix}"] = functools.partial(function, spec)


@step("generate-random")
def _():
    numbers = [kms.generate_random(NumberOfBytes=32)["Plaintext"] for _ in range(2)]
    equal([len(n) for n in numbers], [32, 32], "lengths")
    check(numbers[0] != numbers[1], "the same twice")
    equal(len(kms.generate_random(NumberOfBytes=1024)["Plaintext"]), 1024, "length")


# Signatures


@step("get-public-key")
def _():
    key = new_key(KeySpec="ECC_NIST_P256", KeyUsage="SIGN_VERIFY")
    for name in (key["KeyId"], key["Arn"]):
        answer = kms.get_public_key(KeyId=name)
        equal(answer["KeyId"], key["Arn"], "KeyId")
        equal((answer["KeySpec"], answer["KeyUsage"]), ("ECC_NIST_P256", "SIGN_VERIFY"), "answer")
        equal(answer["SigningAlgorithms"], ["ECDSA_SHA_256"], "SigningAlgorithms")
        equal(serialization.load_der_public_key(answer["PublicKey"]).curve.name, "secp256r1", "curve")


def sign_verify(spec, algorithm, local, digest=True, length=None):
    key = new_key(KeySpec=spec, KeyUsage="SIGN_VERIFY")
    check(algorithm in key["SigningAlgorithms"], f"SigningAlgorithms {key['SigningAlgorithms']}")
    message = os.urandom(500)
    changed = flip(message)
    answer = kms.sign(KeyId=key["KeyId"], Message=message, MessageType="RAW", SigningAlgorithm=algorithm)
    equal((answer["KeyId"], answer["SigningAlgorithm"]), (key["Arn"], algorithm), "answer")
    signature = answer["Signature"]
    equal(len(signature), length or len(signature), "length of the signature")
    forms = {"RAW": (message, changed)}
    if digest:
        forms["DIGEST"] = tuple(hashlib.sha256(m).digest() for m in (message, changed))
    for kind, (good, bad) in forms.items():
        request = {
            "KeyId": key["Arn"],
            "MessageType": kind,
            "Signature": signature,
            "SigningAlgorithm": algorithm,
        }
        equal(kms.verify(Message=good, **request)["SignatureValid"], True, f"SignatureValid for {kind}")
        with refused("KMSInvalidSignatureException"):
            kms.verify(Message=bad, **request)
    local(serialization.load_der_public_key(public_key(key)), signature, message)


def public_key(key):
    return kms.get_public_key(KeyId=key["KeyId"])["PublicKey"]


SHA256 = hashes.SHA256()


@step("sign-verify-rsa-2048-pss")
def _():
    pss = padding.PSS(padding.MGF1(SHA256), 32)
    sign_verify("RSA_2048", "RSASSA_PSS_SHA_256", lambda key, s, m: key.verify(s, m, pss, SHA256), length=256)


@step("sign-verify-rsa-2048-pkcs1")
def _():
    pkcs1 = padding.PKCS1v15()
    algorithm = "RSASSA_PKCS1_V1_5_SHA_256"
    sign_verify("RSA_2048", algorithm, lambda key, s, m: key.verify(s, m, pkcs1, SHA256), length=256)


@step("sign-verify-ecc-nist-p256")
def _():
    sign_verify("ECC_NIST_P256", "ECDSA_SHA_256", lambda key, s, m: key.verify(s, m, ec.ECDSA(SHA256)))


@step("sign-verify-ecc-secg-p256k1")
def _():
    sign_verify("ECC_SECG_P256K1", "ECDSA_SHA_256", lambda key, s, m: key.verify(s, m, ec.ECDSA(SHA256)))


def verify_plain(key, signature, message):
    key.verify(signature, message)


@step("sign-verify-ecc-nist-edwards25519")
def _():
    sign_verify("ECC_NIST_EDWARDS25519", "ED25519_SHA_512", verify_plain, digest=False, length=64)


for spec, (_, length) in ML_DSA.items():
    STEPS[f"sign-verify-{spec.lower().replace('_', '-')}"] = functools.partial(
        sign_verify, spec, "ML_DSA_SHAKE_256", verify_plain, digest=False, length=length
    )


@step("sign-verify-ml-dsa-65-external-mu")
def _():
    key = new_key(KeySpec="ML_DSA_65", KeyUsage="SIGN_VERIFY")
    spki = public_key(key)
    equal(len(spki), 22 + ML_DSA["ML_DSA_65"][0], "length of the public key")
    # FIPS 204, algorithm 7, line 6, with the empty context.
    tr = hashlib.shake_256(spki[22:]).digest(64)

    def mu(message):
        return hashlib.shake_256(tr + b"\0\0" + message).digest(64)

    message = os.urandom(500)
    request = {"KeyId": key["KeyId"], "SigningAlgorithm": "ML_DSA_SHAKE_256"}
    signature = kms.sign(Message=mu(message), MessageType="EXTERNAL_MU", **request)["Signature"]
    for kind, form in (("RAW", message), ("EXTERNAL_MU", mu(message))):
        answer = kms.verify(Message=form, MessageType=kind, Signature=signature, **request)
        equal(answer["SignatureValid"], True, f"SignatureValid for {kind}")
    with refused("KMSInvalidSignatureException"):
        kms.verify(Message=mu(flip(message)), MessageType="EXTERNAL_MU", Signature=signature, **request)
    serialization.load_der_public_key(spki).verify(signature, message)


# MAC, key agreement, ML-KEM


@step("mac-hmac-256")
def _():
    key = new_key(KeySpec="HMAC_256", KeyUsage="GENERATE_VERIFY_MAC")
    equal(key["MacAlgorithms"], ["HMAC_SHA_256"], "MacAlgorithms")
    request = {"KeyId": key["KeyId"], "MacAlgorithm": "HMAC_SHA_256"}
    answer = kms.generate_mac(Message=b"message", **request)
    equal((answer["KeyId"], answer["MacAlgorithm"]), (key["Arn"], "HMAC_SHA_256"), "answer")
    mac = answer["Mac"]
    equal(len(mac), 32, "length")
    equal(kms.verify_mac(Message=b"message", Mac=mac, **request)["MacValid"], True, "MacValid")
    with refused("KMSInvalidMacException"):
        kms.verify_mac(Message=b"messagf", Mac=mac, **request)
    with refused("KMSInvalidMacException"):
        kms.verify_mac(Message=b"message", Mac=flip(mac), **request)


def agreement_key():
    key = new_key(KeySpec="ECC_NIST_P256", KeyUsage="KEY_AGREEMENT")
    equal(key["KeyAgreementAlgorithms"], ["ECDH"], "KeyAgreementAlgorithms")
    return key


def derive(key, public):
    answer = kms.derive_shared_secret(KeyId=key["KeyId"], KeyAgreementAlgorithm="ECDH", PublicKey=public)
    equal((answer["KeyId"], answer["KeyAgreementAlgorithm"]), (key["Arn"], "ECDH"), "answer")
    equal(len(answer["SharedSecret"]), 32, "length")
    return answer["SharedSecret"]


@step("derive-shared-secret")
def _():
    one, two = agreement_key(), agreement_key()
    equal(derive(one, public_key(two)), derive(two, public_key(one)), "shared secret")


@step("derive-shared-secret-local")
def _():
    key = agreement_key()
    local = ec.generate_private_key(ec.SECP256R1())
    der = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    ours = local.exchange(ec.ECDH(), serialization.load_der_public_key(public_key(key)))
    equal(derive(key, local.public_key().public_bytes(*der)), ours, "shared secret")


def kem_key():
    key = new_key(KeySpec="ML_KEM_768", KeyUsage="ENCAPSULATE_DECAPSULATE")
    equal(key["EncapsulationAlgorithms"], ["ML_KEM"], "EncapsulationAlgorithms")
    return key


def decapsulate(key, blob):
    answer = kms.decapsulate(KeyId=key["KeyId"], EncapsulationAlgorithm="ML_KEM", SharedSecretCiphertextBlob=blob)
    equal((answer["KeyId"], answer["EncapsulationAlgorithm"]), (key["Arn"], "ML_KEM"), "answer")
    equal(len(answer["SharedSecret"]), 32, "length of the secret")
    return answer["SharedSecret"]


@step("ml-kem-768")
def _():
    key = kem_key()
    answer = kms.encapsulate(KeyId=key["KeyId"], EncapsulationAlgorithm="ML_KEM")
    equal((answer["KeyId"], answer["EncapsulationAlgorithm"]), (key["Arn"], "ML_KEM"), "answer")
    blob = answer["SharedSecretCiphertextBlob"]
    equal(len(blob), ML_KEM_768["ciphertext"], "length of the ciphertext")
    equal(decapsulate(key, blob), answer["SharedSecret"], "shared secret")
    check(decapsulate(key, flip(blob)) != answer["SharedSecret"], "a changed ciphertext gives the same secret")


@step("ml-kem-768-local")
def _():
    key = kem_key()
    spki = public_key(key)
    equal(len(spki), 22 + ML_KEM_768["public"], "length of the public key")
    shared, blob = mlkem.MLKEM768PublicKey.from_public_bytes(spki[22:]).encapsulate()
    equal(decapsulate(key, blob), shared, "shared secret")


@step("ml-kem-768-wrong-length")
def _():
    key = kem_key()
    with refused("InvalidCiphertextException"):
        decapsulate(key, bytes(ML_KEM_768["ciphertext"] - 1))


# Imported key material


def external_key():
    key = new_key(Origin="EXTERNAL")
    equal((key["KeyState"], key["Origin"]), ("PendingImport", "EXTERNAL"), "new key")
    return key


def parameters_for_import(key):
    return kms.get_parameters_for_import(
        KeyId=key["KeyId"], WrappingAlgorithm="RSAES_OAEP_SHA_256", WrappingKeySpec="RSA_3072"
    )


def import_material(key, material):
    parameters = parameters_for_import(key)
    oaep = padding.OAEP(padding.MGF1(SHA256), SHA256, None)
    kms.import_key_material(
        KeyId=key["KeyId"],
        ImportToken=parameters["ImportToken"],
        EncryptedKeyMaterial=serialization.load_der_public_key(parameters["PublicKey"]).encrypt(material, oaep),
        ExpirationModel="KEY_MATERIAL_DOES_NOT_EXPIRE",
    )


@step("get-parameters-for-import")
def _():
    key = external_key()
    answer = parameters_for_import(key)
    equal(answer["KeyId"], key["Arn"], "KeyId")
    equal(serialization.load_der_public_key(answer["PublicKey"]).key_size, 3072, "key size")
    check(answer["ImportToken"], "no ImportToken")
    within(answer["ParametersValidTo"], now() + DAY, DAY / 24, "ParametersValidTo")


@step("import-key-material")
def _():
    key = external_key()
    import_material(key, os.urandom(32))
    metadata = describe(key["KeyId"])
    equal(
        (metadata["KeyState"], metadata["ExpirationModel"]), ("Enabled", "KEY_MATERIAL_DOES_NOT_EXPIRE"), "key"
    )
    equal(decrypt(encrypt(key["KeyId"])), b"plaintext", "Plaintext")


@step("delete-imported-key-material")
def _():
    key = external_key()
    material = os.urandom(32)
    import_material(key, material)
    blob = encrypt(key["KeyId"])
    kms.delete_imported_key_material(KeyId=key["KeyId"])
    equal(describe(key["KeyId"])["KeyState"], "PendingImport", "KeyState")
    with refused("KMSInvalidStateException"):
        encrypt(key["KeyId"])
    with refused("KMSInvalidStateException"):
        decrypt(blob)
    import_material(key, material)
    equal(decrypt(blob), b"plaintext", "Plaintext")


@step("import-other-key-material")
def _():
    key = external_key()
    import_material(key, os.urandom(32))
    kms.delete_imported_key_material(KeyId=key["KeyId"])
    with refused("IncorrectKeyMaterialException"):
        import_material(key, os.urandom(32))


# Rotation


@step("key-rotation")
def _():
    key = new_key()["KeyId"]
    kms.enable_key_rotation(KeyId=key, RotationPeriodInDays=90)
    status = kms.get_key_rotation_status(KeyId=key)
    equal((status["KeyRotationEnabled"], status["RotationPeriodInDays"]), (True, 90), "status")
    within(status["NextRotationDate"], now() + 90 * DAY, 2 * DAY, "NextRotationDate")
    equal(kms.list_key_rotations(KeyId=key)["Rotations"], [], "Rotations")
    kms.disable_key_rotation(KeyId=key)
    equal(kms.get_key_rotation_status(KeyId=key)["KeyRotationEnabled"], False, "KeyRotationEnabled")


@step("rotate-key-on-demand")
def _():
    key = new_key()["KeyId"]
    kms.enable_key_rotation(KeyId=key, RotationPeriodInDays=90)
    old, material = encrypt(key, b"old"), describe(key)["CurrentKeyMaterialId"]
    kms.rotate_key_on_demand(KeyId=key)
    rotations = eventually("rotation", lambda: kms.list_key_rotations(KeyId=key)["Rotations"])
    equal([r["RotationType"] for r in rotations], ["ON_DEMAND"], "RotationType")
    within(rotations[0]["RotationDate"], now(), DAY / 24, "RotationDate")
    eventually("new key material", lambda: describe(key)["CurrentKeyMaterialId"] != material)
    equal(decrypt(old), b"old", "old Plaintext")
    equal(decrypt(encrypt(key, b"new")), b"new", "new Plaintext")
    equal(kms.get_key_rotation_status(KeyId=key)["RotationPeriodInDays"], 90, "RotationPeriodInDays")
    kms.disable_key_rotation(KeyId=key)


# Grants


def new_grant():
    """A key, the caller's ARN, and a grant for it on the key."""
    key = new_key()
    caller = sts.get_caller_identity()["Arn"]
    answer = kms.create_grant(
        KeyId=key["KeyId"],
        GranteePrincipal=caller,
        RetiringPrincipal=caller,
        Operations=["Encrypt", "Decrypt"],
        Constraints={"EncryptionContextEquals": {"tenant": "42"}},
        Name=f"grant-{RUN}",
    )
    check(answer["GrantToken"] and answer["GrantId"], "no GrantToken or no GrantId")
    return key, caller, answer


def grants_of(key):
    pages = kms.get_paginator("list_grants").paginate(KeyId=key["KeyId"])
    return {grant["GrantId"]: grant for page in pages for grant in page["Grants"]}


@step("create-grant")
def _():
    key, caller, grant = new_grant()
    listed = kms.list_grants(KeyId=key["KeyId"], GrantId=grant["GrantId"])["Grants"]
    equal([entry["GrantId"] for entry in listed], [grant["GrantId"]], "grants")
    entry = listed[0]
    for field, want in {
        "KeyId": key["Arn"],
        "GranteePrincipal": caller,
        "RetiringPrincipal": caller,
        "Constraints": {"EncryptionContextEquals": {"tenant": "42"}},
        "Name": f"grant-{RUN}",
    }.items():
        equal(entry.get(field), want, field)
    equal(sorted(entry["Operations"]), ["Decrypt", "Encrypt"], "Operations")
    within(entry["CreationDate"], now(), DAY / 24, "CreationDate")


@step("list-retirable-grants")
def _():
    _, caller, grant = new_grant()
    pages = kms.get_paginator("list_retirable_grants").paginate(RetiringPrincipal=caller)
    listed = [entry["GrantId"] for page in pages for entry in page["Grants"]]
    equal(listed.count(grant["GrantId"]), 1, "occurrences of the grant")


@step("grant-token")
def _():
    key, _, grant = new_grant()
    request = {"EncryptionContext": {"tenant": "42"}, "GrantTokens": [grant["GrantToken"]]}
    equal(decrypt(encrypt(key["KeyId"], **request), **request), b"plaintext", "Plaintext")
    with refused("InvalidGrantTokenException"):
        encrypt(key["KeyId"], GrantTokens=["no-grant-token"])


@step("retire-grant")
def _():
    key, _, grant = new_grant()
    check(grant["GrantId"] in grants_of(key), "the grant is not listed")
    kms.retire_grant(GrantToken=grant["GrantToken"])
    eventually("grant gone", lambda: grant["GrantId"] not in grants_of(key))


@step("revoke-grant")
def _():
    key, _, grant = new_grant()
    kms.revoke_grant(KeyId=key["KeyId"], GrantId=grant["GrantId"])
    eventually("grant gone", lambda: grant["GrantId"] not in grants_of(key))
    with refused("NotFoundException", "InvalidGrantIdException"):
        kms.revoke_grant(KeyId=key["KeyId"], GrantId=grant["GrantId"])


# Policies


@step("get-key-policy")
def _():
    key = new_key()["KeyId"]
    equal(kms.list_key_policies(KeyId=key)["PolicyNames"], ["default"], "PolicyNames")
    policy = json.loads(kms.get_key_policy(KeyId=key, PolicyName="default")["Policy"])
    check(policy.get("Version") and policy.get("Statement"), f"policy {policy}")


@step("put-key-policy")
def _():
    key = new_key()["KeyId"]
    policy = kms.get_key_policy(KeyId=key)["Policy"]
    kms.put_key_policy(KeyId=key, PolicyName="default", Policy=policy)
    equal(json.loads(kms.get_key_policy(KeyId=key)["Policy"]), json.loads(policy), "policy")


@step("put-key-policy-lockout")
def _():
    key = new_key()
    policy = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"AWS": f"arn:aws:iam::{key['AWSAccountId']}:root"},
                "Action": "kms:DescribeKey",
                "Resource": "*",
            }
        ],
    }
    with refused("MalformedPolicyDocumentException"):
        kms.put_key_policy(KeyId=key["KeyId"], PolicyName="default", Policy=json.dumps(policy))
    encrypt(key["KeyId"])


# Several regions


def replicated_key():
    """A multi-region key, its replica's region, and a client there."""
    other = "eu-west-1" if region != "eu-west-1" else "eu-central-1"
    there = session.client("kms", region_name=other)
    key = new_key(MultiRegion=True)
    check(key["KeyId"].startswith("mrk-"), f"KeyId {key['KeyId']}")
    equal(key["MultiRegionConfiguration"]["MultiRegionKeyType"], "PRIMARY", "MultiRegionKeyType")
    equal(key["MultiRegionConfiguration"]["PrimaryKey"], {"Arn": key["Arn"], "Region": region}, "PrimaryKey")
    replica = kms.replicate_key(KeyId=key["KeyId"], ReplicaRegion=other)["ReplicaKeyMetadata"]
    made.append((there, key["KeyId"]))
    equal(replica["KeyId"], key["KeyId"], "KeyId of the replica")
    equal(replica["Arn"], key["Arn"].replace(f":{region}:", f":{other}:"), "Arn of the replica")
    equal(replica["MultiRegionConfiguration"]["MultiRegionKeyType"], "REPLICA", "MultiRegionKeyType")
    eventually("replica enabled", lambda: describe(key["KeyId"], there)["KeyState"] == "Enabled")
    return key, other, there


@step("replicate-key")
def _():
    key, other, there = replicated_key()
    answer = there.decrypt(CiphertextBlob=encrypt(key["KeyId"]), KeyId=key["KeyId"])
    equal(answer["Plaintext"], b"plaintext", "Plaintext")
    equal(answer["KeyId"], key["Arn"].replace(f":{region}:", f":{other}:"), "KeyId")
    blob = there.encrypt(KeyId=key["KeyId"], Plaintext=b"back")["CiphertextBlob"]
    equal(decrypt(blob), b"back", "Plaintext of the way back")
    replicas = describe(key["KeyId"])["MultiRegionConfiguration"]["ReplicaKeys"]
    equal([r["Region"] for r in replicas], [other], "regions of the replicas")


@step("update-primary-region")
def _():
    key, other, there = replicated_key()
    kms.update_primary_region(KeyId=key["KeyId"], PrimaryRegion=other)

    def changed(client, kind):
        metadata = describe(key["KeyId"], client)
        configuration = metadata["MultiRegionConfiguration"]
        return (metadata["KeyState"], configuration["MultiRegionKeyType"], configuration["PrimaryKey"]["Region"]) == (
            "Enabled",
            kind,
            other,
        )

    eventually("the replica is the primary", lambda: changed(there, "PRIMARY"))
    eventually("the primary is a replica", lambda: changed(kms, "REPLICA"))


# Dry runs, last usage, custom key stores


@step("dry-run")
def _():
    key = new_key()["KeyId"]
    with refused("DryRunOperationException"):
        encrypt(key, DryRun=True)
    with refused("DryRunOperationException"):
        kms.generate_data_key(KeyId=key, KeySpec="AES_256", DryRun=True)
    decrypt(encrypt(key, DryRun=False))


@step("get-key-last-usage")
def _():
    key = new_key()

    def usage():
        return kms.get_key_last_usage(KeyId=key["KeyId"])

    answer = usage()
    check(not answer.get("KeyLastUsage"), f"KeyLastUsage of an unused key: {answer.get('KeyLastUsage')}")
    within(answer["KeyCreationDate"], key["CreationDate"], datetime.timedelta(seconds=1), "KeyCreationDate")
    check(answer.get("TrackingStartDate"), "no TrackingStartDate")
    encrypt(key["KeyId"])
    used = eventually("usage recorded", lambda: usage().get("KeyLastUsage"))
    equal(used["Operation"], "Encrypt", "Operation")
    within(used["Timestamp"], now(), DAY / 24, "Timestamp")


@step("describe-custom-key-stores")
def _():
    equal(kms.describe_custom_key_stores()["CustomKeyStores"], [], "CustomKeyStores")


@step("create-custom-key-store")
def _():
    shapes = kms.meta.service_model.operation_model("CreateCustomKeyStore").error_shapes
    with refused(*{shape.error_code for shape in shapes} - {"KMSInternalException"}):
        kms.create_custom_key_store(
            CustomKeyStoreName=f"store-{RUN}",
            CloudHsmClusterId="cluster-2a23b4cdefg",
            TrustAnchorCertificate="no certificate",
            KeyStorePassword="kmsPswd1",
        )


# Errors


@step("not-found")
def _():
    unknown = str(uuid.uuid4())
    with refused("NotFoundException"):
        describe(unknown)
    with refused("NotFoundException"):
        encrypt(unknown)
    with refused("NotFoundException"):
        describe(f"alias/unknown-{RUN}")


@step("validation")
def _():
    with refused("ValidationException"):
        new_key(KeySpec="RSA_1024", KeyUsage="SIGN_VERIFY")
    with refused("ValidationException"):
        new_key(KeySpec="ML_DSA_65")


@step("foreign-arn")
def _():
    key = new_key()
    for arn in (
        key["Arn"].replace(f":{region}:", ":ap-southeast-2:"),
        key["Arn"].replace(f":{key['AWSAccountId']}:", ":999999999999:"),
    ):
        with refused("NotFoundException", "InvalidArnException"):
            describe(arn)


# Deletion


@step("schedule-key-deletion")
def _():
    key = new_key()
    answer = kms.schedule_key_deletion(KeyId=key["KeyId"], PendingWindowInDays=7)
    equal((answer["KeyId"], answer["KeyState"]), (key["Arn"], "PendingDeletion"), "answer")
    equal(answer["PendingWindowInDays"], 7, "PendingWindowInDays")
    within(answer["DeletionDate"], now() + 7 * DAY, DAY, "DeletionDate")
    equal(describe(key["KeyId"])["KeyState"], "PendingDeletion", "KeyState")
    with refused("KMSInvalidStateException"):
        encrypt(key["KeyId"])


@step("cancel-key-deletion")
def _():
    key = new_key()
    blob = encrypt(key["KeyId"])
    kms.schedule_key_deletion(KeyId=key["KeyId"], PendingWindowInDays=7)
    equal(kms.cancel_key_deletion(KeyId=key["KeyId"])["KeyId"], key["Arn"], "KeyId")
    equal(describe(key["KeyId"])["KeyState"], "Disabled", "KeyState")
    kms.enable_key(KeyId=key["KeyId"])
    equal(decrypt(blob), b"plaintext", "Plaintext")


# STS


@step("get-caller-identity")
def _():
    caller = sts.get_caller_identity()
    check(re.fullmatch(r"\d{12}", caller["Account"]), f"Account {caller['Account']}")
    equal(caller["Account"], new_key()["AWSAccountId"], "Account")
    check(re.match(rf"arn:aws:(iam|sts)::{caller['Account']}:", caller["Arn"]), f"Arn {caller['Arn']}")
    check(caller["UserId"], "no UserId")


def role_arn():
    arn = os.environ.get("OUTLAST_ROLE_ARN")
    if not arn:
        raise Skipped("OUTLAST_ROLE_ARN is not set")
    return arn


def as_role(role_session, name):
    """What a session of the role must be able to do."""
    account, role = role_arn().split(":")[4], role_arn().rsplit("/", 1)[1]
    arn = role_session.client("sts").get_caller_identity()["Arn"]
    if name is None:
        check(arn.startswith(f"arn:aws:sts::{account}:assumed-role/{role}/"), f"Arn {arn}")
    else:
        equal(arn, f"arn:aws:sts::{account}:assumed-role/{role}/{name}", "Arn")
    key = new_key()["KeyId"]
    blob = role_session.client("kms").encrypt(KeyId=key, Plaintext=b"by the role")["CiphertextBlob"]
    equal(decrypt(blob), b"by the role", "Plaintext")


@step("assume-role")
def _():
    name = f"kms-whole-{RUN}"
    answer = sts.assume_role(RoleArn=role_arn(), RoleSessionName=name)
    check(answer["AssumedRoleUser"]["Arn"].endswith("/" + name), f"AssumedRoleUser {answer['AssumedRoleUser']}")
    credentials = answer["Credentials"]
    check(credentials["Expiration"] > now(), f"Expiration {credentials['Expiration']}")
    as_role(
        boto3.Session(
            aws_access_key_id=credentials["AccessKeyId"],
            aws_secret_access_key=credentials["SecretAccessKey"],
            aws_session_token=credentials["SessionToken"],
        ),
        name,
    )


@step("assume-role-profile")
def _():
    source, config = os.environ["AWS_PROFILE"], os.environ["AWS_CONFIG_FILE"]
    with open(config, encoding="utf-8") as file:
        text = file.read()
    own = session._session.get_scoped_config()
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".config") as file:
        file.write(f"{text}\n[profile kms-whole-role]\nrole_arn = {role_arn()}\nsource_profile = {source}\n")
        file.writelines(f"{name} = {own[name]}\n" for name in ("region", "endpoint_url", "ca_bundle") if name in own)
        file.flush()
        os.environ.update(AWS_CONFIG_FILE=file.name, AWS_PROFILE="kms-whole-role")
        try:
            as_role(boto3.Session(), None)
        finally:
            os.environ.update(AWS_CONFIG_FILE=config, AWS_PROFILE=source)


def main(wanted):
    global session, kms, sts, region
    if wanted[:1] == ["secrets"]:
        return secrets_steps.main(wanted[1:])
    session = connect(STEPS, wanted)
    kms, sts, region = session.client("kms"), session.client("sts"), session.region_name

    def clean_up():
        for client, key in made:
            with contextlib.suppress(ClientError):
                client.schedule_key_deletion(KeyId=key, PendingWindowInDays=7)

    return run_steps(STEPS, wanted, clean_up)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
