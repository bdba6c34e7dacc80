"""Write pages.zip: pages as the official writer encodes them, with a hash of the rows that they hold.

usage: make.py OUT.zip [full|old|2.0]   with pylance 14.0.2 (full, 2.0) or 1.0.0 (old, 2.0) and pyarrow installed

Every case is a one-column dataset; each of its leaf columns gives one entry of index.json: type, file version, and pages
(layout message, sizes of buffers, rows). pages.bin holds the buffers in that order. `want` is the SHA-256 of the rows in text
form, made here from the Arrow arrays alone: one line a row, `~` null, `[a,b]` list, hexadecimal bytes for a leaf value, `(x,n)`
vector with a null item.
"""
import base64, decimal, hashlib, json, os, random, shutil, struct, sys, tempfile, zipfile

import lance
import pyarrow as pa


# ---- the container, as far as needed: footer, column metadata, pages
def varint(b, i):
    r = s = 0
    while True:
        c = b[i]; i += 1; r |= (c & 127) << s; s += 7
        if c < 128: return r, i

def fields(b):
    out, i = {}, 0
    while i < len(b):
        t, i = varint(b, i)
        if t & 7 == 0: v, i = varint(b, i)
        else: n, i = varint(b, i); v = b[i:i + n]; i += n
        out.setdefault(t >> 3, []).append(v)
    return out

def packed(b):
    out, i = [], 0
    while i < len(b): v, i = varint(b, i); out.append(v)
    return out

def columns(path):
    b = open(path, 'rb').read()
    _, cmo, _, _, n, _, minor, magic = struct.unpack('<QQQIIHH4s', b[-40:])
    assert magic == b'LANC'
    out = []
    for c in range(n):
        p, s = struct.unpack_from('<QQ', b, cmo + 16 * c)
        pages = []
        for raw in fields(b[p:p + s]).get(2, []):
            f = fields(raw)
            offsets, sizes = packed(f.get(1, [b''])[0]), packed(f.get(2, [b''])[0])
            any_ = fields(fields(fields(f[4][0])[2][0])[1][0])
            pages.append((any_.get(2, [b''])[0], [b[o:o + z] for o, z in zip(offsets, sizes)], f.get(3, [0])[0]))
        out.append(pages)
    return minor % 3, out  # 2.0 says 0.3


# ---- rows as text
def leaf(a, i):
    t = a.type
    if pa.types.is_dictionary(t): return leaf(a.dictionary_decode(), i)
    if pa.types.is_fixed_size_list(t):
        d = t.list_size
        at = (a.offset + i) * d
        parts = [leaf(a.values, j) if a.values[j].is_valid else 'n' for j in range(at, at + d)]
        return '(' + ','.join(parts) + ')' if 'n' in parts or any(p[0] == '(' and 'n' in p for p in parts) else ''.join(parts)
    if pa.types.is_boolean(t): return '01' if a[i].as_py() else '00'
    if pa.types.is_string(t) or pa.types.is_large_string(t): return a[i].as_py().encode().hex()
    if pa.types.is_binary(t) or pa.types.is_large_binary(t): return a[i].as_py().hex()
    w = t.bit_width // 8
    return bytes(a.buffers()[1][(a.offset + i) * w:(a.offset + i + 1) * w]).hex()

def text(a, i, path):
    if not a[i].is_valid: return '~'
    t = a.type
    if pa.types.is_struct(t): return text(a.field(path[0]), i, path[1:])
    if pa.types.is_map(t):
        lo, hi = a.offsets[i].as_py(), a.offsets[i + 1].as_py()
        inner = a.keys if path[0] == 'key' else a.items
        return '[' + ','.join(text(inner, j, path[1:]) for j in range(lo, hi)) + ']'
    if pa.types.is_list(t) or pa.types.is_large_list(t):
        lo, hi = a.offsets[i].as_py(), a.offsets[i + 1].as_py()
        return '[' + ','.join(text(a.values, j, path) for j in range(lo, hi)) + ']'
    return leaf(a, i)

def leaves(t):
    """(path, leaf type) depth first"""
    if pa.types.is_struct(t): return [((f.name,) + p, x) for f in t for p, x in leaves(f.type)]
    if pa.types.is_map(t): return [(('key',) + p, x) for p, x in leaves(t.key_type)] + [(('value',) + p, x) for p, x in leaves(t.item_type)]
    if pa.types.is_list(t) or pa.types.is_large_list(t): return leaves(t.value_type)
    return [((), t)]

