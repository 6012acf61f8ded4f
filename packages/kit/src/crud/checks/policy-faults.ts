import type { App } from '../../app/declare/module.ts';
import { uniqueColumn } from '../../db/sql/row-key.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import type { Fault } from '../../options/fault.ts';
import { isMembers } from '../../options/value-rule.ts';
import { limits } from '../declare/limits.ts';
import { hasResource, policiesOf } from '../policy/policies.ts';
import type { Policy } from '../policy/policy.ts';
import { type AnyResource, hasRowRule } from '../declare/resource.ts';
import { isStandIn } from '../policy/stand-in.ts';
import { columnFaults } from './column-faults.ts';
import { inputNames } from './create-faults.ts';
import { conditionFaults, nestedFaults, relationFaults, softDeleteFaults } from './relation-faults.ts';
import { rowsFaults } from './rows-faults.ts';

const REPORTED = new WeakSet<object>();

/** What is wrong with the resources of an app, all at once; nothing when it was asked before. They need no controller to be reached. */
export function resourceFaults(app: App): Fault[] {
  const policies = policiesOf(app);
  if (REPORTED.has(policies)) return [];
  REPORTED.add(policies);
  const repeated = policies.repeated.map(({ model, audience }) => ({
    id: 'E017',
    message: `The model "${model.name}"${usersOf(app, (resource) => resource.model === model)} has two resources${audience === null ? '' : ` for the audience "${audience}"`}.`,
    hint: 'A model can have one row policy: declare resource() once and pass it to every controller.',
  }));
  const all = [...policies.all()];
  // Nobody declared a stand-in: its model may have what a resource must not have.
  const declared = all.filter(({ resource }) => !isStandIn(resource));
  return [...repeated, ...declared.flatMap((policy) => policyFaults(policy, app)), ...sharedRecorderFaults(all, app)];
}

