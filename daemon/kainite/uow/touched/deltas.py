"""The rule that two deltas, and so two units of work, depend on each other by: what a delta writes and reads.

Two deltas depend on each other when one writes what the other writes or reads (docs/decisions.md, *The order inside a
unit*). There are these tokens (:class:`~kainite.uow.touched.plan.TablePlan` computes them):

* **row**: (table, primary key), written by every delta on the row, with the old and the new key when the key changes;
* **unique**: (table, unique key), written where a row takes or gives up a value, as far as the value is known. A key
  with a NULL in it excludes nothing and has no token;
* **existence**: (table, columns that foreign keys name). Written when a row appears, goes away, or changes those
  columns; read by each child row that names the row. An upsert may insert, so it writes. The key is the named
  columns, because a foreign key may name a unique key instead of the primary key. A child also reads the parent that
  it *leaves* (a delete, a changed foreign key): the parent may be deleted in a later unit, which must not overtake
  the child's change.

A value that an update does not change is not guarded: a later unit that changes the value writes the same row, and so
comes in order anyway. An unknown value is not guarded either: an update or delete without ``before`` does not say
which unique value or parent it gives up. Nothing wrong is committed, because the target's own constraints refuse what
comes too early.

That argument fails where the target does not refuse but acts: ``ON DELETE CASCADE``, ``SET NULL``, ``SET DEFAULT``
and their like on update. For a foreign key with an action there are four more tokens, all of the named columns (the
*reference*):

* **cascade**: the value. Written by a delete of the parent, and by an update or upsert that changes the value (both
  the old and the new one); not by a plain insert or upsert, so that these do not wait for updates of children. Read
  by every delta on a child that is or comes under the value;
* **part**: a sixteenth of all values. Written with the old value's cascade token. A delta on a child whose old parent
  is not known (an update, delete or upsert without ``before`` and without the parent in ``key``) reads all sixteen. So
  does an insert that leaves a foreign key's column to a default or to a generated column, and an update or upsert of
  a row whose foreign key has a generated column: the delta does not tell which parent the row comes under;
* **whole**: written by what may touch children of any parent: a delete or change whose old value is not known, and
  one that reaches the children through another table's cascade (:mod:`kainite.uow.touched.cascade`). Read by every
  delta on a child, but only where something can write it;
* **overlap**: written by whatever touches rows of a table of which two foreign keys with actions share columns.

docs/decisions.md, *The conflict rule*, has the proof that these tokens suffice, and what they cost. Cascades through
tables that the catalogue does not have are not seen.
"""

from __future__ import annotations

from typing import Generic

from kainite.base.errors import DeltaError
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.touched.key import T, TokenMaker
from kainite.uow.touched.plan import TablePlan
from kainite.uow.touched.schema import TouchedSchema


class TouchedKeys(Generic[T]):
    """Computes the tokens of deltas; each table's plan is made once.

    Args:
        catalogue: the target's tables.
        spelling: the rule by which values become tokens.
    """

    def __init__(self, catalogue: Catalogue, spelling: TokenMaker[T]) -> None:
        self._catalogue = catalogue
        self._schema = TouchedSchema(catalogue, spelling)
        self._plans: dict[str, TablePlan[T]] = {}

    def overlaps(self) -> frozenset[T]:
        """Returns the tokens of overlaps. Deltas that write the same overlap do not commute, not even two deletes."""
        return self._schema.overlaps()

    def plan(self, name: str) -> TablePlan[T]:
        """Returns the plan of the table that a delta calls ``name``; raises DeltaError if there is none."""
        plan = self._plans.get(name)
        if plan is None:
            table = self._catalogue.find(name)
            if table is None:
                raise DeltaError(f"table {name!r} is not in the target's catalogue")
            plan = self._plans[name] = self._schema.plan(table.name)
        return plan
