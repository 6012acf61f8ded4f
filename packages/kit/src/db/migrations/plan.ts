import type { Backfill } from '../backfills/backfill.ts';
import type { Model } from '../declare/model.ts';
import type { Migration } from './migration.ts';
import { onlineSteps } from './online-steps.ts';
import type { Operation } from './operation.ts';
import { applyOperation, type SchemaState } from './schema-state.ts';
import { didYouMean, nearest } from '../../options/did-you-mean.ts';
import { InvalidOptions, unknownNames } from '../../options/read-options.ts';
import { MigrationRefused } from './migration-refused.ts';

/** What migrations need to know of a module. */
export interface MigrationModule {
  readonly name: string;
  readonly migrations?: readonly Migration[];
  readonly models?: readonly Model[];
  /** Back-fills, in the order of their numbers; these go on from the numbers of the migrations. */
  readonly backfills?: readonly Backfill[];
}

export interface PlannedMigration {
  readonly module: string;
  readonly migration: Migration;
  /** `accounts/0001_initial` */
  readonly id: string;
  /** The tables before it runs. */
  readonly before: SchemaState;
  /** Must be finished before it runs. */
  readonly backfills: readonly Backfill[];
}

export interface MigrationPlan {
  readonly steps: readonly PlannedMigration[];
  /** The tables after all of them. */
  readonly end: SchemaState;
  /** Which module made each table. */
  readonly owners: ReadonlyMap<string, string>;
}

/**
 * Puts all migrations in one order (each module's own, modules as listed, `after` before that) and plays them through
 * on paper, so that a migration that does not fit is refused before the database is touched.
 */
export function planMigrations(modules: readonly MigrationModule[]): MigrationPlan {
  for (const module of modules) refuseMisspelt(module);
  let state: SchemaState = new Map();
  const owners = new Map<string, string>();
  const steps: PlannedMigration[] = [];
  for (const { module, migration, id, backfills } of inOrder(modules)) {
    steps.push({ module, migration, id, backfills, before: state });
    for (const operation of migration.operations) {
      try {
        if (migration.online) refuseOffline(operation, state);
        state = applyOperation(state, operation);
      } catch (error) {
        throw new MigrationRefused(`Migration ${id}: ${(error as Error).message.replace(/\.$/, '')}.`, error);
      }
      if (operation.op === 'create_table') owners.set(operation.table, module);
      if (operation.op === 'rename_table') owners.set(operation.to, owners.get(operation.table) ?? module);
    }
  }
  return { steps, end: state, owners };
}

function refuseOffline(operation: Operation, state: SchemaState): void {
  const steps = onlineSteps(operation, state);
  if (typeof steps === 'string') throw new Error(steps);
}

const MEMBERS = ['name', 'migrations', 'models', 'backfills'];

/** Modules of an application have other members too; `migration` among them would run nothing. */
function refuseMisspelt(module: MigrationModule): void {
  const slips = Object.keys(module).filter((member) => !MEMBERS.includes(member) && nearest(member, MEMBERS) !== undefined);
  if (slips.length === 0) return;
  throw new InvalidOptions(unknownNames(`The module "${module.name}"`, Object.fromEntries(slips.map((member) => [member, null])), MEMBERS));
}

type Step = Omit<PlannedMigration, 'before'>;

function inOrder(modules: readonly MigrationModule[]): Step[] {
  const steps = modules.flatMap(stepsOf);
  const byId = new Map(steps.map((step) => [step.id, step]));
  if (byId.size !== steps.length) throw new MigrationRefused('Two modules of one name have a migration of the same name.');
  const done = new Set<string>();
  const ordered: Step[] = [];
  const visit = (step: Step, path: readonly string[]): void => {
    if (done.has(step.id)) return;
    if (path.includes(step.id)) throw new MigrationRefused(`Migrations wait for each other: ${[...path, step.id].join(' → ')}.`);
    const own = steps.filter((each) => each.module === step.module);
    const previous = own[own.indexOf(step) - 1];
    if (previous !== undefined) visit(previous, [...path, step.id]);
    for (const id of step.migration.after) {
      const needed = byId.get(id);
      if (needed === undefined)
        throw new MigrationRefused(`Migration ${step.id} comes after "${id}", which does not exist: is its module installed?`);
      visit(needed, [...path, step.id]);
    }
    done.add(step.id);
    ordered.push(step);
  };
  for (const step of steps) visit(step, []);
  return ordered;
}

function stepsOf({ name: module, migrations = [], backfills = [] }: MigrationModule): Step[] {
  checkBackfills(module, migrations, backfills);
  migrations.forEach((migration, index) => {
    const previous = migrations[index - 1];
    if (previous !== undefined && previous.name >= migration.name) {
      throw new MigrationRefused(
        `Module "${module}": migration ${migration.name} must sort after ${previous.name}, which is listed before it.`,
      );
    }
  });
  return migrations.map((migration) => ({
    module,
    migration,
    id: `${module}/${migration.name}`,
    backfills: backfills.filter(({ name }) => migration.backfills.includes(name)),
  }));
}

/** Back-fills have numbers among those of the migrations, and a migration requires earlier ones. */
function checkBackfills(module: string, migrations: readonly Migration[], backfills: readonly Backfill[]): void {
  backfills.forEach(({ name }, index) => {
    const previous = backfills[index - 1];
    if (previous !== undefined && previous.name >= name)
      throw new MigrationRefused(`Module "${module}": back-fill ${name} must sort after ${previous.name}, which is listed before it.`);
    if (migrations.some((each) => each.name.slice(0, 4) === name.slice(0, 4)))
      throw new MigrationRefused(`Module "${module}": back-fill ${name} has the number of a migration. Give it another number.`);
  });
  for (const migration of migrations)
    for (const name of migration.backfills) {
      if (!backfills.some((each) => each.name === name))
        throw new MigrationRefused(
          `Migration ${module}/${migration.name} requires the back-fill "${name}", which its module does not list.${didYouMean(
            name,
            backfills.map((each) => each.name),
          )}`,
        );
      if (name > migration.name)
        throw new MigrationRefused(`Migration ${module}/${migration.name} requires the back-fill ${name}, which comes after it.`);
    }
}
