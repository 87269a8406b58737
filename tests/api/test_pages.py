"""What the pages ask of a request and send with an answer, before there is a page."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator

import httpx
import pytest

from api.pages.static_files import FILES, FOLDER, address
from api.settings import ApiSettings, key_hash
from tests.api.conftest import Callers
from tests.api.memory import Installation, installation

OURS = {"sec-fetch-site": "same-origin"}
BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"} | OURS


@pytest.fixture
async def browser(world: Installation) -> AsyncIterator[httpx.AsyncClient]:
    """A client that asks as a browser does."""
    async with browser_of(world) as client:
        yield client


def browser_of(world: Installation, prefix: str = "") -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app=world.app)
    return httpx.AsyncClient(transport=transport, base_url=f"http://pages{prefix}", headers=BROWSER)


async def log_in(
    browser: httpx.AsyncClient, key: str = "key-operator", following: str = "/jobs"
) -> httpx.Response:
    answer = await browser.post("/login", data={"key": key, "next": following})
    assert answer.status_code == 303, answer.text
    return answer


def test_vendored_files_are_those_that_are_listed() -> None:
    rows = re.findall(
        r"^\| `(vendor/[^`]+)` .* `(vendor/[^`]+)` \| ([0-9a-f]{64}) \|$",
        (FOLDER / "VENDORED.md").read_text(),
        re.M,
    )
    hashes = {name: hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() for name, _, _ in rows}
    assert hashes == {name: listed for name, _, listed in rows}
    assert all((FOLDER / licence).is_file() for _, licence, _ in rows)
    there = {f"vendor/{path.name}" for path in (FOLDER / "vendor").iterdir() if path.suffix != ".txt"}
    assert there == set(hashes)


@pytest.mark.parametrize("name", sorted(FILES))
async def test_a_static_file_is_kept_for_ever_under_its_hash(browser: httpx.AsyncClient, name: str) -> None:
    answer = await browser.get(address(name))
    assert (answer.status_code, answer.content) == (200, FILES[name].content)
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-type"] == FILES[name].media_type
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path", ["/static/0123456789abcdef/pages.css", "/static/x/..%2fVENDORED.md", "/static/x/VENDORED.md"]
)
async def test_what_is_no_static_file_is_not_found(browser: httpx.AsyncClient, path: str) -> None:
    answer = await browser.get(path)
    assert answer.status_code == 404
    assert answer.headers["cache-control"] == "no-store"


async def test_a_key_logs_in_and_out(browser: httpx.AsyncClient, world: Installation) -> None:
    answer = await log_in(browser, following="/jobs?status=active")
    assert answer.headers["location"] == "/jobs?status=active"
    cookie = answer.headers["set-cookie"].lower()
    assert all(word in cookie for word in ("httponly", "samesite=strict", "path=/", "max-age=43200"))
    assert "secure" not in cookie
    assert (await browser.get("/login")).status_code == 303
    await browser.post("/logout")
    assert (await browser.get("/login")).status_code == 200


async def test_over_https_the_cookie_stays_there(browser: httpx.AsyncClient) -> None:
    answer = await browser.post("/login", data={"key": "key-viewer"}, headers={"x-forwarded-proto": "https"})
    assert "secure" in answer.headers["set-cookie"].lower()


async def test_an_unknown_key_stays_on_the_page(browser: httpx.AsyncClient) -> None:
    answer = await browser.post("/login", data={"key": "<script>alert(1)</script>", "next": "/jobs"})
    assert answer.status_code == 401
    assert "No such key is known here" in answer.text
    assert "alert(1)" not in answer.text
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "following", ["//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:alert(1)", ""]
)
async def test_a_login_leads_nowhere_else(browser: httpx.AsyncClient, following: str) -> None:
    assert (await log_in(browser, following=following)).headers["location"] == "/"


async def test_a_session_ends_after_its_time_and_with_its_key(
    browser: httpx.AsyncClient, world: Installation, callers: Callers
) -> None:
    await log_in(browser)
    world.clock.advance(12 * 3_600_000 - 1)
    assert (await browser.get("/login")).status_code == 303
    world.clock.advance(1)
    assert (await browser.get("/login")).status_code == 200
    made = (await callers["admin"].post("/v1/keys", json={"label": "pages", "role": "viewer"})).json()
    await log_in(browser, made["api_key"])
    assert (await browser.get("/login")).status_code == 303
    assert (await callers["admin"].post(f"/v1/keys/{made['id']}/revoke")).status_code == 200
    assert (await browser.get("/login")).status_code == 200


async def test_a_cookie_that_was_touched_is_none(browser: httpx.AsyncClient) -> None:
    answer = await log_in(browser)
    name, value = answer.headers["set-cookie"].split(";")[0].split("=", 1)
    browser.cookies.clear()
    browser.cookies.set(name, ("A" if value[0] != "A" else "B") + value[1:])
    assert (await browser.get("/login")).status_code == 200


@pytest.mark.parametrize(
    ("headers", "is_taken"),
    [
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "cross-site", "origin": "http://pages"}, False),
        ({"sec-fetch-site": "same-site"}, False),
        ({"origin": "http://pages"}, True),
        ({"origin": "http://elsewhere"}, False),
        ({"origin": "null"}, False),
        ({}, False),
    ],
)
async def test_only_our_own_forms_are_taken(
    world: Installation, headers: dict[str, str], is_taken: bool
) -> None:
    async with browser_of(world) as browser:
        del browser.headers["sec-fetch-site"]
        answer = await browser.post("/login", data={"key": "key-viewer"}, headers=headers)
    assert answer.status_code == (303 if is_taken else 403)
    assert ("set-cookie" in answer.headers) == is_taken


async def test_a_link_logs_in_once_within_ten_minutes() -> None:
    world = installation(login_token="once", login_key=key_hash("key-operator"))
    async with browser_of(world) as browser:
        assert (await browser.get("/login?token=other")).status_code == 401
        answer = await browser.get("/login?token=once")
        assert answer.status_code == 200
        assert "set-cookie" in answer.headers
        assert (await browser.get("/login")).status_code == 303
        assert (await browser.get("/login?token=once")).status_code == 401
    world = installation(login_token="once", login_key=key_hash("key-operator"))
    world.clock.advance(600_000)
    async with browser_of(world) as browser:
        assert (await browser.get("/login?token=once")).status_code == 401


async def test_without_a_setting_no_link_logs_in(browser: httpx.AsyncClient) -> None:
    assert "set-cookie" not in (await browser.get("/login?token=")).headers
    assert (await browser.get("/login?token=x")).status_code == 401


def test_a_token_without_its_key_is_refused() -> None:
    with pytest.raises(ValueError, match="give both or neither"):
        ApiSettings(login_token="x")


async def test_every_page_is_sent_with_its_policy(browser: httpx.AsyncClient) -> None:
    for path in ("/login", "/nowhere", "/problems/not-found"):
        answer = await browser.get(path)
        assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
        assert not re.search(r"<style|\sstyle=|<script(?![^>]*\ssrc=)|\son\w+=", answer.text)


async def test_a_refusal_is_a_page_for_browsers_alone(browser: httpx.AsyncClient) -> None:
    page = await browser.get("/nowhere")
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    for path in ("/v1/nowhere", "/v1/jobs/x"):
        problem = await browser.get(path)
        assert problem.headers["content-type"] == "application/problem+json"
    plain = await browser.get("/nowhere", headers={"accept": "*/*"})
    assert plain.headers["content-type"] == "application/problem+json"
    assert (await browser.post("/problems/internal")).status_code == 405
    assert (await browser.get("/problems/nothing")).status_code == 404


@pytest.mark.parametrize("is_taken_off", [True, False])
async def test_a_prefix_stands_before_every_path(is_taken_off: bool) -> None:
    world = installation(path_prefix="/mb")
    before = "" if is_taken_off else "/mb"
    async with browser_of(world) as browser:
        page = await browser.get(f"{before}/login")
        assert f'href="/mb{address("pages.css")}"' in page.text
        assert (await browser.get(f"{before}{address('pages.css')}")).status_code == 200
        answer = await browser.post(f"{before}/login", data={"key": "key-viewer", "next": "/jobs"})
        assert answer.headers["location"] == "/mb/jobs"
        assert "path=/mb" in answer.headers["set-cookie"].lower()
        answer = await browser.get(f"{before}/v1/jobs/x", headers={"authorization": "Bearer key-viewer"})
        assert answer.json()["code"] == "not-found"


async def test_the_environment_is_shown_as_text() -> None:
    async with browser_of(installation(environment="<b>prod")) as browser:
        assert "&lt;b&gt;prod" in (await browser.get("/login")).text
