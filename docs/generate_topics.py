"""`python -m docs.generate_topics` writes `docs/reference/topics.md` from the topic table."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutebook.domain.submit import PAYLOAD_BYTES_MAX
from minutebook.log.admin import TopicSettings
from minutebook.wire import topics
from minutebook.wire.topics import Topic

PAGE: Final = Path(__file__).parent / "reference" / "topics.md"
_READERS: Final = {
    topics.COMMANDS: "the owner of the partition, `replay decide`",
    topics.REPORTS: "the owner of the partition, `replay decide`",
    topics.MAIL: "the owner of the partition, `replay decide`",
    topics.EVENTS: "the owner of the partition, API, `replay`",
    topics.INBOX: "workers, each its partition",
    topics.DEAD_LETTERS: "anyone",
    topics.REJECTED: "people",
    topics.ALERTS: "the notifier in the API process, anyone",
    topics.DUE: "consumers of the open queue, for example a share group",
}
_PARTITIONS: Final = {
    topics.INBOX: f"{TopicSettings.model_fields['inbox_partitions'].default} (`MINUTEBOOK_TOPICS_INBOX_PARTITIONS`)"
}
_STEPS_MS: Final = ((86_400_000, "days"), (3_600_000, "hours"), (60_000, "minutes"))
_HEAD: Final = """# Topics

`minutebook topics create` makes them, `topics check` and the start of owners and API compare them. P is
`MINUTEBOOK_TOPICS_PARTITIONS`, fixed for life: a job's partition is Kafka's default murmur2 of its key, modulo P. Values are
Avro in single-object encoding, [`schemas/`](../../schemas/README.md) has them. No topic is compacted and none is written in
transactions. The broker takes records of up to {message_mib} MiB, a payload ends at {payload_kib} KiB. This page is written by
`python -m docs.generate_topics`.

| topic | partitions | key | written by | read by | kept | stamped by |
|---|---|---|---|---|---|---|
"""
_TAIL: Final = """
The last one is there for each [open queue](open-queues.md): the API makes it before it declares the queue, or `minutebook topics
create --open QUEUE` does. Owners hold due records back while it is missing, and say so on `/readyz`.
"""


def page() -> str:
    """The page as it must be."""
    head = _HEAD.format(message_mib=topics.MESSAGE_BYTES_MAX >> 20, payload_kib=PAYLOAD_BYTES_MAX >> 10)
    inbox = TopicSettings.model_fields["inbox_partitions"].default
    declared = (*topics.table(inbox), topics.due_topic("<queue>"))
    return head + "".join(map(_row, declared)) + _TAIL


def _row(topic: Topic) -> str:
    cells = (
        f"`{topic.name}`",
        _PARTITIONS.get(topic.name, str(topic.partitions or "P")),
        topic.key.replace("<tenant>/<job id>", "`<tenant>/<job id>`"),
        topic.writer,
        _READERS[topics.DUE if topic.name.startswith(topics.DUE) else topic.name],
        kept(topic.retention_ms),
        "the broker" if topic.is_append_time else "the writer",
    )
    return f"| {' | '.join(cells)} |\n"


def kept(retention_ms: int) -> str:
    """A retention in words."""
    if retention_ms < 0:
        return "for ever"
    unit_ms, unit = next(step for step in _STEPS_MS if retention_ms % step[0] == 0)
    return f"{retention_ms // unit_ms} {unit}"


if __name__ == "__main__":
    PAGE.write_text(page())
