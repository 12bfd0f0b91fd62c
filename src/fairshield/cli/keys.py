"""``fairshield keys``."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairshield.base.errors import InvalidValueError
from fairshield.base.words import written
from fairshield.cli.extras import needed_by
from fairshield.cli.options import examples, json_option
from fairshield.cli.output import print_json, print_table, printable

if TYPE_CHECKING:
    from fairshield.service.store import Connection, KeyRow

SCOPES = ("decide", "read", "admin")
"""The scopes of the service, repeated here because importing it would slow down help pages."""
_SEEN_WITHIN = "a running service sees it within a second or two"

db_option = click.option(
    "--db",
    metavar="FILE|URL",
    required=True,
    help="The service's database: a file, or postgresql://...",
)


@click.group(
    epilog=examples(
        "fairshield keys create --db shield.db --name scoring --scope decide --stream loans",
        "fairshield keys list --db shield.db",
        "fairshield keys revoke --db shield.db 3f9c2a7be041",
    )
)
def keys() -> None:
    """Create, list and revoke access keys.

    They are kept in the service's database, which may be in use. As soon as there has been one,
    the service answers to keys only. Scopes: decide adds to logs, read looks at them, admin
    creates and closes streams and may do all else.
    """


@keys.command(
    epilog=examples(
        "fairshield keys create --db shield.db --name ops --scope admin",
        "export FAIRSHIELD_TOKEN=$(fairshield keys create --db shield.db --name x --scope read)",
    )
)
@db_option
@click.option("--name", metavar="TEXT", required=True, help="Whose it is, for the list of keys.")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(SCOPES),
    multiple=True,
    required=True,
    help="What it allows; repeat it for more.",
)
@click.option("--stream", metavar="NAME", help="Only with this stream.  [default: with all]")
@json_option
def create(db: str, name: str, scopes: tuple[str, ...], stream: str | None, as_json: bool) -> None:
    """Make a key, and print its token once."""
    with needed_by("keys", extra="service"):
        from fairshield.service.web.access import new_key

    _check_stream(stream)
    created = "://" not in db and not Path(db).exists()
    token, row = new_key(name, scopes, stream, written(datetime.now(UTC)))
    with _opened(db, new=True) as connection:
        connection.begin()
        connection.put_key(row)
        connection.commit()
        known = stream is None or connection.stream(stream) is not None
    if as_json:
        print_json(_facts(row) | {"token": token})
    else:
        click.echo(token)
    if created:
        click.echo(f"Note: there was no database {db}: created {db}.", err=True)
    if not known:
        click.echo(f"Note: there is no stream {stream!r} yet.", err=True)
    click.echo(
        f"Key {row.id} is shown this once: the database has a hash of it only, so keep it safe; "
        f"{_SEEN_WITHIN}.",
        err=True,
    )


@keys.command("list", epilog=examples("fairshield keys list --db shield.db"))
@db_option
@json_option
def list_keys(db: str, as_json: bool) -> None:
    """List all keys, also those revoked."""
    with _opened(db) as connection:
        found = [_facts(row) for row in connection.access_keys()]
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo("No keys: the service answers without, to this machine only.", err=True)
        return
    print_table(
        ("id", "name", "scopes", "stream", "created", "revoked"),
        [
            (
                key["id"],
                printable(key["name"]),
                ", ".join(key["scopes"]),
                key["stream"] or "all",
                key["created"],
                key["revoked"] or "",
            )
            for key in found
        ],
    )


@keys.command(epilog=examples("fairshield keys revoke --db shield.db 3f9c2a7be041"))
@click.argument("id")
@db_option
@json_option
def revoke(id: str, db: str, as_json: bool) -> None:
    """Make a key useless, for good.

    ID is the key's in the list: the twelve characters after fsk_ in its token.
    """
    with _opened(db) as connection:
        connection.begin()
        done = connection.revoke_key(id, written(datetime.now(UTC)))
        connection.commit()
        left = sum(row.revoked is None for row in connection.access_keys())
    if not done:
        raise InvalidValueError(f"there is no key {id!r} in force: fairshield keys list shows them")
    if as_json:
        print_json({"revoked": id, "left": left})
    else:
        click.echo(f"Revoked {id}; {_SEEN_WITHIN}.")
    if not left:
        click.echo("Note: no key is left, so the service answers nobody.", err=True)


def _check_stream(name: str | None) -> None:
    import msgspec

    from fairshield.wire.messages import Name

    try:
        msgspec.convert(name, Name | None)
    except msgspec.ValidationError:
        raise InvalidValueError(
            f"--stream {name!r} is no name of a stream: letters, digits, dots, dashes and "
            "underscores, at most 64"
        ) from None


@contextlib.contextmanager
def _opened(db: str, *, new: bool = False) -> Iterator[Connection]:
    """A connection to a database whose schema is up to date."""
    with needed_by("keys", extra="service"):
        from fairshield.service.store import open_database

    if "://" not in db and not new and not Path(db).is_file():
        raise InvalidValueError(f"there is no database {db}: fairshield serve --db {db} makes one")
    database = open_database(db)
    connection = database.connect()
    try:
        connection.migrate(database.migrations())
        yield connection
    finally:
        connection.rollback()
        connection.close()
        database.close()


def _facts(row: KeyRow) -> dict[str, Any]:
    """The facts about a key that may be shown."""
    return {
        "id": row.id,
        "name": row.name,
        "scopes": json.loads(row.scopes),
        "stream": row.stream,
        "created": row.created,
        "revoked": row.revoked,
    }
