import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AdminApp, type Browser } from '../../test/admin/admin-app.ts';
import { apiKeys, createApiKey, revokeApiKey, rotateApiKey, verifyApiKey } from '../contrib/apikeys/index.ts';
import { Controller, route } from '../http/index.ts';
import { hasScopes } from '../permissions/index.ts';
import { describeDatabases } from '../testing/databases.ts';

class OrderController extends Controller {
  list = route.get('/', { permission: hasScopes(), scope: 'orders:read' }, () => undefined);
}

describeDatabases('API keys in the admin site', (database) => {
  let site: AdminApp;
  let staff: Browser;

  beforeAll(async () => {
    site = await new AdminApp(database.db, [apiKeys()], { mount: { '/v1': { '/orders': OrderController } } }).ready();
    staff = await site.browser();
  });
  afterAll(() => site.close());

  const newKey = async (name: string, owner?: string) => {
    const user = owner === undefined ? await site.newUser() : { id: owner };
    return createApiKey(database.db, { user, name, scopes: ['orders:read'] });
  };
  const titles = async (query: string): Promise<string[]> =>
    (await site.get(staff, `resources/api-keys?${query}`)).body.items.map((item: { title: string }) => item.title);
  const read = async (id: string) => (await site.get(staff, `resources/api-keys/${id}`)).body;

  test('are found by name, prefix and owner, and filtered by state and owner', async () => {
    const owner = await site.newUser({ username: 'keykeeper' });
    const [first, second] = [await newKey('deploy north', owner.id), await newKey('deploy south', owner.id)];
    await revokeApiKey(database.db, second.apiKey.id);
    expect(await titles('search=DEPLOY')).toEqual(['deploy south', 'deploy north']);
    expect(await titles(`search=${first.apiKey.prefix}`)).toEqual(['deploy north']);
    expect(await titles('search=keykeep')).toEqual(['deploy south', 'deploy north']);
    expect(await titles('search=deploy&filter.state=revoked')).toEqual(['deploy south']);
    expect(await titles('search=deploy&filter.state=active')).toEqual(['deploy north']);
    for (const filter of ['keykeeper', owner.id])
      expect(await titles(`filter.owner=${filter}&sort=name`)).toEqual(['deploy north', 'deploy south']);
    await site.act(staff, 'users', 'deactivate', [owner.id]);
    expect(await titles('filter.state=owner_inactive')).toEqual(['deploy north']);
  });

  test('a search that is longer than a prefix can be finds keys by their name', async () => {
    const { apiKey } = await newKey('invoices of the eastern office');
    expect(await titles('search=invoices+of+the+eastern+office')).toEqual([apiKey.name]);
    expect(await titles('search=invoices+of+no+office+at+all')).toEqual([]);
    expect(await titles(`filter.owner=${'x'.repeat(300)}`)).toEqual([]);
  });

  test('the page of a user lists their keys once, without the owner; the list has one filter of owners', async () => {
    const owner = await site.newUser();
    const { apiKey } = await newKey('listed on a page', owner.id);
    const { sections } = (await site.get(staff, `resources/users/${owner.id}`)).body;
    const keys = sections.filter(({ title }: { title: string }) => title === 'API keys');
    expect(keys).toMatchObject([
      {
        rows: [{ id: apiKey.id, title: 'listed on a page' }],
        more: { resource: 'api-keys', filters: { owner: owner.id } },
      },
    ]);
    expect(keys[0].columns.map(({ name }: { name: string }) => name)).toEqual(['name', 'prefix', 'state', 'last_used_at']);
    const shape = (await site.get(staff, 'session')).body.site.resources.find(({ name }: { name: string }) => name === 'api-keys');
    expect(shape.filters.map(({ name }: { name: string }) => name)).toEqual(['state', 'owner', 'tenant', 'used', 'expires', 'revoked']);
  });

  test('paging by a column that may be empty shows every key once', async () => {
    const owner = await site.newUser();
    for (const days of [3, null, 1, null, 2]) {
      const expiresAt = days === null ? null : new Date(site.clock.now().getTime() + days * 86_400_000);
      await createApiKey(database.db, { user: owner, name: `in ${days}`, scopes: [], expiresAt });
    }
    for (const [sort, expected] of [
      ['expires_at', ['in 1', 'in 2', 'in 3', 'in null', 'in null']],
      ['-expires_at', ['in 3', 'in 2', 'in 1', 'in null', 'in null']],
    ] as const) {
      const walked: string[] = [];
      for (let cursor: string | null = ''; cursor !== null;) {
        const { body } = await site.get(staff, `resources/api-keys?filter.owner=${owner.id}&limit=1&sort=${sort}&cursor=${cursor}`);
        walked.push(...body.items.map((item: { title: string }) => item.title));
        cursor = body.next;
      }
      expect(walked).toEqual(expected);
    }
  });

  test('are edited: name, scopes, rate limit and expiry, recorded with what changed', async () => {
    const { apiKey } = await newKey('before');
    const answer = await site.send(staff, 'PATCH', `resources/api-keys/${apiKey.id}`, {
      name: 'after',
      scopes: ['orders:*'],
      rate_limit: '10/min',
      expires_at: '2027-01-01T00:00:00Z',
    });
    expect(answer).toMatchObject({ status: 200, body: { message: 'after saved.', id: apiKey.id } });
    const record = await read(apiKey.id);
    expect(record.form.values).toEqual({
      name: 'after',
      scopes: ['orders:*'],
      rate_limit: '10/min',
      quota: null,
      expires_at: '2027-01-01T00:00:00.000Z',
    });
    expect(record.form.fields.find((field: { name: string }) => field.name === 'scopes').suggestions).toEqual([
      'orders:read',
      'orders:*',
      '*',
    ]);
    const [newest] = record.sections.at(-1).entries;
    expect(newest).toMatchObject({ title: 'API key updated', actor: expect.any(String) });
    expect(newest.changes.map(({ name }: { name: string }) => name)).toEqual(['expires_at', 'name', 'rate_limit', 'scopes']);
    await site.send(staff, 'PATCH', `resources/api-keys/${apiKey.id}`, { rate_limit: null, expires_at: null });
    expect((await read(apiKey.id)).form.values).toMatchObject({ rate_limit: null, expires_at: null });
  });

  test('saving what is there already changes and records nothing', async () => {
    const { apiKey } = await newKey('same');
    const before = await read(apiKey.id);
    const answer = await site.send(staff, 'PATCH', `resources/api-keys/${apiKey.id}`, before.form.values);
    expect(answer.body.message).toBe('Nothing was changed.');
    expect((await read(apiKey.id)).sections).toEqual(before.sections);
  });

  test('a key of a superuser is edited by superusers only; every staff member can revoke it', async () => {
    const owner = await site.browser({ is_staff: true, is_superuser: true });
    const { apiKey } = await newKey('narrow', owner.userId);
    const path = `resources/api-keys/${apiKey.id}`;
    const record = await read(apiKey.id);
    expect(record.actions).toEqual(['revoke']);
    expect(record.form.fields.map(({ name, refused }: { name: string; refused?: string }) => [name, typeof refused])).toEqual(
      ['name', 'scopes', 'rate_limit', 'quota', 'expires_at'].map((name) => [name, 'string']),
    );
    expect(record.notice.text).toContain('Only a superuser');
    for (const fields of [{ scopes: ['*'] }, { name: 'mine' }, { expires_at: null, rate_limit: '9/s' }])
      expect((await site.send(staff, 'PATCH', path, fields)).status).toBe(403);
    expect((await site.act(staff, 'api-keys', 'edit-selected', [apiKey.id], { scopes: ['*'] })).body.failures).toHaveLength(1);
    expect((await read(apiKey.id)).values.scopes).toEqual(['orders:read']);
    expect((await site.send(owner, 'PATCH', path, { scopes: ['orders:*'] })).status).toBe(200);
    expect((await site.act(staff, 'api-keys', 'revoke', [apiKey.id])).body.failures).toBeUndefined();
  });

  test('a form with thousands of unknown fields is answered with the first hundred', async () => {
    const { apiKey } = await newKey('flooded');
    const fields = Object.fromEntries(Array.from({ length: 9_000 }, (_, index) => [`n${index}`, 1]));
    const answer = await site.send(staff, 'PATCH', `resources/api-keys/${apiKey.id}`, fields);
    expect(answer.status).toBe(422);
    expect(answer.body.errors).toHaveLength(100);
  });

  test.each([
    ['name', '', 'required'],
    ['name', 'x'.repeat(101), 'too_big'],
    ['name', 7, 'invalid_type'],
    ['scopes', ['not a scope'], 'invalid_scope'],
    ['scopes', 'orders:read', 'invalid_type'],
    ['rate_limit', 'often', 'invalid_rate'],
    ['expires_at', '2020-01-01T00:00:00Z', 'in_the_past'],
    ['expires_at', 'tomorrow', 'invalid_format'],
    ['digest', 'x', 'unknown_field'],
    ['revoked_at', null, 'unknown_field'],
  ])('%s = %j is a 422 at the field', async (name, value, code) => {
    const { apiKey } = await newKey('faulty');
    const answer = await site.send(staff, 'PATCH', `resources/api-keys/${apiKey.id}`, { [name]: value });
    expect(answer.status).toBe(422);
    expect(answer.body.errors[0].location.slice(0, 2)).toEqual(['body', name]);
    expect(answer.body.errors[0].code).toBe(code);
  });

  test('"Revoke selected keys" ends them at once, keeps the reason, and closes the form', async () => {
    const made = [await newKey('one'), await newKey('two')];
    const ids = made.map(({ apiKey }) => apiKey.id);
    const shape = (await site.get(staff, 'session')).body.site.resources.find((each: { name: string }) => each.name === 'api-keys');
    expect(shape.actions.map(({ name }: { name: string }) => name)).toEqual(['revoke', 'edit-selected']);
    expect(shape.actions[0]).toMatchObject({
      label: { one: 'Revoke', many: 'Revoke selected keys' },
      on: 'selection',
      confirm: { one: expect.any(String), many: expect.any(String) },
    });
    expect((await site.act(staff, 'api-keys', 'revoke', [...ids, 'nonsense'], { reason: 'leaked' })).body).toMatchObject({
      message: '2 API keys revoked; 1 failed.',
      failures: [{ id: 'nonsense' }],
    });
    for (const { raw } of made) expect(await verifyApiKey(database.db, raw)).toBeNull();
    const record = await read(ids[0] ?? '');
    expect(record.form).toBeUndefined();
    expect(record.actions).toEqual([]);
    expect(record.sections[0].values).toMatchObject({ state: { value: 'revoked' }, revoked_reason: 'leaked' });
    const named = ({ sections: [facts] }: typeof record) => facts.columns.map(({ name }: { name: string }) => name);
    expect(named(record)).toEqual(expect.arrayContaining(['revoked_at', 'revoked_reason']));
    expect(named(await read((await newKey('in use')).apiKey.id)).filter((name: string) => name.startsWith('revoked'))).toEqual([]);
    expect(await site.send(staff, 'PATCH', `resources/api-keys/${ids[0]}`, { name: 'x' })).toMatchObject({ status: 409 });
  });

  test('the dialog says which of the selected keys were revoked before', async () => {
    const [old, other] = [(await newKey('old')).apiKey.id, (await newKey('other')).apiKey.id];
    await revokeApiKey(database.db, old, { reason: 'first' });
    const preview = async (...ids: string[]) =>
      (await site.send(staff, 'POST', 'resources/api-keys/actions/revoke/preview', { ids, fields: {} })).body;
    const kept = 'already revoked: the date and the reason stay as they are.';
    expect(await preview(old, other)).toMatchObject({ tone: 'warning', note: `1 key of 2 is ${kept}` });
    expect(await preview(old)).toMatchObject({ tone: 'warning', note: `The key is ${kept}` });
    expect((await preview(other)).note).toBeUndefined();
  });

  test('cannot be created there, and the answer says why', async () => {
    const answer = await site.send(staff, 'POST', 'resources/api-keys', { name: 'x' });
    expect(answer).toMatchObject({ status: 409, body: { code: 'not_creatable', detail: expect.stringContaining('shown once') } });
  });

  test('an API key, even of staff with every scope, opens nothing of the site', async () => {
    const { raw } = await createApiKey(database.db, { user: await site.newUser({ is_staff: true }), name: 'all', scopes: ['*'] });
    for (const headers of [{ 'x-api-key': raw }, { authorization: `Bearer ${raw}` }] as Record<string, string>[])
      for (const path of ['api/session', 'api/overview', 'api/resources/api-keys'])
        expect((await site.call('GET', path, headers)).status).toBe(401);
  });

  test('no action shows a secret of another user: keys are edited and revoked here, and rotated by their owner', async () => {
    const { apiKey, raw } = await newKey('private');
    expect((await site.get(staff, `resources/api-keys/${apiKey.id}`)).body.actions).toEqual(['revoke']);
    expect((await site.act(staff, 'api-keys', 'rotate', [apiKey.id])).status).toBe(404);
    expect(await verifyApiKey(database.db, raw)).not.toBeNull();
  });

  test('the rotation and its grace are shown', async () => {
    const { apiKey } = await newKey('rotating');
    await rotateApiKey(database.db, apiKey, { graceSeconds: 3600 });
    expect((await read(apiKey.id)).sections[1].values).toMatchObject({ previous: 'still works beside the new one' });
  });

  describe('the overview', () => {
    test('counts keys that are active, used, about to expire and revoked', async () => {
      site.clock.advance(60_000);
      const part = (await site.get(staff, 'overview?range=7d')).body.parts.find((each: { title: string }) => each.title === 'API keys');
      const tiles = Object.fromEntries(part.tiles.map((tile: { label: string; value: number }) => [tile.label, tile.value]));
      expect(tiles['Revoked']).toBeGreaterThanOrEqual(3);
      expect(tiles['Expire within 7 days']).toBe(3);
      expect(part.charts[0].buckets).toHaveLength(28);
      expect(part.charts[0].series[0].values).toHaveLength(28);
    });

    test('an unknown range is a 422', async () => {
      expect((await site.get(staff, 'overview?range=1y')).status).toBe(422);
    });
  });

  test('neither a key nor a digest was in any answer', async () => {
    const rows = await database.db.query<{ digest: string; previous_digest: string | null }>(
      'select digest, previous_digest from api_keys',
    );
    const digests = rows.flatMap((row) => [row.digest, row.previous_digest]).filter((digest) => digest !== null);
    const everything = site.answers.join('\n');
    for (const digest of digests) expect(everything).not.toContain(digest);
    expect(everything).not.toMatch(/\bkit_[A-Za-z0-9]{12}_/);
    expect(everything).not.toContain('$scrypt$');
  });
});
