import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Called, type Drive, folders, startDrive } from '../../../test/grants/drive.ts';
import { insert } from '../../db/index.ts';
import { countQueries } from '../../db/engine/query-observer.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { grant } from './grant/grant.ts';
import { actionsOf } from './grant/holdings.ts';
import { docs } from '../../../test/grants/drive.ts';

/** The contract's table, written again: which action each operation needs. Null: there is no object yet. */
const NEEDED: Readonly<Record<string, string | null>> = {
  list: 'view',
  query: 'view',
  retrieve: 'view',
  export: 'view',
  stats: 'view',
  meta: 'view',
  transitions: 'view',
  create: null,
  import: null,
  bulkCreate: null,
  bulkUpdate: 'change',
  bulkDestroy: 'delete',
  restore: 'delete',
  update: 'change',
  partialUpdate: 'change',
  destroy: 'delete',
  send: 'send',
  file: 'change',
};

/** Writes that are part of another operation: rows below the object, and rows of a file that are there already. */
const NEEDED_WITHIN: Readonly<Record<string, string>> = { nested: 'change', importUpsert: 'change', bulkUpdateItems: 'change' };

interface Kind {
  readonly caller: string | null;
  /** Of the object. Default: `ann`. */
  readonly owner?: string;
  /** What the caller holds, besides the action asked for where `withAction`. */
  readonly holds: 'nothing' | 'view' | 'action' | 'both' | 'all';
  readonly arrange?: (drive: Drive, doc: string, folder: string, action: string) => Promise<unknown>;
}

const setWith: Readonly<Record<string, string>> = { view: 'viewer', change: 'editor', delete: 'manager', share: 'manager', send: 'sender' };
const on = (id: string) => ({ type: docs, id });

/** Every kind of caller. What each arranges is all it has. */
const KINDS: Readonly<Record<string, Kind>> = {
  nothing: { caller: 'bob', holds: 'nothing' },
  view: {
    caller: 'bob',
    holds: 'view',
    arrange: ({ app, user }, id) => grant(app.db, { subject: `user:${user('bob').id}`, action: 'view', object: on(id) }),
  },
  'the action without view': {
    caller: 'bob',
    holds: 'action',
    arrange: async ({ app, user }, id, _folder, action) =>
      action === 'view' || grant(app.db, { subject: `user:${user('bob').id}`, action, object: on(id) }),
  },
  'view and the action': {
    caller: 'bob',
    holds: 'both',
    arrange: ({ app, user }, id, _folder, action) =>
      grant(app.db, { subject: `user:${user('bob').id}`, actions: ['view', action], object: on(id) }),
  },
  'a set': {
    caller: 'bob',
    holds: 'both',
    arrange: ({ app, user }, id, _folder, action) =>
      grant(app.db, { subject: `user:${user('bob').id}`, set: setWith[action] as string, object: on(id) }),
  },
  'a group': {
    caller: 'bob',
    holds: 'both',
    arrange: async (drive, id, _folder, action) => {
      const group = await drive.group(`group of ${id}`, 'bob');
      await grant(drive.app.db, { subject: `group:${group}`, actions: ['view', action], object: on(id) });
    },
  },
  'view by a group, the action by oneself': {
    caller: 'bob',
    holds: 'both',
    arrange: async (drive, id, _folder, action) => {
      const group = await drive.group(`second group of ${id}`, 'bob');
      await grant(drive.app.db, { subject: `group:${group}`, action: 'view', object: on(id) });
      await grant(drive.app.db, { subject: `user:${drive.user('bob').id}`, action, object: on(id) });
    },
  },
  'a group of others': {
    caller: 'bob',
    holds: 'nothing',
    arrange: async (drive, id) => {
      const group = await drive.group(`other group of ${id}`, 'cid');
      await grant(drive.app.db, { subject: `group:${group}`, set: 'manager', object: on(id) });
    },
  },
  'inherited view': {
    caller: 'bob',
    holds: 'view',
    arrange: ({ app, user }, _id, folder) =>
      grant(app.db, { subject: `user:${user('bob').id}`, set: 'viewer', object: { type: folders, id: folder } }),
  },
  'inherited from the parent of the parent': {
    caller: 'bob',
    // A folder has no "send": what it does not have it cannot give.
    holds: 'all',
    arrange: async ({ app, user }, _id, folder) => {
      const [row] = await app.db.query<{ parent_id: string }>('select parent_id from folders where id = $1', [folder]);
      await grant(app.db, { subject: `user:${user('bob').id}`, set: 'manager', object: { type: folders, id: row?.parent_id as string } });
    },
  },
  expired: {
    caller: 'bob',
    holds: 'nothing',
    arrange: async ({ app, user, clock }, id) => {
      await grant(app.db, {
        subject: `user:${user('bob').id}`,
        set: 'manager',
        object: on(id),
        expiresAt: new Date(clock.now().getTime() + 1_000),
      });
      clock.advance(1_000);
    },
  },
  'everybody in the tenant': {
    caller: 'bob',
    holds: 'both',
    arrange: ({ app }, id, _folder, action) => grant(app.db, { subject: 'tenant', actions: ['view', action], object: on(id) }),
  },
  'every signed-in user': {
    caller: 'bob',
    holds: 'both',
    arrange: ({ app }, id, _folder, action) => grant(app.db, { subject: 'authenticated', actions: ['view', action], object: on(id) }),
  },
  'another tenant, with a grant to everybody signed in': {
    caller: 'sue',
    holds: 'nothing',
    arrange: ({ app }, id) => grant(app.db, { subject: 'authenticated', set: 'manager', object: on(id) }),
  },
  'anonymous, of a public object': {
    caller: null,
    holds: 'view',
    arrange: ({ app }, id) => grant(app.db, { subject: 'public', set: 'viewer', object: on(id) }),
  },
  'anonymous, of an object for signed-in users': {
    caller: null,
    holds: 'nothing',
    arrange: ({ app }, id) => grant(app.db, { subject: 'authenticated', set: 'manager', object: on(id) }),
  },
  'inherited, by a group': {
    caller: 'bob',
    holds: 'all',
    arrange: async (drive, id, folder) => {
      const group = await drive.group(`group above ${id}`, 'bob');
      await grant(drive.app.db, { subject: `group:${group}`, set: 'manager', object: { type: folders, id: folder } });
    },
  },
  'the owner': { caller: 'ann', holds: 'both' },
  'a deactivated owner': { caller: 'ida', owner: 'ida', holds: 'nothing' },
  'a superuser': { caller: 'root', holds: 'both' },
  'a deactivated user with a grant': {
    caller: 'ida',
    holds: 'nothing',
    arrange: ({ app, user }, id) => grant(app.db, { subject: `user:${user('ida').id}`, set: 'manager', object: on(id) }),
  },
};

