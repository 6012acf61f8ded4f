import { afterAll, beforeAll, expect, test } from 'vitest';
import { AdminApp, type Browser } from '../../../test/admin/admin-app.ts';
import { docActions, docResource, docs, driveTables, folderActions, folderResource, commentResource } from '../../../test/grants/drive.ts';
import { modelResource } from '../../admin/index.ts';
import { insert } from '../../db/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { addGroupMember, createGroup } from '../accounts/index.ts';
import { grant } from './grant.ts';
import { actionsOf } from './holdings.ts';
import { objectGrants } from './module.ts';

interface Section {
  readonly title: string;
  readonly rows: readonly {
    readonly title: string;
    readonly values: { readonly may?: readonly string[]; readonly why?: string; readonly object?: unknown };
  }[];
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
      [objectGrants({ objects: [folderActions, docActions] }), { ...driveTables, admin: { resources: [modelResource(docResource)] } }],
      { resources: [docResource, folderResource, commentResource], tenant: () => 'north' },
    ).ready();
    root = await site.browser({ username: 'root', is_staff: true, is_superuser: true });
    staff = await site.browser({ username: 'clerk', is_staff: true });
    const owner = await site.newUser({ username: 'owner' });
    colleague = (await site.newUser({ username: 'colleague' })).id;
    doc = (await insert(database.db, docs, { title: 'shown', org: 'north', owner_id: owner.id })).id;
    const group = await createGroup(database.db, { name: 'readers' });
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
    expect(who.rows[1]?.values.why).toContain(`was granted viewer on docs/${doc}`);
    const { items } = (await site.get(root, 'resources/groups?search=readers')).body;
    const has = await section(root, `groups/${items[0].id}`, 'Has access to');
    expect(has.rows.map(({ values }) => values.object)).toEqual([{ resource: 'docs', id: doc, text: `docs/${doc}` }]);
  });

  test('a superuser grants and revokes; staff hand out nothing they do not hold, and see no grants of others', async () => {
    const fields = { subject: `user:${colleague}`, type: 'docs', object: doc, set: 'editor', actions: null, expires_at: null };
    const refused = await site.send(staff, 'POST', 'resources/grants', fields);
    expect([refused.status, refused.body.errors?.[0]?.code]).toEqual([422, 'unknown_object']);
    expect((await site.get(staff, 'resources/grants')).body.items).toEqual([]);
    await grant(database.db, { subject: `user:${staff.userId}`, actions: ['view', 'share'], object: on() });
    const tooMuch = await site.send(staff, 'POST', 'resources/grants', fields);
    expect([tooMuch.status, tooMuch.body.code]).toEqual([403, 'cannot_grant']);
    const made = await site.send(root, 'POST', 'resources/grants', fields);
    expect(made.status).toBe(201);
    const user = { id: colleague, username: 'colleague', email: null, is_active: true, is_staff: false, is_superuser: false };
    expect(await actionsOf(database.db, user, on())).toEqual(new Set(['view', 'change']));
    expect((await site.send(staff, 'DELETE', `resources/grants/${made.body.id}`)).status).toBe(404);
    expect((await site.send(root, 'DELETE', `resources/grants/${made.body.id}`)).status).toBe(200);
    expect(await actionsOf(database.db, user, on())).toEqual(new Set(['view']));
    for (const [change, code] of [
      [{ type: 'planets' }, 'unknown_type'],
      [{ object: '01890000-0000-7000-8000-000000000000' }, 'unknown_object'],
      [{ subject: 'nobody' }, 'unknown_subject'],
      [{ set: 'emperor' }, 'unknown_set'],
    ] as const)
      expect((await site.send(root, 'POST', 'resources/grants', { ...fields, ...change })).body.errors?.[0]?.code).toBe(code);
  });
});
