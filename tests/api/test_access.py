"""Who may do what, the frame of every request, and the document that describes them."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute

from api.app import PUBLIC, PUBLIC_PAGES, create_app
from api.auth import ROLES, Caller, Keyring, Scope
from api.key_index import KeyIndex
from api.openapi import document, scope_of
from api.positions import Token, encode_token
from api.problems import TABLE
from api.routes import jobs
from api.settings import KeyHolder, key_hash
from minutebook.clock import ManualClock
from tests.api.conftest import Callers
from tests.api.memory import KEYS, Installation

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "openapi.json"
ADMINISTERS = [
    ("GET", "/v1/keys"),
    ("POST", "/v1/keys"),
    ("GET", "/v1/keys/a"),
    ("POST", "/v1/keys/a/rotate"),
    ("POST", "/v1/keys/a/revoke"),
    ("GET", "/v1/tenants"),
]
READS = [
    ("GET", "/v1/me"),
    ("GET", "/v1/jobs"),
    ("GET", "/v1/executions"),
    ("GET", "/v1/overview"),
    ("GET", "/v1/jobs/a"),
    ("GET", "/v1/jobs/a/executions"),
    ("GET", "/v1/jobs/a/versions"),
    ("GET", "/v1/jobs/a/events"),
    ("GET", "/v1/jobs/a/why"),
    ("GET", "/v1/executions/a:1/why"),
    ("GET", "/v1/executions/a:1"),
    ("GET", "/v1/dead-letters"),
    ("GET", "/v1/alerts"),
    ("GET", "/v1/queues"),
    ("GET", "/v1/queues/a"),
    ("GET", "/v1/limits"),
    ("GET", "/v1/limits/a"),
    ("GET", "/v1/tenant-limit"),
    ("GET", "/v1/calendars"),
    ("GET", "/v1/calendars/a"),
    ("GET", "/v1/commands/a"),
    ("GET", "/v1/operations"),
    ("GET", "/v1/operations/a"),
    ("POST", "/v1/schedules/preview"),
    ("GET", "/v1/tasks"),
    ("GET", "/v1/tasks/a"),
    ("GET", "/v1/workers"),
    ("GET", "/v1/workers/a"),
    ("GET", "/v1/upcoming"),
    ("GET", "/v1/stream?job_id="),
]
WRITES = [
    ("POST", "/v1/jobs"),
    ("POST", "/v1/jobs/batch"),
    ("DELETE", "/v1/jobs/a"),
    ("POST", "/v1/jobs/a/run-now"),
    ("PATCH", "/v1/jobs/a"),
    ("PUT", "/v1/jobs/a"),
    ("POST", "/v1/jobs/a/pause"),
    ("POST", "/v1/jobs/a/resume"),
    ("POST", "/v1/jobs/a/cancel"),
    ("POST", "/v1/executions/a:1/cancel"),
]
OPERATES = [
    ("POST", "/v1/executions/a:1/redrive"),
    ("POST", "/v1/dead-letters/redrive"),
    ("POST", "/v1/executions/a:1/discard"),
    ("POST", "/v1/dead-letters/discard"),
    ("POST", "/v1/jobs/a/purge"),
    ("POST", "/v1/operations"),
    ("POST", "/v1/operations/a/cancel"),
    ("PUT", "/v1/calendars/a"),
    ("DELETE", "/v1/calendars/a"),
    ("POST", "/v1/jobs/a/backfill"),
    ("POST", "/v1/queues"),
    ("POST", "/v1/queues/a/pause"),
    ("POST", "/v1/queues/a/drain"),
    ("POST", "/v1/queues/a/resume"),
    *(
        (method, f"{limit}{verb}")
        for limit in ("/v1/limits/a", "/v1/tenant-limit")
        for method, verb in (("PUT", ""), ("DELETE", ""), ("POST", "/pause"), ("POST", "/resume"))
    ),
    ("GET", "/v1/audit-log"),
    ("POST", "/v1/workers/a/quiet"),
    ("POST", "/v1/workers/a/resume"),
    ("POST", "/v1/workers/a/stop"),
    ("GET", "/v1/partitions"),
]
MAY = {
    "viewer": READS,
    "worker": READS,
    "submitter": READS + WRITES,
    "operator": READS + WRITES + OPERATES,
    "admin": READS + WRITES + OPERATES + ADMINISTERS,
}


@pytest.mark.parametrize("role", MAY)
async def test_role_reaches_its_routes_alone(role: str, callers: Callers) -> None:
    for method, path in MAY["admin"]:
        answer = await callers[role].request(method, path)
        assert (answer.status_code == 403) == ((method, path) not in MAY[role]), (method, path, answer.text)


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer ", "Bearer nothing", "Basic a2V5", "key-admin"]
)
@pytest.mark.row("A1", "A2")
async def test_request_without_known_key_is_refused(header: str | None, callers: Callers) -> None:
    headers = {} if header is None else {"authorization": header}
    for method, path in MAY["admin"]:
        answer = await callers["nobody"].request(method, path, headers=headers)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")


def test_every_route_declares_its_scope(world: Installation) -> None:
    routes = [route for route in create_app(world.services).routes if isinstance(route, APIRoute)]
    assert {route.path for route in routes if scope_of(route) is None} == PUBLIC | PUBLIC_PAGES
    assert len(MAY["admin"]) == len([route for route in routes if route.path.startswith("/v1/")])


def test_route_without_scope_stops_the_start(world: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    open_router = APIRouter()

    @open_router.get("/v1/open")
    async def get_open() -> None: ...

    monkeypatch.setattr(jobs, "router", open_router)
    with pytest.raises(TypeError, match="/v1/open declares no scope"):
        create_app(world.services)


def test_no_role_has_a_scope_that_is_not_given_to_it() -> None:
    """A new scope is nobody's until a role names it; each role up to admin has all of the one before."""
    assert frozenset(Scope) == ROLES["admin"]
    assert ROLES["viewer"] == ROLES["worker"] == {Scope.SELF_READ, Scope.JOBS_READ}
    assert ROLES["viewer"] < ROLES["submitter"] < ROLES["operator"] < ROLES["admin"]
    assert ROLES["admin"] - ROLES["operator"] == {Scope.KEYS_MANAGE, Scope.TENANTS_READ}
    assert not any(Caller("acme", role, "").may(scope) for role in ("", "root", "Admin") for scope in Scope)


