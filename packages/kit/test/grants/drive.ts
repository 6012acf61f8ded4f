import type { AuditEntry } from '../../src/auth/request/audit-sink.ts';
import type { Authenticator } from '../../src/auth/request/authenticator.ts';
import type { User } from '../../src/auth/people/principal.ts';
import type { EventEntry } from '../../src/app/declare/registry.ts';
import type { Module } from '../../src/app/declare/module.ts';
import { accounts, addGroupMember, createGroup, createUser } from '../../src/contrib/accounts/index.ts';
import { accountsOf } from '../../src/contrib/accounts/users/accounts.ts';
import { grants, objectActions, objectGrants, sharing } from '../../src/contrib/grants/index.ts';
import { count, CrudController, many, one, resource, sum } from '../../src/crud/index.ts';
import type { ReferenceTarget } from '../../src/db/declare/column.ts';
import { createTable, insert, migration, model, softDelete, softDeleteUnique, t, versioned } from '../../src/db/index.ts';
import { all, allowAny, hasScopes, isAuthenticated } from '../../src/permissions/index.ts';
import { fakeClock } from '../../src/testing/fake-clock.ts';
import { testApp, type TestApp, type TestAppOptions } from '../../src/testing/test-app.ts';

/** A drive: documents in folders, folders in folders, comments on documents. Folders have no owner, documents have. */
export const folders = model('folders', {
  id: t.uuidv7().pk(),
  org: t.text(20).readOnly(),
  name: t.text(100),
  parent_id: t.ref((): ReferenceTarget => folders).nullable(),
});

const docIndexes = [{ columns: ['org', 'owner_id', '-id'] }, { columns: ['folder_id', '-id'] }, softDeleteUnique('org', 'code')];
export const docs = model(
  'docs',
  {
    id: t.uuidv7().pk(),
    org: t.text(20).readOnly(),
    owner_id: t.uuid().readOnly(),
    folder_id: t.ref(() => folders).nullable(),
    title: t.text(100),
    code: t.text(60).nullable(),
    size: t.int().dbDefault(0),
    status: t.enum(['draft', 'sent', 'filed']).dbDefault('draft'),
    ...versioned(),
    ...softDelete(),
  },
  { indexes: docIndexes },
);

export const comments = model('comments', {
  id: t.uuidv7().pk(),
  doc_id: t.ref(() => docs, { onDelete: 'cascade' }),
  text: t.text(100),
});

export const folderActions = objectActions(folders, {
  actions: ['view', 'change', 'delete', 'share'],
  sets: { viewer: ['view'], editor: ['viewer', 'change'], manager: ['editor', 'delete', 'share'] },
  through: 'parent_id',
  creator: 'manager',
});

export const docActions = objectActions(docs, {
  actions: ['view', 'change', 'delete', 'share', 'send'],
  sets: { viewer: ['view'], editor: ['viewer', 'change'], sender: ['viewer', 'send'], manager: ['editor', 'delete', 'share'] },
  through: 'folder_id',
  subjects: ['tenant', 'authenticated', 'public'],
});

export const folderResource = resource(folders, {
  tenant: 'org',
  access: grants(folders),
  relations: { docs: many(() => docs, 'folder_id', { limit: 5 }) },
  nested: { docs: { input: ['title'] } },
});
export const docResource = resource(docs, {
  tenant: 'org',
  owner: 'owner_id',
  version: 'version',
  access: grants(docs, { operations: { file: 'change' } }),
  admin: { rows: true },
  input: ['folder_id', 'title', 'code', 'size'],
  nested: { comments: { input: ['text'] } },
  relations: { folder: one(() => folders, 'folder_id'), comments: many(() => comments, 'doc_id', { limit: 5 }) },
  state: 'status',
  transitions: { send: { from: ['draft'], to: 'sent' }, file: { from: ['draft', 'sent'], to: 'filed' } },
});
export const commentResource = resource(comments, {
  rows: () => ({ doc: { is: {} } }),
  relations: { doc: one(() => docs, 'doc_id') },
});

class Folders extends CrudController(folderResource, {
  permission: all(isAuthenticated, hasScopes({ allowUnscoped: true })),
  scope: 'folders',
}) {}
class Docs extends CrudController(docResource, {
  permission: allowAny,
  filters: { title: ['eq', 'contains'], size: ['gte', 'lte'], 'folder.name': ['eq'] },
  search: ['title'],
  ordering: { by: ['title', 'size'] },
  expand: ['folder', 'comments'],
  export: ['jsonl'],
  import: { formats: ['jsonl'], by: 'code' },
  bulk: { create: true, update: true, destroy: true },
  restore: true,
  stats: { by: ['title'], metrics: { rows: count(), size: sum('size') } },
  meta: true,
}) {}
class Comments extends CrudController(commentResource, { permission: isAuthenticated, expand: ['doc'] }) {}
export class FolderController extends sharing(Folders) {}
export class DocController extends sharing(Docs) {}
export class CommentController extends Comments {}

export const driveTables: Module = {
  name: 'drive',
  models: [folders, docs, comments],
  migrations: [
    migration('0001_initial', [
      createTable('folders', { ...folders.columns, parent_id: t.ref('folders').nullable() }),
      createTable('docs', { ...docs.columns, folder_id: t.ref('folders').nullable() }, { indexes: docIndexes }),
      createTable('comments', { ...comments.columns, doc_id: t.ref('docs', { onDelete: 'cascade' }) }),
    ]),
  ],
};

