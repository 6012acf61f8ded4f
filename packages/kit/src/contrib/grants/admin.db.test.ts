import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdminApp, type Browser } from '../../../test/admin/admin-app.ts';
import {
  commentResource,
  docActions,
  docResource,
  docs,
  driveTables,
  folderActions,
  folderResource,
  folders,
} from '../../../test/grants/drive.ts';
import { modelResource } from '../../admin/index.ts';
import { insert } from '../../db/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { addGroupMember, createGroup } from '../accounts/index.ts';
import { grant } from './grant/grant.ts';
import { actionsOf } from './grant/holdings.ts';
import { objectGrants } from './module.ts';

interface Section {
  readonly title: string;
  readonly rows: readonly {
    readonly title: string;
    readonly removable?: boolean;
    readonly values: { readonly may?: readonly string[]; readonly why?: string; readonly object?: unknown; readonly through?: string };
  }[];
  readonly adds?: {
    readonly refused?: string;
    readonly fields: readonly { readonly name: string; readonly choices?: readonly { readonly value: string }[] }[];
  };
  readonly removes?: { readonly refused?: string };
}

describeDatabases('grants in the admin site', (database) => {
  let site: AdminApp;
  let root: Browser;
  let staff: Browser;
  let doc: string;
  let colleague: string;
  const on = () => ({ type: docs, id: doc });
  beforeAll(async () => {
    site = await new AdminApp(
      database.db,
      [
        objectGrants({ objects: [folderActions, docActions], isInTenant: (_db, { username }) => username !== 'stranger' }),
        { ...driveTables, admin: { resources: [modelResource(docResource)] } },
      ],
      { resources: [docResource, folderResource, commentResource], tenant: () => 'north' },
      { roles: { of: ({ username }) => (username.startsWith('operator') ? 'operator' : 'administrator') } },
    ).ready();
    root = await site.browser({ username: 'root', is_staff: true, is_superuser: true });
    staff = await site.browser({ username: 'clerk', is_staff: true });
    const owner = await site.newUser({ username: 'owner' });
    colleague = (await site.newUser({ username: 'colleague' })).id;
    await site.newUser({ username: 'stranger' });
    doc = (await insert(database.db, docs, { title: 'shown', org: 'north', owner_id: owner.id })).id;
    const group = await createGroup(database.db, { name: 'readers', tenantKey: null });
    await addGroupMember(database.db, group.id, colleague);
    await grant(database.db, { subject: `group:${group.id}`, set: 'viewer', object: on() });
  });
  afterAll(() => site.close());

  const section = async (browser: Browser, path: string, title: string): Promise<Section> =>
    (await site.get(browser, `resources/${path}`)).body.sections.find((each: Section) => each.title === title);

  test('a record says who has access, and why; a group what it has access to', async () => {
    const who = await section(root, `docs/${doc}`, 'Who has access, and why');
    expect(who.rows.map(({ title, values }) => [title, values.may])).toEqual([
      ['owner', ['view', 'change', 'delete', 'share', 'send']],
      ['readers', ['view']],
    ]);
    expect(who.rows[1]?.values.why).toBe('the group readers was granted viewer on this record');
    const { items } = (await site.get(root, 'resources/groups?search=readers')).body;
    const has = await section(root, `groups/${items[0].id}`, 'Has access to');
    expect(has.rows.map(({ values }) => values.object)).toEqual([{ resource: 'docs', id: doc, text: 'docs/shown' }]);
    // The list is filtered by picking, too.
    const subjects = async (filter: string) =>
      (await site.get(root, `resources/grants?${filter}`)).body.items.map(({ values }: { values: { subject: string } }) => values.subject);
    expect(await subjects(`filter.group=${items[0].id}`)).toEqual(['readers']);
    expect(await subjects(`filter.user=${colleague}`)).toEqual([]);
    expect(await subjects(`filter.group=${items[0].id}&filter.user=${colleague}`)).toEqual([]);
  });

  test('a superuser grants and revokes; staff hand out nothing they do not hold, and see no grants of others', async () => {
    const fields = {
      user: colleague,
      group: null,
      everyone: null,
      type: 'docs',
      object: doc,
      set: 'editor',
      actions: null,
      expires_at: null,
    };
    const refused = await site.send(staff, 'POST', 'resources/grants', fields);
    expect([refused.status, refused.body.errors?.[0]?.code]).toEqual([422, 'unknown_object']);
    expect((await site.get(staff, 'resources/grants')).body.items).toEqual([]);
    await grant(database.db, { subject: `user:${staff.userId}`, actions: ['view', 'share'], object: on() });
    const tooMuch = await site.send(staff, 'POST', 'resources/grants', fields);
    expect([tooMuch.status, tooMuch.body.code]).toEqual([403, 'cannot_grant']);
    const made = await site.send(root, 'POST', 'resources/grants', fields);
    expect([made.status, made.body.message]).toEqual([201, 'Grant created.']);
    const user = { id: colleague, username: 'colleague', email: null, is_active: true, is_staff: false, is_superuser: false };
    expect(await actionsOf(database.db, { user, tenant: 'north' }, on())).toEqual(new Set(['view', 'change']));
    const recorded = async (browser: Browser): Promise<string> =>
      (await site.get(browser, `resources/audit-log?filter.target_id=${made.body.id}`)).body.items[0].values.target.text;
    expect(await recorded(root)).toMatch(/^colleague on docs\//);
    const stranger = await site.browser({ username: 'far-away', is_staff: true });
    expect(await recorded(stranger)).toBe(made.body.id);
    const taking = await site.send(staff, 'DELETE', `resources/grants/${made.body.id}`);
    expect([taking.status, taking.body.code]).toEqual([403, 'cannot_grant']);
    expect((await site.send(root, 'DELETE', `resources/grants/${made.body.id}`)).body.message).toBe('Grant deleted.');
    expect(await actionsOf(database.db, { user, tenant: 'north' }, on())).toEqual(new Set(['view']));
    for (const [change, code] of [
      [{ type: 'planets' }, 'unknown_type'],
      [{ object: '01890000-0000-7000-8000-000000000000' }, 'unknown_object'],
      [{ user: null }, 'required'],
      [{ group: 'nobody' }, 'invalid'],
      [{ user: 'nobody' }, 'unknown_subject'],
      [{ user: 'stranger' }, 'unknown_subject'],
      [{ user: null, group: 'nobody' }, 'unknown_subject'],
      [{ set: 'emperor' }, 'unknown_set'],
    ] as const)
      expect((await site.send(root, 'POST', 'resources/grants', { ...fields, ...change })).body.errors?.[0]?.code).toBe(code);
    const many = await site.send(root, 'POST', 'resources/grants', { ...fields, user: 'nobody', set: 'emperor' });
    expect(many.body.errors?.map((error: { code: string }) => error.code)).toEqual(['unknown_subject', 'unknown_set']);
  });

  test('every fault of the form is reported at once, whichever field it is in', async () => {
    const nowhere = '01890000-0000-7000-8000-000000000000';
    const wrong = { user: 'nobody', type: 'docs', object: nowhere, set: 'emperor', expires_at: '2001-01-01T00:00:00Z' };
    const faultsOf = async (change: object) => {
      const { status, body } = await site.send(root, 'POST', 'resources/grants', { ...wrong, ...change });
      return [status, ...body.errors.map(({ location, code }: { location: string[]; code: string }) => `${location.join('.')} ${code}`)];
    };
    expect(await faultsOf({})).toEqual([
      422,
      'body.object unknown_object',
      'body.user unknown_subject',
      'body.expires_at expired',
      'body.set unknown_set',
    ]);
    // Which sets there are depends on the type.
    expect(await faultsOf({ type: 'planets' })).toEqual([
      422,
      'body.type unknown_type',
      'body.user unknown_subject',
      'body.expires_at expired',
    ]);
    expect(await faultsOf({ expires_at: 'tomorrow' })).toEqual([
      422,
      'body.expires_at invalid_format',
      'body.object unknown_object',
      'body.user unknown_subject',
      'body.set unknown_set',
    ]);
  });

  test('a user’s page says what it has access to, also through groups; staff are told of objects they may view only', async () => {
    const through = async (browser: Browser) =>
      (await section(browser, `users/${colleague}`, 'Has access to')).rows.map(({ title, values }) => [title, values.through]);
    expect(await through(root)).toEqual([['docs/shown', 'the group readers']]);
    const other = await site.browser({ username: 'other-clerk', is_staff: true });
    expect(await through(other)).toEqual([]);
    await grant(database.db, { subject: `user:${other.userId}`, set: 'viewer', object: on() });
    expect(await through(other)).toEqual([['docs/shown', 'the group readers']]);
  });

  test('only callers who hold share are offered to grant and revoke; by name, and with the sets of the model', async () => {
    const viewer = await site.browser({ username: 'looking', is_staff: true });
    await grant(database.db, { subject: `user:${viewer.userId}`, set: 'viewer', object: on() });
    const shown = await section(viewer, `docs/${doc}`, 'Who has access, and why');
    expect([shown.adds, shown.removes, shown.rows.some(({ removable }) => removable === true)]).toEqual([undefined, undefined, false]);
    const offered = await section(root, `docs/${doc}`, 'Who has access, and why');
    expect(offered.adds).toMatchObject({ resource: 'grants', values: { type: 'docs', object: doc } });
    expect(offered.adds?.fields.find(({ name }) => name === 'set')?.choices?.map(({ value }) => value)).toEqual([
      'viewer',
      'editor',
      'sender',
      'manager',
    ]);
    // The owner's access is no grant: it cannot be revoked.
    expect(offered.rows.find(({ title }) => title === 'owner')?.removable).toBe(false);
    const made = await site.send(root, 'POST', 'resources/grants', { user: 'colleague', set: 'viewer', type: 'docs', object: doc });
    expect(made.status).toBe(201);
    expect((await site.send(viewer, 'DELETE', `resources/grants/${made.body.id}`)).status).toBe(404);
    expect((await site.send(root, 'DELETE', `resources/grants/${made.body.id}`)).status).toBe(200);
  });

  test('granting and revoking need their role too: an operator who holds share gets the reason instead, and is not allowed either', async () => {
    const operator = await site.browser({ username: 'operator-1', is_staff: true });
    const holder = await site.browser({ username: 'holder', is_staff: true });
    for (const { userId } of [operator, holder]) await grant(database.db, { subject: `user:${userId}`, set: 'manager', object: on() });
    const offered = async (browser: Browser) => {
      const { adds, removes } = await section(browser, `docs/${doc}`, 'Who has access, and why');
      return [adds, removes].map((button) => (button === undefined ? 'not there' : (button.refused ?? 'offered')));
    };
    const reason = expect.stringContaining('needs the role') as string;
    expect([await offered(operator), await offered(holder)]).toEqual([
      [reason, reason],
      ['offered', 'offered'],
    ]);
    const fields = { user: 'colleague', set: 'viewer', type: 'docs', object: doc };
    expect((await site.send(operator, 'POST', 'resources/grants', fields)).body).toMatchObject({ code: 'role_required' });
    const made = await site.send(holder, 'POST', 'resources/grants', fields);
    expect(made.status).toBe(201);
    expect((await site.send(operator, 'DELETE', `resources/grants/${made.body.id}`)).body).toMatchObject({ code: 'role_required' });
    expect((await site.send(holder, 'DELETE', `resources/grants/${made.body.id}`)).status).toBe(200);
  });

  test('who may share an object sees its grants, in the list of the object and by their ids; others see those that they gave or got', async () => {
    const sharer = await site.browser({ username: 'sharer', is_staff: true });
    const viewer = await site.browser({ username: 'viewer', is_staff: true });
    const mine = (await insert(database.db, docs, { title: 'mine', org: 'north', owner_id: root.userId })).id;
    const foreign = (await insert(database.db, docs, { title: 'foreign', org: 'north', owner_id: root.userId })).id;
    const ids = await Promise.all(
      [
        { subject: `user:${sharer.userId}`, set: 'manager', object: { type: docs, id: mine } },
        { subject: `user:${viewer.userId}`, set: 'viewer', object: { type: docs, id: mine } },
        { subject: `user:${colleague}`, set: 'viewer', object: { type: docs, id: mine } },
        { subject: `user:${colleague}`, set: 'viewer', object: { type: docs, id: foreign } },
      ].map(async (given) => (await grant(database.db, given)).id),
    );
    const [own, seen, other, hidden] = ids as [string, string, string, string];
    const listed = async (browser: Browser, filter: string): Promise<string[]> =>
      (await site.get(browser, `resources/grants?${filter}`)).body.items.map(({ id }: { id: string }) => id);
    const ofMine = `filter.type=docs&filter.object=${mine}`;
    expect(new Set(await listed(sharer, ofMine))).toEqual(new Set([own, seen, other]));
    expect(await listed(viewer, ofMine)).toEqual([seen]);
    // Filters narrow: none of them opens the rows of another object.
    expect(await listed(sharer, `${ofMine}&filter.user=${colleague}`)).toEqual([other]);
    expect(await listed(sharer, `filter.user=${colleague}`)).toEqual([]);
    expect(await listed(sharer, `filter.type=docs&filter.object=${foreign}`)).toEqual([]);
    expect(await listed(sharer, '')).toEqual([own]);
    const status = async (browser: Browser, id: string) => (await site.get(browser, `resources/grants/${id}`)).status;
    expect(await Promise.all([status(sharer, other), status(sharer, hidden), status(viewer, other), status(viewer, seen)])).toEqual([
      200, 404, 404, 200,
    ]);
    // Revoking several is refused for those that are not seen.
    const revoked = await site.send(sharer, 'POST', 'resources/grants/actions/delete-selected', { ids: [other, hidden] });
    expect(revoked.body.failures?.map(({ id }: { id: string }) => id)).toEqual([hidden]);
    expect(await listed(root, `filter.user=${colleague}&${ofMine}`)).toEqual([]);
    expect(await listed(root, `filter.user=${colleague}&filter.type=docs&filter.object=${foreign}`)).toEqual([hidden]);
  });

  test('giving a grant again that is as it was is no change, also for who did not give it', async () => {
    const sharer = await site.browser({ username: 'again', is_staff: true });
    const { id } = await insert(database.db, docs, { title: 'again', org: 'north', owner_id: root.userId });
    await grant(database.db, { subject: `user:${sharer.userId}`, set: 'manager', object: { type: docs, id } });
    const given = await grant(database.db, { subject: `user:${colleague}`, set: 'viewer', object: { type: docs, id } });
    const again = await site.send(sharer, 'POST', 'resources/grants', { user: colleague, set: 'viewer', type: 'docs', object: id });
    expect([again.status, again.body.id]).toEqual([201, given.id]);
  });

  test('an object of another tenant is shared by superusers only, whatever was granted on it', async () => {
    const abroad = await site.browser({ username: 'abroad', is_staff: true });
    const { id } = await insert(database.db, docs, { title: 'south', org: 'south', owner_id: abroad.userId });
    const fields = { user: 'colleague', set: 'viewer', type: 'docs', object: id };
    const refused = await site.send(abroad, 'POST', 'resources/grants', fields);
    expect([refused.status, refused.body.errors?.[0]?.code]).toEqual([422, 'unknown_object']);
    expect((await site.send(root, 'POST', 'resources/grants', fields)).status).toBe(201);
  });

  test('the audit log shows nothing of a document that a staff member was not granted, and of grants on it', async () => {
    const outsider = await site.browser({ username: 'outsider', is_staff: true });
    const secret = (await insert(database.db, docs, { title: 'merger plan', org: 'north', owner_id: root.userId })).id;
    expect((await site.send(root, 'PATCH', `resources/docs/${secret}`, { title: 'merger plan 2' })).status).toBe(200);
    const shared = { user: 'colleague', set: 'viewer', type: 'docs', object: secret };
    expect((await site.send(root, 'POST', 'resources/grants', shared)).status).toBe(201);
    const seen = async (browser: Browser, action: string, id?: string) => {
      const { items } = (
        await site.get(browser, `resources/audit-log?filter.action=${action}${id === undefined ? '' : `&filter.target_id=${id}`}`)
      ).body;
      const { text } = await site.get(browser, `resources/audit-log/${items[0].id}`);
      return `${JSON.stringify(items[0])}${text}`;
    };
    const hidden = `${await seen(outsider, 'doc.updated', secret)}${await seen(outsider, 'grant.created')}`;
    expect(hidden).toContain('You cannot see this record');
    for (const value of ['merger', 'viewer', colleague]) expect(hidden).not.toContain(value);
    for (const browser of [root]) expect(await seen(browser, 'doc.updated', secret)).toContain('merger plan 2');
    await grant(database.db, { subject: `user:${outsider.userId}`, set: 'viewer', object: { type: docs, id: secret } });
    expect(await seen(outsider, 'doc.updated', secret)).toContain('merger plan 2');
    await grant(database.db, { subject: `user:${outsider.userId}`, action: 'change', object: { type: docs, id: secret } });
    expect(await seen(outsider, 'doc.updated', secret)).not.toContain('merger');
    // Nobody can be asked about a row that is gone.
    await database.db.query('delete from docs where id = $1', [secret]);
    expect(await seen(outsider, 'doc.updated', secret)).not.toContain('merger');
    expect(await seen(root, 'doc.updated', secret)).toContain('merger plan 2');
  });

  test('a parent is changed under the same rule as over the API', async () => {
    const mover = await site.browser({ username: 'mover', is_staff: true });
    const folder = (await insert(database.db, folders, { name: 'target', org: 'north' })).id;
    await grant(database.db, { subject: `user:${mover.userId}`, set: 'editor', object: on() });
    await grant(database.db, { subject: `user:${mover.userId}`, set: 'manager', object: { type: folders, id: folder } });
    const moved = await site.send(mover, 'PATCH', `resources/docs/${doc}`, { folder_id: folder });
    expect([moved.status, moved.body.code]).toEqual([403, 'cannot_grant']);
    expect((await site.send(mover, 'PATCH', `resources/docs/${doc}`, { size: 3 })).status).toBe(200);
  });

  test('a dry run by staff who hold an action on some rows only says what the action then does', async () => {
    const owner = await site.newUser();
    const clerk = await site.browser({ is_staff: true });
    const made = async (title: string) => (await insert(database.db, docs, { title, org: 'north', owner_id: owner.id })).id;
    const [hidden, viewed, changed, own] = [await made('hidden'), await made('viewed'), await made('changed'), await made('own')];
    await grant(database.db, { subject: `user:${clerk.userId}`, set: 'viewer', object: { type: docs, id: viewed } });
    await grant(database.db, { subject: `user:${clerk.userId}`, set: 'editor', object: { type: docs, id: changed } });
    await grant(database.db, { subject: `user:${clerk.userId}`, set: 'manager', object: { type: docs, id: own } });
    const ids = [hidden, viewed, changed, own];
    const asked = (action: string, fields: object) => ({ ids, fields, path: `resources/docs/actions/${action}` });
    const able: Record<string, string[]> = {};
    for (const { path, ...body } of [asked('edit-selected', { size: 9 }), asked('file', {}), asked('delete-selected', {})]) {
      const rows = () => database.db.query('select id, size, status, deleted_at from docs order by id');
      const before = await rows();
      const tried = (await site.send(clerk, 'POST', `${path}/preview`, body)).body;
      expect(await rows()).toEqual(before);
      const done = (await site.send(clerk, 'POST', path, body)).body;
      expect([path, done.failures ?? []]).toEqual([path, tried.failures]);
      const failed = new Set(tried.failures.map(({ id }: { id: string }) => id));
      able[path.split('/').at(-1) as string] = ids.filter((id) => !failed.has(id));
      // A record that the clerk cannot see is as missing as one that never was.
      const [gone] = (await site.send(clerk, 'POST', `${path}/preview`, { ...body, ids: ['01890000-0000-7000-8000-000000000000'] })).body
        .failures;
      expect(tried.failures.find(({ id }: { id: string }) => id === hidden)?.message).toBe(gone.message);
    }
    expect(able).toEqual({ 'edit-selected': [changed, own], file: [changed, own], 'delete-selected': [own] });
  });
});
