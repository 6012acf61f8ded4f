import { existsSync, readFileSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { declaredDrift } from '../../db/migrations/drift.ts';
import { singular } from '../../db/declare/component-name.ts';
import { tableNameFault } from '../../db/declare/names.ts';
import { migrationSource } from '../../db/migrations/propose-migration.ts';
import { databasesOf } from '../../app/data/migration-modules.ts';
import type { CliContext } from '../load/context.ts';
import type { CoreCommand } from '../load/core-command.ts';
import { missingConfig } from '../load/find-config.ts';
import { TableRefused } from '../scaffold/found-table.ts';
import { planFound, planNew } from '../scaffold/plan-scaffold.ts';
import { printSource } from '../scaffold/print-source.ts';
import { printTest } from '../scaffold/print-test.ts';
import { FIELD_HELP, FieldRefused, readFields } from '../scaffold/read-fields.ts';
import { namesOf, type ScaffoldTable } from '../scaffold/scaffold-table.ts';

interface ScaffoldCommandOptions {
  readonly owner?: string;
  readonly tenant?: string;
  readonly fromTable?: boolean;
  readonly check?: boolean;
  readonly dryRun?: boolean;
  readonly force?: boolean;
}

interface ScaffoldFile {
  /** Below the folder of kit.config.ts. */
  readonly path: string;
  readonly text: string;
}

export const scaffoldCommand: CoreCommand = (command, context) => {
  command
    .argument('[model]', 'its table, in snake_case and plural: tasks')
    .argument('[fields...]', 'fields of a new table: title:text(200) done:bool due:date?')
    .option('--owner <column>', 'the column with the id of the user whose row it is (default for a new table: owner_id, without --tenant)')
    .option('--tenant <column>', 'the column with the tenant whose row it is')
    .option('--from-table', 'read an existing table of the database, and the tables that it refers to')
    .option('--check', 'write nothing; report where models and tables of the database differ')
    .option('--dry-run', 'write nothing; print the files')
    .option('--force', 'write over files that exist')
    .addHelpText('after', HELP)
    .action((model: string | undefined, fields: string[], options: ScaffoldCommandOptions) => run(model, fields, options, context));
};

const HELP = `
A field is ${FIELD_HELP}.
Writes src/<model>.ts, migrations/0001_create_<model>.ts and test/<model>.test.ts beside kit.config.ts. The tests pass as they are; add the module and the
controller to the app yourself. Rows of an existing table without --owner or --tenant are for staff only.`;

async function run(model: string | undefined, fields: string[], options: ScaffoldCommandOptions, context: CliContext): Promise<void> {
  if (options.check === true) return check(context);
  if (model === undefined) return context.fail('Write the name of a model: kit scaffold tasks title:text(200).');
  const table = options.fromTable === true ? model : pluralOf(model);
  const fault = tableNameFault(table);
  if (fault !== undefined) return context.fail(`"${model}": ${fault}.${suggestion(model)}`);
  const folder = dirname(context.configFile ?? context.fail(missingConfig(context.cwd)));
  const plans = await planOf(table, fields, options, folder, context);
  const files = plans.flatMap(filesOf);
  const taken = files.filter(({ path }) => existsSync(join(folder, path)));
  if (taken.length > 0 && options.force !== true && options.dryRun !== true)
    return context.fail(`${taken.map(({ path }) => path).join(', ')} exist already; nothing was written. Use --force to write over them.`);
  if (options.dryRun !== true) await writeAll(folder, files, options.force === true, context);
  report(plans, files, options, folder, context);
}

async function planOf(
  table: string,
  fields: readonly string[],
  { owner, tenant, fromTable = false, force = false }: ScaffoldCommandOptions,
  folder: string,
  context: CliContext,
): Promise<readonly ScaffoldTable[]> {
  const app = await context.bareApp();
  const isScaffolded = (name: string) => hasScaffold(join(folder, 'src', `${name}.ts`), name);
  if (!force && app.modules.some(({ models = [] }) => models.some(({ name }) => name === table)))
    return context.fail(`The app already has a model of the table "${table}".`);
  try {
    if (!fromTable) {
      const columns = readFields(fields.length === 0 ? ['name:text(200)'] : fields);
      return [planNew(app, table, columns, { owner: owner ?? (tenant === undefined ? 'owner_id' : undefined), tenant }, isScaffolded)];
    }
    if (fields.length > 0) return context.fail('--from-table reads the columns from the database; leave the fields out.');
    // Databases only: modules of an app whose migrations are pending are not needed.
    await app.openDatabases({ createFiles: false });
    return await planFound(app.db, app, table, { owner, tenant }, isScaffolded);
  } catch (error) {
    if (error instanceof FieldRefused || error instanceof TableRefused) return context.fail(error.message);
    throw error;
  }
}

/** A file of an earlier run: other files can import its names. */
function hasScaffold(file: string, table: string): boolean {
  const { model, controller, module } = namesOf(table);
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  return (
    text.includes(`export const ${model} = model(`) &&
    text.includes(`export class ${controller} `) &&
    text.includes(`export function ${module}(`)
  );
}

function filesOf(plan: ScaffoldTable): ScaffoldFile[] {
  const { definition } = plan;
  const { table, migration } = namesOf(definition.name);
  return [
    { path: `src/${table}.ts`, text: printSource(plan) },
    { path: `migrations/${migration}.ts`, text: migrationSource(migration, [{ op: 'create_table', table, definition }], []) },
    { path: `test/${table}.test.ts`, text: printTest(plan) },
  ];
}

/** All files or none: what was written before a failure is removed. */
async function writeAll(folder: string, files: readonly ScaffoldFile[], force: boolean, context: CliContext): Promise<void> {
  const written: string[] = [];
  try {
    for (const { path, text } of files) {
      const file = join(folder, path);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, text, { flag: force ? 'w' : 'wx' });
      written.push(file);
    }
  } catch (error) {
    if (!force) for (const file of written) await rm(file, { force: true });
    context.fail(`The files cannot be written: ${(error as Error).message}`);
  }
}

