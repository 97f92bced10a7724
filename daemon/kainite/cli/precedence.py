"""``kainite precedence``: the target's tables in foreign-key order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kainite.base.errors import SettingsError
from kainite.cli import terminal
from kainite.cli.options import properties_option
from kainite.uow.catalogue.file import write_catalogue
from kainite.uow.catalogue.load import load_catalogue
from kainite.uow.catalogue.several import catalogue_of
from kainite.uow.precedence import rendering as picture
from kainite.uow.precedence.levels import TableGraph, graph_of, levels, read_graph

if TYPE_CHECKING:
    from kainite.settings import Settings


@click.command()
@properties_option
@click.option("--format", "form", type=click.Choice(["table", "mermaid", "json"]), default="table", show_default=True)
@click.option(
    "--write",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="CATALOGUE",
    help="Also write the target's tables to a JSON file, for catalogueFile.",
)
def precedence(properties: Path, form: str, write: Path | None) -> None:
    """Shows the target's tables in foreign-key order.

    Precedence is 1 for tables without parents; inserts go by ascending precedence, deletes by
    descending. The tables come from precedenceFile, a file of "parent child" pairs, if that is set, else
    from catalogueFile, else from the target itself. With --write they always come from the target.

    \b
    Examples:
      kainite precedence -p app.properties
      kainite precedence -p app.properties --format mermaid > schema.mmd
      kainite precedence -p app.properties --write catalogue.json
    """
    from kainite.settings import load

    settings = load(properties, needs=())
    graph = _from_target(settings, write) if write else _from_settings(settings)
    found = levels(graph)
    if form == "json":
        terminal.say_json(found, indent=True)
    elif form == "mermaid":
        terminal.say(picture.as_mermaid(graph, found))
    else:
        terminal.stdout().print(picture.as_table(graph, found))


def _from_settings(settings: Settings) -> TableGraph:
    if settings.uow.precedence_file is not None:
        return read_graph(settings.uow.precedence_file)
    catalogue = catalogue_of(settings)
    if catalogue is None:
        raise SettingsError(f"{settings.path}: set 'target', 'catalogueFile' or 'precedenceFile' to name the tables")
    return graph_of(catalogue)


def _from_target(settings: Settings, write: Path) -> TableGraph:
    """Returns the target's tables and writes them to the file; a cycle without an order leaves the file as it is."""
    catalogue = load_catalogue(None, settings.apply.target, settings.apply.schemas)
    if catalogue is None:
        raise SettingsError(f"{settings.path}: 'target' is no database, and --write reads the tables from a database")
    graph = graph_of(catalogue)
    levels(graph)
    write_catalogue(catalogue, write)
    return graph
