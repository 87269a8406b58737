# One image for owners, API, workers and the command line; docker-compose.yml says which is which.
FROM python:3.11-slim

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /app

COPY requirements.txt ./
RUN pip install --no-cache-dir --require-hashes -r requirements.txt

COPY schemas/ schemas/
COPY minutebook/ minutebook/
COPY streams/ streams/
COPY api/ api/
COPY replay/ replay/
COPY examples/ examples/

# Named volumes take owner and mode from these folders when they are first used.
RUN useradd --uid 10001 --no-create-home minutebook \
    && install -d -o minutebook -g minutebook /data /data/state /data/checkpoints /data/keys
USER minutebook

CMD ["python", "-m", "minutebook.cli", "--help"]
