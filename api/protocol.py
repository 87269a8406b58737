"""What the server itself answers to bytes that are no HTTP: a problem, as everything else that is refused."""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from api.problems import Refused, new_trace_id, response_of


class ProblemProtocol(HttpToolsProtocol):
    """uvicorn's protocol, which would answer in plain text."""

    def send_400_response(self, msg: str) -> None:
        """Answer, and close the connection: what follows cannot be told apart from the rest of this request."""
        answer = response_of(Refused("malformed", headers={"connection": "close"}), new_trace_id())
        lines = [b"HTTP/1.1 400 Bad Request", *(b": ".join(header) for header in answer.raw_headers)]
        self.transport.write(b"\r\n".join((*lines, b"", bytes(answer.body))))
        self.transport.close()
