import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import type { User } from '../../src/auth/index.ts';
import { modulesIn } from '../../src/app/data/migration-modules.ts';
import { accounts, accountsOf, createUser, logIn, users } from '../../src/contrib/accounts/index.ts';
import { apiKeys, createApiKey, verifyApiKey } from '../../src/contrib/apikeys/index.ts';
import { audit } from '../../src/contrib/audit/index.ts';
import { grant, objectActions, objectGrants } from '../../src/contrib/grants/index.ts';
import { job, jobs, startJob } from '../../src/contrib/jobs/index.ts';
import { requests } from '../../src/contrib/requests/index.ts';
import { requestLogs } from '../../src/contrib/requests/log/log.ts';
import { tenants } from '../../src/contrib/tenants/index.ts';
import { diskStore, uploads } from '../../src/contrib/uploads/index.ts';
import { insertUpload } from '../../src/contrib/uploads/rows/store.ts';
import { createEndpoint, publish, webhooks } from '../../src/contrib/webhooks/index.ts';
import { CrudController, resource, visibleTo } from '../../src/crud/index.ts';
import { eraseSubject } from '../../src/crud/subjects/erase-subject.ts';
import { exportSubject } from '../../src/crud/subjects/export-subject.ts';
import { personalWarnings } from '../../src/crud/subjects/personal-warnings.ts';
import { subjectPlans } from '../../src/crud/subjects/subject-plans.ts';
import { createTable, insert, list, migration, model, t } from '../../src/db/index.ts';
import { findErasure, requestErasure, setLegalHold } from '../../src/db/subjects/erasure-state.ts';
import { isAuthenticated } from '../../src/permissions/index.ts';
import { describeDatabases, fakeClock } from '../../src/testing/index.ts';
import { testApp, type TestApp } from '../../src/testing/test-app.ts';
import { LOOPBACK } from '../webhooks/outbox.ts';
import { unzip } from './unzip.ts';

const papers = model('papers', {
  id: t.uuidv7().pk(),
  owner_id: t.ref(() => users).person(),
  title: t.text().personal(),
});
const bills = model('bills', {
  id: t.uuidv7().pk(),
  owner_id: t.text(64).readOnly().person({ erase: 'anonymise', erased: 'erased' }),
  address: t.text().nullable().personal(),
  iban: t.text(60).nullable().encrypted({ search: 'equality' }).personal(),
  total: t.int(),
});
const paperActions = objectActions(papers, { actions: ['view', 'change', 'share'], sets: { viewer: ['view'] }, owner: 'owner_id' });
const billResource = resource(bills, {
  owner: 'owner_id',
  audit: true,
  fields: { iban: visibleTo(isAuthenticated) },
  // For others than the person whom the bill is about.
  events: ({ after }) => ({
    type: 'bill.changed',
    data: { address: (after as { address: string } | null)?.address },
    audience: { broadcast: true },
  }),
});
class BillController extends CrudController(billResource, { permission: isAuthenticated, live: true, idempotency: 'optional' }) {}
const mail = job('mail', { input: z.object({ to: z.string() }), run: () => Promise.resolve() });
const shop = {
  name: 'shop',
  requires: ['accounts'],
  models: [papers, bills],
  migrations: [
    migration('0001_initial', [
      createTable('papers', { ...papers.columns, owner_id: t.ref('users') }),
      createTable('bills', bills.columns),
    ]),
  ],
};

