"""Checks, and the loop over the steps, of kms_whole.py and secrets_steps.py."""

import contextlib
import datetime
import os
import sys
import time

KEEP = {"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_PROFILE"}
for name in [n for n in os.environ if n.startswith("AWS_") and n not in KEEP]:
    del os.environ[name]

import boto3
from botocore.exceptions import ClientError


class Skipped(Exception):
    """The step cannot be done here; the text says why."""


def check(condition, text):
    if not condition:
        raise AssertionError(text)


def equal(got, want, what):
    check(got == want, f"{what}: got {got!r}, want {want!r}")


def within(got, want, tolerance, what):
    check(abs(got - want) < tolerance, f"{what}: got {got}, want about {want}")


def now():
    return datetime.datetime.now(datetime.timezone.utc)


@contextlib.contextmanager
def refused_by(client, *codes):
    """The block must be answered with one of these errors; where the model has it, by its own class."""
    try:
        yield
    except ClientError as e:
        code = e.response["Error"]["Code"]
        check(code in codes, f"got {code} ({e.response['Error'].get('Message')}), want {' or '.join(codes)}")
        modelled = {shape.error_code: shape.name for shape in client.meta.service_model.error_shapes}
        if code in modelled:
            check(isinstance(e, getattr(client.exceptions, modelled[code])), f"{code} came as {type(e).__name__}")
        return
    raise AssertionError(f"no {' or '.join(codes)}")


def eventually(what, condition):
    """Waits for what may take effect later; AWS promises no more than that."""
    until = time.monotonic() + 60
    while not (result := condition()):
        check(time.monotonic() < until, f"{what}: not within 60 seconds")
        time.sleep(0.5)
    return result


def reason(error):
    return " ".join(f"{type(error).__name__}: {error}".split())[:400]


def connect(steps, wanted):
    """A session of the profile, if the steps and the environment are as they must be."""
    unknown = [name for name in wanted if name not in steps]
    if unknown:
        sys.exit(f"unknown step {unknown[0]}; known: {' '.join(steps)}")
    missing = sorted(KEEP - set(os.environ))
    if missing:
        sys.exit(f"the environment lacks {', '.join(missing)}")
    session = boto3.Session()
    if "amazonaws" in session.client("kms").meta.endpoint_url:
        sys.exit("the profile has no endpoint_url")
    return session


def run_steps(steps, wanted, clean_up):
    passed = failed = skipped = 0
    for name in wanted or steps:
        try:
            steps[name]()
        except Skipped as why:
            skipped += 1
            print(f"skipped {name}: {why}", flush=True)
        except Exception as error:
            failed += 1
            print(f"FAILED {name}: {reason(error)}", flush=True)
        else:
            passed += 1
            print(f"ok {name}", flush=True)
    clean_up()
    print(f"{passed} steps passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0
