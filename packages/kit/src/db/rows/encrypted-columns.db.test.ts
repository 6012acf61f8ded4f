import { inspect } from 'node:util';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { describeDatabases } from '../../testing/databases.ts';
import { type Column, t } from '../declare/column.ts';
import type { Encrypted } from '../declare/encrypted-column.ts';
import { model } from '../declare/model.ts';
import type { Database } from '../engine/db.ts';
import { DataKeys, readDataKeys } from '../sealing/data-keys.ts';
import { EncryptedValueUnreadable } from '../sealing/encrypted-value.ts';
import { keyEntry, newKey } from '../sealing/key-list.ts';
import { tableStatements } from '../sql/ddl.ts';
import { isUniqueViolation } from '../engine/constraint-violation.ts';
import { find, findBy, insert, insertMany, list, update } from './repository.ts';
import { reveal } from './reveal.ts';

const patients = model('patients', {
  id: t.uuidv7().pk(),
  clinic: t.text(20),
  name: t.text(100),
  note: t.text(200).nullable().encrypted(),
  history: t.json<{ readonly allergies: readonly string[] }>().nullable().encrypted(),
  scan: t.bytes().nullable().encrypted(),
  insurance: t
    .text(20)
    .nullable()
    .unique()
    .encrypted({ search: 'equality', normalize: (value) => value.replaceAll(' ', '').toUpperCase() }),
  phone: t.text(20).nullable().encrypted({ search: 'equality', tenant: 'clinic' }),
});
const visits = model('visits', { clinic: t.text(20), number: t.int(), note: t.text().encrypted() }, { primaryKey: ['clinic', 'number'] });

const first = newKey('k1');
const second = newKey('k2');
const search = newKey('s1');
const dataKeys = new DataKeys([first], [search]);

