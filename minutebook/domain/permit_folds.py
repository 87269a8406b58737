"""Folds of permits: on their way from a limit's home to an attempt, and back."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.permits import recent_of
from minutebook.domain.state import Execution, Home, Stock
from minutebook.errors import BrokenFrameError

replace = msgspec.structs.replace

EMPTY_STOCK = Stock()
EMPTY_HOME = Home()


def stock_of(book: Book, row: bytes) -> Stock:
    """What this partition has of the permits of the limit with that row, and asked for."""
    return book.stocks.get(row) or EMPTY_STOCK


def home_of(book: Book, row: bytes) -> Home:
    """What is asked and out of the permits of the limit with that row, where this is its home."""
    return book.homes.get(row) or EMPTY_HOME


def _put_stock(book: Book, row: bytes, stock: Stock) -> None:
    if stock.asked or stock.free or stock.spent:
        book.stocks.put(row, stock)
    else:
        book.stocks.delete(row)


# -- at the partition that asks


def asked(book: Book, event: facts.PermitsAsked, token: int, now: int) -> None:
    """This partition could use permits. What it asked of an older version of the limit is void."""
    row = keys.limit_row(event.tenant, event.limit)
    stock = stock_of(book, row)
    before = stock.asked if stock.version == event.version else 0
    changed = replace(stock, version=event.version, asked=before + event.count, priority=event.priority)
    _put_stock(book, row, changed)


def received(book: Book, event: facts.PermitsReceived, token: int, now: int) -> None:
    """Permits are here."""
    row = keys.limit_row(event.tenant, event.limit)
    stock = stock_of(book, row)
    answered = len(event.permits) if stock.version == event.version else 0
    free = [*stock.free, *((permit, now) for permit in event.permits)]
    _put_stock(book, row, replace(stock, asked=max(0, stock.asked - answered), free=free))


def bind(book: Book, event: facts.ExecutionsGranted) -> None:
    """The attempts that a grant has started run under these permits."""
    bound: dict[bytes, list[int]] = defaultdict(list)
    for row, number, permit in zip(event.permit_row, event.permit_limit, event.permit_ids, strict=True):
        tenant, name = event.tenants[event.tenant[row]], event.limits[number]
        key = keys.execution_row(tenant, event.executions[row])
        execution = book.running.get(key)
        if execution is None:
            raise BrokenFrameError(f"{key!r} does not run, no permit of {name!r} is its")
        book.running.put(key, replace(execution, permits=[*execution.permits, (name, permit)]))
        bound[keys.limit_row(tenant, name)].append(permit)
    for limit, permits in bound.items():
        stock, gone = stock_of(book, limit), set(permits)
        free = [item for item in stock.free if item[0] not in gone]
        if len(free) + len(permits) != len(stock.free):
            raise BrokenFrameError(f"a permit of {limit!r} that is not free here is bound")
        _put_stock(book, limit, replace(stock, free=free))


def spend(book: Book, ended: Iterable[tuple[bytes, Execution]]) -> None:
    """Attempts have ended, given by the rows of their executions; the permits that they ran under are over."""
    for row, permits in _by_limit(ended).items():
        stock = stock_of(book, row)
        _put_stock(book, row, replace(stock, spent=[*stock.spent, *permits]))


def lay_down(book: Book, returned: Iterable[tuple[bytes, Execution]], now: int) -> None:
    """Attempts never started; their permits are as good as when they came."""
    for row, permits in _by_limit(returned).items():
        stock = stock_of(book, row)
        _put_stock(book, row, replace(stock, free=[*stock.free, *((permit, now) for permit in permits)]))


def _by_limit(executions: Iterable[tuple[bytes, Execution]]) -> Mapping[bytes, list[int]]:
    found: dict[bytes, list[int]] = defaultdict(list)
    for key, execution in executions:
        tenant = keys.names(key)[0]
        for name, permit in execution.permits:
            found[keys.limit_row(tenant, name)].append(permit)
    return found


def released(book: Book, event: facts.PermitsReleased, token: int, now: int) -> None:
    """Permits go back to the limit's home."""
    row, gone = keys.limit_row(event.tenant, event.limit), set(event.permits)
    stock = stock_of(book, row)
    free = [item for item in stock.free if item[0] not in gone]
    spent = [permit for permit in stock.spent if permit not in gone]
    if len(stock.free) - len(free) + len(stock.spent) - len(spent) != len(event.permits):
        raise BrokenFrameError(f"a permit of {row!r} that is not here is released")
    _put_stock(book, row, replace(stock, free=free, spent=spent))


# -- at the limit's home


def demanded(book: Book, event: facts.PermitsDemanded, token: int, now: int) -> None:
    """A partition asks. What was demanded of an older version of the limit is void."""
    row = keys.limit_row(event.tenant, event.limit)
    home = home_of(book, row)
    demands = {partition: count for partition, count, _ in _live(home, event.version)}
    priorities = {partition: priority for partition, _, priority in _live(home, event.version)}
    demands[event.partition] = demands.get(event.partition, 0) + event.count
    priorities[event.partition] = event.priority
    book.homes.put(row, replace(home, version=event.version, demands=_demands(demands, priorities)))


def _live(home: Home, version: int) -> list[tuple[int, int, int]]:
    return home.demands if home.version == version else []


def _demands(counts: Mapping[int, int], priorities: Mapping[int, int]) -> list[tuple[int, int, int]]:
    return [
        (partition, counts[partition], priorities[partition])
        for partition in sorted(counts)
        if counts[partition] > 0
    ]


def granted(book: Book, event: facts.PermitsGranted, token: int, now: int) -> None:
    """Permits are out, each to one partition."""
    row = keys.limit_row(event.tenant, event.limit)
    home, limit = home_of(book, row), book.limit(event.tenant, event.limit)
    for permit, partition in enumerate(event.partitions, token):
        book.permits.put(keys.permit_row(row, permit), partition)
    answered = Counter(event.partitions)
    counts = {partition: count - answered[partition] for partition, count, _ in home.demands}
    changed = replace(
        home,
        in_use=home.in_use + len(event.partitions),
        demands=_demands(counts, {partition: priority for partition, _, priority in home.demands}),
        recent=recent_of(home, limit, now),
        turn=event.partitions[-1],
    )
    if limit is not None and limit.rate_count >= 0:
        changed.recent.append((now, len(event.partitions)))
    book.homes.put(row, changed)


def returned(book: Book, event: facts.PermitsReturned, token: int, now: int) -> None:
    """Permits are back."""
    row = keys.limit_row(event.tenant, event.limit)
    for permit in event.permits:
        key = keys.permit_row(row, permit)
        if book.permits.get(key) is None:
            raise BrokenFrameError(f"permit {permit} of {row!r} is not out, it cannot come back")
        book.permits.delete(key)
    home = home_of(book, row)
    book.homes.put(row, replace(home, in_use=home.in_use - len(event.permits)))
