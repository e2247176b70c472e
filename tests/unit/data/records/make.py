#!/usr/bin/env python3
"""Writes the tables beside this file by pyarrow, and rows.jsonl: what their columns `messages`, `input_ids` and `other` hold;
and conversations as talks.*.

usage: make.py
"""
import datetime
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

FOLDER = Path(__file__).parent
ROWS = 40
CALL = pa.struct([("name", pa.string()), ("arguments", pa.struct([("a", pa.float64()), ("b", pa.list_(pa.int64()))]))])
MESSAGE = pa.struct([("role", pa.string()), ("when", pa.timestamp("us")), ("content", pa.string()),
                     ("tool_calls", pa.list_(CALL)), ("counts", pa.bool_())])
OTHER = pa.struct([("small", pa.int8()), ("large", pa.uint32()), ("single", pa.float32()), ("lists", pa.list_(pa.list_(pa.string())))])


def message(row, number):
    call = {"name": f"f{number}", "arguments": {"a": row + 0.5, "b": list(range(number))} if number % 2 else None}
    return {"role": ["user", "assistant"][number % 2], "when": datetime.datetime(2026, 1, 1 + number),
            "content": None if row % 7 == 3 else f"row {row}: \"größer\" 日本\n\\ {'x' * (row % 11)}",
            "tool_calls": None if row % 3 == 0 else [call] * (number % 3), "counts": [True, False, None][(row + number) % 3]}


def record(row):
    return {"id": row, "messages": None if row == 13 else [message(row, number) for number in range(row % 5)],
            "input_ids": [row * place for place in range(row % 6)],
            "other": None if row % 9 == 4 else {"small": -row, "large": 4000000000 + row if row % 2 else None,
                                                "single": row / 4, "lists": [[], ["a", None], None][:row % 4]}}


def schema(large=False):
    lists = pa.large_list if large else pa.list_
    return pa.schema([("id", pa.int64()), ("messages", lists(MESSAGE)), ("input_ids", lists(pa.int32())), ("other", OTHER)])


def talk(row):
    messages = [{"role": ["user", "assistant"][number % 2], "content": f"{row} says {'so ' * number}{row * number}"}
                for number in range(2 + 2 * (row % 3))]
    return {"messages": messages, "source": "made", "tools": None if row % 4 else json.dumps([{"name": f"tool {row}"}])}


def talks():
    """Conversations as tables and as lines."""
    rows = [talk(row) for row in range(30)]
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, FOLDER / "talks.parquet", row_group_size=13, store_schema=False)
    with pa.ipc.new_stream(FOLDER / "talks.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=11)
    (FOLDER / "talks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def main():
    talks()
    rows = [record(row) for row in range(ROWS)]
    table = pa.Table.from_pylist(rows, schema())
    signed = pa.schema([field if field.name != "other" else pa.field("other", pa.struct(
        [inner if inner.name != "large" else pa.field("large", pa.int64()) for inner in OTHER])) for field in schema()])
    for name, options in {
        "v1": {"data_page_version": "1.0", "compression": "snappy"},
        "v2": {"data_page_version": "2.0", "compression": "zstd"},
        "plain": {"use_dictionary": False, "compression": "none"},
        "delta": {"use_dictionary": False, "data_page_version": "2.0",
                  "column_encoding": {"messages.list.element.role": "DELTA_BYTE_ARRAY",
                                      "messages.list.element.content": "DELTA_LENGTH_BYTE_ARRAY"}},
    }.items():
        pq.write_table(pa.Table.from_pylist(rows, signed), FOLDER / f"{name}.parquet", row_group_size=17, data_page_size=300,
                       write_batch_size=5, store_schema=False, **options)
    for name, used, options in [("plain", table, {}), ("large", pa.Table.from_pylist(rows, schema(large=True)), {}),
                                ("zstd", table, {"compression": "zstd"})]:
        with pa.ipc.new_stream(FOLDER / f"{name}.arrow", used.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
            writer.write_table(used, max_chunksize=15)
    for row in rows:
        del row["id"]
        for each in row["messages"] or []:
            each["when"] = None  # is no JSON
    (FOLDER / "rows.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


if __name__ == "__main__":
    main()
