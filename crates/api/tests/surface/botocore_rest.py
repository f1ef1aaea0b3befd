"""Roles Anywhere by botocore: what it sends for every operation, and what it reads from answers.

    python botocore_rest.py requests > requests.json
    python botocore_rest.py answers < answers.json

Requests are signed with the key, and as of the time, of the tests' fixture (`common/mod.rs`).
"""

import base64
import datetime
import json
import sys
from unittest import mock

import botocore.auth
import botocore.awsrequest
import botocore.session

NOW = datetime.datetime(2026, 11, 21, tzinfo=datetime.timezone.utc)
UUID = "01234567-89ab-cdef-0123-456789abcdef"
ARN = "arn:aws:rolesanywhere:eu-west-1:123456789012:"
TEXTS = {
    "Uuid": UUID,
    "CrlIdentifier": ARN + "crl/" + UUID,
    "ProfileIdentifier": ARN + "profile/" + UUID,
    "TrustAnchorIdentifier": ARN + "alias/trust-anchor/one",
    "RoleArn": "arn:aws:iam::123456789012:role/a b",
    "ResourceName": "a name_1",
    "AliasName": "one/two",
    "TagKey": "a = +/@",
    "TagValue": "a = +/@",
}
ARNS = {
    "CrlResourceArn": "crl/", "CrlAliasArn": "alias/crl/", "ProfileResourceArn": "profile/", "ProfileAliasArn": "alias/profile/",
    "TrustAnchorResourceArn": "trust-anchor/", "TrustAnchorAliasArn": "alias/trust-anchor/", "TrustAnchorIdentifierArn": "trust-anchor/",
}


def sample(shape):
    """A value with every member of a union but the last ones left out."""
    kind = shape.type_name
    if kind == "structure":
        members = list(shape.members.items())
        if getattr(shape, "is_tagged_union", False):
            members = members[:1]
        return {name: sample(member) for name, member in members}
    if kind == "list":
        return [sample(shape.member), sample(shape.member)]
    if kind == "map":
        return {"a/b": sample(shape.value)}
    if kind == "string":
        if getattr(shape, "enum", None):
            return shape.enum[0]
        if shape.name in ARNS:
            return ARN + ARNS[shape.name] + UUID
        return TEXTS.get(shape.name, "ü & = + /?%20")
    if kind in ("integer", "long"):
        return shape.metadata.get("min", 7)
    return {"boolean": True, "blob": b"\x00\xffCRL", "timestamp": NOW}[kind]


def plain(value):
    """As the tests have it: bytes in base64, times in seconds."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items() if key != "ResponseMetadata"}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime.datetime):
        return int(value.timestamp())
    return value


def client():
    session = botocore.session.Session()
    session.set_credentials("AKIAEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
    return session.create_client("rolesanywhere", region_name="eu-west-1", endpoint_url="https://localhost:8443")


def snake(name):
    return botocore.xform_name(name)


def requests():
    rows = []
    api = client()
    for name in api.meta.service_model.operation_names:
        model = api.meta.service_model.operation_model(name)
        given = sample(model.input_shape) if model.input_shape else {}
        sent = []

        def before(request, **_):
            sent.append(request)
            return botocore.awsrequest.AWSResponse(request.url, 200, {}, mock.Mock(stream=lambda *_: iter([b"{}"])))

        api.meta.events.register("before-send", before)
        getattr(api, snake(name))(**given)
        api.meta.events.unregister("before-send", before)
        request = sent[0]
        text = lambda value: value.decode() if isinstance(value, bytes) else value
        # Some headers tell of the machine.
        headers = {key.lower(): text(value) for key, value in request.headers.items()}
        headers.pop("user-agent", None)
        headers.pop("amz-sdk-invocation-id", None)
        headers.pop("amz-sdk-request", None)
        body = request.body or b""
        rows.append({
            "operation": name,
            "method": request.method,
            "uri": request.url.removeprefix("https://localhost:8443"),
            "headers": headers,
            "body": text(body),
            "input": plain(given),
            "output": plain(sample(model.output_shape)) if model.output_shape else {},
        })
    return rows


def answers():
    api = client()
    out = []
    for row in json.load(sys.stdin):
        def before(request, **_):
            raw = mock.Mock(stream=lambda *_: iter([row["body"].encode()]))
            return botocore.awsrequest.AWSResponse(request.url, row["status"], row["headers"], raw)

        api.meta.events.register("before-send", before)
        model = api.meta.service_model.operation_model(row["operation"])
        given = sample(model.input_shape) if model.input_shape else {}
        try:
            out.append(plain(getattr(api, snake(row["operation"]))(**given)))
        except api.exceptions.ClientError as error:
            out.append({"error": error.response["Error"]["Code"], "message": error.response["Error"]["Message"]})
        api.meta.events.unregister("before-send", before)
    return out


def main():
    # What is signed must not depend on when.
    with mock.patch.object(botocore.auth, "get_current_datetime", lambda *_, **__: NOW.replace(tzinfo=None)):
        rows = {"requests": requests, "answers": answers}[sys.argv[1]]()
    print("[\n" + ",\n".join(json.dumps(row, sort_keys=True) for row in rows) + "\n]")


main()
