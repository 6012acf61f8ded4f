import fc from 'fast-check';
import { stringify } from 'smol-toml';
import { expect, test } from 'vitest';
import { applyEnvironment, variablesOf } from '../src/document/environment.ts';
import { LoadFailure } from '../src/document/load-failure.ts';
import { merge } from '../src/document/merge.ts';
import { parseFile, toDocumentTable } from '../src/document/formats.ts';
import { emptyTable, isTable, type NewTable, type Table, type Value } from '../src/document/value.ts';

// The rules of the documentation, said a second time as directly as possible, and compared with the code over random documents.

const hostileKeys = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'a', 'b', 'maxSize', '0', 'a.b', 'a\\b', 'ß', ''];
const key = fc.oneof(fc.constantFrom(...hostileKeys), fc.string({ maxLength: 4 }));
const scalar = fc.oneof(
  fc.integer(),
  fc.boolean(),
  fc.string({ maxLength: 5 }),
  fc.constant(null),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);

const { value: made } = fc.letrec<{ value: Value; table: Table }>((tie) => ({
  value: fc.oneof({ depthSize: 'small' }, scalar, fc.array(scalar, { maxLength: 3 }), tie('table')),
  table: fc.array(fc.tuple(key, tie('value')), { maxLength: 4 }).map((entries) => {
    const table = emptyTable();
    for (const [name, held] of entries) table[name] = held;
    return table;
  }),
}));
/** Tables as parsers make them, which inherit from Object.prototype, and as layers make them, which inherit nothing. */
const value = fc.tuple(made, fc.boolean()).map(([held, parsed]) => (parsed ? (JSON.parse(JSON.stringify(held)) as Value) : held));
const table = value.filter(isTable);

/** Every leaf by its path, and what it holds: a document flattened, empty tables and arrays included. */
function leavesOf(document: Table, prefix: readonly string[] = []): Map<string, Value> {
  const leaves = new Map<string, Value>();
  for (const [name, held] of Object.entries(document)) {
    const path = [...prefix, name];
    if (isTable(held) && Object.keys(held).length > 0) for (const leaf of leavesOf(held, path)) leaves.set(...leaf);
    else leaves.set(JSON.stringify(path), held);
  }
  return leaves;
}

const merged = (...layers: Table[]): Table => layers.reduce(merge);

function model(under: Value | undefined, over: Value): unknown {
  if (!isTable(under) || !isTable(over)) return over;
  const [earlier, later] = [new Map(Object.entries(under)), new Map<string, Value>(Object.entries(over))];
  const names = [...earlier.keys(), ...later.keys()];
  return Object.fromEntries(names.map((name) => [name, later.has(name) ? model(earlier.get(name), later.get(name)!) : earlier.get(name)]));
}

const plain = (held: unknown): unknown => JSON.parse(JSON.stringify(held));

test('a merge takes the later layer where it has a value, the earlier one elsewhere, tables key by key', () => {
  fc.assert(
    fc.property(table, table, (under, over) => {
      expect(plain(merged(under, over))).toEqual(plain(model(under, over)));
    }),
    { numRuns: 500 },
  );
});

test('every leaf of the last layer is in the result, and every other leaf comes from an earlier one', () => {
  fc.assert(
    fc.property(table, table, table, (first, second, third) => {
      const result = leavesOf(merged(first, second, third));
      // An empty table over a filled one adds nothing and takes nothing away.
      const spoken = [...leavesOf(third)].filter(([, held]) => !isTable(held));
      for (const [path, held] of spoken) expect(plain(result.get(path)!)).toEqual(plain(held));
      const sources = [first, second, third].map((layer) => leavesOf(layer));
      for (const [path, held] of result) {
        expect(sources.some((source) => JSON.stringify(source.get(path)) === JSON.stringify(held))).toBe(true);
      }
    }),
    { numRuns: 500 },
  );
});

test('repeating a layer changes nothing, and no layer is altered', () => {
  fc.assert(
    fc.property(table, table, table, (first, second, third) => {
      const before = JSON.stringify([first, second, third]);
      const result = merged(first, second, third, third);
      expect(plain(result)).toEqual(plain(merged(first, second, third)));
      expect(JSON.stringify([first, second, third])).toBe(before);
    }),
    { numRuns: 300 },
  );
});

test('no key of any layer, nor of the environment, reaches a prototype', () => {
  const hostile = {
    X__CONSTRUCTOR__PROTOTYPE__POLLUTED: '1',
    X__TOSTRING: '2',
    X__A: '{"__proto__":{"polluted":3},"constructor":{"prototype":{"polluted":4}}}',
  };
  fc.assert(
    fc.property(table, table, (under, over) => {
      const result = merged(under, over);
      for (const variable of variablesOf(hostile, 'X__')) {
        const outcome = tolerate(() => applyEnvironment(result, [variable]).document);
        expect(outcome instanceof LoadFailure || Object.getPrototypeOf(outcome) === Object.getPrototypeOf(emptyTable())).toBe(true);
      }
      expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    }),
  );
});

