"""``parse_spec`` and others turn the words of a TOML file or of options into checked values.

A *spec* is a mapping with the keys ``property``, ``bound``, ``horizon`` and others.  This module
knows which keys there are and what they become.  A complete file::

    property = "demographic-parity"
    bound = "0.1"
    horizon = 100

    [groups]            # shares of the groups, for the agnostic input model
    a = 0.325
    b = 0.675

``inputs = "recorded.csv"`` instead of ``[groups]`` estimates the input model from records.
``periodic = "dynamic"`` and ``period = 50`` instead of ``horizon`` describe a periodic policy.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairshield.base.counts import Counts, Group, unknown_group
from fairshield.base.errors import InvalidValueError, argument, called
from fairshield.base.types import Progress
from fairshield.inputs import InputModel
from fairshield.periodic import PeriodicPolicy, kind_of
from fairshield.policy import Policy
from fairshield.records import Record, ScoreRule, declared
from fairshield.records.lines import open_lines
from fairshield.records.reading import Reading
from fairshield.spec import KINDS, Property, offered_kinds, parameters_of, property_from_dict
from fairshield.synthesis import Method, synthesize

WINDOW_KEYS = ("horizon", "start", "checkpoints", "spread", "method", "endgame", "trust_support")
AGNOSTIC_KEYS = ("groups", "cost", "outcomes")
READING_KEYS = (
    "columns", "format", "separator", "decimal", "encoding", "yes_words", "no_words", "threshold",
)  # fmt: skip
RECORDED_KEYS = ("inputs", "cost", "bins", "smoothing", "names", *READING_KEYS)


@dataclass(frozen=True, kw_only=True)
class Spec:
    """Spec holds everything that a synthesis needs."""

    prop: Property
    inputs: InputModel
    horizon: int
    start: Counts | None = None
    checkpoints: tuple[int, ...] = ()
    spread: float = 1.0
    method: Method = "auto"
    endgame: int | None = None
    trust_support: bool = False

    def synthesize(self, **options: Any) -> Policy:
        """The cheapest policy; ``options`` are those of :func:`fairshield.synthesize`."""
        window = {key: getattr(self, key) for key in WINDOW_KEYS}
        return synthesize(self.prop, self.inputs, **window, **options)


# Files and options --------------------------------------------------------------------------


def periodic_keys() -> tuple[str, ...]:
    """Keys of periodic policies, the options of every kind included."""
    options = (name for one in PeriodicPolicy.kinds().values() for name in one.option_names())
    return ("periodic", "period", *dict.fromkeys(options))


def known_keys() -> tuple[str, ...]:
    """All keys that a spec may have, those of registered properties included."""
    of_inputs = (*AGNOSTIC_KEYS, *RECORDED_KEYS)
    words = ["property", *_property_keys(), *WINDOW_KEYS, *periodic_keys(), *of_inputs]
    return tuple(dict.fromkeys(words))


def read_spec(path: str | Path) -> dict[str, Any]:
    """The words of a TOML file, or of standard input; a path in it is relative to the file."""
    source = Path(path)
    try:
        with open_lines(path) as lines:
            data = tomllib.loads("".join(lines))
    except tomllib.TOMLDecodeError as error:
        raise InvalidValueError(f"{source}: not TOML: {error}") from None
    unknown = [key for key in data if key not in known_keys()]
    if unknown:
        raise InvalidValueError(
            f"{source}: unknown key {unknown[0]!r}: known are {', '.join(known_keys())}"
        )
    if isinstance(data.get("inputs"), str) and data["inputs"] != "-":
        data["inputs"] = str(source.parent / data["inputs"])
    return data


def override(data: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """``data`` with ``changes``, without the keys that the changes make void.

    >>> override({"property": "demographic-parity", "bound": "0.1"}, {"bound": "0.2"})
    {'property': 'demographic-parity', 'bound': '0.2'}
    """
    dropped: set[str] = set()
    if changes.get("property") in KINDS:
        dropped |= set(_property_keys()) - set(parameters_of(changes["property"]))
    if "groups" in changes:
        dropped |= set(RECORDED_KEYS)
    if "inputs" in changes:
        dropped |= set(AGNOSTIC_KEYS)
    if "period" in changes:
        dropped |= {*WINDOW_KEYS} - {"start"}
    if "periodic" in changes:
        dropped |= {*WINDOW_KEYS, *periodic_keys()} - {"start", "period"}
    return {key: value for key, value in data.items() if key not in dropped} | dict(changes)


def policy_of(data: Mapping[str, Any], progress: Progress, **options: Any) -> PeriodicPolicy:
    """Make the policy that these words describe; the first plan of a periodic one is made, too.

    ``options`` are those of :func:`fairshield.synthesize`, for one window.
    """
    if "periodic" not in data:
        return kind_of(parse_spec(data).synthesize(progress=progress, **options))
    policy = parse_periodic(data)
    policy.outlook(progress)
    return policy


# From words to values -----------------------------------------------------------------------


def parse_spec(data: Mapping[str, Any]) -> Spec:
    """The specification that these words describe."""
    prop = parse_property(data)
    which = f"goes with {called('periodic')}: say which, of {', '.join(PeriodicPolicy.kinds())}"
    _refuse(data, periodic_keys(), which)
    if "horizon" not in data:
        raise InvalidValueError(
            "no horizon: say after how many decisions the property must hold, as in "
            f"{argument('horizon', 100)}"
        )
    inputs = parse_inputs(data)
    return Spec(
        prop=prop,
        inputs=inputs,
        horizon=data["horizon"],
        start=parse_start(data, inputs.groups),
        checkpoints=_list(data, "checkpoints"),
        spread=_number(data, "spread", 1.0),
        method=data.get("method", "auto"),
        endgame=data.get("endgame"),
        trust_support=data.get("trust_support", False),
    )


def parse_periodic(data: Mapping[str, Any]) -> PeriodicPolicy:
    """The periodic policy that these words describe."""
    kind, kinds = data.get("periodic"), PeriodicPolicy.kinds()
    if not isinstance(kind, str) or kind not in kinds:
        raise InvalidValueError(f"periodic must be one of {', '.join(kinds)}, got {kind!r}")
    period, cls = parse_period(data), kinds[kind]
    takes = ("period", *cls.option_names())
    _refuse(
        data,
        (key for key in periodic_keys() if key not in ("periodic", *takes)),
        f"does not go with {argument('periodic', kind)}, which takes "
        f"{' and '.join(map(called, takes))}: leave it out",
    )
    for name in cls.needed_names():
        if name not in data:
            raise InvalidValueError(
                f"no {name}: {argument('periodic', kind)} needs {called(name)}, as in "
                f"{argument(name, 10)}"
            )
    inputs = parse_inputs(data)
    options = {key: data[key] for key in takes if key in data} | parse_bounds(data)
    start = parse_start(data, inputs.groups)
    if start is not None:
        options["start"] = start
    return cls(parse_property(data), inputs, **{**options, "period": period})


def parse_period(data: Mapping[str, Any]) -> int:
    """The length of a period, where there are periods instead of a window."""
    why = "goes with one window, not with periods, where counters go on: leave out one of the two"
    _refuse(data, (key for key in WINDOW_KEYS if key != "start"), why)
    if "period" not in data:
        raise InvalidValueError(
            "no period: say after every how many decisions the property must hold, as in "
            f"{argument('period', 50)}"
        )
    period: int = data["period"]
    return period


def parse_bounds(data: Mapping[str, Any]) -> dict[str, Any]:
    """Welfare bounds, if given: two rates, or the name of a rule that chooses them."""
    if "bounds" not in data:
        return {}
    bounds = data["bounds"]
    two = isinstance(bounds, (list, tuple)) and len(bounds) == 2
    if not two and bounds not in ("centred", "cheapest"):
        raise InvalidValueError(
            f"bounds must be two rates, as in {argument('bounds', ('0.4', '0.6'))}, or 'centred' "
            f"or 'cheapest', got {bounds!r}"
        )
    return {"bounds": bounds}


def parse_property(data: Mapping[str, Any]) -> Property:
    """The property that these words describe."""
    kind = data.get("property")
    if not isinstance(kind, str):
        raise InvalidValueError(
            f"no property: say what must hold, as in {argument('property', 'demographic-parity')} "
            f"and {argument('bound', '0.1')}; known are {', '.join(property_kinds())}"
        )
    arguments = {key: data[key] for key in _property_keys() if key in data}
    if kind in KINDS:
        _check_arguments(kind, arguments)
    return property_from_dict({"kind": kind, **arguments})


def property_kinds() -> tuple[str, ...]:
    """The names of all properties."""
    return tuple(sorted(KINDS))


def parse_start(data: Mapping[str, Any], groups: tuple[Group, ...]) -> Counts | None:
    """Counters of ``groups`` before the first decision, if given."""
    return parse_counts(_table(data, "start"), groups, "start") if "start" in data else None


def parse_counts(counts: Mapping[Any, Any], groups: tuple[Group, ...], key: str) -> Counts:
    """Counters of exactly these groups."""
    table = {declared(group, groups): count for group, count in counts.items()}
    for group in table:
        if group not in groups:
            raise unknown_group(group, groups)
    for group in groups:
        if group not in table:
            raise InvalidValueError(
                f"{called(key)} says nothing about group {str(group)!r}: give every group its "
                "people seen and accepted, 0 and 0 if there are none"
            )
    return Counts(table)


def parse_reading(data: Mapping[str, Any]) -> Reading:
    """How the records that a spec names are written."""
    said = {key: data[key] for key in READING_KEYS if data.get(key) is not None}
    if "threshold" in said:
        said["threshold"] = _number(said, "threshold", 0.5)
    return Reading(**said)


def parse_inputs(
    data: Mapping[str, Any], groups: tuple[Group, ...] = (), *, shared: Reading | None = None
) -> InputModel:
    """The input model that these words describe: agnostic, or estimated from records.

    Its groups are written, and ordered, as ``groups`` are, if they read the same.  ``shared`` is
    how another file is written, too, whose columns these records may lack.
    """
    if ("groups" in data) == ("inputs" in data):
        raise InvalidValueError(
            f"give either {argument('groups', {'a': 0.4, 'b': 0.6})} (their shares: an agnostic "
            f"input model) or {argument('inputs', 'requests.csv')} (recorded requests), "
            + ("not both" if "groups" in data else "so far there is neither")
        )
    if "inputs" in data:
        return _recorded(data, groups, shared)
    of_inputs = [key for key in RECORDED_KEYS if key not in AGNOSTIC_KEYS]
    if shared is not None:
        of_inputs = [key for key in of_inputs if key not in READING_KEYS]
    _refuse(data, of_inputs, f"goes with {called('inputs')}, not with {called('groups')}")
    return _agnostic(data, groups)


def _agnostic(data: Mapping[str, Any], groups: tuple[Group, ...]) -> InputModel:
    shares = _numbers(data, "groups", groups)
    if set(shares) == set(groups):
        shares = {group: shares[group] for group in groups}
    outcomes = _numbers(data, "outcomes", tuple(shares)) if "outcomes" in data else None
    return InputModel.agnostic(shares, cost=_number(data, "cost", 1.0), outcomes=outcomes)


def _recorded(
    data: Mapping[str, Any], groups: tuple[Group, ...], shared: Reading | None
) -> InputModel:
    why = f"goes with {called('groups')}: recorded inputs have an 'outcome' column"
    _refuse(data, {"outcomes"}, why)
    if not isinstance(data["inputs"], str):
        raise InvalidValueError(f"inputs must name a file, got {data['inputs']!r}")
    options: dict[str, Any] = {"smoothing": _number(data, "smoothing", 1.0)}
    if "bins" in data:
        options["bins"] = None if data["bins"] in ("none", None) else data["bins"]
    names = _list(data, "names") if "names" in data else groups or None
    reading = parse_reading(data) if shared is None else replace(shared, format=None)
    try:
        # Without the threshold: scores are read below, with the cost that the spec asks for.
        as_written = replace(reading, threshold=None)
        with as_written.open(data["inputs"], optional=shared is not None) as found:
            records = list(found)
        if groups:
            records = [record.declared(groups) for record in records]
        if names is not None:
            recorded = {record.group() for record in records}
            options["names"] = tuple(declared(name, recorded) for name in names)
        if records and "proposed" not in records[0].fields and "score" in records[0].fields:
            cost = data.get("cost")
            rule = ScoreRule(
                threshold=reading.threshold, cost="confidence" if cost is None else cost
            )
            asked = records if cost is None else [_unpriced(record) for record in records]
            return InputModel.from_records(asked, scores=rule, **options)
        scored = ("cost",) if shared is not None else ("threshold", "cost")
        _refuse(data, scored, "goes with a 'score' column, and the records have none")
        return InputModel.from_records(records, **options)
    except InvalidValueError as error:
        raise InvalidValueError(f"{data['inputs']}: {error}") from None


def _unpriced(record: Record) -> Record:
    return record._replace(fields={k: v for k, v in record.fields.items() if k != "cost"})


# Checks -------------------------------------------------------------------------------------


def _property_keys() -> tuple[str, ...]:
    return tuple(dict.fromkeys(key for kind in offered_kinds() for key in parameters_of(kind)))


def _check_arguments(kind: str, arguments: dict[str, Any]) -> None:
    takes = parameters_of(kind)
    needed = [key for key, parameter in takes.items() if parameter.default is parameter.empty]
    missing = [key for key in needed if key not in arguments]
    if missing:
        needs = " and ".join(map(called, missing))
        raise InvalidValueError(f"{kind} needs {needs}")
    for key, value in arguments.items():
        if key not in takes:
            known = ", ".join(map(called, takes))
            raise InvalidValueError(f"{kind} takes no {called(key)}: it takes {known}")
        if takes[key].annotation in (bool, "bool") and not isinstance(value, bool):
            raise InvalidValueError(f"{called(key)} must be true or false, got {value!r}")


def _refuse(data: Mapping[str, Any], keys: Iterable[str], why: str) -> None:
    for key in keys:
        if key in data:
            raise InvalidValueError(f"{called(key)} {why}")


def _numbers(data: Mapping[str, Any], key: str, groups: tuple[Group, ...]) -> dict[Group, float]:
    table = _table(data, key)
    return {
        declared(group, groups): _number(table, group, math.nan, f"{key}.{group}")
        for group in table
    }


def _number(data: Mapping[str, Any], key: str, default: float, name: str = "") -> float:
    value = data.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
        raise InvalidValueError(f"{name or key} must be a number, got {value!r}")
    return float(value)


def _list(data: Mapping[str, Any], key: str) -> tuple[Any, ...]:
    values = data.get(key, ())
    if not isinstance(values, (list, tuple)):
        raise InvalidValueError(f"{key} must be a list, got {values!r}")
    return tuple(values)


def _table(data: Mapping[str, Any], key: str) -> Mapping[Any, Any]:
    table = data[key]
    if not isinstance(table, Mapping):
        raise InvalidValueError(
            f"{key} must give one value per group, as in {key} = {{a = ..., b = ...}}, "
            f"got {table!r}"
        )
    return table
