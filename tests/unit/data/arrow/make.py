"""Writes the Arrow files that arrow_test.cpp reads, with pyarrow 26 and datasets 5.2: python3 make.py"""
import pathlib
import shutil

import datasets
import pyarrow as pa

HERE = pathlib.Path(__file__).parent
TEXTS = ["" if i % 17 == 3 else f"row {i} Grüße 日本 🙂 {'x' * (i * 7 % 23)}" for i in range(60)]  # as text_of() in the test


def columns_before(rows):
    """Columns of every layout, which stand before the text."""
    numbers = list(range(rows))
    return {
        "null": pa.nulls(rows),
        "int": pa.array(numbers, pa.int32()),
        "bool": pa.array([n % 2 == 0 for n in numbers]),
        "binary": pa.array([b"b" * (n % 3) for n in numbers]),
        "fixed": pa.array([b"four"] * rows, pa.binary(4)),
        "list": pa.array([[n] * (n % 3) for n in numbers], pa.list_(pa.int64())),
        "fixed_list": pa.array([[n, n] for n in numbers], pa.list_(pa.int64(), 2)),
        "list_view": pa.array([[n] for n in numbers], pa.list_view(pa.int8())),
        "struct": pa.array([{"a": n, "b": str(n)} for n in numbers]),
        "map": pa.array([[("k", n)] for n in numbers], pa.map_(pa.string(), pa.int64())),
        "sparse": pa.UnionArray.from_sparse(pa.array([n % 2 for n in numbers], pa.int8()),
                                            [pa.array(numbers), pa.array([str(n) for n in numbers])]),
        "dense": pa.UnionArray.from_dense(pa.array([0] * rows, pa.int8()), pa.array(numbers, pa.int32()),
                                          [pa.array(numbers), pa.array(["s"])]),
        "run_ends": pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int32()), pa.array(["same"])),
        "views": pa.array([f"a view of more than twelve bytes {n}" for n in numbers], pa.string_view()),
        "dictionary": pa.array([str(n % 2) for n in numbers]).dictionary_encode(),
    }


def table(kind=pa.string()):
    texts = pa.array(TEXTS, kind)
    before = columns_before(len(TEXTS))
    return pa.table({**before, "text": texts, "after": pa.array([t + "!" for t in TEXTS], kind)})


def write(name, content, form="stream", compression=None, rows=25, **options):
    options = pa.ipc.IpcWriteOptions(compression=compression, **options)
    make = pa.ipc.new_stream if form == "stream" else pa.ipc.new_file
    with make(str(HERE / name), content.schema, options=options) as writer:
        writer.write_table(content, max_chunksize=rows)


def main():
    write("stream.arrow", table())
    write("file.arrow", table(), "file")
    small = table().select(["int", "views", "text"])
    write("lz4.arrow", small, "file", "lz4")
    write("zstd.arrow", small, "stream", "zstd")
    write("legacy.arrow", small.select(["int", "text"]), use_legacy_format=True,
          metadata_version=pa.ipc.MetadataVersion.V4)
    write("large.arrow", pa.table({"int": range(60), "text": pa.array(TEXTS, pa.large_string())}))
    write("views.arrow", pa.table({"views": table()["views"], "text": pa.array(TEXTS, pa.string_view())}))
    write("sliced.arrow", pa.table({"text": pa.array(["left out", *TEXTS])}).slice(1))
    write("null.arrow", pa.table({"text": pa.array(["one", "two", None, "four"])}), rows=2)
    write("empty.arrow", pa.table({"text": pa.array([], pa.string())}))
    saved = HERE / "saved"
    shutil.rmtree(saved, ignore_errors=True)
    split = datasets.Dataset.from_dict({"text": TEXTS})
    both = datasets.DatasetDict({"train": split, "test": split.select(range(7))})
    both.save_to_disk(str(saved), num_shards={"train": 2, "test": 1})


main()
