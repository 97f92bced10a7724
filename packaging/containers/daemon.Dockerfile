# A shard host: kainite run with record processors in Python. No JVM, no Spark, no database driver, not root.
#   docker build --file packaging/containers/daemon.Dockerfile --tag kainite .
FROM python:3.12-slim-bookworm AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY daemon daemon
COPY spark_apply spark_apply
COPY demo demo
COPY record_processors record_processors
COPY packaging packaging
# amazon-kclpy's build fetches 70 MB of jars that Kainite replaces; from a "data:" address they are a few bytes each.
ENV KCL_MVN_REPO_SEARCH_URL=data:,
# What is installed: docs/install.md has the extras. A daemon that reads the target's tables itself needs postgresql or
# mariadb too.
ARG EXTRAS=processors
RUN python -m venv /opt/kainite \
    && /opt/kainite/bin/pip install --no-cache-dir --constraint constraints.txt ".[${EXTRAS}]" \
    && /opt/kainite/bin/pip uninstall --yes pip

FROM python:3.12-slim-bookworm
# tini hands on SIGTERM, and reaps what children leave behind.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends tini \
    && rm -rf /var/lib/apt/lists/* \
    && python -m pip uninstall --yes --root-user-action=ignore pip \
    && useradd --uid 10001 --home-dir /var/lib/kainite --create-home kainite
COPY --from=build /opt/kainite /opt/kainite
# Probes come from outside the container.
ENV PATH=/opt/kainite/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    KAINITE_METRICS_HOST=0.0.0.0 KAINITE_METRICS_PORT=9404
USER 10001
WORKDIR /var/lib/kainite
EXPOSE 9404
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=6 CMD ["python", "-c", \
    "import os, urllib.request as u; u.urlopen(f\"http://127.0.0.1:{os.environ['KAINITE_METRICS_PORT']}/live\", timeout=4)"]
ENTRYPOINT ["tini", "--", "kainite"]
CMD ["--help"]
