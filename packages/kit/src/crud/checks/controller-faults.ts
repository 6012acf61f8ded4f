import type { App } from '../../app/declare/module.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import type { Fault } from '../../options/fault.ts';
import type { MountedResource } from '../mount/mounted-resource.ts';
import { widestView } from '../policy/make-view.ts';
import { PEOPLE } from '../declare/people.ts';
import type { Policy } from '../policy/policy.ts';
import { visibleToNames } from '../policy/rule-marks.ts';
import { surelyAdmitsAnonymous } from '../../permissions/admits-anonymous.ts';
import type { Permission } from '../../permissions/permission.ts';
import { statsFaults } from '../read/stats.ts';
import { isRoute } from '../../http/declare/route.ts';
import { fieldOf } from '../options/operation-field.ts';
import { resourceRules } from '../options/option-rules.ts';
import { type NamedRule, selectionField } from '../declare/action-rule.ts';
import { audienceFaults } from './audience-faults.ts';
import { createFaults } from './create-faults.ts';
import { encryptedOperationFaults } from './encryption-faults.ts';
import { listFaults } from './list-faults.ts';
import { liveFaults } from './live-faults.ts';
import { unindexedColumns } from './unindexed.ts';
import { writeFaults } from './write-faults.ts';
import { recorderFaults, resourceFaults } from './policy-faults.ts';

/** What is wrong with a mounted controller and its resource, all at once. */
export function controllerFaults(name: string, controller: object, mounted: MountedResource, app: App): Fault[] {
  const faults = new ControllerFaults(name, mounted, app);
  return [...resourceFaults(app), ...faults.all(controller)];
}

class ControllerFaults {
  readonly #name: string;
  readonly #mounted: MountedResource;
  readonly #app: App;
  readonly #faults: Fault[] = [];

  constructor(name: string, mounted: MountedResource, app: App) {
    this.#name = name;
    this.#mounted = mounted;
    this.#app = app;
  }

