#!/usr/bin/env python3
"""Writes the files beside this one, which tests/unit/data/parquet_test.cpp reads, by pyarrow 26.

usage: make.py
"""
import datetime
import decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = Path(__file__).parent
ROWS = 32
ENCODINGS = {"plain": "PLAIN", "lengths": "DELTA_LENGTH_BYTE_ARRAY", "prefixes": "DELTA_BYTE_ARRAY"}


def text(row):
    """What row `row`, from 1 on, says: the test has the same formula."""
    kinds = ["", f"row {row}", f"Zeile {row}: größer, 日本, 😀", "the same in many rows", "x" * row]
    return kinds[row % 5]


def write(name, table, **options):
    pq.write_table(table, FOLDER / f"{name}.parquet", store_schema=False, write_statistics=False, **options)


def texts(nullable=True):
    rows = [text(row) for row in range(1, ROWS + 1)]
    names = [*ENCODINGS, "dictionary"]
    return pa.table([rows] * len(names), schema=pa.schema([pa.field(name, pa.string(), nullable) for name in names]))


def codecs():
    """Four columns in two row groups of several pages, in each codec and both versions of pages."""
    for codec in ["none", "snappy", "gzip", "brotli", "zstd", "lz4"]:
        for version in ["1.0", "2.0"]:
            write(f"{codec}_v{version[0]}", texts(nullable=version == "1.0" or codec == "zstd"), compression=codec,
                  use_dictionary=["dictionary"], column_encoding=ENCODINGS, data_page_version=version,
                  row_group_size=20, data_page_size=120, write_batch_size=5)


def nulls():
    """Row 17 has no text."""
    rows = [None if row == 17 else text(row) for row in range(1, 31)]
    table = pa.table({"plain": rows, "dictionary": rows})
    for version in ["1.0", "2.0"]:
        write(f"nulls_v{version[0]}", table, use_dictionary=["dictionary"], data_page_version=version,
              row_group_size=10)


def checksums():
    table = pa.table({"plain": [text(row) for row in range(1, 13)], "dictionary": [text(3)] * 12})
    for version in ["1.0", "2.0"]:
        write(f"checksums_v{version[0]}", table, use_dictionary=["dictionary"], data_page_version=version,
              compression="none", write_page_checksum=True, row_group_size=8)


def kinds():
    """A column of each kind that is no text, and some that are."""
    write("kinds", pa.table({
        "flag": [True], "int8": pa.array([1], pa.int8()), "int32": pa.array([1], pa.int32()), "int64": [1],
        "float": pa.array([1], pa.float32()), "double": [1.0],
        "date": [datetime.date(2024, 1, 1)], "time": [datetime.time(1)], "timestamp": [datetime.datetime(2024, 1, 1)],
        "decimal": [decimal.Decimal("1.5")], "fixed": pa.array([b"four"], pa.binary(4)), "null": pa.array([None]),
        "list": [["a"]], "struct": [{"name": "a", "age": 1}],
        "map": pa.array([[("a", "b")]], pa.map_(pa.string(), pa.string())),
        "bytes": [b"bytes"], "large": pa.array(["large"], pa.large_string()), "json": pa.array(["{}"], pa.json_()),
        "text": ["text"],
    }))


def parts():
    """3 MiB of text, many pages of it, and a dictionary whose texts are longer than its indices."""
    rows = [f"{row:05}" + "x" * 10_000 for row in range(1, 301)]
    table = pa.table({"plain": rows, "dictionary": [rows[row % 3] for row in range(1, 301)]})
    write("parts", table, use_dictionary=["dictionary"], compression="zstd", data_page_size=50_000, write_batch_size=5,
          max_rows_per_page=20)


def empty():
    write("no_rows", pa.table({"text": pa.array([], pa.string())}))
    pq.ParquetWriter(FOLDER / "no_groups.parquet", pa.schema([("text", pa.string())]), store_schema=False).close()


for make in [codecs, nulls, checksums, kinds, parts, empty]:
    make()
