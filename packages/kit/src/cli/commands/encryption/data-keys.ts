import type { App } from '../../../app/declare/module.ts';
import { databasesOf } from '../../../app/data/migration-modules.ts';
import type { Model } from '../../../db/declare/model.ts';
import type { Database } from '../../../db/engine/db.ts';
import { dataKeysOf } from '../../../db/rows/reveal.ts';
import { countDueRows, keyUses, type RotationProgress, rotateValues } from '../../../db/rows/rotate-values.ts';
import { keyEntry, newKey } from '../../../db/sealing/key-list.ts';
import type { CliContext } from '../../load/context.ts';
import type { CoreCommand } from '../../load/core-command.ts';
import { table } from '../../terminal/terminal.ts';

const BATCH = 500;
const BATCH_MAX = 10_000;

/** `kit data-keys generate|status|rotate`. */
export const dataKeysCommand: CoreCommand = (command, context) => {
  command
    .command('generate')
    .description('print new keys for DATA_KEYS and DATA_SEARCH_KEYS; with createApp({ keyWrapping }), wrapped ones')
    .option('--id <id>', 'the id of the keys. Default: the date')
    .action((options: { id?: string }) => generate(context, options));
  command
    .command('status')
    .description('count the encrypted values of each key')
    .action(() => status(context));
  command
    .command('rotate')
    .description('encrypt every value again with the first key of DATA_KEYS, while the app runs; continues after an interruption')
    .option('--batch <rows>', 'rows that are read together', String(BATCH))
    .action((options: { batch: string }) => rotate(context, options));
};

async function generate(context: CliContext, { id = new Date().toISOString().slice(0, 10) }: { id?: string }): Promise<void> {
  if (!/^[A-Za-z0-9_-]{1,32}$/.test(id)) return context.fail('--id has letters, digits, "-" and "_", and at most 32 of them.');
  // An app that cannot be loaded may wrap its keys.
  const wrapping = context.configFile === null ? undefined : (await context.bareApp()).keyWrapping;
  const settings: Record<string, string> = {};
  for (const setting of ['DATA_KEYS', 'DATA_SEARCH_KEYS']) {
    const key = newKey(id);
    settings[setting] = keyEntry(wrapping === undefined ? key : { id, bytes: await wrapping.wrapKey(key.bytes, id) });
  }
  if (context.json) return context.print(JSON.stringify(settings));
  for (const [setting, value] of Object.entries(settings)) context.print(`${setting}=${value}`);
}

interface EncryptedTable {
  readonly alias: string;
  readonly database: Database;
  readonly model: Model;
}

function encryptedTables(app: App): EncryptedTable[] {
  const tables = app.modules.flatMap((module) =>
    databasesOf(module).flatMap((alias) =>
      (module.models ?? []).map((model) => ({ alias, database: app.databases[alias] as Database, model })),
    ),
  );
  return tables.filter(({ model }) => Object.values(model.columns).some(({ settings }) => settings.encrypted !== undefined));
}

async function status(context: CliContext): Promise<void> {
  const rows: { database: string; table: string; column: string; key: string | null; values: number }[] = [];
  for (const { alias, database, model } of encryptedTables(await context.app())) {
    const keys = dataKeysOf(database);
    if (keys === undefined) continue;
    for (const use of await keyUses(database, model, keys)) rows.push({ database: alias, table: model.name, ...use });
  }
  if (context.json) return context.print(JSON.stringify(rows, null, 2));
  if (rows.length === 0) return context.print('No model has encrypted columns.');
  const cells = rows.map((row) => [`${row.table}.${row.column}`, row.key ?? 'unknown key', String(row.values)]);
  for (const line of table(['COLUMN', 'KEY', 'VALUES'], cells)) context.print(line);
}

async function rotate(context: CliContext, { batch: given }: { batch: string }): Promise<void> {
  const batch = Number(given);
  if (!Number.isInteger(batch) || batch < 1 || batch > BATCH_MAX) return context.fail(`--batch must be an integer from 1 to ${BATCH_MAX}.`);
  const results: { table: string; rotated: number; failed: number }[] = [];
  const failures: string[] = [];
  for (const { database, model } of encryptedTables(await context.app())) {
    const due = context.json ? 0 : await countDueRows(database, model);
    const bar = due === 0 ? undefined : context.progress(model.name, due);
    let done = 0;
    const onBatch = (progress: RotationProgress): void => {
      const now = progress.rotated + progress.failed.length;
      bar?.advance(now - done);
      done = now;
    };
    const { rotated, failed } = await rotateValues(database, model, { batch, onBatch }).finally(() => bar?.end());
    results.push({ table: model.name, rotated, failed: failed.length });
    for (const { key, reason } of failed.slice(0, 10)) failures.push(`${model.name} ${key.map(String).join(', ')}: ${reason}`);
  }
  if (context.json) context.print(JSON.stringify(results, null, 2));
  else if (results.length === 0) context.print('No model has encrypted columns.');
  else for (const { table: name, rotated, failed } of results) context.print(`${name}: ${rotated} rows rotated, ${failed} failed`);
  if (failures.length > 0) context.fail(failures.join('\n'));
}
