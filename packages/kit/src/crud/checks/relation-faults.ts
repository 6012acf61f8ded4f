import { ruleKinds } from '../../auth/rights/rule-result.ts';
import type { ModelColumn } from '../../db/sql/model-statements.ts';
import type { Where } from '../../db/sql/where/where.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import type { Fault } from '../../options/fault.ts';
import { limits } from '../declare/limits.ts';
import { isPeople } from '../declare/people.ts';
import type { Relation } from '../declare/relation.ts';
import { orderTerm } from '../options/ordering.ts';
import { hasIdsOf } from '../policy/people-join.ts';
import type { Policy } from '../policy/policy.ts';
import { createFaults, inputNames } from './create-faults.ts';
import { isIndexed } from './unindexed.ts';

/** Where relations lead, and what reading them costs. */
export function relationFaults(policy: Policy, place: string): Fault[] {
  const faults: Fault[] = [];
  const add = (id: string, message: string, hint?: string) => void faults.push({ id, message: `${place}: ${message}`, hint });
  for (const [name, relation] of Object.entries(
    policy.resource.relations as Readonly<
      Record<string, { readonly kind: string; readonly column: string; readonly model: () => unknown; readonly limit?: number }>
    >,
  )) {
    if (policy.hasColumn(name)) add('E018', `the relation "${name}" has the name of a column.`, 'Give it another name.');
    // "<relation>_more" says that there are more rows than are shown.
    const more = `${name}_more`;
    if (
      relation.kind === 'many' &&
      (policy.hasColumn(more) || more in (policy.options.computed ?? {}) || more in policy.resource.relations)
    )
      add('E018', `the relation "${name}" shows "${more}" beside it, which is the name of a field.`, 'Give one of them another name.');
    const edge = policy.edge(name);
    if (isPeople(relation as Relation)) {
      faults.push(...peopleFaults(policy, place, name, relation.column));
      continue;
    }
    if (edge === undefined) {
      const target = (relation.model() as { readonly name: string }).name;
      add(
        'E017',
        `the relation "${name}" leads to "${target}", which has no resource.`,
        `Mount a controller of it, or give resource(${target}, …) to createApp({ resources }).`,
      );
      continue;
    }
    const holder = edge.kind === 'one' ? policy : edge.target;
    const referred = edge.kind === 'one' ? edge.target : policy;
    const column = holder.statements.byName.get(edge.column);
    if (column === undefined)
      add(
        'E012',
        `the relation "${name}" refers to the unknown column "${edge.column}" of "${holder.model.name}".`,
        didYouMean(edge.column, [...holder.statements.byName.keys()]).trim() || undefined,
      );
    else if (!refersTo(holder, column, referred))
      add(
        'E017',
        `the relation "${name}" is through "${edge.column}" of "${holder.model.name}", which does not refer to "${referred.model.name}".`,
        otherReference(edge.kind, holder, column, referred),
      );
    if (edge.target.using !== policy.using)
      add(
        'E017',
        `the relation "${name}" leads to "${edge.target.model.name}", whose rows are in the database "${edge.target.using}".`,
        `One statement reads both: keep them in one database, this one in "${policy.using}".`,
      );
    if (edge.kind === 'many' && column !== undefined && !isIndexed(holder, column.name))
      add(
        'W007',
        `the relation "${name}" reads "${edge.column}" of "${holder.model.name}", which no index begins with.`,
        `The limit applies to the result, not to the scan. Add an index: indexes: [{ columns: ['${edge.column}'] }].`,
      );
    if (edge.kind === 'many' && relation.limit === undefined)
      add('W007', `the relation "${name}" has no limit; 20 rows per parent are returned.`, 'Set it: many(…, { limit: 20 }).');
  }
  return faults;
}

/** A relation to the users of the app, who are in whatever table. */
function peopleFaults(policy: Policy, place: string, name: string, columnName: string): Fault[] {
  const fault = (id: string, message: string, hint: string | undefined) => [
    { id, message: `${place}: the relation "${name}" ${message}`, hint },
  ];
  const column = policy.statements.byName.get(columnName);
  if (column === undefined) {
    const hint = didYouMean(columnName, [...policy.statements.byName.keys()]).trim() || undefined;
    return fault('E012', `refers to the unknown column "${columnName}" of "${policy.model.name}".`, hint);
  }
  if (policy.users === null)
    return fault('E017', 'leads to users, and the app has none.', 'Add accounts() to its modules, or set createApp({ users }).');
  const { kind } = policy.settingsOf(columnName);
  const { idType = 'uuid', name: table } = policy.users.table;
  if (hasIdsOf(policy.users.table, kind)) return [];
  return fault('E017', `is through "${columnName}", a ${kind} column, but the ids of "${table}" are ${idType}.`, 'Use t.text().');
}

