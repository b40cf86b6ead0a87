# syntax=docker/dockerfile:1
# Weft with Spark and Java: docker build -t weft . && docker run --rm -v "$PWD:/work" weft init demo
FROM python:3.12-slim-bookworm AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src src
COPY docs/errors docs/errors
COPY docs/weft.1 docs/weft.1
RUN python -m venv /opt/weft \
    && /opt/weft/bin/pip install --no-cache-dir --constraint constraints.txt '.[connect,postgres]'

FROM python:3.12-slim-bookworm
# procps has `ps`, which Spark's scripts call.
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
        openjdk-17-jre-headless=17.* procps=2:* tini=0.19.* \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/weft /opt/weft
ENV PATH=/opt/weft/bin:$PATH PYTHONUNBUFFERED=1
# The classes of Spark as Java keeps them in memory: each container starts a third faster.
RUN weft doctor --fast-start --quiet && useradd --create-home --uid 1000 weft
USER 1000
WORKDIR /work
ENTRYPOINT ["tini", "--", "weft"]
CMD ["--help"]
