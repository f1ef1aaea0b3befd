"""A rotation function in the form of AWS's template: a handler of events with the four steps, on boto3.

    rotation_function.py program CA_BUNDLE             one event from standard input, as a program of [rotation]
    rotation_function.py serve PORT_FILE CA_BUNDLE     behind Lambda's invocation interface, as the runtime interface
                                                       emulator has it; writes its port to the file

What AWS gives a function in its environment is in the program's environment; the served function reads it from
`environment.json` beside the file of its port.
"""

import http.server
import json
import os
import pathlib
import sys

import boto3
import botocore.exceptions


def client(environment, bundle):
    return boto3.client(
        "secretsmanager",
        region_name=environment["AWS_REGION"],
        endpoint_url=environment["AWS_ENDPOINT_URL"],
        aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=environment.get("AWS_SESSION_TOKEN"),
        verify=bundle,
    )


def handle(service, event):
    arn, token, step = event["SecretId"], event["ClientRequestToken"], event["Step"]
    metadata = service.describe_secret(SecretId=arn)
    if not metadata["RotationEnabled"]:
        raise ValueError(f"secret {arn} is not enabled for rotation")
    versions = metadata["VersionIdsToStages"]
    if token not in versions:
        raise ValueError(f"secret version {token} has no stage for rotation of secret {arn}")
    if "AWSCURRENT" in versions[token]:
        return
    if "AWSPENDING" not in versions[token]:
        raise ValueError(f"secret version {token} is not set as AWSPENDING for rotation of secret {arn}")
    if step == "createSecret":
        current = json.loads(service.get_secret_value(SecretId=arn, VersionStage="AWSCURRENT")["SecretString"])
        try:
            service.get_secret_value(SecretId=arn, VersionId=token, VersionStage="AWSPENDING")
        except botocore.exceptions.ClientError as error:
            if error.response["Error"]["Code"] != "ResourceNotFoundException":
                raise
            current["password"] = service.get_random_password(ExcludeCharacters="/@\"'\\")["RandomPassword"]
            service.put_secret_value(
                SecretId=arn,
                ClientRequestToken=token,
                SecretString=json.dumps(current),
                VersionStages=["AWSPENDING"],
                RotationToken=event["RotationToken"],
            )
    elif step in ("setSecret", "testSecret"):
        # RotateImmediately=false tests with a version that shows the current value.
        pending = json.loads(service.get_secret_value(SecretId=arn, VersionId=token, VersionStage="AWSPENDING")["SecretString"])
        assert len(pending["password"]) == 32 or step == "testSecret"
    elif step == "finishSecret":
        for version, stages in versions.items():
            if "AWSCURRENT" in stages:
                if version == token:
                    return
                service.update_secret_version_stage(
                    SecretId=arn, VersionStage="AWSCURRENT", MoveToVersionId=token, RemoveFromVersionId=version
                )
                return
    else:
        raise ValueError(f"invalid step {step}")


def serve(port_file, bundle):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            event = json.loads(self.rfile.read(int(self.headers["content-length"])))
            environment = json.loads(pathlib.Path(port_file).with_name("environment.json").read_text())
            try:
                handle(client(environment, bundle), event)
                answer = None
            except Exception as error:
                answer = {"errorType": type(error).__name__, "errorMessage": str(error)}
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    beside = pathlib.Path(port_file + ".new")
    beside.write_text(str(server.server_port))
    beside.rename(port_file)
    server.serve_forever()


if sys.argv[1] == "serve":
    serve(*sys.argv[2:])
else:
    handle(client(os.environ, sys.argv[2]), json.load(sys.stdin))
