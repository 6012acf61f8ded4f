import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { formatKey, newPrefix, newSecret } from '../../src/contrib/apikeys/key/key.ts';
import { openDatabase, type Database } from '../../src/db/index.ts';
import { createPostgresDatabase, createSqliteDatabase, type DatabasePlace } from '../../src/testing/index.ts';
import { findKey, findWebhookSecret } from './find-secrets.ts';
import { findKeyIn, scanDatabase } from './scan-database.ts';

const NONE = { keys: new Set<string>(), sealed: new Set<string>() };
const signing = () => `whsec_${Buffer.from(newSecret()).toString('base64')}`;

test('a raw key of any tag is found in any text, and shown without its secret', () => {
  const parts = { prefix: newPrefix(), secret: newSecret() };
  for (const tag of ['kit', 'acme']) {
    const found = findKey(`{"msg":"got ${formatKey(tag, parts)}"}`, NONE);
    expect(found).toEqual({ kind: 'an API key', shown: `${tag}_${parts.prefix}_…` });
  }
  expect(findKey(`prefix kit_${parts.prefix} and a digest ${'0'.repeat(64)}`, NONE)).toBeNull();
});

test('the secret part of a key made here is found alone and inside a longer word', () => {
  const secret = newSecret();
  for (const text of [secret, `x${secret}y`, `"${secret}"`])
    expect(findKey(text, { keys: new Set([secret]) })).toMatchObject({ shown: `${secret.slice(0, 4)}…` });
  expect(findKey(secret, NONE)).toBeNull();
});

test('a key is found in a file that is read in pieces, wherever a piece ends', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'kit-scan-'));
  try {
    const file = join(folder, 'large');
    const secret = newSecret();
    const pieceBytes = 64 * 1024;
    for (const before of [0, pieceBytes - 20, 2 * pieceBytes - 1, 3 * pieceBytes]) {
      await writeFile(file, `${' '.repeat(before)}${secret}${' '.repeat(pieceBytes)}`);
      expect([before, await findKeyIn(file, { ...NONE, keys: new Set([secret]) }, pieceBytes)]).toMatchObject([
        before,
        { shown: `${secret.slice(0, 4)}…` },
      ]);
    }
    expect(await findKeyIn(file, NONE, pieceBytes)).toBeNull();
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('a signing secret is found by its form', () => {
  expect(findWebhookSecret(`the secret is ${signing()}.`)).toMatchObject({ kind: 'a webhook signing secret' });
  expect(findWebhookSecret('whsec_ starts every secret')).toBeNull();
});

const servers = { sqlite: createSqliteDatabase, postgres: () => createPostgresDatabase(inject('postgresUrl')) };

describe.each(['sqlite', 'postgres'] as const)('scanning a database (%s)', (dialect) => {
  let place: DatabasePlace;
  let db: Database;

  beforeEach(async () => {
    place = await servers[dialect]();
    db = await openDatabase(place.url);
    await db.query(`create table notes (id integer primary key, body text, bytes ${dialect === 'sqlite' ? 'blob' : 'bytea'})`);
    await db.query('create table webhook_endpoints (id integer primary key, secret text, previous_secret text, description text)');
  });
  // This file writes secrets down on purpose: they must be gone before the run's own search comes by.
  afterEach(async () => {
    await db.query('drop table notes');
    await db.query('drop table webhook_endpoints');
    await db.close();
    if (dialect === 'sqlite') await rm(place.url.slice('sqlite:'.length));
    await place.remove();
  });

  test('names the table and the column of a raw key and of a secret part', async () => {
    const secret = newSecret();
    await db.query('insert into notes (id, body) values (1, $1)', [
      `see ${formatKey('kit', { prefix: newPrefix(), secret: newSecret() })}`,
    ]);
    await db.query('insert into notes (id, bytes) values (2, $1)', [new Uint8Array(Buffer.from(secret))]);
    const leaks = await scanDatabase(place, { ...NONE, keys: new Set([secret]) });
    expect(leaks.map(({ where, kind }) => `${where}: ${kind}`).sort()).toEqual([
      'notes.body: an API key',
      'notes.bytes: the secret part of an API key',
    ]);
  });

  test('finds the one secret among many rows, wherever it is, and behind a zero byte', async () => {
    const secret = newSecret();
    const text = dialect === 'postgres' ? `repeat('x', 200)` : `printf('%.*c', 200, 'x')`;
    await db.query(
      `insert into notes (id, body) with recursive n(i) as (select 1 union all select i + 1 from n where i < 20050) select i, ${text} from n`,
    );
    const known = { ...NONE, keys: new Set([...Array.from({ length: 50 }, () => newSecret()), secret]) };
    expect(await scanDatabase(place, known)).toEqual([]);
    for (const id of [1, 10_000, 20_050]) {
      await db.query('update notes set bytes = $2 where id = $1', [id, new Uint8Array(Buffer.from(`\0\u{ff}${secret}`))]);
      expect((await scanDatabase(place, known)).map(({ where }) => where)).toEqual(['notes.bytes']);
      await db.query('update notes set bytes = null');
    }
  });

  test('finds a signing secret outside the column for it, and inside when it should be encrypted there', async () => {
    const [plain, sealed] = [signing(), signing()];
    await db.query('insert into webhook_endpoints (id, secret) values (1, $1)', [plain]);
    expect(await scanDatabase(place, NONE)).toEqual([]);
    await db.query('insert into webhook_endpoints (id, description) values (2, $1)', [signing()]);
    expect(await scanDatabase(place, NONE)).toMatchObject([{ where: 'webhook_endpoints.description' }]);
    await db.query('update webhook_endpoints set description = null');
    await db.query('insert into webhook_endpoints (id, secret, previous_secret) values (3, $1, $2)', [`fernet:${'A'.repeat(100)}`, sealed]);
    expect(await scanDatabase(place, { ...NONE, sealed: new Set([sealed]) })).toMatchObject([
      { where: 'webhook_endpoints.previous_secret' },
    ]);
  });
});

test('finds what a SQLite file keeps of a row that was deleted', async () => {
  const place = await createSqliteDatabase();
  const db = await openDatabase(place.url);
  await db.query('create table notes (body text)');
  await db.query('insert into notes values ($1)', [formatKey('kit', { prefix: newPrefix(), secret: newSecret() })]);
  await db.query('delete from notes');
  await db.close();
  const leaks = await scanDatabase(place, NONE);
  await rm(place.url.slice('sqlite:'.length));
  await place.remove();
  expect(leaks).toMatchObject([{ where: 'test.db, in what is left of deleted rows', kind: 'an API key' }]);
});