/** The result, or the failure of a variable that does not fit the document. Any other error is a defect and passes through. */
function tolerate<Result>(run: () => Result): Result | LoadFailure {
  try {
    return run();
  } catch (error) {
    if (error instanceof LoadFailure) return error;
    throw error;
  }
}

const segment = fc.stringMatching(/^[a-z][a-zA-Z0-9]{0,4}$/).filter((name) => !name.includes('__'));
const path = fc.array(segment, { minLength: 1, maxLength: 3 });
const fileTable = fc
  .array(fc.tuple(path, fc.oneof(fc.integer(), fc.boolean(), fc.stringMatching(/^[a-z]{1,5}$/))), { maxLength: 6 })
  .map((entries) => {
    const document = emptyTable();
    for (const [keys, held] of entries) {
      let at = document;
      for (const name of keys.slice(0, -1)) at = isTable(at[name]) ? (at[name] as NewTable) : (at[name] = emptyTable());
      at[keys.at(-1)!] = held;
    }
    return document;
  });

function copyOf(held: Table): NewTable {
  const copy = emptyTable();
  for (const [name, each] of Object.entries(held)) copy[name] = isTable(each) ? copyOf(each) : (each as Value);
  return copy;
}

/** What one variable must do, by the documented rule, or 'refused'. */
function overlay(document: Table, keys: readonly string[], held: Value): Table | 'refused' {
  const result = copyOf(document);
  let at = result;
  for (const [index, name] of keys.entries()) {
    const upper = name.toUpperCase();
    const found = Object.hasOwn(at, upper)
      ? upper
      : (Object.keys(at).find((each) => each.toLowerCase() === upper.toLowerCase()) ?? upper.toLowerCase());
    const last = index === keys.length - 1;
    const there = at[found];
    if (last) {
      if (isTable(there)) return 'refused';
      at[found] = held;
    } else {
      if (there === undefined) at[found] = emptyTable();
      if (!isTable(at[found])) return 'refused';
      at = at[found] as NewTable;
    }
  }
  return result;
}

test('a variable sets exactly the key its segments name, whatever their case, and nothing else', () => {
  fc.assert(
    fc.property(
      fileTable,
      path,
      fc.oneof(
        fc.integer(),
        fc.boolean(),
        fc.stringMatching(/^[a-z]{1,6}$/).filter((text) => text !== 'true' && text !== 'false'),
      ),
      (document, keys, held) => {
        const name = `APP__${keys.map((each) => each.toUpperCase()).join('__')}`;
        const expected = overlay(document, keys, held);
        const environment = { [name]: String(held), OTHER__A: 'x', APP_A: 'x' };
        const outcome = tolerate(() => applyEnvironment(document, variablesOf(environment, 'APP__')).document);
        const refused = outcome instanceof LoadFailure && outcome.message.includes(name);
        expect(refused ? 'refused' : plain(outcome as Table)).toEqual(expected === 'refused' ? 'refused' : plain(expected));
      },
    ),
    { numRuns: 1_000 },
  );
});

test('the order in which the environment lists its variables does not matter', () => {
  fc.assert(
    fc.property(
      fileTable,
      fc.uniqueArray(fc.tuple(path, fc.integer()), { maxLength: 4, selector: ([keys]) => keys.join('__').toLowerCase() }),
      (document, entries) => {
        const outcome = (order: typeof entries): unknown => {
          try {
            const environment = Object.fromEntries(order.map(([keys, held]) => [`APP__${keys.join('__').toUpperCase()}`, String(held)]));
            return plain(applyEnvironment(document, variablesOf(environment, 'APP__')).document);
          } catch (error) {
            return (error as LoadFailure).kind;
          }
        };
        expect(outcome(entries.toReversed())).toEqual(outcome(entries));
      },
    ),
    { numRuns: 500 },
  );
});

test('a document written as TOML, YAML or JSON is the same document', () => {
  const carried = fc.dictionary(
    fc.stringMatching(/^[a-zA-Z_]\w{0,4}$/),
    fc.oneof(fc.integer(), fc.boolean(), fc.string({ maxLength: 8 }), fc.array(fc.string({ maxLength: 3 }), { maxLength: 3 })),
    { maxKeys: 5 },
  );
  fc.assert(
    fc.property(carried, (document) => {
      // JSON is YAML; a lone surrogate is neither UTF-8 nor TOML.
      fc.pre(JSON.stringify(document).isWellFormed() && !/\\ud[89a-f]/i.test(JSON.stringify(document)));
      const read = (name: string, text: string): unknown => plain(toDocumentTable(parseFile(name, Buffer.from(text), name), name));
      const expected = plain(document);
      expect(read('a.json', JSON.stringify(document))).toEqual(expected);
      expect(read('a.yaml', JSON.stringify(document))).toEqual(expected);
      expect(read('a.toml', stringify(document))).toEqual(expected);
    }),
    { numRuns: 500 },
  );
});
