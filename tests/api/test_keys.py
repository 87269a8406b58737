"""API keys over the API: made and shown once, rotated, revoked at once; who is asking; tenants apart."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import httpx
import pytest

from api.auth import Keyring
from api.settings import ApiSettings, KeyHolder, key_hash
from api.view import View
from minutebook.domain.commands import DeclareKey
from minutebook.domain.view_keys import KeyRow
from minutebook.domain.view_rows import FAMILIES
from minutebook.errors import SettingsError
from minutebook.store.memory import MemoryRows
from tests.api.conftest import Callers
from tests.api.memory import NOW, Installation, installation

DAY_MS = 86_400_000
KEY = re.compile(r"mb_([0-9a-f]{16})_[0-9a-f]{64}")


async def make(api: httpx.AsyncClient, label: str = "deploy", role: str = "submitter", **more: Any) -> Any:
    answer = await api.post("/v1/keys", json={"label": label, "role": role, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def me(callers: Callers, api_key: str) -> httpx.Response:
    return await callers["nobody"].get("/v1/me", headers={"authorization": f"Bearer {api_key}"})


async def test_a_new_key_is_shown_once_and_good_at_once(callers: Callers, world: Installation) -> None:
    made = await make(callers["admin"], expires_in="P90D", reason="pipeline")
    found = KEY.fullmatch(made["api_key"])
    assert found is not None
    assert found[1] == made["id"]
    answer = await me(callers, made["api_key"])
    assert answer.json() == {
        "key_id": made["id"],
        "tenant": "acme",
        "role": "submitter",
        "label": "deploy",
        "source": "log",
        "expires_at": "2026-04-01T00:00:00.000Z",
        "scopes": ["jobs:read", "jobs:write", "self:read"],
    }
    shown = (await callers["admin"].get(f"/v1/keys/{made['id']}")).json()
    assert (shown["status"], shown["source"], shown["label"]) == ("live", "log", "deploy")
    (command,) = world.log.sent
    assert isinstance(command, DeclareKey)
    assert (command.sha256, command.reason) == (hashlib.sha256(made["api_key"].encode()).digest(), "pipeline")
    secret = made["api_key"].rpartition("_")[2]
    assert secret not in str(world.log.sent) + str(shown)
    assert all(
        secret.encode() not in record.value for log in world.log.logs for record in log if record.value
    )


async def test_a_key_does_what_its_role_may(callers: Callers) -> None:
    made = await make(callers["admin"], role="viewer")
    headers = {"authorization": f"Bearer {made['api_key']}"}
    assert (await callers["nobody"].get("/v1/queues", headers=headers)).status_code == 200
    assert (await callers["nobody"].post("/v1/jobs", json={"task": "t"}, headers=headers)).status_code == 403


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, ["/label", "/role"]),
        ({"label": "", "role": "viewer"}, ["/label"]),
        ({"label": "x" * 129, "role": "viewer"}, ["/label"]),
        ({"label": "a\u0007b", "role": "viewer"}, ["/label"]),
        ({"label": 1, "role": "viewer"}, ["/label"]),
        ({"label": "a", "role": "root"}, ["/role"]),
        ({"label": "a", "role": "viewer", "expires_in": "PT0S"}, ["/expires_in"]),
        ({"label": "a", "role": "viewer", "expires_in": "P3651D"}, ["/expires_in"]),
        ({"label": "a", "role": "viewer", "expires_at": "2025-12-31T23:59:59Z"}, ["/expires_at"]),
        ({"label": "a", "role": "viewer", "expires_at": "2999-01-01T00:00:00Z"}, ["/expires_at"]),
        (
            {"label": "a", "role": "viewer", "expires_in": "P1D", "expires_at": "2026-02-01T00:00:00Z"},
            ["/expires_at"],
        ),
        ({"label": "a", "role": "viewer", "reason": "x" * 1001}, ["/reason"]),
        ({"label": "a", "role": "viewer", "tenant": "other"}, ["/tenant"]),
    ],
)
async def test_a_key_that_cannot_be_is_refused_by_field(
    body: dict[str, Any], pointers: list[str], callers: Callers, world: Installation
) -> None:
    answer = await callers["admin"].post("/v1/keys", json=body)
    assert answer.status_code == 422, answer.text
    assert [error["pointer"] for error in answer.json()["errors"]] == pointers
    assert world.log.sent == []


async def test_a_repeat_makes_no_second_key(callers: Callers, world: Installation) -> None:
    headers = {"idempotency-key": "once"}
    body = {"label": "deploy", "role": "viewer"}
    first = await callers["admin"].post("/v1/keys", json=body, headers=headers)
    again = await callers["admin"].post("/v1/keys", json=body, headers=headers)
    assert (first.status_code, again.status_code, again.json()["code"]) == (201, 409, "key-exists")
    assert len(world.log.sent) == 1
    assert (await me(callers, first.json()["api_key"])).status_code == 200


async def test_a_key_that_is_not_decided_in_time_is_shown_all_the_same(
    callers: Callers, world: Installation
) -> None:
    world.log.is_held = True
    answer = await callers["admin"].post(
        "/v1/keys", json={"label": "a", "role": "viewer"}, headers={"prefer": "respond-async"}
    )
    made = answer.json()
    assert (answer.status_code, answer.headers["location"]) == (202, f"/v1/commands/{made['command_id']}")
    assert (await me(callers, made["api_key"])).status_code == 401
    world.log.release()
    assert (await me(callers, made["api_key"])).status_code == 200
    command = (await callers["admin"].get(answer.headers["location"])).json()
    assert (command["outcome"], command["job_id"]) == ("accepted", f"key:{made['id']}")


# -- the end of a key


async def test_a_revoked_key_is_refused_at_once(callers: Callers) -> None:
    made = await make(callers["admin"])
    answer = await callers["admin"].post(f"/v1/keys/{made['id']}/revoke", json={"reason": "it was in a log"})
    assert (answer.status_code, answer.json()["status"]) == (200, "revoked")
    assert answer.json()["revoked_by"].startswith("key:")
    assert (await me(callers, made["api_key"])).status_code == 401
    again = await callers["admin"].post(f"/v1/keys/{made['id']}/revoke")
    assert (again.status_code, again.json()["status"]) == (200, "revoked")


async def test_a_key_ends_at_its_instant(callers: Callers, world: Installation) -> None:
    made = await make(callers["admin"], expires_in="PT10S")
    world.clock.advance(9_999)
    assert (await me(callers, made["api_key"])).status_code == 200
    world.clock.advance(1)
    assert (await me(callers, made["api_key"])).status_code == 401
    assert (await callers["admin"].get(f"/v1/keys/{made['id']}")).json()["status"] == "expired"


async def test_the_key_in_use_is_revoked_by_force_alone(callers: Callers, world: Installation) -> None:
    made = await make(callers["admin"], role="admin")
    headers = {"authorization": f"Bearer {made['api_key']}"}
    path = f"/v1/keys/{made['id']}/revoke"
    sent = len(world.log.sent)
    refused = await callers["nobody"].post(path, headers=headers)
    assert (refused.status_code, refused.json()["code"], len(world.log.sent)) == (409, "key-in-use", sent)
    assert (await callers["nobody"].post(f"{path}?force=maybe", headers=headers)).status_code == 400
    assert (await callers["nobody"].post(f"{path}?force=true", headers=headers)).status_code == 200
    assert (await me(callers, made["api_key"])).status_code == 401


async def test_a_key_of_the_settings_is_shown_and_stays(callers: Callers, world: Installation) -> None:
    key_id = key_hash("key-viewer")[:12]
    shown = (await callers["admin"].get(f"/v1/keys/{key_id}")).json()
    assert (shown["role"], shown["source"], shown["status"]) == ("viewer", "settings", "live")
    for verb in ("revoke", "rotate"):
        answer = await callers["admin"].post(f"/v1/keys/{key_id}/{verb}")
        assert (answer.status_code, answer.json()["code"]) == (409, "key-in-settings")
    assert world.log.sent == []


# -- rotation


async def test_a_rotation_makes_a_second_key_and_gives_the_old_one_an_end(
    callers: Callers, world: Installation
) -> None:
    old = await make(callers["admin"], expires_in="P90D")
    world.clock.advance(80 * DAY_MS)
    answer = await callers["admin"].post(f"/v1/keys/{old['id']}/rotate", json={"old_expires_in": "P2D"})
    new = answer.json()
    assert answer.status_code == 201, answer.text
    assert (new["label"], new["role"]) == ("deploy", "submitter")
    assert new["expires_at"] == "2026-06-20T00:00:00.000Z"  # it lives as long as the old one was made for
    assert new["old"]["expires_at"] == "2026-03-24T00:00:00.000Z"
    for key in (old, new):
        assert (await me(callers, key["api_key"])).status_code == 200
    world.clock.advance(2 * DAY_MS)
    assert (await me(callers, old["api_key"])).status_code == 401
    assert (await me(callers, new["api_key"])).status_code == 200


async def test_a_rotation_does_not_move_an_end_away(callers: Callers, world: Installation) -> None:
    old = await make(callers["admin"], expires_in="P1D")
    new = (await callers["admin"].post(f"/v1/keys/{old['id']}/rotate")).json()
    assert new["old"]["expires_at"] == "2026-01-02T00:00:00.000Z"


async def test_the_end_of_an_old_key_is_a_week_away_if_nothing_is_said(callers: Callers) -> None:
    old = await make(callers["admin"])
    new = (await callers["admin"].post(f"/v1/keys/{old['id']}/rotate")).json()
    assert (new["old"]["expires_at"], new["expires_at"]) == ("2026-01-08T00:00:00.000Z", None)


async def test_two_keys_of_a_label_are_live_at_most(callers: Callers, world: Installation) -> None:
    old = await make(callers["admin"])
    new = (await callers["admin"].post(f"/v1/keys/{old['id']}/rotate")).json()
    third = await callers["admin"].post("/v1/keys", json={"label": "deploy", "role": "viewer"})
    again = await callers["admin"].post(f"/v1/keys/{new['id']}/rotate")
    assert {answer.json()["code"] for answer in (third, again)} == {"too-many-keys"}
    await make(callers["admin"], label="another")
    await make(callers["other-admin"])
    world.clock.advance(7 * DAY_MS)
    assert (await callers["admin"].post(f"/v1/keys/{new['id']}/rotate")).status_code == 201
    closed = await callers["admin"].post(f"/v1/keys/{old['id']}/rotate")
    assert closed.json()["code"] == "key-closed"


@pytest.mark.parametrize("wait", ["PT0S", "P366D", "7 days"])
async def test_a_senseless_end_of_the_old_key_is_refused(wait: str, callers: Callers) -> None:
    old = await make(callers["admin"])
    answer = await callers["admin"].post(f"/v1/keys/{old['id']}/rotate", json={"old_expires_in": wait})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/old_expires_in")


# -- tenants


async def test_keys_of_another_tenant_are_not_there(callers: Callers, world: Installation) -> None:
    made = await make(callers["admin"])
    theirs = await make(callers["other-admin"], label="theirs")
    sent = len(world.log.sent)
    for method, verb in (("GET", ""), ("POST", "/revoke"), ("POST", "/rotate")):
        for key_id in (made["id"], key_hash("key-viewer")[:12]):
            answer = await callers["other-admin"].request(method, f"/v1/keys/{key_id}{verb}")
            assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
    assert len(world.log.sent) == sent
    listed = (await callers["other-admin"].get("/v1/keys")).json()["items"]
    assert [key["id"] for key in listed if key["source"] == "log"] == [theirs["id"]]
    assert (await me(callers, theirs["api_key"])).json()["tenant"] == "other"


async def test_the_list_goes_page_by_page(callers: Callers) -> None:
    made = {(await make(callers["admin"], label=f"l{number}"))["id"] for number in range(5)}
    found: list[str] = []
    query: dict[str, str] = {"limit": "2"}
    while True:
        answer = await callers["admin"].get("/v1/keys", params=query)
        page = answer.json()
        found += [key["id"] for key in page["items"]]
        assert len(page["items"]) <= 2
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
        assert "secret" not in answer.text
    assert found == sorted(found)
    assert made < set(found)
    assert len(found) == len(set(found)) == 5 + 5  # five of the settings
    theirs = await callers["other-admin"].get("/v1/keys", params=query)
    assert theirs.status_code == 400


async def test_tenants_are_the_callers_own(callers: Callers) -> None:
    await callers["submitter"].post("/v1/jobs", json={"task": "t", "delay": "PT1H"})
    await make(callers["other-admin"])
    for name, tenant, jobs in (("admin", "acme", {"active": 1}), ("other-admin", "other", {})):
        (item,) = (await callers[name].get("/v1/tenants")).json()["items"]
        assert (item["name"], item["jobs"]) == (tenant, jobs)


async def test_admins_of_the_operating_tenant_see_all_names() -> None:
    world = installation(operator_tenant="acme")
    transport = httpx.ASGITransport(app=world.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://api") as http:

        async def tenants(key: str, **query: str) -> Any:
            headers = {"authorization": f"Bearer {key}"}
            return (await http.get("/v1/tenants", params=query, headers=headers)).json()

        other = {"authorization": "Bearer key-other"}
        await http.post("/v1/jobs", json={"task": "t"}, headers=other)
        page = await tenants("key-admin", limit="1")
        assert [item["name"] for item in page["items"]] == ["acme"]
        (other_tenant,) = (await tenants("key-admin", cursor=page["next_cursor"]))["items"]
        assert (other_tenant["name"], other_tenant["jobs"]) == ("other", {"active": 1})
        assert (await tenants("key-other-admin"))["items"] == [other_tenant]
        assert world.services.view.tenants() == ["other"]


# -- the keyring


async def test_keys_are_known_again_after_a_restart_and_forgotten_with_their_partition() -> None:
    rows = MemoryRows(FAMILIES)
    world = installation(rows)
    transport = httpx.ASGITransport(app=world.app)
    headers = {"authorization": "Bearer key-admin"}
    async with httpx.AsyncClient(transport=transport, base_url="http://api", headers=headers) as http:
        made = [await make(http, label=f"l{number}") for number in range(4)]
    world.services.view.commit_all()
    view = View(rows, 4)
    ring = Keyring({}, view.keys, world.clock, b"")
    assert all(ring.find(key["api_key"]) is not None for key in made)
    for partition in range(4):
        view.restart(partition)
    assert all(ring.find(key["api_key"]) is None for key in made)
    for partition, log in enumerate(world.log.logs):
        for record in log:
            view.take(partition, record)
    assert all(ring.find(key["api_key"]) is not None for key in made)


async def test_another_process_refuses_a_revoked_key_from_its_event_on(
    callers: Callers, world: Installation
) -> None:
    made = await make(callers["admin"])
    await callers["admin"].post(f"/v1/keys/{made['id']}/revoke")
    view = View(MemoryRows(FAMILIES), 4)
    ring = Keyring({}, view.keys, world.clock, b"")
    (log,) = [log for log in world.log.logs if log]
    known = []
    for record in log:
        view.take(world.log.logs.index(log), record)
        known.append(ring.find(made["api_key"]) is not None)
    assert known == [True, False]


async def test_a_key_that_the_view_may_yet_read_is_not_refused_for_good(
    callers: Callers, world: Installation
) -> None:
    world.ready.reason = "the view is still reading the log, 3 records left"
    answer = await me(callers, "mb_0_unknown")
    assert (answer.status_code, answer.json()["code"]) == (503, "not-ready")
    assert (await callers["nobody"].get("/v1/me")).status_code == 401


def test_two_keys_of_one_hash_are_revoked_one_by_one(world: Installation) -> None:
    ring, index = world.services.keyring, world.services.view.keys
    digest = hashlib.sha256(b"twice").digest()

    def declared(key: str, revoked_at: int = -1) -> None:
        index.put("acme", key, KeyRow("viewer", digest, "", -1, NOW, "", revoked_at))

    declared("k1")
    declared("k2")
    declared("k1", NOW)
    caller = ring.find("twice")
    assert caller is not None
    assert caller.key == "k2"
    declared("k2", NOW)
    assert ring.find("twice") is None


# -- what signs cursors


def test_cursors_are_signed_by_the_setting_whatever_the_keys(tmp_path: Any) -> None:
    holders = {key_hash("a"): KeyHolder(tenant="acme", role="viewer")}
    file = tmp_path / "secret"
    file.write_text("sixteen characters\n")
    by_file = ApiSettings(cursor_secret_file=file)
    by_value = ApiSettings(cursor_secret="sixteen characters", keys=holders)  # type: ignore[arg-type]  # pydantic takes text
    assert by_file.cursor_key() == by_value.cursor_key()
    assert ApiSettings().cursor_key() != ApiSettings(keys=holders).cursor_key() != by_file.cursor_key()


def test_a_senseless_cursor_secret_is_refused(tmp_path: Any) -> None:
    with pytest.raises(ValueError, match="at least 16"):
        ApiSettings(cursor_secret="short")  # type: ignore[arg-type]  # pydantic takes text
    with pytest.raises(SettingsError, match="CURSOR_SECRET_FILE cannot be read"):
        ApiSettings(cursor_secret_file=tmp_path / "none").cursor_key()
    (tmp_path / "short").write_text("short")
    with pytest.raises(SettingsError, match="holds 5 bytes"):
        ApiSettings(cursor_secret_file=tmp_path / "short").cursor_key()
