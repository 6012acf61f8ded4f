import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { pages, read, root } from './docs/pages.ts';

// Until the packages are published, their names on the registry belong to other people: `npm install kit` runs a stranger's code.

const manifests = globSync('packages/*/package.json', { cwd: root }).map(
  (file) => JSON.parse(readFileSync(join(root, file), 'utf8')) as { name: string; bin?: Record<string, string> },
);
const programs = new Set(manifests.flatMap(({ bin }) => Object.keys(bin ?? {})));
const isOurs = (name: string): boolean => programs.has(name) || name.startsWith('@kit/') || manifests.some((each) => each.name === name);

const images = globSync('deploy/**/*{Dockerfile,dockerfile,compose.yaml}*', { cwd: root });
const texts = [...pages(), ...images].map((page) => ({ page, text: read(page) }));

const INSTALL = /\b(?:npm|pnpm|yarn|bun)\s+(?:-\S+\s+)*(?:i|in|install|add|exec|x|dlx|create|init|update)\b([^`\n|&;#]*)/g;
const NPX_PACKAGE = /\b(?:npx|bunx)\b[^`\n|&;#]*?\s(?:-p|--package)[=\s]+(\S+)/g;
const DEPENDENCY = /"(kit|@kit\/[\w-]+)":\s*"(?!file:|workspace:)[^"]*\d[^"]*"/g;

/** Packages of ours that text tells its reader to take from the registry. */
function fromRegistry(text: string): string[] {
  const named = [...text.matchAll(INSTALL), ...text.matchAll(NPX_PACKAGE)].flatMap(([, rest = '']) => rest.trim().split(/\s+/));
  const packages = named
    .filter((word) => !/^[-~./$"']|\.tgz\b/.test(word))
    .map((word) => /^(@[^@/]+\/)?[^@]+/.exec(word)?.[0] ?? '')
    .filter(isOurs);
  return [...packages, ...[...text.matchAll(DEPENDENCY)].map(([, name = '']) => name)];
}

test('no page shows a command that installs a stranger under our name: every install line is the tarball', () => {
  expect(texts.map(({ page }) => page)).toEqual(
    expect.arrayContaining(['README.md', 'docs/guide/first-api.md', 'packages/admin-ui/README.md', 'deploy/docker/Dockerfile']),
  );
  expect(texts.flatMap(({ page, text }) => fromRegistry(text).map((name) => `${page}: ${name}`))).toEqual([]);
});

test('a page that runs our programs with npx, which would fetch a stranger, says or links how to install them first', () => {
  const bare = texts.filter(({ text }) => {
    const runs = [...text.matchAll(/\bnpx\s+([\w@/-]+)/g)].some(([, name = '']) => programs.has(name));
    return runs && !/\.tgz\b|first-api\.md|(?:guide\/|\]\()config-server\.md/.test(text);
  });
  expect(bare.map(({ page }) => page)).toEqual([]);
});

test.each([
  ['npm i kit', ['kit']],
  ['`npm install --save-exact kit zod`', ['kit']],
  ['npm i zod @kit/config-server@1.0.0', ['@kit/config-server']],
  ['RUN npm --quiet install --global @kit/config-server', ['@kit/config-server']],
  ['pnpm add kit@latest && echo done', ['kit']],
  ['npx --package kit kit start', ['kit']],
  ['npm exec config-server server.toml', ['config-server']],
  ['"dependencies": { "kit": "^1.0.0" }', ['kit']],
  ['npm install ~/kit/dist/kit.tgz zod     # wherever your clone is', []],
  ['RUN npm install --global /tmp/kit-config-server.tgz', []],
  ['npm i dist/kit.tgz', []],
  ['npm ci && npm run pack', []],
  ['npm init -y', []],
  ['npm install express pg', []],
])('found in %j: %j', (text, names) => {
  expect(fromRegistry(text)).toEqual(names);
});
