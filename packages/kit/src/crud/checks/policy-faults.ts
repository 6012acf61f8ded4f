import type { App } from '../../app/module.ts';
import type { ModelColumn } from '../../db/model-statements.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import type { Fault } from '../../options/fault.ts';
import { limits } from '../declare/limits.ts';
import { hasResource, policiesOf } from '../policy/policies.ts';
import { widestView } from '../policy/make-view.ts';
import { type Policy, uniqueColumn } from '../policy/policy.ts';
import type { AnyResource } from '../declare/resource.ts';
import { pastOperations } from '../write/record-changes.ts';
import { transitionRulesOf } from '../write/possible-transitions.ts';
import { isTransitionName } from '../declare/transition-rule.ts';
import { isIndexed } from './unindexed.ts';
import { orderTerm } from '../declare/ordering.ts';
import type { Where } from '../../db/where/where.ts';
import type { FieldRule } from '../declare/field-rule.ts';

const REPORTED = new WeakSet<object>();

/** What is wrong with the resources of an app, all at once; nothing when it was asked before. They need no controller to be reached. */
export function resourceFaults(app: App): Fault[] {
  const policies = policiesOf(app);
  if (REPORTED.has(policies)) return [];
  REPORTED.add(policies);
  const repeated = policies.repeated.map((model) => ({
    id: 'E017',
    message: `The model "${model.name}"${usersOf(app, (resource) => resource.model === model)} has two resources.`,
    hint: 'Which rows a caller sees is said once: declare resource() once, and give it to every controller.',
  }));
  return [...repeated, ...[...policies.all()].flatMap((policy) => policyFaults(policy, app))];
}

/** `resource(notes) of NoteController`: where a fault is, with the classes that use the resource. */
function placeOf(resource: AnyResource, app: App): string {
  return `resource(${resource.model.name})${usersOf(app, (each) => each === resource)}`;
}

/** ` of NoteController`, or nothing. */
function usersOf(app: App, isMeant: (resource: AnyResource) => boolean): string {
  const users = app.controllers.filter((controller) => hasResource(controller) && isMeant(controller.crudResource));
  const names = new Set(users.map(({ constructor }) => constructor.name));
  return names.size === 0 ? '' : ` of ${[...names].join(', ')}`;
}

/** A resource whose database the app does not have; where a controller has it, that one reports it. */
export function databaseFaults(resource: AnyResource, app: App): Fault[] {
  if (app.controllers.some((controller) => hasResource(controller) && controller.crudResource === resource)) return [];
  const { using } = policiesOf(app).of(resource);
  return app.databases[using] === undefined ? [unknownDatabase(placeOf(resource, app), using, app)] : [];
}

export function unknownDatabase(place: string, using: string, app: App): Fault {
  const known = Object.keys(app.databases);
  return {
    id: 'E013',
    message: `${place}: its rows are in the database "${using}", which the app does not have.`,
    hint: `The app has ${known.join(', ')}.${didYouMean(using, known)}`,
  };
}

