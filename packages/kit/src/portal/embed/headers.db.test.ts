import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { siteFolder } from '../../../test/admin/admin-app.ts';
import { addPerson, people } from '../../../test/people.ts';
import { createApp } from '../../app/assemble/create-app.ts';
import { migrateApp } from '../../app/data/migration-modules.ts';
import type { App } from '../../app/index.ts';
import { ApiKeyController, apiKeys } from '../../contrib/apikeys/index.ts';
import { describeDatabases } from '../../testing/databases.ts';
import { portal, portalLink } from '../index.ts';

const ORIGINS = ['https://app.example.com', 'https://console.example.com'];
const files = siteFolder();
afterAll(() => files.remove());

describeDatabases('headers of the portal in a frame, over HTTP', (database) => {
  let app: App;
  /** One database serves one app at a time. */
  async function listen(embedIn: readonly string[]): Promise<string> {
    app = createApp({
      database: database.db,
      users: people,
      modules: [apiKeys(), portal({ site: files.url, embedIn })],
      mount: { '/v1': { '/api-keys': ApiKeyController } },
      log: { level: 'silent' },
    });
    await migrateApp(app);
    return app.listen({ port: 0 });
  }

  beforeAll(async () => {
    await database.db.execute(
      'create table people (person_no text primary key, handle text, mail text, enabled boolean not null, staff boolean not null, root boolean not null)',
    );
    await addPerson(database.db, 'ada');
  });
  afterEach(() => app.close());

  test('nothing for frames unless origins are declared', async () => {
    const url = await listen([]);
    for (const path of ['/portal/embed', '/portal/kit-portal.js', '/portal/embed/']) {
      const response = await fetch(url + path);
      expect(response.status, `path ${path}`).toBe(404);
      expect(response.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
      expect(response.headers.get('x-frame-options')).toBe('DENY');
    }
  });

  test('pages of the origins frame the page for frames alone; no cookie, no guessing of types, nothing kept that holds a token', async () => {
    const url = await listen(ORIGINS);
    const page = await fetch(`${url}/portal/embed?theme=dark`);
    expect(page.status).toBe(200);
    expect(page.headers.get('content-security-policy')).toMatch(
      /default-src 'none'; script-src 'self'; .*frame-ancestors https:\/\/app\.example\.com https:\/\/console\.example\.com$/,
    );
    expect(page.headers.get('x-frame-options')).toBeNull();

    const session = async (headers: Record<string, string>, body: object) =>
      fetch(`${url}/portal/link`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      });
    const { token } = await portalLink(app.db, { user: 'no-ada' });
    // The frame is a page of the portal: its requests have the origin of the API, never that of the page around it.
    for (const origin of [...ORIGINS, 'https://evil.example', 'null'])
      expect((await session({ origin }, { token, framed: true })).status, `from ${origin}`).toBe(403);
    const opened = await session({}, { token, framed: true });
    expect(opened.status).toBe(200);
    const { token: secret } = (await opened.json()) as { token: string };
    const shown = await fetch(`${url}/portal/api/session`, { headers: { 'x-portal-session': secret } });
    expect(shown.status).toBe(200);
    const refused = await fetch(`${url}/portal/api/session`, { headers: { 'x-portal-session': `${secret}x` } });
    expect(refused.status).toBe(401);
    for (const response of [page, opened, shown, refused]) {
      expect(response.headers.getSetCookie()).toEqual([]);
      expect(response.headers.get('x-content-type-options')).toBe('nosniff');
      expect(response.headers.get('cache-control')).toBe('no-store');
      expect(response.headers.get('referrer-policy')).toBe('no-referrer');
      expect(response.headers.get('access-control-allow-origin')).toBeNull();
    }
    for (const response of [opened, shown, await fetch(`${url}/portal/`)]) {
      expect(response.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
      expect(response.headers.get('x-frame-options')).toBe('DENY');
    }
    const element = await fetch(`${url}/portal/kit-portal.js`);
    expect([element.status, element.headers.get('x-content-type-options'), element.headers.getSetCookie()]).toEqual([200, 'nosniff', []]);
  });
});
