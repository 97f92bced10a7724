"""A deterministic simulation of the whole way, from the stream to the target, in one process and on virtual time.

=======================  ============================================================================================
``loop``                 virtual time: events, processes that are killed and frozen, event loops, threads
``faults``               what goes wrong at an effect, decided by the seed and the effect's name alone
``stream``               a Kinesis stream: shards that split and merge, iterators
``expressions``          DynamoDB's expressions
``lost``                 records that vanish from the stream, and who must tell
``lease_items``          the DynamoDB items of the lease table, with conditional writes
``log_items``            the DynamoDB items of the log, below the real store
``log_store``            the serialization log's store, page by page and behind faults
``target``               the target behind faults, and the oracle's eye on it
``second_target``        a second target, and the oracle's eye on it
``common_marks``         the common mark in two targets, and the oracle's eye on it
``schema``               generated tables, and how they change
``source``               a generated history of transactions, and what the source tells of it
``odd``                  what a child emits and is no unit of work
``people``               who puts the history on the stream, and who resolves what has failed
``oracle``               what the target may hold; shares no code with Kainite
``child``                scripted record processors
``runner``               Spark's part: tasks as processes of their own, lost, repeated and left behind
``parts``                the real daemon and the real apply job as simulated processes
``taken_along``          deletes that a transaction's cascades make by themselves
``plan``                 what a run is made of
``scenario``             what a seed means
``aims``                 variants of seeds that are turned towards rare events
``went_back``            a target that is set back, and the person who puts it right
``hosts``                the processes of a world: kept going, killed, frozen
``world``                one run of a scenario
``two_logs``             one run of a scenario of two logs that write into one target
``claims``               the tables that each of two logs takes in a target, and the oracle's eye on them
``programs``             programs on the log, and the oracle of an applications' partition
``program_world``        one run of a scenario of programs
``load_world``           one run of a scenario of loads: a real PostgreSQL is loaded while units are applied
``load_source``          a source of loads, and the oracle of what a target may hold of it
``load_edges``           the source as drivers of loads see it: points, snapshots, ranges of rows
``load_trips``           round trips to PostgreSQL on virtual time, with faults and waits for locks
``extract_world``        one run of a scenario of an extraction: kainite extract and its program, up to the stream
``extract_history``      what commits in its source: tables, values of several types, transactions
``extract_wire``         the bytes of a walsender
``extract_source``       a PostgreSQL with a slot, and its walsender
``extract_connections``  libpq and psycopg, as the extractor's program uses them
``extract_program``      the extractor's program as a process, and the pipes to it
``extract_stream``       a Kinesis stream that is written to
``extract_trouble``      what befalls a source, its slot and the offset
``extract_oracle``       what must be on the stream when, and what the source may forget
``running``              runs a seed in the world that is its
``shrink``               a failing run with fewer faults
``mutation``             a safeguard that can be switched off
``mutations``            safeguards that are switched off, and how soon the simulation notices
=======================  ============================================================================================

Begin with ``world``. ``python -m simulation`` runs seeds (tests/README.md, *The simulator*).
"""
