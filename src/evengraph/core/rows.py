"""Rows of a store: a job, and how it ended."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import cached_property
from sys import intern
from typing import Any, Literal

STATUSES = ("done", "failed")


class DamagedRowError(ValueError):
    """A row that is not as it was written."""


@dataclass(frozen=True, kw_only=True)
class JobSpec:
    """Everything that defines a run; all parameters are listed, defaults included."""

    dataset: str
    imbalance: str
    imbalance_fields: Mapping[str, Any]
    method: str
    method_fields: Mapping[str, Any]
    seed: int

    @cached_property
    def stem(self) -> str:
        """The job without its seed, as text."""
        parts = [self.dataset, self.imbalance, _sorted(_normalize(self.imbalance_fields))]
        return "\n".join([*parts, self.method, _sorted(_normalize(self.method_fields))])

    @cached_property
    def key(self) -> str:
        """Hash of the job: equal for equal jobs only."""
        return hashlib.sha256(f"{self.stem}\n{self.seed}".encode()).hexdigest()[:20]

    def with_seed(self, seed: int) -> JobSpec:
        """The same job with another seed; much faster than a new job."""
        job, put = object.__new__(JobSpec), object.__setattr__
        put(job, "dataset", self.dataset)  # in one order for all: they then share their names
        put(job, "imbalance", self.imbalance)
        put(job, "imbalance_fields", self.imbalance_fields)
        put(job, "method", self.method)
        put(job, "method_fields", self.method_fields)
        put(job, "seed", seed)
        put(job, "stem", self.stem)
        return job


@dataclass(frozen=True, kw_only=True)
class Row:
    """A finished job with its outcome, or the reason why it failed.

    `outcome` holds the fields of a Record without the history of its epochs.
    """

    job: JobSpec
    status: Literal["done", "failed"] = "done"
    reason: str = ""
    outcome: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    created: str = ""

    @property
    def done(self) -> bool:
        """Whether the run succeeded."""
        return self.status == "done"

    def flat(self) -> dict[str, Any]:
        """One line of a table: names and scalar values, without per-class results."""
        job, outcome = self.job, dict(self.outcome.items())
        names = ("validation", "best_epoch", "epochs", "seconds", "memory")
        return {
            "dataset": job.dataset,
            "imbalance": job.imbalance,
            **{f"imbalance.{name}": value for name, value in job.imbalance_fields.items()},
            "method": job.method,
            **{f"method.{name}": value for name, value in job.method_fields.items()},
            "seed": job.seed,
            "status": self.status,
            "reason": self.reason,
            **outcome.get("metrics", {}),
            **{name: outcome.get(name) for name in names},
            "commit": self.environment.get("commit"),
            "device": self.environment.get("device"),
            "created": self.created,
            "key": job.key,
        }

    def columns(self) -> tuple[Any, ...]:
        """The row as the table `runs` holds it."""
        job = self.job
        return (
            job.key,
            job.dataset,
            job.imbalance,
            _sorted(job.imbalance_fields),
            job.method,
            _sorted(job.method_fields),
            job.seed,
            self.status,
            self.reason,
            json.dumps(dict(self.outcome)),
            _sorted(self.environment),
            self.created or datetime.now(UTC).isoformat(timespec="seconds"),
        )


class LazyOutcome(Mapping[str, Any]):
    """An outcome as text, parsed at each use: a tenth of the memory."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def _content(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.text)
        return content

    def __getitem__(self, name: str) -> Any:
        return self._content()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._content())

    def __len__(self) -> int:
        return len(self._content())

    def items(self) -> Any:
        """All parts, parsed once."""
        return self._content().items()

    def __repr__(self) -> str:
        return repr(self._content())