def test_keyring_knows_hashes_alone() -> None:
    holders = {key_hash("hunter2"): KeyHolder(tenant="acme", role="viewer")}
    ring = Keyring(holders, KeyIndex(), ManualClock(0), b"")
    caller = ring.find("hunter2")
    assert caller is not None
    assert caller.tenant == "acme"
    assert ring.find(key_hash("hunter2")) is None
    assert "hunter2" not in repr(vars(ring))


async def test_health_needs_no_credential(callers: Callers) -> None:
    for path in PUBLIC:
        assert (await callers["nobody"].get(path)).json() == {"status": "ok"}


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/", 401, "no-credential"),  # a page: it takes a session alone
        ("GET", "/v1", 404, "not-found"),
        ("GET", "/v1/jobs/", 404, "not-found"),
        ("GET", "/docs", 404, "not-found"),
        ("GET", "/openapi.json", 404, "not-found"),
        ("GET", "/v1/jobs/%00", 404, "not-found"),
        ("GET", "/v1/jobs/%ff", 404, "not-found"),
        ("GET", "/v1/jobs/..%2f..%2fadmin", 404, "not-found"),
        ("GET", "/v1/commands/%00", 404, "not-found"),
        ("PATCH", "/v1/jobs", 405, "method-not-allowed"),
        ("GET", "/v1/jobs/batch/x", 404, "not-found"),
        ("POST", "/v1/jobs/a", 405, "method-not-allowed"),
        ("GET", "/v1/jobs/a?x=1", 400, "bad-parameter"),
        ("DELETE", "/v1/jobs/a?force=1", 400, "bad-parameter"),
        ("GET", "/v1/jobs/a/executions?limit=-1", 400, "bad-parameter"),
        ("GET", "/v1/jobs/a/executions?limit=1000000000", 400, "bad-parameter"),
        ("GET", "/v1/jobs/a/executions?limit=1_0", 400, "bad-parameter"),
        ("GET", "/v1/jobs/a/executions?limit=10&limit=99", 400, "bad-parameter"),
        ("GET", "/v1/jobs/" + "a" * 9000, 414, "uri-too-long"),
        ("GET", "/v1/jobs/a?tag=" + "a" * 60_000, 414, "uri-too-long"),
    ],
)
@pytest.mark.row("R13", "R14", "R15", "R16", "R17", "R18", "R21")
async def test_senseless_request_is_a_problem(
    method: str, path: str, status: int, code: str, api: httpx.AsyncClient
) -> None:
    answer = await api.request(method, path)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert (problem["code"], problem["type"], problem["status"]) == (code, f"/problems/{code}", status)
    assert len(problem["trace_id"]) == 32


