import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Db } from '../../db/engine/db.ts';
import type { Model } from '../../db/declare/model.ts';
import { find, insert, list, update } from '../../db/rows/repository.ts';
import type { Insert, Row, Update } from '../../db/declare/rows.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import { readOptions, requireArguments } from '../../options/read-options.ts';
import { aModel, anObject, filledText, listOf } from '../../options/value-rule.ts';
import type { App } from '../declare/module.ts';
import type { Seed, SeedReport } from '../declare/seed.ts';

/** The seeds of the modules, in their order, then those of the app. */
export function seedsOf(app: App): readonly Seed[] {
  return [...app.modules.flatMap(({ seeds = [] }) => seeds), ...app.seeds];
}

/** Runs these seeds, or all of them, each in its own transaction. The databases are open and migrated. */
export async function runSeeds(app: App, names?: readonly string[]): Promise<SeedReport[]> {
  const known = seedsOf(app);
  const unknown = names?.find((name) => !known.some((each) => each.name === name));
  if (unknown !== undefined) {
    const all = known.map(({ name }) => name);
    throw new Error(
      `There is no seed "${unknown}".${didYouMean(unknown, all) || ` There ${all.length === 0 ? 'are none' : `is ${all.join(', ')}`}.`}`,
    );
  }
  const reports: SeedReport[] = [];
  for (const each of known) if (names === undefined || names.includes(each.name)) reports.push(await runSeed(app, each));
  return reports;
}

async function runSeed(app: App, { name, run }: Seed): Promise<SeedReport> {
  const counts = { created: 0, changed: 0, unchanged: 0 };
  try {
    await app.db.transaction(async (tx) =>
      run({
        tx,
        id: stableId,
        async put(model, row, options) {
          const { row: stored, outcome } = await put(tx, model, row, options);
          counts[outcome] += 1;
          return stored;
        },
      }),
    );
  } catch (error) {
    throw new Error(`The seed "${name}" failed, and nothing of it was written: ${(error as Error).message}`, { cause: error });
  }
  return { name, ...counts };
}

async function put<M extends Model>(
  tx: Db,
  model: M,
  row: Insert<M>,
  options: { readonly by?: readonly string[] } = {},
): Promise<{ readonly row: Row<M>; readonly outcome: 'created' | 'changed' | 'unchanged' }> {
  requireArguments('put()', { model, row }, { model: aModel, row: anObject });
  const { by } = readOptions('put()', options, { by: listOf(filledText, { min: 1 }) });
  const given = row as Readonly<Record<string, unknown>>;
  const found = await storedRow(tx, model, given, by);
  if (found === undefined) return { row: await insert(tx, model, row), outcome: 'created' };
  const stored = found as Readonly<Record<string, unknown>>;
  const changes = Object.entries(given).filter(
    ([name, value]) => value !== undefined && !model.primaryKey.includes(name) && !isDeepStrictEqual(value, stored[name]),
  );
  if (changes.length === 0) return { row: found, outcome: 'unchanged' };
  const key = Object.fromEntries(model.primaryKey.map((name) => [name, stored[name]])) as Partial<Row<M>>;
  const changed = await update(tx, model, key, Object.fromEntries(changes) as Update<M>);
  return { row: changed ?? found, outcome: 'changed' };
}

async function storedRow<M extends Model>(
  tx: Db,
  model: M,
  row: Readonly<Record<string, unknown>>,
  by: readonly string[] = model.primaryKey,
): Promise<Row<M> | undefined> {
  const missing = by.filter((name) => row[name] === undefined || row[name] === null);
  if (missing.length > 0)
    throw new TypeError(
      `put(${model.name}) has no ${missing.join(', ')}, so a second run would create the row again. Give it, such as id('ada'), or find the row by other columns: { by: ['name'] }.`,
    );
  const values = Object.fromEntries(by.map((name) => [name, row[name]]));
  if (by === model.primaryKey) return find(tx, model, values as Partial<Row<M>>);
  const rows = await list(tx, model, { where: values as never, limit: 2 });
  if (rows.length > 1)
    throw new TypeError(`put(${model.name}): several rows have the same ${by.join(', ')}; choose columns that are unique together.`);
  return rows[0];
}

/** A UUID of version 8 (RFC 9562: for values of one's own making) from a digest of the name. */
function stableId(name: string): string {
  const bytes = createHash('sha256').update(`seed:${name}`).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
