import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { createApp } from '../app/assemble/create-app.ts';
import { model, t, timestamps, versioned } from '../db/index.ts';
import { isAuthenticated } from '../permissions/index.ts';
import { byName } from '../../test/crud/shop.ts';
import { CrudController, one, resource } from './index.ts';

const root = join(import.meta.dirname, '..', '..', '..', '..');
/** From the folder of each program below. */
const SOURCES = '../../../src';
const folder = join(root, 'packages', 'kit', '.data', `many-controllers-${process.pid}`);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A file with that many controllers: relations, filters, ordering, expansion, a hidden column, as an application has them. */
function source(count: number): string {
  const controllers = Array.from(
    { length: count },
    (_, index) => `
const rows${index} = model('rows_${index}', {
  id: t.uuidv7().pk(), owner_id: t.uuid().readOnly(), parent_id: t.ref(() => parents).nullable(), title: t.text(100),
  status: t.enum(['open', 'paid']).dbDefault('open'), total: t.decimal(12, 2), due_at: t.timestamp().nullable(), secret: t.text(20).nullable(),
  ...timestamps(), ...versioned(),
});
const resource${index} = resource(rows${index}, {
  owner: 'owner_id', version: 'version', relations: { parent: one(() => parents, 'parent_id') }, hidden: ['secret'],
});
export class Controller${index} extends CrudController(resource${index}, {
  permission: isAuthenticated,
  filters: { status: ['eq', 'in'], total: ['gte', 'lte'] },
  ordering: { by: ['created_at', 'total'], default: ['-created_at'] },
  expand: ['parent'],
}) {}
`,
  );
  return `import { model, t, timestamps, versioned } from '${SOURCES}/db/index.ts';
import { CrudController, one, resource } from '${SOURCES}/crud/index.ts';
import { isAuthenticated } from '${SOURCES}/permissions/index.ts';
const parents = model('parents', { id: t.uuidv7().pk(), name: t.text(100) });
${controllers.join('')}export { parents };
`;
}

/** How many types the compiler makes for a file: the same on every machine, unlike its time. */
function instantiations(count: number): number {
  const place = join(folder, String(count));
  mkdirSync(place, { recursive: true });
  writeFileSync(join(place, 'controllers.ts'), source(count));
  writeFileSync(
    join(place, 'tsconfig.json'),
    JSON.stringify({
      extends: join(root, 'tsconfig.base.json'),
      compilerOptions: { noEmit: true, composite: false, incremental: false, declaration: false, skipLibCheck: true },
      files: ['controllers.ts'],
    }),
  );
  const tsc = join(root, 'node_modules', '.bin', 'tsc');
  const { status, stdout, stderr } = spawnSync(tsc, ['-p', place, '--extendedDiagnostics'], { encoding: 'utf8' });
  expect([status, stdout.slice(0, 500), stderr]).toEqual([0, expect.any(String), '']);
  return Number(/Instantiations:\s+(\d+)/.exec(stdout)?.[1]);
}

test('95: a controller costs the type checker at most 2,500 instantiations, and 200 of them not more than they did', () => {
  const [one, many] = [instantiations(1), instantiations(201)];
  const perController = (many - one) / 200;
  expect(perController).toBeGreaterThan(0);
  expect(perController).toBeLessThanOrEqual(2_500);
  // 700,000 when this was written, of which 360 are of each controller; the rest are the toolkit's own sources.
  expect(many).toBeLessThanOrEqual(970_000);
}, 300_000);

function appOf(count: number) {
  const parents = model('parents', { id: t.uuidv7().pk(), name: t.text(100) });
  const mount: Record<string, never> = {};
  for (let index = 0; index < count; index += 1) {
    const rows = model(`rows_${index}`, {
      id: t.uuidv7().pk(),
      owner_id: t.uuid().readOnly(),
      parent_id: t.ref(() => parents).nullable(),
      title: t.text(100),
      total: t.decimal(12, 2),
      ...timestamps(),
      ...versioned(),
    });
    const declared = resource(rows, { owner: 'owner_id', version: 'version', relations: { parent: one(() => parents, 'parent_id') } });
    const controller = class extends CrudController(declared, {
      permission: isAuthenticated,
      filters: { total: ['gte', 'lte'] },
      ordering: { by: ['created_at'] },
      expand: ['parent'],
    }) {};
    Object.defineProperty(controller, 'name', { value: `Rows${index}Controller` });
    Object.assign(mount, { [`/rows-${index}`]: controller });
  }
  return createApp({
    database: 'sqlite::memory:',
    authenticators: [byName],
    resources: [resource(parents, { unscoped: true })],
    mount: { '/v1': mount },
    log: { level: 'silent' },
  });
}

/** CPU time of starting and stopping, in milliseconds: other work on the machine does not count. */
async function startMs(count: number): Promise<number> {
  const before = process.cpuUsage();
  const app = appOf(count);
  await app.ready();
  const { user, system } = process.cpuUsage(before);
  await app.close();
  return (user + system) / 1_000;
}

test('95: an app of 200 controllers starts, and the time for each does not grow with their number', async () => {
  await startMs(50);
  const few = Math.min(await startMs(50), await startMs(50));
  const many = Math.min(await startMs(200), await startMs(200));
  // Four times as many: a start that compares all with all would take sixteen times as long.
  expect(many / few).toBeLessThan(8);
}, 300_000);