export interface Called {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at whatever the server answered
  readonly body: any;
  readonly text: string;
  readonly headers: Readonly<Record<string, unknown>>;
}

interface DocValues {
  readonly owner?: string;
  readonly folder?: string | null;
  readonly org?: string;
  readonly size?: number;
  readonly code?: string;
}

export interface Drive extends TestApp {
  readonly clock: ReturnType<typeof fakeClock>;
  readonly users: ReadonlyMap<string, User>;
  readonly audited: AuditEntry[];
  readonly events: EventEntry[];
  readonly user: (name: string) => User;
  readonly group: (name: string, ...members: readonly string[]) => Promise<string>;
  readonly folder: (name: string, parent?: string | null) => Promise<string>;
  readonly doc: (title: string, values?: DocValues) => Promise<string>;
  /** A request of a user; null is anonymous. */
  readonly ask: (
    person: string | null,
    method: string,
    url: string,
    payload?: unknown,
    headers?: Readonly<Record<string, string>>,
  ) => Promise<Called>;
}

export const PEOPLE = ['ann', 'bob', 'cid', 'dan', 'eve'] as const;

/** `extra`: modules besides the drive's; one that is called like a module of the drive takes its place. */
export type DriveOptions = Partial<TestAppOptions> & { readonly extra?: readonly Module[] };

/** `ann`, `bob`, `cid`, `dan` and `eve` are of the tenant `north`, `sue` of `south`, `root` is a superuser, `ida` is deactivated. */
export async function startDrive({ extra = [], ...options }: DriveOptions = {}): Promise<Drive> {
  const clock = fakeClock();
  const users = new Map<string, User>();
  const audited: AuditEntry[] = [];
  const events: EventEntry[] = [];
  const tenantOf = (name: string) => (name === 'sue' ? 'south' : 'north');
  const byName: Authenticator = {
    name: 'name',
    securityScheme: { type: 'http', scheme: 'name' },
    authenticate({ headers: { 'x-user': name, 'x-scopes': scopes } }) {
      const user = typeof name === 'string' ? users.get(name) : undefined;
      if (user === undefined) return null;
      // A directory of another kind may let a deactivated user through: grants must not.
      return {
        user,
        scheme: typeof scopes === 'string' ? 'api_key' : 'name',
        scopes: typeof scopes === 'string' ? scopes.split(' ') : null,
      };
    },
  };
  const recorder: Module = {
    name: 'recorder',
    provides: () => ({
      audit: { record: async (_tx, entries) => void audited.push(...entries) },
      events: { publish: async (_tx, entries) => void events.push(...entries) },
    }),
  };
  const modules: Module[] = [
    accounts({ passwordCost: { logN: 4, r: 8, p: 1 } }),
    objectGrants({
      objects: [folderActions, docActions],
      isInTenant: (_db, { username }, key) => tenantOf(username) === key || username === 'root',
    }),
    recorder,
    driveTables,
  ];
  const started = await testApp({
    clock,
    authenticators: [byName],
    tenant: ({ user }) => (user === null ? 'north' : tenantOf(user.username)),
    mount: { '/v1': { '/folders': FolderController, '/docs': DocController, '/comments': CommentController } },
    modules: [...modules.filter(({ name }) => extra.every((each) => each.name !== name)), ...extra],
    ...options,
  });
  const { app } = started;
  const { db } = app;
  for (const username of [...PEOPLE, 'sue', 'root', 'ida']) {
    const {
      password_hash: _hash,
      created_at: _created,
      updated_at: _updated,
      ...user
    } = await createUser(db, { username, is_superuser: username === 'root' }, accountsOf(db).management(null));
    users.set(username, username === 'ida' ? { ...user, is_active: false } : user);
  }
  audited.length = 0;
  const user = (name: string): User => users.get(name) as User;
  return {
    ...started,
    clock,
    users,
    audited,
    events,
    user,
    group: async (name, ...members) => {
      const { id } = await createGroup(db, { name, tenantKey: null });
      for (const member of members) await addGroupMember(db, id, user(member).id);
      return id;
    },
    folder: async (name, parent = null) => (await insert(db, folders, { name, org: 'north', parent_id: parent })).id,
    doc: async (title, { owner = 'ann', folder = null, org = 'north', size = 0, code } = {}) =>
      (await insert(db, docs, { title, org, owner_id: user(owner).id, folder_id: folder, size, ...(code === undefined ? {} : { code }) }))
        .id,
    ask: async (person, method, url, payload, headers = {}) => {
      const response = await started.inject({
        method: method as 'GET',
        url: `/v1/${url}`,
        headers: { ...(person === null ? {} : { 'x-user': person }), ...headers },
        ...(payload === undefined ? {} : { payload: payload as object }),
      });
      const text = response.body;
      const isJson = /^application\/(problem\+)?json/.test(String(response.headers['content-type']));
      return { status: response.statusCode, body: text === '' || !isJson ? undefined : JSON.parse(text), text, headers: response.headers };
    },
  };
}
