# The apply job: kainite apply, Spark in local mode on a Java 17 runtime. Not root.
FROM python:3.12-slim-bookworm AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY daemon daemon
COPY spark_apply spark_apply
COPY demo demo
COPY record_processors record_processors
COPY packaging packaging
RUN python -m venv /opt/kainite \
    && /opt/kainite/bin/pip install --no-cache-dir --constraint constraints.txt '.[spark,postgresql]' \
    && /opt/kainite/bin/pip uninstall --yes pip

FROM python:3.12-slim-bookworm
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/kainite /opt/kainite
ENV PATH=/opt/kainite/bin:$PATH PYSPARK_PYTHON=/opt/kainite/bin/python PYTHONUNBUFFERED=1
RUN useradd --uid 10001 --create-home kainite
USER 10001
WORKDIR /home/kainite
ENTRYPOINT ["kainite"]
CMD ["--help"]
