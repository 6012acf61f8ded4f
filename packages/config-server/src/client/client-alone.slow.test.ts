import { execFile } from 'node:child_process';
import { cp, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../test/temporary-folder.ts';

const here = import.meta.dirname;
const isTest = (name: string): boolean => name.endsWith('.test.ts');

test('the client half imports Node built-ins and its own folder; of packages only the types of Standard Schema', async () => {
  for (const name of (await readdir(here)).filter((name) => !isTest(name))) {
    const source = (await readFile(join(here, name), 'utf8')).replace(/^import type .* from '@standard-schema\/spec';$/m, '');
    for (const [, from] of source.matchAll(/(?:from|import)\s*\(?'([^']+)'/g)) expect(`${name}: ${from}`).toMatch(/: (node:|\.\/)/);
  }
});

test('the client half runs in a folder that holds neither the server nor any dependency', async () => {
  const folder = await temporaryFolder();
  await cp(here, join(folder, 'client'), { recursive: true, filter: (path) => !isTest(path) });
  const script = `
    import { RemoteSource } from '${join(folder, 'client', 'index.ts')}';
    const source = new RemoteSource({ url: 'http://127.0.0.1:1', application: 'a', profile: 'b', token: 'x'.repeat(32) });
    console.log((await source.refresh()).error.kind);
  `;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script], { cwd: folder });
  expect(stdout.trim()).toBe('remote');
});

test('the subpath @kit/config-server/client loads no file outside the client folder', async () => {
  const script = `
    import { registerHooks } from 'node:module';
    const loaded = [];
    registerHooks({ load(url, context, next) { loaded.push(url); return next(url, context); } });
    await import('@kit/config-server/client');
    console.log(JSON.stringify(loaded.filter((url) => url.startsWith('file:') && !url.includes('/src/client/'))));
  `;
  const options = ['--conditions=source', '--input-type=module', '--eval', script];
  const { stdout } = await promisify(execFile)(process.execPath, options, { cwd: join(here, '..', '..') });
  expect(JSON.parse(stdout)).toEqual([]);
});
