"""`make sbom`: what rvq is made of, as CycloneDX 1.5 JSON on standard output.

Owns the walk through what is installed: rvq, its dependencies, those of the extras that are asked for, and theirs.
Versions and licences are those of the installed packages; what is missing is named on standard error, and fails.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = "rvq"
FOR_WORK_ON_RVQ = frozenset({"dev", "bench", "audit"})
"""Extras that nobody installs to use it."""


def extras_of(name: str) -> list[str]:
    """Those that users install."""
    return sorted(set(distribution(name).metadata.get_all("Provides-Extra") or ()) - FOR_WORK_ON_RVQ)


def needed_by(found: Distribution, extras: Iterable[str]) -> Iterator[Requirement]:
    """What it needs here: on this platform, with these extras."""
    for line in found.requires or ():
        requirement = Requirement(line)
        for extra in ("", *extras):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                yield requirement
                break


def walk(root: str, extras: Iterable[str]) -> tuple[dict[str, Distribution], dict[str, set[str]], list[str]]:
    """Everything that it takes, who needs whom, and what is not installed."""
    found: dict[str, Distribution] = {}
    needs: dict[str, set[str]] = {}
    missing: list[str] = []
    waiting = [(canonicalize_name(root), frozenset(extras))]
    seen = set(waiting)
    while waiting:
        name, wanted = waiting.pop()
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            missing.append(name)
            continue
        for requirement in needed_by(found[name], wanted):
            other = canonicalize_name(requirement.name)
            needs.setdefault(name, set()).add(other)
            one = (other, frozenset(requirement.extras))
            if one not in seen:
                seen.add(one)
                waiting.append(one)
    return found, needs, sorted(set(missing))


def licence_of(found: Distribution) -> str:
    """As the package says it: an SPDX expression, or its classifier, or its words; "unknown" if it says nothing."""
    said = found.metadata.get("License-Expression")
    if said:
        return str(said)
    classifiers = [line for line in found.metadata.get_all("Classifier") or () if line.startswith("License ::")]
    if classifiers:
        return " OR ".join(line.split(" :: ")[-1] for line in classifiers)
    words = (found.metadata.get("License") or "").strip().splitlines()
    return words[0].strip() if words else "unknown"


def component(found: Distribution, kind: str) -> dict[str, Any]:
    name = canonicalize_name(found.name)
    purl = f"pkg:pypi/{name}@{found.version}"
    licence = licence_of(found)
    is_spdx = bool(found.metadata.get("License-Expression"))
    licences = [{"expression": licence}] if is_spdx else [{"license": {"name": licence}}]
    return {
        "type": kind,
        "bom-ref": purl,
        "name": name,
        "version": found.version,
        "licenses": licences,
        "purl": purl,
    }


def document(root: str, extras: Iterable[str], made_at: datetime) -> tuple[dict[str, Any], list[str]]:
    """The bill of materials, and what could not be in it because it is not installed."""
    found, needs, missing = walk(root, extras)
    parts = {name: component(one, "library") for name, one in sorted(found.items())}
    refs = {name: part["bom-ref"] for name, part in parts.items()}
    top = canonicalize_name(root)
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        # The same parts have the same number, whenever it is made.
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, ' '.join(sorted(refs.values())))}",
        "version": 1,
        "metadata": {
            "timestamp": made_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": parts[top] | {"type": "application"},
        },
        "components": [part for name, part in parts.items() if name != top],
        "dependencies": [
            {"ref": refs[name], "dependsOn": sorted(refs[other] for other in needs.get(name, ()) if other in refs)}
            for name in parts
        ],
    }
    return bill, missing


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tools/sbom.py", description="rvq's bill of materials, as CycloneDX JSON")
    every = extras_of(ROOT)
    parser.add_argument("--extras", default=",".join(every), help=f"comma separated (all: {','.join(every)})")
    extras = [extra for extra in parser.parse_args(arguments).extras.split(",") if extra]
    if unknown := sorted(set(extras) - set(every)):
        parser.error(f"no extra {unknown[0]!r}: choose of {', '.join(every)}")
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    made_at = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    bill, missing = document(ROOT, extras, made_at)
    if missing:
        install = f"pip install '.[{','.join(extras)}]'"
        print(f"not installed: {', '.join(missing)}. Install all ({install}) or leave out extras", file=sys.stderr)
        return 1
    print(json.dumps(bill, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
