import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { createTable, type Db, migration, model, t } from '../../db/index.ts';
import { CrudController, resource } from '../../crud/index.ts';
import { type ExportManifest, exportSubject } from '../../crud/subjects/export-subject.ts';
import { releaseLegalHold, setLegalHold } from '../../db/subjects/erasure-state.ts';
import { isAuthenticated } from '../../permissions/index.ts';
import { createApiKey } from '../apikeys/index.ts';
import { TenantWebhookController } from '../webhooks/index.ts';
import { verifyChain } from '../audit/chain/verify-chain.ts';
import { sealEntries } from '../audit/chain/seal.ts';
import { unzip } from '../../../test/personal/unzip.ts';
import { describeTenantApp } from '../../../test/tenants/tenant-app.ts';
import { inviteMember } from './manage/invitations.ts';
import { purgeTenants } from './manage/purge.ts';
import { deleteTenant, restoreTenant } from './manage/tenants.ts';

const notes = model('notes', { id: t.uuidv7().pk(), tenant_id: t.uuid().readOnly(), title: t.text(80) });
const noteLines = model('note_lines', { id: t.uuidv7().pk(), note_id: t.ref(() => notes, { onDelete: 'cascade' }), line: t.text(80) });
/** Of no tenant. */
const colors = model('colors', { id: t.int().pk(), name: t.text(40) });
const noteResource = resource(notes, { tenant: 'tenant_id', events: true });
const NoteController = CrudController(noteResource, { permission: isAuthenticated });
const DAY_MS = 24 * 3_600_000;

let count = 0;
const fresh = (name: string) => `${name}${(count += 1)}`;