function report(
  plans: readonly ScaffoldTable[],
  files: readonly ScaffoldFile[],
  options: ScaffoldCommandOptions,
  folder: string,
  context: CliContext,
): void {
  const notes = plans.flatMap((plan) => plan.notes);
  const names = plans.map(({ definition }) => namesOf(definition.name));
  if (context.json)
    return context.print(
      JSON.stringify({
        files: options.dryRun === true ? files : files.map(({ path }) => ({ path })),
        notes,
        written: options.dryRun !== true,
      }),
    );
  for (const { path, text } of files)
    context.print(
      options.dryRun === true ? `${context.paint('bold', `// ${path}`)}\n${text}` : `${context.paint('green', 'written')} ${path}`,
    );
  for (const note of notes) context.print(`${context.paint('yellow', 'review')}  ${note}`);
  if (options.dryRun === true) return;
  // Projects of `kit new` have their options in src/app.ts, so that tests can import them.
  const [place, below] = existsSync(join(folder, 'src/app.ts'))
    ? ['src/app.ts', './']
    : [basename(context.configFile ?? 'kit.config.ts'), './src/'];
  context.print(`
Add to the app, in ${place}:
${names.map(({ controller, module, table }) => `  import { ${controller}, ${module} } from '${below}${table}.ts';`).join('\n')}
  modules: [${names.map(({ module }) => `${module}()`).join(', ')}]
  mount: { '/v1': { ${names.map(({ path, controller }) => `'${path}': ${controller}`).join(', ')} } }
Then: ${options.fromTable === true ? 'kit migrate --adopt (the tables exist: their migrations are only recorded)' : 'kit migrate'}`);
}

/** `OrderLine` and `order line` as `order_line`, where that is a name. */
function suggestion(model: string): string {
  const name = model
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll(/\W+/g, '_')
    .toLowerCase();
  return tableNameFault(pluralOf(name)) === undefined ? ` Did you mean ${name}?` : '';
}

/** `task` and `tasks` are the same model. */
function pluralOf(model: string): string {
  if (singular(model) !== model) return model;
  if (/[^aeiou]y$/.test(model)) return `${model.slice(0, -1)}ies`;
  return /(?:s|sh|ch|x|z)$/.test(model) ? `${model}es` : `${model}s`;
}

/** Whether the tables are what the models declare, whoever created them. */
async function check(context: CliContext): Promise<void> {
  const app = await (await context.bareApp()).openDatabases({ createFiles: false });
  const found: string[] = [];
  for (const [alias, database] of Object.entries(app.databases)) {
    const models = app.modules.filter((module) => databasesOf(module).includes(alias)).flatMap(({ models: own = [] }) => own);
    found.push(...(await declaredDrift(database, models)));
  }
  if (context.json) context.print(JSON.stringify({ ok: found.length === 0, drift: found }));
  else for (const sentence of found) context.print(`${context.paint('yellow', 'drift')} ${sentence}`);
  if (found.length > 0) context.fail(`${found.length} ${found.length === 1 ? 'difference' : 'differences'} between models and tables.`);
  if (!context.json) context.print('The tables are what the models declare.');
}
