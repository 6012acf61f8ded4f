import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { forbidden, mayReadEnvironment, mustNotImportFastify, RINGS, ROOMS } from './architecture/boundaries.ts';
import { findCycle, readSource, readSources, root } from './architecture/module-graph.ts';

const sources = readSources();

describe('imports go one way', () => {
  test('no file imports from a ring outside its own, no contrib module another, and no source an index.ts', () => {
    const faults = [...sources.values()].flatMap((file) =>
      file.imports.flatMap((target) => {
        const why = forbidden(file.path, target);
        return why === undefined ? [] : [`${file.path} imports ${target}: ${why}`];
      }),
    );
    expect(faults).toEqual([]);
  });

  test('every import of a relative path finds a file', () => {
    const lost = [...sources.values()].flatMap((file) =>
      file.imports.filter((target) => !existsSync(join(root, target))).map((target) => `${file.path} → ${target}`),
    );
    expect(lost).toEqual([]);
  });

  describe.each(Object.entries(ROOMS))('the rooms of %s', (folder, rooms) => {
    const within = `packages/kit/src/${folder}/`;
    const roomOf = (path: string) => (path.startsWith(within) ? rooms.indexOf(path.slice(within.length).split('/')[0] ?? '') : -1);
    const inside = [...sources.values()].filter(({ path }) => path.startsWith(within));

    test('hold every file but those that each module has', () => {
      const outside = inside.map(({ path }) => path).filter((path) => roomOf(path) === -1);
      const beside =
        /^(index|module|models|resource|options|errors|schemas|controller|commands|admin|portal|config|log|clock|dialect|main|program|version|webhooks|misspelt-events|unreachable-events|browser)\.ts$|^migrations\//;
      expect(outside.filter((path) => !beside.test(path.slice(within.length)))).toEqual([]);
    });

    test('are imported one way', () => {
      const faults = inside.flatMap(({ path, imports }) =>
        roomOf(path) === -1 ? [] : imports.filter((target) => roomOf(target) > roomOf(path)).map((target) => `${path} imports ${target}`),
      );
      expect(faults).toEqual([]);
    });
  });

  test('no folder of kit has more than 20 source files', () => {
    const counts = new Map<string, number>();
    for (const path of sources.keys())
      if (path.startsWith('packages/kit/')) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
    expect([...counts].filter(([, count]) => count > 20)).toEqual([]);
  });

  test('no source file of kit has more than 400 lines', () => {
    const long = [...sources.values()].filter(
      ({ path, text }) => path.startsWith('packages/kit/') && text.trimEnd().split('\n').length > 400,
    );
    expect(long.map(({ path }) => path)).toEqual([]);
  });

  test('the columns of a model are out of reach of the files that read, export, serve or describe', () => {
    const faults = [...sources.values()]
      .filter(({ path }) => /^packages\/kit\/src\/crud\/(parameters|read|mount|files|serve|inspect)\//.test(path))
      .filter(({ text, imports }) => /\.statements\b/.test(text) || imports.some((target) => target.endsWith('/db/model-statements.ts')));
    expect(faults.map(({ path }) => path)).toEqual([]);
  });

  test('a screen has words: no statement, and no text of one', () => {
    const faults = [...sources.values()].filter(
      ({ path, text }) =>
        path.startsWith('packages/kit/src/screens/') &&
        /\.query[(<]|whereSql\(|\bselect [^'\n]*\bfrom\b|['`](insert into|update|delete from) /.test(text),
    );
    expect(faults.map(({ path }) => path)).toEqual([]);
  });

  test.each([
    [
      'an object is told by isMembers',
      /typeof (\S+) [!=]== 'object' (\|\||&&) \1 [!=]== null (\|\||&&) !?Array\.isArray\(\1\)/,
      'options/value-rule.ts',
    ],
    ['an object without behaviour is told by isPlainObject', /[!=]== Object\.prototype\b/, 'options/value-rule.ts'],
    ['a full map forgets its oldest entry in BoundedMap', /\.keys\(\)\.next\(\)/, 'db/values/bounded-map.ts'],
    ['the steps of an issue are read by stepsOf', /typeof (step|part) === 'object' \?/, 'db/values/standard-schema.ts'],
    ['rules of writableBy are asked by unwritableColumns', /writableBy\b[^]*\.evaluate\(/, 'crud/policy/unwritable-columns.ts'],
  ])('each rule once: %s', (_rule, shape, place) => {
    const found = [...sources.values()].filter(({ path, text }) => path.startsWith('packages/kit/src/') && shape.test(text));
    expect(found.map(({ path }) => path)).toEqual([`packages/kit/src/${place}`]);
  });

  test('there is no import cycle, type-only imports included', () => {
    expect(findCycle(sources)).toBeUndefined();
  });

  test('domain code never imports the HTTP framework', () => {
    const faults = [...sources.values()].filter(
      (file) => mustNotImportFastify(file.path) && file.packages.some((name) => name === 'fastify' || name.startsWith('@fastify/')),
    );
    expect(faults.map((file) => file.path)).toEqual([]);
  });

  test('node:http is not imported: that would load the client behind fetch at every start', () => {
    const faults = [...sources.values()].filter(
      ({ path, text }) => /^packages\/(kit|config-server)\/src\//.test(path) && /^import (?!type )[^;]*'node:http'/m.test(text),
    );
    expect(faults.map(({ path }) => path)).toEqual([]);
  });

  test('the configuration server and kit do not import each other', () => {
    const faults = [...sources.values()].flatMap((file) => {
      const other = file.path.startsWith('packages/config-server/') ? /^kit(\/|$)/ : /^@kit\/config-server(\/|$)/;
      return file.packages.filter((name) => other.test(name)).map((name) => `${file.path} imports ${name}`);
    });
    expect(faults).toEqual([]);
  });
});

describe('files say what they hold', () => {
  test('the environment is read in main.ts and config.ts only', () => {
    const faults = [...sources.values()].filter((file) => /\bprocess\.env\b/.test(file.text) && !mayReadEnvironment(file.path));
    expect(faults.map((file) => file.path)).toEqual([]);
  });

  test('no drawer names: utils, helpers, common, misc, types', () => {
    expect([...sources.keys()].filter((path) => /\/(utils?|helpers?|common|misc|types)(\/|\.tsx?$)/.test(path))).toEqual([]);
  });

  test('index.ts re-exports by name and holds no code', () => {
    const faults = [...sources.values()]
      .filter((file) => file.path.endsWith('/index.ts'))
      .filter(
        (file) =>
          file.exports.includes('*') ||
          /^\s*(const|let|function|class|if|for)\b/m.test(file.text) ||
          /^export (default|const|function|class)/m.test(file.text),
      );
    expect(faults.map((file) => file.path)).toEqual([]);
  });
});

describe('transactions', () => {
  /** Not run again by the toolkit after a deadlock or a serialization failure, and why. */
  const ONCE: Readonly<Record<string, string>> = {
    'contrib/audit/chain/prune.ts': 'read-only: a snapshot',
    'contrib/audit/chain/verify-chain.ts': 'read-only: a snapshot',
    'contrib/better-auth/joined-kysely.ts': 'runs code of better-auth, which was not made to run twice',
    'contrib/jobs/manage/retry.ts': 'a savepoint of the transaction of the caller',
    'contrib/jobs/running/job-run.ts': 'runs code of the application; the job is retried',
    'contrib/jobs/running/steps.ts': 'runs code of the application; the job is retried',
    'contrib/jobs/running/claim-store.ts': 'SQLite only: it has one writer',
    'contrib/jobs/running/result-store.ts': 'SQLite only: it has one writer',
    'contrib/webhooks/delivery/result-store.ts': 'SQLite only: it has one writer',
    'app/data/run-seeds.ts': 'runs code of the application, once',
    'crud/live/change-reader.ts': 'read-only: a snapshot',
    'crud/live/live-events.ts': 'read-only: a snapshot',
    'crud/serve/many-rows.ts': 'a savepoint of the transaction of the request',
    'crud/write/row-writer.ts': 'always rolled back: it looks for the row that broke a rule',
  };

  test('of the toolkit are run again when they lose to another one', () => {
    const once = [...sources.values()]
      .filter(({ path }) => path.startsWith('packages/kit/src/') && !path.startsWith('packages/kit/src/db/'))
      .flatMap(({ path, text }) =>
        transactionsOf(text)
          .filter((call) => !/CONFLICT_RETRIES,?\s*\)$/.test(call))
          .map(() => path.slice('packages/kit/src/'.length)),
      );
    expect([...new Set(once)].sort()).toEqual(Object.keys(ONCE).sort());
  });

  test('are found in code, not in sentences', () => {
    expect(
      transactionsOf(`a = await db.transaction(async (tx) => { f(tx); }, X);\n * db.transaction(…)\n throw 'call db.transaction(x)';`),
    ).toEqual(['.transaction(async (tx) => { f(tx); }, X)']);
  });
});

/** The calls of `transaction()` in a source, to their closing parenthesis. */
function transactionsOf(text: string): string[] {
  return [...text.matchAll(/\.transaction\(/g)].flatMap(({ index }) => {
    const before = text.slice(text.lastIndexOf('\n', index) + 1, index);
    if (/^\s*(\*|\/\/|\/\*)|['`]/.test(before)) return [];
    let depth = 0;
    for (let end = index; end < text.length; end += 1) {
      if ('([{'.includes(text[end]!)) depth += 1;
      else if (')]}'.includes(text[end]!) && --depth === 0) return [text.slice(index, end + 1)];
    }
    return [];
  });
}

describe('test files', () => {
  test('that share a process mock no modules: an earlier file has loaded them', () => {
    const isolated = /\.(slow|scaled|long)\.test\.ts$|apikeys\/verify\/verify\.test\.ts$|test\/architecture\.test\.ts$/;
    const mocking = globSync('{packages,examples,docs,test,benchmarks}/**/*.test.ts', { cwd: root, exclude: ['**/node_modules/**'] })
      .filter((path) => !isolated.test(path))
      .filter((path) => /\bvi\.(mock|doMock|resetModules)\(/.test(readFileSync(join(root, path), 'utf8')));
    expect(mocking).toEqual([]);
  });

  test('say by their name when they run: those that do more in test:long are *.scaled.test.ts or *.scaled.db.test.ts, and no others', () => {
    const asks = /\bscaled\(|\['KIT_TEST_LONG'\] === '1'/;
    const wrong = globSync('{packages,examples,docs,test,scripts}/**/*.test.ts', { cwd: root, exclude: ['**/node_modules/**'] }).filter(
      (path) => /\.scaled\./.test(path) !== asks.test(readFileSync(join(root, path), 'utf8')),
    );
    expect(wrong).toEqual([]);
  });
});

describe('words', () => {
  /** Phrases that readers had to decode, and what to write instead. */
  const DIALECT: Readonly<Record<string, RegExp>> = {
    'invalid …': /\bthat (?:is|are) none\b/i,
    'again, rebuilt, reset': /\banew\b/i,
    forever: /\bfor ever\b/i,
    'the result of …': /\bwhat came of\b/i,
    'describes, reveals, reports': /\b(?:tells|speaks) of\b/i,
    'the audience, the caller': /\bto whom it\b|\bsays? whom\b|\bfor whom (?:is|a)\b/i,
    'lock, claim': /\btakes? hold of\b|TAKE_HOLD/,
    'locked by another transaction': /\bsomebody else has (?:locked|taken)\b/i,
    'heartbeat, tick': /\bbeatAfter\b|\bon a beat\b/i,
    'unmatched, accidental': /\bstrays?\b/i,
    'dry run': /\brehears(?:e|al)\b/i,
    'in vain: fails': /\bin vain\b/i,
    'Default: …': /\bunless given\b/i,
    permanently: /\bfor good\b/i,
    integer: /\bwhole numbers?\b/i,
    'refers to the unknown …': /\bnames no (?:column|model|relation|operation)\b/i,
    heartbeat: /heartheart/i,
    catalog: /\bcatalogue/i,
    recognize: /\brecognis/i,
    organization: /\borganisation/i,
    honor: /\bhonour/i,
    whitespace: /\bwhite space\b/i,
    lowercase: /\blower-case\b/i,
    setup: /\bset-up\b/i,
    'soft-deletes': /\bdeletes softly\b/i,
    'staff member': /\bmembers? of the staff\b/i,
    'attempts, retry schedule': /\bretry budget\b/i,
    'the events that it missed': /\bwhat it has missed\b/i,
    'converts to JSON Schema': /\bJSON Schema half\b/i,
    manage: /\blooks? after\b/i,
    'a string of …': /\b(?:is|be) a text of (?:1 to|at most)\b/i,
    'a non-empty string': /\b(?:text|string) that is not empty\b/i,
  };

  test('sources, tests and pages use plain words', () => {
    const paths = globSync('{packages,docs,examples,benchmarks,test,scripts,deploy}/**/*.{ts,tsx,md,yml}', {
      cwd: root,
      exclude: [
        '**/node_modules/**',
        '**/dist/**',
        '**/.peers/**',
        '**/.data/**',
        'test/architecture.test.ts',
        'packages/config-server/test/canary.slow.test.ts',
      ],
    });
    const found = [...paths, 'README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md'].flatMap((path) =>
      readFileSync(join(root, path), 'utf8')
        .split('\n')
        .flatMap((line, index) =>
          Object.entries(DIALECT).flatMap(([instead, phrase]) =>
            phrase.test(line) ? [`${path}:${index + 1} write "${instead}": ${line.trim()}`] : [],
          ),
        ),
    );
    expect(found).toEqual([]);
  });
});

describe('what a package offers is deliberate', () => {
  for (const folder of readdirSync(join(root, 'packages'))) {
    const manifest = JSON.parse(readFileSync(join(root, 'packages', folder, 'package.json'), 'utf8')) as {
      name: string;
      private?: boolean;
      exports?: Record<string, unknown>;
    };
    if (manifest.private === true) continue;
    test(`the exported names of ${manifest.name} are those of the snapshot`, async () => {
      const entries = Object.entries(manifest.exports ?? {}).flatMap(([subpath, target]) => {
        const source = typeof target === 'object' && target !== null && 'source' in target ? String(target.source) : undefined;
        return source === undefined ? [] : [{ subpath, file: readSource(join('packages', folder, source)) }];
      });
      const listing = entries
        .map(({ subpath, file }) => [`${manifest.name}${subpath.slice(1)}`, ...file.exports.map((name) => `  ${name}`)].join('\n'))
        .join('\n');
      await expect(`${listing}\n`).toMatchFileSnapshot(`architecture/exports-${folder}.txt`);
    });
  }
});

describe('the checks themselves', () => {
  const graph = (edges: Record<string, string[]>) => new Map(Object.entries(edges).map(([path, imports]) => [path, { imports }]));

  test('a cycle is found wherever it starts', () => {
    expect(findCycle(graph({ a: ['b'], b: ['c'], c: ['b'] }))).toEqual(['b', 'c', 'b']);
    expect(findCycle(graph({ a: ['b', 'c'], b: ['c'], c: [] }))).toBeUndefined();
  });

  test('imports are read from static, type-only, re-exporting and dynamic forms', () => {
    const file = readSource(
      'packages/kit/src/x/y.ts',
      `import type { A } from '../a.ts'; export { b } from './b.ts'; const c = await import('../c.ts'); import fs from 'node:fs';`,
    );
    expect(file.imports).toEqual(['packages/kit/src/a.ts', 'packages/kit/src/x/b.ts', 'packages/kit/src/c.ts']);
    expect(file.packages).toEqual(['node:fs']);
  });

  test('the boundaries refuse what the contract refuses', () => {
    const kit = (path: string): string => `packages/kit/src/${path}`;
    expect(forbidden(kit('http/declare/route.ts'), kit('crud/crud.ts'))).toBeDefined();
    expect(forbidden(kit('crud/crud.ts'), kit('contrib/audit/record.ts'))).toBeDefined();
    expect(forbidden(kit('contrib/apikeys/manage/create.ts'), kit('contrib/audit/record.ts'))).toBeDefined();
    expect(forbidden(kit('contrib/apikeys/manage/create.ts'), kit('contrib/jobs/start/start-job.ts'))).toBeUndefined();
    expect(forbidden(kit('app/assemble/create-app.ts'), kit('cli/main.ts'))).toBeDefined();
    expect(forbidden(kit('contrib/webhooks/publishing/publish.ts'), kit('db/engine/db.ts'))).toBeUndefined();
    expect(forbidden('packages/config-server/src/server.ts', kit('db/engine/db.ts'))).toBeDefined();
    expect(forbidden(kit('contrib/webhooks/controller.ts'), kit('http/index.ts'))).toBeDefined();
    expect(forbidden(kit('index.ts'), kit('http/index.ts'))).toBeUndefined();
  });

  test('ARCHITECTURE.md names every ring, in order', () => {
    const page = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8');
    expect(page).toContain(RINGS.map((ring) => `\`${ring}\``).join(' → '));
    for (const rooms of Object.values(ROOMS)) expect(page).toContain(rooms.map((room) => `\`${room}\``).join(' → '));
  });
});