@pytest.mark.row("R13")
async def test_wrong_method_names_the_right_ones(api: httpx.AsyncClient) -> None:
    assert (await api.patch("/v1/jobs")).headers["allow"] == "GET, POST"
    assert (await api.post("/v1/jobs/a")).headers["allow"] == "DELETE, GET, PATCH, PUT"


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/plain"},
        {"content-type": "multipart/form-data; boundary=" + "\\" * 30_000},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "application/json; charset=utf-16"},
        {"content-type": "application/json", "content-encoding": "gzip"},
        {"content-type": ""},
    ],
)
@pytest.mark.row("R7", "R8")
async def test_body_that_is_not_plain_json_is_refused(
    headers: dict[str, str], api: httpx.AsyncClient, world: Installation
) -> None:
    answer = await api.post("/v1/jobs", content=b'{"task":"t"}', headers=headers)
    assert (answer.status_code, world.log.sent) == (415, [])


@pytest.mark.row("R7")
async def test_answer_that_is_not_accepted_is_refused(api: httpx.AsyncClient, world: Installation) -> None:
    for accept in ("image/png", "text/html, image/*;q=0.5", "application/json;q=0"):
        answer = await api.post("/v1/jobs", json={"task": "t"}, headers={"accept": accept})
        assert (answer.status_code, world.log.sent) == (406, [])
    answer = await api.post("/v1/jobs", json={"task": "t"}, headers={"accept": "text/html, */*;q=0.1"})
    assert answer.status_code == 201


async def test_large_headers_are_refused(api: httpx.AsyncClient) -> None:
    assert (await api.get("/v1/jobs/a", headers={"x-a": "a" * 200_000})).status_code == 431


@pytest.mark.parametrize(
    "text",
    ["", "x", "\u00e4", "gA", "A" * 5000, encode_token(Token({99: 1})), encode_token(Token({}, {-1: 0}))],
)
async def test_senseless_position_is_refused(text: str, api: httpx.AsyncClient) -> None:
    headers = [("minutebook-after", text.encode())]
    answer = await api.get("/v1/jobs/a", headers=headers)  # type: ignore[arg-type]  # raw bytes
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "Minutebook-After")


async def test_trace_id_of_the_caller_comes_back(api: httpx.AsyncClient) -> None:
    trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"
    headers = {"traceparent": f"00-{trace_id}-00f067aa0ba902b7-01"}
    assert (await api.get("/v1/jobs/a", headers=headers)).json()["trace_id"] == trace_id


async def test_fault_of_ours_is_a_problem_without_details(
    api: httpx.AsyncClient, world: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(world.services.view, "job", fail)
    answer = await api.get("/v1/jobs/a")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "secret" not in answer.text


def test_committed_document_is_the_generated_one(world: Installation) -> None:
    """Write it anew with `python -m tests.api.test_access`."""
    assert json.loads(DOCUMENT.read_text()) == json.loads(json.dumps(document(create_app(world.services))))


def test_document_names_only_problems_of_the_table(world: Installation) -> None:
    operations = [
        operation
        for path in document(create_app(world.services))["paths"].values()
        for operation in path.values()
    ]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)
    statuses = {kind.status for kind in TABLE.values()}
    for operation in operations:
        assert all(int(status) < 400 or int(status) in statuses for status in operation["responses"])


def test_every_role_has_a_key_here() -> None:
    assert {role for _, role in KEYS.values()} == set(MAY)


@pytest.mark.parametrize(
    ("path", "method"), [("/v1/jobs", "post"), *(("/v1/jobs/{job_id}", m) for m in ("patch", "put"))]
)
def test_document_names_what_a_body_of_a_job_may_be_refused_for(path: str, method: str) -> None:
    responses = json.dumps(json.loads(DOCUMENT.read_text())["paths"][path][method]["responses"])
    for code in ("unknown-queue", "unknown-calendar", "queue-draining", "bad-payload"):
        assert code in responses


if __name__ == "__main__":
    from tests.api.memory import installation

    DOCUMENT.parent.mkdir(parents=True, exist_ok=True)
    DOCUMENT.write_text(json.dumps(document(create_app(installation().services)), indent=2) + "\n")