describeDatabases(
  'encrypted columns',
  (database) => {
    const stored = async (id: string, column: string): Promise<unknown> =>
      (await database.db.query<{ value: unknown }>(`select ${column} as value from patients where id = $1`, [id]))[0]?.value;

    test('the database stores ciphertext only, and reveal() returns what was written', async () => {
      const { db } = database;
      const scan = new Uint8Array([0, 1, 255]);
      const history = { allergies: ['MARKER nuts'] };
      const row = await insert(db, patients, { clinic: 'a', name: 'Ann', note: 'MARKER note', history, scan });
      const [raw] = await db.query<Record<string, unknown>>('select * from patients where id = $1', [row.id]);
      expect(inspect(raw)).not.toContain('MARKER');
      expect(JSON.stringify(row)).not.toContain('MARKER');
      expect(raw?.['note']).toMatch(/^enc1\.k1\.[\w-]+$/);
      expect([reveal(db, patients, row, 'note'), reveal(db, patients, row, 'history'), reveal(db, patients, row, 'scan')]).toEqual([
        'MARKER note',
        history,
        scan,
      ]);
      expectTypeOf(row.note).toEqualTypeOf<Encrypted<string> | null>();
      expectTypeOf(reveal(db, patients, row, 'note')).toEqualTypeOf<string | null>();
      expect(reveal(db, patients, await insert(db, patients, { clinic: 'a', name: 'Bea' }), 'note')).toBeNull();
    });

    test('the same value has another ciphertext in every row and at every write', async () => {
      const [a, b] = await insertMany(database.db, patients, [
        { clinic: 'a', name: '1', note: 'same' },
        { clinic: 'a', name: '2', note: 'same' },
      ]);
      const again = await update(database.db, patients, a?.id as string, { note: 'same' });
      expect(new Set([a?.note, b?.note, again?.note]).size).toBe(3);
    });

    test('a value that is moved to another row, column or table cannot be read', async () => {
      const { db } = database;
      const row = await insert(db, patients, { clinic: 'a', name: 'Ann', note: 'secret', phone: '1' });
      const other = await insert(db, patients, { clinic: 'a', name: 'Bob' });
      await db.query('update patients set note = (select note from patients where id = $1) where id = $2', [row.id, other.id]);
      await db.query('update patients set phone = note where id = $1', [row.id]);
      const moved = await find(db, patients, other.id);
      const mixed = await find(db, patients, row.id);
      expect(() => reveal(db, patients, moved as NonNullable<typeof moved>, 'note')).toThrow(EncryptedValueUnreadable);
      expect(() => reveal(db, patients, mixed as NonNullable<typeof mixed>, 'phone')).toThrow('belongs to another row, column or table');
      const elsewhere = model('other_patients', patients.columns);
      expect(() => reveal(db, elsewhere, row, 'note')).toThrow(EncryptedValueUnreadable);
    });

    test('an altered value, a value without its key and a value in plaintext are reported without their content', async () => {
      const { db } = database;
      const { id } = await insert(db, patients, { clinic: 'a', name: 'Ann', note: 'secret' });
      const failure = async (note: string): Promise<Error> => {
        await db.query('update patients set note = $1 where id = $2', [note, id]);
        const row = await find(db, patients, id);
        try {
          reveal(db, patients, row as NonNullable<typeof row>, 'note');
        } catch (error) {
          return error as Error;
        }
        throw new Error('it was read');
      };
      const value = String(await stored(id, 'note'));
      expect(await failure(`${value.slice(0, -2)}${value.endsWith('AA') ? 'BB' : 'AA'}`)).toBeInstanceOf(EncryptedValueUnreadable);
      expect((await failure(value.replace('.k1.', '.k9.'))).message).toBe(
        '"note" of "patients" has a value of the key "k9", which DATA_KEYS does not have.',
      );
      const plain = await failure('MARKER');
      expect(plain.message).toContain('is not encrypted');
      expect(inspect(plain)).not.toContain('MARKER');
    });

    test('after a rename the stable ids keep the values readable', async () => {
      const { db } = database;
      const row = await insert(db, patients, { clinic: 'a', name: 'Ann', note: 'kept' });
      const renamed = model('clients', { id: t.uuidv7().pk(), remark: t.text().nullable().encrypted({ id: 'note' }) }, { id: 'patients' });
      expect(reveal(db, renamed, { id: row.id, remark: row.note }, 'remark')).toBe('kept');
    });

    test('keys of several columns bind, too', async () => {
      const { db } = database;
      const row = await insert(db, visits, { clinic: 'a', number: 1, note: 'x' });
      await insert(db, visits, { clinic: 'a', number: 2, note: 'y' });
      expect(reveal(db, visits, row, 'note')).toBe('x');
      await db.query('update visits set note = (select note from visits where number = 2) where number = 1');
      const [swapped] = await list(db, visits, { where: { number: 1 } });
      expect(() => reveal(db, visits, swapped as NonNullable<typeof swapped>, 'note')).toThrow(EncryptedValueUnreadable);
    });

    test('the key of a row with encrypted values cannot change', async () => {
      const { db } = database;
      const { id } = await insert(db, patients, { clinic: 'a', name: 'Ann' });
      await expect(update(db, patients, id, { id: crypto.randomUUID() })).rejects.toThrow('The key of "patients" cannot change');
    });

    test('a search finds rows by the normalised value, and nothing else', async () => {
      const { db } = database;
      const row = await insert(db, patients, { clinic: 'a', name: 'Ann', insurance: 'ab 12' });
      const other = await insert(db, patients, { clinic: 'a', name: 'Bob', insurance: 'cd 34' });
      expect((await findBy(db, patients, { insurance: 'AB12' }))?.id).toBe(row.id);
      expect(await findBy(db, patients, { insurance: 'AB1' })).toBeUndefined();
      const both = await list(db, patients, { where: { insurance: { in: ['ab12', 'CD 34', 'none'] } }, orderBy: ['name'] });
      expect(both.map(({ id }) => id)).toEqual([row.id, other.id]);
      const search = await stored(row.id, 'insurance_search');
      expect(search).toMatch(/^s1\.[\w-]{43}$/);
      await update(db, patients, row.id, { insurance: 'ef 56' });
      expect(await findBy(db, patients, { insurance: 'ab12' })).toBeUndefined();
      expect((await findBy(db, patients, { insurance: 'ef56' }))?.id).toBe(row.id);
      await update(db, patients, row.id, { insurance: null });
      expect(await stored(row.id, 'insurance_search')).toBeNull();
    });

    test('unique is decided on the normalised value', async () => {
      const { db } = database;
      await insert(db, patients, { clinic: 'a', name: 'Ann', insurance: 'uu 1' });
      const refused = await insert(db, patients, { clinic: 'b', name: 'Bob', insurance: 'UU1' }).catch((error: unknown) => error);
      expect(isUniqueViolation(refused, 'insurance')).toBe(true);
      expect(inspect(refused)).not.toMatch(/UU ?1/i);
    });

    test('tenants have different search values, and a search without the tenant fails', async () => {
      const { db } = database;
      const a = await insert(db, patients, { clinic: 'a', name: 'Ann', phone: '555' });
      const b = await insert(db, patients, { clinic: 'b', name: 'Bob', phone: '555' });
      expect(await stored(a.id, 'phone_search')).not.toBe(await stored(b.id, 'phone_search'));
      expect((await findBy(db, patients, { clinic: 'b', phone: '555' }))?.id).toBe(b.id);
      expect((await findBy(db, patients, { and: [{ clinic: { eq: 'a' } }, { or: [{ phone: '555' }] }] }))?.id).toBe(a.id);
      await expect(findBy(db, patients, { phone: '555' })).rejects.toThrow('needs the tenant');
      const changed = await update(db, patients, a.id, { phone: '556' });
      expect((await findBy(db, patients, { clinic: 'a', phone: '556' }))?.id).toBe(changed?.id);
      await expect(update(db, patients, a.id, { clinic: 'b' })).rejects.toThrow('cannot change without "phone"');
      await update(db, patients, a.id, { clinic: 'b', phone: '557' });
      expect((await findBy(db, patients, { clinic: 'b', phone: '557' }))?.id).toBe(a.id);
    });

    test('what a ciphertext cannot be asked for fails with a sentence', async () => {
      const { db } = database;
      await expect(findBy(db, patients, { note: 'x' } as never)).rejects.toThrow('is not an operator of this encrypted column (isnull)');
      for (const operator of ['contains', 'gt', 'ne', 'nin'])
        await expect(findBy(db, patients, { insurance: { [operator]: 'x' } } as never)).rejects.toThrow('(eq, in, isnull)');
      await expect(list(db, patients, { orderBy: ['note'] })).rejects.toThrow('is encrypted');
      expect(await list(db, patients, { where: { note: null, name: 'none' } })).toEqual([]);
    });

    test('a ciphertext is not encrypted again, and search values are not written by hand', async () => {
      const { db } = database;
      const row = await insert(db, patients, { clinic: 'a', name: 'Ann', note: 'x' });
      await expect(insert(db, patients, { clinic: 'a', name: 'Bob', note: row.note as never })).rejects.toThrow('must be the plaintext');
      await expect(update(db, patients, row.id, { insurance_search: 'x' } as never)).rejects.toThrow('is computed from "insurance"');
    });

    test('values are checked as their column says before they are encrypted', async () => {
      await expect(insert(database.db, patients, { clinic: 'a', name: 'Ann', insurance: 'x'.repeat(21) })).rejects.toThrow(
        'at most 20 characters',
      );
    });

    test('the first key encrypts, all decrypt, and all search keys are searched', async () => {
      const { db } = database;
      const row = await insert(db, patients, { clinic: 'a', name: 'Ann', note: 'old', insurance: 'rot 1' });
      const rotated = await database.open({ dataKeys: new DataKeys([second, first], [newKey('s2'), search]) });
      expect(reveal(rotated, patients, row, 'note')).toBe('old');
      expect((await findBy(rotated, patients, { insurance: 'rot1' }))?.id).toBe(row.id);
      const changed = await update(rotated, patients, row.id, { note: 'new' });
      expect(changed?.note).toMatch(/^enc1\.k2\./);
    });

    test('a statement on an encrypted column fails on a database that was opened without keys', async () => {
      const keyless: Database = await database.open();
      await expect(insert(keyless, patients, { clinic: 'a', name: 'Ann', note: 'x' })).rejects.toThrow('opened without data keys');
      const { id } = await insert(keyless, patients, { clinic: 'a', name: 'without' });
      expect((await find(keyless, patients, id))?.note).toBeNull();
    });

    test('observers of statements see no plaintext', async () => {
      const seen: unknown[] = [];
      const stop = database.db.observe({ onQuery: (event: unknown) => void seen.push(event) });
      await insert(database.db, patients, { clinic: 'a', name: 'Ann', note: 'MARKER', insurance: 'MARKER' });
      await findBy(database.db, patients, { insurance: 'MARKER' });
      stop();
      expect(seen.length).toBeGreaterThan(1);
      expect(inspect(seen, { depth: 9 })).not.toContain('MARKER');
    });
  },
  {
    database: { dataKeys },
    prepare: async (db) => {
      for (const each of [patients, visits]) for (const statement of tableStatements(each.table, db.dialect)) await db.query(statement);
    },
  },
);

