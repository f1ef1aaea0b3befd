"""Certificate Manager by boto3: from a private CA to a renewed and a revoked certificate.

usage: acm_steps.py [STEP ...]

Reads AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE and AWS_PROFILE only: the profile
holds endpoint_url, region and ca_bundle. OPENSSL names an openssl of 3.5 or later.
"""

import os
import subprocess
import sys
import tempfile
import uuid

KEEP = {"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_PROFILE"}
for name in [n for n in os.environ if n.startswith("AWS_") and n not in KEEP]:
    del os.environ[name]

import boto3
from botocore.exceptions import ClientError

RUN = uuid.uuid4().hex[:12]
PASSPHRASE = "correct horse 1!"
ALGORITHMS = {"EC_prime256v1": "SHA256WITHECDSA", "ML_DSA_65": "ML_DSA_65"}
LEAVES = ["RSA_2048", "EC_prime256v1", "EC_secp384r1", "EC_secp521r1", "ML_DSA_44", "ML_DSA_65", "ML_DSA_87"]

STEPS = {}
# Certificate authorities by the type of their keys, and certificates by a name.
authorities, certificates = {}, {}


def step(name):
    def add(function):
        STEPS[name] = function
        return function

    return add


def check(condition, text):
    if not condition:
        raise AssertionError(text)


def equal(got, want, what):
    check(got == want, f"{what}: got {got!r}, want {want!r}")


def refused(code, call, **request):
    """The call must be answered with this error, by its own class where the model has it."""
    try:
        call(**request)
    except ClientError as error:
        equal(error.response["Error"]["Code"], code, "error")
        modelled = {shape.error_code: shape.name for shape in acm.meta.service_model.error_shapes}
        if code in modelled:
            check(isinstance(error, getattr(acm.exceptions, modelled[code])), type(error).__name__)
        return
    raise AssertionError(f"no {code}")


