"""Read data files with the official reader. stdin: one JSON object a line, {"path": file, "leaf": [names of struct fields on the way
to the leaf], "take": [rows]}; stdout: for each,
{"want": SHA-256 of all rows as text, "take": the same of the rows taken} or {"error": ...}. The text is that of make.py.
"""
import hashlib, json, os, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../v21/testdata'))
from lance.file import LanceFileReader
import make


def digest(table, path):
    [column] = table.columns
    array = column.combine_chunks()
    if hasattr(array, 'chunks'): [array] = array.chunks
    h = hashlib.sha256()
    for k in range(len(array)): h.update(make.text(array, k, path).encode() + b'\n')
    return h.hexdigest()


for line in sys.stdin:
    case = json.loads(line)
    try:
        path = tuple(case.get('leaf') or ())
        reader = LanceFileReader(case['path'])
        out = {'want': digest(reader.read_all().to_table(), path), 'take': digest(reader.take_rows(case['take']).to_table(), path)}
    except BaseException as e:  # the engine panics on some
        out = {'error': '%s: %s' % (type(e).__name__, str(e)[:300])}
    print(json.dumps(out), flush=True)