/** What to write instead: the column is what it is declared to be, unless it refers to nothing. */
function otherReference(kind: 'one' | 'many', holder: Policy, column: ModelColumn, referred: Policy): string {
  const declaration = `t.ref(() => ${referred.model.name})`;
  const target = column.settings.reference?.target;
  if (target === undefined)
    return `Declare it: ${column.name}: ${declaration}, or without a foreign key t.uuid().refersTo(() => ${referred.model.name}).`;
  const fitting = [...holder.statements.byName.values()].filter((each) => refersTo(holder, each, referred)).map(({ name }) => name);
  if (fitting.length > 0) return `Name a column that does: ${fitting.join(', ')}.`;
  const model = typeof target === 'string' ? target : (target() as { readonly name: string }).name;
  const leads = kind === 'one' ? `lead the relation there: one(() => ${model}, '${column.name}')` : 'name another relation';
  return `The column refers to "${model}": ${leads}, or add a column that refers to "${referred.model.name}": ${declaration}.`;
}

function refersTo(holder: Policy, column: ModelColumn, referred: Policy): boolean {
  const target = column.settings.reference?.target;
  return typeof target === 'string' ? target === referred.model.name : holder.referenced(column) === referred;
}

/** Conditions and orders that are data: a name that does not exist would fail at the first request that uses them. */
export function conditionFaults(policy: Policy, place: string): Fault[] {
  const { options } = policy;
  const faults: Fault[] = [];
  const check = (option: string, target: Policy, where: unknown) => {
    if (where === undefined || typeof where === 'boolean') return;
    const { accepts, expected } = ruleKinds.rows;
    if (!accepts(where)) {
      const message = `${place}: ${option} has a condition without a column, which every row matches, or is not a condition.`;
      faults.push({ id: 'E012', message, hint: `Use ${expected}.` });
      return;
    }
    const refusal = target.rows.refusalOf(where as Where);
    if (refusal === undefined) return;
    const [problem, nearest] = refusal.split(' (did you mean');
    const hint =
      nearest === undefined ? `Known: ${[...target.statements.byName.keys()].join(', ')}.` : `Did you mean${nearest.replace(')', '')}`;
    faults.push({ id: 'E012', message: `${place}: ${option} has a condition that cannot be used: ${problem}`, hint });
  };
  check('anonymous', policy, options.anonymous);
  for (const [audience, { rows }] of Object.entries(options.audiences ?? {}))
    if (typeof rows !== 'function') check(`audiences.${audience}.rows`, policy, rows);
  for (const name of Object.keys(policy.resource.relations as object)) {
    const edge = policy.edge(name);
    if (edge === undefined) continue;
    const { target, where, order } = edge;
    check(`where of the relation "${name}"`, target, where);
    for (const { column } of order.map(orderTerm)) {
      const declared = target.statements.byName.get(column);
      const problem =
        declared === undefined
          ? `refers to the unknown column "${column}" of "${target.model.name}".`
          : ['json', 'array', 'bytes'].includes(declared.definition.kind)
            ? `has "${column}", but ${declared.definition.kind} columns cannot be sorted.`
            : undefined;
      if (problem !== undefined)
        faults.push({
          id: 'E012',
          message: `${place}: order of the relation "${name}" ${problem}`,
          hint: didYouMean(column, declared === undefined ? [...target.statements.byName.keys()] : []).trim() || undefined,
        });
    }
  }
  return faults;
}

