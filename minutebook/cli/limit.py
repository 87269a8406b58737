"""`minutebook limit`: declare, list, pause, resume and delete limits, through the API."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from msgspec import UNSET, UnsetType

from minutebook.cli.job import undecided
from minutebook.cli.options import Reason, Yes, ask, duration
from minutebook.cli.output import Format, Output, write_many, write_one
from minutebook.client import Command, Limit, LimitRequest, SyncClient
from minutebook.times import parse_instant

app = typer.Typer(
    help="Limits: how much of a tenant, or of the jobs that name one, runs.", no_args_is_help=True
)

TENANT_WIDE = "(tenant)"
_COLUMNS = ("name", "version", "concurrency", "rate", "paused until", "in use", "waiting")
Name = Annotated[str | None, typer.Argument(help="Name of the limit, as jobs give it.", show_default=False)]
IsTenantWide = Annotated[bool, typer.Option("--tenant-wide", help="The limit of all jobs of the tenant.")]


@app.command("set")
def set_(
    name: Name = None,
    is_tenant_wide: IsTenantWide = False,
    concurrency: Annotated[int | None, typer.Option(help="Attempts that run at once, at most.")] = None,
    rate: Annotated[
        str | None, typer.Option(help="Attempts that start in a period, at most, such as 100/1m.")
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Declare a limit, or replace its bounds. Ends once every partition knows it."""
    wanted = _name(name, is_tenant_wide)
    rate_count, rate_period = (UNSET, UNSET) if rate is None else _rate(rate)
    bounds = LimitRequest(
        concurrency=UNSET if concurrency is None else concurrency,
        rate_count=rate_count,
        rate_period=rate_period,
    )
    with SyncClient() as client:
        _write(client.limits.set(wanted, bounds), output)


@app.command("list")
def list_(output: Output = Format.TABLE) -> None:
    """List the limits of your tenant by name, the tenant-wide one first."""
    with SyncClient() as client:
        items = client.limits.all()
        write_many(items, output, _COLUMNS, (tuple(_fields(item).values()) for item in items))


@app.command()
def show(name: Name = None, is_tenant_wide: IsTenantWide = False, output: Output = Format.TABLE) -> None:
    """Show a limit as it stands."""
    wanted = _name(name, is_tenant_wide)
    with SyncClient() as client:
        _write(client.limits.get(wanted), output)


@app.command()
def pause(
    until: Annotated[str, typer.Option(help="30s, 2m, PT2M, or an instant with its offset.")],
    name: Name = None,
    is_tenant_wide: IsTenantWide = False,
    reason: Reason = "",
    output: Output = Format.TABLE,
) -> None:
    """Start nothing under a limit for a while; what runs goes on. Ends once every partition knows it."""
    wanted, end = _name(name, is_tenant_wide), _until(until)
    with SyncClient() as client:
        _write(client.limits.pause(wanted, end, reason=reason), output)


@app.command()
def resume(
    name: Name = None,
    is_tenant_wide: IsTenantWide = False,
    reason: Reason = "",
    output: Output = Format.TABLE,
) -> None:
    """End the pause of a limit. Ends once every partition knows it."""
    wanted = _name(name, is_tenant_wide)
    with SyncClient() as client:
        _write(client.limits.resume(wanted, reason=reason), output)


@app.command()
def delete(
    name: Name = None,
    is_tenant_wide: IsTenantWide = False,
    reason: Reason = "",
    yes: Yes = False,
    output: Output = Format.TABLE,
) -> None:
    """Free the jobs of a limit from it. Ends once every partition knows it."""
    wanted = _name(name, is_tenant_wide)
    ask(f"Delete the limit {wanted or TENANT_WIDE}?", yes=yes)
    with SyncClient() as client:
        answer = client.limits.delete(wanted, reason=reason)
    if answer is not None:
        raise undecided(answer, output)


def _name(name: str | None, is_tenant_wide: bool) -> str | None:
    """The name asked for, None = the tenant-wide limit. Raises BadParameter for neither and for both."""
    if (name is None) != is_tenant_wide:
        raise typer.BadParameter("give the name of a limit, or --tenant-wide", param_hint="NAME")
    return name


def _rate(text: str) -> tuple[int | UnsetType, str | UnsetType]:
    """(count, period in ISO 8601) of `<count>/<period>`. Raises BadParameter."""
    count, _, period = text.partition("/")
    if not count.isascii() or not count.isdigit() or not period:
        raise typer.BadParameter("give <count>/<period>, such as 100/1m", param_hint="--rate")
    return int(count), duration(period)


def _until(text: str) -> str:
    """As the API takes it: an instant as it is, a duration in ISO 8601. Raises BadParameter."""
    try:
        parse_instant(text)
    except ValueError:
        return duration(text)
    return text


def _write(answer: Limit | Command, output: Format) -> None:
    if isinstance(answer, Command):
        raise undecided(answer, output)
    write_one(answer, output, _fields(answer))


def _fields(limit: Limit) -> dict[str, Any]:
    rate = "any" if limit.rate_count is None else f"{limit.rate_count} in {limit.rate_period}"
    concurrency = "any" if limit.concurrency is None else limit.concurrency
    name, until = limit.name or TENANT_WIDE, limit.paused_until or ""
    values = (name, limit.version, concurrency, rate, until, limit.in_use, limit.waiting)
    return dict(zip(_COLUMNS, values, strict=True))
