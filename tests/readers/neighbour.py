"""PyIceberg at work on a table that firn works on too.

    neighbour.py append CATALOG TABLE FIRST COUNT ROWS    COUNT appends of ROWS events each, ids from FIRST, and after
                                                          each a read: every row of its own must be there once
    neighbour.py evolve CATALOG TABLE                     drops `note`, renames `user` to `who`, promotes `small` to
                                                          long, adds `extra`, moves `ts` to the front
    neighbour.py create CATALOG TABLE FILES ROWS          a table of its own making, of FILES files of ROWS events
    neighbour.py unordered CATALOG TABLE                  an empty table whose field ids are not in column order

Prints one JSON object. CATALOG is a JSON object of the catalog's properties, its name among them.
"""

import datetime as dt
import decimal
import json
import random
import sys
import time

import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.expressions import GreaterThanOrEqual
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import DecimalType, LongType, NestedField, StringType, TimestamptzType

EVENTS = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "ts", TimestamptzType()),
    NestedField(3, "user", StringType()),
    NestedField(4, "amount", DecimalType(12, 2)),
    NestedField(5, "note", StringType()),
)


def open_catalog(properties):
    return load_catalog(**json.loads(properties))


def events(table, ids):
    start = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)
    rows = [
        {
            "id": i,
            "ts": None if i % 11 == 0 else start + dt.timedelta(seconds=i % 400_000),
            "user": f"user-{i % 97}",
            "amount": decimal.Decimal(i % 10_000) / 100,
            "note": f"neighbour {i}",
        }
        for i in ids
    ]
    return pa.Table.from_pylist(rows, schema=table.schema().as_arrow())


def is_to_be_tried_again(error):
    return isinstance(error, CommitFailedException) or "database is locked" in str(error)


def append(catalog, name, first, count, rows):
    catalog, conflicts, reads = open_catalog(catalog), 0, 0
    for number in range(count):
        ids = range(first + number * rows, first + (number + 1) * rows)
        for _ in range(200):
            try:
                table = catalog.load_table(name)
                table.append(events(table, ids))
                break
            except Exception as error:
                if not is_to_be_tried_again(error):
                    raise
                conflicts += 1
                time.sleep(random.uniform(0.01, 0.1))
        else:
            raise RuntimeError(f"append {number} met 200 conflicts")
        seen = catalog.load_table(name).scan(
            row_filter=GreaterThanOrEqual("id", first), selected_fields=("id",)
        ).to_arrow()
        expected = list(range(first, first + (number + 1) * rows))
        if sorted(seen["id"].to_pylist()) != expected:
            raise RuntimeError(f"after append {number}: {seen.num_rows} rows of {len(expected)}")
        reads += 1
    return {"appends": count, "conflicts": conflicts, "reads": reads}


def evolve(catalog, name):
    table = open_catalog(catalog).load_table(name)
    with table.update_schema() as update:
        update.delete_column("note")
        update.rename_column("user", "who")
        update.update_column("small", LongType())
        update.add_column("extra", StringType())
        update.move_first("ts")
    return {"columns": [field.name for field in table.schema().fields]}


def create(catalog, name, files, rows):
    catalog = open_catalog(catalog)
    catalog.create_namespace_if_not_exists(name.split(".")[0])
    spec = PartitionSpec(
        PartitionField(2, 1000, DayTransform(), "ts_day"), PartitionField(3, 1001, IdentityTransform(), "user")
    )
    table = catalog.create_table(name, EVENTS, partition_spec=spec)
    for number in range(files):
        table.append(events(table, range(number * rows, (number + 1) * rows)))
    return {"rows": files * rows}


def unordered(catalog, name):
    catalog = open_catalog(catalog)
    catalog.create_namespace_if_not_exists(name.split(".")[0])
    table = catalog.create_table(name, Schema(NestedField(1, "b", StringType()), NestedField(2, "x", StringType())))
    with table.update_schema() as update:
        update.add_column("a", StringType())
        update.move_before("a", "x")
    return {"ids": [field.field_id for field in table.schema().fields]}


def main():
    command, catalog, name, *numbers = sys.argv[1:]
    commands = {"append": append, "evolve": evolve, "create": create, "unordered": unordered}
    print(json.dumps(commands[command](catalog, name, *map(int, numbers))))


if __name__ == "__main__":
    main()
