import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runUntilKilled } from '../../../test/run-until-killed.ts';
import { scaled } from '../../../../../test/provision/scale.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { t } from '../declare/column.ts';
import { model } from '../declare/model.ts';
import type { Database } from '../engine/db.ts';
import { migrate } from '../migrations/migrate.ts';
import { migration } from '../migrations/migration.ts';
import { createTable } from '../migrations/operation.ts';
import type { MigrationModule } from '../migrations/plan.ts';
import { insert, insertMany, list, update } from '../rows/repository.ts';
import { reveal } from '../rows/reveal.ts';
import { keyEntry, newKey } from '../sealing/key-list.ts';
import { proposeSteps } from './propose-steps.ts';

const PROGRAM = join(import.meta.dirname, '../../../test/crash/encrypt-until-killed.ts');
const dataKeys = { keys: keyEntry(newKey('k1')), searchKeys: keyEntry(newKey('s1')) };
const ROWS = 200;

const before = { id: t.uuidv7().pk(), name: t.text(20), phone: t.text(40).nullable().unique() };
const sealed = (replaces: { replaces?: string }) =>
  t
    .text(40)
    .nullable()
    .unique()
    .encrypted({ search: 'equality', ...replaces });
const initial = migration('0001_initial', [createTable('people', before)]);
/** What runs today, the release that writes both, and the one that reads the encrypted column. */
const first = model('people', before);
const second = model('people', { ...before, phone_sealed: sealed({ replaces: 'phone' }) });
const third = model('people', { id: before.id, name: before.name, phone_sealed: sealed({}) });

describeDatabases(
  'a plaintext column that becomes encrypted by the files of migrate make',
  (database) => {
    let folder = '';
    beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), 'kit-encrypt-'))));
    afterAll(() => rm(folder, { recursive: true, force: true }));

    /** The module of a release, with the files that were generated; `count` of them. */
    async function generated(count: number): Promise<{ readonly shop: MigrationModule; readonly file: string }> {
      const steps = proposeSteps([{ name: 'shop', models: [second], migrations: [initial] }], 'shop', 'seal_phone');
      const source = JSON.stringify(pathToFileURL(join(import.meta.dirname, '../index.ts')).href);
      const files = (steps?.files ?? []).slice(0, count);
      for (const each of files)
        await writeFile(
          join(folder, `${each.name}.ts`),
          each.source.replaceAll(`'kit/db'`, source).replace('  model: table,', '  model: table,\n  batch: 20,'),
        );
      const named = (kind: string) => files.filter((each) => each.kind === kind).map(({ name }) => `_${name}`);
      const file = join(folder, `release-${count}.ts`);
      const imports = files.map(({ name }) => `import _${name} from './${name}.ts';`).join('\n');
      await writeFile(
        file,
        `import { createTable, migration, t } from ${source};\n${imports}\n` +
          `const initial = migration('0001_initial', [createTable('people', { id: t.uuidv7().pk(), name: t.text(20), phone: t.text(40).nullable().unique() })]);\n` +
          `export const shop = { name: 'shop', migrations: [initial, ${named('migration').join(', ')}], backfills: [${named('backfill').join(', ')}] };\n`,
      );
      const { shop } = (await import(pathToFileURL(file).href)) as { shop: MigrationModule };
      return { shop, file };
    }

    /** A process of a release: new rows, changed values, values that are removed. */
    function running(db: Database, people: typeof first | typeof second, prefix: string): () => Promise<void> {
      const ended = new AbortController();
      const work = (async () => {
        for (let n = 0; !ended.signal.aborted; n++) {
          const row = await insert(db, people as typeof first, { name: prefix, phone: `${prefix} ${n}` });
          const [old] = await list(db, people as typeof first, { where: { name: 'old' }, orderBy: ['id'], offset: n % ROWS, limit: 1 });
          if (old !== undefined) await update(db, people as typeof first, old.id, { phone: n % 5 === 0 ? null : `${prefix} changed ${n}` });
          if (n % 3 === 0) await update(db, people as typeof first, row.id, { phone: `${prefix} again ${n}` });
          await delay(20);
        }
      })();
      work.catch(() => undefined);
      return async () => {
        ended.abort();
        await work;
      };
    }

    test('loses no value while two versions write and the back-fill is killed, and leaves no plaintext', async () => {
      const { db } = database;
      await migrate(db, [{ name: 'shop', migrations: [initial] }]);
      await insertMany(
        db,
        first,
        Array.from({ length: ROWS }, (_, n) => ({ name: 'old', phone: n % 7 === 0 ? null : `plain ${n}` })),
      );
      const { shop, file } = await generated(2);
      const stopFirst = running(db, first, 'first');
      await migrate(db, [shop], { backup: false });
      const stopSecond = running(db, second, 'second');
      await delay(300);
      await stopFirst();
      for (const lines of [1, 4, 2, 6].slice(-scaled(2, 4)))
        await runUntilKilled(PROGRAM, [database.url, file, JSON.stringify(dataKeys)], lines);
      const all = await generated(3);
      await expect(migrate(db, [all.shop], { backup: false })).rejects.toThrow('kit backfill run 0003_encrypt_people');
      await runUntilKilled(PROGRAM, [database.url, file, JSON.stringify(dataKeys)], Infinity);
      await stopSecond();

      const phones = new Map<string, string | null>();
      for (const row of await list(db, second)) {
        expect(reveal(db, second, row, 'phone_sealed')).toBe(row.phone);
        phones.set(row.id, row.phone);
      }
      expect(phones.size).toBeGreaterThan(ROWS + 2);
      await migrate(db, [all.shop], { backup: false });
      const rows = await list(db, third);
      expect(new Map(rows.map((row) => [row.id, reveal(db, third, row, 'phone_sealed')]))).toEqual(phones);
      const [id, phone] = [...phones].find(([, value]) => value !== null) ?? [];
      expect((await list(db, third, { where: { phone_sealed: phone } as never })).map((row) => row.id)).toEqual([id]);
      expect(JSON.stringify(await db.query('select * from people'))).not.toMatch(/plain|changed|again/);
    }, 300_000);
  },
  { database: { dataKeys } },
);
