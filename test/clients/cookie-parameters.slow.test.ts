import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Controller, allowAny, route } from 'kit';
import { generateClient } from 'kit/openapi';
import { testApp, type TestApp } from 'kit/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { runScript } from './run-script.ts';

const PYTHON = ['/usr/bin/python3', 'python3'].find(
  (each) => spawnSync(each, ['-c', 'import httpx, sys; assert sys.version_info >= (3, 11)']).status === 0,
);
const FIVE_MINUTES = 300_000;

const Seen = z.strictObject({ theme: z.string(), size: z.int().nullable(), sent: z.array(z.string()) });

class PageController extends Controller {
  show = route.get(
    '/:id',
    {
      permission: allowAny,
      cookies: z.strictObject({ theme: z.string(), size: z.int().optional() }),
      response: Seen,
    },
    ({ cookies, request, reply }) => {
      // Clients that keep cookies have two of their own then, one of them with the name of an argument.
      reply.header('set-cookie', ['kept=1; Path=/', 'theme=kept; Path=/']);
      return { theme: cookies.theme, size: cookies.size ?? null, sent: (request.headers.cookie ?? '').split('; ') };
    },
  );
}

const folder = mkdtempSync(join(tmpdir(), 'kit-cookies-'));
let app: TestApp;
let url: string;

beforeAll(async () => {
  app = await testApp({ mount: { '/v1': { '/pages': PageController } } });
  url = await app.listen();
  for (const [language, file] of [
    ['typescript', 'api.ts'],
    ['python', 'api.py'],
  ] as const)
    writeFileSync(join(folder, file), generateClient(app.app.routes, { language, title: 'Pages', version: '1' }));
});
afterAll(async () => {
  await app.close();
  rmSync(folder, { recursive: true, force: true });
});

test('the TypeScript client sends arguments as cookies, beside those of a header of its own', async () => {
  // oxlint-disable-next-line typescript/no-explicit-any -- the generated client is not known to the compiler
  const { createClient, isProblem }: any = await import(join(folder, 'api.ts'));
  const client = createClient({ baseUrl: url });
  expect(await client.page.show({ id: '1', theme: 'a; b=ü"', size: 3 })).toEqual({
    theme: 'a; b=ü"',
    size: 3,
    sent: ['theme=a%3B%20b%3D%C3%BC%22', 'size=3'],
  });
  const withHeader = createClient({ baseUrl: url, headers: { cookie: 'kept=1; theme=old' } });
  expect(await withHeader.page.show({ id: '1', theme: 'dark' })).toEqual({ theme: 'dark', size: null, sent: ['kept=1', 'theme=dark'] });
  const refused = await client.page.show({ id: '1' }).catch((error: unknown) => error);
  expect([isProblem(refused), refused.errors]).toMatchObject([true, [{ location: ['cookies', 'theme'], code: 'required' }]]);
});

test('the Python client sends arguments as cookies, beside those that httpx keeps', { timeout: FIVE_MINUTES }, async (context) => {
  context.skip(PYTHON === undefined && process.env['KIT_REQUIRE_PYTHON'] === undefined, 'Python with httpx is not installed');
  const script = `import asyncio, os, api
client = api.Client(os.environ["URL"])
for theme in ("a; b=\\u00fc", "dark"):
    seen = client.page.show(id="1", theme=theme, size=3)
    print(seen.theme == theme, seen.size, sorted(seen.sent))

async def main() -> None:
    async with api.AsyncClient(os.environ["URL"]) as own:
        print((await own.page.show(id="1", theme="light")).sent)

asyncio.run(main())
`;
  writeFileSync(join(folder, 'main.py'), script);
  const { stdout, stderr } = await runScript(PYTHON!, ['main.py'], folder, { URL: url });
  expect([stderr, stdout.trim().split('\n')]).toEqual([
    '',
    ["True 3 ['size=3', 'theme=a%3B%20b%3D%C3%BC']", "True 3 ['kept=1', 'size=3', 'theme=dark']", "['theme=light']"],
  ]);
});
