"""`python -m api`: one API process, settings from the environment."""

from __future__ import annotations

import asyncio
import os
import sys

from pydantic import ValidationError

from api.notifier.settings import NotifySettings
from api.priority import step_back
from api.server import serve
from api.settings import ApiSettings, ProcessSettings
from minutebook.environment import require_known_names
from minutebook.errors import SettingsError
from minutebook.eventloop import new_event_loop
from minutebook.log.admin import TopicSettings
from minutebook.log.settings import KafkaSettings
from minutebook.logs import log_to_stderr


def main() -> int:
    """Serve until told to stop. Exit code 0, or 2 for settings that are refused."""
    log_to_stderr()
    try:
        require_known_names(os.environ, ApiSettings, KafkaSettings, NotifySettings)
        settings = ProcessSettings(
            api=ApiSettings(), kafka=KafkaSettings(), topics=TopicSettings(), notify=NotifySettings()
        )
        step_back(settings.api.niceness)
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(serve(settings))
    except (SettingsError, ValidationError) as error:
        sys.stderr.write(f"settings refused: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
