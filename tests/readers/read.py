"""Reads Iceberg tables with PyIceberg or DuckDB and prints what it saw, in the form that all readers share.

    read.py pyiceberg|duckdb <requests.jsonl >answers.jsonl

A request: {"catalog": {"name", "type", "uri", and other properties of PyIceberg}, "table": "namespace.name",
"filters": [{"column", "op": "eq|lt|lteq|gt|gteq|is_null|not_null", "value"}],
"hidden_columns": [NAME] for DuckDB: columns such as `_row_id` that no schema has}
An answer: {"engine", "rows", "columns": {NAME: {"nulls", "checksum"}}, "filters": [{"rows", "files"}]}, or {"error"}.

The checksum of a column is the sum of the CRC-32 of its values' canonical texts: independent of order, and equal in
every language that keeps to these forms. Booleans `true`/`false`; integers in decimal; floats as the bits of their
double in hex; decimals with all digits of their scale; dates in days, times, timestamps in microseconds (nanoseconds
for nanosecond types) since their zero; strings as they are; binaries in hex; UUIDs in lower case with dashes;
`[a,b]`, `{field:a,field:b}` and `{key=a,key=b}` sorted by key for lists, structs and maps; `null` inside them.
"""

import glob
import json
import os
import struct
import sys
import uuid
import zlib

import pyarrow as pa
import pyarrow.compute as pc


def double_text(value):
    if value != value:
        return "7ff8000000000000"
    return struct.pack(">d", value).hex()


def values(array, convert):
    return [None if value is None else convert(value) for value in array.to_pylist()]


def texts(array):
    """The canonical texts of an Arrow array; None where a value is null."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return values(array.storage, lambda v: str(uuid.UUID(bytes=v))) if "uuid" in str(kind) else texts(array.storage)
    if pa.types.is_boolean(kind):
        return values(array, lambda v: "true" if v else "false")
    if pa.types.is_integer(kind):
        return values(array, str)
    if pa.types.is_floating(kind):
        return values(array, double_text)
    if pa.types.is_decimal(kind):
        return values(array, lambda v: format(v, "f"))
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return values(array.cast(pa.int32()), str)
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return values(array.cast(pa.int64()), str)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return values(array, str)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return values(array, lambda v: v.hex())
    if pa.types.is_struct(kind):
        return struct_texts(array)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return list_texts(array)
    if pa.types.is_map(kind):
        return map_texts(array)
    raise ValueError(f"no canonical text for {kind}")


def inner(text):
    return "null" if text is None else text


def struct_texts(array):
    names = [array.type.field(i).name for i in range(array.type.num_fields)]
    fields = [texts(pc.struct_field(array, [i])) for i in range(len(names))]
    return [
        "{" + ",".join(f"{name}:{inner(field[row])}" for name, field in zip(names, fields)) + "}" if valid else None
        for row, valid in enumerate(array.is_valid().to_pylist())
    ]


def list_texts(array):
    out = []
    for row, valid in enumerate(array.is_valid().to_pylist()):
        out.append("[" + ",".join(map(inner, texts(array[row].values))) + "]" if valid else None)
    return out


def map_texts(array):
    out = []
    for row, valid in enumerate(array.is_valid().to_pylist()):
        if not valid:
            out.append(None)
            continue
        entries = array[row].values
        pairs = zip(texts(pc.struct_field(entries, [0])), texts(pc.struct_field(entries, [1])))
        out.append("{" + ",".join(sorted(f"{key}={inner(value)}" for key, value in pairs)) + "}")
    return out


def checksums(table, uuids):
    """Null counts and checksums of an Arrow table; `uuids` names columns that come as text or bytes but are UUIDs."""
    out = {}
    for name, column in zip(table.column_names, table.columns):
        nulls = total = 0
        for chunk in column.chunks:
            for text in texts(chunk):
                if text is None:
                    nulls += 1
                    continue
                if name in uuids and "-" not in text:
                    text = str(uuid.UUID(hex=text))
                total += zlib.crc32(text.encode())
        out[name] = {"nulls": nulls, "checksum": str(total)}
    return out


def open_table(request):
    from pyiceberg.catalog import load_catalog

    catalog = load_catalog(**request["catalog"], init_catalog_tables="false")
    return catalog.load_table(request["table"])


def uuid_columns(table):
    return {field.name for field in table.schema().fields if str(field.field_type) == "uuid"}


def pyiceberg_filter(entry):
    import pyiceberg.expressions as e

    column, op = entry["column"], entry["op"]
    if op == "is_null":
        return e.IsNull(column)
    if op == "not_null":
        return e.NotNull(column)
    comparison = {
        "eq": e.EqualTo, "lt": e.LessThan, "lteq": e.LessThanOrEqual,
        "gt": e.GreaterThan, "gteq": e.GreaterThanOrEqual,
    }[op]
    return comparison(column, entry["value"])


def read_with_pyiceberg(request):
    table = open_table(request)
    data = table.scan().to_arrow()
    filters = []
    for entry in request.get("filters", []):
        scan = table.scan(row_filter=pyiceberg_filter(entry))
        filters.append({"rows": scan.to_arrow().num_rows, "files": len(list(scan.plan_files()))})
    return {"rows": data.num_rows, "columns": checksums(data, uuid_columns(table)), "filters": filters}


def duckdb_filter(entry):
    column, op = '"' + entry["column"].replace('"', '""') + '"', entry["op"]
    if op == "is_null":
        return f"{column} IS NULL"
    if op == "not_null":
        return f"{column} IS NOT NULL"
    sign = {"eq": "=", "lt": "<", "lteq": "<=", "gt": ">", "gteq": ">="}[op]
    value = entry["value"]
    literal = "'" + value.replace("'", "''") + "'" if isinstance(value, str) else json.dumps(value)
    return f"{column} {sign} {literal}"


def duckdb_connection():
    import duckdb

    # An internal error spoils a whole connection, so that each table gets one of its own.
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    site = os.path.dirname(os.path.dirname(duckdb.__file__))
    for name in ("avro", "iceberg"):
        found = glob.glob(f"{site}/duckdb_extension_{name}/**/*.duckdb_extension", recursive=True)
        if not found:
            raise RuntimeError(f"the package duckdb-extension-{name} holds no extension file")
        connection.execute(f"LOAD '{found[0]}'")
    return connection


def read_with_duckdb(request):
    table = open_table(request)  # the metadata's location is the catalog's to tell
    connection = duckdb_connection()
    location = table.metadata_location.removeprefix("file://").removeprefix("file:")
    source = f"iceberg_scan('{location}')"
    hidden = "".join(f', "{name}"' for name in request.get("hidden_columns", []))
    data = connection.execute(f"SELECT *{hidden} FROM {source}").to_arrow_table()
    filters = []
    for entry in request.get("filters", []):
        count = f"SELECT count(*) FROM {source} WHERE {duckdb_filter(entry)}"
        rows = connection.execute(count).fetchone()[0]
        filters.append({"rows": rows, "files": None})
    connection.close()
    return {"rows": data.num_rows, "columns": checksums(data, uuid_columns(table)), "filters": filters}


def main():
    engine = sys.argv[1]
    read = {"pyiceberg": read_with_pyiceberg, "duckdb": read_with_duckdb}[engine]
    for line in sys.stdin:
        if not line.strip():
            continue
        try:
            answer = read(json.loads(line))
        except Exception as error:  # the caller compares answers, and an engine's refusal is one
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"engine": engine, **answer}), flush=True)


if __name__ == "__main__":
    main()
