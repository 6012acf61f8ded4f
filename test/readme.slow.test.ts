import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { migrateApp, type App } from 'kit';
import { accountsOf, createUser } from 'kit/contrib/accounts';
import { codeBlocks, links, read, root, titleOf } from './docs/pages.ts';

const README = 'README.md';
const DOCS = 'docs/README.md';

/** Every entry point of the published packages, as it is imported. */
function entryPoints(): string[] {
  return ['kit', 'config-server'].flatMap((folder) => {
    const { name, exports } = JSON.parse(readFileSync(join(root, 'packages', folder, 'package.json'), 'utf8')) as {
      name: string;
      exports: Record<string, unknown>;
    };
    return Object.keys(exports)
      .filter((subpath) => subpath !== './package.json')
      .map((subpath) => name + subpath.slice(1));
  });
}

test('every public entry point has a row in the table of parts, with a page to read', () => {
  const rows = read(DOCS)
    .split('\n')
    .filter((line) => /^\|.*\|.*\|.*\|.*\|$/.test(line));
  const listed = new Set(rows.flatMap((row) => [...(row.split('|')[3] ?? '').matchAll(/`([^`]+)`/g)].map(([, name]) => name)));
  expect(entryPoints().length).toBeGreaterThan(20);
  expect(entryPoints().filter((name) => !listed.has(name))).toEqual([]);
  expect([...listed].filter((name) => !entryPoints().includes(name ?? ''))).toEqual([]);
  expect(rows.slice(2).filter((row) => links(row).length === 0)).toEqual([]);
});

test('the README and the first page of the documentation begin with the same words and the same two commands', () => {
  const paragraph = (page: string): string => read(page).split('\n\n')[1]?.replaceAll(/\s+/g, ' ') ?? '';
  const commands = (page: string): string[] =>
    codeBlocks(page)
      .filter(({ language }) => language === 'sh')
      .slice(0, 2)
      .map(({ text }) => text.replace(/\s+#.*$/, '').trim());
  expect(paragraph(DOCS)).toBe(paragraph(README));
  expect(commands(DOCS)).toEqual(['npm ci && npm start', 'npm ci && npm test']);
  expect(commands(README)).toEqual(commands(DOCS));
});

test('the twelve lines are twelve lines, and an API: a user logs in and creates a note that only they see', async () => {
  const block = codeBlocks(README).find((each) => titleOf(each) === 'kit.config.ts');
  const lines = block?.text.split('\n').filter((line) => line !== '') ?? [];
  expect(lines).toHaveLength(12);
  mkdirSync(join(root, 'node_modules/.cache'), { recursive: true });
  const folder = mkdtempSync(join(root, 'node_modules/.cache/readme-'));
  const file = join(folder, 'kit.config.ts');
  writeFileSync(file, lines.join('\n').replace('sqlite:./data', `sqlite:${folder}`));
  const { default: app } = (await import(pathToFileURL(file).href)) as { default: App };
  onTestFinished(async () => {
    await app.close();
    rmSync(folder, { recursive: true, force: true });
  });
  await migrateApp(app);
  await app.ready();
  const password = 'a long and odd one 7';
  await createUser(app.db, { username: 'ada', password }, accountsOf(app.db).management('test'));
  const login = await app.inject({ method: 'POST', url: '/v1/account/login', payload: { login: 'ada', password } });
  const headers = {
    cookie: String(login.headers['set-cookie']).split(';')[0],
    'x-csrf-token': login.json<{ csrf_token: string }>().csrf_token,
  };
  const created = await app.inject({ method: 'POST', url: '/v1/notes', headers, payload: { title: 'Milk' } });
  expect(created.statusCode).toBe(201);
  const url = `/v1/notes/${created.json<{ id: string }>().id}`;
  expect((await app.inject({ url, headers })).json()).toMatchObject({ title: 'Milk' });
  expect((await app.inject(url)).statusCode).toBe(401);
  expect((await app.inject('/docs')).statusCode).toBe(200);
});
