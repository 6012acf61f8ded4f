import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { constants } from 'node:fs';
import { access, copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { dataFaults, modulesIn } from '../../app/data/migration-modules.ts';
import { noSuchDatabase } from '../../db/open/named-database.ts';
import { openDatabase } from '../../db/open/open-database.ts';
import { backUpFile } from '../../db/transfer/back-up-file.ts';
import { type VerifiedDatabase, verifyDatabase } from '../../db/transfer/verify-database.ts';
import type { CliContext } from '../load/context.ts';
import type { CoreCommand } from '../load/core-command.ts';
import { table } from '../terminal/terminal.ts';

/** `kit backup create|verify`. */
export const backupCommand: CoreCommand = (command, context) => {
  command
    .command('create')
    .description('copy the SQLite database of the app while it runs')
    .option('--out <folder>', 'where copies are written', 'backups')
    .option('--database <alias>', 'which database, in an app with several', 'default')
    .action((options: { out: string; database: string }) => create(context, options));
  command
    .command('verify')
    .argument('<file>', 'a copy that kit backup create made, or an archive of pg_dump --format=custom')
    .description('restore a backup into a scratch database and check it: pages, references, migrations, audit log, rows')
    .option('--database <alias>', 'whose backup it is, in an app with several databases', 'default')
    .option('--scratch <url>', 'for an archive of pg_dump: a server on which a scratch database is created, and dropped again')
    .action((file: string, options: VerifyOptions) => verify(context, file, options));
};

interface VerifyOptions {
  readonly database: string;
  readonly scratch?: string;
}

async function create(context: CliContext, { out, database: alias }: { out: string; database: string }): Promise<void> {
  const app = await (await context.bareApp()).openDatabases({ createFiles: false });
  const database = app.databases[alias];
  if (database === undefined) return context.fail(noSuchDatabase(alias, Object.keys(app.databases)));
  if (database.dialect === 'postgres')
    return context.fail(
      'The database is on PostgreSQL: back it up with pg_dump --format=custom, and verify that archive with npx kit backup verify.',
    );
  const time = app.clock
    .now()
    .toISOString()
    .replaceAll(/[-:]|\.\d+/g, '');
  const path = resolve(context.cwd, out, `${alias}-${time}.db`);
  await backUpFile(database, path);
  context.print(context.json ? JSON.stringify({ file: path }) : `${context.paint('green', 'created')} ${path}`);
  if (!context.json) context.print(`Verify it: npx kit backup verify ${path}`);
}

async function verify(context: CliContext, given: string, { database: alias, scratch }: VerifyOptions): Promise<void> {
  const app = await context.bareApp();
  const modules = modulesIn(app, alias);
  if (modules.length === 0) return context.fail(noSuchDatabase(alias, ['default']));
  const file = resolve(context.cwd, given);
  await access(file, constants.R_OK).catch(() => context.fail(`The file ${file} does not exist, or cannot be read.`));
  const restored = scratch === undefined ? await restoreFile(file) : await restoreArchive(context, file, scratch);
  try {
    const database = await openDatabase(restored.url, { name: alias, clock: app.clock, log: app.log, createFile: false }).catch(
      // The reason names the scratch database, which is removed again.
      () => context.fail(`${file} is not a backup that can be opened: it is not a SQLite file, or it is damaged. Use an older backup.`),
    );
    let report: VerifiedDatabase;
    try {
      report = await verifyDatabase(database, modules, (db) => dataFaults(app, alias, db));
    } finally {
      await database.close();
    }
    if (context.json) context.print(JSON.stringify(report, null, 2));
    else {
      const rows = report.tables.filter((each) => each.rows > 0).map((each) => [each.table, String(each.rows)]);
      for (const line of table(['TABLE', 'ROWS'], rows)) context.print(line);
    }
    if (report.faults.length > 0) context.fail(report.faults.join('\n'));
    if (!context.json) context.print(`${context.paint('green', 'verified')} ${file} can be restored.`);
  } finally {
    await restored.remove();
  }
}

interface Restored {
  readonly url: string;
  remove(): Promise<void>;
}

/** A copy, because opening a SQLite file changes it. */
async function restoreFile(file: string): Promise<Restored> {
  const folder = await mkdtemp(join(tmpdir(), 'kit-verify-'));
  await copyFile(file, join(folder, 'restored.db'), constants.COPYFILE_FICLONE);
  return { url: `sqlite:${join(folder, 'restored.db')}`, remove: () => rm(folder, { recursive: true, force: true }) };
}

async function restoreArchive(context: CliContext, file: string, server: string): Promise<Restored> {
  const name = `kit_verify_${randomBytes(6).toString('hex')}`;
  const url = new URL(server);
  url.pathname = `/${name}`;
  const onServer = async (statement: string): Promise<void> => {
    const database = await openDatabase(server, { poolMax: 1 });
    try {
      await database.query(statement);
    } finally {
      await database.close();
    }
  };
  await onServer(`create database ${name}`);
  const remove = (): Promise<void> => onServer(`drop database if exists ${name} with (force)`);
  try {
    await runRestore(context, file, url);
  } catch (error) {
    await remove();
    throw error;
  }
  return { url: url.href, remove };
}

async function runRestore(context: CliContext, file: string, url: URL): Promise<void> {
  // The password stays out of the list of processes.
  const { password } = url;
  const target = new URL(url);
  target.password = '';
  const child = spawn('pg_restore', ['--no-owner', '--no-privileges', '--exit-on-error', `--dbname=${target.href}`, file], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...context.environment, ...(password === '' ? {} : { PGPASSWORD: decodeURIComponent(password) }) },
  });
  let failure = '';
  child.stderr.on('data', (chunk: Buffer) => (failure += chunk.toString()));
  const [code] = (await once(child, 'exit').catch((error: NodeJS.ErrnoException) =>
    context.fail(
      error.code === 'ENOENT'
        ? 'pg_restore is not on the PATH: install the client programs of PostgreSQL.'
        : `pg_restore could not start: ${error.message}`,
    ),
  )) as [number | null];
  if (code !== 0) context.fail(`pg_restore failed: ${failure.trim().split('\n')[0] ?? `exit code ${code}`}`);
}
