"""App is the command ``fairshield``; it turns errors into sentences and exit codes.

Exit codes: 0 done; 1 the property is violated or cannot be guaranteed; 2 a mistake in the
arguments, the input or the environment, explained in one sentence; 3 nothing can be concluded; 130
interrupted.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import click

from fairshield import __version__
from fairshield.base.errors import (
    FairshieldError,
    InfeasibleError,
    OutcomesWarning,
    VacuousWarning,
    spelling,
)
from fairshield.cli.audit import audit
from fairshield.cli.bench import bench
from fairshield.cli.compare import compare
from fairshield.cli.demo import demo
from fairshield.cli.doctor import doctor
from fairshield.cli.explain import explain
from fairshield.cli.inspect import inspect
from fairshield.cli.keys import keys
from fairshield.cli.monitor import monitor
from fairshield.cli.naming import option_of
from fairshield.cli.pareto import pareto
from fairshield.cli.reproduce import reproduce
from fairshield.cli.run import run
from fairshield.cli.serve import serve
from fairshield.cli.simulate import simulate
from fairshield.cli.synthesize import synthesize
from fairshield.cli.tail import tail
from fairshield.cli.verify import verify

INTERRUPTED, BROKEN_PIPE = 130, 141
_WARNINGS = (OutcomesWarning, VacuousWarning)


class App(click.Group):
    """App is a group of commands whose errors are sentences."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the arguments; help and version are printed here."""
        with plain_errors():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a user's mistake ends in one line, not in a traceback."""
        with plain_warnings(), plain_errors():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Commands in the order in which a new user needs them."""
        return list(self.commands)


@contextlib.contextmanager
def plain_warnings() -> Iterator[None]:
    """Print the library's warnings as sentences."""
    with warnings.catch_warnings():
        for kind in _WARNINGS:
            warnings.simplefilter("always", kind)
        otherwise = warnings.showwarning

        def show(message: Any, category: Any, *where: Any, **more: Any) -> None:
            if issubclass(category, _WARNINGS):
                click.echo(f"Warning: {message}", err=True)
            else:
                otherwise(message, category, *where, **more)

        warnings.showwarning = show
        yield


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """Turn expected errors into a message on standard error and an exit code."""
    try:
        with spelling(option_of):
            yield
    except BrokenPipeError:
        _discard_output()
        raise click.exceptions.Exit(BROKEN_PIPE) from None
    except KeyboardInterrupt:
        click.echo("Interrupted.", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    except InfeasibleError as error:
        raise _Violated(str(error)) from None
    except FairshieldError as error:
        raise _Mistake(str(error)) from None
    except OSError as error:
        _discard_output()
        raise _Mistake(_sentence(error)) from None
    except UnicodeError as error:
        raise _Mistake(f"text that is not UTF-8: {error}") from None
    except MemoryError as error:
        raise _Mistake(f"out of memory: {error}") from None


class _Violated(click.ClickException):
    """_Violated is the error for what cannot be guaranteed; exit code 1."""

    exit_code = 1


class _Mistake(click.ClickException):
    """_Mistake is the error for a mistake that the user can correct; exit code 2."""

    exit_code = 2


def _sentence(error: OSError) -> str:
    what = error.strerror or str(error)
    return what if error.filename is None else f"{error.filename}: {what}"


def _discard_output() -> None:
    """Redirect output to the null device, so that the flush at exit does not fail again."""
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError):  # no file descriptor: nothing is flushed at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(
    cls=App,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 96},
    epilog="Example:  fairshield demo",
)
@click.version_option(__version__, prog_name="fairshield", message="%(prog)s %(version)s")
def app() -> None:
    """Shields that keep a stream of decisions fair: always, and at the least expected cost.

    A policy is made once (synthesize), checked (verify) and put before any classifier (run);
    whatever arrives, its decisions satisfy the property at the end of every window. Periodic
    policies (synthesize --periodic) go on from one period to the next.
    """


for _command in (
    synthesize, inspect, run, audit, monitor, verify, explain, simulate, compare, pareto, serve,
    keys, tail, bench, demo, doctor, reproduce,
):  # fmt: skip
    app.add_command(_command)
