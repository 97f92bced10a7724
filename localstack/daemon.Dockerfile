# A shard host: kainite run with record processors in Python. No JVM, no Spark, not root.
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
RUN python -m venv /opt/kainite \
    && /opt/kainite/bin/pip install --no-cache-dir --constraint constraints.txt '.[processors,postgresql]' \
    && /opt/kainite/bin/pip uninstall --yes pip

FROM python:3.12-slim-bookworm
COPY --from=build /opt/kainite /opt/kainite
ENV PATH=/opt/kainite/bin:$PATH PYTHONUNBUFFERED=1
RUN useradd --uid 10001 --create-home kainite
USER 10001
WORKDIR /home/kainite
ENTRYPOINT ["kainite"]
CMD ["--help"]
