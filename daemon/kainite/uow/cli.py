"""``kainite precedence``: the target's tables in foreign-key order."""

from __future__ import annotations

from pathlib import Path

import click
import orjson

from kainite import terminal
from kainite.errors import SettingsError
from kainite.options import properties_option
from kainite.uow import picture
from kainite.uow.catalogue_file import write_catalogue
from kainite.uow.load import load_catalogue, load_graph
from kainite.uow.precedence import levels


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
    """Show the target's tables in foreign-key order.

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

    settings = load(properties)
    if write and settings.apply.target is None:
        raise SettingsError(f"{properties}: 'target' is not set: --write reads the tables from it")
    precedence_file = None if write else settings.uow.precedence_file
    catalogue = None
    if precedence_file is None:
        catalogue_file = None if write else settings.uow.catalogue_file
        catalogue = load_catalogue(catalogue_file, settings.apply.target, settings.apply.schemas)
        if catalogue is None:
            raise SettingsError(f"{properties}: set 'target', 'catalogueFile' or 'precedenceFile' to say which tables")
    graph = load_graph(catalogue, precedence_file)
    found = levels(graph)
    if write and catalogue:
        write_catalogue(catalogue, write)
    if form == "json":
        click.echo(orjson.dumps(found, option=orjson.OPT_INDENT_2))
    elif form == "mermaid":
        click.echo(picture.as_mermaid(graph, found))
    else:
        terminal.stdout().print(picture.as_table(graph, found))
