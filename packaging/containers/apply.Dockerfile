# The apply job: kainite apply, Spark in local mode on a Java 17 runtime. Not root.
#   docker build --file packaging/containers/apply.Dockerfile --tag kainite-apply .
FROM python:3.12-slim-bookworm AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY daemon daemon
COPY spark_apply spark_apply
COPY demo demo
COPY record_processors record_processors
COPY packaging packaging
# What is installed beside Spark: the target's driver.
ARG EXTRAS=postgresql
RUN python -m venv /opt/kainite \
    && /opt/kainite/bin/pip install --no-cache-dir --constraint constraints.txt ".[spark,${EXTRAS}]" \
    && /opt/kainite/bin/pip uninstall --yes pip

FROM python:3.12-slim-bookworm
# tini hands on SIGTERM, and reaps what Spark leaves behind; Spark's scripts use ps.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps tini \
    && rm -rf /var/lib/apt/lists/* \
    && python -m pip uninstall --yes --root-user-action=ignore pip \
    && useradd --uid 10001 --home-dir /var/lib/kainite --create-home kainite
COPY --from=build /opt/kainite /opt/kainite
# Spark's JVM starts in half the processor time with an archive of its classes, for this Java and these jars.
RUN /opt/kainite/bin/python -m kainite_spark.driver.archive_classes
# Probes come from outside the container.
ENV PATH=/opt/kainite/bin:$PATH PYSPARK_PYTHON=/opt/kainite/bin/python PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    KAINITE_METRICS_HOST=0.0.0.0 KAINITE_APPLY_METRICS_PORT=9405
USER 10001
WORKDIR /var/lib/kainite
EXPOSE 9405
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s --retries=6 CMD ["python", "-c", \
    "import os, urllib.request as u; u.urlopen(f\"http://127.0.0.1:{os.environ['KAINITE_APPLY_METRICS_PORT']}/live\", timeout=4)"]
ENTRYPOINT ["tini", "--", "kainite"]
CMD ["--help"]
