import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { accounts, accountsOf, createUser } from '../../src/contrib/accounts/index.ts';
import { apiKeys, createApiKey } from '../../src/contrib/apikeys/index.ts';
import { addUsage, deleteUsageBefore } from '../../src/contrib/apikeys/rows/usage-store.ts';
import { audit } from '../../src/contrib/audit/index.ts';
import { pruneAudit } from '../../src/contrib/audit/chain/prune.ts';
import { sealEntries } from '../../src/contrib/audit/chain/seal.ts';
import { job, jobs, startJob } from '../../src/contrib/jobs/index.ts';
import { pruneJobs } from '../../src/contrib/jobs/running/prune.ts';
import { requests } from '../../src/contrib/requests/index.ts';
import { removeOld } from '../../src/contrib/requests/log/store.ts';
import { createEndpoint, publish, webhooks } from '../../src/contrib/webhooks/index.ts';
import { prune as pruneWebhooks } from '../../src/contrib/webhooks/delivery/prune.ts';
import { CrudController, many, resource } from '../../src/crud/index.ts';
import { heldOf } from '../../src/crud/subjects/held-tables.ts';
import { purgeDeleted, softDeletedModels } from '../../src/crud/write/purge.ts';
import { createTable, insert, migration, model, softDelete, t } from '../../src/db/index.ts';
import { releaseLegalHold, setLegalHold } from '../../src/db/subjects/erasure-state.ts';
import { uuidv7 } from '../../src/db/values/uuidv7.ts';
import { isAuthenticated } from '../../src/permissions/index.ts';
import { describeDatabases } from '../../src/testing/index.ts';
import { testApp, type TestApp } from '../../src/testing/test-app.ts';
import { LOOPBACK } from '../webhooks/outbox.ts';

const papers = model('papers', { id: t.uuidv7().pk(), owner_id: t.text(64).readOnly().person(), title: t.text(80), ...softDelete() });
const paperResource = resource(papers, { owner: 'owner_id', softDelete: true });
class Papers extends CrudController(paperResource, { permission: isAuthenticated }) {}
/** Books go with their shelf, and the database deletes marks with their book. */
const shelves = model('shelves', { id: t.uuidv7().pk(), owner_id: t.text(64).readOnly().person(), ...softDelete() });
const books = model('books', {
  id: t.uuidv7().pk(),
  shelf_id: t.ref(() => shelves),
  owner_id: t.text(64).readOnly().person(),
  ...softDelete(),
});
const marks = model('marks', { id: t.uuidv7().pk(), book_id: t.ref(() => books, { onDelete: 'cascade' }), owner_id: t.text(64).person() });
const bookResource = resource(books, { owner: 'owner_id', softDelete: true });
const shelfResource = resource(shelves, {
  owner: 'owner_id',
  relations: { books: many(() => books, 'shelf_id') },
  softDelete: { cascade: ['books'] },
});
class Shelves extends CrudController(shelfResource, { permission: isAuthenticated }) {}
class Books extends CrudController(bookResource, { permission: isAuthenticated }) {}
const mail = job('mail', { input: z.object({}), run: () => Promise.resolve() });
const shop = {
  name: 'shop',
  models: [papers, shelves, books, marks],
  jobs: [mail],
  migrations: [
    migration('0001_initial', [
      createTable('papers', papers.columns),
      createTable('shelves', shelves.columns),
      createTable('books', { ...books.columns, shelf_id: t.ref('shelves') }),
      createTable('marks', { ...marks.columns, book_id: t.ref('books', { onDelete: 'cascade' }) }),
    ]),
  ],
};
const LATER = new Date(Date.now() + 3650 * 86_400_000);

