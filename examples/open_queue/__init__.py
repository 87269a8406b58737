"""Two consumers of an open queue that use nothing of minutebook but the schema files: any language can do the same.

docs/reference/open-queues.md is the protocol, record by record. `share_group` and `classic_group` differ in how they read
due records and speak to Kafka; what is said is the same, and lies in `session`.
"""
