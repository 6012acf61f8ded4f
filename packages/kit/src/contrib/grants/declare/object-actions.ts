import type { Model } from '../../../db/declare/model.ts';
import type { Columns } from '../../../db/declare/rows.ts';
import { type ModelColumn, statementsOf } from '../../../db/sql/model-statements.ts';
import { didYouMean } from '../../../options/did-you-mean.ts';
import type { Fault } from '../../../options/fault.ts';
import { InvalidOptions, type OptionRules, readOptions, requireArguments } from '../../../options/read-options.ts';
import { filledText, listOf, objectWith, oneOf, recordOf, required, rule, wholeNumber, aModel } from '../../../options/value-rule.ts';
import type { Permission } from '../../../permissions/permission.ts';
import type { GrantBackend } from './grant-backend.ts';
import { isStoredList, listedActions } from './stored-actions.ts';
import { WIDE_SUBJECTS, type WideSubject } from './subject.ts';

type Name<C> = Extract<keyof C, string>;

export interface ObjectActionsOptions<C extends Columns = Columns, A extends string = string, S extends string = string> {
  /** What can be done to an object. `view` must be among them; `share` is needed to share it. */
  readonly actions: readonly A[];
  /** Names for several actions; a set may name other sets. What it contains is looked up when it is used, not when it is granted. */
  readonly sets?: { readonly [K in S]: readonly (NoInfer<A> | NoInfer<S>)[] };
  /** What the creator of an object is granted when it is made through CRUD: a set or an action. */
  readonly creator?: NoInfer<A> | NoInfer<S>;
  /** A column that refers to another model with actions: what is granted on the parent holds for the object, too. */
  readonly through?: Name<C>;
  /** The action on the parent that creating an object below it, or moving one there, takes. Default: `change`. */
  readonly parentAction?: string;
  /** How many parents above an object count. Default: 5. */
  readonly depth?: number;
  /** Subjects besides users and groups: everyone in the object's tenant, every signed-in user, everybody. */
  readonly subjects?: readonly WideSubject[];
  /** The owner holds every action. Default: the resource's owner. */
  readonly owner?: Name<C>;
  /** The column of the object's tenant. Default: the resource's tenant. */
  readonly tenant?: Name<C>;
  /** Who decides. Default: the table of grants. */
  readonly backend?: GrantBackend;
}

const NAME = /^[a-z][a-z0-9_]*$/;
const NAME_MAX = 40;
const ACTIONS_MAX = 24;
const DEPTH_DEFAULT = 5;
const DEPTH_MAX = 10;

const aName = rule(
  'a name in snake_case of at most 40 characters',
  (value) => typeof value === 'string' && NAME.test(value) && value.length <= NAME_MAX,
);
const rules: OptionRules<ObjectActionsOptions> = {
  actions: required(listOf(aName, { min: 1 })),
  sets: recordOf(listOf(aName, { min: 1 })),
  creator: aName,
  through: filledText,
  parentAction: aName,
  depth: wholeNumber(1, DEPTH_MAX),
  subjects: listOf(oneOf(...WIDE_SUBJECTS)),
  owner: filledText,
  tenant: filledText,
  backend: objectWith('a backend of grants', 'condition', 'decide'),
};

const declared = new WeakMap<Model, ObjectActions>();

/** The model of a declaration, or the model itself: functions take either, and check names of actions where they have the declaration. */
export function modelOfActions(source: Model | ObjectActions): Model {
  return source instanceof ObjectActions ? source.model : source;
}

/** The declaration of a model, if there is one. */
export function actionsOfModel(model: Model): ObjectActions | undefined {
  return declared.get(model);
}

/** The actions of one model, with sets resolved. `A` has the names of actions, `S` those of sets. */
export class ObjectActions<A extends string = string, S extends string = string> {
  /** In types only: the names, so that what grants them can be checked. */
  declare readonly names?: { readonly action: A; readonly set: S };
  readonly model: Model;
  /** The name of the table: `object_type` of its grants. */
  readonly type: string;
  readonly actions: ReadonlySet<string>;
  readonly sets: ReadonlyMap<string, ReadonlySet<string>>;
  readonly creator: string | undefined;
  readonly depth: number;
  readonly subjects: ReadonlySet<WideSubject>;
  readonly backend: GrantBackend | undefined;
  readonly through: string | undefined;
  readonly parentAction: string;
  /** Callers whom the owner's rule of the resource does not bind: they hold every action. */
  ownerUnless: Permission | undefined;
  #owner: string | undefined;
  #tenant: string | undefined;