describe('declarations', () => {
  const declared =
    (columns: Record<string, Column<never>>, options: object = {}) =>
    () =>
      model('things', { id: t.uuidv7().pk(), ...columns } as never, options);

  test.each([
    ['int', { a: t.int().encrypted() }, {}, 'a int column cannot be encrypted'],
    ['unique without search', { a: t.text().unique().encrypted() }, {}, 'an index needs search values'],
    ['index without search', { a: t.text().encrypted() }, { indexes: [{ columns: ['a'] }] }, 'an index needs search values'],
    ['descending index', { a: t.text().encrypted({ search: 'equality' }) }, { indexes: [{ columns: ['-a'] }] }, 'has no order'],
    ['search in JSON', { a: t.json().encrypted({ search: 'equality' }) }, {}, 'JSON has no equality'],
    ['tenant without search', { a: t.text().encrypted({ tenant: 'id' }) }, {}, "add search: 'equality'"],
    ['unknown tenant', { a: t.text().encrypted({ search: 'equality', tenant: 'idd' }) }, {}, 'did you mean "id"'],
    ['default of the database', { a: t.text().dbDefault('x').encrypted() }, {}, 'the database cannot encrypt a default'],
    ['check', { a: t.text().encrypted() }, { checks: { long: 'length(a) > 3' } }, 'cannot read an encrypted value'],
    ['full text', { a: t.text().encrypted() }, { fullText: [{ columns: ['a'] }] }, 'full-text search cannot read'],
    ['reference', { a: t.ref('users').encrypted() }, {}, 'a reference cannot be encrypted'],
    ['same id', { a: t.text().encrypted({ id: 'x' }), b: t.text().encrypted({ id: 'x' }) }, {}, 'the same encryption id'],
    ['taken name', { a: t.text().encrypted({ search: 'equality' }), a_search: t.text() }, {}, 'need the column name "a_search"'],
  ])('%s is refused', (_name, columns, options, sentence) => {
    expect(declared(columns as never, options)).toThrow(sentence);
  });

  test('the key must be known before the row is inserted, and have one text', () => {
    expect(() => model('x', { id: t.uuid().dbDefault('random').pk(), a: t.text().encrypted() })).toThrow('made by the database');
    expect(() => model('x', { at: t.timestamp().pk(), a: t.text().encrypted() })).toThrow('it is a timestamp');
  });
});

