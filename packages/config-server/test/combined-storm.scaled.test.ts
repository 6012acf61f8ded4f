import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { scaled } from '../../../test/provision/scale.ts';
import { OPERATOR_TOKEN, SERVICE_TOKEN, testRepository, type TestRepository } from './git-repository.ts';
import { eventually, startServer, type RunningServer } from './running-server.ts';
import { temporaryFolder } from './temporary-folder.ts';

const RUNS = scaled(2, 60);
const SCHEMA = JSON.stringify({ type: 'object', properties: { first: { type: 'string' } }, required: ['first', 'second'] });

type Branch = 'main' | 'other';

interface CommittedVersion {
  readonly id: string;
  readonly version: string;
}

/** What server.toml takes from where. */
interface Settings {
  readonly git: boolean;
  readonly branch: Branch;
  readonly pin: CommittedVersion | undefined;
  readonly path: 'a' | 'b';
  readonly schema: boolean;
}

/** A repository, a folder and a mounted secret, what server.toml takes from them, and the document that follows from all of it. */
class World {
  readonly #folder: string;
  readonly #repository: TestRepository;
  readonly #commits: CommittedVersion[] = [];
  readonly #heads: Record<Branch, string> = { main: '', other: '' };
  #checkedOut: Branch = 'main';
  #onDisk = '';
  #secret = '';
  #count = 0;
  #settings: Settings = { git: true, branch: 'main', pin: undefined, path: 'a', schema: true };

  constructor(folder: string, repository: TestRepository) {
    this.#folder = folder;
    this.#repository = repository;
    mkdirSync(join(folder, 'mount'));
    symlinkSync('..data/secret', join(folder, 'mount/secret'));
    this.rotate();
    this.save();
    this.commit();
    repository.git('branch', 'other');
    this.#heads.other = this.#heads.main;
  }

  get usesGit(): boolean {
    return this.#settings.git;
  }

