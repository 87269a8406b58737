"""`minutebook key`: API keys of your tenant, through the API."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from minutebook.cli.job import undecided
from minutebook.cli.options import Key as IdempotencyKey
from minutebook.cli.options import Reason, Yes, ask, duration
from minutebook.cli.output import Format, Output, note, write_many, write_one
from minutebook.client import Command, CreatedKey, Key, Me, SyncClient
from minutebook.client.key_models import Role
from minutebook.times import parse_instant

app = typer.Typer(help="API keys: who may call the API, and as what.", no_args_is_help=True)
_COLUMNS = ("id", "label", "role", "status", "source", "created at", "created by", "expires at")
KeyId = Annotated[
    str, typer.Argument(help="Id of the key: what stands between mb_ and the next _.", show_default=False)
]


@app.command("list")
def list_(output: Output = Format.TABLE) -> None:
    """List the keys of your tenant by id, also those that are good no more. No key itself is shown."""
    with SyncClient() as client:
        items = client.api_keys()
        write_many(
            items, output, _COLUMNS, (tuple(_fields(item).values())[: len(_COLUMNS)] for item in items)
        )


@app.command()
def show(
    key_id: Annotated[
        str | None, typer.Argument(help="Id of the key; the one that you use now if not given.")
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Show what is known of a key, or who you are: tenant, role and end of the key that you use now."""
    with SyncClient() as client:
        if key_id is None:
            me = client.me()
            write_one(me, output, _mine(me))
        else:
            found = client.api_key(key_id)
            write_one(found, output, _fields(found))


@app.command()
def create(
    label: Annotated[str, typer.Argument(help="What it is for, such as deploy.", show_default=False)],
    role: Annotated[str, typer.Option(help="viewer, submitter, operator, admin or worker.")],
    expires: Annotated[
        str | None, typer.Option(help="90d, P90D, or an instant with its offset; never if not given.")
    ] = None,
    reason: Reason = "",
    key: IdempotencyKey = None,
    output: Output = Format.TABLE,
) -> None:
    """Make a key. It is written to stdout this once: keep it where nobody else reads."""
    end = {} if expires is None else _end(expires)
    with SyncClient() as client:
        made = client.create_api_key(label, _role(role), reason=reason, key=key, **end)
    _write(made, output)


@app.command()
def rotate(
    key_id: KeyId,
    old_expires_in: Annotated[str, typer.Option(help="How long the old key stays good: 7d, PT1H.")] = "7d",
    reason: Reason = "",
    key: IdempotencyKey = None,
    output: Output = Format.TABLE,
) -> None:
    """Make a second key with the same label and role, and give the old one an end."""
    with SyncClient() as client:
        made = client.rotate_api_key(key_id, old_expires_in=duration(old_expires_in), reason=reason, key=key)
    _write(made, output)
    if made.old is not None:
        note(f"The old key {made.old.id} is good until {made.old.expires_at}.")


@app.command()
def revoke(key_id: KeyId, reason: Reason = "", yes: Yes = False, output: Output = Format.TABLE) -> None:
    """End a key at once, for good. With --yes also the one that this command uses."""
    with SyncClient() as client:
        is_own = client.me().key_id == key_id
        text = "the key that you use now: you lock yourself out with" if is_own else "the key"
        ask(f"Revoke {text} {key_id}?", yes=yes)
        answer = client.revoke_api_key(key_id, reason=reason, is_forced=is_own)
    if isinstance(answer, Command):
        raise undecided(answer, output)
    write_one(answer, output, _fields(answer))


def _role(text: str) -> Role:
    try:
        return msgspec.convert(text, Role)  # type: ignore[no-any-return]  # a Literal
    except msgspec.ValidationError:
        raise typer.BadParameter(
            "give viewer, submitter, operator, admin or worker", param_hint="--role"
        ) from None


def _end(text: str) -> dict[str, str]:
    """As the API takes it: an instant as it is, a duration in ISO 8601. Raises BadParameter."""
    try:
        parse_instant(text)
    except ValueError:
        return {"expires_in": duration(text)}
    return {"expires_at": text}


def _write(made: CreatedKey, output: Format) -> None:
    fields = {
        "key": made.api_key,
        "id": made.id,
        "label": made.label,
        "role": made.role,
        "expires at": made.expires_at or "never",
    }
    write_one(made, output, fields)
    note("It is shown this once; what is kept of it is its SHA-256.")


def _mine(me: Me) -> dict[str, Any]:
    return {
        "id": me.key_id,
        "tenant": me.tenant,
        "role": me.role,
        "label": me.label,
        "source": me.source,
        "expires at": me.expires_at or "never",
        "scopes": ", ".join(me.scopes),
    }


def _fields(key: Key) -> dict[str, Any]:
    values = (
        key.id,
        key.label,
        key.role,
        key.status,
        key.source,
        key.created_at,
        key.created_by,
        key.expires_at or "never",
        key.revoked_at,
        key.revoked_by,
    )
    return dict(zip((*_COLUMNS, "revoked at", "revoked by"), values, strict=True))
