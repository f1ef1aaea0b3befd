"""The program of SECRETS_STEPS.md by boto3; kms_whole.py runs it."""

import contextlib
import datetime
import json
import os
import re
import uuid

from steps import Skipped, check, connect, equal, eventually, now, refused_by, run_steps, within

import boto3
from botocore.exceptions import ClientError

RUN = uuid.uuid4().hex[:12]
HOUR = datetime.timedelta(hours=1)
DAY = 24 * HOUR

STEPS = {}
made = []


def step(name):
    def add(function):
        STEPS[name] = function
        return function

    return add


def refused(*codes):
    return refused_by(secrets, *codes)


def name_of(what):
    return f"secrets-whole/{RUN}/{what}"


def new_secret(what, value="first", **more):
    """A secret with this value; its name, and the answer of CreateSecret."""
    name = name_of(what)
    answer = secrets.create_secret(Name=name, SecretString=value, ClientRequestToken=str(uuid.uuid4()), **more)
    made.append(name)
    return name, answer


def put(name, value, client=None, **more):
    return (client or secrets).put_secret_value(SecretId=name, SecretString=value, **more)


def read(name, client=None, **more):
    return (client or secrets).get_secret_value(SecretId=name, **more)["SecretString"]


def stages(name):
    return {k: sorted(v) for k, v in secrets.describe_secret(SecretId=name)["VersionIdsToStages"].items()}


@step("create-secret")
def _():
    name, token = name_of("create"), str(uuid.uuid4())
    tags = [{"Key": "run", "Value": RUN}]
    request = {"Name": name, "SecretString": "first", "Description": "first ä", "Tags": tags}
    answer = secrets.create_secret(**request, ClientRequestToken=token)
    made.append(name)
    equal((answer["Name"], answer["VersionId"]), (name, token), "answer")
    check(
        re.fullmatch(rf"arn:aws:secretsmanager:{region}:\d{{12}}:secret:{name}-[A-Za-z0-9]{{6}}", answer["ARN"]),
        f"ARN {answer['ARN']}",
    )
    secret = secrets.describe_secret(SecretId=answer["ARN"])
    for field in ("ARN", "Name"):
        equal(secret[field], answer[field], field)
    equal(secret["Description"], "first ä", "Description")
    equal(secret["Tags"], tags, "Tags")
    equal(secret["VersionIdsToStages"], {token: ["AWSCURRENT"]}, "VersionIdsToStages")
    within(secret["CreatedDate"], now(), HOUR, "CreatedDate")
    within(secret["LastChangedDate"], now(), HOUR, "LastChangedDate")
    check(not secret.get("RotationEnabled"), "RotationEnabled")
    check("DeletedDate" not in secret, "DeletedDate")
    again = secrets.create_secret(**request, ClientRequestToken=token)
    equal((again["ARN"], again["VersionId"]), (answer["ARN"], token), "answer to the same token again")
    with refused("ResourceExistsException"):
        secrets.create_secret(Name=name, SecretString="other")


@step("get-secret-value")
def _():
    name, answer = new_secret("get", "first ä")
    for wanted in (name, answer["ARN"]):
        got = secrets.get_secret_value(SecretId=wanted)
        for field in ("ARN", "Name", "VersionId"):
            equal(got[field], answer[field], field)
        equal(got["SecretString"], "first ä", "SecretString")
        equal(got["VersionStages"], ["AWSCURRENT"], "VersionStages")
        within(got["CreatedDate"], now(), HOUR, "CreatedDate")
        check("SecretBinary" not in got, "SecretBinary")


@step("put-secret-value")
def _():
    name, first = new_secret("put")
    token = str(uuid.uuid4())
    for _ in range(2):
        answer = put(name, "second", ClientRequestToken=token)
        for field, want in {
            "ARN": first["ARN"],
            "Name": name,
            "VersionId": token,
            "VersionStages": ["AWSCURRENT"],
        }.items():
            equal(answer[field], want, field)
    with refused("ResourceExistsException"):
        put(name, "third", ClientRequestToken=token)
    equal(read(name), "second", "SecretString")
    equal(stages(name), {token: ["AWSCURRENT"], first["VersionId"]: ["AWSPREVIOUS"]}, "VersionIdsToStages")


@step("previous-version")
def _():
    name, first = new_secret("previous")
    put(name, "second")
    got = secrets.get_secret_value(SecretId=name, VersionStage="AWSPREVIOUS")
    equal((got["SecretString"], got["VersionId"]), ("first", first["VersionId"]), "version")
    equal(got["VersionStages"], ["AWSPREVIOUS"], "VersionStages")
    equal(read(name, VersionId=first["VersionId"]), "first", "SecretString by VersionId")
    with refused("ResourceNotFoundException"):
        read(name, VersionStage="AWSPENDING")