def describe(t):
    if pa.types.is_dictionary(t):
        bits, signed = t.index_type.bit_width, pa.types.is_signed_integer(t.index_type)
        return {**describe(t.value_type), 'KeyBits': bits, 'MaxKeys': 1 << min(bits - signed, 31)}
    dims = []
    while pa.types.is_fixed_size_list(t): dims.append(t.list_size); t = t.value_type
    if dims: return {'Kind': 2, 'Bits': t.bit_width, 'Dims': dims}
    if pa.types.is_string(t): return {'Kind': 1, 'OffsetBits': 32, 'Text': True}
    if pa.types.is_large_string(t): return {'Kind': 1, 'OffsetBits': 64, 'Text': True}
    if pa.types.is_binary(t): return {'Kind': 1, 'OffsetBits': 32}
    if pa.types.is_large_binary(t): return {'Kind': 1, 'OffsetBits': 64}
    return {'Kind': 0, 'Bits': t.bit_width}


# ---- the cases
R = random.Random(21)
D = decimal.Decimal
WORDS = 'lance keeper manifest fragment version page'.split()
FEW = ['red', 'green', 'blue is a longer value', '']
MORE = ['value-%d-%s' % (i, 'x' * R.randrange(20)) for i in range(90)]

def words(n): return ' '.join(R.choice(WORDS) for _ in range(n))
def i(lo, hi): return lambda k: R.randint(lo, hi)
def vector(n, null=0): return lambda k: [None if null and R.random() < null else R.randint(-9, 9) for _ in range(n)]
def items(make, most=5): return lambda k: [make(k) for _ in range(R.randint(0, most))]
def maybe(make, share=0.2): return lambda k: None if R.random() < share else make(k)