/** What is wrong with a resource: with what it says, and with what it leaves out. */
function policyFaults(policy: Policy, app: App): Fault[] {
  const faults: Fault[] = [];
  const { options, statements, model } = policy;
  const place = placeOf(policy.resource, app);
  const columns = [...statements.byName.keys()];
  const add = (id: string, message: string, hint?: string) => void faults.push({ id, message: `${place}: ${message}`, hint });
  const unknown = (option: string, name: string, known: readonly string[] = columns) =>
    add('E012', `${option} names no column "${name}".`, didYouMean(name, known).trim() || undefined);

  if (
    options.tenant === undefined &&
    options.owner === undefined &&
    options.rows === undefined &&
    options.access === undefined &&
    options.unscoped !== true
  )
    add(
      'E013',
      'does not say which rows a caller sees.',
      'Say tenant, owner, rows or access; unscoped: true when every caller may see every row.',
    );
  const narrowing = (['tenant', 'owner', 'rows', 'access'] as const).filter((option) => options[option] !== undefined);
  if (options.unscoped === true && narrowing.length > 0)
    add(
      'E013',
      `is unscoped and has ${narrowing.join(', ')}.`,
      'unscoped: true says that every caller may see every row: remove one of them.',
    );
  if (options.unscoped === true && app.hasTenants && options.tenant === undefined)
    add('W010', 'is unscoped in an app with tenants.', 'Say tenant: "…" unless every tenant may see every row.');

  if (uniqueColumn(model, statements) === undefined)
    add(
      'E014',
      `the key of "${model.name}" has ${model.primaryKey.length} columns, and no other column tells its rows apart.`,
      'Add a column that is unique and not null: t.uuidv7().unique().',
    );

  const kept = [
    ['tenant', options.tenant as string | undefined],
    ['owner', policy.owner?.column],
    ['version', options.version as string | undefined],
  ] as const;
  for (const [option, name] of kept) {
    if (name === undefined) continue;
    const column = statements.byName.get(name);
    if (column === undefined) {
      add('E013', `${option} names no column "${name}".`, didYouMean(name, columns).trim() || undefined);
      continue;
    }
    if (column.nullable)
      add('E013', `the ${option} column "${name}" may be null.`, 'Rows without one would have no owner: remove .nullable().');
    if (policy.accepts(column) && option !== 'version')
      add('E013', `the ${option} column "${name}" is accepted from clients.`, 'Declare it .readOnly(), or leave it out of input.');
    if (option === 'version' && column.settings.increment !== true)
      add('E013', `the version column "${name}" does not count updates.`, 'Use ...versioned() in the model.');
  }
  if (options.tenant !== undefined && !app.hasTenants)
    add('E013', 'has a tenant, and the app cannot tell whose.', 'Give createApp a tenant resolver: tenant: ({ user }) => ….');
  if (options.events === true && options.owner === undefined && options.tenant === undefined)
    add(
      'E013',
      'announces events without an audience: it has neither owner nor tenant.',
      'Use events: (change) => ({ type, data, audience }).',
    );

  const { audit, events } = app.registry;
  for (const [module, sink, isOn] of [
    ['audit', audit, options.audit !== false],
    ['webhooks', events, options.events !== undefined && options.events !== false],
  ] as const)
    if (isOn && sink?.databases?.includes(policy.using) === false)
      add(
        'E013',
        `its rows are in the database "${policy.using}", where ${module}() has no tables: no change could be saved.`,
        `Use ${module}({ databases: ${JSON.stringify([...sink.databases, policy.using])} })${module === 'audit' ? ', or audit: false' : ', or remove events'}.`,
      );

  for (const [option, names] of [
    ['input', options.input],
    ['hidden', options.hidden],
  ] as const)
    for (const name of (names ?? []) as readonly string[]) if (!statements.byName.has(name)) unknown(option, name);
  for (const name of (options.input ?? []) as readonly string[]) {
    const column = statements.byName.get(name);
    if (column === undefined || (policy.accepts(column) && name !== options.state)) continue;
    const remedy = column.settings.guarded
      ? `The column is .guarded(): leave it out of input, or name who may write it: fields: { ${name}: writableBy(isSuperuser) }.`
      : 'The column is .readOnly(): leave it out of input.';
    add(
      'E012',
      `input takes "${name}", which clients cannot send.`,
      name === options.state ? 'The state is changed by transitions.' : remedy,
    );
  }
  const rules = (options.fields ?? {}) as Readonly<Record<string, FieldRule | undefined>>;
  for (const [name, rule] of Object.entries(rules)) {
    const column = statements.byName.get(name);
    if (column?.settings.guarded === true && policy.accepts(column))
      add(
        'W013',
        `opens the guarded column "${name}" to ${rule?.writableBy?.name}.`,
        'Values are stored as they are sent: the functions of its module check more, and act on a change.',
      );
    if (column === undefined) unknown('fields', name);
    else if (rule?.visibleTo !== undefined && (model.primaryKey.includes(name) || name === policy.key.name))
      add('E016', `the key "${name}" is hidden from some callers.`, 'Every row is known by its key.');
    else if (rule?.visibleTo !== undefined && rule.hidden === 'null' && !column.nullable)
      add('E012', `"${name}" is hidden as null, and can never be null.`, "Use hidden: 'omit'.");
  }
  if (policy.permissions.length > limits.visibilityPermissions)
    add(
      'E022',
      `has ${policy.permissions.length} distinct permissions for visibility; at most ${limits.visibilityPermissions}.`,
      'Name a permission once and use it for several fields.',
    );

  for (const [name, relation] of Object.entries(
    policy.resource.relations as Readonly<
      Record<string, { readonly kind: string; readonly column: string; readonly model: () => unknown; readonly limit?: number }>
    >,
  )) {
    if (statements.byName.has(name)) add('E018', `the relation "${name}" has the name of a column.`, 'Give it another name.');
    // "<relation>_more" says that there are more rows than are shown.
    const more = `${name}_more`;
    if (relation.kind === 'many' && (statements.byName.has(more) || more in (options.computed ?? {}) || more in policy.resource.relations))
      add('E018', `the relation "${name}" shows "${more}" beside it, which is the name of a field.`, 'Give one of them another name.');
    const edge = policy.edge(name);
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
        `the relation "${name}" names no column "${edge.column}" of "${holder.model.name}".`,
        didYouMean(edge.column, [...holder.statements.byName.keys()]).trim() || undefined,
      );
    else if (!refersTo(holder, column, referred))
      add(
        'E017',
        `the relation "${name}" is through "${edge.column}" of "${holder.model.name}", which does not refer to "${referred.model.name}".`,
        `Declare it: ${edge.column}: t.ref(() => ${referred.model.name}).`,
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
        `Its limit bounds what is shown, not what is read: indexes: [{ columns: ['${edge.column}'] }].`,
      );
    if (edge.kind === 'many' && relation.limit === undefined)
      add('W007', `the relation "${name}" has no limit; 20 rows per parent are shown.`, 'Say it: many(…, { limit: 20 }).');
  }
  for (const name of inputNames(policy)) {
    const column = statements.byName.get(name);
    const target = column?.settings.reference?.target;
    if (column !== undefined && target !== undefined && policy.referenced(column) === undefined)
      add(
        'E017',
        `clients may send "${name}", which refers to "${typeof target === 'string' ? target : target().name}", and that has no resource.`,
        'Which of its rows a caller may refer to is not known: give its resource to createApp({ resources }).',
      );
  }
  if (options.access !== undefined)
    for (const { id, message, hint } of options.access.faults?.({
      model,
      owner: policy.owner?.column,
      tenant: options.tenant as string | undefined,
      app,
    }) ?? [])
      add(id, message, hint);
  faults.push(
    ...conditionFaults(policy, place),
    ...stateFaults(policy, place),
    ...computedFaults(policy, place),
    ...uniqueFaults(policy, place),
    ...softDeleteFaults(policy, place),
    ...nestedFaults(policy, place),
  );
  return faults;
}