/** Rows that are written with their parent: what may be sent, and that callers cannot remove what they could not read. */
export function nestedFaults(policy: Policy, place: string): Fault[] {
  const faults: Fault[] = [];
  const relations = policy.resource.relations as Readonly<Record<string, { readonly kind: string; readonly limit?: number }>>;
  for (const [name, nested] of Object.entries(policy.options.nested ?? {})) {
    const add = (id: string, message: string, hint: string) =>
      void faults.push({ id, message: `${place}: nested "${name}" ${message}`, hint });
    const edge = policy.edge(name);
    if (nested === undefined || (edge === undefined && name in relations)) continue;
    if (edge?.kind !== 'many') {
      add(
        'E012',
        'is not a to-many relation.',
        didYouMean(name, Object.keys(relations)).trim() || 'Declare it: many(() => model, column).',
      );
      continue;
    }
    const { target } = edge;
    if (target.using !== policy.using) add('E012', 'leads to another database.', 'Write those rows at their own endpoint.');
    // The key says which row that exists is meant.
    const allowed = [...new Set([target.key.name, ...inputNames(target)])].filter((column) => column !== edge.column);
    for (const column of nested.input)
      if (!allowed.includes(column))
        add(
          'E012',
          `names "${column}", which a client may not send.`,
          didYouMean(column, allowed).trim() || `Known: ${allowed.join(', ')}.`,
        );
    if (nested.missing === 'delete' && edge.limit < (nested.max ?? limits.nested))
      add(
        'E012',
        `uses missing: 'delete' with max ${nested.max ?? limits.nested}, but the relation returns only ${edge.limit} rows.`,
        'Callers must not delete rows that they could not read: increase the limit of many(…), or decrease max.',
      );
    const { key, options } = target;
    const { hooks = {}, once = {}, writes } = options;
    if (Object.values(once).some(({ on }) => on.includes('create')))
      add(
        'E013',
        'makes rows with a value that is shown once, which the response would not show.',
        'Write those rows at their own endpoint.',
      );
    const verbs = ['create', 'update', ...(nested.missing === 'delete' ? (['destroy'] as const) : [])] as const;
    const missing = verbs.filter((verb) => hooks[verb] === undefined);
    if (writes === 'verbs' && missing.length > 0)
      add(
        'E013',
        `writes rows by verbs, and has no ${missing.join(' and no ')} hook.`,
        'Add the hooks, or write those rows at their own endpoint.',
      );
    const isKeySet = options.hooks?.create !== undefined || key.settings.default !== undefined || key.settings.dbDefault !== undefined;
    // A client sends the key of a row that exists. Without one in `input`, the author expects new rows.
    if (!isKeySet && !nested.input.includes(key.name))
      add(
        'E015',
        `cannot create rows: nothing sets their key "${key.name}".`,
        'Give the key a default, such as t.uuidv7(), or set it in hooks.create. With the key in input, only rows that exist can be written.',
      );
    const input = [...nested.input, key.name];
    faults.push(...createFaults(target, `resource(${target.model.name}) nested in ${place}`, edge.column, input));
  }
  return faults;
}

/** Rows that are only marked as deleted: the columns, the cascade, and unique values that must be free again. */
export function softDeleteFaults(policy: Policy, place: string): Fault[] {
  const { options, softDelete, model } = policy;
  const faults: Fault[] = [];
  const add = (message: string, hint: string) => void faults.push({ id: 'E020', message: `${place}: ${message}`, hint });
  if (options.softDelete !== undefined && options.softDelete !== false && softDelete === undefined)
    add('enables softDelete, but the model has no deleted_at and deletion_id columns.', 'Add ...softDelete() to the model.');
  if (softDelete === undefined) return faults;
  for (const name of softDelete.cascade) {
    const edge = policy.edge(name);
    if (edge === undefined || edge.kind !== 'many')
      add(
        `the cascade refers to the unknown to-many relation "${name}".`,
        didYouMean(name, Object.keys(policy.resource.relations as object)).trim() || 'Declare it: many(() => model, column).',
      );
    else if (edge.target.softDelete === undefined)
      add(
        `the cascade over "${name}" leads to "${edge.target.model.name}", which has no soft deletion.`,
        'Add ...softDelete() to that model.',
      );
    else if (edge.target.using !== policy.using) add(`the cascade over "${name}" leads to another database.`, 'Remove it.');
  }
  for (const { unique, columns, where } of model.table.indexes) {
    if (unique && where !== `${softDelete.deletedAt} is null`)
      add(
        `"${columns.join(', ')}" stays reserved by soft-deleted rows.`,
        `Declare it in indexes: softDeleteUnique(${columns.map((name) => `'${name}'`).join(', ')}).`,
      );
  }
  return faults;
}