  all(controller: object): Fault[] {
    this.#key();
    this.#faults.push(...listFaults(this.#name, this.#mounted, this.#app));
    this.#names(controller);
    this.#softDelete();
    this.#idempotency();
    this.#actions();
    this.#responses();
    this.#indexes();
    this.#callers();
    this.#faults.push(...audienceFaults(this.#name, this.#mounted.resource, this.#mounted.audience));
    const { policy, options } = this.#mounted;
    if (policy.using !== (policy.options.using ?? 'default')) this.#faults.push(...recorderFaults(policy, this.#name, this.#app));
    this.#faults.push(...writeFaults(this.#name, controller, this.#mounted), ...liveFaults(this.#name, controller, this.#mounted));
    this.#faults.push(...encryptedOperationFaults(this.#name, controller, this.#mounted));
    this.#import();
    this.#replica();
    this.#guarded(controller);
    if (options.stats !== undefined) this.#faults.push(...statsFaults(this.#name, policy, options.stats));
    if (['create', 'bulkCreate', 'import'].some((name) => fieldOf(options, name) in controller))
      this.#faults.push(
        ...createFaults(
          policy,
          `resource(${policy.model.name}) of ${this.#name}`,
          this.#mounted.parent?.edge.column,
          // Unknown names are reported by themselves; a name that is left out cannot be sent.
          this.#mounted.input,
        ),
      );
    return this.#faults;
  }

  /** Grants are rights, and rights are read from the primary: no list would ever be read from the replica. */
  #replica(): void {
    const { policy, options } = this.#mounted;
    if (options.readFrom === undefined || policy.options.access === undefined) return;
    this.#add('E013', 'has readFrom, but grants decide about its rows, and those are read from the primary.', 'Remove readFrom.');
  }

  /** Deleting a row needs no column, and passes over what a module does when one of its rows goes. */
  #guarded(controller: object): void {
    const { policy, options } = this.#mounted;
    const offered = ['destroy', 'bulkDestroy'].filter((name) => fieldOf(options, name) in controller);
    const isGuarded = policy.statements.columns.some(({ settings }) => settings.guarded === true);
    if (offered.length === 0 || !isGuarded || policy.options.hooks?.destroy !== undefined) return;
    this.#add(
      'W013',
      `offers ${offered.join(' and ')} of "${policy.model.name}", whose rows a module manages: nothing that belongs to them is cleaned up.`,
      'Remove the operation (operations: { destroy: false }), or use the function of the module in hooks.destroy.',
    );
  }

  #add(id: string, message: string, hint?: string): void {
    this.#faults.push({ id, message: `${this.#name}: ${message}`, hint });
  }

  get #columnNames(): string[] {
    return [...this.#mounted.policy.statements.byName.keys()];
  }

  #key(): void {
    const { policy, options } = this.#mounted;
    const { lookup, parent } = options;
    if (lookup === undefined) {
      if (policy.model.primaryKey.length !== 1)
        this.#add(
          'E014',
          `the key of "${policy.model.name}" has ${policy.model.primaryKey.length} columns.`,
          'Set a unique column: lookup: "…".',
        );
    } else if (!policy.statements.byName.has(lookup))
      this.#add('E012', `lookup refers to the unknown column "${lookup}".`, didYouMean(lookup, this.#columnNames).trim() || undefined);
    else if (!isUnique(policy, lookup)) this.#add('E014', `the lookup column "${lookup}" is not unique.`, `Declare it: t.…().unique().`);
    else if (policy.ruleOf(lookup)?.visibleTo !== undefined || widestView(policy).knows(lookup) === undefined)
      this.#add(
        'E016',
        `the lookup column "${lookup}" is hidden from some callers.`,
        'The URL contains this value, so every caller must be allowed to see the column.',
      );
    else if (policy.statements.column(lookup).nullable)
      this.#add(
        'E014',
        `the lookup column "${lookup}" may be null.`,
        'A row without a value would have no URL: remove .nullable(), or look rows up by the key.',
      );
    if (parent !== undefined) {
      const edge = policy.edge(parent.relation);
      if (edge === undefined || edge.kind !== 'one')
        this.#add(
          'E012',
          `parent refers to the unknown to-one relation "${parent.relation}".`,
          didYouMean(parent.relation, Object.keys(policy.resource.relations as object)).trim() || undefined,
        );
      else if (edge.target.model === PEOPLE)
        this.#add('E017', `parent is "${parent.relation}", which leads to users.`, "Use a filter: filters: { 'owner.id': ['eq'] }.");
      else if (policy.statements.byName.get(edge.column)?.nullable === true)
        this.#add(
          'E013',
          `the parent column "${edge.column}" may be null.`,
          'A row below a parent always has a parent: remove .nullable().',
        );
    }
  }

  #names(controller: object): void {
    const { resource, options } = this.#mounted;
    const named = { ...resource.options.transitions, ...resource.options.actions } as Readonly<Record<string, NamedRule>>;
    const transitions = Object.keys(named);
    const selections = transitions.filter((name) => named[name]?.on === 'selection').map(selectionField);
    const taken = new Set([
      'list',
      'query',
      'queryAlias',
      'retrieve',
      'create',
      'update',
      'partialUpdate',
      'destroy',
      'transitions',
      ...DECLARED,
      ...RESERVED,
    ]);
    for (const name of transitions) {
      if (taken.has(name) || selections.includes(name))
        this.#add(
          'E018',
          `the ${Object.hasOwn(resource.options.actions ?? {}, name) ? 'action' : 'transition'} "${name}" takes the name of an operation.`,
          'Give it another name.',
        );
    }
    const offered = new Set([...Object.keys(this.#mounted.transitionRules), ...Object.keys(this.#mounted.actionRules), ...selections]);
    for (const [operation, given] of Object.entries(options.operations ?? {})) {
      const field = typeof given === 'object' ? given.field : undefined;
      if (field === undefined) continue;
      if (!taken.has(field) && !offered.has(field)) {
        offered.add(field);
        continue;
      }
      this.#add('E018', `operations.${operation}.field takes the name of another operation: "${field}".`, 'Give it another name.');
    }
    for (const [name, value] of Object.entries(controller))
      // A bare `rows = …` is reported as the option that it looks like.
      if ((isRoute(value) || !Object.hasOwn(resourceRules, name)) && RESERVED.includes(name) && !transitions.includes(name))
        this.#add('E018', `the field "${name}" replaces a member that generic operations use.`, 'Give it another name.');
    for (const name of Object.keys(options.operations ?? {})) {
      const known = [
        'list',
        'query',
        'retrieve',
        'create',
        'update',
        'partialUpdate',
        'destroy',
        ...DECLARED,
        ...transitions,
        ...selections,
        'transitions',
      ];
      if (!known.includes(name))
        this.#add(
          'E012',
          `operations refers to the unknown operation "${name}".`,
          didYouMean(name, known).trim() || `Known: ${known.join(', ')}.`,
        );
      else if (DECLARED.includes(name) && typeof options.operations?.[name] === 'object' && !(fieldOf(options, name) in controller))
        this.#add('E012', `operations configures "${name}", which the controller does not offer.`, 'Declare the operation.');
    }
  }

  /** Every operation has an action that grants decide it by. */
  #actions(): void {
    const { access } = this.#mounted.policy.options;
    if (access === undefined) return;
    const routes = this.#app.routes.filter(({ controller }) => controller === this.#name);
    const operations = new Set(routes.flatMap(({ metadata }) => (metadata['crud'] as { operation?: string } | undefined)?.operation ?? []));
    for (const operation of operations) {
      if (access.actionOf(operation) === undefined)
        this.#add(
          'E024',
          `the operation "${operation}" is not mapped to an action of ${access.name}.`,
          `Declare an action "${access.usualActionOf?.(operation) ?? operation}", or map the operation: ${access.name.replace(/\)$/, '')}, { operations: { ${operation}: 'change' } }).`,
        );
    }
  }

  /** W005: schemas of the controller's own that require what some callers do not get. */
  #responses(): void {
    const { policy } = this.#mounted;
    const omitted = new Map<string, string>();
    for (const field of widestView(policy).fields.values()) {
      const names = visibleToNames(field);
      if (names !== undefined && !(field.kind === 'column' && field.rule?.hidden === 'null')) omitted.set(field.name, names);
    }
    if (omitted.size === 0) return;
    for (const { controller, field, response } of this.#app.routes) {
      if (controller !== this.#name || response === undefined) continue;
      for (const name of requiredOfRows(response.json))
        if (omitted.has(name))
          this.#add(
            'W005',
            `the response of "${field}" requires "${name}", which only ${omitted.get(name)} may see.`,
            "Make it optional in the schema, or show it as null: visibleTo(permission, { hidden: 'null' }).",
          );
    }
  }

  /** W008 by the declaration alone. The column of a relation is W007. */
  #indexes(): void {
    const columns = unindexedColumns(this.#mounted).filter(({ isRelation }) => !isRelation);
    if (columns.length > 0)
      this.#add(
        'W008',
        `no index of "${this.#mounted.policy.model.name}" serves ${columns.map(({ column, usedBy }) => `${column} (${usedBy})`).join(', ')}.`,
        'Add one that begins with the column, or with tenant and owner before it, unless the table stays small: `kit doctor` checks its size.',
      );
  }

  /** The rows of an owner are for users: a permission that admits everyone promises what no caller without credentials gets. */
  #callers(): void {
    const { bounds, options } = this.#mounted.policy;
    if (bounds.owner === undefined || options.anonymous !== undefined || options.access?.admitsAnonymous === true) return;
    const permission = this.#mounted.options.permission as Permission;
    if (['GET', 'POST'].some((method) => surelyAdmitsAnonymous(permission, method)))
      this.#add(
        'E013',
        `the permission ${permission.name} admits anonymous callers, but the resource has an owner: they would see no rows.`,
        'Use isAuthenticated, or declare the rows they see: anonymous: { … } in the resource.',
      );
  }

  #idempotency(): void {
    const { policy, options } = this.#mounted;
    if (policy.using !== 'default' && options.idempotency !== undefined && options.idempotency !== false)
      this.#add(
        'E019',
        `accepts idempotency keys, but its rows are in the database "${policy.using}": the idempotency records are in "default".`,
        'Set idempotency: false.',
      );
  }

  #softDelete(): void {
    const { policy, options } = this.#mounted;
    if (options.restore === true && policy.softDelete === undefined)
      this.#add('E020', 'offers restore, but the resource has no soft deletion.', 'Add ...softDelete() to the model, or remove restore.');
    else if (options.restore === true && options.lookup !== undefined && options.lookup !== policy.key.name)
      this.#add(
        'E020',
        `offers restore by "${options.lookup}", which is not unique among deleted rows.`,
        'Offer restore by the key: use a controller without lookup.',
      );
  }

  /** Upserts find rows by a column that clients send and that no two rows of a caller share. */
  #import(): void {
    const { policy, options, input } = this.#mounted;
    const by = options.import?.by;
    if (by === undefined || policy.statements.byName.get(by)?.settings.encrypted !== undefined) return;
    const { tenant, owner } = policy.bounds;
    // Callers with grants see rows of several owners.
    const scoping = new Set([tenant, policy.options.access === undefined ? owner : undefined, this.#mounted.parent?.edge.column]);
    const isUniqueWithin = policy.model.table.indexes.some(
      (index) => isUniqueIndex(policy, index) && index.columns.filter((each) => !scoping.has(each.replace(/^-/, ''))).join() === by,
    );
    if (!input.includes(by))
      this.#add(
        'E012',
        `import.by refers to a column "${by}" that does not exist or that clients cannot send.`,
        didYouMean(by, input).trim() || undefined,
      );
    else if (policy.ruleOf(by)?.visibleTo?.mayNeedObject === true)
      this.#add(
        'E016',
        `import.by has "${by}", whose visibility depends on the row.`,
        'An import would reveal which rows have a hidden value. Find rows by a column that every caller can see.',
      );
    else if (!isUniqueWithin && !isUnique(policy, by))
      this.#add(
        'E014',
        `import.by has "${by}", which is not unique.`,
        'Declare it: t.…().unique(), or a unique index of it and the owner.',
      );
  }
}