/** Conditions and orders that are data: a name that does not exist would fail at the first request that uses them. */
function conditionFaults(policy: Policy, place: string): Fault[] {
  const { options } = policy;
  const faults: Fault[] = [];
  const check = (option: string, target: Policy, where: unknown) => {
    if (where === undefined || typeof where === 'boolean') return;
    const refusal = target.rows.refusalOf(where as Where);
    if (refusal === undefined) return;
    const [problem, nearest] = refusal.split('; did you mean');
    const hint = nearest === undefined ? `Known: ${[...target.statements.byName.keys()].join(', ')}.` : `Did you mean${nearest}`;
    faults.push({ id: 'E012', message: `${place}: ${option} has a condition that cannot be used: ${problem}`, hint });
  };
  check('anonymous', policy, options.anonymous);
  check('admin.rows', policy, options.admin?.rows);
  for (const name of Object.keys(policy.resource.relations as object)) {
    const edge = policy.edge(name);
    if (edge === undefined) continue;
    const { target, where, order } = edge;
    check(`where of the relation "${name}"`, target, where);
    for (const { column } of order.map(orderTerm)) {
      const declared = target.statements.byName.get(column);
      const problem =
        declared === undefined
          ? `names no column "${column}" of "${target.model.name}".`
          : ['json', 'array', 'bytes'].includes(declared.definition.kind)
            ? `has "${column}", and ${declared.definition.kind} columns have no order.`
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

function refersTo(holder: Policy, column: ModelColumn, referred: Policy): boolean {
  const target = column.settings.reference?.target;
  return typeof target === 'string' ? target === referred.model.name : holder.referenced(column) === referred;
}

/** Columns that a resource takes from clients. */
export function inputNames(policy: Policy): string[] {
  const { options, statements, owner } = policy;
  const kept = new Set([options.tenant, options.version, options.state, owner?.column]);
  return statements.columns.filter((column) => policy.accepts(column) && !kept.has(column.name)).map(({ name }) => name);
}

function stateFaults(policy: Policy, place: string): Fault[] {
  const { options, statements } = policy;
  const transitions = Object.entries(transitionRulesOf(policy));
  const state = options.state as string | undefined;
  if (state === undefined)
    return transitions.length === 0
      ? []
      : [{ id: 'E018', message: `${place}: has transitions and no state.`, hint: 'Say state: "status".' }];
  const column = statements.byName.get(state);
  if (column === undefined)
    return [
      {
        id: 'E012',
        message: `${place}: state names no column "${state}".`,
        hint: didYouMean(state, [...statements.byName.keys()]).trim() || undefined,
      },
    ];
  const values = column.definition.values ?? [];
  if (column.definition.kind !== 'enum')
    return [{ id: 'E018', message: `${place}: the state column "${state}" is not an enum.`, hint: "t.enum(['open', 'paid'])." }];
  const faults: Fault[] = [];
  const add = (message: string, hint: string) => void faults.push({ id: 'E018', message: `${place}: the transition ${message}`, hint });
  for (const [name, { from, to }] of transitions) {
    if (!isTransitionName(name))
      add(`${JSON.stringify(name)} has a name that cannot be part of an address.`, 'Use letters, digits, "-" and "_": "close".');
    if (from.length === 0) add(`"${name}" can never run.`, 'Name a state in from.');
    if (pastOperations.has(name))
      add(`"${name}" is recorded and announced under the name of another change.`, 'Give it another name: a verb, such as "close".');
    for (const each of [...from, to])
      if (!values.includes(each as string))
        add(`"${name}" has the state "${String(each)}", which "${state}" cannot be.`, `Known: ${values.join(', ')}.`);
  }
  return faults;
}

/** A required column that is never set would fail at the first create. `parent`: the column that the address sets. */
export function createFaults(
  policy: Policy,
  place: string,
  parent: string | undefined,
  input: readonly string[] = inputNames(policy),
): Fault[] {
  const { options, statements, owner } = policy;
  if (options.hooks?.create !== undefined) return [];
  const filled = new Set([...input, options.tenant, owner?.column, options.state].filter((name) => name !== undefined));
  return statements.columns
    .filter(
      ({ name, settings, nullable }) =>
        !nullable && settings.default === undefined && settings.dbDefault === undefined && !filled.has(name) && name !== parent,
    )
    .map(({ name }) => ({
      id: 'E015',
      message: `${place}: nothing sets the required column "${name}" when a row is made.`,
      hint: 'Put it into input, give it a default, or set it in hooks.create.',
    }));
}

function computedFaults(policy: Policy, place: string): Fault[] {
  const known = [...policy.statements.byName.keys()];
  // In the place of a column that is hidden it is the only one of its name.
  const view = widestView(policy);
  const isTaken = (name: string) => view.knows(name) !== undefined || Object.hasOwn(policy.resource.relations as object, name);
  const faults: Fault[] = [];
  for (const [name, { requires }] of Object.entries(policy.options.computed ?? {})) {
    const add = (id: string, message: string, hint?: string) =>
      void faults.push({ id, message: `${place}: the computed field "${name}" ${message}`, hint });
    if (isTaken(name)) add('E018', 'has the name of a column or relation.', 'Give it another name.');
    for (const path of requires) {
      const [first = '', second, ...deeper] = path.split('.');
      const edge = policy.edge(first);
      if (second === undefined) {
        if (!known.includes(first)) add('E012', `requires no column "${first}".`, didYouMean(first, known).trim() || undefined);
      } else if (edge?.kind !== 'one' || !edge.target.statements.byName.has(second) || deeper.length > 0)
        add('W006', `requires "${path}", which is no column of a to-one relation.`, 'It gets null for it.');
    }
  }
  return faults;
}

/** A unique value that clients send tells every caller that some row has it. */
function uniqueFaults(policy: Policy, place: string): Fault[] {
  const { options, model, owner, statements } = policy;
  const scoping = [options.tenant, owner?.column].filter((name) => name !== undefined) as string[];
  if (scoping.length === 0) return [];
  const isSent = (name: string) => {
    const column = statements.byName.get(name.replace(/^-/, ''));
    return column !== undefined && policy.accepts(column);
  };
  return model.table.indexes
    .filter(({ unique, columns }) => unique && !scoping.includes((columns[0] ?? '').replace(/^-/, '')) && columns.some(isSent))
    .map(({ columns }) => ({
      id: 'W011',
      message: `${place}: "${columns.join(', ')}" is unique over all ${options.tenant === undefined ? 'owners' : 'tenants'}: a 409 tells that a foreign row exists.`,
      hint: `Begin the index with "${scoping[0]}", unless that is meant.`,
    }));
}

/** Rows that are only marked as deleted: the columns, the cascade, and unique values that must be free again. */
function softDeleteFaults(policy: Policy, place: string): Fault[] {
  const { options, softDelete, model } = policy;
  const faults: Fault[] = [];
  const add = (message: string, hint: string) => void faults.push({ id: 'E020', message: `${place}: ${message}`, hint });
  if (options.softDelete !== undefined && options.softDelete !== false && softDelete === undefined)
    add('says softDelete, and the model has no deleted_at and deletion_id.', 'Add ...softDelete() to the model.');
  if (softDelete === undefined) return faults;
  for (const name of softDelete.cascade) {
    const edge = policy.edge(name);
    if (edge === undefined || edge.kind !== 'many')
      add(
        `the cascade names no to-many relation "${name}".`,
        didYouMean(name, Object.keys(policy.resource.relations as object)).trim() || 'Declare it: many(() => model, column).',
      );
    else if (edge.target.softDelete === undefined)
      add(
        `the cascade over "${name}" leads to "${edge.target.model.name}", which does not delete softly.`,
        'Add ...softDelete() to that model.',
      );
    else if (edge.target.using !== policy.using) add(`the cascade over "${name}" leads to another database.`, 'Remove it.');
  }
  for (const { unique, columns, where } of model.table.indexes) {
    if (unique && where !== `${softDelete.deletedAt} is null`)
      add(
        `"${columns.join(', ')}" stays taken by deleted rows.`,
        `Declare it in indexes: softDeleteUnique(${columns.map((name) => `'${name}'`).join(', ')}).`,
      );
  }
  return faults;
}

/** Rows that are written with their parent: what may be sent, and that callers cannot remove what they could not read. */
function nestedFaults(policy: Policy, place: string): Fault[] {
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
        'names no to-many relation.',
        didYouMean(name, Object.keys(relations)).trim() || 'Declare it: many(() => model, column).',
      );
      continue;
    }
    const { target } = edge;
    if (target.using !== policy.using) add('E012', 'leads to another database.', 'Write those rows at their own address.');
    const allowed = inputNames(target).filter((column) => column !== edge.column);
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
        `deletes what is missing among ${nested.max ?? limits.nested}, and the relation shows ${edge.limit}.`,
        'Callers must not delete what they could not read: raise the limit of many(…), or lower max.',
      );
    faults.push(...createFaults(target, `resource(${target.model.name}) nested in ${place}`, edge.column, nested.input));
  }
  return faults;
}