  get expected(): { first: string; secret: string; second: string } {
    const { git, pin, branch, path } = this.#settings;
    const version = git ? `${path}-${pin?.version ?? this.#heads[branch]}` : `a-${this.#onDisk}`;
    return { first: version, secret: this.#secret, second: version };
  }

  commit(...options: readonly string[]): void {
    const version = this.#next();
    const files = { ...this.#files('a', version), ...this.#files('b', version), 'schema.json': SCHEMA };
    this.#commits.push({ id: this.#repository.commit(files, ...options), version });
    this.#heads[this.#checkedOut] = version;
  }

  checkOut(): void {
    this.#checkedOut = this.#checkedOut === 'main' ? 'other' : 'main';
    this.#repository.git('checkout', '--quiet', '--force', this.#checkedOut);
  }

  recreateBranch(): void {
    const branch = this.#checkedOut === 'main' ? 'other' : 'main';
    const commit = this.#repository.git('rev-parse', branch);
    this.#repository.git('branch', '--delete', '--force', branch);
    this.#repository.git('branch', branch, commit);
  }

  tidy(command: 'pack-refs' | 'gc'): void {
    this.#repository.git(...(command === 'gc' ? ['gc', '--quiet'] : ['pack-refs', '--all', '--prune']));
  }

  /** As Kubernetes does it. */
  rotate(): void {
    this.#secret = this.#next();
    const mount = join(this.#folder, 'mount');
    mkdirSync(join(mount, `..${this.#secret}`));
    writeFileSync(join(mount, `..${this.#secret}`, 'secret'), this.#secret);
    symlinkSync(`..${this.#secret}`, join(mount, '..next'));
    renameSync(join(mount, '..next'), join(mount, '..data'));
  }

  save(): void {
    this.#onDisk = this.#next();
    mkdirSync(join(this.#folder, 'a'), { recursive: true });
    for (const [name, text] of Object.entries({ ...this.#files('a', this.#onDisk), 'schema.json': SCHEMA })) this.#replace(name, text);
  }

  configure(choice: number): void {
    const { git, schema, path, branch } = this.#settings;
    const changes: readonly Partial<Settings>[] = [
      { git: !git },
      { schema: !schema },
      { path: path === 'a' ? 'b' : 'a' },
      { branch: branch === 'main' ? 'other' : 'main', pin: undefined },
      { pin: this.#commits[choice % this.#commits.length] },
    ];
    this.#settings = { ...this.#settings, ...changes[choice % changes.length] };
    this.#replace('server.toml', this.serverToml());
  }

  serverToml(): string {
    const { git, branch, pin, path, schema } = this.#settings;
    const table = `[git]\nrepository = "${this.#repository.folder}"\nbranch = "${branch}"\n${pin === undefined ? '' : `pin = "${pin.id}"\n`}`;
    const files = ['billing.toml', 'more.yaml'].map((name) => `"${git ? path : 'a'}/${name}"`);
    return `${git ? table : ''}
[server]
bind = "127.0.0.1:0"
watch_debounce_ms = 20
explain_lines = true
[server.secrets]
mounts = "mount"
[[server.sections]]
application = "billing"
profile = "prod"
files = [${files.join(', ')}]
${schema ? 'schema = "schema.json"' : ''}
[[server.clients]]
name = "service"
token = "${SERVICE_TOKEN}"
applications = ["billing"]
[[server.clients]]
name = "operator"
token = "${OPERATOR_TOKEN}"
applications = ["billing"]
operator = true
`;
  }

  #files(path: string, version: string): Record<string, string> {
    const secret = `ref+file://${join(this.#folder, 'mount/secret')}`;
    return {
      [`${path}/billing.toml`]: `[billing]\nfirst = "${path}-${version}"\nsecret = "${secret}"\n`,
      [`${path}/more.yaml`]: `billing:\n  second: ${path}-${version}\n`,
    };
  }

  #replace(name: string, text: string): void {
    writeFileSync(join(this.#folder, `${name}.next`), text);
    renameSync(join(this.#folder, `${name}.next`), join(this.#folder, name));
  }

  #next(): string {
    return `v${(this.#count += 1)}`;
  }
}

const STEPS: readonly ((world: World, choice: number) => void)[] = [
  (world) => world.commit(),
  (world) => world.commit('--amend'),
  (world) => world.checkOut(),
  (world) => world.recreateBranch(),
  (world) => world.tidy('pack-refs'),
  (world) => world.tidy('gc'),
  (world) => world.rotate(),
  (world) => world.save(),
  (world, choice) => world.configure(choice),
  (world, choice) => world.configure(choice),
];

async function check(running: RunningServer, world: World): Promise<void> {
  await eventually(async () => {
    const document = (await running.ask('/billing/prod')).json() as typeof world.expected;
    expect(document.first).toBe(document.second);
    const isExpected = JSON.stringify(document) === JSON.stringify(world.expected);
    return isExpected && (await running.ask('/readyz')).status === 200;
  }, JSON.stringify(world.expected));
  const [row] = (await running.ask('/billing/prod/explain/first')).json().rows;
  expect([row.line, row.commit !== undefined]).toEqual([2, world.usesGit]);
  expect((await running.ask('/billing/prod/history', { token: OPERATOR_TOKEN })).text).not.toMatch(/[ab]-v\d/);
}

test(
  `${RUNS} servers, each with Git, a mounted secret, a schema and edits of server.toml in turn: the last state is served, and no mixture`,
  { timeout: 3_600_000 },
  async () => {
    const rounds = fc.array(fc.array(fc.tuple(fc.nat({ max: STEPS.length - 1 }), fc.nat({ max: 99 })), { minLength: 1, maxLength: 4 }), {
      minLength: 6,
      maxLength: 12,
    });
    await fc.assert(
      fc.asyncProperty(rounds, async (generated) => {
        const folder = await temporaryFolder();
        const world = new World(folder, await testRepository());
        const running = await startServer({ folder, toml: world.serverToml(), files: {} });
        for (const round of generated) {
          for (const [step, choice] of round) STEPS[step]!(world, choice);
          await check(running, world);
        }
        await running.server.stop();
      }),
      { numRuns: RUNS },
    );
  },
);