  constructor(model: Model, options: ObjectActionsOptions, sets: ReadonlyMap<string, ReadonlySet<string>>) {
    this.model = model;
    this.type = model.name;
    this.actions = new Set(options.actions);
    this.sets = sets;
    this.creator = options.creator;
    this.depth = options.depth ?? DEPTH_DEFAULT;
    this.subjects = new Set(options.subjects);
    this.backend = options.backend;
    this.through = options.through;
    this.parentAction = options.parentAction ?? 'change';
    this.#owner = options.owner;
    this.#tenant = options.tenant;
  }

  get owner(): string | undefined {
    return this.#owner;
  }

  get tenant(): string | undefined {
    return this.#tenant;
  }

  /** What the resource says about owner and tenant holds for grants, too. Returns what contradicts it. */
  bindResource(owner: string | undefined, tenant: string | undefined): string[] {
    const faults: string[] = [];
    if (this.#owner !== undefined && owner !== undefined && this.#owner !== owner)
      faults.push(`the owner is "${this.#owner}" for grants and "${owner}" for the resource.`);
    if (this.#tenant !== undefined && tenant !== undefined && this.#tenant !== tenant)
      faults.push(`the tenant is "${this.#tenant}" for grants and "${tenant}" for the resource.`);
    // Rows of the owner are found by the resource: without its tenant they would be those of every tenant.
    if (this.#tenant !== undefined && tenant === undefined)
      faults.push(`the tenant is "${this.#tenant}" for grants, but the resource has no tenant.`);
    this.#owner ??= owner;
    this.#tenant ??= tenant;
    return faults;
  }

  get key(): ModelColumn {
    return statementsOf(this.model).key[0] as ModelColumn;
  }

  /** The column that says since when a row is deleted, where rows are deleted softly. */
  get deletedAt(): string | undefined {
    return 'deleted_at' in this.model.columns && 'deletion_id' in this.model.columns ? 'deleted_at' : undefined;
  }

  /** The declaration of the model that `through` refers to. */
  get parent(): ObjectActions | undefined {
    if (this.through === undefined) return undefined;
    const target = statementsOf(this.model).byName.get(this.through)?.settings.reference?.target;
    return typeof target === 'function' ? declared.get(target() as unknown as Model) : undefined;
  }

  /** The names of sets that contain the action. */
  setsWith(action: string): string[] {
    return [...this.sets].filter(([, actions]) => actions.has(action)).map(([name]) => name);
  }

  /** What a grant gives now. A set or action that is no longer declared gives nothing. */
  expand(stored: string): ReadonlySet<string> {
    if (!isStoredList(stored)) return this.sets.get(stored) ?? NOTHING;
    return new Set(listedActions(stored).filter((action) => this.actions.has(action)));
  }

  /** What is wrong once every model is known. */
  faults(): Fault[] {
    const place = `objectActions(${this.type})`;
    const columns = statementsOf(this.model).byName;
    const fault = (message: string, hint?: string): Fault => ({ id: 'E024', message: `${place}: ${message}`, hint });
    const found: Fault[] = [];
    if (this.model.primaryKey.length !== 1) found.push(fault('objects need a primary key of one column.'));
    for (const [option, name] of [
      ['owner', this.#owner],
      ['tenant', this.#tenant],
      ['through', this.through],
    ] as const)
      if (name !== undefined && !columns.has(name))
        found.push(fault(`${option} refers to the unknown column "${name}".`, didYouMean(name, [...columns.keys()]).trim() || undefined));
    if (this.subjects.has('tenant') && this.#tenant === undefined)
      found.push(fault('"tenant" may be granted, but objects have no tenant.', 'Set tenant: "…", here or in the resource.'));
    if (this.through !== undefined && columns.has(this.through)) {
      if (this.parent === undefined)
        found.push(
          fault(
            `through "${this.through}" leads to no model with actions.`,
            'It must be t.ref(() => model), and the model needs objectActions(…).',
          ),
        );
      else if (this.#isCircular())
        found.push(fault(`through "${this.through}" leads back to this model over others.`, 'A model may refer to itself.'));
      else if (this.parentAction !== 'change' && !this.parent.actions.has(this.parentAction))
        found.push(
          fault(
            `"${this.parent.type}" has no action "${this.parentAction}", which parentAction names.`,
            `Known: ${[...this.parent.actions].join(', ')}.`,
          ),
        );
      else if (this.parent.model.primaryKey.length !== 1) found.push(fault('its parent has a primary key of several columns.'));
    }
    return found;
  }

  #isCircular(): boolean {
    const seen = new Set<ObjectActions>([this]);
    for (let at = this.parent; at !== undefined && at !== at.parent; at = at.parent) {
      if (at === this) return this.parent !== this;
      if (seen.has(at)) return true;
      seen.add(at);
    }
    return false;
  }
}

const NOTHING: ReadonlySet<string> = new Set();

/**
 * Declares what can be done to the objects of a model, and under which names it is granted. Give it to `objectGrants({ objects: [...] })`, and
 * the model to `access: grants(orders)` of its resource.
 *
 * @example
 * ```ts
 * const orderActions = objectActions(orders, {
 *   actions: ['view', 'change', 'delete', 'share'],
 *   sets: { viewer: ['view'], editor: ['viewer', 'change'], manager: ['editor', 'delete', 'share'] },
 * });
 * ```
 */
export function objectActions<C extends Columns, const A extends string, const S extends string = never>(
  model: Model<C>,
  options: ObjectActionsOptions<C, A, S>,
): ObjectActions<A, S> {
  requireArguments('objectActions()', { model }, { model: aModel });
  const place = `objectActions(${model.name})`;
  readOptions(place, options, rules as OptionRules<ObjectActionsOptions<C, A, S>>);
  const faults = declarationFaults(place, options);
  if (declared.has(model)) faults.push({ id: 'E011', message: `${place}: the model has actions already.`, hint: 'Declare them once.' });
  const { sets, unknown } = resolveSets(place, options);
  if (faults.length + unknown.length > 0) throw new InvalidOptions([...faults, ...unknown]);
  const made = new ObjectActions<A, S>(model, options, sets);
  declared.set(model, made);
  return made;
}

function declarationFaults(place: string, { actions, sets = {}, creator, through, depth, parentAction }: ObjectActionsOptions): Fault[] {
  const fault = (message: string, hint?: string): Fault => ({ id: 'E011', message: `${place}: ${message}`, hint });
  const found: Fault[] = [];
  if (!actions.includes('view'))
    found.push(
      fault('has no action "view".', 'Objects that a caller cannot view look like missing objects, so the action "view" is required.'),
    );
  if (new Set(actions).size !== actions.length) found.push(fault('names an action twice.'));
  if (actions.length > ACTIONS_MAX) found.push(fault(`has more than ${ACTIONS_MAX} actions.`));
  for (const name of Object.keys(sets)) {
    if (!NAME.test(name) || name.length > NAME_MAX) found.push(fault(`the set name "${name}" must be in snake_case.`));
    if (actions.includes(name)) found.push(fault(`"${name}" is an action and a set.`, 'Give one of them another name.'));
  }
  const known = [...Object.keys(sets), ...actions];
  if (creator !== undefined && !known.includes(creator))
    found.push(fault(`creator "${creator}" is neither a set nor an action.`, didYouMean(creator, known).trim() || undefined));
  if (parentAction !== undefined && through === undefined)
    found.push(fault('sets parentAction without through.', 'Set through: "folder_id".'));
  if (depth !== undefined && through === undefined) found.push(fault('sets depth without through.', 'Set through: "folder_id".'));
  return found;
}

function resolveSets(
  place: string,
  { actions, sets = {} }: ObjectActionsOptions,
): { readonly sets: ReadonlyMap<string, ReadonlySet<string>>; readonly unknown: readonly Fault[] } {
  const unknown: Fault[] = [];
  const resolved = new Map<string, ReadonlySet<string>>();
  const resolve = (name: string, path: readonly string[]): ReadonlySet<string> => {
    const known = resolved.get(name);
    if (known !== undefined) return known;
    const found = new Set<string>();
    for (const member of sets[name] ?? []) {
      if (actions.includes(member)) found.add(member);
      else if (path.includes(member)) {
        unknown.push({ id: 'E011', message: `${place}: the set "${member}" contains itself.`, hint: [...path, member].join(' → ') });
      } else if (Object.hasOwn(sets, member)) for (const each of resolve(member, [...path, member])) found.add(each);
      else
        unknown.push({
          id: 'E011',
          message: `${place}: the set "${name}" names no action or set "${member}".`,
          hint: didYouMean(member, [...actions, ...Object.keys(sets)]).trim() || undefined,
        });
    }
    resolved.set(name, found);
    return found;
  };
  for (const name of Object.keys(sets)) resolve(name, [name]);
  return { sets: resolved, unknown };
}