def openssl(*arguments, text=None):
    """What openssl prints; an error if it fails."""
    done = subprocess.run(
        [os.environ["OPENSSL"], *arguments], input=text, capture_output=True, text=True, check=False
    )
    check(done.returncode == 0, f"openssl {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def file(text):
    with tempfile.NamedTemporaryFile("w", dir=folder.name, suffix=".pem", delete=False) as out:
        out.write(text)
    return out.name


def describe(arn):
    return acm.describe_certificate(CertificateArn=arn)["Certificate"]


def request(name, authority="EC_prime256v1", **more):
    more.setdefault("KeyAlgorithm", "EC_prime256v1")
    answer = acm.request_certificate(
        DomainName=f"{name}.{RUN}.example.com", CertificateAuthorityArn=authorities[authority], **more
    )
    return answer["CertificateArn"]


def verified(arn):
    """The certificate and its chain, after openssl has verified them."""
    found = acm.get_certificate(CertificateArn=arn)
    root = file(found["CertificateChain"])
    leaf = file(found["Certificate"])
    said = openssl("verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", root, leaf)
    check(said.strip().endswith(": OK"), said)
    return found["Certificate"], found["CertificateChain"]


def exported(arn):
    """The certificate and its key without the passphrase, after openssl has found that they belong together."""
    answer = acm.export_certificate(CertificateArn=arn, Passphrase=PASSPHRASE.encode())
    locked = file(answer["PrivateKey"])
    check("-----BEGIN ENCRYPTED PRIVATE KEY-----" in answer["PrivateKey"], "label")
    key = openssl("pkey", "-in", locked, "-passin", f"pass:{PASSPHRASE}")
    public = openssl("pkey", "-pubout", text=key)
    equal(openssl("x509", "-noout", "-pubkey", text=answer["Certificate"]), public, "public key")
    wrong = subprocess.run(
        [os.environ["OPENSSL"], "pkey", "-in", locked, "-passin", "pass:wrong"], capture_output=True, check=False
    )
    check(wrong.returncode != 0, "a wrong passphrase opens the key")
    return answer["Certificate"], key


@step("authorities")
def _():
    for algorithm, signing in ALGORITHMS.items():
        arn = pca.create_certificate_authority(
            CertificateAuthorityType="ROOT",
            CertificateAuthorityConfiguration={
                "KeyAlgorithm": algorithm,
                "SigningAlgorithm": signing,
                "Subject": {"CommonName": f"Root {RUN}", "Organization": "Interop"},
            },
        )["CertificateAuthorityArn"]
        of = {"CertificateAuthorityArn": arn}
        csr = pca.get_certificate_authority_csr(**of)["Csr"]
        issued = pca.issue_certificate(
            **of,
            Csr=csr.encode(),
            SigningAlgorithm=signing,
            TemplateArn="arn:aws:acm-pca:::template/RootCACertificate/V1",
            Validity={"Type": "YEARS", "Value": 10},
        )["CertificateArn"]
        root = pca.get_certificate(**of, CertificateArn=issued)["Certificate"]
        pca.import_certificate_authority_certificate(**of, Certificate=root.encode())
        authorities[algorithm] = arn


@step("request-and-export")
def _():
    for authority in ALGORITHMS:
        for algorithm in LEAVES:
            arn = request(
                "www", authority, KeyAlgorithm=algorithm, SubjectAlternativeNames=[f"*.{RUN}.example.org"]
            )
            found = describe(arn)
            names = [f"www.{RUN}.example.com", f"*.{RUN}.example.org"]
            for member, want in {
                "DomainName": names[0],
                "SubjectAlternativeNames": names,
                "Status": "ISSUED",
                "Type": "PRIVATE",
                # Answers spell RSA's with a hyphen.
                "KeyAlgorithm": algorithm.replace("RSA_", "RSA-"),
                "SignatureAlgorithm": ALGORITHMS[authority],
                "Issuer": "Interop",
                "CertificateAuthorityArn": authorities[authority],
                "RenewalEligibility": "ELIGIBLE",
            }.items():
                equal(found[member], want, f"{algorithm} {member}")
            certificate, _ = verified(arn)
            equal(exported(arn)[0], certificate, "certificate")
            certificates[f"{authority} {algorithm}"] = arn


@step("idempotency")
def _():
    arn = request("token", IdempotencyToken=f"t{RUN}")
    equal(request("token", IdempotencyToken=f"t{RUN}"), arn, "the same request")
    refused(
        "InvalidParameterException",
        acm.request_certificate,
        DomainName="other.example.com",
        CertificateAuthorityArn=authorities["EC_prime256v1"],
        IdempotencyToken=f"t{RUN}",
    )


@step("refusals")
def _():
    refused("InvalidParameterException", acm.request_certificate, DomainName="public.example.com")
    missing = certificates["EC_prime256v1 RSA_2048"][:-36] + str(uuid.uuid4())
    refused("ResourceNotFoundException", acm.describe_certificate, CertificateArn=missing)
    refused("ValidationException", acm.describe_certificate, CertificateArn=authorities["EC_prime256v1"])
    arn = certificates["EC_prime256v1 RSA_2048"]
    refused("ValidationException", acm.export_certificate, CertificateArn=arn, Passphrase=b"abc#")
    refused(
        "InvalidStateException",
        acm.resend_validation_email,
        CertificateArn=arn,
        Domain="a.example.com",
        ValidationDomain="example.com",
    )


@step("import")
def _():
    for algorithm in ["EC", "ML-DSA-65"]:
        more = ["-pkeyopt", "ec_paramgen_curve:P-256"] if algorithm == "EC" else []
        key = openssl("genpkey", "-algorithm", algorithm, *more)
        path = file(key)
        made = openssl(
            "req", "-x509", "-key", path, "-subj", f"/CN=imported.{RUN}.example.com", "-days", "30",
            "-addext", f"subjectAltName=DNS:imported.{RUN}.example.com",
        )  # fmt: skip
        imported = {"Certificate": made.encode(), "PrivateKey": key.encode()}
        arn = acm.import_certificate(**imported, Tags=[{"Key": "run", "Value": RUN}])["CertificateArn"]
        found = describe(arn)
        equal((found["Type"], found["DomainName"]), ("IMPORTED", f"imported.{RUN}.example.com"), "imported")
        equal(acm.import_certificate(CertificateArn=arn, **imported)["CertificateArn"], arn, "in its place")
        refused("ValidationException", acm.export_certificate, CertificateArn=arn, Passphrase=b"abcd")
        certificates[f"imported {algorithm}"] = arn
    # SEC 1 and PKCS #1 keys, and a leaf with the chain of its CA.
    certificate, key = exported(certificates["EC_prime256v1 EC_prime256v1"])
    _, chain = verified(certificates["EC_prime256v1 EC_prime256v1"])
    older = openssl("pkey", "-traditional", text=key)
    check("BEGIN EC PRIVATE KEY" in older, older[:40])
    arn = acm.import_certificate(
        Certificate=certificate.encode(), PrivateKey=older.encode(), CertificateChain=chain.encode()
    )["CertificateArn"]
    equal(acm.get_certificate(CertificateArn=arn)["CertificateChain"], chain, "chain")


@step("list")
def _():
    pages = acm.get_paginator("list_certificates").paginate(
        Includes={"keyTypes": ["EC_prime256v1", "ML_DSA_65", "ML_DSA_87"]},
        CertificateStatuses=["ISSUED"],
        SortBy="CREATED_AT",
        SortOrder="ASCENDING",
        PaginationConfig={"PageSize": 2},
    )
    found = [one for page in pages for one in page["CertificateSummaryList"]]
    arns = [one["CertificateArn"] for one in found]
    equal(len(arns), len(set(arns)), "each once")
    check(certificates["EC_prime256v1 ML_DSA_87"] in arns, "a certificate is missing")
    check(certificates["EC_prime256v1 RSA_2048"] not in arns, "a certificate too many")
    equal(sorted(found, key=lambda one: one["CreatedAt"]), found, "order")


@step("search")
def _():
    statement = {
        "And": [
            {"Filter": {"X509AttributeFilter": {"KeyAlgorithm": "ML_DSA_65"}}},
            {"Not": {"Filter": {"AcmCertificateMetadataFilter": {"Type": "IMPORTED"}}}},
        ]
    }
    found, token = [], {}
    while True:
        page = acm.search_certificates(
            FilterStatement=statement, SortBy="COMMON_NAME", SortOrder="ASCENDING", MaxResults=1, **token
        )
        found += page["Results"]
        if "NextToken" not in page:
            break
        token = {"NextToken": page["NextToken"]}
    arns = {certificates["EC_prime256v1 ML_DSA_65"], certificates["ML_DSA_65 ML_DSA_65"]}
    equal({one["CertificateArn"] for one in found}, arns, "found")
    equal(found[0]["X509Attributes"]["Issuer"]["Organization"], "Interop", "issuer")
    equal(found[0]["CertificateMetadata"]["AcmCertificateMetadata"]["Exported"], True, "exported")


@step("tags")
def _():
    arn = certificates["EC_prime256v1 RSA_2048"]
    acm.add_tags_to_certificate(CertificateArn=arn, Tags=[{"Key": "a", "Value": "1"}, {"Key": "b"}])
    acm.tag_resource(ResourceArn=arn, Tags=[{"Key": "c", "Value": "3"}])
    acm.remove_tags_from_certificate(CertificateArn=arn, Tags=[{"Key": "b"}])
    acm.untag_resource(ResourceArn=arn, TagKeys=["c"])
    want = [{"Key": "a", "Value": "1"}]
    equal(acm.list_tags_for_certificate(CertificateArn=arn)["Tags"], want, "tags")
    equal(acm.list_tags_for_resource(ResourceArn=arn)["Tags"], want, "tags")


@step("account")
def _():
    acm.put_account_configuration(ExpiryEvents={"DaysBeforeExpiry": 20}, IdempotencyToken="one")
    equal(acm.get_account_configuration()["ExpiryEvents"]["DaysBeforeExpiry"], 20, "days")


@step("renew")
def _():
    arn = certificates["EC_prime256v1 EC_secp384r1"]
    refused("ValidationException", acm.renew_certificate, CertificateArn=arn)
    pca.create_permission(
        CertificateAuthorityArn=authorities["EC_prime256v1"],
        Principal="acm.amazonaws.com",
        Actions=["IssueCertificate", "GetCertificate", "ListPermissions"],
    )
    before, key = exported(arn)
    acm.renew_certificate(CertificateArn=arn)
    summary = describe(arn)["RenewalSummary"]
    equal(summary["RenewalStatus"], "SUCCESS", "status")
    verified(arn)
    after, new = exported(arn)
    check(before != after and key != new, "the certificate is the same")


@step("revoke")
def _():
    arn = certificates["ML_DSA_65 ML_DSA_87"]
    answer = acm.revoke_certificate(CertificateArn=arn, RevocationReason="KEY_COMPROMISE")
    equal(answer["CertificateArn"], arn, "ARN")
    found = describe(arn)
    equal((found["Status"], found["RevocationReason"]), ("REVOKED", "KEY_COMPROMISE"), "revoked")
    refused("ConflictException", acm.revoke_certificate, CertificateArn=arn, RevocationReason="UNSPECIFIED")


@step("delete")
def _():
    arn = certificates["ML_DSA_65 RSA_2048"]
    acm.delete_certificate(CertificateArn=arn)
    refused("ResourceNotFoundException", acm.get_certificate, CertificateArn=arn)


def main(wanted):
    global acm, pca, folder
    missing = sorted((KEEP | {"OPENSSL"}) - set(os.environ))
    if missing:
        sys.exit(f"the environment lacks {', '.join(missing)}")
    session = boto3.Session()
    acm, pca = session.client("acm"), session.client("acm-pca")
    if "amazonaws" in acm.meta.endpoint_url:
        sys.exit("the profile has no endpoint_url")
    folder = tempfile.TemporaryDirectory()
    passed = failed = 0
    for name in wanted or STEPS:
        try:
            STEPS[name]()
        except Exception as error:
            failed += 1
            print(f"FAILED {name}: {type(error).__name__}: {' '.join(str(error).split())[:400]}", flush=True)
        else:
            passed += 1
            print(f"ok {name}", flush=True)
    folder.cleanup()
    print(f"{passed} steps passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
