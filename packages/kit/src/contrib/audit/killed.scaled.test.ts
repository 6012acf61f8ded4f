import { join } from 'node:path';
import { expect, test } from 'vitest';
import { auditLog } from '../../../test/audit-log.ts';
import { runUntilKilled } from '../../../test/run-until-killed.ts';
import { migrate } from '../../db/migrations/migrate.ts';
import { scaled } from '../../../../../test/provision/scale.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { auditMigrations } from './migrations/all.ts';
import { verifyChain } from './chain/verify-chain.ts';

const PROGRAM = join(import.meta.dirname, '../../../test/seal-until-killed.ts');

describeDatabases(
  'processes killed while they seal',
  (database) => {
    test('leave a whole chain, and every committed entry is in it', async () => {
      const { db, url } = database;
      for (const [round, transactions] of [3, 7, 12, 20].slice(-scaled(2, 4)).entries()) {
        const names = [`round ${round} a`, `round ${round} b`];
        const committed = await Promise.all(names.map((name) => runUntilKilled(PROGRAM, [url, name], transactions)));
        for (const [index, name] of names.entries()) {
          const targets = (await auditLog(db, { action: name })).map(({ target_id }) => Number(target_id));
          expect(targets.length).toBeGreaterThanOrEqual(committed[index] ?? 0);
          expect(targets.toSorted((a, b) => a - b)).toEqual(Array.from(targets, (_, place) => place));
        }
        expect(await verifyChain(db)).toMatchObject({ ok: true, unsealed: { count: 0 } });
      }
    }, 240_000);
  },
  { prepare: async (db) => void (await migrate(db, [{ name: 'audit', migrations: auditMigrations }])), template: 'audit' },
);