@step("binary-value")
def _():
    name, value = name_of("binary"), bytes(range(256))
    secrets.create_secret(Name=name, SecretBinary=value)
    made.append(name)
    got = secrets.get_secret_value(SecretId=name)
    equal(got["SecretBinary"], value, "SecretBinary")
    check("SecretString" not in got, "SecretString")


@step("update-secret-version-stage")
def _():
    name, first = new_secret("stage")
    second = put(name, "second")["VersionId"]
    first = first["VersionId"]
    secrets.update_secret_version_stage(
        SecretId=name, VersionStage="AWSCURRENT", MoveToVersionId=first, RemoveFromVersionId=second
    )
    equal(stages(name), {first: ["AWSCURRENT"], second: ["AWSPREVIOUS"]}, "VersionIdsToStages")
    equal(read(name), "first", "SecretString")
    secrets.update_secret_version_stage(SecretId=name, VersionStage="kept", MoveToVersionId=second)
    equal(read(name, VersionStage="kept"), "second", "SecretString by a stage of one's own")
    with refused("InvalidParameterException"):
        secrets.update_secret_version_stage(SecretId=name, VersionStage="AWSCURRENT", MoveToVersionId=second)


@step("replicate-secret")
def _():
    name, answer = new_secret("replicate")
    other = "eu-west-1" if region == "eu-central-1" else "eu-central-1"
    there = boto3.Session(region_name=other).client("secretsmanager")
    replicated = secrets.replicate_secret_to_regions(SecretId=name, AddReplicaRegions=[{"Region": other}])
    equal(replicated["ARN"], answer["ARN"], "ARN")
    equal([status["Region"] for status in replicated["ReplicationStatus"]], [other], "ReplicationStatus")

    def in_sync():
        status = secrets.describe_secret(SecretId=name)["ReplicationStatus"]
        return [(s["Region"], s["Status"]) for s in status] == [(other, "InSync")]

    eventually("the replica is InSync", in_sync)
    got = there.get_secret_value(SecretId=name)
    equal(got["ARN"], answer["ARN"].replace(f":{region}:", f":{other}:"), "ARN of the replica")
    equal((got["SecretString"], got["VersionId"]), ("first", answer["VersionId"]), "the replica's value")
    equal(there.describe_secret(SecretId=name)["PrimaryRegion"], region, "PrimaryRegion")
    put(name, "second")
    eventually("the replica has the new value", lambda: read(name, there) == "second")
    with refused_by(there, "InvalidRequestException"):
        put(name, "third", there)
    secrets.remove_regions_from_replication(SecretId=name, RemoveReplicaRegions=[other])

    def gone():
        with contextlib.suppress(there.exceptions.ResourceNotFoundException):
            read(name, there)
            return False
        return True

    eventually("the replica is gone", gone)


def function():
    arn = os.environ.get("OUTLAST_ROTATION_FUNCTION")
    if not arn:
        raise Skipped("OUTLAST_ROTATION_FUNCTION is not set")
    return arn


@step("rotate-secret")
def _():
    arn, value = function(), {"username": "user", "password": "first"}
    name, first = new_secret("rotate", json.dumps(value))
    version = secrets.rotate_secret(SecretId=name, RotationLambdaARN=arn)["VersionId"]
    eventually("the new version is current", lambda: stages(name).get(version) == ["AWSCURRENT"])
    secret = secrets.describe_secret(SecretId=name)
    within(secret["LastRotatedDate"], now(), HOUR, "LastRotatedDate")
    equal(secret["VersionIdsToStages"].get(first["VersionId"]), ["AWSPREVIOUS"], "stages of the first version")
    rotated = json.loads(read(name))
    equal(rotated["username"], "user", "username")
    check(rotated["password"] != "first", "the password is still the first")
    equal(json.loads(read(name, VersionStage="AWSPREVIOUS")), value, "the previous value")


@step("rotate-secret-later")
def _():
    arn = function()
    name, answer = new_secret("rotate-later", json.dumps({"username": "user", "password": "first"}))
    rules = {"AutomaticallyAfterDays": 30}
    rotated = secrets.rotate_secret(
        SecretId=name, RotationLambdaARN=arn, RotationRules=rules, RotateImmediately=False
    )
    equal((rotated["ARN"], rotated["Name"]), (answer["ARN"], name), "answer")
    secret = secrets.describe_secret(SecretId=name)
    equal(secret["RotationEnabled"], True, "RotationEnabled")
    equal(secret["RotationLambdaARN"], arn, "RotationLambdaARN")
    equal(secret["RotationRules"], rules, "RotationRules")
    within(secret["NextRotationDate"], now() + 30 * DAY, 2 * DAY, "NextRotationDate")
    equal(secrets.cancel_rotate_secret(SecretId=name)["ARN"], answer["ARN"], "ARN")
    check(not secrets.describe_secret(SecretId=name).get("RotationEnabled"), "RotationEnabled after CancelRotateSecret")
    equal(json.loads(read(name))["password"], "first", "password")