describeDatabases("a person's data", (database) => {
  const clock = fakeClock();
  let kit: TestApp;
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'kit-person-'));
    kit = await testApp({
      database: database.db,
      clock,
      modules: [
        accounts({ passwordCost: { logN: 4, r: 8, p: 1 } }),
        apiKeys(),
        audit(),
        jobs(),
        requests(),
        webhooks({ urlPolicy: LOOPBACK }),
        uploads({ store: diskStore({ folder }) }),
        tenants({ create: isAuthenticated }),
        objectGrants({ objects: [paperActions] }),
        { ...shop, jobs: [mail] },
      ],
      mount: { '/v1': { '/bills': BillController } },
    });
  });
  afterAll(async () => {
    await kit?.close();
    await rm(folder, { recursive: true, force: true });
  });

  const management = () => accountsOf(kit.app.db).management('test');
  async function person(name: string, number = name === 'ada' ? 0 : 1): Promise<User & { readonly key: string }> {
    const { db } = kit.app;
    const user = await createUser(db, { username: name, email: `${name}@marker.example`, password: 'correct horse battery' }, management());
    await logIn(db, { login: name, password: 'correct horse battery', previousToken: null }, accountsOf(db).settings, clock);
    const { raw } = await createApiKey(db, { user, name: `key of ${name}`, scopes: ['*'] });
    await createEndpoint(db, { owner: user.id, url: `https://${name}.example.com/hook`, events: ['*'] });
    await db.transaction((tx) => publish(tx, 'paper.written', { by: `${name}@marker.example` }, { owner: user.id }));
    const paper = await insert(db, papers, { owner_id: user.id, title: `paper of ${name}@marker.example` });
    await grant(db, { subject: `user:${user.id}`, set: 'viewer', object: { type: papers, id: paper.id } });
    // A kept response, an audit entry, a prior value in the change log, a ciphertext with its search value, and a row of the request log.
    const payload = { address: `${name}@marker.example`, iban: `iban of ${name}@marker.example`, total: 7 };
    const headers = { 'idempotency-key': `key-of-${name}` };
    const created = await kit.as(user).inject({ method: 'POST', url: '/v1/bills', headers, payload });
    expect([created.statusCode, created.body]).toEqual([201, created.body]);
    const { id: billId } = JSON.parse(created.body) as { id: string };
    const changed = await kit
      .as(user)
      .inject({ method: 'PATCH', url: `/v1/bills/${billId}`, payload: { address: `new ${name}@marker.example` } });
    expect(changed.statusCode).toBe(200);
    await db.transaction((tx) => startJob(tx, mail, { to: `${name}@marker.example` }, { owner: user.id }));
    const now = clock.now();
    const id = `0192aaaa-0000-7000-8000-${String(number).repeat(12)}`;
    await db.transaction((tx) =>
      insertUpload(tx, {
        id,
        owner_id: user.id,
        tenant_key: '',
        state: 'complete',
        filename: `../${name}@marker.example.txt`,
        content_type: 'text/plain',
        size: 5n,
        checksum_sha256: null,
        pending_key: `pending/${name}`,
        final_key: `final/${name}`,
        etag: 'x',
        version_id: null,
        multipart_id: null,
        part_size: null,
        received_at: null,
        reason: null,
        created_at: now,
        expires_at: now,
        complete_by: now,
        completed_at: now,
        scan_due_at: null,
        scan_attempts: 0,
      } as never),
    );
    return { ...user, key: raw };
  }
  /** Everything that the tables contain, as text. */
  async function content(): Promise<string> {
    const tables = modulesIn(kit.app, 'default').flatMap(({ models = [] }) => models.map(({ name }) => name));
    const rows = await Promise.all([...new Set(tables)].map(async (name) => [name, await kit.app.db.query(`select * from "${name}"`)]));
    return rows
      .map(([name, found]) => JSON.stringify([name, found], (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value)))
      .join('\n');
  }

  test('every table of the toolkit belongs to somebody, or is known to belong to nobody', () => {
    const [{ plan, without } = { plan: { faults: ['none'] }, without: [] }] = subjectPlans(kit.app, 'person');
    expect(plan.faults).toEqual([]);
    expect(without.toSorted((a, b) => (a < b ? -1 : 1))).toEqual([
      'audit_chain',
      'audit_entries',
      'audit_inbox',
      'groups',
      'job_schedules',
      'tenants',
      'webhook_counters',
    ]);
    expect(personalWarnings(kit.app)).toEqual([]);
    const tenantPlan = subjectPlans(kit.app, 'tenant')[0];
    expect(tenantPlan?.plan.faults).toEqual([]);
    expect(tenantPlan?.plan.tables.map((table) => table.model.name)).toEqual(
      expect.arrayContaining([
        'tenants',
        'tenant_members',
        'tenant_invitations',
        'api_keys',
        'api_key_usage',
        'jobs',
        'job_steps',
        'webhook_deliveries',
        'webhook_attempts',
        'uploads',
        'request_log',
        'grants',
        'groups',
        'group_members',
        'audit_entries',
      ]),
    );
  });

  test('is exported and erased in all modules, and another person keeps theirs', async () => {
    const [ada, bob] = [await person('ada'), await person('bob')];
    const { db } = kit.app;
    await requestLogs.of(db).flush();
    const subject = { kind: 'person', id: ada.id } as const;
    const archive: Uint8Array[] = [];
    const store = kit.app.modules.find(({ name }) => name === 'uploads');
    expect(
      await store?.filesOfRow?.(kit.app, (store.models ?? [])[0] as never, {
        id: 'u',
        filename: 'a.txt',
        final_key: 'k',
        state: 'complete',
      }),
    ).toMatchObject([{ name: 'uploads/u/a.txt' }]);
    await db.query(`update uploads set state = 'rejected'`);
    for await (const piece of exportSubject(kit.app, subject)) archive.push(piece);
    const entries = unzip(Buffer.concat(archive));
    const manifest = JSON.parse(entries.get('manifest.json') ?? '') as { tables: { table: string; rows: number }[] };
    const rows = Object.fromEntries(manifest.tables.filter((each) => each.rows > 0).map((each) => [each.table, each.rows]));
    expect(rows).toMatchObject({
      users: 1,
      sessions: 1,
      api_keys: 1,
      webhook_endpoints: 1,
      papers: 1,
      bills: 1,
      jobs: 1,
      uploads: 1,
      grants: 1,
    });
    const text = [...entries.values()].join('\n');
    expect(text).toContain('ada@marker.example');
    expect(text).not.toContain('bob@marker.example');
    expect(text).not.toMatch(/password_hash|token_digest|"secret"|"digest"/);

    // Readable in the export only.
    expect(entries.get('bills.jsonl')).toContain('iban of ada@marker.example');
    const stored = await content();
    expect(stored).not.toContain('iban of ada@marker.example');
    for (const table of ['kit_idempotency', 'kit_changes', 'audit_', 'webhook_events', 'jobs'])
      expect(
        stored
          .split('\n')
          .some((line) => line.startsWith(`["${table}`) && line.includes(table === 'kit_idempotency' ? ada.id : 'ada@marker.example')),
      ).toBe(true);
    const broadcast = () =>
      db.query<{ data: string }>(`select data from webhook_events where audience = 'broadcast' and ordering_key like 'bill%' order by id`);
    expect((await broadcast()).length).toBe(4);
    const [secret] = await db.query<{ iban: string; iban_search: string }>('select iban, iban_search from bills where owner_id = $1', [
      ada.id,
    ]);
    const others = stored.split('bob@marker.example').length;
    const { id } = await db.transaction((tx) => requestErasure(tx, subject, { dueAt: clock.now(), by: 'test' }));
    // The log has their last requests in memory while they are erased.
    for (const user of [ada, bob]) await kit.as(user).inject({ url: '/v1/bills?limit=1' });
    expect(await eraseSubject(kit.app, id)).toBe('finished');
    await requestLogs.of(db).flush();
    const left = await content();
    expect(left).not.toContain('ada@marker.example');
    expect(left).not.toContain(secret?.iban);
    expect(left).not.toContain(secret?.iban_search);
    expect(left.split('bob@marker.example').length).toBe(others);
    expect((await broadcast()).map(({ data }) => data)).toEqual([
      expect.stringContaining('bob@marker') as string,
      expect.stringContaining('new bob@marker') as string,
    ]);
    const mentions = left
      .split('\n')
      .filter((line) => line.includes(ada.id))
      .map((line) => (JSON.parse(line) as [string])[0]);
    // Of the audit log the id is left; entries that are not sealed yet are in the inbox.
    const places = new Set(mentions.map((name) => (name === 'audit_inbox' ? 'audit_entries' : name)));
    expect([...places].toSorted()).toEqual(['audit_entries', 'kit_deleted_users', 'kit_erasures']);
    expect(await verifyApiKey(db, ada.key)).toBeNull();
    expect(await verifyApiKey(db, bob.key)).not.toBeNull();
    expect(await list(db, bills, { where: { owner_id: 'erased' } })).toMatchObject([{ address: null, total: 7 }]);
    expect((await db.query<{ key: string }>('select key from upload_removals')).map(({ key }) => key)).toContain('final/ada');
    expect((await findErasure(db, id))?.counts).toMatchObject({ users: { delete: 1 }, papers: { delete: 1 }, bills: { anonymise: 1 } });
  });

  test('an event about erased rows stays where it was for somebody who is held', async () => {
    const [cyd, dan] = [await person('cyd', 2), await person('dan', 3)];
    const { db } = kit.app;
    const [bill] = await list(db, bills, { where: { owner_id: cyd.id } });
    const orderingKey = `bill:${bill?.id}`;
    await db.transaction((tx) => publish(tx, 'bill.seen', { who: 'cyd' }, { owner: dan.id, orderingKey }));
    await db.transaction((tx) => setLegalHold(tx, { kind: 'person', id: dan.id }, { reason: 'case 7', by: null }));
    const { id } = await db.transaction((tx) => requestErasure(tx, { kind: 'person', id: cyd.id }, { dueAt: clock.now(), by: 'test' }));
    expect(await eraseSubject(kit.app, id)).toBe('finished');
    expect(await db.query('select type, owner_id from webhook_events where ordering_key = $1', [orderingKey])).toEqual([
      { type: 'bill.seen', owner_id: dan.id },
    ]);
  });
});
