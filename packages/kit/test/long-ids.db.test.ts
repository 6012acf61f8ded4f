import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { createApp, type App } from '../src/app/index.ts';
import { migrateApp } from '../src/app/data/migration-modules.ts';
import type { Authenticator, User } from '../src/auth/index.ts';
import { apiKeys, ApiKeyController, createApiKey, verifyApiKey } from '../src/contrib/apikeys/index.ts';
import { audit } from '../src/contrib/audit/index.ts';
import { actionsOf, grant, objectActions, objectGrants } from '../src/contrib/grants/index.ts';
import { findJob, job, jobs, startJob } from '../src/contrib/jobs/index.ts';
import { diskStore, UploadController, uploads } from '../src/contrib/uploads/index.ts';
import { createEndpoint, WebhookEndpointController, webhooks } from '../src/contrib/webhooks/index.ts';
import { createTable, insert, migration, model, t } from '../src/db/index.ts';
import { describeDatabases } from '../src/testing/databases.ts';
import { memoryStorage } from '../src/throttle/index.ts';
import { auditLog } from './audit-log.ts';
import { people } from './people.ts';

const papers = model('papers', { id: t.text(255).pk() });
const paperActions = objectActions(papers, { actions: ['view'], sets: { viewer: ['view'] } });
const papersModule = { name: 'papers', models: [papers], migrations: [migration('0001_initial', [createTable('papers', papers.columns)])] };
const idle = job('idle', { input: z.object({}), run: async () => undefined });
/** Identity providers may use as many (OpenID Connect, `sub`); an é has one character and two bytes. */
const ID = `oidc|${'é'.repeat(125)}${'x'.repeat(125)}`;
const TENANT = 't'.repeat(255);
const ada: User = { id: ID, username: 'ada', email: null, is_active: true, is_staff: false, is_superuser: false };

const asAda: Authenticator = {
  name: 'ada',
  securityScheme: { type: 'http', scheme: 'ada' },
  authenticate: async () => ({ user: ada, scheme: 'session', scopes: null, credentialId: 'c'.repeat(255) }),
};

describeDatabases('ids of 255 characters', (database) => {
  let app: App;
  let folder = '';
  beforeAll(async () => {
    const { db } = database;
    folder = await mkdtemp(join(tmpdir(), 'kit-long-ids-'));
    await db.query(
      'create table people (person_no text primary key, handle text, mail text, enabled boolean not null, staff boolean not null, root boolean not null)',
    );
    await db.query('insert into people values ($1, $2, $3, $4, $5, $6)', [ID, 'ada', null, true, false, false]);
    app = createApp({
      database: db,
      log: { level: 'silent' },
      users: people,
      tenant: () => TENANT,
      authenticators: [asAda],
      throttleStorage: memoryStorage(),
      settings: { uploadUrlKeys: 'k'.repeat(64) },
      modules: [
        audit(),
        apiKeys(),
        webhooks(),
        jobs({ jobs: [idle] }),
        uploads({ store: diskStore({ folder }) }),
        objectGrants({ objects: [paperActions] }),
        papersModule,
      ],
      mount: { '/v1': { '/keys': ApiKeyController, '/hooks': WebhookEndpointController, '/uploads': UploadController } },
    });
    await app.openDatabases();
    await migrateApp(app);
    await app.ready();
  });
  afterAll(async () => {
    await app.close();
    await rm(folder, { recursive: true, force: true });
  });

  test('of users, tenants, credentials and records are stored by every module', async () => {
    const post = async (url: string, payload: object) => {
      const response = await app.inject({ method: 'POST', url, payload });
      return [response.statusCode, response.json().code];
    };
    expect(await post('/v1/keys', { name: 'CI', scopes: [] })).toEqual([201, undefined]);
    expect(await post('/v1/hooks', { url: 'https://example.com/hook', events: ['*'] })).toEqual([201, undefined]);
    expect(await post('/v1/uploads', { filename: 'a.txt', content_type: 'text/plain', size: 3 })).toEqual([201, undefined]);
    const { raw } = await createApiKey(app.db, { user: ada, name: 'CI', scopes: [] });
    expect((await verifyApiKey(app.db, raw))?.user.id).toBe(ID);
    await app.db.transaction((tx) => createEndpoint(tx, { owner: ID, tenantKey: TENANT, url: 'https://example.com/hook', events: ['*'] }));
    const { id } = await app.db.transaction((tx) => startJob(tx, idle, {}, { owner: ID, tenantKey: TENANT }));
    expect(await findJob(app.db, id)).toMatchObject({ owner_id: ID, tenant_key: TENANT });
    const paper = await insert(app.db, papers, { id: 'p'.repeat(255) });
    const object = { type: papers, id: paper.id };
    await grant(app.db, { subject: `user:${ID}`, set: 'viewer', object, by: ada });
    expect(await actionsOf(app.db, { user: ada, tenant: null }, object)).toEqual(new Set(['view']));
    const entries = await auditLog(app.db);
    expect(new Set(entries.filter(({ actor_scheme }) => actor_scheme === 'session').map(({ actor_id }) => actor_id))).toEqual(
      new Set([ID]),
    );
  });

  test('of an audit entry are cut when they are longer: the change does not fail for it', async () => {
    const long = 'n'.repeat(1000);
    const actor = { user: { ...ada, id: long, username: long }, scheme: long, scopes: null, credentialId: long };
    await app.registry.audit?.record(app.db, [{ actor, action: long, target_type: long, target_id: long, request_id: long }]);
    expect((await auditLog(app.db)).at(-1)).toMatchObject({
      actor_id: long.slice(0, 255),
      actor_name: long.slice(0, 255),
      actor_scheme: long.slice(0, 64),
      credential_id: long.slice(0, 255),
      action: long.slice(0, 100),
      target_type: long.slice(0, 100),
      target_id: long.slice(0, 255),
      request_id: long.slice(0, 200),
    });
  });
});
