"""`make audit`: are there known holes in what is installed? Runs pip-audit, and says how much of it could be looked up.

Owns the verdict: pip-audit calls it a success when no package could be looked up. Knows no holes itself.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

CLEAN, HOLES, UNKNOWN = 0, 1, 3
"""Exit codes. What could not be looked up is not clean."""

SERVICES = ("pypi", "osv")
"""Where advisories are asked for, one after the other until one answers."""
SECONDS = 300
OURS = "rvq"


@dataclass(slots=True)
class Verdict:
    """What one service says of the packages that are installed."""

    audited: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    holes: list[str] = field(default_factory=list)

    @property
    def code(self) -> int:
        if self.holes:
            return HOLES
        return CLEAN if self.audited and not self.skipped else UNKNOWN


def judge(report: dict[str, Any]) -> Verdict:
    """pip-audit's JSON, read strictly: what has no answer counts as skipped."""
    verdict = Verdict()
    for package in report["dependencies"]:
        name = package["name"]
        if name == OURS:
            continue
        if "skip_reason" in package or "vulns" not in package:
            verdict.skipped.append(name)
            continue
        verdict.audited.append(name)
        for hole in package["vulns"]:
            fixed = ", ".join(hole.get("fix_versions", ())) or "no version yet"
            verdict.holes.append(f"{name} {package['version']}: {hole['id']}, fixed in {fixed}")
    return verdict


def ask(service: str) -> Verdict | str:
    """The verdict by one service; or why there is none."""
    command = [sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off", "-s", service]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"no answer in {SECONDS} s"
    try:
        return judge(json.loads(done.stdout))
    except (ValueError, KeyError, TypeError):
        if "No module named" in done.stderr:
            return "pip-audit is not installed: pip install -e '.[audit]'"
        return (done.stderr.strip().splitlines() or ["it said nothing"])[-1]


def _some(names: Sequence[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def main(services: Sequence[str] = SERVICES) -> int:
    for service in services:
        verdict = ask(service)
        if isinstance(verdict, str):
            print(f"{service}: cannot be asked: {verdict}", file=sys.stderr)
            continue
        all_of_them = len(verdict.audited) + len(verdict.skipped)
        print(
            f"{service}: {len(verdict.audited)} of {all_of_them} packages looked up, {len(verdict.holes)} holes known"
        )
        for hole in verdict.holes:
            print(f"  {hole}: install that (see the range in pyproject.toml)")
        if verdict.code != UNKNOWN:
            return verdict.code
        print(f"{service}: could not look up {_some(verdict.skipped)}", file=sys.stderr)
    print(
        "NOT AUDITED: no advisory service could be asked about everything. Run `make audit` where the network reaches"
        f" one of them ({', '.join(services)})",
        file=sys.stderr,
    )
    return UNKNOWN


if __name__ == "__main__":
    sys.exit(main())