describe('keys', () => {
  test('are read by id, and wrong ones are reported together without their content', async () => {
    const keys = await readDataKeys({ keys: `${keyEntry(first)}, ${keyEntry(second)}`, searchKeys: keyEntry(search) });
    expect([keys.ids, keys.searchIds]).toEqual([['k1', 'k2'], ['s1']]);
    const wrong = readDataKeys({
      keys: `${keyEntry(first)},SECRETKEY,${keyEntry({ id: 'k1', bytes: new Uint8Array(3) })}`,
      searchKeys: 's:QUJD',
    });
    await expect(wrong).rejects.toThrow(
      /Key 2 of DATA_KEYS is not id:key.*Two keys of DATA_KEYS have the id "k1".*"s" of DATA_SEARCH_KEYS has 3 bytes/,
    );
    await expect(wrong).rejects.not.toThrow('SECRETKEY');
  });

  test('a service unwraps them', async () => {
    const mask = (bytes: Uint8Array): Uint8Array => bytes.map((byte) => byte ^ 7);
    const wrapped = keyEntry({ id: 'k1', bytes: mask(first.bytes) });
    const keys = await readDataKeys({ keys: wrapped, wrapping: { unwrapKey: (bytes) => Promise.resolve(mask(bytes)) } });
    const place = { table: 't', column: 'c', key: ['1'] };
    expect(dataKeys.decrypt(place, keys.encrypt(place, Buffer.from('x'))).toString()).toBe('x');
    const failing = readDataKeys({ keys: wrapped, wrapping: { unwrapKey: () => Promise.reject(new Error('no access')) } });
    await expect(failing).rejects.toThrow('The key "k1" of DATA_KEYS could not be unwrapped: no access');
  });

  test('are not shown when they are printed', () => {
    const text = inspect(dataKeys, { depth: 9, showHidden: true }) + JSON.stringify(dataKeys);
    expect(text).not.toContain(Buffer.from(first.bytes).toString('hex').slice(0, 16));
    expect(text).not.toContain('bytes');
  });
});
