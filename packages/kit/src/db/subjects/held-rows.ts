import type { Model } from '../declare/model.ts';
import { quoteName as q } from '../declare/names.ts';
import type { Subject, SubjectTable } from './subject.ts';
import { subjectPlan } from './subject-plan.ts';
import { rowsSql } from './subject-where.ts';

/** Whose the rows of a table are, by kind. */
export type Whose = Readonly<Partial<Record<Subject['kind'], SubjectTable>>>;

/** The tables of a database, and whose their rows are. */
export interface HeldTables {
  readonly models: readonly Model[];
  whose(model: Model): Whose;
}

/**
 * A condition for rows that a legal hold keeps: those of the people and tenants themselves, and those that such rows refer to, however far above. Without them the
 * database would delete the others, too, or change them, or refuse. Undefined where there can be none. Its values are added to `values`.
 */
export function heldSql(holds: readonly Subject[], tables: HeldTables, model: Model, alias: string, values: unknown[]): string | undefined {
  return holds.length === 0 ? undefined : heldIn({ holds, tables, values }, [model], alias);
}

/** ` and not …` for rows that a legal hold keeps: no retention removes those. */
export function exceptHeldSql(holds: readonly Subject[], tables: HeldTables, model: Model, alias: string, values: unknown[]): string {
  const held = heldSql(holds, tables, model, alias, values);
  // NULL is no answer: a row of nobody is not held.
  return held === undefined ? '' : ` and not coalesce(${held}, false)`;
}

interface Asked {
  readonly holds: readonly Subject[];
  readonly tables: HeldTables;
  readonly values: unknown[];
}

/** `way`: the tables from this one up to the first. Of tables that refer to one another in a circle, rows are followed once around. */
function heldIn(asked: Asked, way: readonly [Model, ...Model[]], alias: string): string | undefined {
  const [model] = way;
  const references = referencesTo(asked.tables.models, model);
  /** Their own rows, and those that rows of other tables refer to. */
  const plainly = (of: string): string | undefined =>
    anyOf([
      ownRows(asked, model, of),
      ...references.map((reference) => {
        const { child, isNulled } = reference;
        if (way.includes(child)) return undefined;
        const inside = isNulled ? ownRows(asked, child, `${of}b`) : heldIn(asked, [child, ...way], `${of}b`);
        return inside === undefined ? undefined : inRows({ ...reference, alias: `${of}b` }, of, inside);
      }),
    ]);
  const trees = references.flatMap((reference) => {
    if (reference.child !== model || reference.isNulled) return [];
    const inside = plainly(`${alias}s`);
    return inside === undefined ? [] : [aboveRows({ ...reference, alias: `${alias}s` }, alias, inside)];
  });
  return anyOf([plainly(alias), ...trees]);
}

function anyOf(terms: readonly (string | undefined)[]): string | undefined {
  const found = terms.filter((term) => term !== undefined);
  return found.length === 0 ? undefined : `(${found.join(' or ')})`;
}

function ownRows({ holds, tables, values }: Asked, model: Model, alias: string): string | undefined {
  const whose = tables.whose(model);
  return anyOf(
    holds.map(({ kind, id }) => {
      const table = whose[kind];
      return table === undefined ? undefined : rowsSql(table, id, alias, values);
    }),
  );
}

/** A foreign key. */
interface Reference {
  readonly child: Model;
  readonly column: string;
  /** The column of the table that it refers to. */
  readonly key: string;
  /** The row stays when the other one goes: the column becomes NULL. */
  readonly isNulled: boolean;
}

interface Named extends Reference {
  readonly alias: string;
}

function inRows({ child, column, key, alias }: Named, above: string, inside: string): string {
  return `${above}.${q(key)} in (select ${alias}.${q(column)} from ${q(child.name)} ${alias} where ${inside} and ${alias}.${q(column)} is not null)`;
}

/** A tree: every row above one of these. */
function aboveRows({ child, column, key, alias }: Named, above: string, inside: string): string {
  const [table, parent, up] = [q(child.name), q(column), `${alias}_up`];
  return (
    `${above}.${q(key)} in (with recursive ${up}(id) as (select ${alias}.${parent} from ${table} ${alias} where ${inside} and ${alias}.${parent} is not null` +
    ` union select ${alias}.${parent} from ${table} ${alias} join ${up} on ${alias}.${q(key)} = ${up}.id where ${alias}.${parent} is not null) select id from ${up})`
  );
}

function referencesTo(models: readonly Model[], model: Model): Reference[] {
  return models.flatMap((child) =>
    Object.entries(child.columns).flatMap(
      ([
        column,
        {
          settings: { reference },
        },
      ]) => {
        if (reference === undefined || reference.isConstrained === false) return [];
        const target = typeof reference.target === 'string' ? reference.target : reference.target().name;
        const key = reference.column ?? model.primaryKey[0] ?? '';
        return target === model.name ? [{ child, column, key, isNulled: reference.onDelete === 'set null' }] : [];
      },
    ),
  );
}

const known = new WeakMap<Model, HeldTables>();

/** As the model itself and those that it refers to have it: of a module's table, whose rows no resource of the app decides about. */
export function tablesOfModule(model: Model): HeldTables {
  let tables = known.get(model);
  if (tables !== undefined) return tables;
  const models = [...reached(model)];
  const plans = { person: subjectPlan('person', models), tenant: subjectPlan('tenant', models) };
  tables = { models, whose: (each) => whoseIn(each, plans.person.tables, plans.tenant.tables) };
  known.set(model, tables);
  return tables;
}

/** Whose the rows of a model are, by the plans of both kinds. */
export function whoseIn(model: Model, people: readonly SubjectTable[], tenants: readonly SubjectTable[]): Whose {
  const [person, tenant] = [people, tenants].map((tables) => tables.find((table) => table.model === model));
  return { ...(person === undefined ? {} : { person }), ...(tenant === undefined ? {} : { tenant }) };
}

function reached(model: Model, found = new Set<Model>()): Set<Model> {
  if (found.has(model)) return found;
  found.add(model);
  for (const { settings } of Object.values(model.columns))
    if (typeof settings.reference?.target === 'function') reached(settings.reference.target() as unknown as Model, found);
  return found;
}
