"""Writes the models in this folder from the service models that botocore carries.

    python extract.py kms acm-pca acm sts rolesanywhere secretsmanager transfer

Facts only: names, shapes, members, constraints, enumerations, errors and pagination. No documentation text is taken
over. The version of botocore is that of `tests/interop/peers/python-requirements.txt`; another one is refused, so that a new model
is a decision and a diff.
"""

import json
import pathlib
import re
import sys

import botocore
import botocore.session

HERE = pathlib.Path(__file__).parent
PEERS = HERE / "../../../tests/interop/peers/python-requirements.txt"

CONSTRAINTS = ("type", "min", "max", "pattern", "enum", "sensitive", "union", "timestampFormat")
TRAITS = ("location", "locationName", "queryName", "flattened", "idempotencyToken", "streaming", "jsonvalue")


def member(value):
    """A member of a structure, a list or a map: its shape, and how it goes over the wire where the model says so."""
    return {"shape": value["shape"]} | {key: value[key] for key in TRAITS if key in value}


def shape(value):
    out = {key: value[key] for key in CONSTRAINTS if key in value}
    for key in ("member", "key", "value"):
        if key in value:
            out[key] = member(value[key])
    if "members" in value:
        out["members"] = {name: member(one) for name, one in value["members"].items()}
        if value.get("required"):
            out["required"] = value["required"]
    if value.get("exception"):
        error = value.get("error", {})
        out["error"] = {
            "code": error.get("code"),
            "status": error.get("httpStatusCode", 500 if value.get("fault") else 400),
        }
        if out["error"]["code"] is None:
            del out["error"]["code"]
    return out


def reached(model, names):
    """The shapes that can be reached from these, in the model's order."""
    found, todo = set(), list(names)
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found.add(name)
        value = model["shapes"][name]
        todo += [one["shape"] for one in value.get("members", {}).values()]
        todo += [value[key]["shape"] for key in ("member", "key", "value") if key in value]
    return [name for name in model["shapes"] if name in found]


def operation(value, pages):
    out = {}
    for key in ("input", "output"):
        if key in value:
            out[key] = value[key]["shape"]
            if "resultWrapper" in value[key]:
                out["resultWrapper"] = value[key]["resultWrapper"]
    out["errors"] = [error["shape"] for error in value.get("errors", [])]
    if value["http"] != {"method": "POST", "requestUri": "/"}:
        out["http"] = value["http"]
    if value.get("idempotent"):
        out["idempotent"] = True
    if pages:
        out["pages"] = {key: pages[key] for key in ("input_token", "output_token", "limit_key", "result_key") if key in pages}
    return out


def extract(loader, service):
    model = loader.load_service_model(service, "service-2")
    try:
        pages = loader.load_service_model(service, "paginators-1")["pagination"]
    except botocore.exceptions.UnknownServiceError:
        pages = {}
    meta = model["metadata"]
    keys = ("apiVersion", "endpointPrefix", "serviceFullName", "signingName", "targetPrefix", "protocols", "jsonVersion", "xmlNamespace")
    operations = {name: operation(value, pages.get(name)) for name, value in sorted(model["operations"].items())}
    roots = [one[key] for one in operations.values() for key in ("input", "output") if key in one]
    roots += [name for one in operations.values() for name in one["errors"]]
    return {
        "botocore": botocore.__version__,
        "metadata": {key: meta[key] for key in keys if key in meta},
        "operations": operations,
        "shapes": {name: shape(model["shapes"][name]) for name in reached(model, roots)},
    }


def one_line(value):
    return json.dumps(value, ensure_ascii=True)


def text(model):
    """One operation, scalar or member a line, so that a new version of a model reads well as a diff."""
    def block(items, indent):
        pad = " " * indent
        return ",\n".join(f"{pad}{one_line(key)}: {value}" for key, value in items)

    def shape_text(value):
        if not value.get("members"):
            return one_line(value)
        rest = [(key, one_line(one)) for key, one in value.items() if key != "members"]
        members = block(((name, one_line(one)) for name, one in value["members"].items()), 8)
        return "{\n" + block(rest + [("members", "{\n" + members + "\n      }")], 6) + "\n    }"

    parts = [
        ("botocore", one_line(model["botocore"])),
        ("metadata", one_line(model["metadata"])),
        ("operations", "{\n" + block(((k, one_line(v)) for k, v in model["operations"].items()), 4) + "\n  }"),
        ("shapes", "{\n" + block(((k, shape_text(v)) for k, v in model["shapes"].items()), 4) + "\n  }"),
    ]
    return "{\n" + block(parts, 2) + "\n}\n"


def main():
    wanted = re.search(r"^botocore==(\S+)", PEERS.read_text(), re.M).group(1)
    if botocore.__version__ != wanted:
        sys.exit(f"botocore {wanted} is wanted, this is {botocore.__version__}")
    loader = botocore.session.Session().get_component("data_loader")
    for service in sys.argv[1:]:
        model = extract(loader, service)
        # What was written says what was read.
        assert json.loads(text(model)) == model
        (HERE / f"{service.replace('-', '_')}.json").write_text(text(model))


main()
