"""``fairshield tail``."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any

import click

from fairshield.cli.extras import needed_by
from fairshield.cli.options import examples
from fairshield.cli.output import print_json, printable
from fairshield.runtime.step import Why, reason_of

if TYPE_CHECKING:
    from fairshield.client import Client

_BEFORE = 10
"""Earlier entries that are shown first."""


@click.command(
    epilog=examples(
        "fairshield tail loans",
        "fairshield tail loans --url https://shield.example.org --overruled",
        "fairshield tail loans --after -1 --json | jq .line.kind",
    )
)
@click.argument("stream")
@click.option(
    "--url",
    metavar="URL",
    default="http://127.0.0.1:8000",
    show_default=True,
    help="Where the service is.",
)
@click.option(
    "--token",
    metavar="TOKEN",
    envvar="FAIRSHIELD_TOKEN",
    show_envvar=True,
    help="An access key with the scope read; others see options in the list of processes.",
)
@click.option(
    "--after",
    metavar="N",
    type=click.IntRange(min=-1),
    help=f"Begin after this entry; -1: with the first.  [default: the last {_BEFORE}]",
)
@click.option("--overruled", is_flag=True, help="Only decisions that differ from the proposal.")
@click.option("--json", "as_json", is_flag=True, help="Print entries as JSON lines.")
def tail(
    stream: str, url: str, token: str | None, after: int | None, overruled: bool, as_json: bool
) -> None:
    """Show a stream's decisions as they are made.

    One line an entry, from a running service, until the stream is closed or you interrupt it.
    While the service is away it waits; no entry is left out or shown twice.
    """
    with needed_by("tail", extra="client"):
        from fairshield.client import Client

    # Few retries before the first answer, so that a wrong address is reported soon.
    with Client(url, token=token or "", retries=4) as client:
        client.terms = dataclasses.replace(client.terms, away=lambda: _say_away(client.url))
        _follow(client, stream, after, overruled, as_json)


def _say_away(url: str) -> None:
    click.echo(f"waiting for the service at {url} …", err=True)


def _follow(
    client: Client, name: str, after: int | None, only_overruled: bool, as_json: bool
) -> None:
    stream = client.stream(name)
    if after is None:
        after = max(stream.state().seq - _BEFORE, -1)
    plain = bool(os.environ.get("NO_COLOR"))
    for entry in stream.tail(after=after):
        line = entry.line
        if only_overruled and (line["kind"] != "decision" or line["accepted"] is line["proposed"]):
            continue
        if as_json:
            print_json({"line": line, "receipt": entry.receipt})
        else:
            click.echo(sentence(line), color=False if plain else None)


def sentence(line: dict[str, Any]) -> str:
    """An entry of a log for people; colours are dropped where the output is no terminal."""
    at = str(line["at"])[:19].replace("T", " ")
    return f"{printable(at)}  {_what(line)}"


def _what(line: dict[str, Any]) -> str:
    match line["kind"]:
        case "decision":
            return _decision(line)
        case "outcome":
            return f"{_number(line)}  outcome {('negative', 'positive')[line['outcome']]}"
        case "override":
            note = printable(line.get("note", ""))
            fate = "" if line.get("guaranteed", True) else _red("; no longer guaranteed")
            said = f"{_verb(line['accepted'])} by a person" + (f": {note}" if note else "")
            return f"{_number(line)}  {click.style(said, fg='cyan')}{fate}"
        case "created":
            return f"stream created, policy {printable(line['policy'])[:16]}…"
        case "closed":
            return "stream closed"
    return printable(line["kind"])


def _decision(line: dict[str, Any]) -> str:
    guaranteed = line.get("guaranteed", True)
    reason = reason_of(
        Why(line["why"]), line["group"], proposed=line["proposed"], accepted=line["accepted"],
        cost=line["cost"], guaranteed=guaranteed,
    )  # fmt: skip
    verdict = f"{_verb(line['accepted'])}  {reason}"
    if line["accepted"] is not line["proposed"]:
        verdict = click.style(f"{verdict} (cost {line['cost']:g})", fg="yellow", bold=True)
    fate = "" if guaranteed else _red("  not guaranteed")
    return f"{_number(line)}  {printable(line['group'])}  {verdict}{fate}"


def _number(line: dict[str, Any]) -> str:
    return f"#{line['n']:<6}"


def _verb(accepted: bool) -> str:
    return "accepted" if accepted else "rejected"


def _red(text: str) -> str:
    return click.style(text, fg="red", bold=True)
