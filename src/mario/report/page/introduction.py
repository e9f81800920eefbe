"""How the part of a study begins: what was run, and what is missing."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from mario.lab.studies.plan import Collected, CollectedCase
from mario.report.tables.rows import CONTROLS

MOST_OPEN = 5
"""Entries of a list of failures that is not folded away."""


@dataclass
class Standing:
    """How many runs of a study are done, failed and not done, and which cases have no data."""

    done: int
    failed: int
    unfinished: int
    missing: list[CollectedCase] = field(default_factory=list)

    @classmethod
    def of(cls, study: Collected) -> "Standing":
        there = [case for case in study.cases if not case.missing]
        return cls(
            done=sum(len(case.results) for case in study.cases),
            failed=sum(len(case.failed) for case in there),
            unfinished=sum(case.unfinished for case in there),
            missing=[case for case in study.cases if case.missing],
        )

    @property
    def words(self) -> str:
        parts = [f"{self.done} {_runs(self.done)} done"]
        parts += [f"{self.failed} failed"] if self.failed else []
        parts += [f"{self.unfinished} not done"] if self.unfinished else []
        if self.missing:
            parts.append(f"no data for {', '.join(case.name for case in self.missing)}")
        return ", ".join(parts)


def introduction(study: Collected) -> str:
    """What was run, and whatever stands in the way of reading the figures: a quick form, data missing, runs failed."""
    return "\n".join(
        part
        for part in (_quick(study), _note(study), _facts(study), _missing(study), _faults(study), _failed(study))
        if part
    )


def _quick(study: Collected) -> str:
    if not study.plan.quick:
        return ""
    return (
        '<p class="quick" role="note"><b>A quick form: these figures mean nothing.</b> Every row is here, but trained '
        "for a few steps with few seeds, to see that all of it works. Nothing below can stand beside the paper’s.</p>"
    )


def _note(study: Collected) -> str:
    return f"<p>{escape(study.plan.note)}</p>" if study.plan.note else ""


def _facts(study: Collected) -> str:
    results = [result for case in study.cases for result in case.results]
    facts = {
        "Datasets": ", ".join(case.name for case in study.cases),
        "Schedule": _schedule(study.cases),
        "Split seeds and seeds": _pairs(study.cases),
        "Runs": Standing.of(study).words + _took(results),
    }
    items = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in facts.items() if value)
    command = study.plan.command
    repeat = f"<pre><code>{escape(command)}</code></pre>" if command else ""
    return f'<dl class="facts">{items}</dl>{repeat}'


def _schedule(cases: Iterable[CollectedCase]) -> str:
    """Steps and checkpoints of what was trained, case by case where they differ."""
    by_case = {}
    for case in cases:
        trained = [r for r in case.results if r.get("method") not in CONTROLS and r.get("steps")]
        if trained:
            steps, checkpoints = (values(r.get(name) for r in trained) for name in ("steps", "checkpoints"))
            by_case[case.name] = f"{steps} optimizer steps, scores taken at {checkpoints} checkpoints"
    return _alike(by_case)


def _pairs(cases: Iterable[CollectedCase]) -> str:
    by_case = {}
    for case in cases:
        if case.results:
            splits, seeds = (values(r.get(name) for r in case.results) for name in ("split_seed", "seed"))
            by_case[case.name] = f"splits {splits}; seeds {seeds}; {case.asked} {_runs(case.asked)} a row asked for"
    return _alike(by_case)


def _alike(by_case: Mapping[str, str]) -> str:
    """What is said of each case, once for those of which the same is said."""
    cases: dict[str, list[str]] = {}
    for name, said in by_case.items():
        cases.setdefault(said, []).append(name)
    if len(cases) < 2:
        return "".join(cases)
    return ". ".join(f"{', '.join(names)}: {said}" for said, names in cases.items())


def _took(results: Sequence[Mapping[str, Any]]) -> str:
    seconds = sum(result.get("seconds") or 0.0 for result in results)
    if not seconds:
        return ""
    shown = f"{seconds / 60:.1f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
    return f"; {shown} of training and evaluation in all"


def _missing(study: Collected) -> str:
    cases = [case for case in study.cases if case.missing]
    if not cases:
        return ""
    items = "".join(f"<li>{escape(case.name)}: {_code(str(case.missing))}</li>" for case in cases)
    return f'<div class="missing" role="note"><b>The data is not at hand.</b><ul>{items}</ul></div>'


def _code(text: str) -> str:
    """Text in which what stands between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _faults(study: Collected) -> str:
    found: dict[str, list[str]] = {}
    for case in study.cases:
        for fault in dict.fromkeys(fault for result in case.results for fault in result.get("faults") or ()):
            found.setdefault(fault, []).append(case.name)
    return "".join(
        f'<p class="fault" role="note"><b>Known fault of {escape(", ".join(names))}:</b> {_code(fault)}</p>'
        for fault, names in found.items()
    )


def _failed(study: Collected) -> str:
    failed = [(case.name, *run) for case in study.cases for run in case.failed]
    if not failed:
        return ""
    items = "".join(
        f"<li>{escape(label)} on {escape(name)}, split {split_seed}, seed {seed}: <code>{escape(reason)}</code></li>"
        for name, label, split_seed, seed, reason in failed
    )
    return folded("failed", f"{len(failed)} {_runs(len(failed))} failed", items, len(failed))


def folded(kind: str, heading: str, items: str, count: int) -> str:
    """A list that is open while it is short."""
    shown = " open" if count <= MOST_OPEN else ""
    return f'<details class="{kind}"{shown}><summary><b>{heading}</b></summary><ul>{items}</ul></details>'


def _runs(count: int) -> str:
    return "run" if count == 1 else "runs"


def values(found: Iterable[Any]) -> str:
    """What was found, each once: numbers in order of size, and a series of whole numbers as its ends.

    Example:
        >>> values([2, 0, 1, 1]), values(["b", None, "a"])
        ('0 to 2', 'b, a')
    """
    known = list(dict.fromkeys(str(value) for value in found if value is not None))
    if known and all(re.fullmatch(r"\d+", value) for value in known):
        numbers = sorted(map(int, known))
        if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
            return f"{numbers[0]} to {numbers[-1]}"
        return ", ".join(map(str, numbers))
    return ", ".join(known)