const MISSING = '01890000-0000-7000-8000-000000000000';
const JSON_LINES = { 'content-type': 'application/x-ndjson' };
const textsOf = (queries: readonly { readonly sql: string }[]) => queries.map(({ sql }) => sql);
const LISTS = new Set(['list', 'query', 'export', 'stats']);
const CREATIONS = ['create', 'import', 'bulkCreate'] as const;

describeDatabases('every operation for every kind of caller', (database) => {
  let drive: Drive;
  let operations: readonly string[];
  let number = 0;
  beforeAll(async () => {
    drive = await startDrive({ database: database.db });
    const routes = drive.app.routes.filter(({ controller }) => controller === 'DocController');
    operations = [...new Set(routes.flatMap(({ metadata }) => (metadata['crud'] as { operation?: string } | undefined)?.operation ?? []))];
  });
  afterAll(() => drive.close());

  type Call = readonly [string, string, (object | string)?, Readonly<Record<string, string>>?];
  const requests: Readonly<Record<string, (id: string, title: string, folder: string | null) => Call>> = {
    list: () => ['GET', 'docs?limit=1000'],
    query: (_id, title) => ['QUERY', 'docs?limit=1000', { where: { title: { eq: title } } }],
    retrieve: (id) => ['GET', `docs/${id}`],
    transitions: (id) => ['GET', `docs/${id}/transitions`],
    create: (_id, title) => ['POST', 'docs', { title }],
    import: (_id, title) => ['POST', 'docs/import', `${JSON.stringify({ title })}\n`, JSON_LINES],
    update: (id, _title, folder) => ['PUT', `docs/${id}`, { title: 'changed', folder_id: folder }],
    partialUpdate: (id) => ['PATCH', `docs/${id}`, { size: 7 }],
    destroy: (id) => ['DELETE', `docs/${id}`],
    export: (_id, title) => ['GET', `docs/export?format=jsonl&title=${title}`],
    stats: (_id, title) => ['GET', `docs/stats?metrics=rows&group_by=title&title=${title}`],
    meta: () => ['GET', 'docs/meta'],
    bulkCreate: (_id, title) => ['POST', 'docs/bulk', { items: [{ title }] }],
    bulkUpdate: (id) => ['POST', 'docs/bulk-update', { ids: [id], changes: { size: 7 } }],
    bulkDestroy: (id) => ['POST', 'docs/bulk-delete', { ids: [id] }],
    restore: (id) => ['POST', `docs/${id}/restore`],
    send: (id) => ['POST', `docs/${id}/send`],
    file: (id) => ['POST', `docs/${id}/file`],
    nested: (id) => ['PATCH', `docs/${id}`, { comments: [{ text: 'below' }] }],
    bulkUpdateItems: (id) => ['POST', 'docs/bulk-update', { items: [{ id, size: 7 }] }],
    importUpsert: (_id, title) => ['POST', 'docs/import?mode=upsert', `${JSON.stringify({ title, code: title, size: 7 })}\n`, JSON_LINES],
  };
  const send = (caller: string | null, operation: string, id: string, title: string, folder: string | null): Promise<Called> => {
    const [method, url, payload, headers] = (requests[operation] as (typeof requests)[string])(id, title, folder);
    return drive.ask(caller, method, url, payload, headers);
  };
  const plain = ({ status, text, headers }: Called) => [
    status,
    text.replace(/"request_id":"[^"]*"/, ''),
    Object.keys(headers)
      .filter((name) => name !== 'date')
      .sort(),
  ];

  test('every operation that the controller offers is asked about here', () => {
    expect(operations.length).toBeGreaterThan(8);
    expect(operations.filter((operation) => !(operation in NEEDED))).toEqual([]);
    expect(operations.filter((operation) => requests[operation] === undefined)).toEqual([]);
    expect(Object.keys(NEEDED).filter((operation) => !operations.includes(operation))).toEqual([]);
  });

  test.each(Object.entries(KINDS))(
    '%s: what makes an object asks for no grant, and gives its creator everything',
    async (_kind, { caller }) => {
      const { app, user } = drive;
      for (const operation of CREATIONS) {
        const title = `made-${(number += 1)}`;
        const { status } = await send(caller, operation, MISSING, title, null);
        const made = await app.db.query<{ id: string; owner_id: string }>('select id, owner_id from docs where title = $1', [title]);
        const isRefused = caller === null || caller === 'ida';
        expect([operation, isRefused ? status >= 400 : status, made.map(({ owner_id }) => owner_id)]).toEqual(
          isRefused ? [operation, true, []] : [operation, 201, [user(caller).id]],
        );
        const held = await Promise.all(
          made.map(({ id }) =>
            actionsOf(app.db, { user: user(caller as string), tenant: caller === 'sue' ? 'south' : 'north' }, { type: docs, id }),
          ),
        );
        expect(held).toEqual(made.map(() => new Set(['view', 'change', 'delete', 'share', 'send'])));
      }
    },
  );

  test('what a resource says about itself is the same for everybody who holds anything, or nothing', async () => {
    const texts = new Set<string>();
    for (const [kind, { caller, arrange }] of Object.entries(KINDS)) {
      if (caller !== 'bob') continue;
      const [id, folder] = [await drive.doc(`meta ${kind}`), await drive.folder(`meta ${kind}`)];
      await arrange?.(drive, id, folder, 'change').catch(() => undefined);
      const { status, text } = await drive.ask(caller, 'GET', 'docs/meta');
      expect([kind, status]).toEqual([kind, 200]);
      texts.add(text);
    }
    expect(texts.size).toBe(1);
  });

  test.each(Object.entries(KINDS))('%s', { timeout: 120_000 }, async (kind, { caller, owner = 'ann', holds, arrange }) => {
    const { app } = drive;
    for (const operation of [...operations, ...Object.keys(NEEDED_WITHIN)]) {
      const action = NEEDED[operation] ?? NEEDED_WITHIN[operation];
      // There is no object yet, and what `meta` says is about no row: see above.
      if (action === null || action === undefined || operation === 'meta') continue;
      const top = await insert(app.db, folders, { name: `top ${number}`, org: 'north' });
      const folder = await insert(app.db, folders, { name: `folder ${number}`, org: 'north', parent_id: top.id });
      const title = `title-${(number += 1)}`;
      const place = kind.startsWith('inherited') ? folder.id : null;
      const id = await drive.doc(title, { owner, folder: place, code: title });
      await arrange?.(drive, id, folder.id, action);
      const gives = (wanted: string) =>
        holds === 'both' ||
        (holds === 'all' && wanted !== 'send') ||
        (holds === 'view' && wanted === 'view') ||
        (holds === 'action' && wanted === action && wanted !== 'view');
      if (operation === 'restore') await drive.ask('root', 'DELETE', `docs/${id}`);
      const { result: answer, queries } = await countQueries(() => send(caller, operation, id, title, place));
      const isUpsert = operation === 'importUpsert';
      // A file names rows by their code: there is no address to compare with.
      const compared = isUpsert ? { result: answer, queries } : await countQueries(() => send(caller, operation, MISSING, title, place));
      const missing = compared.result;
      const [row] = await app.db.query<{ title: string; size: number; status: string }>(
        'select title, size, status from docs where id = $1',
        [id],
      );
      const isList = LISTS.has(operation);
      const isDeletion = operation === 'destroy' || operation === 'bulkDestroy';
      // Without view: exactly the answer to an object that does not exist (status, body, headers), by the same statements, and nothing is written.
      const [actual, expected] = isList
        ? [
            [answer.status, answer.text.includes(title)],
            [200, gives('view')],
          ]
        : !gives('view')
          ? [
              // A file names no object: whether the code is taken (409) or free in the caller's tenant (201), the object stays as it is.
              isUpsert ? [row] : [answer.status, plain(answer), row, textsOf(queries)],
              isUpsert
                ? [{ title, size: 0, status: 'draft' }]
                : [404, plain(missing), { title, size: 0, status: 'draft' }, textsOf(compared.queries)],
            ]
          : gives(action)
            ? [
                [answer.status, ...(isUpsert ? [row?.size] : [])],
                [isUpsert ? 201 : isDeletion ? 204 : 200, ...(isUpsert ? [7] : [])],
              ]
            : [
                [answer.status, answer.body?.code, answer.body?.action],
                [403, 'permission_denied', action],
              ];
      expect([operation, kind, ...actual]).toEqual([operation, kind, ...expected]);
    }
  });
});
