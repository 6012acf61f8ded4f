import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Module } from '../../src/app/index.ts';
import { ApiKeyController, createApiKey } from '../../src/contrib/apikeys/index.ts';
import { grants, objectActions, objectGrants, sharing } from '../../src/contrib/grants/index.ts';
import { CrudController, many, one, resource } from '../../src/crud/index.ts';
import { createTable, migration, model, softDelete, t } from '../../src/db/index.ts';
import { Controller, jsonSchema, route } from '../../src/http/index.ts';
import { hasRole, isAuthenticated } from '../../src/permissions/index.ts';
import { describeDatabases } from '../../src/testing/databases.ts';
import { type AuthApp, Browser, member, startAuthApp, userId, WhoController } from './auth-app.ts';

const owned = { org: t.text(64).readOnly(), owner_id: t.text(64).readOnly(), title: t.text(100), ...softDelete() };
const binders = model('binders', { id: t.uuidv7().pk(), ...owned }, { indexes: [{ columns: ['org', '-id'] }] });
const paperIndexes = [{ columns: ['org', '-id'] }, { columns: ['binder_id', '-id'] }];
const papers = model('papers', { id: t.uuidv7().pk(), ...owned, binder_id: t.ref(() => binders).nullable() }, { indexes: paperIndexes });
const actions = ['view', 'change', 'delete', 'share'] as const;
const sets = { viewer: ['view'], manager: ['viewer', 'change', 'delete', 'share'] } as const;
const binderActions = objectActions(binders, { actions, sets, subjects: ['tenant', 'authenticated', 'public'] });
const paperActions = objectActions(papers, { actions, sets, through: 'binder_id', subjects: ['tenant', 'authenticated', 'public'] });
const binderResource = resource(binders, {
  tenant: 'org',
  owner: 'owner_id',
  access: grants(binders),
  input: ['title'],
  relations: { papers: many(() => papers, 'binder_id', { limit: 20 }) },
  softDelete: { cascade: ['papers'] },
});
const paperResource = resource(papers, {
  tenant: 'org',
  owner: 'owner_id',
  access: grants(papers),
  input: ['title', 'binder_id'],
  relations: { binder: one(() => binders, 'binder_id') },
});
const listed = { permission: isAuthenticated, restore: true, export: ['jsonl'] as const };
class Binders extends sharing(CrudController(binderResource, { ...listed, export: ['jsonl'], expand: ['papers'] })) {}
class Papers extends sharing(CrudController(paperResource, { ...listed, export: ['jsonl'], expand: ['binder'] })) {}

const drawer: Module = {
  name: 'drawer',
  models: [binders, papers],
  migrations: [
    migration('0001_initial', [
      createTable('binders', binders.columns, { indexes: [{ columns: ['org', '-id'] }] }),
      createTable('papers', { ...papers.columns, binder_id: t.ref('binders').nullable() }, { indexes: paperIndexes }),
    ]),
  ],
};

const Line = jsonSchema<object>({});
class News extends Controller {
  /** For members. */
  all = route.stream('/', { permission: hasRole('owner', 'admin', 'member'), response: Line, heartbeatMs: 50 }, endless);
  admins = route.stream('/admins', { permission: hasRole('owner', 'admin'), response: Line, heartbeatMs: 50 }, endless);
  /** Anybody who is logged in; the tenant is not asked for. */
  own = route.stream('/own', { permission: isAuthenticated, response: Line, heartbeatMs: 50 }, endless);
}
async function* endless({ signal }: { readonly signal: AbortSignal }): AsyncGenerator<{ data: object }> {
  yield { data: {} };
  await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
}

type Org = 'north' | 'south';
interface Paper {
  readonly id: string;
  readonly org: Org;
  readonly owner: string;
  /** Who sees it in its organization. */
  shared: readonly string[] | 'all';
  /** Who sees it because of its binder. */
  inherited: readonly string[];
  isDeleted: boolean;
}

