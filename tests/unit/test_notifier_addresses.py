"""What may be called: tables of URLs and addresses, and the networks that a setting opens."""

from __future__ import annotations

import ipaddress

import pytest

from api.notifier.addresses import Rules, is_public
from minutebook.domain.notify import TargetFault, fault, read_target

PUBLIC = [
    "8.8.8.8",
    "1.1.1.1",
    "93.184.216.34",
    "2606:4700:4700::1111",
    "2a00:1450:4001::1",
    "::ffff:8.8.8.8",
]
NOT_PUBLIC = {
    "loopback": ["127.0.0.1", "127.255.255.254", "::1"],
    "unspecified": ["0.0.0.0", "0.1.2.3", "::"],
    "private": ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fd12:3456::1"],
    "carrier": ["100.64.0.1", "100.127.255.255", "100.100.100.200"],
    "link-local": ["169.254.0.1", "fe80::1", "fe80::1%eth0"],
    "site-local": ["fec0::1"],
    "metadata": ["169.254.169.254", "fd00:ec2::254", "168.63.129.16", "192.0.0.192"],
    "multicast": ["224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"],
    "reserved": ["240.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1"],
    "documentation": ["2001:db8::1", "3fff::1"],
    "mapped": ["::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:a9fe:a9fe"],
    "compatible": ["::127.0.0.1", "::10.0.0.1"],
    "NAT64": ["64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::7f00:1"],
    "6to4": ["2002:7f00:1::", "2002:a9fe:a9fe::1", "192.88.99.1"],
    "Teredo": ["2001:0:7f00:1::1"],
    "IETF": ["192.0.0.8", "192.0.0.170"],
    "discard": ["100::1"],
}


@pytest.mark.parametrize("address", PUBLIC)
def test_public_address_may_be_called(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))
    assert Rules().refusal([ipaddress.ip_address(address)], 443) == ""


@pytest.mark.parametrize("address", [address for group in NOT_PUBLIC.values() for address in group])
def test_address_that_leads_inside_may_not_be_called(address: str) -> None:
    found = ipaddress.ip_address(address)
    assert not is_public(found)
    assert Rules().refusal([found], 443) == "must lead to a public address"


def test_one_bad_address_among_good_ones_is_enough() -> None:
    found = [ipaddress.ip_address(text) for text in ("8.8.8.8", "10.0.0.1", "1.1.1.1")]
    assert Rules().refusal(found, 443)
    assert Rules().refusal([], 443) == "has no address"


@pytest.mark.parametrize("port", [80, 443, 8_000, 8_080, 8_443, 8_999])
def test_ports_of_the_web_may_be_called(port: int) -> None:
    assert Rules().refusal_of_url(read_target(f"https://a.com:{port}/")) == ""


@pytest.mark.parametrize("port", [1, 22, 25, 81, 444, 2_379, 6_379, 7_999, 9_000, 9_092, 65_535])
def test_other_ports_may_not_be_called(port: int) -> None:
    assert "port 80, 443" in Rules().refusal_of_url(read_target(f"https://a.com:{port}/"))
    assert "port 80, 443" in Rules().refusal([ipaddress.ip_address("8.8.8.8")], port)


def test_named_network_may_be_called_on_any_port_and_nothing_beside_it() -> None:
    rules = Rules(networks=[ipaddress.ip_network("10.1.0.0/16"), ipaddress.ip_network("::1/128")])
    assert rules.refusal([ipaddress.ip_address("10.1.2.3")], 9_999) == ""
    assert rules.refusal([ipaddress.ip_address("::ffff:10.1.2.3")], 9_999) == ""
    assert rules.refusal([ipaddress.ip_address("::1")], 22) == ""
    assert rules.refusal([ipaddress.ip_address("10.2.0.1")], 443)
    assert rules.refusal([ipaddress.ip_address("10.1.2.3"), ipaddress.ip_address("10.2.0.1")], 443)
    assert rules.refusal([ipaddress.ip_address("10.1.2.3"), ipaddress.ip_address("8.8.8.8")], 22)
    assert rules.refusal([ipaddress.ip_address("8.8.8.8")], 22)
    assert rules.refusal_of_url(read_target("https://inside.example:9999/")) == "", "the address will tell"
    assert rules.refusal_of_url(read_target("https://10.1.2.3:9999/")) == ""
    assert rules.refusal_of_url(read_target("https://10.2.2.3/"))


def test_http_is_for_development_alone() -> None:
    target = read_target("http://a.com/")
    assert (target.port, Rules().refusal_of_url(target)) == (80, "must begin with https://")
    assert Rules(allows_http=True).refusal_of_url(target) == ""


URLS = {
    "short": "https://127.1/",
    "decimal": "https://2130706433/",
    "hex": "https://0x7f000001/",
    "hex part": "https://127.0.0.0x1/",
    "octal": "https://017700000001/",
    "octal part": "https://0177.0.0.1/",
    "zero": "https://0/",
    "trailing dot": "https://127.0.0.1./",
    "full-width": "https://\uff11\uff12\uff17.0.0.1/",
    "circled": "https://\u2460\u2461\u2466.0.0.1/",
    "ideographic stop": "https://127\u30020\u30020\u30021/",
    "percent": "https://127.0.0.%31/",
    "user name": "https://good.com@127.0.0.1/",
    "user name and password": "https://a:b@good.com/",
    "empty user name": "https://@good.com/",
    "backslash": "https://good.com\\@127.0.0.1/",
    "newline": "https://good.com/\nHost: x",
    "tab": "https://go\tod.com/",
    "space": "https://good.com/ x",
    "NUL": "https://good.com/\0",
    "no host": "https:///x",
    "no scheme": "//good.com/",
    "gopher": "gopher://good.com/",
    "file": "file:///etc/passwd",
    "port 0": "https://good.com:0/",
    "port beyond": "https://good.com:65536/",
    "port that is none": "https://good.com:x/",
    "open bracket": "https://[::1/",
    "zone": "https://[fe80::1%25lo]/",
    "empty label": "https://good..com/",
    "long label": f"https://{'a' * 64}.com/",
    "long name": f"https://{'a.' * 130}com/",
    "nothing": "",
    "too long": "https://good.com/" + "a" * 2_032,
}


@pytest.mark.parametrize("name", URLS)
def test_url_that_readers_may_read_differently_is_refused(name: str) -> None:
    assert fault(URLS[name])
    with pytest.raises(TargetFault):
        read_target(URLS[name])


@pytest.mark.parametrize(
    ("url", "host", "port", "path"),
    [
        ("https://good.com", "good.com", 443, "/"),
        ("HTTPS://Good.COM:8443/a/b?c=d#e", "good.com", 8_443, "/a/b?c=d"),
        ("http://a_b.x-1.example?q", "a_b.x-1.example", 80, "/?q"),
        ("https://xn--bcher-kva.example./", "xn--bcher-kva.example.", 443, "/"),
        ("https://8.8.8.8/", "8.8.8.8", 443, "/"),
        ("https://[2606:4700::1]:8080/", "2606:4700::1", 8_080, "/"),
    ],
)
def test_url_is_read_into_its_parts(url: str, host: str, port: int, path: str) -> None:
    target = read_target(url)
    assert (target.host, target.port, target.path) == (host, port, path)
    assert fault(url) == ""
