"""``kainite log adopt-stream``."""

from __future__ import annotations

import asyncio
from pathlib import Path
from uuid import uuid4

import click

from kainite.aws.clients import client
from kainite.cli.opened_log import opened_log
from kainite.cli.options import properties_option, why_option
from kainite.cli.terminal import say
from kainite.log.format.entry import OperationKind, OperationResult
from kainite.operations.inbox import Asker, this_person
from kainite.settings import Settings, load


@click.command("adopt-stream")
@properties_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@why_option
def adopt_stream(properties: Path, yes: bool, why: str) -> None:
    """Lets the log collect the stream of the settings file, which has replaced another one.

    The positions in the old stream are forgotten; units, and the names by which they are recognised, stay. Stop all
    daemons of the application first. It is recorded in the log, in the batch that does it.

    \b
    Example:
      kainite log adopt-stream -p app.properties
    """
    from kainite.kinesis.client import StreamClient
    from kainite.settings.several import identity_of_several

    settings = load(properties, needs=("applicationName", "streamName"))
    stream = settings.stream
    found = StreamClient(client("kinesis", settings.aws), stream.name, stream.arn)
    identity = identity_of_several(found.region) if stream.names else str(found.identity())
    if not yes:
        click.confirm(f"Collect {identity}, and forget how far another stream was collected?", abort=True)
    asyncio.run(_adopt(settings, identity, why))
    say(f"log partition {settings.log.partition} collects {identity} from now on")


async def _adopt(settings: Settings, identity: str, why: str) -> None:
    from kainite.owner.mount import mount
    from kainite.owner.recording import asked_for
    from kainite.owner.serving import serve_log

    request = Asker(this_person(), why).signed({})
    said = f"the log collects {identity} from now on"
    note = asked_for(uuid4().hex, request, OperationKind.ADOPT_STREAM, identity, OperationResult.DONE, said)
    store, _ = opened_log(settings, token=True)
    log = settings.log
    store.create()
    # Does not wait for a log that a daemon holds.
    mounted = mount(store, log.partition, log.owner, log.lease, stripes=log.stripes)
    async with serve_log(store, log, settings.uow, mounted) as owner:
        await owner.collect_from(identity, adopt=True, note=note)
