import type { Model } from '../declare/model.ts';
import { quoteName as q } from '../declare/names.ts';
import { statementsOf } from '../sql/model-statements.ts';
import { type Reference, referencesUpTo } from './references.ts';
import type { Subject, SubjectTable } from './subject.ts';
import { type Bind, bindOnce, rowsSql } from './subject-where.ts';

/** Whose the rows of a table are, by kind. */
export type Whose = Readonly<Partial<Record<Subject['kind'], SubjectTable>>>;

/** The tables of a database, and whose their rows are. */
export interface HeldTables {
  readonly models: readonly Model[];
  whose(model: Model): Whose;
}

/** A column that others refer to. Its values are in the column of its type. */
interface Target {
  readonly model: Model;
  readonly key: string;
  readonly type: string;
}

/** From a row that is found by one of its keys to the one that it refers to. */
interface Step {
  readonly from: number;
  readonly reference: Reference;
  readonly to: number;
}

interface Asked {
  readonly holds: readonly Subject[];
  readonly tables: HeldTables;
  readonly bind: Bind;
}

/**
 * See `heldSql`. Held rows are followed up, a reference at a time, in one recursive subquery: a row is followed once, so circles end, and every table is in the text
 * once for each of its references, however many ways lead to it. (Subqueries that use one another are no way to do it: SQLite copies each wherever it is used.)
 */
export function heldCondition(
  holds: readonly Subject[],
  tables: HeldTables,
  model: Model,
  alias: string,
  values: unknown[],
): string | undefined {
  const asked: Asked = { holds, tables, bind: bindOnce(values) };
  const references = referencesUpTo(model, tables.models);
  const targets = targetsOf(references);
  const types = [...new Set(targets.map(({ type }) => type))];
  const seeds = references.flatMap((reference) => {
    const own = ownRows(asked, reference.child, 'h');
    return own === undefined ? [] : { reference, own };
  });
  const steps = stepsOf(references, targets);
  const keys = targets.flatMap((target, node) => (target.model === model ? { ...target, node } : []));
  const above = keys.flatMap(({ key, node, type }) => {
    if (steps.length === 0) {
      const direct = seeds.flatMap((seed) => (targetOf(targets, seed.reference) === node ? seedSql(seed, column(seed.reference)) : []));
      return direct.length === 0 ? [] : `${alias}.${q(key)} in (${direct.join(' union all ')})`;
    }
    if (seeds.length === 0) return [];
    const value = `v${types.indexOf(type)}`;
    const found = followed({ targets, types, steps, seeds });
    return `${alias}.${q(key)} in (with recursive ${found} select ${value} from _held where node = ${node} and ${value} is not null)`;
  });
  return anyOf([ownRows(asked, model, alias), ...above]);
}

interface Followed {
  readonly targets: readonly Target[];
  readonly types: readonly string[];
  readonly steps: readonly Step[];
  readonly seeds: readonly Seed[];
}

/** Rows of `_held`: a target, and a value that it has in a held row. */
function followed({ targets, types, steps, seeds }: Followed): string {
  const typeAt = (node: number): string | undefined => targets[node]?.type;
  // No row: the types of the columns.
  const empty = types.map((type) => {
    const { model, key } = targets.find((target) => target.type === type) as Target;
    return `(select ${comparable(model, key, q(key))} from ${q(model.name)} where 1 = 0)`;
  });
  const first = seeds.map((seed) => {
    const node = targetOf(targets, seed.reference);
    return seedSql(seed, [node, ...types.map((type) => (type === typeAt(node) ? column(seed.reference) : 'null'))].join(', '));
  });
  const next = types.map((type) => {
    const ways = steps.flatMap(({ from, reference, to }, step) => {
      if (typeAt(to) !== type) return [];
      const known = targets[from] as Target;
      // At most one row: what others refer to is unique.
      return `when ${step} then (select ${column(reference)} from ${q(known.model.name)} h where h.${q(known.key)} = u.v${types.indexOf(known.type)})`;
    });
    return ways.length === 0 ? 'null' : `case s.column2 ${ways.join(' ')} end`;
  });
  // From which target, which step, to which target.
  const ways = steps.map(({ from, to }, step) => `(${from}, ${step}, ${to})`).join(', ');
  return (
    `_held(node, ${types.map((_, index) => `v${index}`).join(', ')}) as (select -1, ${empty.join(', ')} union all ${first.join(' union all ')}` +
    ` union select s.column3, ${next.join(', ')} from _held u join (values ${ways}) s on s.column1 = u.node)`
  );
}

interface Seed {
  readonly reference: Reference;
  /** A condition for rows of somebody who is held. */
  readonly own: string;
}

function seedSql({ reference, own }: Seed, columns: string): string {
  return `select ${columns} from ${q(reference.child.name)} h where ${own} and h.${q(reference.column)} is not null`;
}

function column({ child, column: name }: Reference): string {
  return comparable(child, name, `h.${q(name)}`);
}

/** As one type: text of several lengths is not. */
function comparable(model: Model, name: string, text: string): string {
  return typeOf(model, name) === 'text' ? `cast(${text} as text)` : text;
}

function typeOf(model: Model, name: string): string {
  const { kind, precision = '', scale = '' } = statementsOf(model).column(name).definition;
  return kind === 'text' || kind === 'enum' ? 'text' : `${kind} ${precision} ${scale}`;
}

function targetsOf(references: readonly Reference[]): Target[] {
  const found: Target[] = [];
  for (const reference of references) {
    const { parent: model, key } = reference;
    if (targetOf(found, reference) < 0) found.push({ model, key, type: typeOf(model, key) });
  }
  return found;
}

function targetOf(targets: readonly Target[], { parent, key }: Reference): number {
  return targets.findIndex((target) => target.model === parent && target.key === key);
}

/** A row whose column becomes NULL is not taken along: what is above it may go. */
function stepsOf(references: readonly Reference[], targets: readonly Target[]): Step[] {
  return targets.flatMap(({ model }, from) =>
    references.flatMap((reference) =>
      reference.child === model && !reference.isNulled ? { from, reference, to: targetOf(targets, reference) } : [],
    ),
  );
}

function ownRows({ holds, tables, bind }: Asked, model: Model, alias: string): string | undefined {
  const whose = tables.whose(model);
  return anyOf(
    (['person', 'tenant'] as const).map((kind) => {
      const ids = holds.flatMap((hold) => (hold.kind === kind ? [hold.id] : []));
      return whose[kind] === undefined || ids.length === 0 ? undefined : rowsSql(whose[kind], ids, alias, bind);
    }),
  );
}

function anyOf(terms: readonly (string | undefined)[]): string | undefined {
  const found = terms.filter((term) => term !== undefined);
  return found.length === 0 ? undefined : `(${found.join(' or ')})`;
}
