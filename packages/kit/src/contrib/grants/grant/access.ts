import type { App } from '../../../app/declare/module.ts';
import type { AccessContext, RowAccess } from '../../../crud/declare/row-access.ts';
import type { Model } from '../../../db/declare/model.ts';
import type { Columns } from '../../../db/declare/rows.ts';
import type { Fault } from '../../../options/fault.ts';
import { type OptionRules, readOptions, requireArguments } from '../../../options/read-options.ts';
import { filledText, recordOf, aModel } from '../../../options/value-rule.ts';
import { askedBackend, type GrantQuestion } from '../declare/grant-backend.ts';
import { tableBackend } from '../backends/table-backend.ts';
import type { KnownAsker } from '../declare/asker.ts';
import { knownAsker } from '../caller/caller-subjects.ts';
import { followRow } from './follow-rows.ts';
import { grantedRows, liveGrantsFault } from '../rows/live-grants.ts';
import { actionsOfModel, modelOfActions, type ObjectActions } from '../declare/object-actions.ts';

export interface GrantsOptions<A extends string = string> {
  /** The action of operations that have none of their own name: `{ approve: 'change' }`. */
  readonly operations?: Readonly<Record<string, A>>;
}

const rules: OptionRules<GrantsOptions> = { operations: recordOf(filledText) };

/** By operation, never by HTTP method. Null: there is no object yet. */
const ACTIONS: Readonly<Record<string, string | null>> = {
  list: 'view',
  query: 'view',
  retrieve: 'view',
  export: 'view',
  stats: 'view',
  meta: 'view',
  transitions: 'view',
  create: null,
  import: null,
  bulkCreate: null,
  update: 'change',
  partialUpdate: 'change',
  bulkUpdate: 'change',
  nested: 'change',
  destroy: 'delete',
  bulkDestroy: 'delete',
  restore: 'delete',
};

/**
 * Rows by grants: `resource(orders, { owner: 'owner_id', access: grants(orderActions) })`. The owner has every action without a grant. Takes
 * the declaration of `objectActions()`, or its model.
 *
 * @example
 * ```ts
 * const orderResource = resource(orders, { owner: 'owner_id', access: grants(orderActions) });
 * ```
 */
export function grants<C extends Columns, A extends string = string>(
  source: Model<C> | ObjectActions<A>,
  options: GrantsOptions<NoInfer<A>> = {},
): RowAccess {
  const model = modelOfActions(source as Model | ObjectActions);
  requireArguments('grants()', { model }, { model: aModel });
  const place = `grants(${model.name})`;
  const { operations = {} } = readOptions(place, options, rules);
  const declaration = () => {
    const found = actionsOfModel(model);
    if (found === undefined) throw new Error(`${place}: the model has no actions. Declare objectActions(${model.name}, …).`);
    return found;
  };
  const questionOf = async (context: AccessContext): Promise<GrantQuestion> => ({
    db: context.db,
    asker: await askerOf(context),
    declaration: declaration(),
    permission: context.permission,
  });
  const backend = () => declaration().backend ?? tableBackend;
  return {
    name: place,
    actionOf(operation) {
      if (Object.hasOwn(operations, operation)) return operations[operation];
      const { actions } = declaration();
      const usual = Object.hasOwn(ACTIONS, operation) ? ACTIONS[operation] : undefined;
      if (usual === null || (usual !== undefined && actions.has(usual))) return usual;
      return actions.has(operation) ? operation : undefined;
    },
    usualActionOf: (operation) => (Object.hasOwn(ACTIONS, operation) ? (ACTIONS[operation] ?? undefined) : undefined),
    get admitsAnonymous() {
      return actionsOfModel(model)?.subjects.has('public') === true;
    },
    async condition(context, action) {
      const question = await questionOf(context);
      return question.declaration.actions.has(action)
        ? askedBackend.condition(backend(), question, action)
        : question.asker.user?.is_superuser === true;
    },
    async page(context, page) {
      const question = await questionOf(context);
      return backend().list?.(question, page);
    },
    live: {
      fault: () => liveGrantsFault(declaration()),
      rows: (contexts) => grantedRows(declaration(), contexts),
    },
    async written(write) {
      if (backend() === tableBackend) await followRow(declaration(), await askerOf(write), write);
    },
    faults: ({ owner, tenant, app }) => accessFaults(model, place, operations, { owner, tenant }, app),
  };
}

const askers = new WeakMap<object, Promise<KnownAsker>>();

/** The groups of a caller are read once per request. */
function askerOf({ db, caller, request, permission }: AccessContext): Promise<KnownAsker> {
  let asker = askers.get(request);
  if (asker === undefined) {
    const { user, tenant, now } = caller;
    askers.set(request, (asker = knownAsker(db.database, { user, tenant }, now, permission)));
  }
  return asker;
}

function accessFaults(
  model: Model,
  place: string,
  operations: Readonly<Record<string, string>>,
  bound: { readonly owner: string | undefined; readonly tenant: string | undefined },
  app: App,
): Fault[] {
  const fault = (message: string, hint?: string): Fault => ({ id: 'E024', message: `${place}: ${message}`, hint });
  const declaration = actionsOfModel(model);
  if (declaration === undefined) return [fault('the model has no actions.', `Declare objectActions(${model.name}, …).`)];
  if (!app.modules.some(({ name }) => name === 'grants'))
    return [fault('the module is missing.', 'Add objectGrants({ objects: […] }) to the modules of createApp.')];
  return [
    ...declaration.bindResource(bound.owner, bound.tenant).map((message) => fault(message)),
    ...Object.entries(operations)
      .filter(([, action]) => !declaration.actions.has(action))
      .map(([operation, action]) => fault(`the operation "${operation}" needs "${action}", which is not an action.`, known(declaration))),
    ...(declaration.creator === undefined && bound.owner === undefined && declaration.backend === undefined && offersCreate(app, model)
      ? [fault('the creator of an object could not see it.', "Say creator: 'manager' in objectActions, or owner in the resource.")]
      : []),
  ];
}

/** What of a resource says whether rows are created. */
interface DeclaredResource {
  readonly model: Model;
  readonly options: { readonly audiences?: Readonly<Record<string, unknown>>; readonly nested?: Readonly<Record<string, unknown>> };
  readonly relations: Readonly<Record<string, { readonly model: () => unknown }>>;
}

/** Whether callers may create rows of the model: by a controller, with a parent, or in the admin site. */
function offersCreate({ controllers, resources }: App, model: Model): boolean {
  const mounted = controllers.flatMap((controller) => {
    const { crudResource } = controller as { readonly crudResource?: DeclaredResource };
    return crudResource === undefined ? [] : [{ controller, crudResource }];
  });
  if (mounted.some(({ controller, crudResource }) => crudResource.model === model && CREATING.some((name) => name in controller)))
    return true;
  const declared = [...mounted.map(({ crudResource }) => crudResource), ...(resources as readonly object[] as readonly DeclaredResource[])];
  return declared.some(
    ({ options, relations, model: own }) =>
      (own === model && options.audiences?.['staff'] !== undefined) ||
      Object.keys(options.nested ?? {}).some((name) => relations[name]?.model() === model),
  );
}

const CREATING = ['create', 'bulkCreate', 'import'];

function known({ actions }: ObjectActions): string {
  return `Known: ${[...actions].join(', ')}.`;
}
