import { existsSync, readdirSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { newProject, type NewProjectOptions } from './new-project.ts';
import { TEMPLATES } from './project-files.ts';

const templates = join(import.meta.dirname, '../../../templates');
const workspace = join(import.meta.dirname, '../../../../..');

let parent = '';
beforeEach(async () => void (parent = await mkdtemp(join(tmpdir(), 'kit-new-test-'))));
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(parent, { recursive: true, force: true });
});

const create = (folder: string, options: Partial<NewProjectOptions> = {}) =>
  newProject({
    folder: join(parent, folder),
    template: 'minimal',
    templates,
    toolkit: { name: 'acme-api', source: () => ({ spec: '^1.2.3' }) },
    install: false,
    signal: new AbortController().signal,
    step: (_, work) => work(),
    ...options,
  });

/** A registry that refuses connections. */
const offline = (): void =>
  void vi.stubEnv('npm_config_registry', 'http://127.0.0.1:1/').stubEnv('npm_config_cache', join(parent, '.cache'));

describe.each(TEMPLATES)('the template %s', (template) => {
  test('has everything a project needs, under the name of its folder', async () => {
    const { name, files } = await create('blue-bikes', { template });
    expect(name).toBe('blue-bikes');
    for (const file of [
      '.dockerignore',
      '.env.example',
      '.github/workflows/ci.yml',
      '.gitignore',
      'Dockerfile',
      'README.md',
      'compose.yaml',
    ])
      expect(files).toContain(file);
    for (const file of ['kit.config.ts', 'package.json', 'src/app.ts', 'tsconfig.json']) expect(files).toContain(file);
    for (const file of files) expect(await readFile(join(parent, name, file), 'utf8')).not.toContain('{{');
    const compose = parse(await readFile(join(parent, name, 'compose.yaml'), 'utf8'), { merge: true }) as {
      name: unknown;
      services: object;
    };
    expect(compose).toMatchObject({ name: 'blue-bikes', services: { api: { image: 'blue-bikes' }, migrate: { image: 'blue-bikes' } } });
    const manifest = JSON.parse(await readFile(join(parent, name, 'package.json'), 'utf8')) as Record<string, unknown>;
    expect(manifest).toMatchObject({
      name: 'blue-bikes',
      private: true,
      dependencies: { 'acme-api': '^1.2.3', zod: expect.any(String) as string },
    });
    // A template that named the toolkit would install the package of a stranger.
    expect(JSON.stringify(manifest)).not.toContain('"kit"');
  });

  test('installs the versions that the workspace is tested with', async () => {
    const manifest = JSON.parse(await readFile(join(templates, template, '_package.json'), 'utf8')) as Record<
      'dependencies' | 'devDependencies' | 'overrides',
      Record<string, string>
    >;
    for (const [name, version] of Object.entries({ ...manifest.dependencies, ...manifest.devDependencies, ...manifest.overrides })) {
      const installed = JSON.parse(await readFile(join(workspace, 'node_modules', name, 'package.json'), 'utf8')) as { version: string };
      expect([name, version]).toEqual([name, installed.version]);
    }
  });

  test('has a README whose commands are scripts of its package.json, and whose files exist', async () => {
    const { files } = await create('blue-bikes', { template });
    const readme = await readFile(join(parent, 'blue-bikes/README.md'), 'utf8');
    const { scripts } = JSON.parse(await readFile(join(parent, 'blue-bikes/package.json'), 'utf8')) as { scripts: object };
    expect(readme).toContain('```sh\nnpm install && npm start\n```\n\n```sh\nnpm install && npm test\n```');
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(['dev', 'start', 'test']));
    const named = [...readme.matchAll(/^\| (`[^|]+)\|/gm)].flatMap(([, cell = '']) =>
      [...cell.matchAll(/`([^`]+)`/g)].map(([, path = '']) => path),
    );
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((path) => !files.some((file) => file === path || file.startsWith(path)))).toEqual([]);
  });
});

describe('nothing is left behind', () => {
  test('by a folder that is not empty: it stays as it is', async () => {
    await mkdir(join(parent, 'used'));
    await writeFile(join(parent, 'used/work.txt'), 'mine');
    await expect(create('used')).rejects.toThrow(/used is not empty \(work\.txt\)\. Choose another folder\./);
    expect(readdirSync(join(parent, 'used'))).toEqual(['work.txt']);
  });

  test('by the name of a file', async () => {
    await writeFile(join(parent, 'used'), 'mine');
    await expect(create('used')).rejects.toThrow(/used is a file/);
    await expect(create('used/app')).rejects.toThrow(/cannot be (?:used|created)/);
    expect(await readFile(join(parent, 'used'), 'utf8')).toBe('mine');
  });

  test.each([
    ['My App', /"My App" cannot be the name of a package.*For example: my-app$/],
    ['.hidden', /For example: hidden$/],
    ['ünï', /For example: uni$/],
    ['http', /reserved by npm or Node\. For example: http-api/],
    ['node_modules', /reserved/],
    ['zod', /depends on.*For example: my-zod/],
    ['acme-api', /depends on/],
    ['a'.repeat(215), /215 characters/],
  ])('by the name %j', async (name, message) => {
    await expect(create(name)).rejects.toThrow(message);
    expect(readdirSync(parent)).toEqual([]);
  });

  test('without a network: the folders above it that were created are removed, too', async () => {
    offline();
    await expect(create('deep/er/app', { install: true })).rejects.toThrow(
      /could not be installed, so nothing was created\. npm reports:\n {2}/,
    );
    expect(existsSync(join(parent, 'deep'))).toBe(false);
  });

  test('without a network, in an empty repository: its history stays', async () => {
    offline();
    await mkdir(join(parent, 'cloned/.git'), { recursive: true });
    await expect(create('cloned', { install: true })).rejects.toThrow(/could not be installed/);
    expect(readdirSync(join(parent, 'cloned'))).toEqual(['.git']);
  });

  test('when it is interrupted while packages are installed', async () => {
    offline();
    const interrupted = new AbortController();
    const step: NewProjectOptions['step'] = (label, work) => {
      if (label === 'packages installed') interrupted.abort();
      return work();
    };
    await expect(create('app', { install: true, signal: interrupted.signal, step })).rejects.toThrow('Interrupted. Nothing was created.');
    expect(readdirSync(parent)).not.toContain('app');
  });

  test('when the toolkit cannot be found', async () => {
    const source = (): never => {
      throw new Error('no tarball');
    };
    await expect(create('app', { toolkit: { name: 'acme-api', source } })).rejects.toThrow('no tarball');
    expect(readdirSync(parent)).toEqual([]);
  });
});

test('an empty folder, and one with a new repository in it, become the project', async () => {
  await mkdir(join(parent, 'empty'));
  await mkdir(join(parent, 'cloned/.git'), { recursive: true });
  for (const folder of ['empty', 'cloned']) expect((await create(folder)).files).toContain('kit.config.ts');
});

test('the folder imports nothing from outside: it is a package of its own', async () => {
  for (const file of readdirSync(import.meta.dirname).filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts')))
    for (const [, from = ''] of (await readFile(join(import.meta.dirname, file), 'utf8')).matchAll(/from '([^']+)'/g))
      expect([file, from]).toEqual([file, expect.stringMatching(/^(?:node:|\.\/)/) as string]);
});