describeDatabases('organizations as tenants, with soft deletion and grants', (database) => {
  let here: AuthApp;
  let url = '';
  const people = new Map<string, Browser>();
  const orgs = new Map<Org, string>();
  const keys = new Map<string, string>();
  const world: Paper[] = [];
  const members: Record<Org, Set<string>> = { north: new Set(), south: new Set() };

  const of = (name: string): Browser => people.get(name) as Browser;
  const as = (org: Org) => ({ 'x-organization': orgs.get(org) ?? org });
  const id = (name: string) => userId(database.db, `${name}@example.com`);
  const join = async (org: Org, name: string, role = 'member'): Promise<void> => {
    const boss = org === 'north' ? 'nora' : 'sue';
    const email = `${name}@example.com`;
    const { body, status, text } = await of(boss).post('/auth/organization/invite-member', { email, role, organizationId: orgs.get(org) });
    expect([status, status === 200 ? '' : text]).toEqual([200, '']);
    expect((await of(name).post('/auth/organization/accept-invitation', { invitationId: body.id })).status).toBe(200);
    members[org].add(name);
  };
  const memberId = async (org: Org, name: string): Promise<string> => {
    const [row] = await database.db.query<{ id: string }>('select "id" from "member" where "organizationId" = $1 and "userId" = $2', [
      orgs.get(org),
      await id(name),
    ]);
    return row?.id ?? '';
  };
  const write = async (org: Org, owner: string, title: string, binder: string | null = null): Promise<Paper> => {
    const { status, body, text } = await of(owner).post(
      '/v1/papers',
      { title, ...(binder === null ? {} : { binder_id: binder }) },
      as(org),
    );
    expect([status, status === 201 ? '' : text]).toEqual([201, '']);
    const paper: Paper = { id: body.id as string, org, owner, shared: [], inherited: [], isDeleted: false };
    world.push(paper);
    return paper;
  };
  const share = async (paper: Paper, subject: string, set = 'viewer'): Promise<number> =>
    (await of(paper.owner).call('PUT', `/v1/papers/${paper.id}/grants`, { subject, set }, as(paper.org))).status;

  /** What a person is shown of each paper, by every way to read, as session and as API key; compared with what the rules say. */
  const compare = async (step: string): Promise<void> => {
    for (const [name, browser] of people)
      for (const org of ['north', 'south'] as const) {
        const isMember = members[org].has(name);
        const shown = (paper: Paper, isDeleted: boolean): boolean =>
          isMember &&
          paper.org === org &&
          paper.isDeleted === isDeleted &&
          (paper.owner === name ||
            paper.shared === 'all' ||
            paper.shared.includes(name) ||
            // Nothing passes through a parent that is deleted.
            (!isDeleted && paper.inherited.includes(name)));
        const wanted = world.filter((paper) => shown(paper, false)).map((paper) => paper.id);
        const program = new Browser(here.app);
        const key = { 'x-api-key': keys.get(name) ?? '' };
        for (const [way, get] of [
          ['session', (path: string) => browser.get(path, as(org))],
          ['key', (path: string) => program.get(path, { ...as(org), ...key })],
        ] as const) {
          const place = `${step}: ${name} in ${org} by ${way}`;
          const list = await get('/v1/papers?limit=100');
          const bin = await get('/v1/papers?limit=100&deleted=only');
          const file = await get('/v1/papers/export?format=jsonl');
          if (!isMember) {
            expect([place, list.status, bin.status, file.status]).toEqual([place, 403, 403, 403]);
            expect([list, bin, file].map(({ body }) => body.code)).toEqual(['not_a_member', 'not_a_member', 'not_a_member']);
            continue;
          }
          const ids = (items: readonly { id: string }[]) => items.map((item) => item.id).toSorted();
          expect([place, ids(list.body.items)]).toEqual([place, wanted.toSorted()]);
          expect([place, ids(bin.body.items)]).toEqual([
            place,
            world
              .filter((paper) => shown(paper, true))
              .map((paper) => paper.id)
              .toSorted(),
          ]);
          const lines = file.text.split('\n').filter(Boolean);
          expect([place, ids(lines.map((line) => JSON.parse(line) as { id: string }))]).toEqual([place, wanted.toSorted()]);
        }
        for (const paper of world) {
          const { status } = await browser.get(`/v1/papers/${paper.id}`, as(org));
          expect([step, name, org, status]).toEqual([step, name, org, !isMember ? 403 : shown(paper, false) ? 200 : 404]);
        }
      }
  };

  beforeAll(async () => {
    here = await startAuthApp(database.db, {
      modules: [
        drawer,
        objectGrants({
          objects: [binderActions, paperActions],
          isInTenant: async (db, user, organization) =>
            (await db.query('select 1 from "member" where "userId" = $1 and "organizationId" = $2', [user.id, organization])).length > 0,
        }),
      ],
      app: {
        mount: { '/v1': { '/who': WhoController, '/api-keys': ApiKeyController, '/binders': Binders, '/papers': Papers, '/news': News } },
      },
    });
    url = await here.app.listen({ port: 0 });
    for (const name of ['nora', 'max', 'mia', 'sue', 'eve']) {
      const browser = await member(here, `${name}@example.com`);
      people.set(name, browser);
      // Made before its owner has an organization, and for all that follow.
      const { raw } = await createApiKey(here.app.db, { user: await id(name), name: 'script', scopes: [], tenant: '*' });
      keys.set(name, raw);
    }
    for (const [org, boss] of [
      ['north', 'nora'],
      ['south', 'sue'],
    ] as const) {
      const { body } = await of(boss).post('/auth/organization/create', { name: org, slug: org });
      orgs.set(org, body.id as string);
      members[org].add(boss);
    }
    await join('north', 'max');
    await join('north', 'mia');
    await join('south', 'mia');
  });
  afterAll(() => here.app.close());

  test(
    'nothing is visible across organizations, whatever is deleted, restored, shared and left in between',
    { timeout: 300_000 },
    async () => {
      const first = await write('north', 'max', 'of max');
      const second = await write('north', 'nora', 'for mia');
      const third = await write('south', 'sue', 'of sue');
      const fourth = await write('south', 'mia', 'of mia in south');
      await compare('at the beginning');

      expect(await share(second, `user:${await id('mia')}`)).toBe(200);
      second.shared = ['mia'];
      expect(await share(third, 'tenant')).toBe(200);
      third.shared = 'all';
      expect(await share(first, 'authenticated')).toBe(200);
      first.shared = 'all';
      // Users of other organizations are unknown subjects.
      for (const stranger of ['sue', 'eve']) expect(await share(first, `user:${await id(stranger)}`)).toBe(422);
      await compare('shared');

      for (const paper of [first, second]) {
        expect((await of(paper.owner).call('DELETE', `/v1/papers/${paper.id}`, undefined, as('north'))).status).toBe(204);
        paper.isDeleted = true;
      }
      await compare('deleted');

      // mia leaves north while what was shared with her is deleted; max is removed while his paper is.
      expect((await of('mia').post('/auth/organization/leave', { organizationId: orgs.get('north') })).status).toBe(200);
      members.north.delete('mia');
      const removed = { memberIdOrEmail: await memberId('north', 'max'), organizationId: orgs.get('north') };
      expect((await of('nora').post('/auth/organization/remove-member', removed)).status).toBe(200);
      members.north.delete('max');
      await compare('left and removed');
      for (const [method, path] of [
        ['POST', `papers/${first.id}/restore`],
        ['DELETE', `papers/${first.id}`],
        ['PATCH', `papers/${first.id}`],
        ['GET', `papers/${first.id}/grants`],
        ['POST', 'papers'],
      ] as const) {
        const body = path === 'papers' || method === 'PATCH' ? { title: 'x' } : undefined;
        expect([path, (await of('max').call(method, `/v1/${path}`, body, as('north'))).status]).toEqual([path, 403]);
        // In another organization it does not exist; a new one is created there.
        const elsewhere = await of('mia').call(method, `/v1/${path}`, body, as('south'));
        expect([path, elsewhere.status]).toEqual([path, path === 'papers' ? 201 : 404]);
        if (path === 'papers')
          world.push({ id: elsewhere.body.id as string, org: 'south', owner: 'mia', shared: [], inherited: [], isDeleted: false });
      }

      expect((await of('nora').call('POST', `/v1/papers/${second.id}/restore`, undefined, as('north'))).status).toBe(200);
      second.isDeleted = false;
      await compare('restored after the member left');

      await join('north', 'max', 'admin');
      await compare('back, with another role');
      expect((await of('max').call('POST', `/v1/papers/${first.id}/restore`, undefined, as('north'))).status).toBe(200);
      first.isDeleted = false;
      await compare('restored by a member who is back');

      // A binder takes its papers along, and gives what is granted on it.
      const { body: binder } = await of('nora').post('/v1/binders', { title: 'binder' }, as('north'));
      const inside = await write('north', 'nora', 'inside', binder.id as string);
      expect(
        (
          await of('nora').call(
            'PUT',
            `/v1/binders/${binder.id}/grants`,
            { subject: `user:${await id('max')}`, set: 'viewer' },
            as('north'),
          )
        ).status,
      ).toBe(200);
      inside.inherited = ['max'];
      await compare('inherited');
      // Nothing is moved below a parent of another organization.
      expect((await of('mia').call('PATCH', `/v1/papers/${fourth.id}`, { binder_id: binder.id }, as('south'))).status).toBe(422);
      expect((await of('nora').call('DELETE', `/v1/binders/${binder.id}`, undefined, as('north'))).status).toBe(204);
      inside.isDeleted = true;
      await compare('deleted with its binder');
      await database.db.query('delete from "member" where "id" = $1', [await memberId('north', 'max')]);
      members.north.delete('max');
      expect((await of('nora').call('POST', `/v1/binders/${binder.id}/restore`, undefined, as('north'))).status).toBe(200);
      inside.isDeleted = false;
      await compare('restored with its binder, after another program removed the member');

      // The organization goes: its rows stay, and nobody is shown them, not even whoever takes its name.
      const north = orgs.get('north') ?? '';
      expect((await of('nora').post('/auth/organization/delete', { organizationId: north })).status).toBe(200);
      members.north.clear();
      await compare('the organization is deleted');
      for (const slug of ['north', north]) {
        const { body, status } = await of('eve').post('/auth/organization/create', { name: 'North', slug, id: north });
        expect(status).toBe(200);
        expect(body.id).not.toBe(north);
        for (const asked of [slug, body.id as string]) {
          const { body: page } = await of('eve').get('/v1/papers?limit=100', { 'x-organization': asked });
          expect(page.items ?? []).toEqual([]);
        }
        expect((await of('eve').get(`/v1/papers/${second.id}`, { 'x-organization': slug })).status).toBe(404);
      }
    },
  );

  describe('a stream ends', () => {
    /** Reads a stream to its end. */
    const follow = async (
      name: string,
      path: string,
      headers: Record<string, string>,
    ): Promise<{ ended: Promise<string>; stop: () => void }> => {
      const stop = new AbortController();
      const cookie = [...of(name).cookies].map(([key, value]) => `${key}=${value}`).join('; ');
      const response = await fetch(`${url}/v1/news${path}`, {
        headers: { ...('x-api-key' in headers ? {} : { cookie }), ...headers },
        signal: stop.signal,
      });
      expect(response.status).toBe(200);
      return { ended: response.text().catch(() => 'stopped'), stop: () => stop.abort() };
    };
    const asKey = (name: string) => ({ ...as('south'), 'x-api-key': keys.get(name) ?? '' });

    test('when its caller leaves the organization, by session and by API key; other streams go on', async () => {
      const [session, key, own, other] = [
        await follow('mia', '', as('south')),
        await follow('mia', '', asKey('mia')),
        await follow('mia', '/own', {}),
        await follow('sue', '', as('south')),
      ];
      expect((await of('mia').post('/auth/organization/leave', { organizationId: orgs.get('south') })).status).toBe(200);
      for (const { ended } of [session, key]) expect(await ended).toMatch(/event: error\ndata: .*"code":"not_a_member"/);
      // A look of the server that would end the others, too, is over by then.
      const pending = await Promise.race([Promise.all([own.ended, other.ended]), delay(1500).then(() => 'open')]);
      expect(pending).toBe('open');
      for (const { stop } of [own, other]) stop();
    });

    test('when the role of its caller changes', async () => {
      await join('south', 'max', 'admin');
      const stream = await follow('max', '/admins', as('south'));
      const change = { memberId: await memberId('south', 'max'), role: 'member', organizationId: orgs.get('south') };
      expect((await of('sue').post('/auth/organization/update-member-role', change)).status).toBe(200);
      expect(await stream.ended).toMatch(/event: error\ndata: .*"code":"permission_denied"/);
      const again = await of('max').get('/v1/news/admins', as('south'));
      expect(again.status).toBe(403);
    });

    test('when its session is revoked, or its user is banned by another program', async () => {
      const revoked = await follow('max', '', as('south'));
      expect((await of('max').post('/auth/revoke-sessions')).status).toBe(200);
      expect(await revoked.ended).toMatch(/"code":"invalid_credentials"/);
      const key = await follow('max', '', asKey('max'));
      await database.db.query('update "user" set "banned" = $2 where "id" = $1', [
        await id('max'),
        database.dialect === 'sqlite' ? 1 : true,
      ]);
      expect(await key.ended).toMatch(/"code":"invalid_credentials"/);
    });

    test('when the organization is deleted', async () => {
      const stream = await follow('sue', '', as('south'));
      expect((await of('sue').post('/auth/organization/delete', { organizationId: orgs.get('south') })).status).toBe(200);
      expect(await stream.ended).toMatch(/"code":"not_a_member"/);
    });
  });
});
