import { expect, test } from 'vitest';
import { publicNames } from './public-names.ts';
import { releasedPage, renaming } from './renamed.ts';

test.each([
  ['acme-api', { toolkit: 'acme-api', configServer: 'acme-api-config-server', create: 'create-acme-api', createCommand: 'acme-api' }],
  ['@acme/api', { toolkit: '@acme/api', configServer: '@acme/api-config-server', create: '@acme/create-api', createCommand: '@acme/api' }],
])('every package name follows from %s', (name, names) => {
  expect(publicNames(name)).toEqual(names);
});

test.each(['kit', '@kit/api', '', 'Acme', 'a b', '@acme', '../x', '.hidden', 'a'.repeat(201)])('%j cannot be the public name', (name) => {
  expect(() => publicNames(name)).toThrow(/belongs to another project|is not a package name/);
});

test.each([
  [`import { createApp } from 'kit';`, `import { createApp } from '@acme/api';`],
  [`const { createApp } = await import("kit");`, `const { createApp } = await import("@acme/api");`],
  [`import 'kit';`, `import '@acme/api';`],
  [`import { model } from 'kit/db';`, `import { model } from '@acme/api/db';`],
  ['"jobs" comes with jobs() from kit/contrib/jobs: add it', '"jobs" comes with jobs() from @acme/api/contrib/jobs: add it'],
  ["from 'kit/contrib/grants/backends'", "from '@acme/api/contrib/grants/backends'"],
  ['import type { Source } from "@kit/config-server/client"', 'import type { Source } from "@acme/api-config-server/client"'],
  ['npm install ~/kit/dist/kit.tgz zod', 'npm install @acme/api zod'],
  ['npm i ~/kit/dist/kit-config-server.tgz', 'npm i @acme/api-config-server'],
  ['npm create {create}@latest my-app', 'npm create @acme/api@latest my-app'],
  // The program keeps its name, and so does everything that only looks like the package.
  ['npx kit migrate', 'npx kit migrate'],
  ["new Command('kit')", "new Command('kit')"],
  ['packages/kit/db', 'packages/kit/db'],
  ['urn:kit:error:not_found', 'urn:kit:error:not_found'],
  ['kit/db-extra kit/unknown', 'kit/db-extra kit/unknown'],
  ['`${cache}/kit`', '`${cache}/kit`'],
])('%j becomes %j', (text, renamed) => {
  const rename = renaming(publicNames('@acme/api'), ['db', 'contrib/jobs', 'contrib/grants', 'contrib/grants/backends']);
  expect(rename(text)).toBe(renamed);
});

test('a released page has the install lines of the registry in the place of those of a clone', () => {
  const page = 'a\n<!-- unreleased -->\nnpm run pack\n<!-- /unreleased -->\n<!-- released\nnpm create {create}@latest\n-->\nb\n';
  expect(releasedPage(page)).toBe('a\nnpm create {create}@latest\nb\n');
});