@step("list-secrets")
def _():
    names = [new_secret(f"list-{n}", Tags=[{"Key": f"list-{RUN}", "Value": str(n)}])[0] for n in range(3)]
    paginator = secrets.get_paginator("list_secrets")

    def listed(key, *values):
        filters = [{"Key": key, "Values": list(values)}]
        pages = list(paginator.paginate(Filters=filters, PaginationConfig={"PageSize": 2}))
        check(all(len(page["SecretList"]) <= 2 for page in pages), "a page of more than 2")
        return sorted(secret["Name"] for page in pages for secret in page["SecretList"])

    eventually("all are listed once, by name", lambda: listed("name", name_of("list-")) == names)
    eventually("all are listed once, by tag", lambda: listed("tag-key", f"list-{RUN}") == names)
    secret = secrets.list_secrets(Filters=[{"Key": "name", "Values": [names[1]]}])["SecretList"][0]
    equal(secret["Tags"], [{"Key": f"list-{RUN}", "Value": "1"}], "Tags")
    within(secret["CreatedDate"], now(), HOUR, "CreatedDate")
    equal(list(secret["SecretVersionsToStages"].values()), [["AWSCURRENT"]], "SecretVersionsToStages")


@step("batch-get-secret-value")
def _():
    (first, _), (second, _), missing = new_secret("batch-1", "1"), new_secret("batch-2", "2"), name_of("missing")
    answer = secrets.batch_get_secret_value(SecretIdList=[first, second, missing])
    values = {secret["Name"]: secret["SecretString"] for secret in answer["SecretValues"]}
    equal(values, {first: "1", second: "2"}, "SecretValues")
    errors = [(error["SecretId"], error["ErrorCode"]) for error in answer["Errors"]]
    equal(errors, [(missing, "ResourceNotFoundException")], "Errors")


@step("get-random-password")
def _():
    password = secrets.get_random_password()["RandomPassword"]
    equal(len(password), 32, "length")
    check(secrets.get_random_password()["RandomPassword"] != password, "the same password twice")
    password = secrets.get_random_password(PasswordLength=100, ExcludePunctuation=True, ExcludeNumbers=True)
    check(re.fullmatch(r"[A-Za-z]{100}", password["RandomPassword"]), f"password {password['RandomPassword']}")


@step("not-found")
def _():
    with refused("ResourceNotFoundException"):
        read(name_of("missing"))
    with refused("ResourceNotFoundException"):
        put(name_of("missing"), "value")
    with refused("ResourceNotFoundException"):
        secrets.describe_secret(SecretId=name_of("missing"))


@step("invalid-parameter")
def _():
    name, _ = new_secret("invalid")
    with refused("InvalidParameterException"):
        secrets.delete_secret(SecretId=name, RecoveryWindowInDays=6)
    with refused("InvalidParameterException"):
        secrets.delete_secret(SecretId=name, RecoveryWindowInDays=7, ForceDeleteWithoutRecovery=True)
    with refused("InvalidNextTokenException"):
        secrets.list_secrets(NextToken="no token")
    equal(read(name), "first", "SecretString")


@step("delete-and-restore")
def _():
    name, answer = new_secret("delete")
    deleted = secrets.delete_secret(SecretId=name, RecoveryWindowInDays=7)
    equal((deleted["ARN"], deleted["Name"]), (answer["ARN"], name), "answer")
    within(deleted["DeletionDate"], now() + 7 * DAY, HOUR, "DeletionDate")
    with refused("InvalidRequestException"):
        read(name)
    within(secrets.describe_secret(SecretId=name)["DeletedDate"], now(), 8 * DAY, "DeletedDate")
    equal(secrets.restore_secret(SecretId=name)["ARN"], answer["ARN"], "ARN")
    equal(read(name), "first", "SecretString")
    check("DeletedDate" not in secrets.describe_secret(SecretId=name), "DeletedDate after RestoreSecret")


@step("force-delete")
def _():
    name, answer = new_secret("force")
    deleted = secrets.delete_secret(SecretId=name, ForceDeleteWithoutRecovery=True)
    equal(deleted["ARN"], answer["ARN"], "ARN")
    within(deleted["DeletionDate"], now(), HOUR, "DeletionDate")

    def gone():
        with contextlib.suppress(secrets.exceptions.ResourceNotFoundException):
            secrets.describe_secret(SecretId=name)
            return False
        return True

    eventually("the secret is gone", gone)


def clean_up():
    for name in made:
        with contextlib.suppress(ClientError):
            secrets.delete_secret(SecretId=name, ForceDeleteWithoutRecovery=True)


def main(wanted):
    global secrets, region
    session = connect(STEPS, wanted)
    secrets, region = session.client("secretsmanager"), session.region_name
    return run_steps(STEPS, wanted, clean_up)
