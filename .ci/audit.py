"""Compare the pins of a file with databases of known vulnerabilities: ``python .ci/audit.py [constraints.txt]``.

Fails on a finding. A database that cannot be reached is no finding, but what was not looked up is said: pip-audit alone
would say that it found nothing.
"""

import datetime
import importlib.metadata
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet

SERVICES = ("osv", "pypi")
SECONDS = 300


def main() -> int:
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "constraints.txt")
    pins = dict(re.findall(r"^([\w.-]+)==([^\s;#]+)", path.read_text(encoding="utf-8"), flags=re.MULTILINE))
    findings: list[str] = []
    compared: set[str] = set()
    for service in SERVICES:
        found, seen, said = online(path, service)
        print(f"{service}: {said or f'{len(seen)} of {len(pins)} pins looked up, {len(found)} vulnerable'}")
        findings += found
        compared |= seen
        if len(seen) == len(pins):
            break  # both services have the same advisories
    found, said = offline(pins)
    print(said)
    findings += found
    if len(compared) < len(pins):
        print(f"{len(pins) - len(compared)} of {len(pins)} pins were compared with no current database")
    for finding in dict.fromkeys(findings):
        print(f"VULNERABLE {finding}")
    return 1 if findings else 0


def online(path: Path, service: str) -> tuple[list[str], set[str], str]:
    """What pip-audit finds, the names that it could look up, and why it could not, if that is so."""
    options = ["--no-deps", "--disable-pip", "--progress-spinner", "off", "--timeout", "10", "--format", "json"]
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(path), "--vulnerability-service", service]
    try:
        ended = subprocess.run([*command, *options], capture_output=True, text=True, check=False, timeout=SECONDS)
        listed = json.loads(ended.stdout)["dependencies"]
    except subprocess.TimeoutExpired:
        return [], set(), f"not reachable: no answer in {SECONDS} seconds"
    except (ValueError, KeyError, TypeError):
        lines = ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"]
        return [], set(), f"not reachable: {lines[-1][:200]}"
    seen = {entry["name"] for entry in listed if "version" in entry}
    found = [
        f"{entry['name']}=={entry['version']}: {fault['id']}, fixed in {', '.join(fault['fix_versions']) or 'none'}"
        for entry in listed
        for fault in entry.get("vulns", ())
    ]
    skipped = sorted({str(entry.get("skip_reason", "")).partition(":")[0] for entry in listed} - {""})
    return found, seen, "" if seen else f"not reachable: {'; '.join(skipped)[:200] or 'nothing was looked up'}"


def offline(pins: dict[str, str]) -> tuple[list[str], str]:
    """What the database in the package safety-db finds. It is years old, and needs no network."""
    there = importlib.util.find_spec("safety_db")  # its own import looks in the wrong place
    if there is None or not there.submodule_search_locations:
        return [], "safety-db: not installed"
    known = json.loads((Path(there.submodule_search_locations[0]) / "insecure.json").read_text(encoding="utf-8"))
    found, entries = [], 0
    for name, version in pins.items():
        for ranges in known.get(re.sub(r"[-_.]+", "-", name).lower(), ()):
            entries += 1
            try:
                hit = SpecifierSet(ranges).contains(version, prereleases=True)
            except InvalidSpecifier:
                print(f"safety-db: the entry '{ranges}' of {name} cannot be read")
                continue
            found += [f"{name}=={version}: {ranges} in safety-db"] if hit else []
    return found, f"safety-db of {_date()}: {len(pins)} pins compared with {entries} entries, {len(found)} vulnerable"


def _date() -> str:
    try:
        return datetime.date(*map(int, importlib.metadata.version("safety-db").split(".")[:3])).isoformat()
    except (importlib.metadata.PackageNotFoundError, ValueError, TypeError):
        return "an unknown date"


if __name__ == "__main__":
    sys.exit(main())