/** One wrong `audit({ databases })` is one fault, however many resources it leaves unrecorded. */
function sharedRecorderFaults(policies: readonly Policy[], app: App): Fault[] {
  const found = policies.flatMap((policy) => {
    const place = placeOf(policy.resource, app);
    return recorderFaults(policy, place, app).map((fault) => ({ place, fault, key: fault.message.slice(place.length) }));
  });
  return [...Map.groupBy(found, ({ key }) => key).values()].flatMap(([first, ...others]) => {
    if (first === undefined) return [];
    if (others.length === 0) return [first.fault];
    const places = [first, ...others].map(({ place }) => place).join(', ');
    return [{ ...first.fault, message: `${places}${first.key.replace(': its rows', ': their rows')}` }];
  });
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

/** Changes are recorded in the database of their rows. */
export function recorderFaults({ options, using }: Policy, place: string, app: App): Fault[] {
  const { audit, events } = app.registry;
  const recorders = [
    ['audit', audit, isMembers(options.audit) || (options.audit !== false && options.writes !== 'verbs')],
    ['webhooks', events, options.events !== undefined && options.events !== false],
  ] as const;
  return recorders.flatMap(([module, sink, isOn]) => {
    if (!isOn || sink?.databases?.includes(using) !== false) return [];
    return [
      {
        id: 'E013',
        message: `${place}: its rows are in the database "${using}", where ${module}() has no tables: no change could be saved.`,
        hint: `Use ${module}({ databases: ${JSON.stringify([...sink.databases, using])} })${module === 'audit' ? ', or audit: false' : ', or remove events'}.`,
      },
    ];
  });
}

/** What is wrong with a resource: with what it says, and with what it leaves out. */
function policyFaults(policy: Policy, app: App): Fault[] {
  const faults: Fault[] = [];
  const { options, statements, model } = policy;
  const place = placeOf(policy.resource, app);
  for (const name of ['audit', 'events', 'onChange'] as const)
    if (options.writes === 'verbs' && options[name] !== undefined && options[name] !== false && !isMembers(options[name]))
      faults.push({
        id: 'E013',
        message: `${place}: ${name} is set, but the functions that its hooks call record and announce the change (writes: 'verbs').`,
        hint: `Remove ${name}.`,
      });
  const columns = [...statements.byName.keys()];
  const add = (id: string, message: string, hint?: string) => void faults.push({ id, message: `${place}: ${message}`, hint });
  const unknown = (option: string, name: string, known: readonly string[] = columns) =>
    add('E012', `${option} refers to the unknown column "${name}".`, didYouMean(name, known).trim() || undefined);

  if (!hasRowRule(options) && options.audiences === undefined)
    add('E013', 'has no row rule.', 'Set tenant, owner, rows or access; unscoped: true if every caller may see every row.');
  const narrowing = (['tenant', 'owner', 'rows', 'access'] as const).filter((option) => options[option] !== undefined);
  if (options.unscoped === true && narrowing.length > 0)
    add('E013', `is unscoped and has ${narrowing.join(', ')}.`, 'With unscoped: true every caller may see every row: remove one of them.');
  if (options.unscoped === true && app.hasTenants && options.tenant === undefined)
    add('W010', 'is unscoped in an app with tenants.', 'Set tenant: "…" unless every tenant may see every row.');

  if (uniqueColumn(model, statements) === undefined)
    add(
      'E014',
      `the key of "${model.name}" has ${model.primaryKey.length} columns, and no other column is unique.`,
      'Add a column that is unique and not null: t.uuidv7().unique().',
    );

  const kept = [
    ['tenant', policy.tenant?.column],
    ['owner', policy.owner?.column],
    ['version', options.version as string | undefined],
  ] as const;
  for (const [option, name] of kept) {
    if (name === undefined) continue;
    const column = statements.byName.get(name);
    if (column === undefined) {
      add('E013', `${option} refers to the unknown column "${name}".`, didYouMean(name, columns).trim() || undefined);
      continue;
    }
    if (column.nullable)
      add('E013', `the ${option} column "${name}" may be null.`, 'Rows without a value would have no owner: remove .nullable().');
    if (policy.accepts(column) && option !== 'version')
      add('E013', `the ${option} column "${name}" is writable by clients.`, 'Declare it .readOnly(), or leave it out of input.');
    const rule = option === 'version' ? undefined : policy[option];
    if (rule?.none !== undefined && column.settings.kind !== 'text')
      add('E013', `${option}: { none: '' } needs a text column, but "${name}" is ${column.settings.kind}.`, 'Remove none.');
    if (option === 'version' && column.settings.increment !== true)
      add('E013', `the version column "${name}" does not count updates.`, 'Use ...versioned() in the model.');
  }
  if (policy.tenant !== undefined && policy.tenant.none === undefined && !app.hasTenants)
    add(
      'E013',
      'has a tenant column, but createApp has no `tenant` option.',
      'Add a tenant resolver to createApp: tenant: ({ user }) => ….',
    );
  if (options.events === 'tenant' && options.tenant === undefined)
    add('E013', "has events: 'tenant' without a tenant.", "Add `tenant: 'tenant_id'`, or use events: true.");
  if (options.events === true && options.owner === undefined && options.tenant === undefined)
    add(
      'E013',
      'publishes events without an audience: it has neither owner nor tenant.',
      'Use events: (change) => ({ type, data, audience }).',
    );

  if ((options.audit === true || isMembers(options.audit)) && app.registry.audit === null)
    add(
      'W033',
      'has `audit`, and no module of the app records audit entries.',
      'Add audit() to the modules of createApp, or remove `audit`.',
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
  const rules = options.fields ?? {};
  for (const [name, rule] of Object.entries(rules)) {
    const column = statements.byName.get(name);
    // What writes by the functions of its module stores nothing as it is sent.
    if (column?.settings.guarded === true && policy.accepts(column) && options.writes !== 'verbs')
      add(
        'W013',
        `opens the guarded column "${name}" to ${rule?.writableBy?.name}.`,
        'Values are stored as they are sent: the functions of its module check more, and act on a change.',
      );
    if (column === undefined) unknown('fields', name);
    else if (rule?.visibleTo !== undefined && (model.primaryKey.includes(name) || name === policy.key.name))
      add('E016', `the key "${name}" is hidden from some callers.`, 'The key cannot be hidden.');
    else if (rule?.visibleTo !== undefined && rule.hidden === 'null' && !column.nullable)
      add('E012', `"${name}" is hidden as null, but the column is not nullable.`, "Use hidden: 'omit'.");
  }
  if (policy.permissions.length > limits.visibilityPermissions)
    add(
      'E022',
      `has ${policy.permissions.length} distinct permissions for visibility; at most ${limits.visibilityPermissions}.`,
      'Name a permission once and use it for several fields.',
    );

  for (const name of inputNames(policy)) {
    const column = statements.byName.get(name);
    const target = column?.settings.reference?.target;
    if (column !== undefined && target !== undefined && policy.referenced(column) === undefined)
      add(
        'E017',
        `clients may send "${name}", which refers to "${typeof target === 'string' ? target : target().name}", a model without a resource.`,
        'The rows that a caller may refer to are unknown: add its resource to createApp({ resources }).',
      );
  }
  if (options.access !== undefined)
    for (const { id, message, hint } of options.access.faults?.({
      model,
      owner: policy.owner?.column,
      tenant: policy.tenant?.column,
      app,
    }) ?? [])
      add(id, message, hint);
  faults.push(
    ...relationFaults(policy, place),
    ...conditionFaults(policy, place),
    ...rowsFaults(policy, place),
    ...columnFaults(policy, place),
    ...softDeleteFaults(policy, place),
    ...nestedFaults(policy, place),
  );
  return faults;
}
