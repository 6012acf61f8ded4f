import { afterAll, beforeAll, expect, test } from 'vitest';
import { accounts, accountsOf, createUser } from '../../src/contrib/accounts/index.ts';
import type { FinishedRequest } from '../../src/contrib/requests/log/finished-request.ts';
import { requests } from '../../src/contrib/requests/index.ts';
import { writeRequests } from '../../src/contrib/requests/log/store.ts';
import { type CountedRequests, Tally } from '../../src/contrib/requests/log/tally.ts';
import { createTenant, tenants } from '../../src/contrib/tenants/index.ts';

import { eraseSubject } from '../../src/crud/subjects/erase-subject.ts';
import type { Db } from '../../src/db/index.ts';
import { openDatabase } from '../../src/db/index.ts';
import { requestErasure, setLegalHold } from '../../src/db/subjects/erasure-state.ts';
import { erasures } from '../../src/db/subjects/models.ts';
import type { Subject } from '../../src/db/subjects/subject.ts';
import { update } from '../../src/db/rows/repository.ts';
import { uuidv7 } from '../../src/db/values/uuidv7.ts';
import { isAuthenticated } from '../../src/permissions/index.ts';
import { describeDatabases } from '../../src/testing/index.ts';
import { testApp, type TestApp } from '../../src/testing/test-app.ts';

describeDatabases('requests that waited in memory while their person or tenant was erased', (database) => {
  let kit: TestApp;
  beforeAll(async () => {
    kit = await testApp({
      database: database.db,
      modules: [accounts({ passwordCost: { logN: 4, r: 8, p: 1 } }), requests(), tenants({ create: isAuthenticated })],
      mount: {},
    });
  });
  afterAll(() => kit?.close());
  let number = 0;
  const person = async () => {
    const { id } = await createUser(
      kit.app.db,
      { username: `user${(number += 1)}`, password: 'correct horse battery' },
      accountsOf(kit.app.db).management('test'),
    );
    return { kind: 'person', id } as const;
  };
  const tenant = async () => {
    const owner = await person();
    const { id } = await createTenant(kit.app.db, { name: 'Studio', slug: `studio-${(number += 1)}`, owner: owner.id });
    return { subject: { kind: 'tenant', id } as const, owner };
  };
  const finished = (of: { owner?: string; tenant?: string }, finishedAt = new Date()): FinishedRequest => ({
    id: uuidv7(kit.app.db.clock),
    finishedAt,
    durationMs: 1,
    method: 'GET',
    route: '/v1/orders',
    path: '/v1/orders',
    status: 200,
    failed: false,
    aborted: false,
    errorCode: null,
    owner: '',
    tenant: '',
    scheme: 'session',
    keyId: null,
    requestId: null,
    version: null,
    deprecated: false,
    via: 'http',
    ...of,
  });
  const counted = (rows: readonly FinishedRequest[]): readonly CountedRequests[] => {
    const tally = new Tally(100);
    for (const row of rows) tally.add(row, row.finishedAt.toISOString().slice(0, 10));
    return tally.take();
  };
  const write = (db: Db, rows: readonly FinishedRequest[]) => writeRequests(db, rows, counted(rows));
  const ask = (subject: Subject) =>
    kit.app.db.transaction((tx) => requestErasure(tx, subject, { dueAt: kit.app.db.clock.now(), by: 'test' }));
  const erase = async (subject: Subject) => eraseSubject(kit.app, (await ask(subject)).id);
  const rowsOf = async ({ kind, id }: Subject) => {
    const column = kind === 'person' ? 'owner_id' : 'tenant_key';
    const count = async (table: string) => (await kit.app.db.query(`select id from ${table} where ${column} = $1`, [id])).length;
    return [await count('request_log'), await count('request_usage')];
  };

  test('a batch after the erasure has no row of them, and counts of a person are those of nobody', async () => {
    const [ada, bob, { subject: north }, { subject: south }] = [await person(), await person(), await tenant(), await tenant()];
    const rows = [finished({ owner: ada.id }), finished({ owner: bob.id }), finished({ tenant: north.id }), finished({ tenant: south.id })];
    expect([await erase(ada), await erase(north)]).toEqual(['finished', 'finished']);
    await write(kit.app.db, rows);
    expect([await rowsOf(ada), await rowsOf(north)]).toEqual([
      [0, 0],
      [0, 0],
    ]);
    expect([await rowsOf(bob), await rowsOf(south)]).toEqual([
      [1, 1],
      [1, 1],
    ]);
    expect(await kit.app.db.query(`select requests from request_usage where owner_id = '' and tenant_key = ''`)).toHaveLength(1);
  });

  test('somebody with the same id who comes back later has a log again', async () => {
    const ada = await person();
    expect(await erase(ada)).toBe('finished');
    await write(kit.app.db, [finished({ owner: ada.id }, new Date(Date.now() + 3_600_000))]);
    expect(await rowsOf(ada)).toEqual([1, 1]);
  });

  test('a batch while the erasure runs has no row of them, unless a legal hold stops it', async () => {
    const ada = await person();
    const { id } = await ask(ada);
    await update(kit.app.db, erasures, id, { state: 'running' });
    await write(kit.app.db, [finished({ owner: ada.id })]);
    expect(await rowsOf(ada)).toEqual([0, 0]);
    await kit.app.db.transaction((tx) => setLegalHold(tx, ada, { reason: 'case 7', by: null }));
    await write(kit.app.db, [finished({ owner: ada.id })]);
    // The count of the day is nobody's already.
    expect(await rowsOf(ada)).toEqual([1, 0]);
  });

  test.runIf(database.dialect === 'postgres')('an erasure waits for a batch that was being written when it began', async () => {
    const [ada, cyd, { subject: north }] = [await person(), await person(), await tenant()];
    await write(kit.app.db, [finished({ owner: cyd.id })]);
    const [writer, locker] = [await openDatabase(database.url), await openDatabase(database.url)];
    const locked = Promise.withResolvers<undefined>();
    const release = Promise.withResolvers<undefined>();
    try {
      // The batch has asked who is erased and written the rows of its log, and waits for the count of another person.
      const holding = locker.transaction(async (tx) => {
        await tx.query('select id from request_usage where owner_id = $1 for update', [cyd.id]);
        locked.resolve(undefined);
        await release.promise;
      });
      await locked.promise;
      const writing = writeRequests(
        writer,
        [finished({ owner: ada.id }), finished({ tenant: north.id })],
        counted([finished({ owner: cyd.id })]),
      );
      await expect
        .poll(() =>
          kit.app.db.query(`select 1 as found from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`),
        )
        .toHaveLength(1);
      const erasing = [erase(ada), erase(north)];
      // They would have ended by now.
      const both = Promise.all(erasing);
      await expect
        .poll(() => kit.app.db.query(`select id from kit_erasures where state <> 'waiting' and subject_id in ($1, $2)`, [ada.id, north.id]))
        .toHaveLength(2);
      await Promise.race([both, kit.app.db.query('select pg_sleep(0.5)')]);
      release.resolve(undefined);
      await Promise.all([holding, writing]);
      expect(await both).toEqual(['finished', 'finished']);
      expect([await rowsOf(ada), await rowsOf(north)]).toEqual([
        [0, 0],
        [0, 0],
      ]);
    } finally {
      release.resolve(undefined);
      await writer.close();
      await locker.close();
    }
  });
});
