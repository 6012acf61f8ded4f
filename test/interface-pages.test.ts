import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from './architecture/module-graph.ts';

/** The members of an exported interface, in the order in which they are written. */
function membersOf(file: string, name: string): string[] {
  const source = readFileSync(join(root, 'packages/kit/src', file), 'utf8');
  const body = new RegExp(`^export interface ${name}\\b[^{]*\\{\\n(.*?)^\\}`, 'ms').exec(source)?.[1];
  if (body === undefined) throw new Error(`${file} has no interface ${name}`);
  return [...body.matchAll(/^ {2}(?:readonly )?(\w+)\??[:(]/gm)].map(([, member]) => member as string);
}

/** Names in the first column of the page's tables: `name`, `name(…)`, several of them in one cell. */
function listedOn(page: string): Set<string> {
  const rows = readFileSync(join(root, 'docs/reference', page), 'utf8').matchAll(/^\| (`[^|]*`[^|]*)\|/gm);
  return new Set([...rows].flatMap(([, cell]) => [...(cell as string).matchAll(/`(\w+)[`(]/g)].map(([, name]) => name as string)));
}

test.each([
  ['app.md', 'app/declare/options.ts', 'AppOptions'],
  ['modules.md', 'app/declare/module.ts', 'Module'],
  ['testing.md', 'testing/test-app.ts', 'TestApp'],
  ['testing.md', 'testing/test-app.ts', 'TestAppOptions'],
  ['auth.md', 'auth/people/user-table.ts', 'UserTable'],
  ['auth.md', 'auth/people/user-directory.ts', 'UserDirectory'],
  ['webhooks.md', 'contrib/webhooks/publishing/checked-call.ts', 'PublishOptions'],
  ['webhooks.md', 'contrib/webhooks/publishing/audience.ts', 'AudienceOptions'],
])('%s lists every member of %s: %s', (page, file, name) => {
  const listed = listedOn(page);
  const members = membersOf(file, name);
  expect(members.length).toBeGreaterThan(2);
  expect(members.filter((member) => !listed.has(member))).toEqual([]);
});
