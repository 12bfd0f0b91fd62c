"""``fairshield doctor``."""

from __future__ import annotations

import sys

import click

from fairshield.cli.options import examples, json_option
from fairshield.cli.output import human_size, number_of, print_facts, print_json, printable
from fairshield.cli.tools.doctor import Checkup, SelfCheck, checkup
from fairshield.cli.tools.packages import Package


@click.command(epilog=examples("fairshield doctor", "fairshield doctor --json"))
@json_option
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Say what is installed and whether it works.

    Versions of everything by extra, processors and CUDA devices, caches and data sets; then makes
    a small policy, uses and verifies it. What is not installed is no fault: exit 1 only if
    something that is installed does not work.
    """
    found = checkup(compiles=_say_that_it_compiles)
    if as_json:
        print_json(found.to_dict())
    else:
        _print(found)
    ctx.exit(0 if found.works else 1)


def _say_that_it_compiles() -> None:
    if sys.stderr.isatty():
        click.echo("Compiling, for the first time: this takes half a minute …", err=True)


def _print(found: Checkup) -> None:
    print_facts(
        [
            ("fairshield", found.version),
            ("python", found.python),
            ("platform", found.platform),
            *((package.name, _package(package)) for package in found.core),
        ]
    )
    for extra in found.extras:
        click.echo("")
        rest = f"  not complete: {extra.remedy}" if extra.missing else ""
        click.echo(f"{extra.name}{rest}")
        print_facts([(f"  {package.name}", _package(package)) for package in extra.packages])
    click.echo("")
    print_facts([("processors", f"{found.processors}"), ("CUDA", found.cuda), *_places(found)])
    click.echo("")
    check = found.check
    print_facts([("self-check", f"{_check(check)}, in {check.seconds:.1f} s")])
    for fault in found.faults:
        click.echo(f"FAULT: {printable(fault)}")


def _check(check: SelfCheck) -> str:
    if not check.works:
        return f"FAILED: {check.detail}"
    if not check.compiled:
        return (
            "a policy was used; making, simulating and verifying policies need numba: "
            "pip install 'fairshield[synthesis]'"
        )
    return "a policy was made, used and verified"


def _package(package: Package) -> str:
    if package.state == "missing":
        return f"missing ({package.needs})" if package.needs else "missing"
    if package.state == "ok":
        return package.version or "installed"
    return f"{package.state.upper()}: {package.detail}"


def _places(found: Checkup) -> list[tuple[str, str]]:
    cache, data = found.cache, found.data
    facts = []
    if cache is not None:
        read_only = "" if cache.writable else ", NOT writable: every process compiles anew"
        facts.append(("compiled code", f"{cache.folder}, {human_size(cache.bytes)}{read_only}"))
    if cache is not None and cache.older:
        what = number_of(cache.older, "folder")
        facts.append(("", f"of earlier versions: {what}, {human_size(cache.older_bytes)}"))
    named = "FAIRSHIELD_DATA" if data.variable else "FAIRSHIELD_DATA is not set"
    facts.append(("data sets", data.detail or f"{data.folder} ({named})"))
    if not data.detail:
        facts.append(("", f"there: {', '.join(data.present) or 'none'}"))
        facts.append(("", f"not there: {', '.join(data.absent) or 'none'}"))
    return facts