/** Every row of every table that contains a text, as JSON. */
async function rowsWith(db: Db, text: string): Promise<readonly string[]> {
  const tables =
    db.dialect === 'sqlite'
      ? await db.query<{ name: string }>("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'")
      : await db.query<{ name: string }>('select table_name as name from information_schema.tables where table_schema = current_schema()');
  const found: string[] = [];
  for (const { name } of tables)
    for (const row of await db.query(`select * from "${name}"`)) {
      const shown = JSON.stringify(row, (_name, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
      if (shown.includes(text)) found.push(`${name} ${shown}`);
    }
  return found.toSorted();
}

describeTenantApp(
  'the end of a tenant',
  {},
  (app) => {
    const { call, person, tenantOf } = app;
    const db = () => app.kit.app.db;

    /** Data of a tenant in all modules of the app, each value with the mark. */
    const filled = async (mark: string) => {
      const owner = await person(fresh('owner'));
      const tenant = await tenantOf(owner, { name: `${mark} studio`, slug: fresh('studio') });
      const named = { 'x-tenant': tenant.slug };
      for (let index = 0; index < 3; index += 1) {
        const { status, body } = await call(owner, 'POST', '/notes', { title: `${mark} note ${index}` }, named);
        expect(status).toBe(201);
        await db().query('insert into note_lines (id, note_id, line) values ($1, $2, $3)', [crypto.randomUUID(), body.id, `${mark} line`]);
      }
      const key = { ...named, 'idempotency-key': fresh('key') };
      expect((await call(owner, 'POST', '/notes', { title: `${mark} once` }, key)).status).toBe(201);
      const hook = { url: `http://127.0.0.1:9/${mark}`, events: ['*'], description: mark };
      expect((await call(owner, 'POST', '/hooks', hook, named)).status).toBe(201);
      await createApiKey(db(), { user: owner, name: `${mark} key`, scopes: [], tenant: tenant.id });
      await inviteMember(db(), { tenant: tenant.id, email: `${mark}@example.com`, roles: ['member'], by: 'a test' });
      return { owner, ...tenant };
    };

    test('after the grace no row has a value of it, the other tenant is as it was, and the audit log is whole', async () => {
      const north = await filled('northmark');
      const south = await filled('southmark');
      await sealEntries(db(), { wait: true });
      const before = await rowsWith(db(), 'southmark');
      expect(before.length).toBeGreaterThan(10);
      await deleteTenant(db(), north.id, { by: 'a test' });
      expect(await purgeTenants(db())).toBe(0);
      expect((await rowsWith(db(), 'northmark')).length).toBeGreaterThan(10);
      app.clock.advance(31 * DAY_MS);
      expect(await purgeTenants(db(), { by: 'a test' })).toBe(1);
      expect(await rowsWith(db(), 'northmark')).toEqual([]);
      expect(await rowsWith(db(), 'southmark')).toEqual(before);
      await sealEntries(db(), { wait: true });
      const left = (await rowsWith(db(), north.id)).map((row) => row.slice(0, row.indexOf(' ')));
      // The proof, and entries without values.
      expect([...new Set(left)]).toEqual(['audit_entries', 'kit_erasures']);
      expect(await verifyChain(db())).toMatchObject({ ok: true });
      expect((await call(south.owner, 'GET', '/notes', undefined, { 'x-tenant': south.slug })).body.items).toHaveLength(4);
      expect(await purgeTenants(db()), 'a second time').toBe(0);
    });

    test('waits while a legal hold is set, and cannot be taken back once it has begun', async () => {
      const { id } = await filled('heldmark');
      await deleteTenant(db(), id, { by: 'a test' });
      await restoreTenant(db(), id, { by: 'a test' });
      await deleteTenant(db(), id, { by: 'a test' });
      const subject = { kind: 'tenant', id } as const;
      await db().transaction((tx) => setLegalHold(tx, subject, { reason: 'a lawsuit', by: 'a test' }));
      app.clock.advance(31 * DAY_MS);
      expect(await purgeTenants(db())).toBe(0);
      expect((await rowsWith(db(), 'heldmark')).length).toBeGreaterThan(10);
      await db().transaction((tx) => releaseLegalHold(tx, subject));
      expect(await purgeTenants(db())).toBe(1);
      expect(await rowsWith(db(), 'heldmark')).toEqual([]);
      await expect(restoreTenant(db(), id, { by: 'a test' })).rejects.toMatchObject({ code: 'tenant_not_found' });
    });

    test('an export has its rows, those below them, and nothing of another tenant or secret; its manifest counts, has checksums and names what is nobody’s', async () => {
      const east = await filled('eastmark');
      await filled('westmark');
      const chunks: Uint8Array[] = [];
      for await (const chunk of exportSubject(app.kit.app, { kind: 'tenant', id: east.id })) chunks.push(chunk);
      const files = unzip(Buffer.concat(chunks));
      const text = [...files].map(([name, content]) => `${name}\n${content}`).join('\n');
      for (const name of ['notes.jsonl', 'note_lines.jsonl', 'tenant_members.jsonl', 'api_keys.jsonl', 'manifest.json'])
        expect(text).toContain(name);
      expect(text).not.toContain('westmark');
      const secrets = await db().query<{ secret: string }>(
        'select digest as secret from api_keys union all select secret from webhook_endpoints union all select token_digest from tenant_invitations',
      );
      expect(secrets.length).toBeGreaterThan(5);
      for (const { secret } of secrets) expect(text).not.toContain(secret);
      const manifest = JSON.parse(files.get('manifest.json') ?? '') as ExportManifest;
      for (const { file, rows, sha256 } of manifest.tables) {
        const content = files.get(file) ?? '';
        expect([file, rows, sha256]).toEqual([file, content.split('\n').length - 1, createHash('sha256').update(content).digest('hex')]);
      }
      expect(manifest.tables.find(({ table }) => table === 'notes')?.rows).toBe(4);
      expect(manifest.tables_without).toContain('colors');
      expect(manifest.tables_without).not.toContain('notes');
    });
  },
  {
    modules: [
      {
        name: 'notes',
        models: [notes, noteLines, colors],
        resources: [noteResource],
        migrations: [
          migration('0001_initial', [
            createTable('notes', notes.columns),
            createTable('colors', colors.columns),
            createTable('note_lines', { ...noteLines.columns, note_id: t.ref('notes', { onDelete: 'cascade' }) }),
          ]),
        ],
      },
    ],
    mount: { '/v1': { '/notes': NoteController, '/hooks': TenantWebhookController } },
  },
);
