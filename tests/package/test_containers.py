"""The images of packaging/containers and the example for Kubernetes, as far as they can be checked without a container.

``make test-images`` builds the images and runs them, where Docker or Podman is: the tests with the mark ``images``.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kainite.observe.paths import LIVE, READY
from kainite.settings import examine
from support.names import unique
from support.waiting import eventually

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "packaging/containers"
DOCKERFILES = sorted(FOLDER.glob("*.Dockerfile"))
EACH = pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.stem)
PORTS = {"daemon": ("KAINITE_METRICS_PORT", "9404"), "apply": ("KAINITE_APPLY_METRICS_PORT", "9405")}
"""The port of each image's probes, and the variable that sets it."""
# Nobody answers on port 9.
AWAY = """
applicationName = orders
streamName = orders
regionName = us-east-1
kinesisEndpoint = http://127.0.0.1:9
dynamoDBEndpoint = http://127.0.0.1:9
executableName = kainite-processor-postgresql
unitsOfWork = true
target = postgresql://127.0.0.1:9/warehouse
"""


def manifests() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text(encoding="utf-8")))


def containers() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Gives each pod's specification with its container's."""
    for manifest in manifests():
        if manifest["kind"] in ("StatefulSet", "Deployment"):
            pod = manifest["spec"]["template"]["spec"]
            (container,) = pod["containers"]
            yield pod, container


def test_the_dockerfiles_are_clean() -> None:
    assert len(DOCKERFILES) == 2
    linted = subprocess.run(
        [str(Path(sys.executable).with_name("hadolint")), "--failure-threshold=style", *map(str, DOCKERFILES)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert (linted.returncode, linted.stdout) == (0, "")


@EACH
def test_an_image_gets_what_the_wheel_is_built_from(path: Path) -> None:
    copied = {
        word for line in re.findall(r"^COPY (?!--from)(.*) \S+$", path.read_text(), re.M) for word in line.split()
    }
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}

    sources = {"daemon", "spark_apply", "demo", "record_processors", "packaging"}
    assert {"pyproject.toml", "README.md", "LICENSE", *sources} <= copied
    assert copied <= let_in
    assert [name for name in copied if not (ROOT / name).exists()] == []


@EACH
def test_an_image_ends_without_root_and_hands_signals_on(path: Path) -> None:
    last_stage = path.read_text().rpartition("FROM ")[2]

    assert re.findall(r"^USER (.*)$", last_stage, re.M) == ["10001"]
    assert re.findall(r"^ENTRYPOINT (.*)$", last_stage, re.M) == ['["tini", "--", "kainite"]']


@EACH
def test_an_image_asks_itself_whether_it_lives(path: Path) -> None:
    text = path.read_text()
    variable, port = PORTS[path.stem]

    assert f" {variable}={port}\n" in text
    assert f"EXPOSE {port}\n" in text
    assert f"http://127.0.0.1:{{os.environ['{variable}']}}{LIVE}" in text


def test_the_shard_hosts_image_has_neither_a_jvm_nor_a_driver() -> None:
    text = (FOLDER / "daemon.Dockerfile").read_text(encoding="utf-8")

    assert re.findall(r"^ARG EXTRAS=(.*)$", text, re.M) == ["processors"]
    assert not re.search(r"jre|jdk|spark\]", text)


def test_pods_are_probed_where_the_images_answer() -> None:
    for (_, container), (_, port) in zip(containers(), PORTS.values(), strict=True):
        ports = {each["name"]: each["containerPort"] for each in container["ports"]}
        assert ports["metrics"] == int(port)
        probes = {name: container[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
        assert {name: probe["port"] for name, probe in probes.items()} == dict.fromkeys(probes, "metrics")
        paths = {name: probe["path"] for name, probe in probes.items()}
        assert paths == {"startupProbe": LIVE, "livenessProbe": LIVE, "readinessProbe": READY}


def test_pods_have_neither_root_nor_capabilities_and_write_into_volumes_alone() -> None:
    for pod, container in containers():
        assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, 10001)
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        assert mounted.keys() == {volume["name"] for volume in pod["volumes"]}
        writable = {mounted[volume["name"]] for volume in pod["volumes"] if "emptyDir" in volume}
        assert writable == {"/tmp", "/var/lib/kainite"}


def test_the_services_of_the_example_belong_to_its_pods() -> None:
    found = {manifest["kind"]: manifest for manifest in manifests()}
    labels = found["StatefulSet"]["spec"]["template"]["metadata"]["labels"]

    assert found["StatefulSet"]["spec"]["selector"]["matchLabels"] == labels
    assert found["Service"]["spec"]["selector"] == labels
    assert found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert found["StatefulSet"]["spec"]["serviceName"] == found["Service"]["metadata"]["name"]
    assert {pod["serviceAccountName"] for pod, _ in containers()} == {found["ServiceAccount"]["metadata"]["name"]}


def test_the_settings_of_the_example_are_sound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shows it for each container with its variables, and with the grace that its pod gives it."""
    (settings,) = [manifest["data"] for manifest in manifests() if manifest["kind"] == "ConfigMap"]
    path = tmp_path / "kainite.properties"
    path.write_text(settings["kainite.properties"])
    for pod, container in containers():
        with monkeypatch.context() as patched:
            for variable in container["env"]:
                if "value" in variable:
                    patched.setenv(variable["name"], re.sub(r"\$\((\w+)\)", "pod", variable["value"]))
            found = examine(path)
        assert (found.problems, found.unknown) == ((), ())
        assert found.settings is not None
        child = found.settings.child
        assert pod["terminationGracePeriodSeconds"] > child.shutdown_grace + child.kill_after


