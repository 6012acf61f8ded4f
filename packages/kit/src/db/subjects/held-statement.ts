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

/** A column by which rows are found. Its values are in the column of its type. */
interface Node {
  readonly model: Model;
  readonly key: string;
  readonly type: string;
  /** Rows of somebody who is held; else rows that others refer to. */
  readonly isOwn: boolean;
}

/** From a row that is found by a node to the one that it refers to. */
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
  const keys = targets.flatMap((target, node) => (target.model === model ? { ...target, node } : []));
  const own = ownRows(asked, model, alias);
  if (stepsOf(references, targets).length === 0) {
    const seeds = references.flatMap((reference) => seedOf(asked, reference));
    const direct = keys.flatMap(({ key, node }) => {
      const found = seeds.flatMap((seed) => (targetOf(targets, seed.reference) === node ? seedSql(seed, column(seed.reference)) : []));
      return found.length === 0 ? [] : `${alias}.${q(key)} in (${found.join(' union all ')})`;
    });
    return anyOf([own, ...direct]);
  }
  const followed = followedSql(asked, references, targets);
  if (followed === undefined) return own;
  const above = keys.map(({ key, node, type }) => {
    const value = followed.valueOf(type);
    return `${alias}.${q(key)} in (with recursive ${followed.text} select ${value} from _held where node = ${node} and ${value} is not null)`;
  });
  return anyOf([own, ...above]);
}

interface Followed {
  readonly text: string;
  valueOf(type: string): string;
}

/** Rows of `_held`: a node, and the value by which a held row is found. Undefined where nobody can have any. */
function followedSql(asked: Asked, references: readonly Reference[], targets: readonly Node[]): Followed | undefined {
  const nodes = [...targets];
  const seeds: { readonly node: number; readonly type: string; readonly sql: (columns: string) => string; readonly value: string }[] = [];
  // A table whose rows have one key is asked once whose they are, and not for each of its references.
  for (const model of new Set(references.map(({ child }) => child))) {
    const [key = '', ...more] = model.primaryKey;
    if (more.length > 0) {
      for (const reference of references.filter(({ child }) => child === model))
        for (const seed of seedOf(asked, reference)) {
          const node = targetOf(targets, reference);
          seeds.push({ node, type: (targets[node] as Node).type, sql: (columns) => seedSql(seed, columns), value: column(reference) });
        }
      continue;
    }
    const own = ownRows(asked, model, 'h');
    if (own === undefined) continue;
    const node = nodes.push({ model, key, type: typeOf(model, key), isOwn: true }) - 1;
    const sql = (columns: string): string => `select ${columns} from ${q(model.name)} h where ${own}`;
    seeds.push({ node, type: typeOf(model, key), sql, value: comparable(model, key, `h.${q(key)}`) });
  }
  if (seeds.length === 0) return undefined;
  const types = [...new Set(nodes.map(({ type }) => type))];
  const valueOf = (type: string): string => `v${types.indexOf(type)}`;
  const steps = stepsOf(references, nodes);
  // No row: the types of the columns.
  const empty = types.map((type) => {
    const { model, key } = nodes.find((node) => node.type === type) as Node;
    return `(select ${comparable(model, key, q(key))} from ${q(model.name)} where 1 = 0)`;
  });
  const first = seeds.map(({ node, type, sql, value }) => sql([node, ...types.map((each) => (each === type ? value : 'null'))].join(', ')));
  const next = types.map((type) => {
    const ways = steps.flatMap(({ from, reference, to }, step) => {
      if (nodes[to]?.type !== type) return [];
      const known = nodes[from] as Node;
      // At most one row: what others refer to is unique.
      return `when ${step} then (select ${column(reference)} from ${q(known.model.name)} h where h.${q(known.key)} = u.${valueOf(known.type)})`;
    });
    return ways.length === 0 ? 'null' : `case s.column2 ${ways.join(' ')} end`;
  });
  // From which node, which step, to which node.
  const ways = steps.map(({ from, to }, step) => `(${from}, ${step}, ${to})`).join(', ');
  const text =
    `_held(node, ${types.map(valueOf).join(', ')}) as (select -1, ${empty.join(', ')} union all ${first.join(' union all ')}` +
    ` union select s.column3, ${next.join(', ')} from _held u join (values ${ways}) s on s.column1 = u.node)`;
  return { text, valueOf };
}

interface Seed {
  readonly reference: Reference;
  /** A condition for rows of somebody who is held. */
  readonly own: string;
}

function seedOf(asked: Asked, reference: Reference): Seed[] {
  const own = ownRows(asked, reference.child, 'h');
  return own === undefined ? [] : [{ reference, own }];
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

function targetsOf(references: readonly Reference[]): Node[] {
  const found: Node[] = [];
  for (const reference of references) {
    const { parent: model, key } = reference;
    if (targetOf(found, reference) < 0) found.push({ model, key, type: typeOf(model, key), isOwn: false });
  }
  return found;
}

function targetOf(nodes: readonly Node[], { parent, key }: Reference): number {
  return nodes.findIndex((node) => !node.isOwn && node.model === parent && node.key === key);
}

/** A row whose column becomes NULL is not taken along: only rows of somebody who is held must not be changed, either. */
function stepsOf(references: readonly Reference[], nodes: readonly Node[]): Step[] {
  return nodes.flatMap(({ model, isOwn }, from) =>
    references.flatMap((reference) =>
      reference.child === model && (isOwn || !reference.isNulled) ? { from, reference, to: targetOf(nodes, reference) } : [],
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