type Json = Readonly<Record<string, unknown>>;

/** Names that a response requires of its rows: of the answer itself, of its elements, or of its `items`. */
function requiredOfRows(root: Json): Set<string> {
  const names = new Set<string>();
  const visit = (given: unknown, depth: number): void => {
    if (typeof given !== 'object' || given === null || depth > 4) return;
    const reference = (given as Json)['$ref'];
    const target = typeof reference === 'string' ? (root['$defs'] as Json | undefined)?.[reference.replace('#/$defs/', '')] : undefined;
    const { required, items, properties, allOf } = { ...(given as Json), ...(target as Json | undefined) } as Json;
    for (const name of Array.isArray(required) ? (required as string[]) : []) names.add(name);
    visit(items, depth + 1);
    visit((properties as Json | undefined)?.['items'], depth + 1);
    for (const part of Array.isArray(allOf) ? allOf : []) visit(part, depth + 1);
  };
  visit(root, 0);
  return names;
}

/** Operations that an option declares. */
const DECLARED = ['export', 'import', 'stats', 'meta', 'restore', 'bulkCreate', 'bulkUpdate', 'bulkDestroy'];
const MEMBERS = [
  'wrap',
  'find',
  'rows',
  'write',
  'present',
  'onceSchema',
  'below',
  'controllersBelow',
  'tenantOf',
  'presentOnce',
  'keyParams',
  'prepare',
  'faults',
  'databaseFaults',
  'install',
  'crudResource',
];
const RESERVED = [
  ...MEMBERS,
  // What every object has: `constructor`, `toString`.
  ...Object.getOwnPropertyNames(Object.prototype),
];

/** Deleted rows may share a value that is unique among the others. */
function isUniqueIndex({ softDelete }: Policy, { unique, where }: { readonly unique?: boolean; readonly where?: string }): boolean {
  const partial = softDelete === undefined ? undefined : `${softDelete.deletedAt} is null`;
  return unique === true && (where === undefined || where === partial);
}

function isUnique(policy: Policy, column: string): boolean {
  const { primaryKey, table } = policy.model;
  if (primaryKey.length === 1 && primaryKey[0] === column) return true;
  return table.indexes.some(
    (index) => isUniqueIndex(policy, index) && index.columns.length === 1 && index.columns[0]?.replace(/^-/, '') === column,
  );
}
