import { mkdir, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';
import { InvalidArgumentError, type Command } from 'commander';
import { modelDifferences } from '../../../db/migrations/drift.ts';
import { proposeModuleMigration } from '../../../db/migrations/propose-migration.ts';
import { type ProposedSteps, proposeSteps } from '../../../db/rollout/propose-steps.ts';
import type { MigrationModule } from '../../../db/migrations/plan.ts';
import type { CliContext } from '../../load/context.ts';
import { unwritable } from '../../../work/file-fault.ts';
import { migrationModules } from '../../../app/data/migration-modules.ts';

interface MakeOptions {
  readonly module?: string;
  readonly dir: string;
  readonly print?: boolean;
  readonly atOnce?: boolean;
}

/** `kit migrate make <name>`: writes what the models say and no migration does yet. */
export function addMigrateMake(command: Command, context: CliContext): void {
  command
    .command('make')
    .description('create a migration for model changes')
    .argument('<name>', 'what it does, in snake_case: add_phone', label)
    .option('--module <name>', 'the module whose models changed; needed when several did')
    .option('--dir <folder>', 'where to write it', 'migrations')
    .option('--print', 'print it instead of writing a file')
    .option('--at-once', 'new required columns in one step: for tables without rows, while no version of the app runs')
    .addHelpText('after', '\nNo database is opened. Read the file before you use it, then add it to the `migrations` of the module.')
    .action(async (name: string, options: MakeOptions) => {
      const modules = migrationModules(await context.bareApp());
      const module = chooseModule(modules, options.module, context);
      const proposed = module === null ? undefined : proposalFor(modules, module, name, options.atOnce === true);
      if (proposed === undefined) return context.print('Models and migrations agree: there is nothing to write.');
      if (options.print === true) return context.print(proposed.files.map(({ source }) => source.trimEnd()).join('\n\n'));
      const written: string[] = [];
      for (const { name: fileName, source } of proposed.files)
        written.push(await write(context, options.dir, fileName, source, module ?? ''));
      const [first] = proposed.files;
      if (context.json)
        return context.print(
          JSON.stringify({
            file: written[0],
            files: written,
            module,
            name: first?.name,
            notes: proposed.notes,
            required: proposed.required,
            encrypted: proposed.encrypted,
          }),
        );
      for (const file of written) context.print(`${relative(process.cwd(), file)} written for ${module}.`);
      for (const note of proposed.notes) context.print(`${context.paint('yellow', 'review')}  ${note}.`);
      if (proposed.required.length + proposed.encrypted.length === 0) context.print(addition(written[0] ?? '', name));
      if (proposed.required.length > 0) context.print(threeSteps(proposed));
      if (proposed.encrypted.length > 0) context.print(encryptionSteps(proposed));
    });
}

function proposalFor(modules: readonly MigrationModule[], module: string, name: string, atOnce: boolean): ProposedSteps | undefined {
  if (!atOnce) return proposeSteps(modules, module, name);
  const proposed = proposeModuleMigration(modules, module, name);
  if (proposed === undefined) return undefined;
  return {
    files: [{ name: proposed.name, source: proposed.source, kind: 'migration', release: 'this' }],
    notes: proposed.notes,
    required: [],
    encrypted: [],
  };
}

async function write(context: CliContext, dir: string, name: string, source: string, module: string): Promise<string> {
  const file = join(resolve(dir), `${name}.ts`);
  const refuse = (error: Error) => context.fail(unwritable(file, error));
  await mkdir(resolve(dir), { recursive: true }).catch(refuse);
  // wx: a migration that exists may have been applied somewhere and is never written over.
  await writeFile(file, source, { flag: 'wx' }).catch((error: NodeJS.ErrnoException) =>
    error.code === 'EEXIST'
      ? context.fail(`${file} exists already; nothing was written. Add it to the migrations of ${module}, if it is not there.`)
      : refuse(error),
  );
  return file;
}

/** The names of files, for the lines of a module. */
function namesOf(files: ProposedSteps['files'], kind: string, release: string): string {
  return files
    .filter((each) => each.kind === kind && each.release === release)
    .map(({ name }) => name)
    .join(', ');
}

/** A plaintext column ends in the second release after this one. */
function encryptionSteps({ files, encrypted }: ProposedSteps): string {
  return `
Encrypted columns that replace others: ${encrypted.map((each) => `"${each}"`).join(', ')}. Every write of the other column fills them, too.
This release: add to the module
  migrations: [ …, ${namesOf(files, 'migration', 'this')}], backfills: [ …, ${namesOf(files, 'backfill', 'this')}]
Then: kit migrate, deploy, and when no process of the version before runs: kit backfill run
Next release: remove the other column and \`replaces\` from the model, and read the encrypted column. Add no migration
The release after it: add
  migrations: [ …, ${namesOf(files, 'migration', 'next')}]`;
}

/** A new required column takes two releases. */
function threeSteps({ files, required }: ProposedSteps): string {
  const named = (kind: string, release: string): string => namesOf(files, kind, release);
  const columns = required.map((each) => `"${each}"`).join(', ');
  return `
New required columns: ${columns}. Processes of the version before leave them out of their inserts, which would fail with NOT NULL.
This release: make ${required.length === 1 ? 'it' : 'them'} .nullable() in the model, write ${required.length === 1 ? 'it' : 'them'} in every insert and update, and add to the module
  migrations: [ …, ${named('migration', 'this')}], backfills: [ …, ${named('backfill', 'this')}]
Then: kit migrate, deploy, kit backfill run
Next release: remove .nullable(), and add
  migrations: [ …, ${named('migration', 'next')}]`;
}

/** The lines that add a migration to its module, as its file has them: in `src` where there is one. */
function addition(file: string, name: string): string {
  const from = existsSync('src') ? 'src' : '.';
  const path = relative(resolve(from), file).split(sep).join('/');
  const variable = name.replaceAll(/_+(\w)/g, (_, letter: string) => letter.toUpperCase());
  return `
Add it to the module:
  import ${variable} from '${path.startsWith('.') ? path : `./${path}`}';
  migrations: [ …, ${variable}]
Then: kit migrate`;
}

function label(text: string): string {
  if (!/^[a-z][a-z0-9_]{0,60}$/.test(text))
    throw new InvalidArgumentError('A name is snake_case: a-z, 0-9 and "_", starting with a letter.');
  return text;
}

function chooseModule(modules: readonly MigrationModule[], given: string | undefined, context: CliContext): string | null {
  if (given !== undefined) {
    if (modules.some(({ name }) => name === given)) return given;
    context.fail(`There is no module "${given}"; there are ${modules.map(({ name }) => name).join(', ')}.`);
  }
  // Each module's drift on its own: the others only lend their tables to its references.
  const changed = modules.filter(
    (module) => modelDifferences(modules.map((each) => (each === module ? each : { ...each, models: [] }))).length > 0,
  );
  if (changed.length > 1) context.fail(`The models of ${changed.map(({ name }) => name).join(' and ')} changed: choose one with --module.`);
  return changed[0]?.name ?? null;
}
