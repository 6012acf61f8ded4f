import { expect, test } from 'vitest';
import { prepareAccountsAndKeys, startKeyApp } from '../../../test/key-app.ts';
import { createApp } from '../../app/assemble/create-app.ts';
import { accountsOf } from '../accounts/users/accounts.ts';
import { deactivateUser } from '../accounts/users/manage-users.ts';
import { countQueries } from '../../db/engine/query-observer.ts';
import { openApiDocument } from '../../openapi/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { apiKeys } from './module.ts';

describeDatabases(
  'apiKeys()',
  (database) => {
    test('1,000 requests cost 1,000 statements and no write; closing the app writes when the key was last used', async () => {
      const db = await database.open();
      const kit = await startKeyApp(db);
      const { id, raw } = await kit.key(await kit.user('ada'));
      const { queries } = await countQueries(async () => {
        for (let request = 0; request < 1000; request += 1) {
          const { status } = await kit.call('GET', '/v1/whoami', { 'x-api-key': raw });
          if (status !== 200) throw new Error(`request ${request} got ${status}`);
        }
      });
      expect(queries).toHaveLength(1000);
      expect(queries.filter(({ sql }) => !/^\s*select/.test(sql))).toEqual([]);
      await kit.app.close();
      const [row] = await database.db.query<{ last_used_at: Date }>('select last_used_at from api_keys where id = $1', [id]);
      expect(row?.last_used_at).toEqual(kit.clock.now());
    });

    test('with the cache a request costs no statement, and a user deactivated through accounts is out at once', async () => {
      const db = await database.open();
      const kit = await startKeyApp(db, { keys: { cache: { maxAgeMs: 60_000 } } });
      const bob = await kit.user('bob');
      const { raw } = await kit.key(bob);
      const ask = () => countQueries(() => kit.call('GET', '/v1/whoami', { 'x-api-key': raw }));
      expect((await ask()).result.status).toBe(200);
      expect((await ask()).count).toBe(0);
      await deactivateUser(db, bob.id, accountsOf(kit.app.db).management(null));
      expect((await ask()).result.status).toBe(401);
      await kit.app.close();
    });

    test('API_KEY_PEPPER is the pepper of an app, and must be long enough', async () => {
      const [db, other] = [await database.open(), await database.open()];
      const kit = await startKeyApp(db, { app: { settings: { apiKeyPepper: 'a pepper of some length' } } });
      const { raw } = await kit.key(await kit.user('carol'));
      expect((await kit.call('GET', '/v1/whoami', { 'x-api-key': raw })).status).toBe(200);
      const without = await startKeyApp(other);
      expect((await without.call('GET', '/v1/whoami', { 'x-api-key': raw })).status).toBe(401);
      await Promise.all([kit.app.close(), without.app.close()]);
      await expect(startKeyApp(db, { app: { settings: { apiKeyPepper: 'short' } } })).rejects.toThrow(/API_KEY_PEPPER has fewer than 16/);
    });

    test('the OpenAPI document names both ways to present a key and marks the one place that shows one', async () => {
      const kit = await startKeyApp(await database.open());
      const document: unknown = openApiDocument(kit.app.routes, { title: 'Shop', version: '1' });
      expect(document).toMatchObject({
        components: {
          securitySchemes: {
            api_key: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
            api_key_bearer: { type: 'http', scheme: 'bearer' },
          },
        },
      });
      const { paths, components } = document as {
        paths: Record<string, Record<string, { responses?: Record<string, { $ref?: string }> }>>;
        components: { schemas: object; responses: Record<string, object> };
      };
      const shared = ({ $ref }: { $ref?: string }) => components.responses[$ref?.split('/').at(-1) ?? ''] ?? {};
      const secret = Object.entries(components.schemas).filter(([, schema]) => JSON.stringify(schema).includes('"x-sensitive":true'));
      const showing = Object.entries(paths).flatMap(([path, operations]) =>
        Object.entries(operations)
          .map(
            ([method, { responses = {} }]) =>
              [method, JSON.stringify(Object.values(responses).map((each) => [each, shared(each)]))] as const,
          )
          .filter(([, responses]) => secret.some(([name]) => responses.includes(`/${name}"`)))
          .map(([method]) => `${method} ${path}`),
      );
      expect(showing.sort()).toEqual(['post /v1/api-keys', 'post /v1/api-keys/{id}/rotate']);
      await kit.app.close();
    });

    test('an app without users is told what is missing', async () => {
      const db = await database.open();
      const start = () => createApp({ database: db, modules: [apiKeys()], mount: {}, log: { level: 'silent' } });
      expect(start).toThrow(/accounts\(\).*users/);
    });
  },
  { prepare: prepareAccountsAndKeys, template: 'accounts_and_keys' },
);

test('every fault of the options is reported at once, and a pepper never appears in the message', () => {
  const options = { tag: 'K', pepper: 'hunter2', maxKeysPerOwner: 0, failedAttempts: 'often', cache: { maxAgeMs: 0 }, tags: 1 };
  let message = '';
  try {
    apiKeys(options);
  } catch (error) {
    ({ message } = error as Error);
  }
  for (const part of [
    'unknown option "tags". Did you mean "tag"?',
    '2 to 8',
    'pepper is not valid',
    'maxKeysPerOwner',
    'failedAttempts',
    'maxAgeMs',
  ]) {
    expect(message).toContain(part);
  }
  expect(message).not.toContain('hunter2');
});
