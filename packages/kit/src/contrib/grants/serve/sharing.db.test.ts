import { Command } from 'commander';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { docs, type Drive, folders, startDrive } from '../../../../test/grants/drive.ts';
import { lockRows } from '../../../../test/lock-rows.ts';
import { wholeDocument } from '../../../../test/whole-document.ts';
import type { User } from '../../../auth/people/principal.ts';
import { remove } from '../../../db/index.ts';
import { openApiDocument } from '../../../openapi/document.ts';
import { describeDatabases } from '../../../testing/databases.ts';
import {
  accountsOf,
  addGroupMember,
  createGroup,
  createUser,
  deactivateUser,
  deleteGroup,
  deleteUser,
  removeGroupMember,
} from '../../accounts/index.ts';
import { userCommand } from '../../accounts/commands.ts';
import { grant, replaceGrants, revoke, transfer } from '../grant/grant.ts';
import { actionsOf, explainAccess, objectsOf, whoCan } from '../grant/holdings.ts';
import { pruneGrants } from '../rows/prune.ts';

const MISSING = '01890000-0000-7000-8000-000000000000';
const HOUR_MS = 3_600_000;

describeDatabases('sharing objects', (database) => {
  let drive: Drive;
  beforeAll(async () => {
    drive = await startDrive({ database: database.db });
  });
  beforeEach(() => {
    drive.audited.length = 0;
    drive.events.length = 0;
  });
  afterAll(() => drive.close());

  const as = (user: User) => ({ user, tenant: 'north' });
  const subject = (name: string) => `user:${drive.user(name).id}`;
  const onDoc = (id: string) => ({ type: docs, id });
  const onFolder = (id: string) => ({ type: folders, id });
  const put = (who: string, path: string, body: object, headers = {}) => drive.ask(who, 'PUT', `${path}/grants`, body, headers);
  const give = (name: string, set: string, object: { readonly type: typeof docs | typeof folders; readonly id: string }, more = {}) =>
    grant(database.db, { subject: subject(name), set, object: object, ...more });

  describe('the routes', () => {
    test('need share: 404 without view, 403 that names it with view alone', async () => {
      const id = await drive.doc('routes');
      await give('bob', 'viewer', onDoc(id));
      for (const [method, path, body] of [
        ['GET', `docs/${id}/grants`],
        ['PUT', `docs/${id}/grants`, { subject: subject('cid'), set: 'viewer' }],
        ['DELETE', `docs/${id}/grants/${MISSING}`],
      ] as const) {
        const [seen, unseen, missing] = [
          await drive.ask('bob', method, path, body),
          await drive.ask('cid', method, path, body),
          await drive.ask('cid', method, path.replace(id, MISSING), body),
        ];
        expect([method, seen.status, seen.body.code, seen.body.action]).toEqual([method, 403, 'permission_denied', 'share']);
        expect([unseen.status, { ...unseen.body, request_id: '' }]).toEqual([404, { ...missing.body, request_id: '' }]);
        expect((await drive.ask(null, method, path, body)).status).toBe(401);
      }
    });

    test('document that objects of a tenant need one', () => {
      const { paths } = wholeDocument(openApiDocument(drive.app.routes, { title: 'Drive', version: '1' }));
      for (const [path, method] of [
        ['grants', 'get'],
        ['grants', 'put'],
        ['grants/{grant_id}', 'delete'],
      ] as const)
        expect(paths[`/v1/docs/{id}/${path}`][method].responses[403]['x-error-codes']).toContain('tenant_required');
    });

    test('share, list and unshare; each is audited and announced to its audience', async () => {
      const id = await drive.doc('shared');
      const group = await drive.group('editors', 'cid');
      const made = await put('ann', `docs/${id}`, {
        items: [
          { subject: subject('bob'), actions: ['view', 'send'] },
          { subject: `group:${group}`, set: 'editor' },
        ],
      });
      expect(made.status).toBe(200);
      const listed = (await drive.ask('ann', 'GET', `docs/${id}/grants`)).body.items;
      expect(listed).toMatchObject([
        { subject: subject('bob'), name: 'bob', set: null, actions: ['send', 'view'], granted_by: drive.user('ann').id, expires_at: null },
        { subject: `group:${group}`, name: 'editors', set: 'editor', actions: null },
      ]);
      expect((await drive.ask('bob', 'GET', `docs/${id}`)).status).toBe(200);
      expect((await drive.ask('cid', 'PATCH', `docs/${id}`, { size: 3 })).status).toBe(200);
      expect((await drive.ask('ann', 'DELETE', `docs/${id}/grants/${listed[0].id}`)).status).toBe(204);
      expect((await drive.ask('bob', 'GET', `docs/${id}`)).status).toBe(404);
      expect(drive.audited.map(({ action }) => action).filter((action) => action.startsWith('grant.'))).toEqual([
        'grant.created',
        'grant.created',
        'grant.revoked',
      ]);
      expect(drive.audited.find(({ action }) => action === 'grant.created')).toMatchObject({
        actor: { user: { username: 'ann' } },
        target_type: 'grant',
        after: { object_id: id },
      });
      expect(
        drive.events.filter(({ type }) => type.startsWith('grant.')).map(({ type, owner, tenantKey }) => [type, owner ?? tenantKey]),
      ).toEqual([
        ['grant.created', drive.user('bob').id],
        ['grant.created', 'north'],
        ['grant.revoked', drive.user('bob').id],
      ]);
    });

    test('unknown subjects, sets and actions are 422 at their places, and a batch is given as a whole or not at all', async () => {
      const id = await drive.doc('batch');
      const answer = await put('ann', `docs/${id}`, {
        items: [
          { subject: subject('bob'), set: 'viewer' },
          { subject: `user:${MISSING}`, set: 'viewer' },
          { subject: `api_key:${MISSING}`, set: 'viewer' },
          { subject: subject('cid'), set: 'emperor' },
          { subject: subject('dan'), actions: ['view', 'fly'] },
          { subject: subject('eve'), set: 'viewer', expires_at: new Date(drive.clock.now().getTime()).toISOString() },
          { subject: subject('bob'), set: 'editor' },
        ],
      });
      expect([
        answer.status,
        answer.body.errors.map(({ location, code }: { location: unknown; code: string }) => [location, code]),
      ]).toEqual([
        422,
        [
          [['body', 'items', 1, 'subject'], 'unknown_subject'],
          [['body', 'items', 2, 'subject'], 'unknown_subject'],
          [['body', 'items', 3, 'set'], 'unknown_set'],
          [['body', 'items', 4, 'actions'], 'unknown_action'],
          [['body', 'items', 5, 'expires_at'], 'expired'],
          [['body', 'items', 6, 'subject'], 'duplicate'],
        ],
      ]);
      expect((await drive.ask('ann', 'GET', `docs/${id}/grants`)).body.items).toEqual([]);
      for (const body of [
        { subject: subject('bob') },
        { subject: subject('bob'), set: 'viewer', actions: ['view'] },
        { set: 'viewer' },
        { items: [] },
      ])
        expect((await put('ann', `docs/${id}`, body)).status).toBe(422);
    });

    test('wide subjects are 422 where the model does not allow them', async () => {
      const id = await drive.folder('wide');
      await give('ann', 'manager', onFolder(id));
      for (const wide of ['public', 'tenant', 'authenticated'])
        expect((await put('ann', `folders/${id}`, { subject: wide, set: 'viewer' })).body.errors?.[0]?.code).toBe('unknown_subject');
      const doc = await drive.doc('wide');
      expect((await put('ann', `docs/${doc}`, { subject: 'public', set: 'viewer' })).status).toBe(200);
      expect((await drive.ask(null, 'GET', `docs/${doc}`)).status).toBe(200);
    });

    test('an API key needs the scope of sharing, whatever else it has', async () => {
      const id = await drive.doc('by key');
      const body = { subject: subject('bob'), set: 'viewer' };
      expect((await put('ann', `docs/${id}`, body, { 'x-scopes': 'docs:read docs:write' })).status).toBe(403);
      expect((await put('ann', `docs/${id}`, body, { 'x-scopes': 'docs:share' })).status).toBe(200);
      expect((await drive.ask('bob', 'GET', `docs/${id}`)).status).toBe(200);
    });

    test('the last holder of share cannot be removed; two at once leave one', async () => {
      const id = await drive.folder('held');
      await give('bob', 'manager', onFolder(id));
      await give('cid', 'manager', onFolder(id));
      const { items } = (await drive.ask('bob', 'GET', `folders/${id}/grants`)).body;
      const answers = await Promise.all([
        drive.ask('bob', 'DELETE', `folders/${id}/grants/${items[0].id}`),
        drive.ask('cid', 'DELETE', `folders/${id}/grants/${items[1].id}`),
      ]);
      expect(answers.map(({ status }) => status).sort((a, b) => a - b)).toEqual([204, 409]);
      expect(answers.find(({ status }) => status === 409)?.body.code).toBe('last_holder');
      const [left] = await whoCan(database.db, onFolder(id), 'share');
      const holder = left?.subject === subject('bob') ? 'bob' : 'cid';
      expect((await put(holder, `folders/${id}`, { subject: left?.subject, set: 'editor' })).body.code).toBe('last_holder');
    });
  });

  describe('the last holder of share', () => {
    test('is not lost to a grant that expires, a group without active members, a deactivated user, or one who cannot view', async () => {
      const until = new Date(drive.clock.now().getTime() + HOUR_MS);
      const [empty, idle] = [await drive.group('empty'), await drive.group('idle', 'ida')];
      await database.db.query('update users set is_active = $2 where id = $1', [drive.user('ida').id, false]);
      const others: readonly (readonly [string, object])[] = [
        ['expiring', { subject: subject('cid'), set: 'manager', expiresAt: until }],
        ['empty group', { subject: `group:${empty}`, set: 'manager' }],
        ['idle group', { subject: `group:${idle}`, set: 'manager' }],
        ['deactivated', { subject: subject('ida'), set: 'manager' }],
        ['without view', { subject: subject('dan'), actions: ['share', 'change', 'delete'] }],
      ];
      for (const [name, other] of others) {
        const id = await drive.folder(`kept ${name}`);
        const { id: own } = await give('bob', 'manager', onFolder(id));
        await grant(database.db, { ...(other as { subject: string }), object: onFolder(id) });
        for (const answer of [
          await drive.ask('bob', 'DELETE', `folders/${id}/grants/${own}`),
          await put('bob', `folders/${id}`, { subject: subject('bob'), set: 'editor' }),
          await put('bob', `folders/${id}`, { subject: subject('bob'), set: 'manager', expires_at: until.toISOString() }),
          await put('bob', `folders/${id}`, { subject: subject('bob'), actions: ['share', 'change', 'delete'] }),
        ])
          expect([name, answer.status, answer.body?.code]).toEqual([name, 409, 'last_holder']);
        // Another lasting holder is enough.
        await drive
          .group(`active ${name}`, 'eve')
          .then((group) => grant(database.db, { subject: `group:${group}`, set: 'manager', object: onFolder(id) }));
        expect((await drive.ask('bob', 'DELETE', `folders/${id}/grants/${own}`)).status).toBe(204);
      }
    });

    test('of holders whose grants all expire, the last stays', async () => {
      const id = await drive.folder('all expire');
      const until = { expiresAt: new Date(drive.clock.now().getTime() + HOUR_MS) };
      const [bob, cid] = [await give('bob', 'manager', onFolder(id), until), await give('cid', 'manager', onFolder(id), until)];
      expect((await drive.ask('bob', 'DELETE', `folders/${id}/grants/${cid.id}`)).status).toBe(204);
      expect((await drive.ask('bob', 'DELETE', `folders/${id}/grants/${bob.id}`)).body.code).toBe('last_holder');
    });
  });

  test('granting what is granted already changes nothing: no audit entry, no event, the same giver', async () => {
    const id = await drive.doc('again');
    const until = new Date(drive.clock.now().getTime() + HOUR_MS);
    const bodies = [
      { subject: subject('bob'), actions: ['send', 'view'] },
      { subject: subject('cid'), set: 'viewer', expires_at: until.toISOString() },
    ];
    const [first] = (await put('ann', `docs/${id}`, { items: bodies })).body.items;
    await give('dan', 'manager', onDoc(id));
    const recorded = () => [drive.audited, drive.events].map((each) => each.length);
    const before = recorded();
    expect((await put('dan', `docs/${id}`, bodies[1] as object)).status).toBe(200);
    const again = await put('ann', `docs/${id}`, { items: [{ subject: subject('bob'), actions: ['view', 'send', 'view'] }] });
    expect(again.body.items).toEqual([first]);
    await grant(database.db, { subject: subject('cid'), set: 'viewer', expiresAt: until, object: onDoc(id) });
    expect(recorded()).toEqual(before);
    await put('ann', `docs/${id}`, { ...bodies[1], expires_at: null });
    expect(recorded()).toEqual(before.map((count) => count + 1));
  });

  describe('a grant never exceeds what its giver holds', () => {
    test('by a set, by actions, for oneself, for a group of one’s own, or for longer', async () => {
      const id = await drive.doc('limits');
      await grant(database.db, { subject: subject('bob'), actions: ['view', 'share'], object: onDoc(id) });
      const group = await drive.group('bobs', 'bob');
      for (const body of [
        { subject: subject('bob'), set: 'manager' },
        { subject: subject('bob'), actions: ['view', 'share', 'change'] },
        { subject: `group:${group}`, set: 'editor' },
        { subject: subject('cid'), set: 'sender' },
      ]) {
        const answer = await put('bob', `docs/${id}`, body);
        expect([body, answer.status, answer.body.code]).toEqual([body, 403, 'cannot_grant']);
      }
      expect(await actionsOf(database.db, as(drive.user('bob')), onDoc(id))).toEqual(new Set(['view', 'share']));
      const until = new Date(drive.clock.now().getTime() + HOUR_MS);
      await grant(database.db, { subject: subject('cid'), set: 'manager', object: onDoc(id), expiresAt: until });
      for (const expires_at of [null, undefined, new Date(until.getTime() + 1).toISOString()])
        expect((await put('cid', `docs/${id}`, { subject: subject('cid'), set: 'manager', expires_at })).body.code).toBe('cannot_grant');
      expect((await put('cid', `docs/${id}`, { subject: subject('dan'), set: 'viewer', expires_at: until.toISOString() })).status).toBe(
        200,
      );
    });

    test('nor does anybody take away what they do not hold', async () => {
      const id = await drive.doc('taking');
      await grant(database.db, { subject: subject('bob'), actions: ['view', 'share'], object: onDoc(id) });
      const { id: grantId } = await give('cid', 'manager', onDoc(id));
      expect((await drive.ask('bob', 'DELETE', `docs/${id}/grants/${grantId}`)).body.code).toBe('cannot_grant');
      expect((await put('bob', `docs/${id}`, { subject: subject('cid'), set: 'viewer' })).body.code).toBe('cannot_grant');
      expect((await drive.ask('cid', 'PATCH', `docs/${id}`, { size: 1 })).status).toBe(200);
    });

    test('a grant of another object cannot be removed through one’s own', async () => {
      const [own, other] = [await drive.doc('own', { owner: 'bob' }), await drive.doc('other', { owner: 'ann' })];
      const { id: grantId } = await give('cid', 'viewer', onDoc(other));
      expect((await drive.ask('bob', 'DELETE', `docs/${own}/grants/${grantId}`)).status).toBe(404);
      expect((await drive.ask('cid', 'GET', `docs/${other}`)).status).toBe(200);
    });

    test('a race between giving oneself share and losing it ends without it', async () => {
      for (let round = 0; round < 10; round += 1) {
        const id = await drive.doc(`race ${round}`);
        const { id: grantId } = await give('bob', 'manager', onDoc(id));
        const [, removed] = await Promise.all([
          put('bob', `docs/${id}`, { subject: subject('bob'), set: 'manager' }),
          drive.ask('ann', 'DELETE', `docs/${id}/grants/${grantId}`),
        ]);
        expect(removed.status).toBe(204);
        expect(await actionsOf(database.db, as(drive.user('bob')), onDoc(id))).toEqual(new Set());
      }
    });

    test('a subject of another tenant is unknown', async () => {
      const id = await drive.doc('tenants');
      const [south, all] = [
        await createGroup(database.db, { name: 'south', tenantKey: 'south' }),
        await createGroup(database.db, { name: 'all tenants', tenantKey: null }),
      ];
      for (const who of [subject('sue'), `group:${south.id}`])
        expect((await put('ann', `docs/${id}`, { subject: who, set: 'viewer' })).body.errors?.[0]?.code).toBe('unknown_subject');
      await addGroupMember(database.db, all.id, drive.user('sue').id);
      expect((await put('ann', `docs/${id}`, { subject: `group:${all.id}`, set: 'viewer' })).status).toBe(200);
      expect((await drive.ask('sue', 'GET', `docs/${id}`)).status).toBe(404);
      expect((await drive.ask('sue', 'GET', 'docs')).body.items).toEqual([]);
    });
  });

  describe('a parent', () => {
    test('cannot be used to gain what it gives: moving takes share on the object and change on the new parent', async () => {
      const [mine, theirs] = [await drive.folder('mine'), await drive.folder('theirs')];
      await give('bob', 'manager', onFolder(mine));
      await give('bob', 'viewer', onFolder(theirs));
      const id = await drive.doc('moved');
      await give('bob', 'editor', onDoc(id));
      const moves = (folder_id: string | null): readonly (readonly [string, string, object])[] => [
        ['PATCH', `docs/${id}`, { folder_id }],
        ['PUT', `docs/${id}`, { title: 'moved', folder_id }],
        ['POST', 'docs/bulk-update', { items: [{ id, folder_id }] }],
        ['POST', 'docs/bulk-update', { ids: [id], changes: { folder_id } }],
      ];
      const imported = (mode: string, row: object) =>
        drive.ask('bob', 'POST', `docs/import?mode=${mode}`, `${JSON.stringify(row)}\n`, { 'content-type': 'application/x-ndjson' });
      // "change" on the object and everything on the folder: the folder would give "delete" and "share".
      for (const [method, url, body] of moves(mine))
        expect([url, (await drive.ask('bob', method, url, body)).body.code]).toEqual([url, 'cannot_grant']);
      await grant(database.db, { subject: subject('bob'), actions: ['view', 'change', 'share'], object: onDoc(id) });
      // "share" on the object, and only "view" on the folder.
      for (const [method, url, body] of moves(theirs))
        expect([url, (await drive.ask('bob', method, url, body)).body.code]).toEqual([url, 'cannot_grant']);
      expect((await drive.ask('bob', 'PATCH', `docs/${id}`, { folder_id: mine })).status).toBe(200);
      expect((await drive.ask('bob', 'DELETE', `docs/${id}`)).status).toBe(204);
      const made = await drive.ask('bob', 'POST', 'docs', { title: 'planted', folder_id: theirs });
      expect([made.status, made.body.code]).toEqual([403, 'cannot_grant']);
      const bulk = await drive.ask('bob', 'POST', 'docs/bulk', { items: [{ title: 'planted', folder_id: theirs }] });
      expect([bulk.status, bulk.body.code]).toEqual([403, 'cannot_grant']);
      const file = await imported('create', { title: 'planted', folder_id: theirs });
      expect([file.status, file.body.code]).toEqual([403, 'cannot_grant']);
      const nested = await drive.ask('bob', 'PATCH', `folders/${theirs}`, { docs: [{ title: 'planted' }] });
      expect([nested.status, nested.body.code, nested.body.action]).toEqual([403, 'permission_denied', 'change']);
      expect((await drive.ask('bob', 'PATCH', `folders/${mine}`, { docs: [{ title: 'put' }] })).status).toBe(200);
      expect(await database.db.query('select id from docs where title = $1', ['planted'])).toEqual([]);
      // A file that names a row which is there moves it like a PATCH.
      const coded = await drive.doc('coded', { code: 'coded' });
      await give('bob', 'editor', onDoc(coded));
      const moved = await imported('upsert', { title: 'coded', code: 'coded', folder_id: mine });
      expect([moved.status, moved.body.code]).toEqual([403, 'cannot_grant']);
      expect(await database.db.query('select folder_id from docs where id = $1', [coded])).toEqual([{ folder_id: null }]);
    });

    test('is never below its own child, also when two moves would make the circle together', async () => {
      const [a, b, c] = [await drive.folder('a'), await drive.folder('b'), await drive.folder('c')];
      for (const id of [a, b, c]) await give('bob', 'manager', onFolder(id));
      expect((await drive.ask('bob', 'PATCH', `folders/${b}`, { parent_id: a })).status).toBe(200);
      expect((await drive.ask('bob', 'PATCH', `folders/${c}`, { parent_id: b })).status).toBe(200);
      for (const parent_id of [a, b, c])
        expect((await drive.ask('bob', 'PATCH', `folders/${a}`, { parent_id })).body.code).toBe('grant_cycle');
      const [x, y] = [await drive.folder('x'), await drive.folder('y')];
      for (const id of [x, y]) await give('bob', 'manager', onFolder(id));
      const both = await Promise.all([
        drive.ask('bob', 'PATCH', `folders/${x}`, { parent_id: y }),
        drive.ask('bob', 'PATCH', `folders/${y}`, { parent_id: x }),
      ]);
      expect(both.map(({ status }) => status).sort((a, b) => a - b)).toEqual([200, 409]);
    });

    test('counts down to its depth and no further; a deleted parent gives nothing', async () => {
      const chain: string[] = [];
      for (let level = 0; level < 7; level += 1) chain.push(await drive.folder(`level ${level}`, chain.at(-1) ?? null));
      const seen = async (level: number) => {
        const id = await drive.doc(`at ${level}`, { folder: chain[level] as string });
        return (await drive.ask('eve', 'GET', `docs/${id}`)).status;
      };
      await give('eve', 'viewer', onFolder(chain[0] as string));
      expect([await seen(0), await seen(4), await seen(5)]).toEqual([200, 200, 404]);
      const all = (await drive.ask('eve', 'GET', 'docs?limit=1000')).body.items.map(({ title }: { title: string }) => title);
      expect(all).toEqual(expect.arrayContaining(['at 0', 'at 4']));
      expect(all).not.toContain('at 5');
      await revoke(database.db, { subject: subject('eve'), object: onFolder(chain[0] as string) });
      expect(await seen(0)).toBe(404);
    });
  });

  describe('grants follow their objects and subjects', () => {
    test('a deleted object takes its grants with it: a new one of the same id has none', async () => {
      const id = await drive.folder('reused');
      await give('bob', 'manager', onFolder(id));
      expect((await drive.ask('bob', 'DELETE', `folders/${id}`)).status).toBe(204);
      await database.db.query('insert into folders (id, org, name) values ($1, $2, $3)', [id, 'north', 'again']);
      expect((await drive.ask('bob', 'GET', `folders/${id}`)).status).toBe(404);
      await give('cid', 'manager', onFolder(id));
      await remove(database.db, folders, id);
      await database.db.query('insert into folders (id, org, name) values ($1, $2, $3)', [id, 'north', 'third']);
      // Removed by hand: its grants were left behind until they are pruned.
      await remove(database.db, folders, id);
      expect((await pruneGrants(database.db)).orphaned).toBe(1);
    });

    test('a soft deletion hides them, a restoration brings them back', async () => {
      const id = await drive.doc('soft', { owner: 'ann' });
      await give('bob', 'manager', onDoc(id));
      expect((await drive.ask('ann', 'DELETE', `docs/${id}`)).status).toBe(204);
      expect((await drive.ask('bob', 'GET', `docs/${id}`)).status).toBe(404);
      expect(await actionsOf(database.db, as(drive.user('bob')), onDoc(id))).toEqual(new Set());
      const [row] = await database.db.query<{ hidden: Date | null }>(
        'select object_deleted_at as hidden from grants where object_id = $1',
        [id],
      );
      expect(row?.hidden).not.toBeNull();
      expect((await drive.ask('ann', 'POST', `docs/${id}/restore`)).status).toBe(200);
      expect((await drive.ask('bob', 'PATCH', `docs/${id}`, { size: 9 })).status).toBe(200);
    });

    test('the creator of an object gets the creator’s set, in the same transaction', async () => {
      const made = await drive.ask('dan', 'POST', 'folders', { name: 'made' });
      expect(made.status).toBe(201);
      expect(await actionsOf(database.db, as(drive.user('dan')), onFolder(made.body.id))).toEqual(
        new Set(['view', 'change', 'delete', 'share']),
      );
      const before = (await database.db.query('select id from grants')).length;
      expect((await drive.ask('dan', 'POST', 'folders', { name: 'x'.repeat(200) })).status).toBe(422);
      expect((await database.db.query('select id from grants')).length).toBe(before);
    });

    test('a deleted group gives nothing, and a membership that ended neither', async () => {
      const id = await drive.doc('grouped');
      const group = await drive.group('short-lived', 'bob', 'cid');
      await grant(database.db, { subject: `group:${group}`, set: 'editor', object: onDoc(id) });
      expect((await drive.ask('bob', 'PATCH', `docs/${id}`, { size: 1 })).status).toBe(200);
      await removeGroupMember(database.db, group, drive.user('bob').id);
      expect((await drive.ask('bob', 'GET', `docs/${id}`)).status).toBe(404);
      await deleteGroup(database.db, group);
      expect((await drive.ask('cid', 'GET', `docs/${id}`)).status).toBe(404);
      expect(await database.db.query('select id from grants where subject = $1', [`group:${group}`])).toEqual([]);
    });

    test('a deleted user’s grants are gone, also for a later user with the same id; a deactivated one keeps them', async () => {
      const id = await drive.doc('left');
      const management = accountsOf(database.db).management(null);
      const leaver = await createUser(database.db, { username: 'leaver' }, management);
      await grant(database.db, { subject: `user:${leaver.id}`, set: 'manager', object: onDoc(id) });
      await deactivateUser(database.db, leaver.id, management);
      expect((await whoCan(database.db, onDoc(id), 'share')).map(({ subject: who }) => who)).toContain(`user:${leaver.id}`);
      await deleteUser(database.db, leaver.id, management);
      expect(await database.db.query('select id from grants where subject = $1', [`user:${leaver.id}`])).toEqual([]);
      expect(drive.audited.filter(({ action }) => action === 'grant.revoked')).toMatchObject([{ before: { object_id: id } }]);
      expect(await actionsOf(database.db, as({ ...leaver, is_active: true }), onDoc(id))).toEqual(new Set());
    });

    test('kit user delete takes the grants along, says what it deleted, and refuses a user there is not', async () => {
      const id = await drive.doc('left by command');
      const leaver = await createUser(database.db, { username: 'commanded' }, accountsOf(database.db).management(null));
      await grant(database.db, { subject: `user:${leaver.id}`, set: 'viewer', object: onDoc(id) });
      const printed: string[] = [];
      const run = (...args: string[]) => {
        const program = new Command();
        userCommand.configure(program, { app: async () => drive.app, print: (text: string) => printed.push(text), json: false } as never);
        return program.parseAsync(args, { from: 'user' });
      };
      await run('delete', 'commanded');
      expect(printed).toEqual(['commanded is deleted, with all sessions, memberships, API keys and grants.']);
      expect(await database.db.query('select id from grants where subject = $1', [`user:${leaver.id}`])).toEqual([]);
      await expect(run('delete', 'commanded')).rejects.toThrow(/commanded/);
    });

    test('a grant counts up to the millisecond it expires, and not at it', async () => {
      const id = await drive.doc('expiring');
      const expiresAt = new Date(drive.clock.now().getTime() + 5_000);
      await give('bob', 'editor', onDoc(id), { expiresAt });
      drive.clock.advance(4_999);
      expect((await drive.ask('bob', 'GET', `docs/${id}`)).status).toBe(200);
      drive.clock.advance(1);
      expect((await drive.ask('bob', 'GET', `docs/${id}`)).status).toBe(404);
      expect((await drive.ask('bob', 'GET', 'docs?limit=1000')).text).not.toContain(id);
      expect((await pruneGrants(database.db)).expired).toBeGreaterThan(0);
      expect(await database.db.query('select id from grants where object_id = $1', [id])).toEqual([]);
    });
  });

  test.skipIf(database.dialect === 'sqlite')(
    'a grant that another transaction has locked does not hold up the pruning of others',
    async () => {
      const id = await drive.doc('locked');
      for (const name of ['bob', 'cid'])
        await give(name, 'viewer', onDoc(id), { expiresAt: new Date(drive.clock.now().getTime() + HOUR_MS) });
      drive.clock.advance(2 * HOUR_MS);
      const rows = await database.db.query<{ id: string }>('select id from grants where object_id = $1 and expires_at is not null', [id]);
      const release = await lockRows(database.db, 'grants', [rows[0]?.id ?? '']);
      await pruneGrants(database.db);
      const left = () => database.db.query('select id from grants where object_id = $1 and expires_at is not null', [id]);
      expect([rows.length, await left()]).toEqual([2, [rows[0]]]);
      await database.db.query('delete from docs where id = $1', [id]);
      await pruneGrants(database.db);
      await release();
      await pruneGrants(database.db);
      expect(await left()).toEqual([]);
    },
  );

  describe('for programs', () => {
    test('actionsOf, whoCan, objectsOf and explainAccess agree', async () => {
      const top = await drive.folder('explained');
      const id = await drive.doc('explained', { folder: top });
      await give('bob', 'viewer', onFolder(top));
      await grant(database.db, { subject: subject('cid'), action: 'change', object: onDoc(id) });
      expect(await actionsOf(database.db, as(drive.user('bob')), onDoc(id))).toEqual(new Set(['view']));
      expect((await whoCan(database.db, onDoc(id), 'view')).map(({ subject: who, kind, isInherited }) => [who, kind, isInherited])).toEqual(
        [
          [subject('ann'), 'owner', false],
          [subject('bob'), 'grant', true],
        ],
      );
      expect(await objectsOf(database.db, as(drive.user('bob')), docs as never, 'view')).toContain(id);
      expect(await objectsOf(database.db, as(drive.user('bob')), docs as never, 'change')).not.toContain(id);
      const why = async (name: string, action: string) => {
        const { allowed, reason } = await explainAccess(database.db, as(drive.user(name)), onDoc(id), action);
        return [allowed, reason];
      };
      expect(await why('ann', 'delete')).toEqual([true, 'owner']);
      expect(await why('bob', 'view')).toEqual([true, 'grant']);
      expect(await why('bob', 'change')).toEqual([false, 'not_granted']);
      expect(await why('cid', 'change')).toEqual([false, 'not_visible']);
      expect(await why('root', 'delete')).toEqual([true, 'superuser']);
      expect(await why('ida', 'view')).toEqual([false, 'inactive']);
      expect((await explainAccess(database.db, as(drive.user('bob')), onDoc(MISSING), 'view')).allowed).toBe(false);
      await expect(actionsOf(database.db, as(drive.user('bob')), { type: 'planets', id })).rejects.toThrow('has no actions');
      await expect(whoCan(database.db, onDoc(id), 'fly')).rejects.toThrow("no action 'fly'");
    });

    test('replaceGrants leaves exactly what it is given; transfer hands over a grant and the ownership', async () => {
      const id = await drive.doc('handed over');
      await give('bob', 'viewer', onDoc(id));
      await replaceGrants(database.db, {
        object: onDoc(id),
        grants: [
          { subject: subject('cid'), set: 'editor' },
          { subject: subject('dan'), set: 'viewer' },
        ],
      });
      const held = async () => (await whoCan(database.db, onDoc(id), 'view')).map(({ subject: who }) => who);
      expect(await held()).toEqual([subject('ann'), subject('cid'), subject('dan')]);
      expect(await transfer(database.db, { object: onDoc(id), from: subject('cid'), to: subject('dan') })).toBe(true);
      expect(await actionsOf(database.db, as(drive.user('dan')), onDoc(id))).toEqual(new Set(['view', 'change']));
      expect(await transfer(database.db, { object: onDoc(id), from: subject('ann'), to: subject('bob') })).toBe(true);
      expect((await drive.ask('bob', 'GET', `docs/${id}`)).body.owner_id).toBe(drive.user('bob').id);
      expect((await drive.ask('ann', 'GET', `docs/${id}`)).status).toBe(404);
      expect(await transfer(database.db, { object: onDoc(id), from: subject('eve'), to: subject('bob') })).toBe(false);
    });

    test('a transaction that rolls back leaves nothing', async () => {
      const id = await drive.doc('rolled back');
      await expect(
        database.db.transaction(async (tx) => {
          await grant(tx, { subject: subject('bob'), set: 'viewer', object: onDoc(id) });
          expect(await actionsOf(tx, as(drive.user('bob')), onDoc(id))).toEqual(new Set(['view']));
          throw new Error('undo');
        }),
      ).rejects.toThrow('undo');
      expect(await actionsOf(database.db, as(drive.user('bob')), onDoc(id))).toEqual(new Set());
    });
  });
});
