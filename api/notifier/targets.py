"""Who gets an alert: the target that the job names, else the tenant's, else nobody."""

from __future__ import annotations

from typing import Final, NamedTuple

from api.notifier.settings import NotifySettings
from api.notifier.signature import read_secret
from minutebook.domain.notify import Target, TargetFault, read_target
from minutebook.domain.records import Alert

_NO_SECRET: Final = (
    "cannot be signed: this tenant has no secret; the operator gives it one in MINUTEBOOK_NOTIFY_TARGETS"
)


class Receiver(NamedTuple):
    """Where an alert is posted, and the key that signs it."""

    target: Target
    key: bytes


class Targets:
    """The tenants' targets and keys, and what may be called at all."""

    def __init__(self, settings: NotifySettings) -> None:
        """Raises SettingsError for targets that are refused."""
        found = settings.all_targets()
        self.rules = settings.rules()
        self._keys = {tenant: read_secret(one.secret.get_secret_value()) for tenant, one in found.items()}
        self._urls = {tenant: one.url for tenant, one in found.items()}

    def fault(self, tenant: str, url: str) -> str:
        """Why a job of `tenant` cannot have its alerts sent to `url`, with the remedy; empty if it can."""
        try:
            refusal = self.rules.refusal_of_url(read_target(url))
        except TargetFault as error:
            return str(error)
        return refusal or ("" if tenant in self._keys else _NO_SECRET)

    def receiver(self, alert: Alert) -> Receiver | str | None:
        """Who gets it; why the one that is named cannot; None if nobody is."""
        url = alert.notify or self._urls.get(alert.tenant, "")
        if not url:
            return None
        fault = self.fault(alert.tenant, url)
        return fault or Receiver(read_target(url), self._keys[alert.tenant])