L, S, F, FSL = pa.list_, pa.string(), pa.float32(), lambda t, n: pa.list_(t, n)
small = {
    'bool': (pa.bool_(), lambda k: R.random() < .5), 'int8': (pa.int8(), i(-3, 9)), 'uint8': (pa.uint8(), i(0, 30)),
    'int16': (pa.int16(), i(0, 900)), 'uint16': (pa.uint16(), i(0, 9)), 'int32': (pa.int32(), i(0, 500)),
    'int32_negative': (pa.int32(), i(-5, 5)), 'uint32': (pa.uint32(), i(0, 2**20)), 'int64': (pa.int64(), lambda k: k * 3),
    'uint64': (pa.uint64(), i(0, 2**33)), 'float16': (pa.float16(), lambda k: R.randint(-9, 9) / 2), 'float32': (F, lambda k: R.randint(0, 99) / 4),
    'float64': (pa.float64(), lambda k: R.randint(0, 99) / 4), 'date32': (pa.date32(), i(19000, 20000)),
    'time64': (pa.time64('us'), i(0, 10**9)), 'timestamp': (pa.timestamp('us'), lambda k: 1700000000000000 + R.randint(0, 10**9)),
    'timestamp_zone': (pa.timestamp('ns', 'UTC'), lambda k: 1700000000 + k), 'duration': (pa.duration('ms'), i(0, 99)),
    'decimal128': (pa.decimal128(20, 2), lambda k: D(R.randint(-99, 99)) / 4), 'decimal256': (pa.decimal256(50, 2), lambda k: D(R.randint(-9, 9))),
    'fixed_binary': (pa.binary(5), lambda k: bytes(R.randrange(4) for _ in range(5))),
    'fixed_binary_300': (pa.binary(300), lambda k: bytes([R.randrange(4)]) * 300),
    'string': (S, lambda k: words(R.randint(0, 4))), 'large_string': (pa.large_string(), lambda k: words(R.randint(0, 3))),
    'binary': (pa.binary(), lambda k: bytes(R.randrange(3) for _ in range(R.randint(0, 9)))),
    'large_binary': (pa.large_binary(), lambda k: bytes([k & 3]) * R.randint(0, 20)),
    'few_strings': (S, lambda k: R.choice(FEW)), 'more_strings': (S, lambda k: R.choice(MORE)), 'few_int64': (pa.int64(), lambda k: R.choice([7, 2**50, -1])),
    'few_decimals': (pa.decimal128(20, 2), lambda k: R.choice([D(1), D(2), D(-3)])),
    'runs': (pa.int32(), lambda k: k // 700 * 12345), 'runs64': (pa.int64(), lambda k: k // 90 * -12345678901), 'constant': (pa.int64(), lambda k: 77), 'constant_string': (S, lambda k: 'always the same'),
    'constant_bool': (pa.bool_(), lambda k: True), 'null': (S, lambda k: None), 'empty': (S, lambda k: ''),
    'vector8': (FSL(F, 8), vector(8)), 'vector_f64': (FSL(pa.float64(), 3), vector(3)), 'vector_u8': (FSL(pa.uint8(), 7), lambda k: [R.randrange(9) for _ in range(7)]),
    'vector_bool': (FSL(pa.bool_(), 11), lambda k: [R.random() < .5 for _ in range(11)]), 'vector_null_item': (FSL(F, 4), vector(4, .3)),
    'vector_vector': (FSL(FSL(pa.int16(), 2), 3), lambda k: [[R.randint(0, 9), k & 7] for _ in range(3)]),
    'struct': (pa.struct([('x', pa.int32()), ('y', S)]), lambda k: {'x': R.choice([None, 1, 2]), 'y': words(1)}),
    'struct_struct': (pa.struct([('s', pa.struct([('x', pa.int64())]))]), lambda k: {'s': R.choice([None, {'x': k}, {'x': None}])}),
    'list': (L(pa.int32()), items(i(0, 50))), 'list_nulls': (L(pa.int32()), items(maybe(i(0, 50)))), 'large_list': (pa.large_list(S), items(lambda k: words(1), 3)),
    'list_list': (L(L(S)), items(maybe(items(maybe(lambda k: words(1)), 3)), 3)), 'list_struct': (L(pa.struct([('x', pa.int32()), ('y', S)])), items(maybe(lambda k: {'x': k & 63, 'y': R.choice(FEW + [None])}), 4)),
    'list_vector': (L(FSL(F, 4)), items(maybe(vector(4)), 2)), 'struct_list': (pa.struct([('l', L(pa.uint8()))]), lambda k: {'l': R.choice([None, [], [1], [1, 2, 3]])}),
    'list_same': (L(pa.int32()), items(lambda k: 5)), 'list_empty': (L(pa.int32()), lambda k: []), 'map': (pa.map_(S, pa.int32()), lambda k: [('k%d' % j, k & 15) for j in range(R.randint(0, 3))]),
    'list_bool': (L(pa.bool_()), items(lambda k: R.random() < .5)),
}
# name: (type, maker, row counts)
wide = {
    'random_float64': (pa.float64(), lambda k: R.gauss(0, 1), [1000]), 'random_int64': (pa.int64(), i(-2**63, 2**63 - 1), [1000]),
    'long_string': (S, lambda k: words(R.randint(0, 80)), [1, 7, 300]), 'long_binary': (pa.binary(), lambda k: bytes([k & 255]) * 400, [7, 100]), 'long_large_string': (pa.large_string(), lambda k: words(R.randint(0, 60)), [7, 200]),
    'huge_string': (S, lambda k: words(9) * 800, [1, 7]), 'text': (S, lambda k: words(6), [2000]), 'large_text': (pa.large_string(), lambda k: words(6), [2000]),
    'vector64': (FSL(F, 64), vector(64), [1, 7, 50]), 'vector_null_64': (FSL(F, 70), vector(70, .3), [7, 50]), 'vector_f16': (FSL(pa.float16(), 384), vector(384), [1, 7]),
    'vector_vector_wide': (FSL(FSL(pa.int32(), 33), 3), lambda k: [[R.randint(0, 9)] * 33 for _ in range(3)], [7]),
    'vector_all_null': (FSL(F, 80), lambda k: [None] * 80, [7]), 'vector_vector_null': (FSL(FSL(pa.int16(), 2), 3), lambda k: [[R.choice([None, 1]), 2] for _ in range(3)], [7, 100]),
    'list_long_string': (L(S), items(lambda k: words(60), 3), [1, 7, 100]), 'list_vector_wide': (L(FSL(F, 70)), items(maybe(vector(70)), 3), [7, 50]),
    'struct_long': (pa.struct([('y', S)]), lambda k: {'y': R.choice([None, words(60)])}, [7, 50]), 'vector_bool_wide': (FSL(pa.bool_(), 2400), lambda k: [R.random() < .5 for _ in range(2400)], [3]),
    'long_runs_of_null': (pa.int64(), lambda k: None if k // 600 % 2 else k, [5000]), 'few_long': (S, lambda k: R.choice(FEW) * 9, [5000]),
    'long_list': (L(pa.int32()), lambda k: list(range(R.choice([0, 0, 3000]))), [20]),
}
asked = {  # field metadata
    'lz4': (S, lambda k: words(6), {'lance-encoding:compression': 'lz4'}), 'zstd': (S, lambda k: words(6), {'lance-encoding:compression': 'zstd'}),
    'zstd_int': (pa.int32(), i(0, 9), {'lance-encoding:compression': 'zstd'}), 'lz4_int64': (pa.int64(), lambda k: k * k, {'lance-encoding:compression': 'lz4'}),
    'split': (F, lambda k: k / 3, {'lance-encoding:compression': 'lz4', 'lance-encoding:bss': 'on'}), 'fsst_binary': (pa.binary(), lambda k: words(6).encode(), {'lance-encoding:compression': 'fsst'}),
    'full_zip': (pa.int32(), i(0, 9), {'lance-encoding:structural-encoding': 'fullzip'}), 'full_zip_bool': (pa.bool_(), lambda k: R.random() < .5, {'lance-encoding:structural-encoding': 'fullzip'}),
    'full_zip_text': (S, lambda k: words(2), {'lance-encoding:structural-encoding': 'fullzip'}),
}

# enough rows for several chunks and level groups, where the file stays small
MANY = ('bool', 'int8', 'int16', 'int32', 'int64', 'float16', 'few_strings', 'more_strings', 'few_int64', 'few_decimals', 'runs', 'runs64', 'constant', 'constant_string',
        'constant_bool', 'null', 'empty', 'vector_bool', 'struct', 'list', 'large_list', 'list_bool', 'list_same', 'list_empty', 'struct_list')
OLD = ('int64', 'runs', 'runs64', 'few_strings', 'string', 'list', 'list_struct', 'bool', 'int32', 'decimal128', 'vector8', 'vector_null_item', 'null', 'text', 'long_string', 'vector64',
       'vector_null_64', 'list_list', 'list_long_string', 'long_runs_of_null', 'large_binary', 'struct')

def plain(t):
    return not any(f(t) for f in (pa.types.is_struct, pa.types.is_map, pa.types.is_list, pa.types.is_large_list))

def wanted(which, name, t):
    return {'full': True, 'old': name in OLD, '2.0': plain(t)}[which]

def cases(which):
    """name, type, maker, rows, field metadata"""
    for name, (t, make) in small.items():
        for n in (1, 7, 100 if name == 'fixed_binary_300' else 1000, 5000):
            if n == 5000 and (name not in MANY or which != 'full' and not name.startswith('runs')): continue
            if wanted(which, name, t): yield name, t, make, n, None
    for name, (t, make, counts) in wide.items():
        for n in counts:
            if wanted(which, name, t): yield name, t, make, n, None
    for name, (t, make, meta) in asked.items():
        if which != 'old': yield name, t, make, 1100, meta

def main(out, which):
    index, blob = [], bytearray()
    for name, t, make, n, meta in cases(which):
        for null in (0, .15):
            values = [None if R.random() < null else make(k) for k in range(n)]
            array = pa.array(values, t)
            table = pa.table([array], schema=pa.schema([pa.field('c', t, True, meta)]))
            for version in {'full': ('2.1', '2.2'), 'old': ('2.1',), '2.0': ('2.0',)}[which]:
                d = tempfile.mkdtemp()
                try:
                    lance.write_dataset(table, d, data_storage_version=version)
                    [f] = os.listdir(d + '/data')
                    minor, cols = columns(d + '/data/' + f)
                except BaseException as e:  # the engine panics on some
                    print('refused', name, version, n, null, str(e)[:80].replace('\n', ' '), file=sys.stderr)
                    continue
                finally:
                    shutil.rmtree(d)
                for (path, lt), pages in zip(leaves(t), cols, strict=True):
                    h = hashlib.sha256()
                    for k in range(n): h.update(text(array, k, path).encode() + b'\n')
                    entry = {'name': '/'.join((name,) + path), 'minor': minor, 'rows': n, 'nulls': null > 0, 'type': describe(lt), 'want': h.hexdigest(), 'pages': []}
                    for layout, buffers, length in pages:
                        entry['pages'].append({'layout': base64.b64encode(layout).decode(), 'rows': length, 'buffers': [len(x) for x in buffers]})
                        for x in buffers: blob += x
                    index.append(entry)
    with zipfile.ZipFile(out, 'w', zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        for name, data in (('index.json', json.dumps({'pylance': lance.__version__, 'columns': index}).encode()), ('pages.bin', bytes(blob))):
            z.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED, 9)
    print(len(index), 'columns', len(blob), 'bytes of buffers', os.path.getsize(out), 'bytes', file=sys.stderr)

if __name__ == '__main__': main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else 'full')