describeDatabases('what removes old rows leaves those of people under a legal hold', (database) => {
  let kit: TestApp;
  beforeAll(async () => {
    kit = await testApp({
      database: database.db,
      modules: [
        accounts({ passwordCost: { logN: 4, r: 8, p: 1 } }),
        apiKeys(),
        audit(),
        jobs(),
        requests(),
        webhooks({ urlPolicy: LOOPBACK }),
        shop,
      ],
      mount: { '/v1': { '/papers': Papers, '/shelves': Shelves, '/books': Books } },
    });
  });
  afterAll(() => kit?.close());

  test('in every module, until the hold is released', async () => {
    const { db } = kit.app;
    const fill = async (name: string) => {
      const user = await createUser(db, { username: name, password: 'correct horse battery' }, accountsOf(db).management('test'));
      const { apiKey } = await createApiKey(db, { user, name, scopes: ['*'] });
      await addUsage(db, [{ keyId: apiKey.id, hourMs: 3_600_000, requests: 1 }]);
      await createEndpoint(db, { owner: user.id, url: `https://${name}.example.com/hook`, events: ['*'] });
      await db.transaction((tx) => publish(tx, 'paper.written', { of: name }, { owner: user.id }));
      await db.transaction((tx) => startJob(tx, mail, {}, { owner: user.id }));
      const { statusCode, body } = await kit.as(user).inject({ method: 'POST', url: '/v1/papers', payload: { title: name } });
      expect([statusCode, body]).toEqual([201, body]);
      const paper = (JSON.parse(body) as { id: string }).id;
      expect((await kit.as(user).inject({ method: 'DELETE', url: `/v1/papers/${paper}` })).statusCode).toBe(204);
      await db.query(
        `insert into request_log (id, finished_at, duration_ms, method, failed, aborted, owner_id, tenant_key, request_id, deprecated, via)
         values ($1, $2, 1, 'GET', $3, $3, $4, '', 'by hand', $3, 'http')`,
        [uuidv7(db.clock), db.clock.now(), false, user.id],
      );
      return user;
    };
    // First: the audit chain ends before the first entry of somebody who is held.
    const bob = await fill('bob');
    const ada = await fill('ada');
    await db.query(`update jobs set status = 'succeeded', finished_at = $1`, [db.clock.now()]);
    await db.query(`update webhook_deliveries set status = 'succeeded', next_attempt_at = null`);
    await sealEntries(db, { wait: true });
    const ofTables = async () =>
      Promise.all(
        ['jobs', "request_log where request_id = 'by hand'", 'api_key_usage', 'webhook_events', 'webhook_deliveries', 'papers'].map(
          async (from) => [from, (await db.query(`select 1 as found from ${from}`)).length] as const,
        ),
      );
    const entriesOf = async (id: string) => (await db.query('select id from audit_entries where actor_id = $1', [id])).length;
    const all = await ofTables();
    // Of both as many.
    expect(all.filter(([, rows]) => rows === 0 || rows % 2 === 1)).toEqual([]);
    const pruneAll = async () => {
      await pruneJobs(db, LATER, 1000);
      await removeOld(db, LATER, LATER);
      await deleteUsageBefore(db, LATER);
      await pruneWebhooks(db, LATER, 1000);
      const policy = softDeletedModels(kit.app).get('papers');
      if (policy !== undefined) await purgeDeleted(db, policy, LATER, heldOf(kit.app, policy.using));
      const sink = kit.app.registry.audit;
      if (sink !== null && sink !== undefined) await pruneAudit(db, sink, { before: LATER });
    };
    expect(await entriesOf(ada.id)).toBeGreaterThan(0);

    await db.transaction((tx) => setLegalHold(tx, { kind: 'person', id: ada.id }, { reason: 'case 9', by: null }));
    const kept = await entriesOf(ada.id);
    await pruneAll();
    expect(await ofTables()).toEqual(all.map(([from, rows]) => [from, rows / 2]));
    expect([await entriesOf(bob.id), await entriesOf(ada.id)]).toEqual([0, kept]);

    await db.transaction((tx) => releaseLegalHold(tx, { kind: 'person', id: ada.id }));
    await pruneAll();
    expect(await ofTables()).toEqual(all.map(([from]) => [from, 0]));
    expect(await entriesOf(ada.id)).toBe(0);
  });

  test('a purge keeps what rows of others under a hold would go with, by cascades of resources and of the database', async () => {
    const { db } = kit.app;
    const deleted = { deleted_at: new Date(0), deletion_id: uuidv7(db.clock) };
    const tree = async (book: string, mark: string) => {
      const shelf = await insert(db, shelves, { owner_id: 'bob', ...deleted });
      const { id } = await insert(db, books, { shelf_id: shelf.id, owner_id: book, ...deleted });
      await insert(db, marks, { book_id: id, owner_id: mark });
    };
    // A book of eve, a mark of eve, and nothing of eve.
    await tree('eve', 'bob');
    await tree('bob', 'eve');
    await tree('bob', 'bob');
    const rows = async () =>
      Promise.all([shelves, books, marks].map(async ({ name }) => (await db.query(`select id from ${name}`)).length));
    const purge = async (name: string) => {
      const policy = softDeletedModels(kit.app).get(name);
      return policy === undefined ? undefined : purgeDeleted(db, policy, LATER, heldOf(kit.app, policy.using));
    };
    const eve = { kind: 'person', id: 'eve' } as const;
    await db.transaction((tx) => setLegalHold(tx, eve, { reason: 'case 9', by: null }));
    await purge('shelves');
    expect(await rows()).toEqual([2, 2, 2]);
    await purge('books');
    expect(await rows()).toEqual([2, 2, 2]);
    await db.transaction((tx) => releaseLegalHold(tx, eve));
    expect(await purge('shelves')).toEqual({ removed: 2, related: 2, kept: 0 });
    expect(await rows()).toEqual([0, 0, 0]);
  });
});
