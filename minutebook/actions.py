"""The list of all actions that logs name: stable names, to look for and to alert on, with what each means.

A line of a log says its `action`, its `message` from here, and fields. `docs/reference/actions.md` is written from this.
"""

from __future__ import annotations

from typing import Final

LIBRARY: Final = "library"
TASK: Final = "task_said"

ACTIONS: Final = {
    "agent_failed": "A Faust agent failed: the process leaves, the next one reads the log.",
    "alert_not_delivered": "A target did not take an alert in time; it is given up.",
    "alert_unreadable": "A record on the topic of alerts is none, and is passed over.",
    "alerts_not_committed": "Alerts were delivered and the group does not know: another process may deliver them again.",
    "alerts_not_read": "The notifier cannot read alerts, and tries on; requests are answered.",
    "broker_not_reachable": "The API lost the broker, and tries on.",
    "broker_not_usable": "The API cannot use the broker or its topics yet, and tries on.",
    "commands_not_acknowledged": "The broker did not take commands; their callers were told to repeat.",
    "commands_not_sent": "A fault that nobody foresaw while commands were sent; their callers were told to repeat.",
    "delivery_stopped": "The group's consumer does not bring what the broker has: it is read from the topic.",
    "due_record_refused": "A due record is too large for its topic: raise `max.message.bytes`.",
    "due_records_held_back": "Due records of an open queue cannot be sent; `minutebook topics create --open` makes its topic.",
    "due_row_not_decided": "Deciding failed on a row that is due: it is passed over until a restart.",
    "due_row_not_read_ahead": "A row that will be due could not be read ahead; it is decided at its time.",
    "due_topic_not_made": "The due topic of an open queue could not be made; the caller was told to try again.",
    "due_topic_refused": "The broker refuses to make the due topic of an open queue.",
    "event_loop_blocked": "A task blocks the event loop; `stack` says where.",
    "frame_not_read": "A frame that would name what a worker runs could not be read; the runs are counted instead.",
    "frame_void": "A record of the log counts for nobody.",
    "inbox_record_broken": "An inbox record is not whole; what it grants is withdrawn and comes again.",
    "inbox_record_unreadable": "An inbox record cannot be decoded; what it grants is withdrawn and comes again.",
    "input_ends_unknown": "The broker did not say how far the inputs go.",
    "input_not_decided": "Deciding failed on an input: it goes on record as refused.",
    "input_not_readable": "An input topic cannot be read, and is tried on.",
    "kafka_away": "A worker lost the broker, and tries on.",
    "kafka_back": "A worker has the broker again.",
    "leases_restarted": "The broker or this process stood still: all leases of a partition start again.",
    "left_without_goodbye": "A worker closed its connection in a hurry.",
    "live_changes_failed": "The live stream met a fault of ours: its listeners were told to connect again.",
    "operation_share_not_decided": "A step of a bulk operation failed; it is tried again.",
    "output_refused": "The broker refuses an output for good; that goes on record.",
    "owner_failed": "An owner failed in a way nobody foresaw: the process leaves.",
    "owners_leaving": "The process of owners ends at once; the next owner reads the log.",
    "owners_started": "A process of owners runs.",
    "owners_stopping": "A process of owners was asked to stop.",
    "partition_assigned_apart": "The group split the input topics of a partition: it is not served here.",
    "partition_halted": "The log of a partition cannot be trusted, or a clock is off: nothing is decided there.",
    "partition_lost": "Another owner took a partition.",
    "partition_served": "An owner serves a partition.",
    "rejected_record_gone": "A rejected record was deleted before it could be copied.",
    "report_not_heard_ahead": "A report could not be read ahead; it is decided in its turn.",
    "reports_acknowledged": "The broker takes reports again.",
    "reports_not_acknowledged": "The broker takes no reports; the leases of what runs end if it goes on.",
    "request_failed": "A request met a fault of ours; the caller got a 500 with this trace id.",
    "rescheduling_failed": "Next instants of jobs cannot be computed anew; it is tried again.",
    "share_group_not_set": "The share group of an open queue does not start at the oldest record; set `share.auto.offset.reset`.",
    "stack": "What a task of the event loop waits for, as asked for by SIGUSR1.",
    "store_damaged": "The store of an owner is damaged: it is folded again from the log.",
    "store_outdated": "The store of an owner is of another version: it is folded again from the log.",
    "tasks_not_declared": "A worker may not declare its tasks: payloads are checked when they start alone.",
    "view_caught_up": "The view has read the log to its end: requests are answered.",
    "view_damaged": "The store of the view is damaged: it is dropped and folded again.",
    "view_halted": "The view cannot trust the log and answers nothing any more.",
    "view_partition_restarted": "The view of a partition is of another log or version, and is folded again from the start.",
    "worker_started": "A worker runs.",
    "workers_not_read": "Reports of workers cannot be read, and are tried on: the list of workers is old meanwhile.",
    LIBRARY: "A library said something of its own accord; `logger` names it.",
    TASK: "A task wrote a line by its context's logger.",
}
