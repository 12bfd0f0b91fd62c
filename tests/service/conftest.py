"""Stores, policies and engines for the tests of the service.

``address``
    An empty store, once SQLite and once PostgreSQL; can be opened any number of times.
``database``
    The same, opened.
``cluster``
    A real PostgreSQL server, one for the session (``postgres_server``); ``postgres`` is the
    address of an empty database on it.
``artifacts``
    Policy files of every sort, made once (``engines.Artifacts``).
``opened`` (in ``engines``)
    A running engine over a store, with streams in it.

Tests that are coroutines are run to their end in an event loop of their own.  Those that want a
PostgreSQL server or a browser are slow.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path

import postgres_server
import pytest
from engines import Artifacts, make_artifacts

from fairshield.service.store import Database, open_database

_SLOW = {"cluster", "browser"}


def pytest_itemcollected(item: pytest.Item) -> None:
    if _SLOW.intersection(getattr(item, "fixturenames", ())):
        item.add_marker("slow")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    given = {name: pyfuncitem.funcargs[name] for name in names}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**given), timeout=120))
    return True


@pytest.fixture(scope="session")
def cluster() -> Iterator[postgres_server.Cluster]:
    """A PostgreSQL server."""
    if postgres_server.programs() is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    with postgres_server.running() as cluster:
        yield cluster


@pytest.fixture
def postgres(cluster: postgres_server.Cluster) -> Iterator[str]:
    """The address of an empty PostgreSQL database."""
    with cluster.database() as address:
        yield address


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store."""
    if request.param == "sqlite":
        return str(tmp_path / "shield.db")
    found: str = request.getfixturevalue("postgres")
    return found


@pytest.fixture
def database(address: str) -> Iterator[Database]:
    """An empty store."""
    database = open_database(address)
    yield database
    database.close()


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Artifacts:
    """Policy files of every sort."""
    return make_artifacts(tmp_path_factory.mktemp("artifacts"))