class LazyParts(LazyOutcome):
    """Some parts of an outcome, as a list in JSON that begins with their values."""

    __slots__ = ("parts",)

    def __init__(self, text: str, parts: Sequence[str]) -> None:
        super().__init__(text)
        self.parts = parts

    def _content(self) -> dict[str, Any]:
        values = zip(self.parts, json.loads(self.text), strict=False)
        return {name: value for name, value in values if value is not None}


class RowReader:
    """Rows from columns. Jobs and environments that recur are parsed once."""

    def __init__(self) -> None:
        self._jobs: dict[tuple[Any, ...], JobSpec] = {}
        self._environments: dict[Any, Mapping[str, Any]] = {}

    def read(self, columns: Sequence[Any], outcome: Mapping[str, Any]) -> Row:
        """One row from the columns of the table but the outcome; raises DamagedRowError."""
        _, *stem, seed, status, reason, environment, created = columns
        if status not in STATUSES:
            raise DamagedRowError("status is neither done nor failed")
        job = self._jobs.get(key := tuple(stem)) or self._new_job(key)
        if environment not in self._environments:
            self._environments[environment] = _parsed("environment", environment)
        return Row(
            job=job.with_seed(_check("seed", seed, int)),
            status="done" if status == "done" else "failed",  # not one string per row
            reason=_check("reason", reason, str),
            outcome=outcome,
            environment=self._environments[environment],
            created=intern(_check("created", created, str)),
        )

    def _new_job(self, stem: tuple[Any, ...]) -> JobSpec:
        names = [item.name for item in fields(JobSpec)]
        values = {name: _check(name, text, str) for name, text in zip(names, stem, strict=False)}
        for name in ("imbalance_fields", "method_fields"):
            values[name] = _parsed(name, values[name])
        self._jobs[stem] = JobSpec(**values, seed=0)
        return self._jobs[stem]


def read_setting(dataset: Any, imbalance: Any, fields: Any, method: Any) -> dict[str, Any]:
    """The parameters of the protocol of a setting; raises DamagedRowError if a part is no text."""
    for name, value in {"dataset": dataset, "imbalance": imbalance, "method": method}.items():
        _check(name, value, str)
    return _parsed("imbalance_fields", fields)


def check_outcome(text: Any, *, done: bool) -> None:
    """Raise DamagedRowError for an outcome that is not as it was written."""
    outcome = _parsed("outcome", text)
    if done and not isinstance(outcome.get("metrics"), dict):
        raise DamagedRowError("outcome has no metrics")
    if done and not isinstance(outcome.get("validation"), int | float):
        raise DamagedRowError("outcome has no validation score")


def part_of_outcome(text: str, parts: Sequence[str], *, whole: bool) -> Mapping[str, Any]:
    """Some parts of an outcome, without those it lacks.

    Args:
        text: A JSON list that begins with their values if `whole`, else all of the outcome.
        parts: Their names.
        whole: Whether the database could extract them; it cannot read NaN.
    """
    if whole:
        return LazyParts(text, parts)
    content = json.loads(text)
    return {name: content[name] for name in parts if content.get(name) is not None}


def _check(name: str, value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise DamagedRowError(f"{name} is {_what(value)}")
    return value


def _what(value: Any) -> str:
    return "no UTF-8 text" if isinstance(value, bytes) else f"{value!r:.30}"


def _parsed(name: str, text: Any) -> dict[str, Any]:
    try:
        value = json.loads(_check(name, text, str))
    except (ValueError, RecursionError) as error:
        if isinstance(error, DamagedRowError):
            raise
        raise DamagedRowError(f"{name} is not JSON") from None
    if not isinstance(value, dict):
        raise DamagedRowError(f"{name} is not a JSON object")
    return value


def _normalize(params: Mapping[str, Any]) -> dict[str, Any]:
    """Turn integral floats into integers: 1 and 1.0 are the same parameter."""
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in params.items()
    }


def _sorted(params: Mapping[str, Any]) -> str:
    """JSON with sorted keys, equal for equal parameters."""
    return json.dumps(dict(params), sort_keys=True)
