import { betterAuth as createAuth, type BetterAuthOptions as InstanceOptions } from 'better-auth';
import { type App, type AppOptions, createApp, type Module } from '../../src/app/index.ts';
import { accounts } from '../../src/contrib/accounts/index.ts';
import { apiKeys, ServiceUserController } from '../../src/contrib/apikeys/index.ts';
import { audit } from '../../src/contrib/audit/index.ts';
import { betterAuth } from '../../src/contrib/better-auth/index.ts';
import { objectActions, objectGrants } from '../../src/contrib/grants/index.ts';
import { job, jobs } from '../../src/contrib/jobs/index.ts';
import { mcp } from '../../src/contrib/mcp/index.ts';
import { requests } from '../../src/contrib/requests/index.ts';
import { TenantController, tenants } from '../../src/contrib/tenants/index.ts';
import { diskStore, UploadController, uploads } from '../../src/contrib/uploads/index.ts';
import { TenantWebhookController, webhooks } from '../../src/contrib/webhooks/index.ts';
import { CrudController, resource } from '../../src/crud/index.ts';
import { createTable, type Database, migration, model, t } from '../../src/db/index.ts';
import { jsonSchema } from '../../src/http/index.ts';
import { isAuthenticated } from '../../src/permissions/index.ts';
import { memoryStorage } from '../../src/throttle/index.ts';
import { instanceOptions } from '../better-auth/auth-app.ts';
import { LOOPBACK } from '../webhooks/outbox.ts';

export const WAYS = ['accounts', 'better-auth'] as const;
export type WayOfLogin = (typeof WAYS)[number];

const columns = { id: t.uuidv7().pk(), tenant_id: t.text(255).readOnly(), title: t.text(120) };
const indexes = [{ columns: ['tenant_id', '-id'] }];
export const notes = model('notes', columns, { indexes });
const noteLines = model('note_lines', { id: t.uuidv7().pk(), note_id: t.ref(() => notes, { onDelete: 'cascade' }), line: t.text(120) });
const noteActions = objectActions(notes, { actions: ['view'], tenant: 'tenant_id', subjects: ['tenant'] });
export class NoteController extends CrudController(resource(notes, { tenant: 'tenant_id', events: true }), {
  permission: isAuthenticated,
  live: true,
}) {}

export const work = job('whole.work', {
  input: jsonSchema<{ text: string }>({ type: 'object', properties: { text: { type: 'string' } } }),
  run: () => undefined,
});

/** An application with every module that has rows of tenants, over one of the two logins. `onBatch` is called before each batch of an erasure. */
export function wholeApp(
  db: Database,
  {
    way,
    folder,
    onBatch = () => {},
    more = [],
    ...options
  }: { readonly way: WayOfLogin; readonly folder: string; onBatch?: () => void; readonly more?: readonly Module[] } & Partial<AppOptions>,
): App {
  const people: Module[] =
    way === 'accounts'
      ? [accounts({ passwordCost: { logN: 4, r: 8, p: 1 } }), tenants({ create: isAuthenticated })]
      : [betterAuth(createAuth(instanceOptions(db) as InstanceOptions), { organization: [{ header: 'X-Tenant' }] })];
  const own: Module = {
    name: 'notes',
    models: [notes, noteLines],
    migrations: [
      migration('0001_initial', [
        createTable('notes', columns, { indexes }),
        createTable('note_lines', { ...noteLines.columns, note_id: t.ref('notes', { onDelete: 'cascade' }) }),
      ]),
    ],
    beforeErase: async () => onBatch(),
  };
  return createApp({
    database: db,
    modules: [
      ...people,
      apiKeys(),
      audit(),
      webhooks({ urlPolicy: LOOPBACK }),
      jobs({ jobs: [work] }),
      uploads({ store: diskStore({ folder }), cleanEverySeconds: 0 }),
      objectGrants({ objects: [noteActions], isInTenant: () => true }),
      requests(),
      mcp(),
      own,
      ...more,
    ],
    mount: {
      '/v1': {
        '/notes': NoteController,
        '/hooks': TenantWebhookController,
        '/uploads': UploadController,
        '/service-users': ServiceUserController,
        ...(way === 'accounts' ? { '/tenants': TenantController } : {}),
      },
    },
    throttleStorage: memoryStorage(),
    log: { level: 'silent' },
    ...options,
  });
}
