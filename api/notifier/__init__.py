"""The notifier: alerts from the topic, posted as signed webhooks. A target that is broken holds up no other one."""
