"""Write nested-VERSION.zip: small data files of file version 2.0 by the official engine, with hashes of the rows that they hold.

usage: make.py FOLDER    with pylance 14.0.2, 1.0.0 or 0.20.0 and pyarrow installed

Each file has one column of lists, structs or dictionaries, and short pages. index.json says for each leaf column its columns in the
file, its layers (innermost first: true is a list), its type and the SHA-256 of its rows as text, made from the Arrow arrays
alone (see ../../encoding/v21/testdata/make.py).
"""
import hashlib, json, os, random, shutil, sys, tempfile, zipfile

os.environ['LANCE_FILE_WRITER_MAX_PAGE_BYTES'] = '2048'
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../encoding/v21/testdata'))
import lance
import pyarrow as pa
import make

R = random.Random(20)
FEW = ['red', 'green', 'blue is a longer value', '']

def maybe(v): return None if R.random() < .2 else v()
def number(): return maybe(lambda: R.randint(-9, 10**6))
def text(): return maybe(lambda: R.choice(FEW))
def words(): return maybe(lambda: ' '.join(R.choice(make.WORDS) for _ in range(R.randint(0, 9))))
def items(v, most=4): return lambda: maybe(lambda: [v() for _ in range(R.randint(0, most))])
def dictionary(key, value): return pa.dictionary(key, value)

L, S = pa.list_, pa.string()
point = pa.struct([('x', pa.int32()), ('y', S), ('z', pa.float64())])
def a_point(): return {'x': number(), 'y': text(), 'z': maybe(R.random)}  # 2.0 has no null structs
packed = pa.struct([pa.field('z', pa.binary(), metadata={'lance-encoding:compression': 'zstd'}), pa.field('n', pa.int32())])
small = {
    'list': (L(pa.int32()), items(number)), 'list_text': (L(S), items(text)), 'list_words': (L(S), items(words)), 'large_list': (pa.large_list(S), items(words)),
    'list_bool': (L(pa.bool_()), items(lambda: maybe(lambda: R.random() < .5))), 'list_null': (L(pa.null()), items(lambda: None)),
    'list_long': (L(pa.int64()), items(number, 60)), 'list_empty': (L(pa.int64()), lambda: []), 'list_none': (L(S), lambda: None),
    'list_vector': (L(L(pa.float32(), 3)), items(lambda: maybe(lambda: [maybe(R.random) for _ in range(3)]))),
    'list_list': (L(L(S)), items(items(text))), 'list_list_empty': (L(L(pa.int8())), items(lambda: [])), 'lists': (L(L(L(pa.int16()))), items(items(items(lambda: maybe(lambda: R.randint(-9, 99)))))),
    'struct': (point, a_point), 'list_struct': (L(point), items(a_point)), 'struct_list': (pa.struct([('l', L(point)), ('n', pa.int8())]), lambda: {'l': items(a_point)(), 'n': maybe(lambda: 7)}),
    'struct_struct': (pa.struct([('s', pa.struct([('t', S)]))]), lambda: {'s': {'t': text()}}), 'struct_empty': (pa.struct([]), lambda: {}),
    'deep': (L(pa.struct([('a', L(pa.struct([('b', L(S)), ('c', S)]))), ('d', pa.int64())])), items(lambda: {'a': items(lambda: {'b': items(text)(), 'c': words()})(), 'd': number()})),
    'zstd': (L(packed), items(lambda: {'z': (words() or '').encode() * 9, 'n': number()})),
    'dict_list': (L(dictionary(pa.int32(), S)), items(text)),
}
for key in (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()):
    small['dict_%s' % key] = (dictionary(key, S), text)
for value, v in ((pa.int64(), number), (pa.float64(), lambda: maybe(lambda: R.randint(0, 9) / 4)), (pa.binary(), lambda: maybe(lambda: R.choice(FEW).encode())), (pa.large_string(), text)):
    small['dict_of_%s' % value] = (dictionary(pa.int16(), value), v)

def array(values, t):
    if not pa.types.is_dictionary(t): return pa.array(values, t)
    encoded = pa.array(values, t.value_type).dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices.cast(t.index_type), encoded.dictionary)

def arrays():
    for name, (t, v) in small.items():
        for n in (1, 5, 130):
            yield '%s-%d' % (name, n), array([v() for _ in range(n)], t)
    yield 'null_owns_items', pa.ListArray.from_arrays(pa.array([0, 2, 4, 5]), pa.array([1, 2, 3, 4, 5]), mask=pa.array([False, True, False]))
    yield 'null_owns_lists', pa.ListArray.from_arrays(pa.array([0, 2, 4, 5]), pa.array([[1], [2, 3], [4], None, [5]]), mask=pa.array([False, True, False]))

def leaves(t, first=0, path=(), above=(), columns=()):
    """(names on the way, type, layers, columns) of each leaf, and the next free column."""
    columns += (first,)
    if pa.types.is_struct(t) and t.num_fields:
        out, at = [], first + 1
        for f in t:
            inner, at = leaves(f.type, at, path + (f.name,), (False,) + above, columns)
            out += inner
        return out, at
    if pa.types.is_list(t) or pa.types.is_large_list(t): return leaves(t.value_type, first + 1, path, (True,) + above, columns)
    return [(path, t, (False,) + above, columns)], first + 1

def describe(t):
    if pa.types.is_struct(t): return {'Kind': 3}
    if pa.types.is_null(t): return {'Kind': 0, 'Bits': 8}
    return make.describe(t)

def rows(array, path, t):
    if pa.types.is_struct(t): return '\n' * len(array)
    return ''.join(make.text(array, i, path) + '\n' for i in range(len(array)))

def main(folder):
    index, out = [], os.path.join(folder, 'nested-%s.zip' % lance.__version__)
    with zipfile.ZipFile(out, 'w', zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        def add(name, data): z.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED, 9)
        for name, values in arrays():
            d = tempfile.mkdtemp()
            lance.write_dataset(pa.table({'c': values}), d, data_storage_version='2.0')
            [f] = os.listdir(d + '/data')
            add(name, open(d + '/data/' + f, 'rb').read())
            shutil.rmtree(d)
            for path, t, layers, columns in leaves(values.type)[0]:
                index.append({'file': name, 'leaf': '.'.join(path), 'columns': columns, 'lists': layers, 'type': describe(t),
                              'rows': len(values), 'want': hashlib.sha256(rows(values, path, t).encode()).hexdigest()})
        add('index.json', json.dumps(index))
    print(len(index), 'leaves', os.path.getsize(out), 'bytes', file=sys.stderr)

if __name__ == '__main__': main(sys.argv[1])
