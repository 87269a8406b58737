"""How to reach Kafka: one object from which every client is made."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from minutebook.errors import SettingsError

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]


class KafkaSettings(BaseSettings):
    """Addresses and credentials. Environment names start with `MINUTEBOOK_KAFKA_`."""

    model_config = SettingsConfigDict(env_prefix="MINUTEBOOK_KAFKA_", frozen=True, extra="ignore")

    bootstrap_servers: str = Field(default="127.0.0.1:9092", description="`host:port`, several with commas")
    security_protocol: Protocol = Field(default="PLAINTEXT", description="how the brokers are spoken to")
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        default="SCRAM-SHA-512", description="counts where a user name is given"
    )
    sasl_username: str | None = Field(default=None, description="user name; none = no SASL")
    sasl_password: SecretStr | None = Field(default=None, description="its password")
    sasl_password_file: Path | None = Field(default=None, description="or the file that holds it")
    ssl_ca_file: str | None = Field(
        default=None, description="PEM file of the authority to trust; none = those of the system"
    )
    topic_prefix: str = Field(
        default="", description="before every topic name, so that installations can share a cluster"
    )

    def topic(self, name: str) -> str:
        """Name of a topic in this installation."""
        return self.topic_prefix + name

    def aiokafka(self) -> dict[str, Any]:
        """Arguments for aiokafka's clients."""
        return {"bootstrap_servers": self.bootstrap_servers.split(",")} | self._credentials()

    def kafka_python(self) -> dict[str, Any]:
        """Arguments for kafka-python's clients."""
        return self.aiokafka()

    def confluent(self) -> dict[str, Any]:
        """Settings for confluent-kafka's clients; its default partitioner is not Kafka's, so it is set here."""
        found: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap_servers,
            "partitioner": "murmur2_random",
            "security.protocol": self.security_protocol,
        }
        if self.sasl_username is not None:
            found |= {
                "sasl.mechanism": self.sasl_mechanism,
                "sasl.username": self.sasl_username,
                "sasl.password": self.password(),
            }
        if self.ssl_ca_file is not None:
            found["ssl.ca.location"] = self.ssl_ca_file
        return found

    def ssl_context(self) -> ssl.SSLContext | None:
        """TLS context, None without TLS."""
        if not self.security_protocol.endswith("SSL"):
            return None
        return ssl.create_default_context(cafile=self.ssl_ca_file)

    def password(self) -> str | None:
        """The password of the user, None without one. Raises SettingsError for a file that cannot be read."""
        if self.sasl_password is not None or self.sasl_password_file is None:
            return None if self.sasl_password is None else self.sasl_password.get_secret_value()
        try:
            return self.sasl_password_file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"MINUTEBOOK_KAFKA_SASL_PASSWORD_FILE cannot be read: {error}") from error

    def _credentials(self) -> dict[str, Any]:
        found: dict[str, Any] = {"security_protocol": self.security_protocol}
        if self.sasl_username is not None:
            found |= {
                "sasl_mechanism": self.sasl_mechanism,
                "sasl_plain_username": self.sasl_username,
                "sasl_plain_password": self.password(),
            }
        context = self.ssl_context()
        return found if context is None else found | {"ssl_context": context}