@pytest.fixture(scope="module")
def tool() -> str:
    """Gives the command that builds and runs images here."""
    found = [name for name in ("docker", "podman") if shutil.which(name)]
    running = [
        name for name in found if subprocess.run([name, "info"], capture_output=True, check=False).returncode == 0
    ]
    assert running, "neither Docker nor Podman runs here"
    return running[0]


@pytest.mark.images
@pytest.mark.timeout(1800)
@EACH
def test_an_image_is_built_and_its_command_ends_by_sigterm(tool: str, path: Path, tmp_path: Path) -> None:
    """Shows it of a container whose AWS is away, with a read-only root: it lives, and ends with status 0."""
    image, name = f"kainite-test-{path.stem}", unique("kainite")
    run = [tool, "run", "--rm", "--read-only", "--cap-drop=ALL", "--tmpfs=/tmp", "--tmpfs=/var/lib/kainite:uid=10001"]
    subprocess.run([tool, "build", "--file", path, "--tag", image, ROOT], check=True)
    assert output([*run, "--entrypoint=id", image, "-u"]) == "10001"
    lacking = "import importlib.util as u; print(*(n for n in ('pip', 'pyspark') if u.find_spec(n)))"
    installed = "pyspark" if path.stem == "apply" else ""
    assert output([*run, "--entrypoint=python", image, "-c", lacking]) == installed
    command = {"daemon": "run", "apply": "apply"}[path.stem]
    settings = tmp_path / "kainite.properties"
    settings.write_text(AWAY)
    mounted = [f"--volume={settings}:/etc/kainite/kainite.properties:ro", "--env=AWS_ACCESS_KEY_ID=a"]
    mounted += ["--env=AWS_SECRET_ACCESS_KEY=a", f"--name={name}"]
    process = subprocess.Popen([*run, *mounted, image, command, "-p", "/etc/kainite/kainite.properties"])
    try:
        probe = f"import urllib.request as u; print(u.urlopen('http://127.0.0.1:{PORTS[path.stem][1]}{LIVE}').status)"
        asked = [tool, "exec", name, "python", "-c", probe]
        eventually(lambda: subprocess.run(asked, capture_output=True, check=False).stdout == b"200\n", 120, pause=1)
        subprocess.run([tool, "kill", "--signal=TERM", name], check=True, stdout=subprocess.DEVNULL)
        assert process.wait(60) == 0
    finally:
        subprocess.run([tool, "rm", "--force", name], capture_output=True, check=False)


def output(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
