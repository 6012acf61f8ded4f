import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { API, type Checker, SymbolFlags, type Type } from 'typescript/unstable/sync';
import { beforeAll, expect, test } from 'vitest';
import { root } from '../architecture/module-graph.ts';

const config = join(import.meta.dirname, 'exports.tsconfig.json');
const kit = join(root, 'packages', 'kit');

/** Kysely's own, under another name. */
const FOREIGN = new Set(['sqlFragment']);
/** The exports that the guides begin with: each shows its use. */
const MAIN = new Set(
  `createApp Controller route page defineErrors errors raw multipart hasScopes hasRule all any isOwner model t migration find list
   insert update openDatabase CrudController resource filter one many visibleTo writableBy job startJob jobs uploads webhooks publish
   audit accounts apiKeys createApiKey objectActions objectGrants hasGrant grant grants sharing service clientThrottle userThrottle
   testApp definePlugin verifySignature domainEvent on emit seed admin modelResource crudOf requestLog metrics tracing jwtBearer`.split(
    /\s+/,
  ),
);

interface Described {
  /** `./crud resource`. */
  readonly name: string;
  readonly documentation: string;
  readonly hasExample: boolean;
  readonly isValue: boolean;
}

const exported: Described[] = [];
/** Members of options, as `./crud ResourceOptions.owner`. */
const undescribedMembers: string[] = [];
let memberCount = 0;

/** Types whose members a user writes: by their name, or because an exported function takes an object of them that has none. */
const OPTIONS = /(?:Options|Definition|Settings)$/;

beforeAll(() => {
  const { exports } = JSON.parse(readFileSync(join(kit, 'package.json'), 'utf8')) as {
    exports: Record<string, { source: string } | string>;
  };
  const api = new API({ cwd: root });
  try {
    const project = api.updateSnapshot({ openProjects: [config] }).getProject(config);
    if (project === undefined) throw new Error(`${config} cannot be opened.`);
    const { checker, program } = project;
    const seen = new Set<number>();
    for (const [subpath, target] of Object.entries(exports)) {
      const file = typeof target === 'string' ? undefined : program.getSourceFile(join(kit, target.source));
      const module = file === undefined ? undefined : checker.getSymbolAtLocation(file);
      if (module === undefined) continue;
      for (const each of checker.getExportsOfModule(module)) {
        const symbol = (each.flags & SymbolFlags.Alias) === 0 ? each : checker.getAliasedSymbol(each);
        if (FOREIGN.has(each.name) || seen.has(symbol.id)) continue;
        seen.add(symbol.id);
        const isValue = (symbol.flags & SymbolFlags.Value) !== 0;
        const documentation = checker.getDocumentationCommentOfSymbol(symbol);
        // A block of code in the comment is an example, too: editors show both alike.
        const hasExample = documentation.includes('```') || checker.getJsDocTagsOfSymbol(symbol).some(({ name }) => name === 'example');
        exported.push({ name: `${subpath} ${each.name}`, documentation, hasExample, isValue });
        if (!isValue && OPTIONS.test(each.name)) lookAtMembers(checker, `${subpath} ${each.name}`, checker.getDeclaredTypeOfSymbol(symbol));
      }
    }
  } finally {
    api.close();
  }
}, 300_000);

function lookAtMembers(checker: Checker, place: string, type: Type): void {
  for (const member of checker.getPropertiesOfType(type)) {
    memberCount += 1;
    if (checker.getDocumentationCommentOfSymbol(member) === '') undescribedMembers.push(`${place}.${member.name}`);
  }
}

test('every exported function, class and constant has a description', () => {
  expect(exported.filter(({ isValue, documentation }) => isValue && documentation === '').map(({ name }) => name)).toEqual([]);
});

test('every member of exported options has a description', () => {
  expect(undescribedMembers).toEqual([]);
  // That the walk found them: fewer is a fault of this test.
  expect(memberCount).toBeGreaterThan(300);
});

test('each main export has an example', () => {
  const known = new Set(exported.map(({ name }) => name.split(' ')[1]));
  expect([...MAIN].filter((name) => !known.has(name))).toEqual([]);
  const without = exported.filter(({ name, hasExample }) => MAIN.has(name.split(' ')[1] ?? '') && !hasExample);
  expect(without.map(({ name }) => name)).toEqual([]);
});
